"""Compaction of a log in the object store. Which records stay is decided in `records/compaction.py`; `cleaner.py` of
the storage chooses the log and has the threads.

A pass reads the extents of the log from its start up to an offset, and writes those that change, with as many of
their neighbours as make a full segment, as one new object. As in a merge, the object is uploaded first; then the
database exchanges the extents in one transaction, and refuses if another broker leads the log by then or if the
extents are not exactly those that were read. So a crash leaves the log as it was or as it will be, and an object that
was not needed is garbage. In the end the database is told how far the log is compacted; if that fails, the next pass
does again what was done.

Which extents may be compacted:

    not from the last stable offset on   it is not decided what becomes of their transactions
    not younger than min.compaction.lag.ms
    not the newest segment.bytes         what Kafka calls the active segment, unless they are older than segment.ms or
                                         max.compaction.lag.ms

A merge works on the same log only behind the extents of the pass. One piece of one extent is in memory at a time, and
a few that are fetched ahead; bytes are looked at in threads, never in the event loop.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import NamedTuple
from uuid import UUID

from tidelog.errors import CorruptBatch, CorruptLog
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.records.batch import HEADER_SIZE, size_at
from tidelog.records.compaction import NEVER, KeyMap, Rules, open_key_map
from tidelog.settings import CleanerSettings, CompactionSettings, LogSettings
from tidelog.storage.compaction import (
    NOT_DIRTY,
    Cancelled,
    Compacted,
    Dirtiness,
    InThread,
    Throttle,
    dirtiness,
    rules_of_pass,
)
from tidelog.storage.shared.log import SharedLog, producers_of
from tidelog.storage.shared.merging import producers_before
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import Cleaned, Extent, NotTheLeader, UnknownLog
from tidelog.storage.shared.pieces import Piece, pieces
from tidelog.storage.shared.segment_object import SegmentWriter, new_key

_MOST_SEGMENTS = 8  # an exchange reads at most so many full segments, so that a failure repeats little
_NO_MARKS = 1 << 62  # the writer of segments makes their index


class Compactor:
    """Compacts the logs of a broker. `segment_bytes` is the size of a full segment."""

    def __init__(
        self,
        objects: ObjectStore,
        segment_bytes: int,
        *,
        clock: Callable[[], TimestampMs],
        unique: Callable[[], UUID],
    ) -> None:
        self.objects = objects
        self.segment_bytes = segment_bytes
        self.clock = clock
        self.unique = unique
        self._known: dict[SharedLog, LogCompaction] = {}

    def compactions(self, logs: Iterable[SharedLog]) -> "list[LogCompaction]":
        """Those of the logs that are open now; for a log that was open before the same one as then."""
        self._known = {log: self._known.get(log) or LogCompaction(self, log) for log in logs}
        return list(self._known.values())


class LogCompaction:
    """The compaction of one log: what there is to do, and the pass that does it."""

    def __init__(self, compactor: Compactor, log: SharedLog) -> None:
        self._compactor = compactor
        self._log = log
        self.is_at_work = False
        """A pass is under way."""
        self._oldest_seen: tuple[Offset, TimestampMs] = (0, NEVER)

    @property
    def partition(self) -> TopicPartition:
        return self._log.partition

    @property
    def settings(self) -> LogSettings:
        return self._log.settings

    def measure(self, now_ms: TimestampMs) -> Dirtiness:
        log, settings = self._log, self._log.settings.compaction
        if settings is None or self.is_at_work or log.fault is not None:
            return NOT_DIRTY
        cleaned = log.cleaned
        clean_bytes, dirty_bytes, oldest_ms = 0, 0, NEVER
        for extent in self.cleanable(now_ms, settings):
            clean = _clean_bytes(extent, cleaned.offset)
            clean_bytes += clean
            dirty_bytes += extent.size - clean
            if clean < extent.size and extent.max_timestamp >= 0:
                oldest_ms = min(oldest_ms, extent.max_timestamp)
        urgent = clean_bytes > 0 and cleaned.next_horizon_ms is not None and cleaned.next_horizon_ms <= now_ms
        if dirty_bytes and settings.max_lag_ms < NEVER:
            urgent = urgent or now_ms - self._oldest(cleaned.offset, oldest_ms) > settings.max_lag_ms
        return dirtiness(dirty_bytes, clean_bytes, settings, urgent=urgent)

    def _oldest(self, clean_offset: Offset, oldest_ms: TimestampMs) -> TimestampMs:
        """The time of the oldest dirty record, as far as it is known: an extent that was merged tells only the time
        of its newest record, so what was seen before the merge counts."""
        if self._oldest_seen[0] == clean_offset:
            oldest_ms = min(oldest_ms, self._oldest_seen[1])
        self._oldest_seen = (clean_offset, oldest_ms)
        return oldest_ms

    def cleanable(self, now_ms: TimestampMs, settings: CompactionSettings) -> list[Extent]:
        """The extents that may be compacted, from the log's start on."""
        found: list[Extent] = []
        log, from_here_on = self._log, self._log.extents.size_bytes
        longest_ms = min(log.settings.segment_ms, settings.max_lag_ms)
        for extent in log.extents:
            age_ms = now_ms - extent.max_timestamp
            is_newest = from_here_on <= log.settings.segment_bytes and age_ms < longest_ms
            is_young = settings.min_lag_ms > 0 and age_ms < settings.min_lag_ms
            if extent.last_offset >= log.last_stable_offset or is_young or is_newest:
                break
            from_here_on -= extent.size
            found.append(extent)
        return found

    def begin_pass(
        self, now_ms: TimestampMs, cleaner: CleanerSettings, throttle: Throttle
    ) -> "CompactionPass | None":
        settings = self._log.settings.compaction
        if settings is None or self.is_at_work or not self.cleanable(now_ms, settings):
            return None
        return CompactionPass(self._compactor, self, self._log, settings, now_ms, cleaner, throttle)


class _Step(NamedTuple):
    """What is left of some batches of an extent."""

    extent: Extent
    data: bytes
    consumed: int
    is_changed: bool
    is_last: bool
    """The extent ends here."""


class CompactionPass:
    """One pass over a log. Made and used in the event loop."""

    def __init__(
        self,
        compactor: Compactor,
        compaction: LogCompaction,
        log: SharedLog,
        settings: CompactionSettings,
        now_ms: TimestampMs,
        cleaner: CleanerSettings,
        throttle: Throttle,
    ) -> None:
        self._compactor = compactor
        self._compaction = compaction
        self._log = log
        self._settings = settings
        self._now_ms = now_ms
        self._cleaner = cleaner
        self._throttle = throttle
        self._stop = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._in_thread: InThread
        self._rules: Rules
        self._map: KeyMap
        self._left: deque[Extent] = deque()
        """The extents that are not done yet, in order."""
        self._began_at = time.monotonic()
        self._bytes_read = self._bytes_written = self._records_read = self._records_kept = self._keys = 0

    async def run(self, in_thread: InThread) -> Compacted:
        if self._stop.is_set():
            raise self._cancelled("stopped")
        self._in_thread = in_thread
        self._compaction.is_at_work = True
        self._task = asyncio.ensure_future(self._run())
        try:
            await self._task
        except (NotTheLeader, UnknownLog) as error:
            raise self._cancelled("lost") from error
        except asyncio.CancelledError:
            if self._stop.is_set():
                raise self._cancelled("stopped") from None
            raise
        finally:
            self._compaction.is_at_work = False
        seconds = time.monotonic() - self._began_at
        return Compacted(
            self._records_read, self._records_kept, self._keys, self._bytes_read, self._bytes_written, seconds
        )

    def halt(self) -> None:
        """An exchange that was begun is completed all the same: see `SharedLog.exchange`."""
        self._stop.set()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        log = self._log
        async with log.rewriting:  # a merge that is under way may exchange any of the extents
            sources = self._compaction.cleanable(self._now_ms, self._settings)
            if not sources:
                return
            log.compacted_before = end_offset = sources[-1].last_offset + 1
        try:
            producers = producers_of(await log.load())
            producers.expire(self._now_ms - log.settings.producer_id_expiration_ms)
            self._rules = rules_of_pass(
                self._now_ms,
                self._settings,
                max(log.cleaned.offset, sources[0].base_offset),
                end_offset,
                log.end_offset,
                producers,
                log.aborted_between(sources[0].base_offset, end_offset),
            )
            await self._build_map(sources)
            await self._compact([source for source in sources if source.base_offset < self._rules.end_offset])
            horizon_ms = self._rules.next_horizon_ms
            cleaned = Cleaned(self._rules.end_offset, None if horizon_ms == NEVER else horizon_ms)
            await log.compacted(cleaned, self._rules.void_aborts)
        finally:
            log.compacted_before = 0

    # Reading what was never compacted

    async def _build_map(self, sources: list[Extent]) -> None:
        start, cleaner = self._rules.start_offset, self._cleaner
        dirty = [source for source in sources if source.last_offset >= start]
        most_records = sum(source.last_offset + 1 - max(source.base_offset, start) for source in dirty)
        self._map = await self._in_thread(
            partial(open_key_map, cleaner.dedupe_buffer_bytes, cleaner.load_factor, most_records)
        )
        feed = _Feed()
        async with aclosing(pieces(self._compactor.objects, dirty)) as reading:
            async for piece in reading:
                self._need_log()
                if await self._in_thread(partial(self._add, feed, piece)):
                    break
        self._keys = len(self._map)

    def _add(self, feed: "_Feed", piece: Piece) -> bool:
        """In a thread. True: the map is full."""
        self._spend(len(piece.data))
        is_full = False

        def add(batches: memoryview) -> int:
            nonlocal is_full
            added = self._map.add(batches, self._rules)
            is_full = added.full
            return added.consumed

        feed.add(piece, add)
        return is_full

    # Writing what stays

    async def _compact(self, sources: list[Extent]) -> None:
        self._left.extend(sources)
        async with aclosing(self._steps(sources)) as steps:
            unchanged = 0
            async for step in steps:
                if step.is_changed:
                    await self._rewrite(step, unchanged, steps)
                    unchanged = 0
                elif step.is_last:
                    self._left.popleft()
                    unchanged = 0
                else:
                    unchanged += step.consumed

    async def _steps(self, sources: list[Extent]) -> AsyncGenerator[_Step, None]:
        feed = _Feed()
        async with aclosing(pieces(self._compactor.objects, sources)) as reading:
            async for piece in reading:
                self._need_log()
                yield await self._in_thread(partial(self._thin, feed, piece))

    def _thin(self, feed: "_Feed", piece: Piece) -> _Step:
        """In a thread."""
        self._spend(len(piece.data))
        data, is_changed = b"", False

        def thin(batches: memoryview) -> int:
            nonlocal data, is_changed
            thinned = self._map.thin(batches, self._rules, _NO_MARKS)
            data, is_changed = bytes(thinned.data), thinned.changed  # a copy: the map uses its buffer again
            self._records_read += thinned.records_read
            self._records_kept += thinned.records_kept
            return thinned.consumed

        consumed = feed.add(piece, thin)
        self._throttle.spend(len(data), self._stop)
        self._bytes_written += len(data)
        return _Step(piece.extent, data, consumed, is_changed, piece.is_last)

    async def _rewrite(self, step: _Step, unchanged: int, steps: AsyncIterator[_Step]) -> None:
        """Write the extent of this step, of which the first bytes are `unchanged`, and those that follow, as one
        segment in their place."""
        log, compactor = self._log, self._compactor
        known = await log.load()
        topic, partition = log.identity.topic.topic_id, log.identity.number
        key = new_key(topic, partition, step.extent.base_offset, compactor.unique())
        writer = SegmentWriter(topic, partition, producers_before(known, step.extent), compactor.clock())
        old: list[Extent] = []
        new: list[Extent] = []
        size = 0
        async with aclosing(self._content(step, unchanged, steps, old)) as content:
            async for beginning in content:  # if nothing is left, there is no object
                size = await compactor.objects.put_stream(key, self._object(writer, beginning, content))
                new = [Extent(writer.base_offset, writer.last_offset, key, 0, writer.data_size, writer.max_timestamp)]
        if not await log.exchange(key, size, old, new, known):
            raise self._cancelled("changed")

    async def _content(
        self, step: _Step, unchanged: int, steps: AsyncIterator[_Step], old: list[Extent]
    ) -> AsyncGenerator[bytes, None]:
        """The batches of one new segment. Adds to `old` the extents that it replaces."""
        if unchanged:
            async for piece in pieces(self._compactor.objects, [step.extent._replace(size=unchanged)]):
                yield piece.data
        read, written = 0, unchanged
        while True:
            if step.data:
                yield step.data
            written += len(step.data)
            if step.is_last:
                old.append(self._left.popleft())
                read += step.extent.size
                if not self._left or not self._fits(self._left[0], read, written):
                    return
            step = await anext(steps)

    def _fits(self, extent: Extent, read: int, written: int) -> bool:
        full = self._compactor.segment_bytes
        return written + extent.size <= full and read + extent.size <= _MOST_SEGMENTS * full

    async def _object(
        self, writer: SegmentWriter, beginning: bytes, content: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        await self._in_thread(partial(writer.add, beginning))
        yield beginning
        async for data in content:
            await self._in_thread(partial(writer.add, data))
            yield data
        yield await self._in_thread(writer.finish)

    # Giving up

    def _spend(self, size: int) -> None:
        self._throttle.spend(size, self._stop)
        self._bytes_read += size

    def _need_log(self) -> None:
        if self._log.fault is not None:
            raise self._cancelled("closed or lost")

    def _cancelled(self, what: str) -> Cancelled:
        return Cancelled(f"{self._log.partition} was {what} while it was compacted")


class _Feed:
    """Gives whole batches of an extent to a function, from pieces that are cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""
        self._needed = HEADER_SIZE  # bytes of the next batch before it makes sense to look at it

    def add(self, piece: Piece, take: Callable[[memoryview], int]) -> int:
        """`take` returns how many bytes were whole batches, and so does this. CorruptLog: they are no batches, or the
        extent ends within one."""
        extent = piece.extent
        data, consumed = (self._rest + piece.data if self._rest else piece.data), 0
        if len(data) >= self._needed:
            try:
                consumed = take(memoryview(data))
            except CorruptBatch as error:
                raise _damaged(extent, str(error)) from error
        self._rest = data[consumed:]
        if piece.is_last and self._rest:
            raise _damaged(extent, "the extent ends inside a batch")
        self._needed = max(HEADER_SIZE, size_at(self._rest, 0) if len(self._rest) >= HEADER_SIZE else 0)
        return consumed


def _damaged(extent: Extent, reason: str) -> CorruptLog:
    return CorruptLog(reason, file=extent.key, position=extent.position, offset=extent.base_offset)


def _clean_bytes(extent: Extent, clean_offset: Offset) -> int:
    """How much of an extent is clean. If a merge put clean and dirty records together, an estimate."""
    if extent.last_offset < clean_offset:
        return extent.size
    clean = max(0, clean_offset - extent.base_offset)
    return extent.size * clean // (extent.last_offset + 1 - extent.base_offset)
