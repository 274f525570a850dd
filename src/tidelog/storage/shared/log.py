"""`SharedLog`: a partition in the object store, as its leader has it in memory. The cluster's engine behind
`PartitionLog`.

A log has two ends. Appends get their offsets at the *next* offset, in the order of the calls, and idempotent
producers are checked against everything that was accepted so far. Readers see what is before the *end*, which is what
the database has confirmed; also the last stable offset, open and aborted transactions are those of the confirmed
batches. In between is what is in flight: the parts of bundles (`writer.py`).

If the database refuses a part, memory was ahead of it: everything in flight fails, and the log loads its state again.
If another broker leads it meanwhile, loading fails too, and the log refuses everything until it is released.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import NamedTuple, TypeVar

import structlog

from tidelog.errors import (
    CoordinatorFenced,
    LogClosed,
    OffsetOutOfRange,
    OutcomeUnknown,
    StorageError,
    StorageUnavailable,
    fresh,
)
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, ProducerEpoch, ProducerId, TimestampMs
from tidelog.promise import Promise
from tidelog.records.batch import (
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    BatchView,
    ReadBuffer,
    WriteBuffer,
    read_header,
)
from tidelog.settings import UNLIMITED, LogSettings
from tidelog.storage.appending import active_producers, checked_headers, marker_for, place_all, saw_marker
from tidelog.storage.log import (
    NOTHING,
    AbortedTransaction,
    ActiveProducer,
    Appended,
    Located,
    LogStats,
    ReadResult,
    TimestampOffset,
)
from tidelog.storage.producers import Producers
from tidelog.storage.shared.aborted import between, ending_after, with_aborted
from tidelog.storage.shared.bundle import PREFIX as BUNDLES
from tidelog.storage.shared.extents import Extents
from tidelog.storage.shared.locating import located
from tidelog.storage.shared.order import (
    Cleaned,
    Extent,
    KnownLog,
    Leader,
    LogId,
    NotTheLeader,
    Order,
    ProducerSnapshot,
    UnknownLog,
)
from tidelog.storage.shared.producer_facts import pack_snapshot, read_snapshot, replay
from tidelog.storage.shared.reading import ColdReader
from tidelog.storage.shared.tasks import Tasks
from tidelog.storage.shared.writer import ENDED, AppendTimedOut, Part, Writer
from tidelog.storage.tail import Tail, TailCache

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 3.0

logger = structlog.get_logger("tidelog.storage")


class Shared(NamedTuple):
    """What the logs of one broker have in common."""

    order: Order
    writer: Writer
    reader: ColdReader
    tails: TailCache
    broker_id: int
    clock: Callable[[], TimestampMs]
    """The time of day."""


class SharedLog:
    def __init__(
        self,
        shared: Shared,
        identity: PartitionIdentity,
        settings: LogSettings,
        leader_epoch: LeaderEpoch,
        known: KnownLog,
    ) -> None:
        self.identity = identity
        self.partition = identity.name
        self.leader_epoch = leader_epoch
        self.log_id: LogId = known.log_id
        self.settings = settings
        self.on_progress: Callable[[int], None] | None = None
        self._order, self._writer, self._reader, tails, self._broker_id, self._clock = shared
        self._tail = Tail(tails)
        self._tasks = Tasks()
        self._changing = asyncio.Lock()  # held while extents are exchanged or removed
        self.rewriting = asyncio.Lock()
        """Held while extents are chosen and merged, and while a pass of compaction chooses its own."""
        self.compacted_before: Offset = 0
        """A pass of compaction is at work on the extents before this offset; 0 if there is none."""
        self._fault: StorageError | None = None
        self._in_flight: deque[Part] = deque()
        self._take(known)

    def _take(self, known: KnownLog) -> None:
        """Make the state of the database ours."""
        self._extents = Extents(known.extents)
        self._start = known.start_offset
        self._end = self._next = known.high_watermark
        self._aborted = list(known.aborted)
        self._cleaned = known.cleaned
        self._epochs = list(known.epochs)
        if not self._epochs or self._epochs[-1][0] < self.leader_epoch:
            self._epochs.append((self.leader_epoch, known.high_watermark))
        self._producers = producers_of(known)
        self._open = dict(self._producers.open)

    def is_in_transaction(self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool:
        return self._producers.is_in_transaction(producer_id, epoch)

    def epochs(self) -> Sequence[tuple[LeaderEpoch, Offset]]:
        return self._epochs

    @property
    def leader(self) -> Leader:
        return Leader(self._broker_id, self.leader_epoch)

    @property
    def start_offset(self) -> Offset:
        return self._start

    @property
    def end_offset(self) -> Offset:
        return self._end

    @property
    def last_stable_offset(self) -> Offset:
        for first_offset in self._open.values():  # the first one is the oldest
            return max(first_offset, self._start)
        return self._end

    @property
    def fault(self) -> StorageError | None:
        """Why the log takes no appends; None if it does."""
        return self._fault

    @property
    def has_unsaved(self) -> bool:
        """True if there are appends that the database has not confirmed yet."""
        return bool(self._in_flight)

    @property
    def extents(self) -> Extents:
        return self._extents

    @property
    def cleaned(self) -> Cleaned:
        """How far the log is compacted."""
        return self._cleaned

    def configure(self, settings: LogSettings) -> None:
        self.settings = settings

    # Appending

    def append(
        self,
        batches: WriteBuffer,
        *,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
        durable: bool,  # noqa: ARG002  (every append is durable when its promise is kept)
        stamp: bool = False,
    ) -> Appended | Promise[Appended]:
        self._need_health()
        view = memoryview(batches)
        headers = checked_headers(view, self.settings, self.partition)
        if headers[0].producer_id >= 0:
            earlier = self._producers.check(headers[0])
            if earlier is not None:
                return self._when_committed(
                    Appended(earlier.base_offset, earlier.last_offset, now_ms, duplicate=True)
                )
        self._writer.need_room(len(view))
        return self._accept(view, headers, now_ms, leader_epoch, stamp=stamp)

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
        self._need_health()
        producer = self._producers.get(producer_id)
        if producer is not None and coordinator_epoch < producer.coordinator_epoch:
            raise CoordinatorFenced(
                f"coordinator epoch {coordinator_epoch} ends a transaction of producer {producer_id} in "
                f"{self.partition}, which may be a later one: epoch {producer.coordinator_epoch} has taken over"
            )
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
            self._producers.saw_marker(producer_id, coordinator_epoch)
            return self._when_committed(Appended(self._next, self._next - 1, now_ms, duplicate=True))
        view = memoryview(marker)
        return self._accept(view, [read_header(view)], now_ms, leader_epoch)

    def _accept(
        self,
        view: memoryview,
        headers: list[BatchHeader],
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
        *,
        stamp: bool = False,
    ) -> Promise[Appended]:
        """Give the checked batches their offsets, and hand them to the writer."""
        base_offset = self._next
        part = self._writer.part_of(self, base_offset)
        if not part.views:
            self._in_flight.append(part)
        self._next = part.end_offset = place_all(view, headers, base_offset, leader_epoch, now_ms if stamp else None)
        self._remember(part, headers, view, base_offset, now_ms)
        part.size += len(view)
        part.newest_ms = now_ms
        promise: Promise[Appended] = Promise()
        part.waiting.append((promise, Appended(base_offset, self._next - 1, now_ms)))
        self._writer.added(len(view))
        return promise

    def _remember(
        self, part: Part, headers: list[BatchHeader], view: memoryview, offset: Offset, now_ms: TimestampMs
    ) -> None:
        position = 0
        for header in headers:
            batch = view if len(headers) == 1 else view[position : position + header.size]
            part.views.append((offset, batch))
            part.max_timestamp = max(part.max_timestamp, header.max_timestamp)
            if header.producer_id >= 0:
                self._remember_producer(part, header, batch, offset, now_ms)
            position += header.size
            offset += header.last_offset_delta + 1

    def _remember_producer(
        self, part: Part, header: BatchHeader, batch: memoryview, offset: Offset, now_ms: TimestampMs
    ) -> None:
        producers, producer_id = self._producers, header.producer_id
        was_open = producer_id in producers.open
        producers.update(header, offset, now_ms)
        if header.attributes & CONTROL_BIT:
            placed = BatchView(0, header._replace(base_offset=offset), batch)
            part.facts.saw(placed)
            aborted = saw_marker(producers, placed, offset)
            if aborted is not None:
                part.aborted.append(aborted)
            if was_open and producer_id not in producers.open:
                part.transactions.append((producer_id, ENDED))
            return
        part.facts.batch(header, offset)
        if header.attributes & TRANSACTIONAL_BIT and not was_open:
            part.transactions.append((producer_id, offset))

    def _when_committed(self, appended: Appended) -> Appended | Promise[Appended]:
        """`appended`, or a promise of it if its batches are still in flight."""
        if appended.last_offset < self._end:
            return appended
        for part in self._in_flight:
            if part.end_offset > appended.last_offset:
                if part.is_late:
                    raise AppendTimedOut.new()
                promise: Promise[Appended] = Promise()
                part.waiting.append((promise, appended))
                return promise
        raise AssertionError("what is not committed is in flight")

    def _need_health(self) -> None:
        if self._fault is not None:
            raise fresh(self._fault)

    # Called by the writer

    def seal(self, part: Part) -> None:
        part.stable_offset = max(self._start, next(iter(self._producers.open.values()), part.end_offset))

    def committed(self, part: Part, extent: Extent) -> None:
        assert self._in_flight, "the part is in flight"
        assert self._in_flight[0] is part, "parts are committed in order"
        self._in_flight.popleft()
        self._extents.append(extent)
        self._end = part.end_offset
        for producer_id, first_offset in part.transactions:
            if first_offset == ENDED:
                self._open.pop(producer_id, None)
            else:
                self._open[producer_id] = first_offset
        self._aborted += part.aborted
        for base_offset, batch in part.views:
            self._tail.append(base_offset, batch)
        part.views = []
        self._progressed(part.size)
        part.settle()

    def refused(self, part: Part, error: StorageError) -> None:
        assert not part.is_dropped
        self._fail(error)
        self._tasks.promise(self._load_again())

    def _fail(self, error: StorageError) -> None:
        """Everything in flight fails, and so does every append until the state is loaded again."""
        self._fault = error
        parts, self._in_flight = self._in_flight, deque()
        for part in parts:
            part.is_dropped = True
        for part in parts:
            part.fail(lambda: fresh(error))

    async def _load_again(self) -> None:
        try:
            async with self._changing:  # what is loaded must not be older than what is changed meanwhile
                appeared_bytes = self._catch_up(
                    await self._insist(lambda: self._order.load(self.identity, self.leader))
                )
        except Exception as error:
            self._cannot_go_on(error)
            return
        self._fault = None
        if appeared_bytes:
            self._tail.clear()
            self._progressed(appeared_bytes)

    def _catch_up(self, known: KnownLog) -> int:
        """Returns the size of what was committed and not known here."""
        if known.high_watermark < self._end:
            raise StorageError(
                f"the database has {self.partition} up to {known.high_watermark}, and readers have seen it up to "
                f"{self._end}: commits were lost. The log stays closed, so that no offset is given twice"
            )
        size = sum(extent.size for extent in known.extents if extent.base_offset >= self._end)
        self._take(known)
        return size

    def _cannot_go_on(self, error: Exception) -> None:
        if isinstance(error, NotTheLeader | UnknownLog):
            self._fault = fresh(error)
            logger.info("lost the log to another broker", partition=str(self.partition), reason=str(error))
            return
        self._fault = fresh(error) if isinstance(error, StorageError) else StorageError(repr(error))
        is_bug = not isinstance(error, StorageError)
        logger.error(
            "the log cannot be used",
            partition=str(self.partition),
            reason=str(error),
            exc_info=error if is_bug else None,
        )

    def _progressed(self, size: int) -> None:
        if self.on_progress is not None:
            self.on_progress(size)

    async def _insist(self, change: Callable[[], Awaitable[T]], *, once_known: bool = False) -> T:
        """The result of a call to the database, repeated while the database does not answer. `once_known`: give up if
        nothing was changed, and repeat only while the outcome is unknown."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await change()
            except OutcomeUnknown:
                once_known = False
            except StorageUnavailable:
                if once_known:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    # Reading

    def read(
        self, offset: Offset, max_bytes: int, *, committed: bool = False, at_least_one: bool = True
    ) -> ReadResult | Promise[ReadResult]:
        end = self.last_stable_offset if committed else self._end
        if offset >= end or offset < self._start:
            self._check_readable(offset)
            return NOTHING
        cached = self._tail.read(offset, max_bytes, end, at_least_one=at_least_one)
        aborted = self._aborted if committed else []
        if cached is not None:
            return with_aborted(offset, cached, aborted)
        return self._tasks.promise(self._read_cold(offset, max_bytes, end, aborted, at_least_one))

    async def _read_cold(
        self, offset: Offset, max_bytes: int, end: Offset, aborted: list[AbortedTransaction], at_least_one: bool
    ) -> ReadResult:
        """`aborted` are those of the time of the request: the start of the log may move while it is read."""
        parts = await self._reader.batches(lambda: self._extents, offset, max_bytes, end, at_least_one=at_least_one)
        return with_aborted(offset, parts, aborted)

    def in_memory(self, extent: Extent) -> list[ReadBuffer] | None:
        """The batches of an extent, if they are in memory. Only of a bundle: compaction may have changed the batches
        of a segment, while the tail has them as they were appended."""
        if not extent.key.startswith(BUNDLES):
            return None
        return self._tail.between(extent.base_offset, extent.last_offset + 1)

    def locate(self, start: Offset, end: Offset, *, committed: bool) -> Located:
        self._check_readable(start)
        end = min(end, self.last_stable_offset if committed else self._end)
        in_memory = self._tail.first_offset
        tail = self._end if in_memory is None else in_memory
        return located(self._extents, self._aborted if committed else (), start, end, tail)

    def aborted_between(self, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """The aborted transactions that have, or had, records from `start` up to, not including, `end`; in the order
        of their markers."""
        return between(self._aborted, start, end)

    def offset_for_time(self, timestamp: TimestampMs) -> TimestampOffset | Promise[TimestampOffset | None] | None:
        if self._extents.max_timestamp < timestamp:
            return None
        return self._tasks.promise(
            self._reader.first_at_or_after(lambda: self._extents, timestamp, self._start, self._end)
        )

    def max_timestamp(self) -> TimestampOffset | Promise[TimestampOffset | None] | None:
        newest = self._extents.max_timestamp
        return self.offset_for_time(newest) if newest >= 0 and self._end > self._start else None

    def open_transactions(self) -> dict[ProducerId, Offset]:
        return dict(self._open)

    def knows_producer(self, producer_id: ProducerId) -> bool:
        return self._producers.get(producer_id) is not None

    def active_producers(self) -> list[ActiveProducer]:
        return active_producers(self._producers)

    def stats(self) -> LogStats:
        return LogStats(
            start_offset=self._start,
            end_offset=self._end,
            durable_offset=self._end,
            segments=len(self._extents),
            size_bytes=self._extents.size_bytes,
            producers=len(self._producers),
            fault=None if self._fault is None else str(self._fault),
        )

    def _check_readable(self, offset: Offset) -> None:
        if not self._start <= offset <= self._end:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.partition} is outside the log, which has {self._start} to {self._end}"
            )

    # Deleting

    def delete_before(self, offset: Offset) -> Promise[Offset]:
        self._need_health()
        if offset > self._end or offset < 0:
            self._check_readable(offset)
        if offset <= self._start:
            there: Promise[Offset] = Promise()
            there.settle(self._start)
            return there
        return self._tasks.promise(self._move_start(offset))

    async def _move_start(self, offset: Offset) -> Offset:
        async with self._changing:
            now_ms = self._clock()
            if len(self._producers):
                snapshot = _snapshot(await self.load())
                await self._insist(
                    lambda: self._order.keep_snapshot(self.log_id, self.leader, snapshot), once_known=True
                )
            await self._insist(
                lambda: self._order.move_start(self.log_id, self.leader, offset, now_ms), once_known=True
            )
            if offset > self._start:
                self._start = offset
                self._extents.forget_before(offset)
                self._aborted = ending_after(self._aborted, offset)
                self._progressed(0)
        return self._start

    def retain(self, now_ms: TimestampMs, *, keep_from: Offset | None = None) -> Promise[Offset] | None:
        """Delete the oldest extents if they are too old or the log is too large, but no record from `keep_from` on.
        Returns the promise of the new start, or None if there is nothing to delete."""
        if self._fault is not None:
            return None
        self._producers.expire(now_ms - self.settings.producer_id_expiration_ms)
        start = self._expired(now_ms, keep_from)
        return self.delete_before(start) if start > self._start else None

    def _expired(self, now_ms: TimestampMs, keep_from: Offset | None) -> Offset:
        """Everything before this offset must be deleted."""
        settings = self.settings
        excess = UNLIMITED
        if settings.retention_bytes != UNLIMITED:
            excess = self._extents.size_bytes - settings.retention_bytes
        oldest_ms = now_ms - settings.retention_ms if settings.retention_ms != UNLIMITED else None
        start = self._start
        for extent in self._extents:
            has_time = extent.max_timestamp >= 0
            is_expired = (has_time and oldest_ms is not None and extent.max_timestamp < oldest_ms) or (
                excess >= extent.size
            )
            if has_time and not is_expired:
                break
            if keep_from is not None and extent.last_offset >= keep_from:
                break
            if is_expired:  # otherwise compaction left no records in it: it is deleted with the next one
                start = extent.last_offset + 1
            excess -= extent.size
        return start

    # Exchanging extents

    async def load(self) -> KnownLog:
        """The log as it is in the database. Our producers are ahead of it, and we do not keep the facts of
        extents."""
        return await self._insist(lambda: self._order.load(self.identity, self.leader), once_known=True)

    def exchange(
        self, key: str, size: int, old: Sequence[Extent], new: Sequence[Extent], known: KnownLog
    ) -> Promise[bool]:
        """Read from the object `key` of `size` bytes instead of the neighbours `old`. `known` is the log at a moment
        when it had them: the facts of the old extents are lost, and its producers replace them. False: the old
        extents are not there any more, and nothing was changed. It is completed even if its caller is cancelled:
        otherwise memory would not know what the database did."""
        return self._tasks.promise(self._exchange(key, size, old, new, known))

    async def _exchange(
        self, key: str, size: int, old: Sequence[Extent], new: Sequence[Extent], known: KnownLog
    ) -> bool:
        snapshot, now_ms = _snapshot(known), self._clock()
        async with self._changing:
            if not self._extents.has(old):
                return False
            is_done = await self._insist(
                lambda: self._order.replace(self.log_id, self.leader, key, size, old, new, snapshot, now_ms),
                once_known=True,
            )
            if is_done:
                self._extents.replace(old, new)
            return is_done

    def compacted(self, cleaned: Cleaned, void_aborts: Container[Offset]) -> Promise[None]:
        """Everything before `cleaned.offset` was compacted. Of the aborted transactions with these markers no records
        are left."""
        return self._tasks.promise(self._keep_cleaned(cleaned, void_aborts))

    async def _keep_cleaned(self, cleaned: Cleaned, void_aborts: Container[Offset]) -> None:
        async with self._changing:
            void = [one.last_offset for one in self._aborted if one.last_offset in void_aborts]
            await self._insist(
                lambda: self._order.keep_cleaned(self.log_id, self.leader, cleaned, void), once_known=True
            )
            self._cleaned = cleaned
            # A new list: reads under way hold the one before.
            self._aborted = [one for one in self._aborted if one.last_offset not in void_aborts]
            self._tail.drop_before(cleaned.offset)

    # The end

    def release(self) -> None:
        """Everything in flight fails, and no call succeeds any more."""
        self._fail(NotTheLeader(f"{self.partition} was released by this broker"))
        self._fault = LogClosed(f"{self.partition} is closed")
        self._tasks.end(lambda: LogClosed(f"{self.partition} is closed"))
        self._tail.clear()

    async def released(self) -> None:
        """Wait for what `release` has ended."""
        await self._tasks.ended()


def producers_of(known: KnownLog, before: Offset | None = None) -> Producers:
    """The producers of a log, as of its end or of the end of the extents before an offset."""
    producers, covered = Producers(), 0
    if known.snapshot is not None:
        producers, covered = read_snapshot(known.snapshot.facts), known.snapshot.offset
    for extent in known.extents:
        if extent.base_offset >= covered and (before is None or extent.base_offset < before):
            replay(extent.producers, producers)
    return producers


def _snapshot(known: KnownLog) -> ProducerSnapshot:
    return ProducerSnapshot(known.high_watermark, pack_snapshot(producers_of(known)))
