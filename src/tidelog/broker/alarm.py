"""What the shells of all coordinators do alike: wake them when something is due, and send what they have decided."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable
from typing import Any, cast


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Alarm:
    """Calls `ring` in the running event loop when a coordinator's next deadline has come; `set` it after a turn."""

    def __init__(self, next_deadline_ms: Callable[[], int | None], ring: Callable[[], None]) -> None:
        self._next_deadline_ms = next_deadline_ms
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms = 0
        self._closed = False

    def set(self) -> None:
        deadline = self._next_deadline_ms()
        if deadline is None or self._closed:
            return
        if self._timer is not None:
            if self._at_ms <= deadline:
                return
            self._timer.cancel()
        self._at_ms = deadline
        self._timer = self._loop.call_later(max(0, deadline - now_ms()) / 1000, self._rings)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _rings(self) -> None:
        self._timer = None
        self._ring()


def send(replies: Iterable[tuple[Hashable, Any]]) -> None:
    """To those who wait: the tokens of a shell's questions are futures."""
    for token, reply in replies:
        future = cast("asyncio.Future[Any]", token)
        if not future.done():  # else the client is gone
            future.set_result(reply)
