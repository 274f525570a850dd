"""A database in memory with the contract of `Registry`, shared by the brokers of a simulation.

    database = RegistryDatabase(loop.time)
    first, second = FakeRegistry(database), FakeRegistry(database, hook)     # what two brokers hold

Each operation takes effect at one instant, between two calls of the broker's hook, as in `fake_order.py`: the hook
may wait (a late answer; a broker that is paused), or raise StorageUnavailable before, or OutcomeUnknown before (the
request was lost) or after (the reply was lost). There is no randomness here: the same calls and the same hook give
the same history.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.support.fake_order import Call, Hook, Moment
from tidelog.broker.membership.assignment import Thing
from tidelog.errors import Fenced
from tidelog.metadata.registry import (
    CONTROLLER,
    DEAD_AFTER_S,
    NOBODY,
    Beat,
    Changes,
    Leadership,
    Lease,
    Membership,
    Registry,
    UnknownBroker,
    no_other,
)
from tidelog.metadata.store import Fence

T = TypeVar("T")
DELETIONS_KEPT = 10_000  # versions


@dataclass
class _Broker:
    membership: Membership
    beat: float


@dataclass
class _Owned:
    broker_id: int = NOBODY
    epoch: int = 0
    version: int = 0
    ended: dict[tuple[int, int], float] = field(default_factory=dict)
    """When each earlier owner, with its epoch, was replaced."""


class RegistryDatabase:
    """The tables, and every operation as one synchronous step."""

    def __init__(self, clock: Callable[[], float], dead_after_s: float = DEAD_AFTER_S) -> None:
        self.version = 0
        self.brokers: dict[int, _Broker] = {}
        self.drained: set[int] = set()
        self.leases: dict[str, _Owned] = {}
        self.leaders: dict[tuple[bytes, int], _Owned] = {}
        self.jumped = 0.0
        """What the database's clock was set forward or back by."""
        self._clock = clock
        self._dead_after = dead_after_s
        self._deleted: list[tuple[int, bytes]] = []

    @property
    def now(self) -> float:
        return self._clock() + self.jumped

    # What the storage engine does with the same tables

    def create_logs(self, topic_id: bytes, count: int) -> None:
        self.version += 1
        for number in range(count):
            self.leaders.setdefault((topic_id, number), _Owned(epoch=-1, version=self.version))

    def delete_logs(self, topic_id: bytes) -> None:
        self.version += 1
        self._deleted.append((self.version, topic_id))
        self.leaders = {place: owned for place, owned in self.leaders.items() if place[0] != topic_id}

    # What is true

    def owner(self, thing: Thing) -> _Owned:
        found = self.leases.get(thing) if isinstance(thing, str) else self.leaders.get(thing)
        return found or _Owned()

    # Operations

    def register(self, me: Membership) -> None:
        known = self.brokers.get(me.broker_id)
        is_new = known is None or known.membership.incarnation != me.incarnation
        is_elsewhere = known is not None and (known.membership.addresses != me.addresses or not me.addresses)
        if is_new and is_elsewhere and self._is_live(me.broker_id):
            raise Fenced(f"broker {me.broker_id} is up from another address")
        self.brokers[me.broker_id] = _Broker(me, self.now)
        self.version += 1
        if is_new:
            for owned in (*self.leases.values(), *self.leaders.values()):
                if owned.broker_id == me.broker_id:
                    self._give(owned, me.broker_id)

    def beat(self, me: Membership) -> Beat:
        self._mine(me).beat = self.now
        return Beat(self.version, self.now, self._is_live(self._controller().broker_id))

    def leave(self, me: Membership) -> None:
        known = self.brokers.get(me.broker_id)
        if known is not None and known.membership.incarnation == me.incarnation:
            del self.brokers[me.broker_id]
            self.version += 1

    def drain(self, broker_id: int, draining: bool) -> None:
        known = self.brokers.get(broker_id)
        if known is None:
            raise UnknownBroker(f"broker {broker_id} is not registered")
        if known.membership.is_draining != draining:
            known.membership = known.membership._replace(is_draining=draining)
            self.version += 1

    def set_drained(self, broker_id: int, is_drained: bool) -> None:
        was_drained = broker_id in self.drained
        if broker_id not in self.brokers and not was_drained:
            raise UnknownBroker(f"broker {broker_id} is not registered")
        if is_drained and not was_drained and not self._others_for(broker_id):
            raise no_other(broker_id)
        if is_drained != was_drained:
            self.drained ^= {broker_id}
            self.version += 1

    def _others_for(self, broker_id: int) -> bool:
        return any(
            each != broker_id
            and self._is_live(each)
            and each not in self.drained
            and known.membership.addresses
            and not known.membership.is_draining
            for each, known in self.brokers.items()
        )

    def changes_since(self, version: int) -> Changes:
        is_whole = not max(0, self.version - DELETIONS_KEPT) <= version <= self.version
        since = -1 if is_whole else version
        return Changes(
            self.version,
            [each.membership for _, each in sorted(self.brokers.items())],
            [Lease(scope, owned.broker_id, owned.epoch) for scope, owned in sorted(self.leases.items())],
            [
                Leadership(*place, owned.broker_id, owned.epoch)
                for place, owned in self.leaders.items()
                if owned.version > since
            ],
            [] if is_whole else [topic_id for at, topic_id in self._deleted if at > since],
            is_whole,
            sorted(self.drained),
        )

    def stand_for_controller(self, me: Membership) -> Fence | None:
        self._mine(me)
        controller = self._controller()
        if controller.broker_id != me.broker_id:
            if self._is_live(controller.broker_id):
                return None
            self.version += 1
            self._give(controller, me.broker_id)
        return Fence(CONTROLLER, controller.epoch)

    def bury(self, controller: Fence) -> list[int]:
        owner = self._check(controller)
        dead = [each for each in self.brokers if each != owner and not self._is_live(each)]
        for each in dead:
            del self.brokers[each]
        self.version += bool(dead)
        return sorted(dead)

    def assign(
        self, controller: Fence, leases: Sequence[tuple[str, int]], leaders: Sequence[tuple[bytes, int, int]]
    ) -> None:
        self._check(controller)
        given = [(self.leases.setdefault(scope, _Owned()), broker) for scope, broker in leases]
        given += [
            (self.leaders[topic_id, number], broker)
            for topic_id, number, broker in leaders
            if (topic_id, number) in self.leaders
        ]
        self.version += 1
        for owned, broker in given:
            if owned.broker_id != broker:
                self._give(owned, broker)

    def _give(self, owned: _Owned, broker_id: int) -> None:
        owned.ended[owned.broker_id, owned.epoch] = self._clock()
        owned.broker_id, owned.epoch, owned.version = broker_id, owned.epoch + 1, self.version

    def _controller(self) -> _Owned:
        return self.leases.setdefault(CONTROLLER, _Owned())

    def _check(self, controller: Fence) -> int:
        owner = self._controller()
        if owner.epoch != controller.epoch:
            raise Fenced(f"the controller is at epoch {owner.epoch}, and no longer at {controller.epoch}")
        return owner.broker_id

    def _mine(self, me: Membership) -> _Broker:
        known = self.brokers.get(me.broker_id)
        if known is None or known.membership.incarnation != me.incarnation:
            raise Fenced(f"this incarnation of broker {me.broker_id} is not registered")
        return known

    def _is_live(self, broker_id: int) -> bool:
        known = self.brokers.get(broker_id)
        return known is not None and abs(self.now - known.beat) <= self._dead_after


async def _nothing(_call: Call) -> None:
    pass


class FakeRegistry(Registry):
    def __init__(self, database: RegistryDatabase, hook: Hook = _nothing) -> None:
        self.database = database
        self.hook = hook

    async def register(self, me: Membership) -> None:
        await self._do("register", lambda: self.database.register(me))

    async def beat(self, me: Membership) -> Beat:
        return await self._do("beat", lambda: self.database.beat(me))

    async def leave(self, me: Membership) -> None:
        await self._do("leave", lambda: self.database.leave(me))

    async def drain(self, broker_id: int, draining: bool) -> None:
        await self._do("drain", lambda: self.database.drain(broker_id, draining))

    async def set_drained(self, broker_id: int, is_drained: bool) -> None:
        await self._do("set_drained", lambda: self.database.set_drained(broker_id, is_drained))

    async def changes_since(self, version: int) -> Changes:
        return await self._do("changes_since", lambda: self.database.changes_since(version))

    async def stand_for_controller(self, me: Membership) -> Fence | None:
        return await self._do("stand_for_controller", lambda: self.database.stand_for_controller(me))

    async def bury(self, controller: Fence) -> list[int]:
        return await self._do("bury", lambda: self.database.bury(controller))

    async def assign(
        self, controller: Fence, leases: Sequence[tuple[str, int]], leaders: Sequence[tuple[bytes, int, int]]
    ) -> None:
        await self._do("assign", lambda: self.database.assign(controller, leases, leaders))

    async def close(self) -> None:
        pass

    async def _do(self, operation: str, work: Callable[[], T]) -> T:
        await self.hook(Call(operation, (), Moment.BEFORE))
        result = work()
        await self.hook(Call(operation, (), Moment.AFTER))
        return result
