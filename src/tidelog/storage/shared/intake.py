"""`Intake`: how logs that were written elsewhere get into a cluster.

Their objects are uploaded first, and *staged*: the database knows a staged object and counts it neither as used nor
as dead, so that the search for orphans leaves it alone however long the other uploads take. Then logs are added as a
whole, in one transaction. They have no leader yet, and their topic is unknown, so nobody reads or writes them until
the metadata names the topic.

Every call can be repeated. It fails as the calls of `Order` do.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, TimestampMs
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.shared.order import Cleaned, Extent


class NewLog(NamedTuple):
    partition: PartitionIdentity
    start_offset: Offset
    high_watermark: Offset
    stable_offset: Offset
    extents: Sequence[Extent]
    """Each is the whole data of a staged object. Their facts are empty: the snapshot covers all of them."""
    producers: bytes
    """A snapshot of the producers as of the high watermark."""
    aborted: Sequence[AbortedTransaction]
    epochs: Sequence[tuple[LeaderEpoch, Offset]]
    """The leader epochs of the batches. The first leader in the cluster gets the one after the last."""
    cleaned: Cleaned


class LogInCluster(NamedTuple):
    start_offset: Offset
    high_watermark: Offset


class Intake(Protocol):
    async def logs_of(self, topic_ids: Iterable[bytes]) -> dict[tuple[bytes, int], LogInCluster]:
        """The logs of these topics, by topic id and partition."""

    async def stage(self, key: str, size: int) -> bool:
        """Keep an object that is in the store from being taken for an orphan. False: its key is used up, because the
        object was declared dead or belongs to a log already."""

    async def add(self, logs: Sequence[NewLog]) -> None:
        """Add logs with their staged objects: all or none. Logs that exist and have the same end are left as they
        are: an earlier call has added them. Conflict: a log exists and differs, or an object is not staged."""

    async def abandon(self, topic_ids: Iterable[bytes], now_ms: TimestampMs) -> int:
        """Forget the logs of these topics; their objects, and those that are staged, become garbage. Returns the
        number of logs and of staged objects."""

    async def close(self) -> None: ...
