"""The cleaner: compacts the logs of a store in the background, the dirtiest first. For every engine.

It runs in the event loop, which owns the logs and makes the decisions. Work that takes long runs in threads of its
own, where reading, writing, syncing, hashing and codecs release the GIL. All threads together read and write at most
`bytes_per_second`. A log whose compaction fails is skipped for a while; the other logs are compacted all the same.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from tidelog.errors import LogClosed
from tidelog.records.compaction import load_kernels
from tidelog.settings import CleanerSettings
from tidelog.storage.compaction import Cancelled, CleanedLog, Pass, Throttle
from tidelog.storage.trouble import Trouble

T = TypeVar("T")

_LEFT_ALONE = 20  # a log that failed is skipped for this many times the backoff
_MEASURED_AT_ONCE = 50  # logs for each loop iteration

log = structlog.get_logger("tidelog.cleaner")


class Cleaner:
    """Made and used inside a running event loop; `close` it before the logs are closed."""

    def __init__(
        self,
        logs: Callable[[], Iterable[CleanedLog]],
        settings: Callable[[], CleanerSettings],
        *,
        threads: int = 1,
    ) -> None:
        self._logs = logs
        self._settings = settings
        self._throttle = Throttle()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tidelog-cleaner")
        self._threads = threads
        self._retry_at: dict[CleanedLog, float] = {}
        self._trouble = Trouble(log, bad="compaction failed", good="compaction works again")
        self._own_trouble = Trouble(
            log, bad="the cleaner failed; no log is compacted", good="the cleaner works again"
        )
        self._backoff_s = settings().backoff_ms / 1000
        self._active: set[Pass] = set()
        self._closing = asyncio.Event()
        self._kernels: asyncio.Task[None] | None = None
        self._given_up = threading.Event()  # set when the cleaner no longer waits for the kernels
        self._workers = [asyncio.create_task(self._work()) for _ in range(threads)]

    async def close(self) -> None:
        """Passes under way stop at their next chunk; the logs are consistent at every step."""
        self._closing.set()
        self._given_up.set()
        for current in self._active:
            current.halt()
        await asyncio.gather(*self._workers)
        self._executor.shutdown()

    async def _work(self) -> None:
        """A failure of one log must not hold up the others, and no failure may end the loop."""
        while not self._closing.is_set():
            try:
                found_work = await self._turn()
                self._own_trouble.worked(self)
            except Exception as error:
                found_work = False
                self._own_trouble.failed(self, error)
            if not found_work:
                try:
                    await asyncio.wait_for(self._closing.wait(), self._backoff_s)
                except TimeoutError:
                    pass

    async def _turn(self) -> bool:
        """Compact the log that needs it most; False if none does."""
        settings = self._settings()
        self._backoff_s = settings.backoff_ms / 1000
        self._throttle.bytes_per_second = settings.bytes_per_second
        await self._load_kernels()
        chosen = await self._dirtiest()
        if chosen is None or self._closing.is_set():
            return False
        try:
            await self._clean(chosen, replace(settings, dedupe_buffer_bytes=self._share(settings)))
        except (Cancelled, LogClosed):
            self._retry_at[chosen] = time.monotonic() + self._backoff_s
        except Exception as error:
            self._leave_alone(chosen, error)
        else:
            self._trouble.worked(chosen, partition=str(chosen.partition))
        return True

    def _leave_alone(self, failed: CleanedLog, error: Exception) -> None:
        self._retry_at[failed] = time.monotonic() + _LEFT_ALONE * self._backoff_s
        self._trouble.failed(failed, error, partition=str(failed.partition))

    def _share(self, settings: CleanerSettings) -> int:
        return settings.dedupe_buffer_bytes // self._threads

    async def _dirtiest(self) -> CleanedLog | None:
        """The log to compact next: an urgent one, otherwise the one with the largest dirty ratio."""
        now_ms, now = time.time_ns() // 1_000_000, time.monotonic()
        self._retry_at = {failed: at for failed, at in self._retry_at.items() if at > now}
        best, best_rank = None, (False, -1.0)
        candidates = set(self._logs())
        self._trouble.forget_others(candidates)
        for number, candidate in enumerate(candidates, 1):
            if number % _MEASURED_AT_ONCE == 0:
                await asyncio.sleep(0)
            if candidate.settings.compaction is None or candidate in self._retry_at:
                continue
            try:
                found = candidate.measure(now_ms)
            except Exception as error:
                self._leave_alone(candidate, error)
                continue
            rank = (found.urgent, found.ratio)
            if found.wanted and rank > best_rank:
                best, best_rank = candidate, rank
        return best

    async def _clean(self, chosen: CleanedLog, settings: CleanerSettings) -> None:
        """One pass over a log."""
        current = chosen.begin_pass(time.time_ns() // 1_000_000, settings, self._throttle)
        if current is None:
            return
        self._active.add(current)
        try:
            done = await current.run(self._in_thread)
        finally:
            self._active.discard(current)
        log.info(
            "compacted", partition=str(chosen.partition), **done._replace(seconds=round(done.seconds, 3))._asdict()
        )

    async def _in_thread(self, step: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, step)

    async def _load_kernels(self) -> None:
        """Load the kernels when there is something to compact, before the pass needs them: loading takes long."""
        if self._kernels is None and any(one.settings.compaction is not None for one in self._logs()):
            self._kernels = asyncio.create_task(self._load())
        if self._kernels is not None:
            await self._kernels

    async def _load(self) -> None:
        try:
            is_fast = await self._in_thread(partial(load_kernels, self._given_up))
        except Exception as error:
            log.error(
                "cannot load the kernels of compaction; compaction will be slow", reason=str(error), exc_info=True
            )
            return
        if not is_fast:
            log.warning("compaction will be slow; to make it fast, run pip install 'tidelog[columnar]' and restart")
