"""`Order`: the database that decides which bytes of which objects are a log, and in which order. In PostgreSQL.

A log is a sequence of *extents*: byte ranges of immutable objects, without gaps between their offsets. An extent
counts when it is in the database, never because its object exists. Every change names the broker and the leader epoch
that make it, and the database checks both in the statement that makes the change. So a broker that was presumed dead
and wakes up can change nothing.

How a call can fail, and what its caller knows then:

    StorageUnavailable   nothing was changed
    OutcomeUnknown       the change took effect as a whole or not at all; make the same call again to find out
    NotTheLeader         nothing was changed, and no call with this leader epoch will ever change anything

A change whose outcome is unknown may still be on its way to the database when the error is raised. It is decided
before a later call of the same kind, or a later `load`, through the same `Order` takes effect. If its broker died, it
is refused as soon as another broker has taken over the log.

Every change can be repeated: the second call answers as the first one did. For `commit` and `replace` the key of the
object, which is never used twice, is the token that tells a repetition; so these two answer alike even if the log has
another leader meanwhile, or was deleted. There are two exceptions, both harmless: `take_over`, said again, gives a
later epoch, and `declare_dead`, said again, knows the keys already.

Commits made through one `Order` take effect in the order of the calls. Other calls may overtake them, except that
`load` waits for the commits that were called before it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, NewType, Protocol

from tidelog.errors import StorageError
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, TimestampMs
from tidelog.storage.log import AbortedTransaction

LogId = NewType("LogId", int)
"""The number of a log. It is never used again, also not for a topic of the same name."""


FORGOTTEN_AFTER_MS = 3_600_000


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
    """At least `base_offset`. The next extent begins right after it, or later in a log that was compacted. Compaction
    may also leave a gap before the first extent and after the last one."""
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


class Cleaned(NamedTuple):
    """How far a log is compacted."""

    offset: Offset = 0
    """Everything before this offset was compacted."""
    next_horizon_ms: TimestampMs | None = None
    """When the first tombstone or marker that compaction has kept may be removed, by the clock of the broker that
    kept it."""


class KnownLog(NamedTuple):
    """Everything that the leader of a log keeps in memory, as of one moment."""

    log_id: LogId
    start_offset: Offset
    high_watermark: Offset
    extents: Sequence[Extent]
    """In order, without those that end before `start_offset`. That offset may be in the middle of the first one."""
    snapshot: ProducerSnapshot | None
    aborted: Sequence[AbortedTransaction]
    epochs: Sequence[tuple[LeaderEpoch, Offset]]
    """For each leader epoch in which something was written its first offset, in order. The first of these offsets may
    be before `start_offset`."""
    cleaned: Cleaned = Cleaned()


class LogPart(NamedTuple):
    """What a bundle holds of one log: one new extent. It counts only if the log ends at `base_offset` until then. A
    bundle has at most one part of each log."""

    log_id: LogId
    leader_epoch: LeaderEpoch
    base_offset: Offset
    last_offset: Offset
    position: int
    size: int
    max_timestamp: TimestampMs
    stable_offset: Offset
    """The last stable offset after these batches. For tools that read without the leader; no call checks it."""
    producers: bytes
    aborted: Sequence[AbortedTransaction] = ()
    """The transactions that markers among these batches abort."""


class Order(Protocol):
    async def create(self, partitions: Sequence[PartitionIdentity]) -> None:
        """Create the logs, empty and without a leader: all or none. Existing logs are left as they are."""

    async def take_over(self, partitions: Sequence[PartitionIdentity], broker_id: int) -> list[LeaderEpoch]:
        """Make a broker the leader of these logs, each at a new epoch, and return the epochs; they begin at 0.
        UnknownLog: one of them does not exist, and nothing was changed."""

    async def load(self, partition: PartitionIdentity, leader: Leader) -> KnownLog:
        """The log as it is now. What was in flight to the database at the call, from this broker or from earlier
        leaders, is decided before it returns: it is in the answer, or will never be. Raises NotTheLeader, or
        UnknownLog."""

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
        """Exchange neighbouring extents for those of a new object, as merging and compaction do. The new extents have
        `key`, and lie within the offsets of the old ones. `new` may be empty (compaction removed everything): then
        there is no object, and the key, which must be new all the same, only tells a repetition. A snapshot replaces
        the log's snapshot, unless that one is of a later offset. False: the old extents are not exactly those that
        the log has there, the log was not changed, and the object is dead. Raises NotTheLeader, or UnknownLog: then
        the object is unknown, too, and left to `declare_dead`."""

    async def keep_snapshot(self, log_id: LogId, leader: Leader, snapshot: ProducerSnapshot) -> None:
        """Store the producers of a log, unless there is a snapshot of a later offset. A leader does this before it
        moves the start past extents that the log's snapshot does not cover: otherwise the next leader would not know
        the producers of the removed batches, and take their repetitions for new ones. Raises NotTheLeader, or
        UnknownLog."""

    async def keep_cleaned(
        self, log_id: LogId, leader: Leader, cleaned: Cleaned, void_aborts: Sequence[Offset]
    ) -> None:
        """Store how far the log is compacted, after its extents were exchanged; the offset never moves down. Forget
        the aborted transactions with these markers, of which the log has no records any more. Raises NotTheLeader, or
        UnknownLog. After OutcomeUnknown some of the transactions may not be forgotten."""

    async def move_start(self, log_id: LogId, leader: Leader, start_offset: Offset, now_ms: TimestampMs) -> None:
        """Move the start of the log up, and forget the extents, aborted transactions and epochs that end before it.
        Objects without extents become dead. Never moves it down. Raises NotTheLeader, UnknownLog, or, if the offset
        is after the high watermark, OffsetOutOfRange. After OutcomeUnknown the start may have moved while some
        objects are not dead yet; the next call for this log completes that."""

    async def delete(self, topic_id: bytes, now_ms: TimestampMs) -> None:
        """Forget all logs of a topic, at once. Objects without extents become dead. After OutcomeUnknown some may not
        be dead yet; the same call again completes that."""

    async def topics(self) -> list[tuple[bytes, str, bool]]:
        """The id and name of each topic that has logs, and whether nothing was ever written to them."""

    # Garbage

    async def clock_ms(self) -> TimestampMs:
        """The time of day by the clock of the database."""

    async def dead_objects(self, before_ms: TimestampMs, limit: int) -> list[str]:
        """Keys of objects that no log needs, that died before a time and are not forgotten; the oldest first."""

    async def declare_dead(self, keys: Iterable[str], now_ms: TimestampMs) -> list[str]:
        """Objects that were found in the store: those that the database does not know become dead, so that a late
        commit of theirs is refused. Returns the keys that it did not know."""

    async def forget_objects(self, keys: Iterable[str], now_ms: TimestampMs) -> None:
        """These dead objects are removed from the store. Their keys stay refused for as long as a commit of theirs
        may still come: `FORGOTTEN_AFTER_MS`. Objects that are not dead are left as they are."""

    async def close(self) -> None:
        """Calls that were made before may fail."""
