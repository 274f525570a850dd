"""Group commit: one sync for everybody who waits, over all partitions of a data directory.

Appends that arrive while a sync is under way wait together for the next one.

    GroupCommit    in an event loop; syncs run in threads
    InlineCommit   without a loop: whoever asks, syncs (tools, tests)
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import TypeAlias

from tidelog.errors import StorageError
from tidelog.model import Offset
from tidelog.promise import Promise
from tidelog.storage.local.files import Files
from tidelog.storage.local.flush import FlushJob, finish_together
from tidelog.storage.local.log import LocalLog

Round: TypeAlias = list[tuple[LocalLog, FlushJob]]


class InlineCommit:
    def wait(self, log: LocalLog, offset: Offset) -> None:
        if log.durable_offset < offset:
            log.flush()

    def soon(self, log: LocalLog) -> None:
        """A failure is kept in the log and comes up when it matters to somebody."""
        try:
            log.flush()
        except StorageError:
            pass

    def within(self, log: LocalLog, delay_ms: int) -> None:
        """Without a clock of its own, as early as it may be asked."""


class DurableUpTo(Promise[None]):
    """That everything before `offset` is durable."""

    __slots__ = ("offset",)

    def __init__(self, offset: Offset) -> None:
        super().__init__()
        self.offset = offset


class GroupCommit:
    """Lives in the running event loop; `close` it before the loop ends.

    A round begins when a turn of the loop is over, so that all appends of the turn share it. (Beginning earlier, to
    overlap the rest of the turn with the sync, was measured: more rounds cost more than the overlap gains.)"""

    def __init__(self, files: Files, directory: str, threads: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tidelog-sync")
        self._way = SyncWay(files, directory, self._executor, threads)
        # One thread that takes rounds from a queue: less to do for each than with an executor and its futures.
        self._rounds: SimpleQueue[Round | threading.Event | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tidelog-flush", daemon=True)
        self._thread.start()
        self._waiting: dict[LocalLog, list[DurableUpTo]] = {}
        self._wanted: dict[LocalLog, None] = {}
        self._timers: dict[LocalLog, asyncio.TimerHandle] = {}
        self._scheduled: asyncio.Handle | None = None
        self._running = False
        self._idle: asyncio.Future[None] | None = None

    def wait(self, log: LocalLog, offset: Offset) -> DurableUpTo:
        promise = DurableUpTo(offset)
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

    def forget(self, log: LocalLog) -> None:
        """The log is closed; nobody can be waiting for it any more."""
        self._wanted.pop(log, None)
        timer = self._timers.pop(log, None)
        if timer is not None:
            timer.cancel()
        self._settle(log, StorageError(f"{log.partition} was closed"))

    async def close(self) -> None:
        """Wait until everything that was asked for is done."""
        for timer in self._timers.values():
            timer.cancel()
        while self._running or self._scheduled is not None:
            self._idle = self._loop.create_future()
            await self._idle
        self._rounds.put(None)
        self._thread.join()
        self._executor.shutdown()

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
            except (OSError, StorageError) as error:
                self._settle(log, error)
                continue
            if job is not None:
                jobs.append((log, job))
            else:
                self._settle(log, log.fault or StorageError(f"{log.partition} has nothing to flush"))
        if not jobs:
            self._rest()
            return
        self._running = True
        for _, job in jobs:
            job.wait = self.wait_for_rounds
        self._rounds.put(jobs)

    def _work(self) -> None:
        """In the thread: one round after another."""
        while (round_ := self._rounds.get()) is not None:
            if isinstance(round_, threading.Event):
                round_.set()
            else:
                try:
                    self._way.run([job for _, job in round_])
                except Exception as error:
                    for _, job in round_:
                        job.fail_unforeseen(error)
                self._loop.call_soon_threadsafe(self._done, round_)

    def wait_for_rounds(self) -> None:
        """Block until the rounds that have begun are done; from any thread, before `close`."""
        reached = threading.Event()
        self._rounds.put(reached)
        reached.wait()

    def _done(self, jobs: Round) -> None:
        self._running = False
        for log, job in jobs:
            log.end_flush(job)
            self._settle(log, log.fault)
        if self._wanted:
            self._round()
        else:
            self._rest()

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    def _settle(self, log: LocalLog, error: Exception | None) -> None:
        """Answer those whose bytes are durable now; on an error all who wait for this log."""
        waiting = self._waiting.pop(log, None)
        if waiting is None:
            return
        later = []
        for promise in waiting:
            if promise.offset <= log.durable_offset:
                promise.settle(None)
            elif error is not None:
                promise.fail(error)
            else:
                later.append(promise)
        if later:
            self._waiting[log] = later
            self._wanted[log] = None


class SyncWay:
    """How many logs are synced: the file system as a whole where little else is dirty on it, else file by file on
    some threads. One call for a thousand files takes about as long as forty calls for one."""

    def __init__(self, files: Files, directory: str, executor: ThreadPoolExecutor, threads: int) -> None:
        self._files = files
        self._directory = directory
        self._executor = executor
        self._threads = threads

    def run(self, jobs: list[FlushJob]) -> None:
        """Carries the jobs out; what failed is in each job's `error`."""
        if len(jobs) > 1 and self._sync_whole(jobs):
            together = [job for job in jobs if not job.rewrite]
            finish_together(self._files, self._directory, together)
            jobs = [job for job in jobs if job.rewrite]
        shares = [jobs[number :: self._threads] for number in range(min(self._threads, len(jobs)))]
        others = [self._executor.submit(self._one_by_one, share) for share in shares[1:]]
        for share in shares[:1]:
            self._one_by_one(share)
        wait(others)

    def _sync_whole(self, jobs: list[FlushJob]) -> bool:
        """False: not advisable, not possible, or it failed, and a sync of each file must tell which are affected."""
        ours = sum(job.size_bytes for job in jobs)
        try:
            return self._files.sync_filesystem(self._directory, ours + (8 << 20) + (len(jobs) << 20))
        except OSError:
            return False

    def _one_by_one(self, jobs: list[FlushJob]) -> None:
        for job in jobs:
            job.run(self._files)
