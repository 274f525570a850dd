"""A simulated cluster: brokers with the real code of logs, writers and stores, over a database and an object store in
memory; a controller that moves leaders; and what happens to all of them."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from tests.simulation.faults import Process, SimulatedObjects, Weather
from tests.simulation.history import History, key_of, need
from tests.support.fake_order import FakeDatabase, FakeOrder
from tests.support.faulty_objects import MemoryObjects
from tests.support.logs import NOW_MS, stored
from tidelog.errors import OffsetOutOfRange, TidelogError
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, TimestampMs
from tidelog.promise import Promise
from tidelog.settings import CleanerSettings, CompactionSettings, LogSettings, StorageSettings
from tidelog.storage.compaction import Throttle
from tidelog.storage.shared.garbage import MOST_SKEW_MS, GarbageSettings
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.merging import MergeSettings
from tidelog.storage.shared.store import SharedStore
from tidelog.storage.shared.writer import WriterSettings

if TYPE_CHECKING:
    from tidelog.storage.shared.objects import ObjectStore
    from tidelog.storage.shared.order import Order

T = TypeVar("T")

_SKEW_MS = MOST_SKEW_MS  # between the clocks of a broker and the database
_LOG_SETTINGS = LogSettings(retention_ms=-1)
_COMPACTED = LogSettings(
    segment_bytes=1024, segment_ms=1, retention_ms=-1, compaction=CompactionSettings(delete_retention_ms=1000)
)


@dataclass(frozen=True)
class Plan:
    """What is simulated. The kinds are exchanged by tests that plant bugs."""

    brokers: int = 3
    partitions: int = 2
    idempotent: int = 2
    transactional: int = 2
    plain: int = 1
    storm: float = 0.06
    chaos_s: float = 12.0
    compacted: bool = False
    database: Callable[[], FakeDatabase] = FakeDatabase
    store: Callable[..., SharedStore] = SharedStore


class Broker:
    """One life of a broker. After a crash its memory goes on existing, but cannot reach anybody any more."""

    def __init__(self, world: "World", broker_id: int) -> None:
        self.broker_id = broker_id
        self.process = Process(world.weather)
        self._world = world
        self._skew_ms = world.chance.randint(-_SKEW_MS, _SKEW_MS)
        self.objects: ObjectStore = SimulatedObjects(world.objects, self.process, world.weather)
        self.order: Order = FakeOrder(world.database, self.process.order_hook)
        self.store = world.plan.store(
            self.order,
            self.objects,
            broker_id,
            StorageSettings(tail_cache_bytes=world.chance.choice([0, 2000, 1 << 20])),
            WriterSettings(
                linger_ms=world.chance.choice([0, 5, 50]),
                bundle_bytes=world.chance.choice([300, 1 << 20]),
                uploads=world.chance.choice([1, 2, 4]),
                buffer_bytes=world.chance.choice([2000, 1 << 20]),
                append_timeout_ms=2000,
            ),
            merging=MergeSettings(fan_in=3, steps=(300, 1500, 6000), most_extents=8),
            collecting=GarbageSettings(
                grace_ms=world.chance.choice([0, 3000]), orphan_ms=world.chance.choice([0, 10_000, 2 * _SKEW_MS])
            ),
            block_cache_bytes=world.chance.choice([0, 1 << 20]),
            clock=self.clock,
            unique=world.unique,
        )
        self.logs: dict[PartitionIdentity, SharedLog] = {}
        self.log_settings = _COMPACTED if world.plan.compacted else _LOG_SETTINGS

    def clock(self) -> TimestampMs:
        return self._world.now_ms() + self._skew_ms


class World:
    def __init__(self, seed: int, plan: Plan) -> None:
        self.plan = plan
        self.chance = random.Random(seed)
        self.weather = Weather(self.chance, plan.storm)
        self.database = plan.database()
        self.database.clock = self.now_ms
        self.objects = _CheckedObjects(self)
        self.history = History(is_compacted=plan.compacted)
        self.partitions = [stored("t", number) for number in range(plan.partitions)]
        self.database.create(self.partitions)
        self.brokers = [Broker(self, number) for number in range(plan.brokers)]
        self.leaders: dict[PartitionIdentity, tuple[Broker, LeaderEpoch]] = {}
        self._ends: dict[SharedLog, Offset] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        for partition in self.partitions:
            self.lead(partition, self.chance.choice(self.brokers))

    def now_ms(self) -> int:
        return NOW_MS + int(asyncio.get_running_loop().time() * 1000)

    def key_of(self, value: bytes) -> bytes | None:
        return key_of(value) if self.plan.compacted else None

    def unique(self) -> UUID:
        return UUID(int=self.chance.getrandbits(128))

    # The controller

    def lead(self, partition: PartitionIdentity, broker: Broker) -> None:
        """Make a broker the leader. It and the one before learn of it later."""
        before = self.leaders.get(partition)
        [epoch] = self.database.take_over([partition], broker.broker_id)
        self.leaders[partition] = (broker, epoch)
        self._start(self._install(partition, broker, epoch))
        if before is not None and before[0] is not broker:
            self._start(self._retire(partition, before[0], before[0].logs.get(partition)))

    async def _install(self, partition: PartitionIdentity, broker: Broker, epoch: LeaderEpoch) -> None:
        await asyncio.sleep(self.weather.delay_s())
        while self.leaders[partition] == (broker, epoch):
            await broker.process.go_on()
            if broker.logs.pop(partition, None) is not None:
                broker.store.release([partition])
            try:
                opened = await _open(broker, partition, epoch)
            except TidelogError:
                await asyncio.sleep(0.2)
                continue
            if opened.leader_epoch == epoch:
                broker.logs[partition] = opened
                return
            broker.store.release([partition])

    async def _retire(self, partition: PartitionIdentity, broker: Broker, log: SharedLog | None) -> None:
        await asyncio.sleep(self.chance.uniform(0, 4))
        await broker.process.go_on()
        if log is not None and broker.logs.get(partition) is log and self.leaders[partition][0] is not broker:
            del broker.logs[partition]
            broker.store.release([partition])

    # What happens

    async def chaos(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self.plan.chaos_s
        while loop.time() < until:
            await asyncio.sleep(self.chance.uniform(0.05, 1.2))
            happening: Callable[[], None] = self.chance.choice(
                [
                    *(self._move, self._move, self._crash, self._pause, self._delete),
                    *(self._merge, self._merge, self._collect, self._sweep),
                    *([self._compact] * 8 if self.plan.compacted else []),
                ]
            )
            happening()
        self.weather.storm = 0
        for broker in self.brokers:
            broker.process.resume()

    def _move(self) -> None:
        self.lead(self.chance.choice(self.partitions), self.chance.choice(self.brokers))

    def _crash(self) -> None:
        number = self.chance.randrange(len(self.brokers))
        dead = self.brokers[number]
        dead.process.crash()
        dead.process.resume()
        self.brokers[number] = Broker(self, dead.broker_id)
        for partition, (leader, _) in list(self.leaders.items()):
            if leader is dead:
                self.lead(partition, self.chance.choice(self.brokers))

    def _pause(self) -> None:
        process = self.chance.choice(self.brokers).process
        process.pause()
        asyncio.get_running_loop().call_later(self.chance.uniform(0.1, 5), process.resume)

    def _delete(self) -> None:
        partition = self.chance.choice(self.partitions)
        broker, _ = self.leaders[partition]
        log = broker.logs.get(partition)
        if log is None or not broker.process.is_alive:
            return
        offset = self.chance.randint(log.start_offset, max(log.start_offset, log.end_offset // 2))
        self.history.deleted_up_to[partition] = max(self.history.deleted_up_to[partition], offset)
        try:
            self._start(_tolerated(log.delete_before(offset)))
        except (TidelogError, OffsetOutOfRange):
            pass

    def _merge(self) -> None:
        """By all who believe that they are the leader."""
        for broker in self.brokers:
            for log in broker.logs.values():
                self._start(_tolerated(broker.store.merger.merge(log)))

    def _compact(self) -> None:
        """By all who believe that they are the leader. A pass may be stopped at any time."""
        cleaner = CleanerSettings(dedupe_buffer_bytes=self.chance.choice([1000, 1 << 20]))
        for broker in self.brokers:
            for compaction in broker.store.compactor.compactions(broker.logs.values()):
                current = compaction.begin_pass(broker.clock(), cleaner, Throttle())
                if current is not None:
                    self._start(_tolerated(current.run(_at_once)))
                    if self.chance.random() < 0.2:
                        asyncio.get_running_loop().call_later(self.chance.uniform(0, 0.2), current.halt)

    def _collect(self) -> None:
        self._start(_tolerated(self.chance.choice(self.brokers).store.garbage.collect()))

    def _sweep(self) -> None:
        self._start(_tolerated(self.chance.choice(self.brokers).store.garbage.sweep()))

    # What clients do

    def _choose(self, partition: PartitionIdentity, *, may_be_old: bool) -> tuple[Broker, SharedLog] | None:
        """The leader, or sometimes a broker that was, as clients with old metadata do."""
        broker, _ = self.leaders[partition]
        if may_be_old and self.weather.strikes(4):
            broker = self.chance.choice(self.brokers)
        log = broker.logs.get(partition)
        return None if log is None or not broker.process.is_alive else (broker, log)

    async def call(
        self, partition: PartitionIdentity, ask: Callable[[SharedLog], Awaitable[T]], *, may_be_old: bool = True
    ) -> T:
        """Ask a broker. TimeoutError: no answer, and nobody knows what it did."""
        async with asyncio.timeout(self.chance.choice([1.0, 4.0])):
            while (chosen := self._choose(partition, may_be_old=may_be_old)) is None:
                await asyncio.sleep(0.05)
            broker, log = chosen
            await asyncio.sleep(self.weather.delay_s())
            await broker.process.go_on()
            answer = await ask(log)
            await broker.process.go_on()
            await asyncio.sleep(self.weather.delay_s())
            return answer

    def high_watermark(self, partition: PartitionIdentity) -> Offset:
        return self._known(partition)[1]

    def _known(self, partition: PartitionIdentity) -> tuple[Offset, Offset]:
        log = self.database._of(partition)
        return log.start_offset, log.high_watermark

    async def opened_anew(self, partition: PartitionIdentity) -> SharedLog:
        """The log, as a broker has it that was never its leader."""
        broker = Broker(self, len(self.brokers))
        [epoch] = self.database.take_over([partition], broker.broker_id)
        return await _open(broker, partition, epoch)

    # Watching

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(self.chance.uniform(0.02, 0.3))
            self.check()

    def check(self) -> None:
        """What must be true at any moment."""
        self.database.check()
        for key in self.needed_objects():
            need(key in self.objects.objects, f"a log needs {key}, which is not there")
        for broker in self.brokers:
            for partition, log in broker.logs.items():
                start, end = self._known(partition)
                need(log.end_offset <= end, f"{partition.name}: the leader shows {log.end_offset}, there is {end}")
                need(log.start_offset <= start, f"{partition.name}: the leader's start is ahead")
                need(log.end_offset >= self._ends.get(log, 0), f"{partition.name}: the end went back")
                need(log.last_stable_offset <= log.end_offset, f"{partition.name}: unstable")
                self._ends[log] = log.end_offset

    def needed_objects(self) -> set[str]:
        return {extent.key for log in self.database._logs.values() for extent in log.extents}

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _CheckedObjects(MemoryObjects):
    """Notices when something is removed that a log needs."""

    def __init__(self, world: World) -> None:
        super().__init__(world.now_ms)
        self._world = world

    async def remove(self, keys: Iterable[str]) -> None:
        removed: Sequence[str] = list(keys)
        for key in removed:
            need(key not in self._world.needed_objects(), f"{key} is removed, but a log needs it")
        await super().remove(removed)


async def _open(broker: Broker, partition: PartitionIdentity, epoch: LeaderEpoch) -> SharedLog:
    opening = broker.store.open(partition, broker.log_settings, broker.clock(), leader_epoch=epoch)
    opened = await opening if isinstance(opening, Promise) else opening
    assert isinstance(opened, SharedLog)
    return opened


async def _at_once(work: Callable[[], T]) -> T:
    return work()


async def _tolerated(work: Awaitable[object]) -> None:
    try:
        await work
    except TidelogError:
        pass
