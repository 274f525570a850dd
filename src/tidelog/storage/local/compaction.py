"""Compaction as the owner of a log controls it: which segments, in which steps, and when they are exchanged.

The owner of the log makes the decisions and changes the state in memory. Everything that takes long or syncs is a
step that any thread may run, one at a time. `LogCompaction.steps` defines the order:

    owner   LogCompaction.begin       selects segments; copies what the log knows of producers and transactions
    thread  CompactionPass.build_map  reads what was never compacted
    thread  CompactionPass.next_group writes a group of segments as one, in separate files, and syncs them
    owner   LogCompaction.begin_swap  unless the segments are deleted or about to be; from here on the start stays
    thread  Swap.commit               the state file records the exchange: from here on it happens, crash or not
    thread  Swap.exchange             renames the files; readers still have the old ones
    owner   replace_segments          from here on reads use the new segment
    thread  Swap.finish               removes old files, syncs the names, clears the exchange in the state file
    ...     the next group; in the end
    thread  write_state               the state file says how far the log is compacted

Only sealed segments that the checkpoint vouches for are compacted. The steps of a pass are in `compaction_pass.py`;
the state file and the exchange, also after a crash, in `compaction_state.py`.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from tidelog.errors import LogClosed, StorageError
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.records.batch import HEADER, HEADER_SIZE, BatchHeader
from tidelog.records.compaction import NEVER
from tidelog.settings import CleanerSettings, LogSettings
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
from tidelog.storage.local.compaction_pass import CompactionPass, Group, Source
from tidelog.storage.local.compaction_state import STATE, CompactionState, Swap, write_state
from tidelog.storage.local.files import Files, storage_error
from tidelog.storage.local.segment import LOG, IndexSpec, Leaving, SealedSegment
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.producers import Producers

_LOOKS, _LOOK_EVERY_S = 200, 0.01  # how often, and at what interval, to check whether the log's start has moved


class CompactedLog(Protocol):
    """The interface that compaction needs of a log."""

    directory: str
    settings: LogSettings

    @property
    def partition(self) -> TopicPartition: ...
    @property
    def producers(self) -> Producers: ...
    @property
    def is_changing(self) -> bool:
        """The log's start is about to move, or indexes of sealed segments are being rewritten."""

    @property
    def end_offset(self) -> Offset: ...
    @property
    def decided_offset(self) -> Offset:
        """No record before this offset belongs to a transaction whose end is not durable."""

    def aborted_between(self, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """The aborted transactions that have records in this range, in the order of their markers."""

    def durable_segments(self) -> list[SealedSegment]:
        """The sealed segments that the checkpoint vouches for, in order."""

    def replace_segments(self, replaced: Sequence[Offset], size: int, aborted: int, spec: IndexSpec) -> list[Leaving]:
        """Read from the one new segment, whose log file has taken the place of the first, instead of from these."""

    def exchange_ended(self) -> None:
        """The log's start may move again."""


class LogCompaction:
    """Controls the compaction of one log. Everything here runs in the owner's thread."""

    def __init__(self, log: CompactedLog, files: Files, state: CompactionState) -> None:
        self._log = log
        self._files = files
        self.state = state
        self.fault: StorageError | None = None
        """The error that rules out any compaction until the log is opened again."""
        self._pass: CompactionPass | None = None
        self._swap: Swap | None = None

    @property
    def partition(self) -> TopicPartition:
        return self._log.partition

    @property
    def settings(self) -> LogSettings:
        return self._log.settings

    @property
    def is_exchanging(self) -> bool:
        """Segments are being exchanged: until that is done the log must not drop any segment."""
        return self._swap is not None

    def measure(self, now_ms: TimestampMs) -> Dirtiness:
        try:
            return self._measure(now_ms)
        except OSError as error:
            raise storage_error(error, f"read {self._log.directory}") from error

    def _measure(self, now_ms: TimestampMs) -> Dirtiness:
        settings = self._log.settings.compaction
        if settings is None or self.fault is not None or self._pass is not None:
            return NOT_DIRTY
        segments = self._cleanable(now_ms)
        clean_offset = self._clean_offset(segments)
        clean_bytes = sum(segment.size for segment in segments if segment.base_offset < clean_offset)
        dirty = [segment for segment in segments if segment.end_offset > clean_offset]
        dirty_bytes = sum(segment.size for segment in dirty)
        if dirty and dirty[0].base_offset < clean_offset:
            already = dirty[0].locate(clean_offset)
            dirty_bytes -= already
            clean_bytes += already - dirty[0].size
        due = self.state.next_horizon_ms
        urgent = clean_bytes > 0 and due is not None and due <= now_ms
        if dirty_bytes and settings.max_lag_ms < NEVER:
            oldest = min((at for at in map(_first_timestamp, dirty) if at >= 0), default=now_ms)
            urgent = urgent or now_ms - oldest > settings.max_lag_ms
        return dirtiness(dirty_bytes, clean_bytes, settings, urgent=urgent)

    def begin(self, now_ms: TimestampMs, cleaner: CleanerSettings, throttle: Throttle) -> CompactionPass | None:
        """Begin a pass over everything that may be compacted; None if there is nothing."""
        settings, segments = self._log.settings, self._cleanable(now_ms)
        if settings.compaction is None or not segments or self.fault is not None or self._pass is not None:
            return None
        start_offset, end_offset = self._clean_offset(segments), segments[-1].end_offset
        aborted = self._log.aborted_between(segments[0].base_offset, end_offset)
        ended_before = partial(bisect_left, aborted, key=lambda entry: entry.last_offset)
        rules = rules_of_pass(
            now_ms,
            settings.compaction,
            start_offset,
            end_offset,
            self._log.end_offset,
            self._log.producers,
            aborted,
        )
        sources = [
            Source(
                one.base_offset,
                one.end_offset,
                one.size,
                one.path + LOG,
                aborted[ended_before(one.base_offset) : ended_before(one.end_offset)],
            )
            for one in segments
        ]
        self._pass = CompactionPass(self._files, self._log.directory, sources, rules, settings, cleaner, throttle)
        return self._pass

    def begin_pass(self, now_ms: TimestampMs, cleaner: CleanerSettings, throttle: Throttle) -> "CleanersPass | None":
        """`begin`, for the cleaner."""
        current = self.begin(now_ms, cleaner, throttle)
        return None if current is None else CleanersPass(self, current)

    def begin_swap(self, group: Group) -> Swap | None:
        """None if the log no longer has these segments, or is about to drop them."""
        segments = self._log.durable_segments()
        bases = [segment.base_offset for segment in segments]
        replaced = list(group.planned.replaced)
        first = bases.index(replaced[0]) if replaced[0] in bases else 0
        is_there = bases[first : first + len(replaced)] == replaced
        if self._pass is None or not is_there or self._log.is_changing:
            return None
        segments[first].pin()  # the new file takes its name while readers still use the old one
        after = self.state.exchanged(group.planned, group.end_offset, segments)
        self._swap = Swap(self._files, self._log.directory, group.planned, self.state, after)
        return self._swap

    def steps(self, current: CompactionPass) -> Generator[Callable[[], Any], Any, None]:
        """A whole pass. The caller runs each yielded callable, in any thread, and sends its result, or throws its
        exception, into the generator. The log is consistent at every step. Raises OSError."""
        try:
            yield current.build_map
            while (group := (yield current.next_group)) is not None:
                for _ in range(_LOOKS):
                    if self._log.is_changing:
                        yield partial(time.sleep, _LOOK_EVERY_S)
                try:
                    swap = self.begin_swap(group)
                except (OSError, StorageError):
                    yield partial(current.discard, group)
                    raise
                if swap is None:
                    yield partial(current.discard, group)
                    raise Cancelled(f"{self._log.directory} was changed while it was compacted")
                yield from self._exchange(current, swap)
            state = self.end(current)
            yield partial(write_state, self._files, self._log.directory, state)
        finally:
            if self._pass is current:
                self._pass = None

    def _exchange(self, current: CompactionPass, swap: Swap) -> Generator[Callable[[], Any], Any, None]:
        planned = swap.planned
        try:
            try:
                yield swap.commit
                yield swap.exchange
            except OSError:
                if not swap.is_applied and self._pass is current:
                    yield from self._call_off(swap)
                raise
            if self._pass is not current:
                raise LogClosed(f"{self._log.directory} was closed")
            self.state = swap.after
            swap.leaving = self._log.replace_segments(planned.replaced, planned.size, planned.aborted, current.spec)
            yield swap.finish
        except OSError as error:
            if swap.is_applied and self.fault is None:
                # The state file still names this exchange, so that opening the log finishes it. It must not be
                # overwritten by another one.
                self.fault = storage_error(error, f"exchange segments of {self._log.directory} until it is reopened")
            raise
        finally:
            self._swap = None
            self._log.exchange_ended()

    def _call_off(self, swap: Swap) -> Generator[Callable[[], Any], Any, None]:
        """Cancel an exchange that could not be committed. If the state file cannot be written either, nothing is
        removed; after a crash the exchange may still take place, which is just as correct."""
        for segment in self._log.durable_segments():
            if segment.base_offset == swap.planned.base_offset:
                segment.unpin()
        try:
            yield swap.call_off
        except OSError as error:
            self.fault = storage_error(error, f"write {self._log.directory}/{STATE}")

    def end(self, finished: CompactionPass) -> CompactionState:
        """The pass has covered everything. Returns the state that must now be written (`write_state`)."""
        if self._pass is finished:
            self.state = replace(
                self.state,
                clean_offset=max(self.state.clean_offset, finished.end_offset),
                next_horizon_ms=finished.next_horizon_ms,
            )
            self._pass = None
        return self.state

    def stop(self) -> None:
        """The log is closed: the step under way ends soon, and no other begins. What it still writes does no harm: a
        committed exchange is finished when the log is opened again, and writes to a directory that is being removed
        fail."""
        current, self._pass = self._pass, None
        if current is not None:
            current.stop.set()
        if self.fault is None:
            self.fault = LogClosed(f"{self._log.directory} is closed")

    def run(self, now_ms: TimestampMs, cleaner: CleanerSettings | None = None) -> CompactionPass | None:
        """A whole pass in the calling thread (tools, tests)."""
        current = self.begin(now_ms, cleaner or CleanerSettings(), Throttle())
        if current is None:
            return None
        steps = self.steps(current)
        try:
            step = next(steps)
            while True:
                try:
                    result = step()
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration:
            return current
        except OSError as error:
            raise storage_error(error, f"compact {self._log.directory}") from error

    def _cleanable(self, now_ms: TimestampMs) -> list[SealedSegment]:
        settings = self._log.settings.compaction
        found: list[SealedSegment] = []
        if settings is None:
            return found
        for segment in self._log.durable_segments():
            if segment.end_offset > self._log.decided_offset:
                break
            if settings.min_lag_ms and now_ms - segment.max_timestamp < settings.min_lag_ms:
                break
            found.append(segment)
        return found

    def _clean_offset(self, segments: list[SealedSegment]) -> Offset:
        return max(self.state.clean_offset, segments[0].base_offset) if segments else self.state.clean_offset


class CleanersPass:
    """A pass that the cleaner runs: the decisions in its own thread, the steps in others."""

    def __init__(self, compaction: LogCompaction, current: CompactionPass) -> None:
        self._compaction = compaction
        self._current = current

    async def run(self, in_thread: InThread) -> Compacted:
        compaction, current = self._compaction, self._current
        steps = compaction.steps(current)
        try:
            step = next(steps)
            while True:
                try:
                    result = await in_thread(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration:
            pass
        except OSError as error:
            if isinstance(compaction.fault, LogClosed):
                raise Cancelled(f"{compaction.partition} was closed while it was compacted") from error
            raise storage_error(error, "compact") from error
        finally:
            steps.close()
        return Compacted(
            current.records_read,
            current.records_kept,
            current.keys,
            current.bytes_read,
            current.bytes_written,
            current.seconds,
        )

    def halt(self) -> None:
        self._current.stop.set()


def _first_timestamp(segment: SealedSegment) -> TimestampMs:
    content = segment.file.pread(HEADER_SIZE, 0)
    return BatchHeader._make(HEADER.unpack(content)).max_timestamp if len(content) == HEADER_SIZE else -1
