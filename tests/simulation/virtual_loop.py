"""An event loop whose time does not pass by itself: when nothing is ready, it moves to the next timer. To simulate
minutes takes milliseconds, and runs the same way each time."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(AssertionError):
    """Nothing is ready, and no timer is set: everyone waits for each other."""


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._now = 0.0
        self._clock_resolution = 1e-6
        super().__init__(_Jumping(self))
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("nothing is left that could happen")
        self._loop.jump(max(timeout, 0.0))
        return []


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end. An exception in a callback or a task that nobody awaits fails the run too."""
    loop = VirtualLoop()
    unexpected: list[Mapping[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unexpected.append(context))
    try:
        result = loop.run_until_complete(main)
    finally:
        loop.run_until_complete(_end_all())
        loop.close()
    for context in unexpected:
        if (error := context.get("exception")) is not None:
            raise error
        raise AssertionError(str(context))
    return result


async def _end_all() -> None:
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
