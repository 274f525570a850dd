"""`LocalLog`: a partition as segments in a directory. The local engine behind `PartitionLog`.

One thread owns it. An append is validated as a whole, given its offsets in place, written with one call, and then
becomes part of the log: a write that fails halfway is cut off again before anything else is written. Durability is a
separate step (`begin_flush` .. `end_flush`) that the commit (`commit.py`) runs for many logs together.
"""

from bisect import bisect_right
from collections.abc import Generator, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from tidelog.errors import (
    CorruptBatch,
    InvalidProducerEpoch,
    InvalidRecord,
    LogClosed,
    OffsetOutOfRange,
    RecordTooLarge,
    StorageError,
)
from tidelog.model import NO_SEQUENCE, LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition
from tidelog.promise import Listener, Promise
from tidelog.records.batch import (
    CONTROL_BIT,
    LENGTH_END,
    BatchHeader,
    BatchView,
    WriteBuffer,
    place,
    read_header,
    read_produced,
    stamp_append_time,
)
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, build_marker, read_marker
from tidelog.settings import UNLIMITED, FlushPolicy, LogSettings
from tidelog.storage.local.checkpoint import Checkpoint, write_checkpoint
from tidelog.storage.local.compaction import LogCompaction
from tidelog.storage.local.files import File, Files, storage_error
from tidelog.storage.local.flush import FlushJob, Range
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.producers import Producers
from tidelog.storage.local.recovery import Recovery, RecoveryReport
from tidelog.storage.local.segment import LOG, ActiveSegment, IndexSpec, SealedSegment, Segment, transactions_in
from tidelog.storage.local.tail import Tail, TailCache
from tidelog.storage.log import AbortedTransaction, ActiveProducer, LogStats, ReadResult, TimestampOffset

NOTHING = ReadResult([], 0)
CHECKPOINT_EVERY_BYTES = 32 << 20


class Commit(Protocol):
    """Who makes logs durable. See `commit.py`."""

    def wait(self, log: "LocalLog", offset: Offset) -> Promise[None] | None:
        """Everything before `offset` durable, soon; None if it is already."""

    def soon(self, log: "LocalLog") -> None:
        """Flush in the background; nobody waits."""

    def within(self, log: "LocalLog", delay_ms: int) -> None:
        """The same, at the latest after `delay_ms`."""


class Shared(NamedTuple):
    """What the logs of one data directory have in common."""

    files: Files
    pool: HandlePool
    tails: TailCache
    commit: Commit


class LocalAppend:
    __slots__ = ("_promise", "append_time_ms", "base_offset", "duplicate", "last_offset")

    def __init__(
        self,
        base_offset: Offset,
        last_offset: Offset,
        append_time_ms: TimestampMs,
        promise: Promise[None] | None,
        duplicate: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.append_time_ms = append_time_ms
        self.duplicate = duplicate
        self._promise = promise

    @property
    def done(self) -> bool:
        return self._promise is None

    def __await__(self) -> Generator[Any, None, "LocalAppend"]:
        if self._promise is not None:
            yield from self._promise.__await__()
        return self

    def when_done(self, call: Listener[None]) -> None:
        assert self._promise is not None, "there is nothing to wait for"
        self._promise.when_done(call)


class SegmentRange:
    """A byte range of a segment. Holding it keeps the file open, also when retention deletes it."""

    __slots__ = ("_file", "_segment_end", "position", "size")

    def __init__(self, file: File, position: int, size: int, segment_end: Offset) -> None:
        self._file = file
        self._segment_end = segment_end
        self.position = position
        self.size = size

    def read(self, position: int | None = None, most: int | None = None) -> bytes:
        start, end = self.position if position is None else position, self.position + self.size
        if most is not None and end - start > most:
            end = start + most
        data = self._file.pread(end - start, start)
        if len(data) != end - start:
            raise StorageError(f"{self._file.path} ends before position {end}")
        return data

    def fileno(self) -> int:
        return self._file.fileno()

    @property
    def end_offset(self) -> Offset:
        """Where the batch behind it begins."""
        base = self._file.pread(8, self.position + self.size)
        return int.from_bytes(base, "big", signed=True) if len(base) == 8 else self._segment_end


class LocalLog:
    def __init__(
        self, shared: Shared, directory: str, partition: TopicPartition, settings: LogSettings, now_ms: TimestampMs
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.settings = settings
        self._files, self._pool, _, self._commit = shared
        self._spec = IndexSpec(settings.index_interval_bytes, settings.segment_index_bytes)
        try:
            recovered = Recovery(self._files, self._pool, directory, self._spec, now_ms).run()
        except OSError as error:
            raise storage_error(error, f"open {partition}") from error
        self.recovery: RecoveryReport = recovered.report
        self._start = recovered.start_offset
        self._sealed = recovered.sealed
        self._bases = [segment.base_offset for segment in recovered.sealed]
        self._active = recovered.active
        self._end = recovered.active.end_offset
        self._producers: Producers = recovered.producers
        self._checkpoint = recovered.checkpoint
        self._durable = min(recovered.checkpoint.offset, self._end)
        self._decided = min(recovered.checkpoint.stable_offset, self.last_stable_offset)
        self._tail = Tail(shared.tails)
        self.compaction = LogCompaction(self, self._files, recovered.compaction)
        self._unsynced: list[tuple[Segment, int]] = self._since_checkpoint()
        self._names_changed = not recovered.report.clean
        self._messages_unflushed = 0
        self._unfinished_write = False
        self._closed = False
        self._fault: StorageError | None = None
        self._blocked = False  # one of the three above
        self._flush: FlushJob | None = None
        self._flush_end: tuple[Offset, int] = (0, 0)
        self._flush_decided: Offset = 0

    @property
    def start_offset(self) -> Offset:
        return self._start

    @property
    def end_offset(self) -> Offset:
        return self._end

    @property
    def last_stable_offset(self) -> Offset:
        for first_offset in self._producers.open.values():  # the first one is the oldest
            return max(first_offset, self._start)
        return self._end

    @property
    def decided_offset(self) -> Offset:
        """No record before it belongs to a transaction whose end is not durable: a crash changes nothing there."""
        return self._decided

    @property
    def durable_offset(self) -> Offset:
        return self._durable

    @property
    def fault(self) -> StorageError | None:
        """Why the log takes no appends, while a failed sync is not made good."""
        return self._fault

    @property
    def producers(self) -> Producers:
        return self._producers

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
    ) -> LocalAppend:
        if self._blocked:
            self._make_good()
        view = memoryview(batches)
        headers = self._checked(view)
        if headers[0].producer_id >= 0:
            earlier = self._producers.check(headers[0])
            if earlier is not None:
                waiter = self._promise(earlier.last_offset + 1) if durable else None
                return LocalAppend(earlier.base_offset, earlier.last_offset, now_ms, waiter, duplicate=True)
        base_offset = self._end
        if len(headers) == 1 and not stamp:
            place(view, 0, headers[0], base_offset, leader_epoch)
            end = base_offset + headers[0].last_offset_delta + 1
        else:
            end = self._place_all(view, headers, leader_epoch, now_ms if stamp else None)
        active = self._active
        if active.is_full(len(view), end - 1, now_ms, self.settings):
            active = self._roll(now_ms)
        try:
            active.write(view, headers)
        except OSError as error:
            self._unfinished_write = self._blocked = True
            self._try_to_drop_unfinished()
            raise storage_error(error, f"append to {self.partition}") from error
        self._end = end
        if len(headers) == 1 and headers[0].producer_id < 0:
            self._tail.append(base_offset, view)
        else:
            self._remember(headers, view, base_offset, now_ms)
        return LocalAppend(base_offset, end - 1, now_ms, self._after_append(durable, end - base_offset))

    def _place_all(
        self, view: memoryview, headers: list[BatchHeader], leader_epoch: LeaderEpoch, stamp_ms: TimestampMs | None
    ) -> Offset:
        """Write their places, and if asked their time, into the batches; the offset behind them."""
        position, offset = 0, self._end
        for number, header in enumerate(headers):
            place(view, position, header, offset, leader_epoch)
            if stamp_ms is not None:
                headers[number] = stamp_append_time(view, position, header, stamp_ms)
            position += header.length + LENGTH_END
            offset += header.last_offset_delta + 1
        return offset

    def _checked(self, view: memoryview) -> list[BatchHeader]:
        """The headers of everything in `view`, or what is wrong with it."""
        headers = []
        position, size = 0, len(view)
        settings = self.settings
        while position < size:
            header = read_produced(view, position)
            batch_size = header.length + LENGTH_END
            if batch_size > settings.max_message_bytes and not header.attributes & CONTROL_BIT:
                raise RecordTooLarge(
                    f"a batch of {batch_size} bytes; {self.partition} takes at most {settings.max_message_bytes}"
                )
            headers.append(header)
            position += batch_size
        if not headers:
            raise InvalidRecord("nothing to append")
        if size > settings.segment_bytes:
            raise RecordTooLarge(
                f"{size} bytes do not fit into a segment of {settings.segment_bytes} bytes (segment.bytes)"
            )
        return headers

    def _remember(self, headers: list[BatchHeader], view: memoryview, offset: Offset, now_ms: TimestampMs) -> None:
        """What was appended, for idempotent producers and for readers at the tail."""
        position = 0
        for header in headers:
            size = header.length + LENGTH_END
            if header.producer_id >= 0:
                self._producers.update(header, offset, now_ms)
                if header.attributes & CONTROL_BIT:
                    self._saw_marker(BatchView(position, header, view[position : position + size]), offset)
            self._tail.append(offset, view if len(headers) == 1 else view[position : position + size])
            position += size
            offset += header.last_offset_delta + 1

    def _saw_marker(self, batch: BatchView, offset: Offset) -> None:
        header = batch.header
        try:
            marker = read_marker(batch)
        except CorruptBatch:  # a control batch of another kind
            return
        producer = self._producers.get(header.producer_id)
        if producer is not None:
            producer.coordinator_epoch = marker.coordinator_epoch
        if marker.type in (COMMIT_MARKER, ABORT_MARKER):
            aborted = self._producers.ended(header, offset, marker.type == COMMIT_MARKER)
            if aborted is not None:
                self._active.aborted.entries.append(aborted)

    def end_transaction(
        self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        *,
        committed: bool,
        coordinator_epoch: int,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
    ) -> LocalAppend:
        if producer_id not in self._producers.open:
            if self._blocked:
                self._make_good()
            return LocalAppend(self._end, self._end - 1, now_ms, self._promise(self._end), duplicate=True)
        producer = self._producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise InvalidProducerEpoch(
                f"producer {producer_id} of epoch {epoch} was fenced by epoch {producer.epoch} in {self.partition}"
            )
        marker = build_marker(
            committed=committed,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=now_ms,
        )
        return self.append(marker, now_ms=now_ms, leader_epoch=leader_epoch, durable=True)

    def open_transactions(self) -> dict[ProducerId, Offset]:
        return dict(self._producers.open)

    def _after_append(self, durable: bool, count: int) -> Promise[None] | None:
        policy = self.settings.flush
        if policy is FlushPolicy.ALWAYS or (durable and policy is FlushPolicy.ACKS):
            return self._promise(self._end)
        if policy is FlushPolicy.INTERVAL:
            self._messages_unflushed += count
            if self._messages_unflushed >= self.settings.flush_messages:
                self._commit.soon(self)
            else:
                self._commit.within(self, self.settings.flush_ms)
        return None

    def _promise(self, offset: Offset) -> Promise[None] | None:
        if self.settings.flush not in (FlushPolicy.ACKS, FlushPolicy.ALWAYS) or offset <= self._durable:
            return None
        return self._commit.wait(self, offset)

    def _make_good(self) -> None:
        """Refuse, or remove what stands in the way of the next append."""
        if self._closed:
            raise LogClosed(f"{self.partition} is closed")
        if self._fault is not None:
            self._commit.soon(self)  # tries to make good what failed
            raise StorageError(f"{self.partition} takes no appends until a failed flush is made good: {self._fault}")
        if not self._try_to_drop_unfinished():
            raise StorageError(f"cannot append to {self.partition}: a failed write could not be undone yet")

    def _try_to_drop_unfinished(self) -> bool:
        try:
            self._active.drop_unfinished()
        except (OSError, StorageError):
            return False
        self._unfinished_write = False
        self._blocked = self._closed or self._fault is not None
        return True

    def _roll(self, now_ms: TimestampMs) -> ActiveSegment:
        """Seal the active segment and begin the next; nothing has changed if that fails."""
        old = self._active
        new = ActiveSegment(self._files, self._pool, self.directory, self._end, self._spec, created_ms=now_ms)
        try:
            sealed = old.seal()
            self._files.open(new.path + LOG, create=True).truncate(0)
        except OSError as error:
            raise storage_error(error, f"begin a new segment of {self.partition}") from error
        self._sealed.append(sealed)
        self._bases.append(sealed.base_offset)
        self._unsynced = [(sealed if segment is old else segment, at) for segment, at in self._unsynced]
        self._unsynced.append((new, 0))
        self._active = new
        self._names_changed = True
        self._commit.soon(self)
        return new

    # Reading

    def read(
        self, offset: Offset, max_bytes: int, *, up_to: Offset | None = None, at_least_one: bool = True
    ) -> ReadResult:
        end = self._end if up_to is None or up_to > self._end else up_to
        if offset >= end or offset < self._start:
            self._check_offset(offset)
            return NOTHING
        cached = self._tail.read(offset, max_bytes, end, at_least_one=at_least_one)
        if cached is not None:
            return ReadResult(cached, sum(map(len, cached)))  # type: ignore[arg-type]
        number = bisect_right(self._bases, offset) - 1 if offset < self._active.base_offset else len(self._sealed)
        while True:
            segment: SealedSegment | ActiveSegment = (
                self._sealed[number] if number < len(self._sealed) else self._active
            )
            limit = segment.size if end >= segment.end_offset else segment.locate(end)
            start, stop = segment.find(offset, max_bytes, limit, at_least_one=at_least_one)
            if start < segment.size or segment is self._active:
                break
            number += 1  # an offset that compaction removed from the end of a segment is answered by the next one
        if stop <= start:
            return NOTHING
        return ReadResult([SegmentRange(segment.file, start, stop - start, segment.end_offset)], stop - start)

    def read_committed(
        self, offset: Offset, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[ReadResult, list[AbortedTransaction]]:
        result = self.read(offset, max_bytes, up_to=self.last_stable_offset, at_least_one=at_least_one)
        if not result.size or not (len(self._active.aborted) or any(s.aborted_count for s in self._sealed)):
            return result, []
        last = result.parts[-1]
        # Each part from the tail is one batch.
        end = last.end_offset if isinstance(last, SegmentRange) else read_header(last).next_offset  # type: ignore[arg-type]
        return result, self.aborted_between(offset, end)

    def aborted_between(self, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """Those that have, or had, records from `start` up to, not including, `end`; in the order they ended in."""
        found: list[AbortedTransaction] = []
        first = max(0, bisect_right(self._bases, start) - 1)
        for segment in self._segments()[first:]:
            if segment.aborted_count:
                index = segment.load_aborted()
                if index is None:
                    self._follow_transactions_anew()
                    return self.aborted_between(start, end)
                transactions, is_complete = index.between(start, end)
                found += transactions
                if is_complete:
                    break
        return found

    def _follow_transactions_anew(self) -> None:
        """Which transactions are open and which were aborted, from the batches alone."""
        self.compaction.interrupt()
        anew, self._producers.open = transactions_in(self._segments())
        try:
            for segment in self._segments():
                segment.replace_aborted(anew[segment.base_offset])
            self.compaction.recount(self._segments())
        except OSError as error:
            raise storage_error(error, f"rebuild the index of aborted transactions of {self.partition}") from error

    def offset_for_time(self, timestamp: TimestampMs) -> TimestampOffset | None:
        for segment in self._segments():
            if segment.max_timestamp >= timestamp:
                found = segment.first_at_or_after(timestamp, self._start)
                if found is not None:
                    return found
        return None

    def max_timestamp(self) -> TimestampOffset | None:
        newest = max((segment.max_timestamp for segment in self._segments()), default=-1)
        return self.offset_for_time(newest) if newest >= 0 and self._end > self._start else None

    def active_producers(self) -> list[ActiveProducer]:
        return [
            ActiveProducer(
                id_,
                producer.epoch,
                producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE,
                producer.batches[-1].timestamp if producer.batches else producer.last_seen_ms,
                self._producers.open.get(id_, -1),
                producer.coordinator_epoch,
            )
            for id_, producer in self._producers
        ]

    def stats(self) -> LogStats:
        return LogStats(
            start_offset=self._start,
            end_offset=self._end,
            durable_offset=self._durable,
            segments=len(self._sealed) + 1,
            size_bytes=sum(segment.size for segment in self._segments()),
            producers=len(self._producers),
            fault=None if self._fault is None else str(self._fault),
        )

    def _segments(self) -> list[SealedSegment | ActiveSegment]:
        return [*self._sealed, self._active]

    def _check_offset(self, offset: Offset) -> None:
        if not self._start <= offset <= self._end:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.partition} is outside the log, which has {self._start} to {self._end}"
            )

    # Deleting

    def delete_before(self, offset: Offset) -> Offset:
        if offset > self._end or offset < 0:
            self._check_offset(offset)
        if offset <= self._start:
            return self._start
        self._finish_flush()
        self.compaction.settle()
        if offset == self._end and self._active.size:
            self._roll(self._active.created_ms)
        before, self._start = self._start, offset
        try:
            first_kept = next(
                segment for segment in self._segments() if segment.end_offset > offset or segment is self._active
            )
            if self._checkpoint.segment < first_kept.base_offset:
                self._checkpoint_durably()  # the one we have speaks of a segment that will be gone
            else:
                self._write_checkpoint(self._checkpoint.starting_at(offset))
        except StorageError:
            self._start = before
            raise
        self._remove_sealed_before(offset)
        return offset

    def truncate(self, offset: Offset) -> Offset:
        self._check_offset(offset)
        if offset == self._end:
            return offset
        self._finish_flush()
        self.compaction.settle()
        number = bisect_right(self._bases, offset) - 1
        target: Segment = self._active if offset >= self._active.base_offset else self._sealed[number]
        position = target.locate(offset)
        end = offset  # inside a hole that compaction left, or at it
        if position < target.size:
            end = min(offset, self._base_offset_at(target, position))
        start = min(self._start, end)  # the start may stand inside the batch that goes
        self._producers.cut(end)
        # What the checkpoint vouches for is cut: it must not be believed from here on.
        if self._checkpoint.offset > end:
            self._write_checkpoint(
                Checkpoint(
                    start_offset=start,
                    offset=target.base_offset,
                    segment=target.base_offset,
                    producers=self._producers.to_rows(),
                    transactions=_rows_of(transactions_in(self._sealed[:number])[1]),
                    aborted=_counts_of(self._sealed[:number]),
                )
            )
        kept = self._sealed if target is self._active else self._sealed[:number]
        try:
            self.compaction.cut(end, target.base_offset)
            for segment in reversed(self._segments()):  # newest first, so that a crash in between leaves no gap
                if segment is target:
                    break
                segment.remove()
            self._files.sync_directory(self.directory)
            self._pool.forget(target)
            self._active = ActiveSegment(
                self._files,
                self._pool,
                self.directory,
                target.base_offset,
                self._spec,
                size=target.size,
                created_ms=self._active.created_ms,
            )
            self._active.cut(position, end)
        except OSError as error:
            self.abandon()  # what is left in memory no longer tells what is on the disk
            raise storage_error(error, f"truncate {self.partition}; open it again") from error
        self._sealed, self._bases = kept, self._bases[: len(kept)]
        self._tail.clear()
        self._start, self._end = start, end
        self._durable, self._decided = min(self._durable, end), min(self._decided, end)
        self._follow_transactions_anew()
        self._unsynced = self._since_checkpoint()
        self._names_changed = True
        self._checkpoint_durably()
        return end

    def retain(self, now_ms: TimestampMs, *, keep_from: Offset | None = None) -> int:
        """Delete the oldest segments that are too old or too many bytes, nothing from `keep_from` on; how many."""
        settings = self.settings
        if self._active.is_full(0, self._end, now_ms, settings):
            self._roll(now_ms)
        expired = 0
        excess = UNLIMITED
        if settings.retention_bytes != UNLIMITED:
            excess = sum(segment.size for segment in self._segments()) - settings.retention_bytes
        oldest_ms = now_ms - settings.retention_ms if settings.retention_ms != UNLIMITED else None
        for number, segment in enumerate(self._segments(), 1):
            if segment.size == 0 and segment is not self._active:
                continue  # compaction left nothing of it: it goes with the next one, and the log's start with it
            too_old = oldest_ms is not None and 0 <= segment.max_timestamp < oldest_ms
            if segment.size == 0 or not (too_old or excess >= segment.size):
                break
            if keep_from is not None and segment.end_offset > keep_from:
                break
            expired = number
            excess -= segment.size
        if expired > len(self._sealed):
            self._roll(now_ms)
        if expired:
            self.delete_before(self._sealed[expired - 1].end_offset)
        self._producers.expire(now_ms - settings.producer_id_expiration_ms)
        return expired

    # Compacting

    def durable_segments(self) -> list[SealedSegment]:
        """The sealed segments that the checkpoint vouches for: what compaction may replace."""
        return [segment for segment in self._sealed if segment.base_offset < self._checkpoint.segment]

    def replace_segments(self, replaced: Sequence[Offset], size: int, aborted: int, spec: IndexSpec) -> None:
        """Read from the new log file that stands in the place of the first of these segments; the others go. Readers
        that hold ranges of the old files keep them. Raises OSError."""
        first = self._bases.index(replaced[0])
        old = self._sealed[first : first + len(replaced)]
        new = SealedSegment(
            self._files, self._pool, self.directory, replaced[0], size, old[-1].end_offset, spec, aborted
        )
        self._sealed[first : first + len(old)] = [new]
        self._bases[first : first + len(old)] = [new.base_offset]
        self._tail.drop_before(new.end_offset)
        self._pool.forget(old[0])
        for segment in old[1:]:
            segment.remove()

    def _remove_sealed_before(self, offset: Offset) -> None:
        """Oldest first, so that a crash in between leaves no gap."""
        try:
            while self._sealed and self._sealed[0].end_offset <= offset:
                segment = self._sealed[0]
                segment.remove()
                del self._sealed[0], self._bases[0]
                self._unsynced = [entry for entry in self._unsynced if entry[0] is not segment]
        except OSError as error:
            raise storage_error(error, f"delete old segments of {self.partition}") from error

    def _base_offset_at(self, segment: Segment, position: int) -> Offset:
        return int.from_bytes(segment.file.pread(8, position), "big", signed=True)

    # Durability

    def begin_flush(self, *, checkpoint: bool = False) -> FlushJob | None:
        """What must be synced so that everything up to now is durable; None if it is, or if a flush is under way.

        A checkpoint goes along when a segment was sealed or much was written since the last one."""
        if self._closed:
            raise LogClosed(f"{self.partition} is closed")
        if self._flush is not None:
            return None
        unsynced = [(segment, at) for segment, at in self._unsynced if segment.size > at]
        if not unsynced and not self._names_changed and not checkpoint:
            return None
        files = [segment.file for segment, _ in unsynced]
        rewrite = []
        if self._fault is not None:
            rewrite = [
                Range(self._files.open(segment.path + LOG), segment.base_offset, at, segment.size)
                for segment, at in unsynced
            ]
        sealed = [segment for segment, _ in self._unsynced if isinstance(segment, SealedSegment)]
        saved = None
        if checkpoint or sealed or self._bytes_since_checkpoint() >= CHECKPOINT_EVERY_BYTES:
            try:
                files += self._active.save_indexes()
                for segment in sealed:
                    files += segment.open_indexes()
            except OSError:
                pass  # a full disk must not keep the data from being synced; the next flush tries again
            else:
                saved = self._checkpoint_now()
        size = sum(segment.size - at for segment, at in unsynced)
        self._flush = FlushJob(self.directory, self._end, size, files, self._names_changed, saved, rewrite)
        self._flush_end = (self._active.base_offset, self._active.size)
        self._flush_decided = self.last_stable_offset
        self._names_changed = False
        self._messages_unflushed = 0
        return self._flush

    def end_flush(self, job: FlushJob) -> None:
        """Take back a job that ran. After a failure the log refuses appends until a later flush makes it good."""
        if self._flush is not job:
            return  # `_finish_flush` was faster
        self._flush = None
        if job.error is not None:
            self._fault = job.error
            self._blocked = self._names_changed = True
            return
        if self._fault is not None:
            self._fault = None
            self._blocked = self._closed or self._unfinished_write
        self._durable = max(self._durable, job.up_to)
        self._decided = self._flush_decided
        base_offset, position = self._flush_end
        still: list[tuple[Segment, int]] = []
        for segment, at in self._unsynced:
            if segment.base_offset == base_offset:
                still.append((segment, position))
            elif segment.base_offset > base_offset:
                still.append((segment, at))
            elif job.checkpoint is None:
                still.append((segment, segment.size))  # its indexes wait for a checkpoint that vouches for them
        self._unsynced = still
        if job.checkpoint is not None:
            self._checkpoint = job.checkpoint

    def flush(self, *, checkpoint: bool = False) -> None:
        """The same, at once, in this thread."""
        self._finish_flush()
        job = self.begin_flush(checkpoint=checkpoint)
        if job is not None:
            job.run(self._files)
            self.end_flush(job)
        if self._fault is not None:
            raise self._fault

    def _checkpoint_durably(self) -> None:
        self.flush(checkpoint=True)
        if self._checkpoint.offset != self._end or self._checkpoint.start_offset != self._start:
            raise StorageError(f"cannot write the checkpoint of {self.partition}")

    def close(self) -> None:
        """Make everything durable and say so in the checkpoint, so that opening again reads nothing."""
        if self._closed:
            return
        try:
            self.flush(checkpoint=True)
            self._remove_sealed_before(self._start)  # sealed after the start had moved past its records
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files without another word to the disk."""
        self.compaction.stop()
        self._closed = self._blocked = True
        for segment in self._segments():
            self._pool.forget(segment)
        self._tail.clear()

    def _finish_flush(self) -> None:
        """Wait for a flush under way, so that nothing else writes to this directory."""
        if self._flush is not None:
            if self._flush.wait is not None:
                self._flush.wait()
            self.end_flush(self._flush)

    def _checkpoint_now(self) -> Checkpoint:
        active = self._active
        return Checkpoint(
            start_offset=self._start,
            offset=self._end,
            segment=active.base_offset,
            position=active.size,
            index_bytes=active.saved.offsets_bytes,
            time_index_bytes=active.saved.times_bytes,
            created_ms=active.created_ms,
            producers=self._producers.to_rows(),
            transactions=_rows_of(self._producers.open),
            aborted=_counts_of(self._segments()),
        )

    def _write_checkpoint(self, checkpoint: Checkpoint) -> None:
        try:
            write_checkpoint(self._files, self.directory, checkpoint)
        except OSError as error:
            raise storage_error(error, f"write the checkpoint of {self.partition}") from error
        self._checkpoint = checkpoint

    def _since_checkpoint(self) -> list[tuple[Segment, int]]:
        """The segments that the checkpoint does not vouch for, each with the position from which on."""
        at = self._checkpoint
        return [
            (segment, at.position if segment.base_offset == at.segment else 0)
            for segment in self._segments()
            if segment.base_offset >= at.segment
        ]

    def _bytes_since_checkpoint(self) -> int:
        return sum(segment.size - at for segment, at in self._since_checkpoint())


def _rows_of(open_transactions: dict[ProducerId, Offset]) -> list[list[int]]:
    return [[producer_id, first_offset] for producer_id, first_offset in open_transactions.items()]


def _counts_of(segments: Iterable[SealedSegment | ActiveSegment]) -> list[list[int]]:
    return [[segment.base_offset, segment.aborted_count] for segment in segments if segment.aborted_count]
