"""What happened, as the clients saw it: every call with its outcome, and in the end what the topics hold.

Values are unique, so that each can be followed from the call that wrote it to every reader that saw it. Times are
those of one clock (`time.monotonic`), of the moment before a call and after it.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

Partition: TypeAlias = tuple[str, int]


class Outcome(Enum):
    """What a client may believe of a call. UNKNOWN: it may have happened or not, but once at most."""

    DONE = "done"
    UNKNOWN = "unknown"
    NOT_DONE = "not done"


@dataclass(frozen=True, slots=True)
class Write:
    """A record that was sent. `sequence` counts what one producer sent to one partition."""

    producer: str
    sequence: int
    partition: Partition
    value: str
    transaction: str | None
    outcome: Outcome
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """`commit_asked_at` is None if nobody ever asked for its commit. Added again when more is known of it."""

    id: str
    outcome: Outcome
    commit_asked_at: float | None


@dataclass(frozen=True, slots=True)
class Read:
    """A record that a reader got; a session reads each of its partitions in order."""

    session: str
    partition: Partition
    offset: int
    value: str
    committed: bool
    at: float


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    group: str
    partition: Partition
    offset: int
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class OffsetSeen:
    """What the broker said a group's committed offset is; -1 for none."""

    group: str
    partition: Partition
    offset: int
    began: float


@dataclass(frozen=True, slots=True)
class Done:
    """How much of its work a client has done, for people."""

    client: str
    count: int = 1


Event: TypeAlias = Write | Transaction | Read | OffsetCommit | OffsetSeen | Done


class Recorder(Protocol):
    def add(self, event: Event) -> None: ...


@dataclass(slots=True)
class History:
    """Filled by many threads; looked at when they are gone."""

    writes: list[Write] = field(default_factory=list)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    commits: list[OffsetCommit] = field(default_factory=list)
    offsets_seen: list[OffsetSeen] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    final: dict[Partition, list[tuple[int, str]]] = field(default_factory=dict)
    final_committed: dict[Partition, list[tuple[int, str]]] = field(default_factory=dict)
    copies: dict[str, str] = field(default_factory=dict)
    """Topic -> the topic that holds a copy of it, made exactly once, value by value with `COPIED` before each."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, event: Event) -> None:
        with self._lock:
            match event:
                case Write():
                    self.writes.append(event)
                case Transaction():
                    self.transactions[event.id] = event
                case Read():
                    self.reads.append(event)
                case OffsetCommit():
                    self.commits.append(event)
                case OffsetSeen():
                    self.offsets_seen.append(event)
                case Done():
                    self.done[event.client] += event.count


COPIED = "copy of "


def now() -> float:
    return time.monotonic()
