"""`LocalStore`: the data directory. It holds the lock, opens and deletes partitions, and does their regular upkeep.

{directory}/lock                          who uses the directory
{directory}/logs/{topic}/{partition}/     a `LocalLog` each
{directory}/logs/~deleted.{random}/       a topic that is being removed
"""

import asyncio
import os
import resource
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import structlog

from tidelog.errors import InvalidInput, StorageError, TidelogError
from tidelog.model import Offset, TimestampMs, TopicPartition, is_topic_name
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.local.commit import GroupCommit, InlineCommit, SyncWay
from tidelog.storage.local.files import Files, OsFiles, remove_tree, storage_error
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.log import LocalLog, Shared
from tidelog.storage.local.recovery import make_new
from tidelog.storage.local.tail import TailCache

LOGS = "logs"
LOCK = "lock"
_DELETED = "~deleted."  # no topic is called so
_PARTITION_DELETED = ".deleted"  # as earlier versions called a partition that was being deleted
_KEPT_UP_AT_ONCE = 50  # partitions, in some 10 ms
_DESCRIPTORS_PER_SEGMENT = 3  # the log and two mapped indexes

logger = structlog.get_logger("tidelog.storage")


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
            leftovers = self._leftovers()
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
        self._new: list[TopicPartition] = []
        self._making = asyncio.Lock()
        self._maker, self._remover = (
            None if inline else ThreadPoolExecutor(1, thread_name_prefix=f"tidelog-{work}")
            for work in ("make", "remove")
        )
        for path in leftovers:
            self._remove(path)

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

    async def make(self, partitions: Sequence[TopicPartition], now_ms: TimestampMs) -> None:
        """Make new partitions without holding up the loop, together with those that others want meanwhile; `open`
        finds them then. What could not be made is left to `open`, which says why."""
        self._new += partitions
        async with self._making:
            new, self._new = self._new, []
            if new:  # else whoever was here before has made ours along with theirs
                await asyncio.get_running_loop().run_in_executor(self._maker, self._make, new, now_ms)

    def _make(self, partitions: list[TopicPartition], now_ms: TimestampMs) -> None:
        if self._group is not None:  # what is flushed of an earlier topic of this name must not end up in the new one
            self._group.wait_for_rounds()
        self.make_now(partitions, now_ms)

    def make_now(self, partitions: Iterable[TopicPartition], now_ms: TimestampMs) -> None:
        """The same at once. Calls nothing but the file system, so any thread may call it."""
        by_topic: defaultdict[str, set[str]] = defaultdict(set)
        for partition in partitions:
            by_topic[os.path.dirname(self._directory_of(partition))].add(str(partition.partition))
        try:
            known = {topic.name for topic in self._files.list(self._root)}
            for directory, wanted in by_topic.items():
                if os.path.basename(directory) in known:
                    wanted -= {entry.name for entry in self._files.list(directory)}
            missing = [f"{directory}/{number}" for directory, wanted in by_topic.items() for number in wanted]
            make_new(self._files, self._root, missing, now_ms)
        except OSError as error:
            logger.warning("partitions are made one by one", reason=str(storage_error(error, "make them together")))

    def has_topic(self, topic: str) -> bool:
        """Whether there is anything of it on the disk, opened or not."""
        try:
            return any(entry.name == topic for entry in self._files.list(self._root))
        except OSError as error:
            raise storage_error(error, f"list {self._root}") from error

    def delete_topic(self, topic: str) -> None:
        """Remove its partitions and their data: gone at once for whoever opens the topic anew, from the disk soon.
        After a crash it is gone or still whole."""
        directory, gone = f"{self._root}/{topic}", f"{self._root}/{_DELETED}{os.urandom(8).hex()}"
        try:
            for entry in self._files.list(directory):
                if entry.name.isdecimal():
                    log = self._logs.pop(TopicPartition(topic, int(entry.name)), None)
                    if log is not None:
                        self._let_go(log)
            self._files.rename(directory, gone)
        except OSError as error:
            raise storage_error(error, f"delete {topic}") from error
        self._remove(gone)

    def _remove(self, path: str) -> None:
        if self._remover is None:
            self._remove_now(path)
        else:
            self._remover.submit(self._remove_now, path)

    def _remove_now(self, path: str) -> None:
        try:
            self._files.sync_directory(self._root)  # first its new name: half a topic must not come back as a whole
            remove_tree(self._files, path)
        except OSError as error:
            reason = str(storage_error(error, f"remove {path}"))
            logger.error("deleted data is left until the next start", reason=reason)

    def upkeep(
        self, now_ms: TimestampMs, keep_from: Callable[[TopicPartition], Offset | None] = lambda _: None
    ) -> dict[TopicPartition, TidelogError]:
        """Retention, segments that are old enough to seal, producers to forget. `keep_from` names the offset that
        retention must not go beyond, if there is one. What failed, by partition: one that cannot be kept up must not
        keep the others from it."""
        failures: dict[TopicPartition, TidelogError] = {}
        for _ in self._upkeep(now_ms, keep_from, failures):
            pass
        return failures

    async def upkeep_in_steps(
        self, now_ms: TimestampMs, keep_from: Callable[[TopicPartition], Offset | None] = lambda _: None
    ) -> dict[TopicPartition, TidelogError]:
        """The same, and others have their turn in between: the first time after a start it reads every index."""
        failures: dict[TopicPartition, TidelogError] = {}
        for done in self._upkeep(now_ms, keep_from, failures):
            if done % _KEPT_UP_AT_ONCE == 0:
                await asyncio.sleep(0)
        return failures

    def _upkeep(
        self,
        now_ms: TimestampMs,
        keep_from: Callable[[TopicPartition], Offset | None],
        failures: dict[TopicPartition, TidelogError],
    ) -> Iterator[int]:
        """How many are done, after each one; they may come and go in between."""
        for done, (partition, log) in enumerate(list(self._logs.items()), 1):
            if self._logs.get(partition) is log:
                try:
                    log.retain(now_ms, keep_from=keep_from(partition))
                except TidelogError as error:
                    failures[partition] = error
            yield done

    def logs(self) -> list[LocalLog]:
        """Those that are open."""
        return list(self._logs.values())

    @property
    def files(self) -> Files:
        return self._files

    async def close(self) -> dict[TopicPartition, TidelogError]:
        """Make everything durable and let go. What failed, by partition."""
        for executor in (self._maker, self._remover):
            if executor is not None:
                executor.shutdown(cancel_futures=True)  # what is left is removed at the next start
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

    def _leftovers(self) -> list[str]:
        found = []
        for topic in self._files.list(self._root):
            path = f"{self._root}/{topic.name}"
            if topic.name.startswith(_DELETED):
                found.append(path)
            elif topic.is_directory:
                entries = self._files.list(path)
                found += [f"{path}/{entry.name}" for entry in entries if entry.name.endswith(_PARTITION_DELETED)]
        return found


def _affordable(open_segments: int) -> int:
    """As many as the process may open, with a quarter left for connections."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return open_segments
    return max(8, min(open_segments, limit * 3 // 4 // _DESCRIPTORS_PER_SEGMENT))
