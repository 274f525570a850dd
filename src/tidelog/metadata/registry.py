"""`Registry`: which brokers of a cluster are up, and who owns what. PostgreSQL, or a fake.

Three kinds of things have an owner at a time, with an epoch that grows whenever the owner changes:

    the controller     lease CONTROLLER; it assigns everything else, and owns topics and configs
    a shard of groups or transactional ids     leases `group_shard(n)` and `transaction_shard(n)`
    a partition        its leader, a field of the log's row, where the storage engine checks it in every commit

The epochs of leases are those of `Fence`: a store refuses writes of earlier owners. Clocks decide only who is presumed
dead, by the database's clock alone, never what is true.

    StorageUnavailable   nothing was changed
    OutcomeUnknown       the change took effect as a whole or not at all; make the same call again
    Fenced               nothing was changed: this broker, or this controller, has been replaced
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tidelog.metadata.store import SHARDS, Fence

CONTROLLER = "controller"
NOBODY = -1


def group_shard(number: int) -> str:
    return f"group/{number}"


def transaction_shard(number: int) -> str:
    return f"transaction/{number}"


SHARD_LEASES = tuple(kind(number) for kind in (group_shard, transaction_shard) for number in range(SHARDS))


class Address(NamedTuple):
    host: str
    port: int


class Membership(NamedTuple):
    """A broker as it registered. The incarnation is new at each start of a process."""

    broker_id: int
    incarnation: str
    addresses: Mapping[str, Address]
    """Where clients of each listener reach it, by the listener's name."""
    rack: str | None = None
    is_draining: bool = False
    """The broker gives everything away and gets nothing new."""


class Lease(NamedTuple):
    scope: str
    broker_id: int
    epoch: int


class Leadership(NamedTuple):
    """The leader of a partition; `NOBODY` while there is none."""

    topic_id: bytes
    partition: int
    broker_id: int
    epoch: int


class Beat(NamedTuple):
    version: int
    """Grows with every change of brokers, leases and leaderships."""


class Changes(NamedTuple):
    """What changed after some version, up to `version`. All brokers and leases; only the leaderships that changed, and
    the topics whose logs were deleted. `is_whole`: these are all leaderships, because the earlier ones are unknown."""

    version: int
    brokers: Sequence[Membership]
    leases: Sequence[Lease]
    leaderships: Sequence[Leadership]
    is_whole: bool


class Registry(Protocol):
    async def register(self, me: Membership) -> None:
        """Begin to be up. Replaces an earlier incarnation of the same broker id, which is fenced from now on. Fenced: a
        live broker (one that has beaten within `dead_after`) has this id from another incarnation and another
        address."""

    async def beat(self, me: Membership) -> Beat:
        """Still up. Fenced: this incarnation was replaced or declared dead; register again."""

    async def leave(self, me: Membership) -> None:
        """No longer up: others need not wait until it is presumed dead."""

    async def drain(self, broker_id: int, draining: bool) -> None: ...

    async def changes_since(self, version: int) -> Changes:
        """-1: everything."""

    async def stand_for_controller(self, me: Membership) -> Fence | None:
        """Become the controller if there is none, or it is presumed dead, or has left. The fence, also if this broker
        is the controller already; None: another broker is."""

    async def bury(self, controller: Fence) -> list[int]:
        """Remove the brokers that have not beaten for `dead_after` by the database's clock, and return their ids. What
        they owned stays theirs until it is assigned anew."""

    async def assign(
        self, controller: Fence, leases: Sequence[tuple[str, int]], leaders: Sequence[tuple[bytes, int, int]]
    ) -> None:
        """Give leases (scope, broker) and partitions (topic id, partition, broker) new owners, each at a new epoch, all
        or nothing. What the broker owns already is left as it is, so that a repetition changes nothing."""
