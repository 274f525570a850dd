"""The regular upkeep of a store's logs, for every engine: deletes what is too old or too much, forgets idle
producers."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import structlog

from tidelog.errors import LogClosed, TidelogError
from tidelog.model import Offset, PartitionIdentity, TimestampMs, TopicPartition
from tidelog.promise import Promise
from tidelog.storage.log import UpkeepPolicy
from tidelog.storage.trouble import Trouble


class RetainedLog(Protocol):
    @property
    def partition(self) -> TopicPartition: ...

    def retain(self, now_ms: TimestampMs, *, keep_from: Offset | None = None) -> Promise[Offset] | None:
        """Delete the oldest records if they are too old or the log is too large, but no record from `keep_from` on.
        Returns the promise of the new start, or None if there is nothing to delete."""


Logs: TypeAlias = Mapping[PartitionIdentity, RetainedLog]
"""The open logs. Logs may be added and removed while the upkeep runs."""
KeepFrom: TypeAlias = Callable[[TopicPartition], Offset | None]
Failures: TypeAlias = dict[TopicPartition, Exception]

_KEPT_UP_AT_ONCE = 50  # partitions for each loop iteration, about 10 ms

logger = structlog.get_logger("tidelog.storage")


def keep_up(logs: Logs, now_ms: TimestampMs, keep_from: KeepFrom) -> Failures:
    """One run of upkeep, without an event loop. `keep_from` returns the offset from which on retention must keep all
    records, or None. Returns the failures, by partition: a partition that fails does not stop the others."""
    turn = _Turn(now_ms, keep_from)
    for log in logs.values():
        turn.begin(log)
    for partition, moved in turn.deletions:
        try:
            moved.result()
        except TidelogError as error:
            turn.failures[partition] = error
    return turn.failures


async def keep_up_in_steps(logs: Logs, now_ms: TimestampMs, keep_from: KeepFrom) -> Failures:
    """The same, but yields to the event loop in between: the first run after a start reads every index."""
    turn = _Turn(now_ms, keep_from)
    for done, (partition, log) in enumerate(list(logs.items()), 1):
        if logs.get(partition) is log:
            turn.begin(log)
        if done % _KEPT_UP_AT_ONCE == 0:
            await asyncio.sleep(0)
    for name, moved in turn.deletions:
        try:
            await moved
        except LogClosed:
            pass  # deleted meanwhile
        except TidelogError as error:
            turn.failures[name] = error
    return turn.failures


class UpkeepLoop:
    """Made inside a running event loop; `close` it before the logs are closed."""

    def __init__(self, logs: Logs, policy: UpkeepPolicy) -> None:
        self._logs = logs
        self._policy = policy
        self._trouble = Trouble(logger, bad="upkeep failed", good="upkeep works again")
        self._own_trouble = Trouble(
            logger, bad="upkeep failed for all partitions", good="upkeep of all partitions works again"
        )
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        """A failure of one run must not end the loop."""
        while True:
            await asyncio.sleep(self._policy.interval_ms() / 1000)
            try:
                failures = await keep_up_in_steps(self._logs, time.time_ns() // 1_000_000, self._policy.keep_from)
                self._own_trouble.worked(self)
            except Exception as error:
                self._own_trouble.failed(self, error)
                continue
            partitions = {log.partition for log in self._logs.values()}
            self._trouble.forget_others(partitions)
            for partition in partitions:
                if partition in failures:
                    self._trouble.failed(partition, failures[partition], partition=str(partition))
                else:
                    self._trouble.worked(partition, partition=str(partition))


class _Turn:
    def __init__(self, now_ms: TimestampMs, keep_from: KeepFrom) -> None:
        self._now_ms = now_ms
        self._keep_from = keep_from
        self.deletions: list[tuple[TopicPartition, Promise[Offset]]] = []
        self.failures: Failures = {}

    def begin(self, log: RetainedLog) -> None:
        """A failure of one log, even a bug of ours, must not stop the upkeep of the others."""
        try:
            moved = log.retain(self._now_ms, keep_from=self._keep_from(log.partition))
        except Exception as error:
            self.failures[log.partition] = error
        else:
            if moved is not None:
                self.deletions.append((log.partition, moved))
