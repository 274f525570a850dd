"""`ClusterOwnership`: who owns what in a cluster, as this broker knows it. Answers come from memory.

Memory is only for routing; what is true is in the database, which checks the epoch in every change. What is
guaranteed:

    what this broker claims to own, it did own, at that epoch, at some moment of the last `fence_after` seconds by its
    own clock

Its member renews the trust in the memory after each beat. Without that the trust ends by itself, and each answer
looks at the clock: a broker that was paused answers nothing from an old memory when it wakes up. It then owns
nothing, and about the others it says what it heard last.

No two brokers claim the same thing at the same epoch. While a thing is moved from a broker that is up, both may claim
it for a second, at different epochs. A thing of a broker that was declared dead is no longer claimed by that one,
because `dead_after` is longer than `fence_after`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn, Protocol, TypeAlias

from tidelog.broker.membership.assignment import K, Known, Partition, Thing
from tidelog.broker.ownership import (
    BrokerAddress,
    Coordinated,
    NotController,
    NotCoordinator,
    NotLeader,
    NotOwner,
    Owner,
    Ownership,
)
from tidelog.broker.sessions import Endpoint
from tidelog.metadata.registry import (
    CONTROLLER,
    NOBODY,
    SHARD_LEASES,
    Address,
    Changes,
    Membership,
    group_shard,
    transaction_shard,
)
from tidelog.metadata.store import Fence
from tidelog.model import LeaderEpoch, shard_of

Leaders: TypeAlias = dict[bytes, dict[int, Owner]]
"""By topic id and partition."""

_UNKNOWN = Owner(NOBODY, -1)
_SHARDS = {Coordinated.GROUP: group_shard, Coordinated.TRANSACTIONAL_ID: transaction_shard}


def steady_clock() -> float:
    """Seconds on a clock that never jumps, and counts the time in which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Owned(NamedTuple):
    """Things with the epoch at which this broker owns or owned them."""

    leases: Mapping[str, int]
    partitions: Mapping[Partition, int]

    @property
    def is_empty(self) -> bool:
        return not self.leases and not self.partitions


class OwnershipListener(Protocol):
    """Told what this broker has lost and gained, in that order. A thing that it lost and has again at a later epoch
    is in both. When the trust in the memory ends, nothing is told: the things may still be its own afterwards."""

    def lost(self, things: Owned) -> None: ...

    def gained(self, things: Owned) -> None: ...


class ClusterOwnership(Ownership):
    is_sole = False

    def __init__(self, node_id: int, clock: Callable[[], float] = steady_clock) -> None:
        self.node_id = node_id
        self.incarnation = ""
        """Under which this broker registers."""
        self.known_version = -1
        """Of the registry."""
        self.members: dict[int, Membership] = {}
        """The registered brokers."""
        self.drained: frozenset[int] = frozenset()
        self.addresses: dict[str, Address] = {}
        """Where clients reach this broker, by listener."""
        self.on_advertise: Callable[[], None] = lambda: None
        self._clock = clock
        self._trusted_until = float("-inf")
        self._was_trusted = False
        self._version = 0
        self._is_registered = False
        self._leases: dict[str, Owner] = {}
        self._leaders: Leaders = {}
        self._my_leases: dict[str, int] = {}
        self._my_partitions: dict[Partition, int] = {}
        self._brokers: dict[str, list[BrokerAddress]] = {}

    # Trust

    def trust(self, until: float) -> None:
        """The memory is up to date, and may be believed until this time."""
        self._trusted_until = until

    def distrust(self) -> None:
        self._trusted_until = float("-inf")

    @property
    def is_trusted(self) -> bool:
        return self._clock() < self._trusted_until

    # What the broker asks

    @property
    def version(self) -> int:  # type: ignore[override]
        is_trusted = self.is_trusted
        if is_trusted != self._was_trusted:  # from now on the answers are different ones
            self._was_trusted = is_trusted
            self._version += 1
        return self._version

    def brokers(self, listener: str) -> Sequence[BrokerAddress]:
        found = self._brokers.get(listener)
        if found is None:
            addresses = {
                each.broker_id: (each.addresses[listener], each.rack)
                for each in self.members.values()
                if listener in each.addresses
            }
            if listener in self.addresses:  # clients can reach this broker, even if it is not registered
                addresses.setdefault(self.node_id, (self.addresses[listener], None))
            found = self._brokers[listener] = [
                BrokerAddress(broker_id, *address, rack) for broker_id, (address, rack) in sorted(addresses.items())
            ]
        return found

    def controller(self) -> Owner:
        return self._seen(self._leases.get(CONTROLLER, _UNKNOWN))

    def leader(self, topic_id: bytes, index: int) -> Owner:
        partitions = self._leaders.get(topic_id)
        return _UNKNOWN if partitions is None else self._seen(partitions.get(index, _UNKNOWN))

    def coordinator(self, kind: Coordinated, key: str) -> Owner:
        """The owner of the key's shard."""
        return self._seen(self._leases.get(_SHARDS[kind](shard_of(key)), _UNKNOWN))

    def has_coordinators(self) -> bool:
        """True if every group and transactional id has one."""
        return all(self._seen(self._leases.get(scope, _UNKNOWN)).broker_id != NOBODY for scope in SHARD_LEASES)

    def advertise(self, endpoint: Endpoint) -> None:
        self.addresses[endpoint.name] = Address(endpoint.host, endpoint.port)
        self._forget_answers()
        self.on_advertise()

    def check_leader(self, topic_id: bytes, index: int) -> LeaderEpoch:
        epoch = self._my_partitions.get((topic_id, index))
        if not self._clock() < self._trusted_until:
            self._refuse(NotLeader)
        if epoch is not None:  # the usual case, for every request
            return LeaderEpoch(epoch)
        return super().check_leader(topic_id, index)

    def check_coordinator(self, kind: Coordinated, key: str) -> None:
        if not self.is_trusted:
            self._refuse(NotCoordinator)
        super().check_coordinator(kind, key)

    def check_controller(self) -> None:
        if not self.is_trusted:
            self._refuse(NotController)
        super().check_controller()

    def _refuse(self, error: type[NotOwner]) -> NoReturn:
        raise error(f"broker {self.node_id} has no contact with the cluster's database at the moment")

    def _seen(self, owner: Owner) -> Owner:
        if owner.broker_id == self.node_id:
            if self._is_registered and self.is_trusted:
                return owner
        elif owner.broker_id in self.members:
            return owner
        return Owner(NOBODY, owner.epoch)

    # What its member and the controller ask

    @property
    def mine(self) -> Owned:
        """What this broker owned when it last heard of it, whether that is trusted or not. Do not change it."""
        return Owned(self._my_leases, self._my_partitions)

    def fence(self, scope: str) -> Fence | None:
        """The right to write the rows of a scope, if this broker owns its lease."""
        epoch = self._my_leases.get(scope)
        return None if epoch is None or not self.is_trusted else Fence(scope, epoch)

    def able(self) -> set[int]:
        """The brokers that may own things."""
        return {
            each.broker_id
            for each in self.members.values()
            if each.addresses and not each.is_draining and each.broker_id not in self.drained
        }

    def known(self, wishes: Mapping[Thing, int]) -> Known:
        """What the controller decides from; a copy."""
        able = self.able()
        return Known(
            brokers=able,
            draining=self.members.keys() - able,
            leases={scope: owner.broker_id for scope, owner in self._leases.items()},
            leaders={
                (topic_id, number): owner.broker_id
                for topic_id, partitions in self._leaders.items()
                for number, owner in partitions.items()
            },
            wishes=dict(wishes),
        )

    def apply(self, changes: Changes, leaders: Leaders | None = None) -> tuple[Owned, Owned]:
        """Returns what this broker has lost, and what it has gained. What belongs to its id is its own only while its
        own incarnation is registered: it could be the possession of another process, at an epoch of that one.
        `leaders` is `leaders_of(changes)`, if that was found out before."""
        self.known_version = changes.version
        self.members = {each.broker_id: each for each in changes.brokers}
        self.drained = frozenset(changes.drained)
        me = self.members.get(self.node_id)
        was_registered, self._is_registered = (
            self._is_registered,
            me is not None and me.incarnation == self.incarnation,
        )
        self._leases = {each.scope: Owner(each.broker_id, each.epoch) for each in changes.leases}
        touched: set[Partition] = set()
        if leaders is None:
            leaders = leaders_of(changes)
        if changes.is_whole:
            self._leaders = leaders
        else:
            for topic_id in changes.deleted:
                touched.update((topic_id, number) for number in self._leaders.pop(topic_id, ()))
            for topic_id, partitions in leaders.items():
                self._leaders.setdefault(topic_id, {}).update(partitions)
                touched.update((topic_id, number) for number in partitions)
        self._forget_answers()
        leases = self._my_leases
        self._my_leases = {scope: owner.epoch for scope, owner in self._leases.items() if self._is_mine(owner)}
        lost_leases, gained_leases = _differences(leases, self._my_leases)
        if changes.is_whole or was_registered != self._is_registered:
            before = self._my_partitions
            after = self._my_partitions = {
                (topic_id, number): owner.epoch
                for topic_id, partitions in self._leaders.items()
                for number, owner in partitions.items()
                if self._is_mine(owner)
            }
        else:
            before, after = {}, {}
            for partition in touched:
                owner = self._leaders.get(partition[0], {}).get(partition[1], _UNKNOWN)
                if partition in self._my_partitions:
                    before[partition] = self._my_partitions.pop(partition)
                if self._is_mine(owner):
                    self._my_partitions[partition] = after[partition] = owner.epoch
        lost, gained = _differences(before, after)
        return Owned(lost_leases, lost), Owned(gained_leases, gained)

    def _is_mine(self, owner: Owner) -> bool:
        return self._is_registered and owner.broker_id == self.node_id

    def _forget_answers(self) -> None:
        self._version += 1
        self._brokers.clear()


def leaders_of(changes: Changes) -> Leaders:
    """Takes a while if there are many, and may be called in a thread."""
    found: Leaders = {}
    for topic_id, number, broker_id, epoch in changes.leaderships:
        found.setdefault(topic_id, {})[number] = Owner(broker_id, epoch)
    return found


def _differences(before: Mapping[K, int], after: Mapping[K, int]) -> tuple[dict[K, int], dict[K, int]]:
    """What is gone, and what is new."""
    return (
        {thing: epoch for thing, epoch in before.items() if after.get(thing) != epoch},
        {thing: epoch for thing, epoch in after.items() if before.get(thing) != epoch},
    )
