"""`Registry`: which brokers of a cluster are up, and who owns what. PostgreSQL, or a fake.

Three kinds of things have an owner at a time, with an epoch that grows whenever the owner changes:

    the controller     lease CONTROLLER; it assigns everything else, and owns topics and configs
    a shard of groups or transactional ids     leases `group_shard(n)` and `transaction_shard(n)`
    a partition        its leader, a field of the log's row, where the storage engine checks it in every commit

The epochs of leases are those of `Fence`: a store refuses writes of earlier owners. Clocks decide only who is
presumed dead, by the database's clock alone, never what is true.

A broker is *live* if it is registered and its last beat is at most `dead_after` old. (A beat that is further than
that in the future was made before the database's clock was set back. It counts as old.)

    StorageUnavailable   nothing was changed
    OutcomeUnknown       the change took effect as a whole or not at all; make the same call again
    Fenced               nothing was changed: this broker, or this controller, has been replaced

Every call can be repeated. An unknown change does not take effect after a later call through the same `Registry`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tidelog.errors import InvalidInput
from tidelog.metadata.store import Fence
from tidelog.model import SHARDS

CONTROLLER = "controller"
NOBODY = -1
DEAD_AFTER_S = 8.0


class UnknownBroker(InvalidInput):
    """No broker with this id is registered."""

    kafka_code = 102


class NoOtherBroker(InvalidInput):
    """No other broker could take what this one owns."""


def no_other(broker_id: int) -> NoOtherBroker:
    return NoOtherBroker(
        f"broker {broker_id} cannot be drained: no other broker that is up may take its partitions; start another"
        " one, or take back the drain of another"
    )


def group_shard(number: int) -> str:
    return f"group/{number}"


def transaction_shard(number: int) -> str:
    return f"transaction/{number}"


SHARD_LEASES = tuple(kind(number) for kind in (group_shard, transaction_shard) for number in range(SHARDS))


class Address(NamedTuple):
    host: str
    port: int


class Membership(NamedTuple):
    """A broker as it registered. The incarnation is a new one at each start of a process, and whenever the broker was
    fenced."""

    broker_id: int
    incarnation: str
    addresses: Mapping[str, Address]
    """Where clients of each listener reach it, by the listener's name. A broker without addresses gets nothing to
    own."""
    rack: str | None = None
    is_draining: bool = False
    """The broker is about to stop: it gives everything away and gets nothing new."""


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
    """Grows with every change of brokers, leases and leaderships. It is smaller than before only if the database was
    restored from a backup."""
    database_time_s: float
    """The database's clock, to find out that it was set."""
    has_controller: bool
    """A live broker is the controller."""


class Changes(NamedTuple):
    """What changed after some version, up to `version`; leaderships may be newer, and are then reported again. All
    brokers and all leases; only the leaderships that changed, and the topics whose logs were deleted. `is_whole`:
    these are all leaderships, because it is no longer known which topics were deleted. `drained`: the brokers that an
    operator has drained, also those that are not registered."""

    version: int
    brokers: Sequence[Membership]
    leases: Sequence[Lease]
    leaderships: Sequence[Leadership]
    deleted: Sequence[bytes]
    is_whole: bool
    drained: Sequence[int] = ()


class Registry(Protocol):
    async def register(self, me: Membership) -> None:
        """Begin to be up, or publish other addresses. A new incarnation replaces an earlier one of the same broker
        id, which is fenced from now on. It keeps what the earlier one owned, at new epochs: a change that the
        earlier one left on its way to the database is refused. Fenced: a live broker has this id from another
        incarnation and another address."""

    async def beat(self, me: Membership) -> Beat:
        """Still up. Fenced: this incarnation was replaced or declared dead; register a new one."""

    async def leave(self, me: Membership) -> None:
        """No longer up: others need not wait until it is presumed dead. What it still owns stays its own until it is
        assigned anew. Nothing happens if this incarnation is not registered."""

    async def drain(self, broker_id: int, draining: bool) -> None:
        """For a broker that is about to stop; a new incarnation begins without. UnknownBroker: it is not
        registered."""

    async def set_drained(self, broker_id: int, is_drained: bool) -> None:
        """The wish of an operator: the broker must own nothing. It lasts until it is taken back, also if the broker
        is down meanwhile. UnknownBroker: it is not registered, nor is there such a wish to take back. NoOtherBroker:
        no other live broker may own things."""

    async def changes_since(self, version: int) -> Changes:
        """-1: everything."""

    async def stand_for_controller(self, me: Membership) -> Fence | None:
        """Become the controller if there is none, or the one there is is not live. The fence, also if this broker is
        the controller already; None: another broker is. Fenced: this incarnation is not registered."""

    async def bury(self, controller: Fence) -> list[int]:
        """Remove the brokers that are not live, except the controller itself, and return their ids. What they owned
        stays theirs until it is assigned anew. After OutcomeUnknown the ids of some may not be told."""

    async def assign(
        self, controller: Fence, leases: Sequence[tuple[str, int]], leaders: Sequence[tuple[bytes, int, int]]
    ) -> None:
        """Give leases (scope, broker) and partitions (topic id, partition, broker) new owners, each at a new epoch,
        all or nothing. What the broker owns already is left as it is, so that a repetition changes nothing.
        Partitions that do not exist are left out. `NOBODY` takes a thing away from its owner."""

    async def close(self) -> None:
        """Calls that were made before may fail."""
