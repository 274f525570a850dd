"""Copies logs of a data directory into the storage of a cluster. Each local segment becomes one segment object, byte
for byte.

For each segment: upload it, read it back and compare, stage it (`intake.py`). The key of the object follows from the
segment, so that an import that is repeated after a crash finds what the first one has uploaded. Then the logs are
added as a whole, with their producers, aborted transactions and state of compaction.

The data directory is locked meanwhile; it is opened as a broker would open it, and its logs are not changed.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple
from uuid import UUID, uuid5

from tidelog.errors import CorruptLog, InvalidInput, OutcomeUnknown, StorageError, StorageUnavailable
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, ProducerId, TimestampMs
from tidelog.records.batch import BatchView, ReadBuffer
from tidelog.settings import LogSettings
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.segment import LOG, ActiveSegment, SealedSegment
from tidelog.storage.local.store import LocalStore
from tidelog.storage.producers import Producers
from tidelog.storage.shared.claim import check_claim, claim
from tidelog.storage.shared.intake import Intake, LogInCluster, NewLog
from tidelog.storage.shared.inventory import stored_now
from tidelog.storage.shared.objects import ObjectMissing, ObjectStore
from tidelog.storage.shared.order import Cleaned, Extent
from tidelog.storage.shared.pieces import PIECE_BYTES, read_patiently
from tidelog.storage.shared.producer_facts import pack_snapshot
from tidelog.storage.shared.segment_object import Segment, SegmentWriter, load_segment, new_key
from tidelog.storage.transfer.tally import Tally, Totals
from tidelog.storage.whole_log import WholeLog

_KEYS = UUID("6f2b0a53-51b8-4b0e-8f0a-4d6a1f4c7e21")
_MOST_ATTEMPTS = 100  # keys of one segment that may be used up
_PATIENCE = 5  # attempts
_PAUSE_S = 1.0

Progress = Callable[[int], None]


class CopyDiffers(StorageError):
    """What was written is not what was read."""

    retriable = False


class LogFacts(NamedTuple):
    """A log of the data directory, as far as a plan needs it."""

    partition: PartitionIdentity
    start_offset: Offset
    end_offset: Offset
    size_bytes: int
    segments: int
    producers: frozenset[ProducerId]
    open_transactions: frozenset[ProducerId]


class CopiedLog(NamedTuple):
    partition: PartitionIdentity
    whole: WholeLog
    extents: Sequence[Extent]
    epochs: Sequence[tuple[LeaderEpoch, Offset]]
    source: Totals
    stored: Totals
    uploaded: int
    """Segments that were uploaded now; the others were there."""


class _Uploaded(NamedTuple):
    key: str
    size: int
    segment: Segment


class ImportStorage:
    """Belongs to the running event loop, whose thread it blocks for the disk's reads."""

    def __init__(
        self, local: LocalStore, objects: ObjectStore, intake: Intake, *, clock: Callable[[], TimestampMs]
    ) -> None:
        self._local = local
        self._objects = objects
        self._intake = intake
        self._clock = clock

    async def check_claim(self, cluster_id: str, *, is_unused: bool) -> None:
        """ClaimedByAnother: the object store belongs to another cluster. InvalidInput: to none, although the cluster
        is in use."""
        try:
            await check_claim(self._objects, cluster_id)
        except ObjectMissing:
            if not is_unused:
                raise InvalidInput(
                    f"{self._objects.place} has never been used by this cluster; check cluster.storage, and whether"
                    " it is mounted"
                ) from None

    async def claim(self, cluster_id: str) -> None:
        await claim(self._objects, cluster_id)

    def look(self, partition: PartitionIdentity) -> LogFacts:
        log = self._open(partition)
        try:
            return LogFacts(
                partition,
                log.start_offset,
                log.end_offset,
                sum(segment.size for segment in log.segments),
                sum(segment.size > 0 for segment in log.segments),
                frozenset(producer_id for producer_id, _ in log.producers),
                frozenset(log.producers.open),
            )
        finally:
            self._local.release([partition])

    async def logs_of(self, topic_ids: Sequence[bytes]) -> dict[tuple[bytes, int], LogInCluster]:
        return await self._intake.logs_of(topic_ids)

    async def copy(self, partition: PartitionIdentity, progress: Progress) -> CopiedLog:
        """Upload what is missing, and compare everything. `progress` is told bytes that were compared. CopyDiffers,
        CorruptLog, or what the object store and the database raise."""
        log = self._open(partition)
        try:
            copying = _Copying(self._objects, self._intake, log, partition, progress)
            for segment in log.segments:
                if segment.size:
                    await copying.copy(segment)
            return copying.finished()
        finally:
            self._local.release([partition])

    async def add(self, logs: Sequence[CopiedLog], keeps: Callable[[ProducerId], bool]) -> None:
        """Add the logs of a topic to the cluster. Only producers for which `keeps` is true are remembered."""
        await self._intake.add([_new_log(log, keeps) for log in logs])

    async def abandon(self, topic_ids: Sequence[bytes]) -> int:
        """What was copied for these topics, which the cluster's metadata does not know, becomes garbage. Returns the
        number of logs and objects."""
        return await self._intake.abandon(topic_ids, self._clock())

    def _open(self, partition: PartitionIdentity) -> LocalLog:
        return self._local.open(partition, LogSettings(), self._clock())


class _Copying:
    """One log that is being copied."""

    def __init__(
        self,
        objects: ObjectStore,
        intake: Intake,
        log: LocalLog,
        partition: PartitionIdentity,
        progress: Progress,
    ) -> None:
        self._objects = objects
        self._intake = intake
        self._log = log
        self._partition = partition
        self._progress = progress
        self._producers = Producers()  # after the segments that are copied
        self._after = self._producers  # and after the one that is being copied
        self._epochs: list[tuple[LeaderEpoch, Offset]] = []
        self._extents: list[Extent] = []
        self._source = self._stored = Totals()
        self._uploaded = 0

    def finished(self) -> CopiedLog:
        return CopiedLog(
            self._partition,
            self._log.whole(),
            self._extents,
            self._epochs,
            self._source,
            self._stored,
            self._uploaded,
        )

    async def copy(self, segment: SealedSegment | ActiveSegment) -> None:
        """Work of many hours must not end because the store or the database was away for a moment."""
        for attempt in range(_PATIENCE):
            try:
                await self._copy(segment)
                return
            except (StorageUnavailable, OutcomeUnknown):
                if attempt == _PATIENCE - 1:
                    raise
                await asyncio.sleep(_PAUSE_S)

    async def _copy(self, segment: SealedSegment | ActiveSegment) -> None:
        source: Totals | None = None
        for attempt in range(_MOST_ATTEMPTS):
            key = self._key(segment, attempt)
            found = await stored_now(self._objects, key)
            is_new = found is None
            if found is None:
                source, size = await self._upload(segment, key)
            else:
                size = found.size
            if source is None:
                source = await self._read_source(segment)
            uploaded = await self._compared(segment, key, size, source, is_new=is_new)
            if uploaded is not None and await self._intake.stage(key, size):
                self._uploaded += is_new
                self._use(uploaded, source)
                return
        raise StorageError(f"all keys for {segment.path}{LOG} are used up; remove what {key} and its like are")

    def _key(self, segment: SealedSegment | ActiveSegment, attempt: int) -> str:
        topic_id, number = self._partition.topic.topic_id, self._partition.number
        name = f"{topic_id.hex()}/{number}/{segment.base_offset}/{segment.size}/{attempt}"
        return new_key(topic_id, number, segment.base_offset, uuid5(_KEYS, name))

    # The data directory's side

    async def _upload(self, segment: SealedSegment | ActiveSegment, key: str) -> tuple[Totals, int]:
        tally = Tally(segment.path + LOG, self._source, self._saw)
        size = await self._objects.put_stream(key, self._object(segment, tally))
        return tally.finish(), size

    async def _read_source(self, segment: SealedSegment | ActiveSegment) -> Totals:
        tally = Tally(segment.path + LOG, self._source, self._saw)
        async for _ in self._object(segment, tally):
            pass
        return tally.finish()

    def _object(self, segment: SealedSegment | ActiveSegment, tally: Tally) -> AsyncIterator[ReadBuffer]:
        """The same bytes whenever it is repeated."""
        self._after = Producers.restored(self._producers, self._producers.open.items())
        written_ms = os.fstat(segment.file.fileno()).st_mtime_ns // 1_000_000
        topic_id, number = self._partition.topic.topic_id, self._partition.number
        writer = SegmentWriter(topic_id, number, self._after, written_ms)
        return writer.parts(self._content(segment, tally))

    async def _content(self, segment: SealedSegment | ActiveSegment, tally: Tally) -> AsyncIterator[bytes]:
        file = segment.file
        for at in range(0, segment.size, PIECE_BYTES):
            wanted = min(PIECE_BYTES, segment.size - at)
            piece = file.pread(wanted, at)
            if len(piece) < wanted:
                raise CorruptLog("the file is too short", file=file.path, position=at, offset=segment.base_offset)
            tally.add(piece)
            yield piece
            await asyncio.sleep(0)

    def _saw(self, batch: BatchView) -> None:
        epoch = batch.header.leader_epoch
        if epoch > (self._epochs[-1][0] if self._epochs else -1):
            self._epochs.append((epoch, batch.header.base_offset))

    # The cluster's side

    async def _compared(
        self, segment: SealedSegment | ActiveSegment, key: str, size: int, source: Totals, *, is_new: bool
    ) -> _Uploaded | None:
        """None: an earlier run has left another object under this key, such as one of a log that was compacted
        since."""
        tally = Tally(key, self._stored)
        try:
            footer = await load_segment(self._objects, key, size)
            for at in range(0, footer.data_size, PIECE_BYTES):
                wanted = min(PIECE_BYTES, footer.data_size - at)
                tally.add(await read_patiently(self._objects, key, at, wanted))
                self._progress(wanted)
                await asyncio.sleep(0)
            stored = tally.finish()
        except CorruptLog:
            if is_new:
                raise
            return None
        topic_id, number = self._partition.topic.topic_id, self._partition.number
        if stored == source and (footer.topic_id, footer.partition) == (topic_id, number):
            return _Uploaded(key, size, footer)
        if is_new:
            raise CopyDiffers(
                f"{segment.path}{LOG} was read as {source}, but {key} of {self._objects.place} has {stored} (counted"
                f" from the beginning of {self._partition.name}); nothing was imported"
            )
        return None

    def _use(self, uploaded: _Uploaded, source: Totals) -> None:
        self._source = self._stored = source
        self._producers = self._after
        footer = uploaded.segment
        self._extents.append(
            Extent(
                *(footer.base_offset, footer.last_offset, uploaded.key),
                *(0, footer.data_size, footer.max_timestamp),
            )
        )


def _new_log(log: CopiedLog, keeps: Callable[[ProducerId], bool]) -> NewLog:
    whole = log.whole
    for producer_id in whole.producers.open:
        if not keeps(producer_id):
            raise InvalidInput(f"{log.partition.name} has an open transaction of producer {producer_id}")
    producers = Producers.restored(
        ((producer_id, known) for producer_id, known in whole.producers if keeps(producer_id)),
        whole.producers.open.items(),
    )
    return NewLog(
        partition=log.partition,
        start_offset=whole.start_offset,
        high_watermark=whole.end_offset,
        stable_offset=whole.stable_offset,
        extents=log.extents,
        producers=pack_snapshot(producers),
        aborted=whole.aborted,
        epochs=log.epochs,
        cleaned=Cleaned(whole.clean_offset, whole.next_horizon_ms),
    )
