"""A slow log store, like one over a network: a local store whose logs are opened late. It has no methods besides
those of `LogStore`."""

import asyncio
from collections.abc import Container, Iterable, Sequence
from enum import Enum

from tidelog.errors import LogClosed, TidelogError
from tidelog.model import (
    FIRST_LEADER_EPOCH,
    LeaderEpoch,
    PartitionIdentity,
    TimestampMs,
    TopicIdentity,
    TopicPartition,
)
from tidelog.promise import Promise
from tidelog.settings import LogSettings
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import LogStore, MemoryUse, PartitionLog, Place, Stray, UpkeepPolicy


class Pace(Enum):
    NOW = "now"
    SOON = "soon"  # in the next iteration of the event loop
    HELD = "held"  # when `let_come` is called


class LateStore(LogStore):
    def __init__(self, store: LocalStore, pace: Pace = Pace.SOON) -> None:
        self.pace = pace
        self.asked: list[PartitionIdentity] = []
        self._store = store
        self._coming: dict[PartitionIdentity, tuple[Promise[PartitionLog], LogSettings, TimestampMs]] = {}

    async def create(self, partitions: Sequence[PartitionIdentity], now_ms: TimestampMs) -> None:
        await self._store.create(partitions, now_ms)

    def open(
        self,
        partition: PartitionIdentity,
        settings: LogSettings,
        now_ms: TimestampMs,
        *,
        leader_epoch: LeaderEpoch = FIRST_LEADER_EPOCH,
    ) -> PartitionLog | Promise[PartitionLog]:
        self.asked.append(partition)
        if self.pace is Pace.NOW:
            return self._store.open(partition, settings, now_ms)
        promise: Promise[PartitionLog] = Promise()
        self._coming[partition] = (promise, settings, now_ms)
        if self.pace is Pace.SOON:
            asyncio.get_running_loop().call_soon(self._come, partition)
        return promise

    def let_come(self) -> None:
        for partition in list(self._coming):
            self._come(partition)

    def _come(self, partition: PartitionIdentity) -> None:
        coming = self._coming.pop(partition, None)
        if coming is None:
            return
        promise, settings, now_ms = coming
        try:
            opened = self._store.open(partition, settings, now_ms)
        except TidelogError as error:
            promise.fail(error)
        else:
            promise.settle(opened)

    def release(self, partitions: Iterable[PartitionIdentity]) -> None:
        partitions = list(partitions)
        for partition in partitions:
            coming = self._coming.pop(partition, None)
            if coming is not None:
                coming[0].fail(LogClosed(f"{partition.name} is closed"))
        self._store.release(partitions)

    async def delete(self, topic: TopicIdentity) -> None:
        await self._store.delete(topic)

    async def adopt(self, topics: Iterable[TopicIdentity]) -> int:
        return await self._store.adopt(topics)

    async def strays(self, known: Container[bytes]) -> list[Stray]:
        return await self._store.strays(known)

    def start_upkeep(self, policy: UpkeepPolicy) -> None:
        self._store.start_upkeep(policy)

    async def stop_upkeep(self) -> None:
        await self._store.stop_upkeep()

    def place(self) -> Place:
        return self._store.place()

    @property
    def memory(self) -> list[MemoryUse]:
        return self._store.memory

    @property
    def max_descriptors(self) -> int:
        return self._store.max_descriptors

    async def close(self) -> dict[TopicPartition, TidelogError]:
        return await self._store.close()
