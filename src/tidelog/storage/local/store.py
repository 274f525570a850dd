"""`LocalStore`: the data directory. It holds the lock, opens and deletes partitions, and does their regular upkeep.

{directory}/lock                          who uses the directory
{directory}/logs/{topic}/{partition}/     a `LocalLog` each
"""

import os
import resource
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tidelog.errors import InvalidInput, StorageError, TidelogError
from tidelog.model import Offset, TimestampMs, TopicPartition, is_topic_name
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.local.commit import GroupCommit, InlineCommit, SyncWay
from tidelog.storage.local.files import Files, OsFiles, remove_tree, storage_error
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.log import LocalLog, Shared
from tidelog.storage.local.tail import TailCache

LOGS = "logs"
LOCK = "lock"
_DELETED = ".deleted"
_SPARE_DESCRIPTORS = 256  # for sockets and everything else that is not a segment
_DESCRIPTORS_PER_SEGMENT = 3  # the log and two mapped indexes


class LocalStore:
    """Made inside a running event loop it commits in groups; with `inline`, without a loop, whoever asks syncs."""

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
            self._remove_leftovers()
        except OSError as error:
            raise storage_error(error, f"use {self.directory} as data directory") from error
        self._group = None if inline else GroupCommit(self._files, self._root, settings.flush_threads)
        self._threads = settings.flush_threads
        self._shared = Shared(
            self._files,
            HandlePool(_affordable(settings.open_segments)),
            TailCache(settings.tail_cache_bytes),
            self._group or InlineCommit(),
        )
        self._logs: dict[TopicPartition, LocalLog] = {}

    def partitions(self) -> list[TopicPartition]:
        """What is on the disk, opened or not."""
        try:
            return [
                TopicPartition(topic.name, int(partition.name))
                for topic in self._files.list(self._root)
                if topic.is_directory and is_topic_name(topic.name)
                for partition in self._files.list(f"{self._root}/{topic.name}")
                if partition.is_directory and partition.name.isdecimal()
            ]
        except OSError as error:
            raise storage_error(error, f"list {self._root}") from error

    def open(self, partition: TopicPartition, settings: LogSettings, now_ms: TimestampMs) -> LocalLog:
        """The partition's log, created if it is new. An error concerns this partition alone."""
        log = self._logs.get(partition)
        if log is None:
            directory = self._directory_of(partition)
            try:
                self._files.make_directories(directory)
            except OSError as error:
                raise storage_error(error, f"create {partition}") from error
            log = self._logs[partition] = LocalLog(self._shared, directory, partition, settings, now_ms)
        return log

    def delete(self, partition: TopicPartition) -> None:
        """Remove the partition and its data, durably: after a crash it is gone or still whole."""
        log = self._logs.pop(partition, None)
        if log is not None:
            self._let_go(log)
        directory = self._directory_of(partition)
        topic_directory = os.path.dirname(directory)
        try:
            self._files.rename(directory, directory + _DELETED)
            self._files.sync_directory(topic_directory)
            remove_tree(self._files, directory + _DELETED)
            if not self._files.list(topic_directory):
                self._files.remove_directory(topic_directory)
        except OSError as error:
            raise storage_error(error, f"delete {partition}") from error

    def upkeep(
        self, now_ms: TimestampMs, keep_from: Callable[[TopicPartition], Offset | None] = lambda _: None
    ) -> dict[TopicPartition, TidelogError]:
        """Retention, segments that are old enough to seal, producers to forget. `keep_from` names the offset that
        retention must not go beyond, if there is one. What failed, by partition: one that cannot be kept up must not
        keep the others from it."""
        failures: dict[TopicPartition, TidelogError] = {}
        for partition, log in self._logs.items():
            try:
                log.retain(now_ms, keep_from=keep_from(partition))
            except TidelogError as error:
                failures[partition] = error
        return failures

    def logs(self) -> list[LocalLog]:
        """Those that are open."""
        return list(self._logs.values())

    @property
    def files(self) -> Files:
        return self._files

    async def close(self) -> dict[TopicPartition, TidelogError]:
        """Make everything durable and let go. What failed, by partition."""
        if self._group is not None:
            await self._group.close()
        return self.close_now()

    def close_now(self) -> dict[TopicPartition, TidelogError]:
        """The same without a loop; for an inline store."""
        failures: dict[TopicPartition, TidelogError] = {}
        jobs = []
        for partition, log in self._logs.items():
            try:
                job = log.begin_flush(checkpoint=True)
            except StorageError as error:
                failures[partition] = error
                continue
            if job is not None:
                jobs.append((log, job))
        with ThreadPoolExecutor(self._threads) as executor:
            SyncWay(self._files, self._root, executor, self._threads).run([job for _, job in jobs])
        for log, job in jobs:
            log.end_flush(job)
            if job.error is not None:
                failures[log.partition] = job.error
        for log in self._logs.values():
            log.abandon()
        self._logs.clear()
        del self._lock
        return failures

    def _let_go(self, log: LocalLog) -> None:
        log.abandon()
        if self._group is not None:
            self._group.forget(log)

    def _directory_of(self, partition: TopicPartition) -> str:
        if not is_topic_name(partition.topic) or partition.partition < 0:
            raise InvalidInput(f"{partition.topic!r} partition {partition.partition} is not a valid name")
        return f"{self._root}/{partition.topic}/{partition.partition}"

    def _remove_leftovers(self) -> None:
        for topic in self._files.list(self._root):
            if topic.is_directory:
                for entry in self._files.list(f"{self._root}/{topic.name}"):
                    if entry.name.endswith(_DELETED):
                        remove_tree(self._files, f"{self._root}/{topic.name}/{entry.name}")


def _affordable(open_segments: int) -> int:
    """As many as the process may open, less what others need."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return open_segments
    return max(8, min(open_segments, (limit - _SPARE_DESCRIPTORS) // _DESCRIPTORS_PER_SEGMENT))
