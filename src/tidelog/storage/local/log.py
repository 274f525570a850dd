"""`LocalLog`: a partition as segments in a directory. The local engine behind `PartitionLog`.

One thread owns a log. An append is validated as a whole, gets its offsets in place, is written with one call, and
only then becomes part of the log: if a write fails halfway, its bytes are cut off before anything else is written.
Flushing is a separate step (`begin_flush` .. `end_flush`) that the commit (`commit.py`) runs for many logs together,
in threads. So is everything else that syncs or frees files, such as moving the start of the log.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import structlog

from tidelog.errors import (
    LogClosed,
    OffsetOutOfRange,
    StorageError,
    fresh,
)
from tidelog.model import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition
from tidelog.promise import Promise
from tidelog.records.batch import (
    CONTROL_BIT,
    LENGTH_END,
    BatchHeader,
    BatchView,
    WriteBuffer,
    place,
    read_header,
)
from tidelog.settings import UNLIMITED, FlushPolicy, LogSettings
from tidelog.storage.appending import active_producers, checked_headers, marker_for, place_all, saw_marker
from tidelog.storage.local.cold import ColdReads
from tidelog.storage.local.compaction import LogCompaction
from tidelog.storage.local.durability import Durability
from tidelog.storage.local.files import Files, storage_error
from tidelog.storage.local.flush import FlushJob
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.recovery import Recovery, RecoveryReport
from tidelog.storage.local.segment import ActiveSegment, IndexSpec, Leaving, SealedSegment
from tidelog.storage.local.segments import SegmentRange, Segments
from tidelog.storage.log import (
    NOTHING,
    AbortedTransaction,
    ActiveProducer,
    Appended,
    LogStats,
    ReadResult,
    TimestampOffset,
)
from tidelog.storage.producers import Producers
from tidelog.storage.tail import Tail, TailCache
from tidelog.storage.whole_log import WholeLog

logger = structlog.get_logger("tidelog.storage")

T = TypeVar("T")

_SMALL_BYTES = 16 << 10  # read with the search for its position, instead of probed now and read later


class Commit(Protocol):
    """Makes logs durable. See `commit.py`."""

    def wait(self, log: "LocalLog", offset: Offset, appended: Appended) -> Appended | Promise[Appended]:
        """Returns `appended`, or a promise of it, when everything before `offset` is durable."""

    def soon(self, log: "LocalLog") -> None:
        """Flush in the background; no caller waits for it."""

    def within(self, log: "LocalLog", delay_ms: int) -> None:
        """Flush in the background after `delay_ms` at the latest."""

    def aside(self, work: Callable[[], None]) -> None:
        """Run slow work that no caller waits for, where it blocks neither the event loop nor a sync."""


class Shared(NamedTuple):
    """What the logs of one data directory have in common."""

    files: Files
    pool: HandlePool
    tails: TailCache
    commit: Commit
    cold: ColdReads | None = None
    """None: reads block until the disk answers."""


class LocalLog:
    def __init__(
        self, shared: Shared, directory: str, partition: TopicPartition, settings: LogSettings, now_ms: TimestampMs
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.settings = settings
        self._files, self._pool, _, self._commit, self._cold = shared
        self.on_progress: Callable[[int], None] | None = None
        self._spec = IndexSpec(settings.index_interval_bytes, settings.segment_index_bytes)
        try:
            recovered = Recovery(self._files, self._pool, directory, self._spec, now_ms).run()
        except OSError as error:
            raise storage_error(error, f"open {partition}") from error
        self.recovery: RecoveryReport = recovered.report
        self._segments = Segments(
            self._files, self._pool, directory, recovered.sealed, recovered.active, recovered.start_offset
        )
        self._end = self._segments.end_offset
        self._producers: Producers = recovered.producers
        self._durability = Durability(
            self._files, directory, partition, self._segments, recovered, self.last_stable_offset
        )
        self._tail = Tail(shared.tails)
        self.compaction = LogCompaction(self, self._files, recovered.compaction)
        self._messages_unflushed = 0
        self._closed = False
        self._blocked = False  # closed, or a failed write or flush must be repaired first

    @property
    def start_offset(self) -> Offset:
        return self._segments.start_offset

    @property
    def end_offset(self) -> Offset:
        return self._end

    @property
    def last_stable_offset(self) -> Offset:
        for first_offset in self._producers.open.values():  # the first one is the oldest
            return max(first_offset, self._segments.start_offset)
        return self._end

    @property
    def is_changing(self) -> bool:
        return self._durability.is_changing

    @property
    def decided_offset(self) -> Offset:
        return self._durability.decided_offset

    @property
    def durable_offset(self) -> Offset:
        return self._durability.durable_offset

    @property
    def is_checkpointed(self) -> bool:
        return self._durability.is_checkpointed

    @property
    def unchecked_bytes(self) -> int:
        return self._durability.unchecked_bytes

    @property
    def fault(self) -> StorageError | None:
        return self._durability.fault

    @property
    def producers(self) -> Producers:
        return self._producers

    @property
    def segments(self) -> Sequence[SealedSegment | ActiveSegment]:
        """In order; the last one is the active segment."""
        return self._segments.all()

    def whole(self) -> WholeLog:
        """Everything but the batches, for moving the log into another engine."""
        state = self.compaction.state
        aborted = self.aborted_between(self.start_offset, self._end)
        return WholeLog(
            self.start_offset, self._end, self._producers, aborted, state.clean_offset, state.next_horizon_ms
        )

    def configure(self, settings: LogSettings) -> None:
        self.settings = settings
        self._spec = IndexSpec(
            settings.index_interval_bytes, settings.segment_index_bytes
        )  # from the next segment on

    # Appending

    def append(
        self,
        batches: WriteBuffer,
        *,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
        durable: bool,
        stamp: bool = False,
    ) -> Appended | Promise[Appended]:
        if self._blocked:
            self._make_good()
        view = memoryview(batches)
        headers = checked_headers(view, self.settings, self.partition)
        if headers[0].producer_id >= 0:
            earlier = self._producers.check(headers[0])
            if earlier is not None:
                repeated = Appended(earlier.base_offset, earlier.last_offset, now_ms, duplicate=True)
                return self._when_durable(repeated) if durable else repeated
        base_offset = self._end
        if len(headers) == 1 and not stamp:
            place(view, 0, headers[0], base_offset, leader_epoch)
            end = base_offset + headers[0].last_offset_delta + 1
        else:
            end = place_all(view, headers, base_offset, leader_epoch, now_ms if stamp else None)
        active = self._segments.active
        if active.is_full(len(view), end - 1, now_ms, self.settings):
            active = self._roll(now_ms)
        try:
            active.write(view, headers)
        except OSError as error:
            self._durability.has_unfinished_write = self._blocked = True
            self._commit.soon(self)  # cuts it off
            raise storage_error(error, f"append to {self.partition}") from error
        self._end = end
        if len(headers) == 1 and headers[0].producer_id < 0:
            self._tail.append(base_offset, view)
        else:
            self._remember(headers, view, base_offset, now_ms)
        if self.on_progress is not None:
            self.on_progress(len(view))
        return self._after_append(Appended(base_offset, end - 1, now_ms), durable)

    def _remember(self, headers: list[BatchHeader], view: memoryview, offset: Offset, now_ms: TimestampMs) -> None:
        """Record what was appended, for idempotent producers and for readers at the tail."""
        position = 0
        for header in headers:
            size = header.length + LENGTH_END
            if header.producer_id >= 0:
                self._producers.update(header, offset, now_ms)
                if header.attributes & CONTROL_BIT:
                    marker = BatchView(position, header, view[position : position + size])
                    aborted = saw_marker(self._producers, marker, offset)
                    if aborted is not None:
                        self._segments.active.aborted.entries.append(aborted)
            self._tail.append(offset, view if len(headers) == 1 else view[position : position + size])
            position += size
            offset += header.last_offset_delta + 1

    def end_transaction(
        self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        *,
        committed: bool,
        coordinator_epoch: int,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
    ) -> Appended | Promise[Appended]:
        marker = marker_for(
            self._producers,
            self.partition,
            producer_id,
            epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
        )
        if marker is None:
            if self._blocked:
                self._make_good()
            return self._when_durable(Appended(self._end, self._end - 1, now_ms, duplicate=True))
        return self.append(marker, now_ms=now_ms, leader_epoch=leader_epoch, durable=True)

    def open_transactions(self) -> dict[ProducerId, Offset]:
        return dict(self._producers.open)

    def _after_append(self, appended: Appended, durable: bool) -> Appended | Promise[Appended]:
        policy = self.settings.flush
        if policy is FlushPolicy.INTERVAL:
            self._messages_unflushed += appended.last_offset - appended.base_offset + 1
            if self._messages_unflushed >= self.settings.flush_messages:
                self._commit.soon(self)
            else:
                self._commit.within(self, self.settings.flush_ms)
        elif durable or policy is FlushPolicy.ALWAYS:
            return self._when_durable(appended)
        return appended

    def _when_durable(self, appended: Appended) -> Appended | Promise[Appended]:
        """`appended`, or a promise of it if the flush policy requires a sync first."""
        offset, policy = appended.last_offset + 1, self.settings.flush
        is_promised = policy is FlushPolicy.ACKS or policy is FlushPolicy.ALWAYS
        if not is_promised or offset <= self._durability.durable_offset:
            return appended
        return self._commit.wait(self, offset, appended)

    def _make_good(self) -> None:
        """Called before an append while the log is blocked: start the repair if there is something to repair, and
        raise an error if the log cannot take appends yet."""
        if self._closed:
            raise LogClosed(f"{self.partition} is closed")
        fault = self._durability.fault
        if fault is not None:
            self._commit.soon(self)  # tries the failed flush again
            raise StorageError(f"{self.partition} takes no appends until its failed flush succeeds: {fault}")
        if self._durability.has_unfinished_write:
            self._commit.soon(self)
            self._need_finished_write()

    def _need_finished_write(self) -> None:
        if self._durability.has_unfinished_write:
            raise StorageError(
                f"cannot append to {self.partition}: the bytes of a failed write are not cut off yet; try again"
            )

    def _roll(self, now_ms: TimestampMs) -> ActiveSegment:
        """Seal the active segment and begin the next. If this fails, nothing has changed."""
        self._need_finished_write()
        old = self._segments.active
        try:
            sealed, new = self._segments.roll(self._spec, now_ms)
        except OSError as error:
            raise storage_error(error, f"begin a new segment of {self.partition}") from error
        self._durability.rolled(old, sealed, new)
        self._commit.soon(self)
        return new

    # Reading

    def read(
        self, offset: Offset, max_bytes: int, *, committed: bool = False, at_least_one: bool = True
    ) -> ReadResult | Promise[ReadResult]:
        if offset == self._end:
            return NOTHING
        if not committed and self._segments.start_offset <= offset < self._end:
            cached = self._tail.read(offset, max_bytes, self._end, at_least_one=at_least_one)
            if cached is not None:
                return ReadResult(cached, sum(map(len, cached)))
        return self._now_or_later(
            partial(self.read_now, offset, max_bytes, committed=committed, at_least_one=at_least_one)
        )

    def read_now(
        self,
        offset: Offset,
        max_bytes: int,
        *,
        committed: bool = False,
        at_least_one: bool = True,
        up_to: Offset | None = None,
    ) -> ReadResult:
        """As `read`, but waits for the disk if necessary. `up_to`: return only records before this offset."""
        end = self.last_stable_offset if committed else self._end
        if up_to is not None:
            end = min(end, up_to)
        if offset >= end or offset < self._segments.start_offset:
            self._check_offset(offset)
            return NOTHING
        cached = self._tail.read(offset, max_bytes, end, at_least_one=at_least_one)
        try:
            if cached is not None:
                result = ReadResult(cached, sum(map(len, cached)))
                return self._with_aborted(offset, result) if committed and result.size else result
            found = self._segments.find(offset, max_bytes, end, at_least_one=at_least_one)
            if found is None:
                return NOTHING
            result = ReadResult([found], found.size)
            if committed:
                result = self._with_aborted(offset, result)
            if found.size < _SMALL_BYTES:
                return ReadResult([found.data or found.read()], found.size, result.aborted)
            found.need()
            return result
        except OSError as error:
            raise self._cannot_read(error) from error

    def _now_or_later(self, read: Callable[[], T]) -> T | Promise[T]:
        return read() if self._cold is None else self._cold.now_or_later(read)

    def _cannot_read(self, error: OSError) -> StorageError:
        return storage_error(error, f"read {self.partition}")

    def _with_aborted(self, offset: Offset, result: ReadResult) -> ReadResult:
        if not self._segments.has_aborted:
            return result
        last = result.parts[-1]
        # Each part from the tail is one batch.
        end = last.end_offset if isinstance(last, SegmentRange) else read_header(last).next_offset  # type: ignore[arg-type]
        return result._replace(aborted=self.aborted_between(offset, end))

    def aborted_between(self, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """The aborted transactions that have, or had, records from `start` up to, not including, `end`; in the order
        of their markers."""
        while (found := self._segments.aborted_between(start, end)) is None:
            self._producers.open = self._segments.follow_transactions()
            self._commit.soon(self)  # writes what was missing
            self._progressed(0)
        return found

    def locate(self, start: Offset, end: Offset, *, committed: bool) -> None:
        """Files of this machine: see `direct.py`."""

    def offset_for_time(self, timestamp: TimestampMs) -> TimestampOffset | Promise[TimestampOffset | None] | None:
        return self._now_or_later(partial(self.offset_for_time_now, timestamp))

    def offset_for_time_now(self, timestamp: TimestampMs) -> TimestampOffset | None:
        """As `offset_for_time`, but waits for the disk if necessary."""
        try:
            return self._segments.first_at_or_after(timestamp)
        except OSError as error:
            raise self._cannot_read(error) from error

    def max_timestamp(self) -> TimestampOffset | Promise[TimestampOffset | None] | None:
        return self._now_or_later(self.max_timestamp_now)

    def max_timestamp_now(self) -> TimestampOffset | None:
        """As `max_timestamp`, but waits for the disk if necessary."""
        try:
            newest = self._segments.max_timestamp()
        except OSError as error:
            raise self._cannot_read(error) from error
        return self.offset_for_time_now(newest) if newest >= 0 and self._end > self.start_offset else None

    def is_in_transaction(self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool:
        return self._producers.is_in_transaction(producer_id, epoch)

    def epochs(self) -> Sequence[tuple[LeaderEpoch, Offset]]:
        return ()  # a broker that is alone has led it always

    def knows_producer(self, producer_id: ProducerId) -> bool:
        return self._producers.get(producer_id) is not None

    def active_producers(self) -> list[ActiveProducer]:
        return active_producers(self._producers)

    def stats(self) -> LogStats:
        return LogStats(
            start_offset=self.start_offset,
            end_offset=self._end,
            durable_offset=self.durable_offset,
            segments=len(self._segments.sealed) + 1,
            size_bytes=self._segments.size_bytes,
            producers=len(self._producers),
            fault=None if self.fault is None else str(self.fault),
        )

    def _check_offset(self, offset: Offset) -> None:
        start = self.start_offset
        if not start <= offset <= self._end:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.partition} is outside the log, which has {start} to {self._end}"
            )

    def _progressed(self, size: int) -> None:
        if self.on_progress is not None:
            self.on_progress(size)

    # Deleting

    def delete_before(self, offset: Offset) -> Promise[Offset]:
        if self._closed:
            raise LogClosed(f"{self.partition} is closed")
        if offset > self._end or offset < 0:
            self._check_offset(offset)
        if offset <= self.start_offset:
            there: Promise[Offset] = Promise()
            there.settle(self.start_offset)
            return there
        active = self._segments.active
        if offset == self._end and active.size:
            self._roll(active.created_ms)
        moved = self._durability.move_start(offset)
        self._commit.soon(self)
        return moved

    def exchange_ended(self) -> None:
        """Compaction has exchanged segments, or given up: begin the flush that had to wait for it."""
        if self._durability.is_moving or self._segments.has_unsaved_aborted:
            self._commit.soon(self)

    def retain(self, now_ms: TimestampMs, *, keep_from: Offset | None = None) -> Promise[Offset] | None:
        """Delete the oldest segments if they are too old or the log is too large, but no record from `keep_from` on.
        Returns the promise of the new start, or None if there is nothing to delete."""
        try:
            expired = self._expired(now_ms, keep_from)
        except OSError as error:
            raise self._cannot_read(error) from error
        self._producers.expire(now_ms - self.settings.producer_id_expiration_ms)
        sealed = self._segments.sealed
        if expired > len(sealed):
            self._roll(now_ms)
        return self.delete_before(sealed[expired - 1].end_offset) if expired else None

    def _expired(self, now_ms: TimestampMs, keep_from: Offset | None) -> int:
        """How many segments, counted from the first, must be deleted."""
        settings = self.settings
        is_full = self._segments.active.is_full(0, self._end, now_ms, settings)
        if is_full and not self._durability.has_unfinished_write:
            self._roll(now_ms)
        expired = 0
        excess = UNLIMITED
        if settings.retention_bytes != UNLIMITED:
            excess = self._segments.size_bytes - settings.retention_bytes
        oldest_ms = now_ms - settings.retention_ms if settings.retention_ms != UNLIMITED else None
        for number, segment in enumerate(self._segments.all(), 1):
            if segment.size == 0 and segment is not self._segments.active:
                continue  # compaction left it empty: it is deleted with the next one, and the log's start moves then
            too_old = oldest_ms is not None and 0 <= segment.max_timestamp < oldest_ms
            if segment.size == 0 or not (too_old or excess >= segment.size):
                break
            if keep_from is not None and segment.end_offset > keep_from:
                break
            expired = number
            excess -= segment.size
        return expired

    # Compacting

    def durable_segments(self) -> list[SealedSegment]:
        """The sealed segments that the checkpoint vouches for: compaction may replace these."""
        return self._durability.vouched_for()

    def replace_segments(self, replaced: Sequence[Offset], size: int, aborted: int, spec: IndexSpec) -> list[Leaving]:
        """Read from the new log file, which has taken the place of the first of these segments. The caller removes
        the files of the others. Readers that hold ranges of the old files keep them."""
        new, leaving = self._segments.replace(replaced, size, aborted, spec)
        self._tail.drop_before(new.end_offset)
        return leaving

    # Durability

    def begin_flush(self, *, checkpoint: bool = False) -> FlushJob | None:
        """See `Durability.begin`. While compaction exchanges segments, the flush must not change the log's set of
        files."""
        if self._closed:
            raise LogClosed(f"{self.partition} is closed")
        stable_offset = self.last_stable_offset
        job = None if checkpoint else self._durability.begin_plain(stable_offset)
        if job is None:
            job = self._durability.begin(
                checkpoint=checkpoint,
                stable_offset=stable_offset,
                may_change_files=not self.compaction.is_exchanging,
            )
        if job is not None:
            self._messages_unflushed = 0
        return job

    def end_flush(self, job: FlushJob) -> None:
        """Take the result of a job that has run. After a failure the log refuses appends until a later flush
        succeeds."""
        gone = self._durability.end(job)
        self._blocked = self._closed or self._durability.has_unfinished_write or self.fault is not None
        if gone is not None:
            if gone:  # their files are removed oldest first, so that a crash in between leaves no gap
                self._commit.aside(partial(_remove, self.partition, [segment.leave() for segment in gone]))
            self._progressed(0)
        if self._durability.is_moving:
            self._durability.answer_moves(job)

    def flush(self, *, checkpoint: bool = False) -> None:
        """Flush now, in this thread. No other flush of this log may be under way."""
        assert not self._durability.is_flushing, "a flush is under way"
        job = self.begin_flush(checkpoint=checkpoint)
        if job is not None:
            job.run(self._files)
            self.end_flush(job)
        if self.fault is not None:
            raise fresh(self.fault)

    def close(self) -> None:
        """Make everything durable and write a checkpoint, so that the next opening need not scan anything."""
        if self._closed:
            return
        try:
            self.flush(checkpoint=True)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files without writing or syncing anything."""
        self.compaction.stop()
        self._closed = self._blocked = True
        self._durability.abandon()
        self._durability.give_up_moves(LogClosed(f"{self.partition} is closed"))
        self._segments.forget_all()
        self._tail.clear()


def _remove(partition: TopicPartition, leaving: list[Leaving]) -> None:
    """Files that cannot be removed now lie before the log's start, so the next opening removes them."""
    for segment in leaving:
        try:
            segment.remove()
        except OSError as error:
            reason = str(storage_error(error, "remove a segment"))
            logger.warning(
                "cannot remove deleted data; the next start tries again", partition=str(partition), reason=reason
            )
