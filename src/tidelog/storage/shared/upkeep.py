"""What a broker does in the background for the logs that it leads: retention, merging, compaction, and removing
garbage."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog

from tidelog.model import PartitionIdentity
from tidelog.storage.cleaner import Cleaner
from tidelog.storage.log import UpkeepPolicy
from tidelog.storage.retention import UpkeepLoop
from tidelog.storage.shared.compaction import Compactor
from tidelog.storage.shared.garbage import Garbage
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.merging import Merger
from tidelog.storage.trouble import Trouble

logger = structlog.get_logger("tidelog.storage")


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    merge_interval_ms: int = 5_000
    garbage_interval_ms: int = 60_000
    sweep_interval_ms: int = 3_600_000
    """Time between two searches for orphans, which list the whole object store."""


class SharedUpkeep:
    """Made inside a running event loop; `close` it before the logs are closed. `is_collector`: whether this broker
    removes garbage, for the whole cluster. `is_busy`: whether producers need all that the object store can do."""

    def __init__(
        self,
        logs: Mapping[PartitionIdentity, SharedLog],
        policy: UpkeepPolicy,
        settings: UpkeepSettings,
        merger: Merger,
        compactor: Compactor,
        garbage: Garbage,
        is_collector: Callable[[], bool],
        is_busy: Callable[[], bool],
    ) -> None:
        self._logs = logs
        self._merger = merger
        self._garbage = garbage
        self._is_collector = is_collector
        self._is_busy = is_busy
        self._merges = Trouble(logger, bad="extents could not be merged", good="extents are merged again")
        self._others = Trouble(logger, bad="garbage could not be removed", good="garbage is removed again")
        self._retention = UpkeepLoop(logs, policy)
        self._cleaner: Cleaner | None = None
        if policy.cleaner_threads:
            self._cleaner = Cleaner(
                lambda: compactor.compactions(logs.values()), policy.cleaner, threads=policy.cleaner_threads
            )
        self._tasks = [
            asyncio.create_task(_every(settings.merge_interval_ms, self._merge)),
            asyncio.create_task(_every(settings.garbage_interval_ms, self._collect)),
            asyncio.create_task(_every(settings.sweep_interval_ms, self._sweep)),
        ]

    async def close(self) -> None:
        if self._cleaner is not None:
            await self._cleaner.close()
        await self._retention.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _merge(self) -> None:
        """A failure of one log must not stop the others."""
        self._merges.forget_others(self._logs)
        for partition, log in list(self._logs.items()):
            try:
                while self._logs.get(partition) is log and log.fault is None and self._may_merge(log):
                    if not await self._merger.merge(log):
                        break
                self._merges.worked(partition, partition=str(partition.name))
            except Exception as error:
                if log.fault is None:  # otherwise the log has said why
                    self._merges.failed(partition, error, partition=str(partition.name))

    def _may_merge(self, log: SharedLog) -> bool:
        """Merging can wait until the object store has less to do, but not for ever."""
        return not self._is_busy() or self._merger.is_urgent(log)

    async def _collect(self) -> None:
        await self._as_collector(self._garbage.collect, "removing dead objects")

    async def _sweep(self) -> None:
        await self._as_collector(self._garbage.sweep, "searching for orphans")

    async def _as_collector(self, work: Callable[[], Awaitable[int]], what: str) -> None:
        if not self._is_collector():
            return
        try:
            count = await work()
        except Exception as error:  # even a bug must not end it for good
            self._others.failed(what, error, work=what)
            return
        self._others.worked(what, work=what)
        if count:
            logger.info("garbage", work=what, objects=count)


async def _every(interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(interval_ms / 1000)
        await work()
