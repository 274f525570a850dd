"""`Tasks`: the coroutines that work for one owner, as promises; they end with their owner."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tidelog.errors import StorageError
from tidelog.promise import Promise

T = TypeVar("T")


class Tasks:
    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Any], None] = {}  # in order, so that simulations are repeatable
        self._closed_by: Callable[[], Exception] | None = None

    def promise(self, work: Coroutine[Any, Any, T]) -> Promise[T]:
        """A promise of what the coroutine returns."""
        promise: Promise[T] = Promise()
        if self._closed_by is not None:
            work.close()
            promise.fail(self._closed_by())
            return promise
        task = asyncio.get_running_loop().create_task(work)
        self._running[task] = None

        def done(task: asyncio.Task[T]) -> None:
            del self._running[task]
            if task.cancelled():
                promise.fail(StorageError("it was given up") if self._closed_by is None else self._closed_by())
            elif (error := task.exception()) is None:
                promise.settle(task.result())
            elif isinstance(error, Exception):
                promise.fail(error)

        task.add_done_callback(done)
        return promise

    def end(self, make_error: Callable[[], Exception]) -> None:
        """Cancel what is running; its promises, and all later ones, fail with the error."""
        self._closed_by = make_error
        for task in list(self._running):
            task.cancel()

    async def ended(self) -> None:
        """Wait for what was cancelled."""
        await asyncio.gather(*self._running, return_exceptions=True)
