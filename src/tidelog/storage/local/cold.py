"""Reads that do not block the event loop while they wait for the disk.

Most reads are answered from memory: the tail cache, or the kernel's page cache. So a read is first tried without
waiting (`Files.without_waiting`). If bytes are not in memory, a thread reads them, which brings them into the page
cache, and the read is tried again. A read needs several pieces (an index, the place in the log, the batches
themselves), so it may take several tries, and each one gets further than the last.

If the system cannot tell what is in memory, reads block the event loop.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tidelog.promise import Promise
from tidelog.storage.local.files import Files, NotCached

T = TypeVar("T")

_MOST_TRIES = 24  # each try reads ahead twice as much as the last: in the end more than any segment has


class ColdReads:
    """Made inside a running event loop; `close` it before the loop ends."""

    def __init__(self, files: Files, threads: int) -> None:
        self._files = files
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tidelog-read")

    def now_or_later(self, read: Callable[[], T]) -> T | Promise[T]:
        """The result of `read`, now if all data is in memory, otherwise as a promise. `read` is called in this
        thread, perhaps several times: a call that is interrupted by NotCached must have no side effects."""
        try:
            return self._files.without_waiting(read)
        except NotCached as missing:
            promise: Promise[T] = Promise()
            self._warm(missing, read, promise, 1)
            return promise

    def close(self) -> None:
        """Promises that still wait may never be settled."""
        self._executor.shutdown(cancel_futures=True)

    def _warm(self, missing: NotCached, read: Callable[[], T], promise: Promise[T], tries: int) -> None:
        def work() -> None:
            try:
                missing.read_it(1 << tries)
            except Exception:
                failed = True  # the last try, which waits for the disk, raises the error
            else:
                failed = False
            self._loop.call_soon_threadsafe(self._again, failed or tries == _MOST_TRIES, read, promise, tries)

        self._executor.submit(work)

    def _again(self, patiently: bool, read: Callable[[], T], promise: Promise[T], tries: int) -> None:
        try:
            result = read() if patiently else self._files.without_waiting(read)
        except NotCached as missing:
            self._warm(missing, read, promise, tries + 1)
        except Exception as error:
            promise.fail(error)
        else:
            promise.settle(result)
