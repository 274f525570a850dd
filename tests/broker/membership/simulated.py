"""Brokers of a simulated cluster: real members over `FakeRegistry`, in virtual time, with faults.

paused        the process stands still: nothing of it runs, its clock goes on
cut off       the database does not answer: requests and replies are lost
slow          answers are late
"""

import asyncio
from collections.abc import Callable
from random import Random

from tests.support.fake_order import Call, Moment
from tests.support.fake_registry import FakeRegistry, RegistryDatabase
from tidelog.broker.membership.assignment import Partition, Thing
from tidelog.broker.membership.member import Member, wait_for
from tidelog.broker.membership.ownership import ClusterOwnership, Owned
from tidelog.broker.membership.pulse import Timing
from tidelog.broker.sessions import Endpoint
from tidelog.errors import OutcomeUnknown, StorageUnavailable
from tidelog.metadata.registry import CONTROLLER, NOBODY, SHARD_LEASES

TIMING = Timing()
TIMEOUT_S = 3.0  # of a request to the database


def all_of(things: Owned) -> dict[Thing, int]:
    return dict([*things.leases.items(), *things.partitions.items()])


class SimulatedBroker:
    """One process. After `kill` it is never used again; another one with the same id takes its place."""

    def __init__(self, broker_id: int, database: RegistryDatabase, random: Random, start: int) -> None:
        self.broker_id = broker_id
        self.is_cut_off = False
        self.delay_s = 0.0
        self.is_dead = False
        self.told: dict[Thing, int] = {}  # what the listeners were told, gained and not lost
        self._random = random
        self._is_running = asyncio.Event()
        self._is_running.set()
        self._loop = asyncio.get_running_loop()
        self._incarnations = 0
        self._name = f"{broker_id}/{start}"
        self.ownership = ClusterOwnership(broker_id, self._loop.time)
        self.ownership.advertise(Endpoint("PLAINTEXT", f"host{broker_id}", 9092))
        self.registry = FakeRegistry(database, self._hook)
        self.member = Member(
            self.registry,
            self.ownership,
            timing=TIMING,
            clock=self._loop.time,
            wait=self._wait,
            new_incarnation=self._new_incarnation,
        )
        self.member.listen(self)

    @property
    def is_paused(self) -> bool:
        return not self._is_running.is_set()

    def pause(self) -> None:
        self._is_running.clear()

    def resume(self) -> None:
        self._is_running.set()

    async def kill(self) -> None:
        """Its tasks end where they are; what it sent is on its way or not."""
        self.is_dead = True
        self.resume()
        await self.member.close()

    def claims(self) -> dict[Thing, int]:
        """What it would say now that it owns, with the epochs."""
        if self.is_dead or not self.ownership.is_trusted:
            return {}
        mine = self.ownership.mine
        return all_of(mine)

    # As a listener

    def lost(self, things: Owned) -> None:
        for thing, epoch in all_of(things).items():
            assert self.told.pop(thing) == epoch

    def gained(self, things: Owned) -> None:
        for thing, epoch in all_of(things).items():
            assert thing not in self.told
            self.told[thing] = epoch

    # Time and the way to the database

    async def _wait(self, event: asyncio.Event, seconds: float) -> None:
        await wait_for(event, seconds)
        await self._is_running.wait()

    async def _hook(self, call: Call) -> None:
        await asyncio.sleep(self._random.uniform(0.0001, 0.002) + self.delay_s * self._random.random())
        await self._is_running.wait()
        if self.is_cut_off:
            await asyncio.sleep(TIMEOUT_S)
            await self._is_running.wait()
            if call.moment is Moment.AFTER or self._random.random() < 0.5:
                raise OutcomeUnknown("the reply was lost")
            raise StorageUnavailable("no answer")

    def _new_incarnation(self) -> str:
        self._incarnations += 1
        return f"{self._name}/{self._incarnations}"


class SimulatedCluster:
    """Checks after each moment that passes (`run_for`, `until`) that no broker claims what it must not claim."""

    def __init__(self, seed: int, brokers: int, partitions: dict[bytes, int]) -> None:
        self.random = Random(seed)
        self._loop = asyncio.get_running_loop()
        self.database = RegistryDatabase(self._loop.time, TIMING.dead_after)
        for topic_id, count in partitions.items():
            self.database.create_logs(topic_id, count)
        self.brokers: dict[int, SimulatedBroker] = {}
        self._starts = 0
        for broker_id in range(1, brokers + 1):
            self.start(broker_id)

    def start(self, broker_id: int) -> SimulatedBroker:
        self._starts += 1
        broker = SimulatedBroker(broker_id, self.database, Random(self.random.random()), self._starts)
        self.brokers[broker_id] = broker
        broker.member.start()
        return broker

    async def kill(self, broker_id: int) -> None:
        await self.brokers.pop(broker_id).kill()

    async def run_for(self, seconds: float) -> None:
        await self.until(lambda: False, seconds, is_expected=False)

    async def until(self, condition: Callable[[], bool], within_s: float, *, is_expected: bool = True) -> float:
        """Returns how long it took."""
        began = self._loop.time()
        while not condition():
            passed = self._loop.time() - began
            if passed >= within_s:
                assert not is_expected, f"not within {within_s} s: {self.unowned()}"
                break
            self.check()
            await asyncio.sleep(0.05)
        self.check()
        return self._loop.time() - began

    def things(self) -> list[Thing]:
        return [CONTROLLER, *SHARD_LEASES, *self.database.leaders]

    def unowned(self) -> list[Thing]:
        """What is not claimed by the broker that owns it."""
        claims = {broker_id: broker.claims() for broker_id, broker in self.brokers.items()}
        found = []
        for thing in self.things():
            owner = self.database.owner(thing)
            if owner.broker_id == NOBODY or claims.get(owner.broker_id, {}).get(thing) != owner.epoch:
                found.append(thing)
        return found

    def is_whole(self) -> bool:
        return not self.unowned()

    def check(self) -> None:
        now = self._loop.time()
        claimed: dict[tuple[Thing, int], int] = {}
        for process, broker in self.brokers.items():
            broker_id = broker.broker_id
            for thing, epoch in broker.claims().items():
                other = claimed.setdefault((thing, epoch), process)
                assert other == process, f"brokers {other} and {broker_id} claim {thing!r} at epoch {epoch}"
                owner = self.database.owner(thing)
                if (owner.broker_id, owner.epoch) == (broker_id, epoch):
                    continue
                if thing not in self.database.leaders and not isinstance(thing, str):
                    continue  # the topic was deleted
                ended = owner.ended[broker_id, epoch]
                assert now - ended <= TIMING.fence_after, f"broker {broker_id} claims {thing!r}, lost at {ended}"
            if not broker.is_dead:
                mine = broker.ownership.mine
                assert broker.told == all_of(mine)

    def owned_by(self, broker_id: int) -> list[Thing]:
        return [thing for thing in self.things() if self.database.owner(thing).broker_id == broker_id]

    def leaders(self) -> dict[Partition, int]:
        return {place: owned.broker_id for place, owned in self.database.leaders.items()}

    async def end(self) -> None:
        for broker in self.brokers.values():
            await broker.kill()
