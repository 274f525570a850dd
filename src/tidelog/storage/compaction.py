"""What compaction is to every engine: how dirty a log is, what a pass may use, and what its rules are. Which records
stay is decided in `records/compaction.py`; `cleaner.py` chooses the logs and runs the passes."""

import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from tidelog.errors import StorageError
from tidelog.model import Offset, ProducerId, TimestampMs, TopicPartition
from tidelog.records.compaction import AbortedRanges, Newest, Rules
from tidelog.settings import CleanerSettings, CompactionSettings, LogSettings
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.producers import Producers

T = TypeVar("T")


class Dirtiness(NamedTuple):
    """What compaction would find in a log."""

    dirty_bytes: int
    ratio: float
    urgent: bool
    """A record, a tombstone or a marker has reached its maximum age (`max.compaction.lag.ms`,
    `delete.retention.ms`)."""
    wanted: bool
    """The log should be compacted: enough of it is dirty, or it is urgent."""


NOT_DIRTY = Dirtiness(0, 0.0, urgent=False, wanted=False)


def dirtiness(dirty_bytes: int, clean_bytes: int, settings: CompactionSettings, *, urgent: bool) -> Dirtiness:
    ratio = dirty_bytes / (clean_bytes + dirty_bytes) if dirty_bytes else 0.0
    wanted = urgent or (dirty_bytes > 0 and ratio >= settings.min_dirty_ratio)
    return Dirtiness(dirty_bytes, ratio, urgent, wanted)


def rules_of_pass(
    now_ms: TimestampMs,
    settings: CompactionSettings,
    cleaned_to: Offset,
    end_offset: Offset,
    log_end_offset: Offset,
    producers: Producers,
    aborted: Iterable[AbortedTransaction],
) -> Rules:
    """The rules of a pass over a log up to `end_offset`, of which everything before `cleaned_to` was compacted
    before. `aborted` are the transactions that were aborted and have records there."""
    newest: dict[ProducerId, Newest] = {
        id_: Newest(known.epoch, known.newest.last_offset if known.newest else None) for id_, known in producers
    }
    return Rules(
        now_ms,
        settings.delete_retention_ms,
        cleaned_to,
        max(cleaned_to, end_offset),
        newest,
        AbortedRanges(aborted),
        log_end_offset,
    )


class Cancelled(StorageError):
    """The log was closed, or its data was deleted, while it was compacted. Nothing is lost."""


class Throttle:
    """Limits the bytes per second of all threads that share it."""

    def __init__(self, bytes_per_second: float = float("inf")) -> None:
        self.bytes_per_second = bytes_per_second
        self._lock = threading.Lock()
        self._free_at = 0.0

    def spend(self, size: int, stop: threading.Event) -> None:
        """Wait until `size` bytes may be read or written; return early if `stop` is set."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + size / self.bytes_per_second
            pause_s = self._free_at - now
        if pause_s > 0.002:
            stop.wait(pause_s)


class InThread(Protocol):
    """Runs a function in a thread of the cleaner."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class Compacted(NamedTuple):
    """What a pass has done."""

    records: int
    kept: int
    keys: int
    bytes_before: int
    bytes_after: int
    seconds: float


class Pass(Protocol):
    """One pass over a log."""

    async def run(self, in_thread: InThread) -> Compacted:
        """Carry out the pass. Called once, by the owner of the log; what takes long is done by `in_thread`. The log
        is consistent at every step. Raises Cancelled, or what the storage raises."""

    def halt(self) -> None:
        """Let `run` end soon."""


class CleanedLog(Hashable, Protocol):
    """The compaction of one log, as the cleaner sees it."""

    @property
    def partition(self) -> TopicPartition: ...
    @property
    def settings(self) -> LogSettings: ...

    def measure(self, now_ms: TimestampMs) -> Dirtiness: ...

    def begin_pass(self, now_ms: TimestampMs, cleaner: CleanerSettings, throttle: Throttle) -> Pass | None:
        """A pass over everything that may be compacted; None if there is nothing, or one is under way. `cleaner` has
        the share of this pass."""
