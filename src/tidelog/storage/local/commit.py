"""Group commit: one sync for all waiting appends, over all partitions of a data directory.

Appends that arrive while a sync is under way wait together for the next one.

    GroupCommit    in an event loop; syncs run in threads
    InlineCommit   without an event loop; the calling thread syncs (tools, tests)
"""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import TypeAlias

from tidelog.errors import StorageError, fresh
from tidelog.model import Offset
from tidelog.promise import Promise
from tidelog.storage.local.files import Files
from tidelog.storage.local.flush import FlushJob, finish_together
from tidelog.storage.local.log import LocalLog
from tidelog.storage.log import Appended

Round: TypeAlias = list[tuple[LocalLog, FlushJob]]


class InlineCommit:
    def wait(self, log: LocalLog, offset: Offset, appended: Appended) -> Appended:
        if log.durable_offset < offset:
            log.flush()
        return appended

    def soon(self, log: LocalLog) -> None:
        """A failure stays recorded in the log; the next append or flush raises it."""
        try:
            log.flush()
        except StorageError:
            pass

    def within(self, log: LocalLog, delay_ms: int) -> None:
        """Does nothing: there is no timer without an event loop. The data is synced by the next flush."""

    def aside(self, work: Callable[[], None]) -> None:
        work()


class DurableUpTo(Promise[Appended]):
    """The promise of an append, kept when everything before `offset` is durable."""

    __slots__ = ("appended", "offset")

    def __init__(self, offset: Offset, appended: Appended) -> None:
        super().__init__()
        self.offset = offset
        self.appended = appended


class GroupCommit:
    """Lives in the running event loop; `close` it before the loop ends.

    A round of syncs begins at the end of a loop iteration, so that all appends of the iteration share it. (Measured:
    beginning earlier, to overlap the rest of the iteration with the sync, makes more rounds, which cost more than the
    overlap gains.)"""

    def __init__(self, files: Files, directory: str, threads: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tidelog-sync")
        self._remover: ThreadPoolExecutor | None = ThreadPoolExecutor(1, thread_name_prefix="tidelog-aside")
        self._way = SyncWay(files, directory, self._executor, threads)
        # One thread that takes rounds from a queue: cheaper for each round than an executor and its futures.
        self._rounds: SimpleQueue[Round | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tidelog-flush", daemon=True)
        self._thread.start()
        self._waiting: dict[LocalLog, list[DurableUpTo]] = {}
        self._wanted: dict[LocalLog, None] = {}
        self._timers: dict[LocalLog, asyncio.TimerHandle] = {}
        self._scheduled: asyncio.Handle | None = None
        self._running = False
        self._idle: asyncio.Future[None] | None = None

    def wait(self, log: LocalLog, offset: Offset, appended: Appended) -> DurableUpTo:
        promise = DurableUpTo(offset, appended)
        waiting = self._waiting.get(log)
        if waiting is None:
            self._waiting[log] = [promise]
        else:
            waiting.append(promise)
        self.soon(log)
        return promise

    def soon(self, log: LocalLog) -> None:
        self._wanted[log] = None
        if not self._running and self._scheduled is None:
            self._scheduled = self._loop.call_soon(self._round)

    def within(self, log: LocalLog, delay_ms: int) -> None:
        if log not in self._timers:
            self._timers[log] = self._loop.call_later(delay_ms / 1000, self._timer, log)

    def aside(self, work: Callable[[], None]) -> None:
        """In a thread of its own, so that freeing large files delays no sync."""
        if self._remover is not None:
            self._remover.submit(work)
        else:
            work()

    def forget(self, log: LocalLog) -> None:
        """The log is closed: fail the promises that still wait for it."""
        self._wanted.pop(log, None)
        timer = self._timers.pop(log, None)
        if timer is not None:
            timer.cancel()
        self._settle(log, StorageError(f"{log.partition} was closed"))

    async def close(self) -> None:
        """Wait until all requested flushes are done."""
        for timer in self._timers.values():
            timer.cancel()
        while self._running or self._scheduled is not None:
            self._idle = self._loop.create_future()
            await self._idle
        self._rounds.put(None)
        self._thread.join()
        self._executor.shutdown()
        if self._remover is not None:
            self._remover.shutdown(cancel_futures=True)  # files that are left are removed when the log is opened
            self._remover = None

    def _timer(self, log: LocalLog) -> None:
        del self._timers[log]
        self.soon(log)

    def _round(self) -> None:
        self._scheduled = None
        logs, self._wanted = self._wanted, {}
        jobs: Round = []
        for log in logs:
            try:
                job = log.begin_flush()
            except Exception as error:
                self._settle(log, self._as_storage_error(log, error))
                continue
            if job is not None:
                jobs.append((log, job))
            else:
                self._settle(log, log.fault or StorageError(f"{log.partition} has nothing to flush"))
        if not jobs:
            self._rest()
            return
        self._running = True
        self._rounds.put(jobs)

    def _work(self) -> None:
        """Runs in the thread: one round after another."""
        while (round_ := self._rounds.get()) is not None:
            try:
                self._way.run([job for _, job in round_])
            except Exception as error:
                for _, job in round_:
                    job.fail_unforeseen(error)
            self._loop.call_soon_threadsafe(self._done, round_)

    def _done(self, jobs: Round) -> None:
        self._running = False
        for log, job in jobs:
            try:
                log.end_flush(job)
            except Exception as error:
                self._settle(log, self._as_storage_error(log, error))
            else:
                self._settle(log, log.fault)
        if self._wanted:
            self._round()
        else:
            self._rest()

    def _as_storage_error(self, log: LocalLog, error: Exception) -> StorageError:
        """A bug of ours is reported, and fails only the appends that wait for this log."""
        if isinstance(error, StorageError):
            return error
        context = {"message": f"the flush of {log.partition} failed unexpectedly", "exception": error}
        self._loop.call_exception_handler(context)
        return StorageError(f"cannot flush {log.partition}: {error!r}")

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    def _settle(self, log: LocalLog, error: StorageError | None) -> None:
        """Settle the promises whose bytes are durable now; on an error fail all others of this log. A callback may
        append and wait again at once, so the list of those that still wait is updated first. Each promise gets an
        error object of its own, because an error that is raised keeps alive everything its traceback refers to."""
        waiting = self._waiting.pop(log, None)
        if waiting is None:
            return
        durable = log.durable_offset
        later = [promise for promise in waiting if promise.offset > durable] if error is None else []
        if later:
            self._waiting[log] = later
            self._wanted[log] = None
        for promise in waiting:
            if promise.offset <= durable:
                promise.settle(promise.appended)
            elif error is not None:
                promise.fail(fresh(error))


class SyncWay:
    """Syncs many logs: the whole file system at once if little else on it is dirty, otherwise file by file in several
    threads. One call for a thousand files takes about as long as forty calls for one file each."""

    def __init__(self, files: Files, directory: str, executor: ThreadPoolExecutor, threads: int) -> None:
        self._files = files
        self._directory = directory
        self._executor = executor
        self._threads = threads

    def run(self, jobs: list[FlushJob], checkpoints_s: float = math.inf) -> None:
        """Run the jobs; a failure is stored in the job's `error`. Checkpoints are written, in the order of the jobs,
        for at most `checkpoints_s` seconds."""
        until = time.monotonic() + checkpoints_s
        if len(jobs) > 1 and self._sync_whole(jobs):
            together = [job for job in jobs if not job.is_special]
            finish_together(self._files, self._directory, together, checkpoints_s)
            jobs = [job for job in jobs if job.is_special]
        shares = [jobs[number :: self._threads] for number in range(min(self._threads, len(jobs)))]
        others = [self._executor.submit(self._one_by_one, share, until) for share in shares[1:]]
        for share in shares[:1]:
            self._one_by_one(share, until)
        wait(others)

    def _sync_whole(self, jobs: list[FlushJob]) -> bool:
        """False if this is too expensive, not supported, or failed: then a sync of each file shows which are
        affected."""
        ours = sum(job.size_bytes for job in jobs)
        try:
            return self._files.sync_filesystem(self._directory, ours + (8 << 20) + (len(jobs) << 20))
        except OSError:
            return False

    def _one_by_one(self, jobs: list[FlushJob], until: float) -> None:
        for job in jobs:
            if time.monotonic() >= until:
                job.checkpoint = None
            job.run(self._files)
