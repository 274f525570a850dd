"""The history of a run as the clients saw it: every call with its outcome, and the final contents of the topics.

Values are unique, so that each can be traced from the call that wrote it to every reader that saw it. Times are of
one clock (`time.monotonic`), taken before and after a call.
"""

import math
import pickle
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol, TypeAlias

Partition: TypeAlias = tuple[str, int]


class Outcome(Enum):
    """What a client knows about a call. UNKNOWN: it may have happened or not, but at most once."""

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
    key: str | None = None
    began: float = 0.0
    ended: float = 0.0


@dataclass(frozen=True, slots=True)
class Transaction:
    """`commit_asked_at` is None if its commit was never requested. Added again when more is known."""

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


NEVER = math.inf


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """`ended` is `NEVER` if it was not confirmed: it may take effect at any time, or never."""

    group: str
    partition: Partition
    offset: int
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class OffsetSeen:
    """A group's committed offset, as the broker reported it; -1 for none."""

    group: str
    partition: Partition
    offset: int
    began: float


@dataclass(frozen=True, slots=True)
class Remade:
    """A topic was deleted and created again; the broker confirmed both."""

    topic: str
    delete_asked: float
    created: float


@dataclass(frozen=True, slots=True)
class Trimmed:
    """DeleteRecords was confirmed: no record below this offset may be visible."""

    partition: Partition
    start: int


@dataclass(frozen=True, slots=True)
class Done:
    """How much work a client has done, for the printed summary."""

    client: str
    count: int = 1


Event: TypeAlias = Write | Transaction | Read | OffsetCommit | OffsetSeen | Remade | Trimmed | Done


class Recorder(Protocol):
    def add(self, event: Event) -> None: ...


@dataclass(slots=True)
class History:
    """Filled by many threads; read when they have ended."""

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
    remade: dict[str, list[Remade]] = field(default_factory=dict)
    """Topics that are deleted and created again."""
    shrinking: dict[str, dict[Partition, int]] = field(default_factory=dict)
    """Topics whose records may be removed: replaced by a later one with the same key, or below the final start of
    their partition (looked up after the last read)."""
    trimmed: list[Trimmed] = field(default_factory=list)
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
                case Remade():
                    self.remade.setdefault(event.topic, []).append(event)
                case Trimmed():
                    self.trimmed.append(event)
                case Done():
                    self.done[event.client] += event.count

    def save(self, path: Path) -> None:
        """Everything, by the names of the fields, as a pickle: to look for the cause of a finding."""
        fields = [name for name in self.__slots__ if name != "_lock"]
        path.write_bytes(pickle.dumps({name: getattr(self, name) for name in fields}))


COPIED = "copy of "


def now() -> float:
    return time.monotonic()
