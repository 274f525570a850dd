"""`Order`: the database that decides which bytes of which objects are a log, and in which order. PostgreSQL, or a fake.

A log is a sequence of *extents*: byte ranges of immutable objects, without gaps between their offsets. An extent
counts when it is in the database, never because its object exists. Every change names the broker and the leader epoch
that make it, and the database checks both in the statement that makes the change. So a broker that was presumed dead
and wakes up can change nothing.

How a call can fail, and what its caller knows then:

    StorageUnavailable   nothing was changed
    OutcomeUnknown       the change took effect as a whole or not at all; make the same call again to find out
    NotTheLeader         nothing was changed, and no call with this leader epoch will ever change anything

Every change can be repeated: the second call answers as the first one did. For `commit` and `replace` the key of the
object, which is never used twice, is the token that tells a repetition.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, NewType, Protocol

from tidelog.errors import StorageError
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, TimestampMs
from tidelog.storage.log import AbortedTransaction

LogId = NewType("LogId", int)
"""The number of a log. It is never used again, also not for a topic of the same name."""


class NotTheLeader(StorageError):
    """Another broker leads the log, or the same one at a later epoch."""

    kafka_code = 6
    retriable = True


class UnknownLog(StorageError):
    """The log was deleted, or never created."""

    kafka_code = 3
    retriable = True


class Leader(NamedTuple):
    """Who makes a change."""

    broker_id: int
    epoch: LeaderEpoch


class Extent(NamedTuple):
    """The records of a log from `base_offset` to `last_offset`: whole batches, in a byte range of an object."""

    base_offset: Offset
    last_offset: Offset
    """At least `base_offset`. The next extent begins right after it, or later in a log that was compacted."""
    key: str
    position: int
    size: int
    max_timestamp: TimestampMs
    producers: bytes = b""
    """What a new leader must know about the batches of the extent (`producer_facts.py`), so that it reads no object.
    Empty if the log's snapshot covers it."""


class ProducerSnapshot(NamedTuple):
    """The producers of a log as of `offset`: what all batches before it tell (`producer_facts.py`)."""

    offset: Offset
    facts: bytes


class KnownLog(NamedTuple):
    """Everything that the leader of a log keeps in memory, as of one moment."""

    log_id: LogId
    start_offset: Offset
    high_watermark: Offset
    extents: Sequence[Extent]
    snapshot: ProducerSnapshot | None
    aborted: Sequence[AbortedTransaction]
    epochs: Sequence[tuple[LeaderEpoch, Offset]]
    """For each leader epoch in which something was written its first offset, in order."""


class LogPart(NamedTuple):
    """What a bundle holds of one log: one new extent. It counts only if the log ends at `base_offset` until then."""

    log_id: LogId
    leader_epoch: LeaderEpoch
    base_offset: Offset
    last_offset: Offset
    position: int
    size: int
    max_timestamp: TimestampMs
    stable_offset: Offset
    """The last stable offset after these batches. For tools that read without the leader."""
    producers: bytes
    aborted: Sequence[AbortedTransaction] = ()
    """The transactions that markers among these batches abort."""


class Order(Protocol):
    async def create(self, partitions: Sequence[PartitionIdentity]) -> None:
        """Create the logs, empty and without a leader: all or none. Existing logs are left as they are."""

    async def take_over(self, partitions: Sequence[PartitionIdentity], broker_id: int) -> list[LeaderEpoch]:
        """Make a broker the leader of these logs, each at a new epoch; epochs begin at 0. UnknownLog: one of them does
        not exist, and nothing was changed."""

    async def load(self, partition: PartitionIdentity, leader: Leader) -> KnownLog:
        """The log as it is now. What was in flight to the database at the call is decided before it returns: it is in
        the answer, or will never be."""

    async def commit(
        self, key: str, size: int, broker_id: int, parts: Sequence[LogPart], now_ms: TimestampMs
    ) -> frozenset[LogId]:
        """Add a bundle that is in the object store. Returns the logs whose part counts from now on. The part of any
        other log was refused: its leader, epoch or end is not what the part says; it will never count. If all are
        refused, the object is dead. Said again, the answer is the same."""

    async def replace(
        self,
        log_id: LogId,
        leader: Leader,
        key: str,
        size: int,
        old: Sequence[Extent],
        new: Sequence[Extent],
        snapshot: ProducerSnapshot | None,
        now_ms: TimestampMs,
    ) -> bool:
        """Exchange neighbouring extents for those of a new object, as merging and compaction do. `new` may be empty
        (compaction removed everything; then `key` is not used). False: the old extents are not exactly those that the
        log has there, nothing was changed, and the object is dead."""

    async def move_start(self, log_id: LogId, leader: Leader, start_offset: Offset, now_ms: TimestampMs) -> None:
        """Move the start of the log up, and forget the extents, aborted transactions and epochs that end before it.
        Objects without extents become dead. Never moves it down."""

    async def delete(self, topic_id: bytes, now_ms: TimestampMs) -> None:
        """Forget all logs of a topic. Objects without extents become dead."""

    async def topics(self) -> list[tuple[bytes, str, bool]]:
        """The id and name of each topic that has logs, and whether nothing was ever written to them."""

    # Garbage

    async def dead_objects(self, before_ms: TimestampMs, limit: int) -> list[str]:
        """Keys of objects that no log needs and that died before a time, the oldest first."""

    async def declare_dead(self, keys: Iterable[str], now_ms: TimestampMs) -> list[str]:
        """Objects that were found in the store: those that the database does not know become dead, so that a late
        commit of theirs is refused. Returns the keys that it did not know."""

    async def forget_objects(self, keys: Iterable[str]) -> None:
        """These dead objects are removed from the store. Their keys stay refused for as long as a commit of theirs may
        still come: an hour."""
