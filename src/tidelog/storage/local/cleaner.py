"""The cleaner: compacts the logs of a store, the dirtiest first, without getting in the way of those who use them.

It lives in the event loop, which owns the logs and decides; what takes long runs in threads of its own, where
reading, writing, syncing, hashing and codecs leave the interpreter to others. All threads together read and write at
most `bytes_per_second`. A log that fails is left alone for a while and does not stop the others.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import structlog

from tidelog.errors import LogClosed, TidelogError
from tidelog.records.compaction import load_kernels
from tidelog.settings import CleanerSettings
from tidelog.storage.local.compaction import Cancelled, CompactionPass, LogCompaction, Throttle, write_state
from tidelog.storage.local.files import Files, storage_error
from tidelog.storage.local.log import LocalLog

T = TypeVar("T")

_LEFT_ALONE = 20  # times the backoff

log = structlog.get_logger("tidelog.cleaner")


class Cleaner:
    """Made and used inside a running event loop; `close` it before the logs are closed."""

    def __init__(
        self,
        files: Files,
        logs: Callable[[], Iterable[LocalLog]],
        settings: Callable[[], CleanerSettings],
        *,
        threads: int = 1,
    ) -> None:
        self._files = files
        self._logs = logs
        self._settings = settings
        self._throttle = Throttle()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tidelog-cleaner")
        self._threads = threads
        self._retry_at: dict[LocalLog, float] = {}
        self._active: set[CompactionPass] = set()
        self._closing = asyncio.Event()
        self._kernels: asyncio.Task[None] | None = None
        self._given_up = threading.Event()  # waiting for kernels
        self._workers = [asyncio.create_task(self._work()) for _ in range(threads)]

    async def close(self) -> None:
        """Passes under way end at their next chunk; the log is whole at every moment."""
        self._closing.set()
        self._given_up.set()
        for current in self._active:
            current.stop.set()
        await asyncio.gather(*self._workers)
        self._executor.shutdown()

    async def _work(self) -> None:
        while not self._closing.is_set():
            settings = self._settings()
            self._throttle.bytes_per_second = settings.bytes_per_second
            await self._load_kernels()
            chosen = None if self._closing.is_set() else self._dirtiest()
            if chosen is None:
                try:
                    await asyncio.wait_for(self._closing.wait(), settings.backoff_ms / 1000)
                except TimeoutError:
                    pass
                continue
            try:
                await self._clean(chosen, replace(settings, dedupe_buffer_bytes=self._share(settings)))
            except (Cancelled, LogClosed):
                pass
            except Exception as error:
                # Whatever it was, the other logs must not wait for it.
                self._retry_at[chosen] = time.monotonic() + _LEFT_ALONE * settings.backoff_ms / 1000
                reason = str(storage_error(error, "compact")) if isinstance(error, OSError) else str(error)
                unexpected = not isinstance(error, TidelogError | OSError)
                log.error("compaction failed", partition=str(chosen.partition), reason=reason, exc_info=unexpected)

    def _share(self, settings: CleanerSettings) -> int:
        return settings.dedupe_buffer_bytes // self._threads

    def _dirtiest(self) -> LocalLog | None:
        """The log to compact next: one that has waited for too long, else the one with the largest dirty share."""
        now_ms, now = time.time_ns() // 1_000_000, time.monotonic()
        self._retry_at = {failed: at for failed, at in self._retry_at.items() if at > now}
        best, best_rank = None, (False, -1.0)
        for candidate in self._logs():
            if candidate.settings.compaction is None or candidate in self._retry_at:
                continue
            try:
                found = candidate.compaction.measure(now_ms)
            except TidelogError as error:
                self._retry_at[candidate] = now + _LEFT_ALONE * self._settings().backoff_ms / 1000
                log.error("compaction failed", partition=str(candidate.partition), reason=str(error))
                continue
            rank = (found.urgent, found.ratio)
            if found.wanted and rank > best_rank:
                best, best_rank = candidate, rank
        return best

    async def _clean(self, chosen: LocalLog, settings: CleanerSettings) -> None:
        """One pass over a log."""
        compaction = chosen.compaction
        current = compaction.begin(time.time_ns() // 1_000_000, settings, self._throttle)
        if current is None:
            return
        self._active.add(current)
        try:
            await self._run(compaction, current.build_map)
            while (group := await self._run(compaction, current.next_group)) is not None:
                swap = compaction.begin_swap(group)
                if swap is None:
                    raise Cancelled(f"{chosen.partition} was changed while it was compacted")
                try:
                    await self._run(compaction, swap.commit)
                except OSError:
                    compaction.abandon_swap(swap)
                    raise
                if not compaction.apply(swap):
                    continue  # somebody could not wait, and has finished it
                try:
                    await self._run(compaction, swap.finish)
                except OSError as error:
                    compaction.fault = storage_error(error, f"exchange segments of {chosen.partition}")
                    raise
                compaction.finished(swap)
            state = compaction.end(current)
            await self._run(compaction, lambda: write_state(self._files, chosen.directory, state))
        finally:
            self._active.discard(current)
            compaction.give_up(current)
        log.info(
            "compacted",
            partition=str(chosen.partition),
            records=current.records_read,
            kept=current.records_kept,
            keys=current.keys,
            bytes_before=current.bytes_read,
            bytes_after=current.bytes_written,
            seconds=round(current.seconds, 3),
        )

    async def _run(self, compaction: LogCompaction, step: Callable[[], T]) -> T:
        """A step in a thread. The log's owner can wait for it (`LogCompaction.settle`, `stop`)."""
        running = self._executor.submit(step)
        compaction.running = running
        try:
            result = await asyncio.wrap_future(running)
        finally:
            compaction.running = None
        if compaction.fault is not None:
            raise compaction.fault
        return result

    async def _load_kernels(self) -> None:
        """Once there is something to compact, before anybody needs them: it takes a while."""
        if self._kernels is None and any(one.settings.compaction is not None for one in self._logs()):
            self._kernels = asyncio.create_task(self._load())
        if self._kernels is not None:
            await self._kernels

    async def _load(self) -> None:
        loop = asyncio.get_running_loop()
        if not await loop.run_in_executor(self._executor, load_kernels, self._given_up):
            log.warning("compaction is slow here; pip install 'tidelog[columnar]' makes it fast")
