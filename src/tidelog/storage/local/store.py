"""`LocalStore`: the `LogStore` that keeps logs in a data directory. It holds the directory's lock, creates, opens and
deletes partitions, and runs their upkeep (`../retention.py`, `../cleaner.py`). The layout of the
directory is in `layout.py`.

Methods named `..._now` do the same synchronously, for callers without an event loop.
"""

import asyncio
import contextlib
import math
import os
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import structlog

from tidelog.errors import InvalidInput, StorageError, TidelogError
from tidelog.model import (
    FIRST_LEADER_EPOCH,
    LeaderEpoch,
    PartitionIdentity,
    TimestampMs,
    TopicIdentity,
    TopicPartition,
    is_topic_name,
)
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.cleaner import Cleaner
from tidelog.storage.local.checkpoint import CHECKPOINT
from tidelog.storage.local.cold import ColdReads
from tidelog.storage.local.commit import GroupCommit, InlineCommit, SyncWay
from tidelog.storage.local.compaction import LogCompaction
from tidelog.storage.local.files import TEMPORARY, Files, OsFiles, remove_tree, storage_error
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.layout import DELETED, LOCK, LOGS, partition_directory, topic_directory, topic_of
from tidelog.storage.local.log import LocalLog, Shared
from tidelog.storage.local.recovery import make_new
from tidelog.storage.local.segment import LOG, segment_name
from tidelog.storage.log import LogStore, MemoryUse, Place, Stray, UpkeepPolicy
from tidelog.storage.retention import Failures, KeepFrom, UpkeepLoop, keep_up, keep_up_in_steps
from tidelog.storage.tail import TailCache

P = ParamSpec("P")
T = TypeVar("T")

_PARTITION_DELETED = ".deleted"  # suffix that earlier versions gave to a partition that was being deleted
_CHECKPOINTS_S = 0.3
_COLD_READERS = 4  # threads that wait for the disk
_FEW = 32  # up to so many checkpoints are always written, without a time limit
_DESCRIPTORS_PER_SEGMENT = 3  # the log and two indexes

logger = structlog.get_logger("tidelog.storage")


class LocalStore(LogStore):
    """Must be made inside a running event loop, and then uses group commit. With `inline` no loop is needed, and the
    calling thread syncs."""

    def __init__(
        self,
        directory: str,
        settings: StorageSettings | None = None,
        *,
        files: Files | None = None,
        inline: bool = False,
    ) -> None:
        settings = settings or StorageSettings()
        self.directory = directory.rstrip("/") or "/"
        self._root = f"{self.directory}/{LOGS}"
        self._files: Files = files or OsFiles()
        try:
            self._files.make_directories(self._root)
            self._lock = self._files.lock(f"{self.directory}/{LOCK}", f"process {os.getpid()}\n")
            leftovers = self._leftovers()
        except OSError as error:
            raise storage_error(error, f"use {self.directory} as data directory") from error
        self._group = None if inline else GroupCommit(self._files, self._root, settings.flush_threads)
        self._threads = settings.flush_threads
        self._open_segments = _affordable_segments(settings.open_segments)
        self._shared = Shared(
            self._files,
            HandlePool(self._open_segments),
            TailCache(settings.tail_cache_bytes),
            self._group or InlineCommit(),
            None if inline else ColdReads(self._files, _COLD_READERS),
        )
        self._logs: dict[PartitionIdentity, LocalLog] = {}
        self._upkeep: UpkeepLoop | None = None
        self._cleaner: Cleaner | None = None
        self._wishes: list[_Wish] = []
        self._is_closing = False
        self._making = asyncio.Lock()
        self._maker, self._remover = (
            None if inline else ThreadPoolExecutor(1, thread_name_prefix=f"tidelog-{work}")
            for work in ("make", "remove")
        )
        for path in leftovers:
            if self._remover is None:
                self._remove_leftover(path)
            else:
                self._remover.submit(self._remove_leftover, path)

    def open(
        self,
        partition: PartitionIdentity,
        settings: LogSettings,
        now_ms: TimestampMs,
        *,
        leader_epoch: LeaderEpoch = FIRST_LEADER_EPOCH,  # noqa: ARG002  (only one broker uses a data directory)
    ) -> LocalLog:
        log = self._logs.get(partition)
        if log is None:
            directory = self._directory_of(partition)
            try:
                self._files.make_directories(directory)
            except OSError as error:
                raise storage_error(error, f"create {partition.name}") from error
            log = self._logs[partition] = LocalLog(self._shared, directory, partition.name, settings, now_ms)
            for line in log.recovery.lines():
                logger.warning("recovered", partition=str(partition.name), what=line)
        return log

    def logs(self) -> list[LocalLog]:
        """The open logs."""
        return list(self._logs.values())

    def compactions(self) -> list[LogCompaction]:
        """Those of the open logs."""
        return [log.compaction for log in self._logs.values()]

    @property
    def memory(self) -> list[MemoryUse]:
        return [self._shared.tails.memory]

    @property
    def max_descriptors(self) -> int:
        return self._open_segments * _DESCRIPTORS_PER_SEGMENT

    def place(self) -> Place:
        try:
            total, free = self._files.room(self.directory)
        except OSError as error:
            raise storage_error(error, f"look at {self.directory}") from error
        return Place(os.path.abspath(self.directory), total, free)

    # Topics as a whole

    async def create(self, partitions: Sequence[PartitionIdentity], now_ms: TimestampMs) -> None:
        """Calls that arrive while another one is at work are carried out together."""
        wish = _Wish(list(partitions))
        self._wishes.append(wish)
        async with self._making:
            wishes, self._wishes = self._wishes, []
            if wishes:  # otherwise an earlier call has created our partitions with its own
                await self._in_maker(self._make, wishes, now_ms)
        if wish.error is not None:
            raise wish.error

    def _make(self, wishes: "list[_Wish]", now_ms: TimestampMs) -> None:
        """Runs in the thread. If not all partitions can be created, try call by call: some may succeed."""
        try:
            self.create_now([partition for wish in wishes for partition in wish.partitions], now_ms)
        except Exception as error:  # also a bug of ours: the other callers must not take it for success
            if len(wishes) == 1:
                wishes[0].error = error
                return
            for wish in wishes:
                self._make([wish], now_ms)

    def create_now(self, partitions: Iterable[PartitionIdentity], now_ms: TimestampMs) -> None:
        """Touches only the file system, so any thread may call it."""
        by_topic: defaultdict[str, set[str]] = defaultdict(set)
        for partition in partitions:
            by_topic[os.path.dirname(self._directory_of(partition))].add(str(partition.number))
        missing: list[str] = []
        new: list[str] = []
        try:
            known = {topic.name for topic in self._files.list(self._root)}
            for directory, wanted in by_topic.items():
                if os.path.basename(directory) in known:
                    wanted -= {entry.name for entry in self._files.list(directory)}
                else:
                    new.append(directory)
            missing = [f"{directory}/{number}" for directory, wanted in by_topic.items() for number in wanted]
            make_new(self._files, self._root, missing, now_ms)
        except OSError as error:
            self._give_back(missing, new)
            raise storage_error(error, "make new partitions") from error

    def _give_back(self, partitions: Iterable[str], topics: Iterable[str]) -> None:
        """Remove the directories of partitions that could not be created. Those that cannot be removed hold no
        data."""
        for partition in partitions:
            with contextlib.suppress(OSError):
                remove_tree(self._files, partition)
        for topic in topics:
            with contextlib.suppress(OSError):
                self._files.remove_directory(topic)

    async def adopt(self, topics: Iterable[TopicIdentity]) -> int:
        return await self._in_maker(self.adopt_now, list(topics))

    def adopt_now(self, topics: Iterable[TopicIdentity]) -> int:
        """Earlier versions named a directory by its topic's name alone."""
        try:
            names = {entry.name for entry in self._files.list(self._root)}
            adopted = [topic for topic in topics if topic.name in names and topic_directory(topic) not in names]
            for topic in adopted:
                self._files.rename(f"{self._root}/{topic.name}", f"{self._root}/{topic_directory(topic)}")
            self._files.sync_directory(self._root)  # also for directories that were renamed before a crash
        except OSError as error:
            raise storage_error(error, "rename the directories of topics to the names of this version") from error
        return len(adopted)

    async def strays(self, known: Container[bytes]) -> list[Stray]:
        return await self._in_maker(self.strays_now, known)

    def strays_now(self, known: Container[bytes]) -> list[Stray]:
        """Directories whose name neither this nor an earlier version would give to a topic are left out."""
        found = []
        for directory in self.topic_directories():
            topic = topic_of(directory)
            if topic is None:
                if is_topic_name(directory):
                    found.append(Stray(directory, None, False))
            elif topic.topic_id not in known:
                found.append(Stray(directory, topic, self._is_unused(directory)))
        return found

    def _is_unused(self, directory: str) -> bool:
        """True if nothing was ever written to any partition in this topic's directory."""
        never_used = {CHECKPOINT, CHECKPOINT + TEMPORARY, segment_name(0, LOG)}
        try:
            for partition in self._files.list(f"{self._root}/{directory}"):
                if not partition.is_directory or not partition.name.isdecimal():
                    return False
                for entry in self._files.list(f"{self._root}/{directory}/{partition.name}", sizes=LOG):
                    if entry.name not in never_used or (entry.name.endswith(LOG) and entry.size):
                        return False
        except OSError:
            return False
        return True

    def topic_directories(self) -> list[str]:
        """The names of all directories in `logs`, known topics or not, except those that are being removed."""
        try:
            entries = self._files.list(self._root)
        except OSError as error:
            raise storage_error(error, f"list {self._root}") from error
        return [entry.name for entry in entries if entry.is_directory and not entry.name.startswith(DELETED)]

    def partitions(self) -> list[PartitionIdentity]:
        """All partitions on disk in directories with a topic id, open or not."""
        try:
            return [
                topic.partition(int(partition.name))
                for name in self.topic_directories()
                if (topic := topic_of(name)) is not None
                for partition in self._files.list(f"{self._root}/{name}")
                if partition.is_directory and partition.name.isdecimal()
            ]
        except OSError as error:
            raise storage_error(error, f"list {self._root}") from error

    def release(self, partitions: Iterable[PartitionIdentity]) -> None:
        for partition in partitions:
            log = self._logs.pop(partition, None)
            if log is not None:
                log.abandon()
                if self._group is not None:
                    self._group.forget(log)

    async def delete(self, topic: TopicIdentity) -> None:
        await asyncio.get_running_loop().run_in_executor(self._remover, self.delete_now, topic)

    def delete_now(self, topic: TopicIdentity) -> None:
        """Touches only the file system, so any thread may call it."""
        directory, gone = f"{self._root}/{topic_directory(topic)}", f"{self._root}/{DELETED}{os.urandom(8).hex()}"
        try:
            self._files.rename(directory, gone)  # from here on the old path cannot be written to any more
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, f"remove {directory}") from error
        self._remove(gone)

    def _remove(self, path: str) -> None:
        try:
            self._files.sync_directory(self._root)
            remove_tree(self._files, path, lambda: self._is_closing)
        except OSError as error:
            raise storage_error(error, f"remove {path}") from error

    def _remove_leftover(self, path: str) -> None:
        try:
            self._remove(path)
        except StorageError as error:
            logger.error("cannot remove deleted data; the next start tries again", reason=str(error))

    # Upkeep

    def start_upkeep(self, policy: UpkeepPolicy) -> None:
        assert self._upkeep is None, "it was started already"
        self._upkeep = UpkeepLoop(self._logs, policy)
        if policy.cleaner_threads:
            self._cleaner = Cleaner(self.compactions, policy.cleaner, threads=policy.cleaner_threads)

    async def stop_upkeep(self) -> None:
        upkeep, self._upkeep = self._upkeep, None
        cleaner, self._cleaner = self._cleaner, None
        if upkeep is not None:
            await upkeep.close()
        if cleaner is not None:
            await cleaner.close()

    async def upkeep(self, now_ms: TimestampMs, keep_from: KeepFrom = lambda _: None) -> Failures:
        """One run of upkeep, without compaction."""
        return await keep_up_in_steps(self._logs, now_ms, keep_from)

    def upkeep_now(self, now_ms: TimestampMs, keep_from: KeepFrom = lambda _: None) -> Failures:
        return keep_up(self._logs, now_ms, keep_from)

    # The end

    async def close(self) -> dict[TopicPartition, TidelogError]:
        await self.stop_upkeep()
        self._is_closing = True  # what is left to remove is removed at the next start
        for executor in (self._maker, self._remover):
            if executor is not None:
                executor.shutdown(cancel_futures=True)
        if self._shared.cold is not None:
            self._shared.cold.close()
        if self._group is not None:
            await self._group.close()
        return self.close_now()

    def close_now(self, checkpoints_s: float = _CHECKPOINTS_S) -> dict[TopicPartition, TidelogError]:
        """For an inline store.

        Everything is made durable. Each checkpoint is a file of its own, so if there are many, preparing and writing
        them each stop after `checkpoints_s` seconds. The logs that would take longest to scan come first. Logs
        without a new checkpoint are scanned from their last one when they are opened again."""
        failures: dict[TopicPartition, TidelogError] = {}
        changed = [log for log in self._logs.values() if not log.is_checkpointed]
        changed.sort(key=lambda log: log.unchecked_bytes, reverse=True)
        if len(changed) <= _FEW:
            checkpoints_s = math.inf
        until = time.monotonic() + checkpoints_s
        jobs = []
        for log in changed:
            try:
                job = log.begin_flush(checkpoint=time.monotonic() < until)
            except Exception as error:  # the other logs must be closed all the same
                failures[log.partition] = _closing_error(error)
                continue
            if job is not None:
                jobs.append((log, job))
        with ThreadPoolExecutor(self._threads) as executor:
            way = SyncWay(self._files, self._root, executor, self._threads)
            way.run([job for _, job in jobs], checkpoints_s)
        for log, job in jobs:
            log.end_flush(job)
            if job.error is not None:
                failures[log.partition] = job.error
        for log in self._logs.values():
            try:
                log.abandon()
            except Exception as error:
                failures.setdefault(log.partition, _closing_error(error))
        self._logs.clear()
        del self._lock
        return failures

    async def _in_maker(self, work: Callable[P, T], *args: P.args, **_: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._maker, work, *args)

    def _directory_of(self, partition: PartitionIdentity) -> str:
        if not partition.is_valid:
            raise InvalidInput(f"{partition.topic.name!r} partition {partition.number} is not a valid name")
        return f"{self._root}/{partition_directory(partition)}"

    def _leftovers(self) -> list[str]:
        """Directories that this version or an earlier one had begun to remove."""
        found = []
        for topic in self._files.list(self._root):
            path = f"{self._root}/{topic.name}"
            if topic.name.startswith(DELETED):
                found.append(path)
            elif topic.is_directory:
                entries = self._files.list(path)
                found += [f"{path}/{entry.name}" for entry in entries if entry.name.endswith(_PARTITION_DELETED)]
        return found


def _closing_error(error: Exception) -> TidelogError:
    if isinstance(error, TidelogError):
        return error
    return storage_error(error, "close") if isinstance(error, OSError) else StorageError(f"cannot close: {error!r}")


class _Wish:
    """The partitions that one call of `create` waits for, and the error if they could not be created."""

    __slots__ = ("error", "partitions")

    def __init__(self, partitions: list[PartitionIdentity]) -> None:
        self.partitions = partitions
        self.error: Exception | None = None


def _affordable_segments(open_segments: int) -> int:
    """How many segments may be open within the process's limit of open files, with a quarter left for connections."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return open_segments
    return max(8, min(open_segments, limit * 3 // 4 // _DESCRIPTORS_PER_SEGMENT))
