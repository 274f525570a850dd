"""`SharedStore`: the `LogStore` of a broker in a cluster. The logs that this broker leads are in its memory; the data
is in an object store, and the database says what of it counts.
"""

import time
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from uuid import UUID, uuid4

from tidelog.errors import InvalidInput, LogClosed, StorageError, TidelogError, fresh
from tidelog.model import (
    FIRST_LEADER_EPOCH,
    LeaderEpoch,
    PartitionIdentity,
    TimestampMs,
    TopicIdentity,
    TopicPartition,
)
from tidelog.promise import Promise
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.log import LogStore, MemoryUse, PartitionLog, Place, Stray, UpkeepPolicy
from tidelog.storage.shared.blocks import BlockCache
from tidelog.storage.shared.compaction import Compactor
from tidelog.storage.shared.garbage import Garbage, GarbageSettings
from tidelog.storage.shared.log import Shared, SharedLog
from tidelog.storage.shared.merging import Merger, MergeSettings
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import KnownLog, Leader, Order, UnknownLog
from tidelog.storage.shared.reading import ColdReader
from tidelog.storage.shared.tasks import Tasks
from tidelog.storage.shared.upkeep import SharedUpkeep, UpkeepSettings
from tidelog.storage.shared.writer import Writer, WriterSettings
from tidelog.storage.tail import TailCache

_PATIENCE_S = 10.0  # for what is not committed when the store is closed
# Requests to the object store at the same time, each with a connection or a file, and connections to the database.
_MOST_DESCRIPTORS = 64
_BLOCK_CACHE_BYTES = 64 << 20


def wall_clock_ms() -> TimestampMs:
    return time.time_ns() // 1_000_000


class SharedStore(LogStore):
    """Must be made inside a running event loop. It uses `order` and `objects`, and does not close them."""

    def __init__(
        self,
        order: Order,
        objects: ObjectStore,
        broker_id: int,
        settings: StorageSettings | None = None,
        writing: WriterSettings | None = None,
        *,
        upkeep: UpkeepSettings | None = None,
        merging: MergeSettings | None = None,
        collecting: GarbageSettings | None = None,
        block_cache_bytes: int = _BLOCK_CACHE_BYTES,
        is_collector: Callable[[], bool] = lambda: True,
        clock: Callable[[], TimestampMs] = wall_clock_ms,
        unique: Callable[[], UUID] = uuid4,
    ) -> None:
        """`is_collector`: whether this broker removes garbage at the moment, for the whole cluster."""
        settings = settings or StorageSettings()
        self._order = order
        self._objects = objects
        self._broker_id = broker_id
        self._clock = clock
        self._writer = Writer(objects, order, broker_id, writing or WriterSettings(), clock=clock, unique=unique)
        self._tails = TailCache(settings.tail_cache_bytes, is_over_files=False)
        self._blocks = BlockCache(objects, block_cache_bytes)
        reader = ColdReader(objects, self._blocks)
        self._shared = Shared(order, self._writer, reader, self._tails, broker_id, clock)
        merging = merging or MergeSettings()
        self.merger = Merger(objects, merging, clock=clock, unique=unique)
        self.compactor = Compactor(objects, merging.steps[-1], clock=clock, unique=unique)
        self.garbage = Garbage(order, objects, collecting or GarbageSettings(), clock=clock)
        self._is_collector = is_collector
        self._upkeep_settings = upkeep or UpkeepSettings()
        self._logs: dict[PartitionIdentity, SharedLog] = {}
        self._opening: dict[PartitionIdentity, _Opening] = {}
        self._tasks = Tasks()
        self._upkeep: SharedUpkeep | None = None

    # Logs

    async def create(self, partitions: Sequence[PartitionIdentity], now_ms: TimestampMs) -> None:  # noqa: ARG002
        for partition in partitions:
            _check_name(partition)
        await self._order.create(partitions)

    def open(
        self,
        partition: PartitionIdentity,
        settings: LogSettings,
        now_ms: TimestampMs,  # noqa: ARG002  (of the time of an opening nothing depends)
        *,
        leader_epoch: LeaderEpoch = FIRST_LEADER_EPOCH,
    ) -> SharedLog | Promise[PartitionLog]:
        _check_name(partition)
        log = self._logs.get(partition)
        if log is not None and log.leader_epoch < leader_epoch:  # it cannot be written to any more
            self.release([partition])
        elif log is not None:
            return log
        opening = self._opening.get(partition)
        if opening is None or opening.leader_epoch < leader_epoch:
            opening = self._opening[partition] = _Opening(leader_epoch)
            loaded = self._tasks.promise(self._load(partition, Leader(self._broker_id, leader_epoch)))
            loaded.when_done(partial(self._loaded, partition, settings, opening))
        return opening.wait()

    async def _load(self, partition: PartitionIdentity, leader: Leader) -> tuple[LeaderEpoch, KnownLog]:
        await self._writer.undecided_is_over(partition)
        try:
            known = await self._order.load(partition, leader)
        except UnknownLog:
            await self._order.create([partition])
            known = await self._order.load(partition, leader)
        return leader.epoch, known

    def _loaded(
        self,
        partition: PartitionIdentity,
        settings: LogSettings,
        opening: "_Opening",
        known: tuple[LeaderEpoch, KnownLog] | None,
        error: Exception | None,
    ) -> None:
        if self._opening.get(partition) is not opening:
            opening.fail(LogClosed(f"{partition.name} was released while it was opened"))
            return
        del self._opening[partition]
        if known is not None:
            try:
                log = self._logs[partition] = SharedLog(self._shared, partition, settings, *known)
            except StorageError as damaged:
                error = damaged
            else:
                opening.settle(log)
                return
        opening.fail(error or StorageError(f"cannot open {partition.name}"))

    def release(self, partitions: Iterable[PartitionIdentity]) -> None:
        for partition in partitions:
            self._opening.pop(partition, None)
            log = self._logs.pop(partition, None)
            if log is not None:
                log.release()

    def logs(self) -> list[SharedLog]:
        """The open logs."""
        return list(self._logs.values())

    # Topics as a whole

    async def delete(self, topic: TopicIdentity) -> None:
        await self._order.delete(topic.topic_id, self._clock())

    async def adopt(self, topics: Iterable[TopicIdentity]) -> int:  # noqa: ARG002
        """No earlier version had this engine."""
        return 0

    async def strays(self, known: Container[bytes]) -> list[Stray]:
        return [
            Stray(f"topic {name} with id {topic_id.hex()} in the database", TopicIdentity(name, topic_id), is_unused)
            for topic_id, name, is_unused in await self._order.topics()
            if topic_id not in known
        ]

    # What it uses

    def place(self) -> Place:
        return Place(self._objects.place)

    @property
    def memory(self) -> list[MemoryUse]:
        return [self._tails.memory, self._writer.memory, self._blocks.memory]

    @property
    def max_descriptors(self) -> int:
        return _MOST_DESCRIPTORS

    # Upkeep

    def start_upkeep(self, policy: UpkeepPolicy) -> None:
        assert self._upkeep is None, "it was started already"
        self._upkeep = SharedUpkeep(
            self._logs,
            policy,
            self._upkeep_settings,
            self.merger,
            self.compactor,
            self.garbage,
            self._is_collector,
            lambda: self._writer.is_busy,
        )

    async def stop_upkeep(self) -> None:
        upkeep, self._upkeep = self._upkeep, None
        if upkeep is not None:
            await upkeep.close()

    # The end

    async def close(self) -> dict[TopicPartition, TidelogError]:
        await self.stop_upkeep()
        await self._writer.close(_PATIENCE_S)
        logs = self.logs()
        self._logs.clear()
        self._opening.clear()
        failures: dict[TopicPartition, TidelogError] = {
            log.partition: StorageError(
                f"appends to {log.partition} could not be committed before the broker stopped"
            )
            for log in logs
            if log.has_unsaved
        }
        self._tasks.end(lambda: LogClosed("the store is closed"))
        for log in logs:
            log.release()
        for log in logs:
            await log.released()
        await self._tasks.ended()
        await self._blocks.close()
        return failures


class _Opening:
    """Everyone who waits for the same log."""

    def __init__(self, leader_epoch: LeaderEpoch) -> None:
        self.leader_epoch = leader_epoch
        self._waiting: list[Promise[PartitionLog]] = []

    def wait(self) -> Promise[PartitionLog]:
        promise: Promise[PartitionLog] = Promise()
        self._waiting.append(promise)
        return promise

    def settle(self, log: SharedLog) -> None:
        for promise in self._waiting:
            promise.settle(log)

    def fail(self, error: Exception) -> None:
        for promise in self._waiting:
            promise.fail(fresh(error))


def _check_name(partition: PartitionIdentity) -> None:
    if not partition.is_valid:
        raise InvalidInput(f"{partition.topic.name!r} partition {partition.number} is not a valid name")
