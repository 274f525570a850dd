"""What the shells of all coordinators have in common: call them when a deadline is due, and send their replies. (The
shells store decisions with `writes.py`.) And work that goes on when its client is gone."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from typing import Any, TypeVar

import structlog

from tidelog.errors import TidelogError
from tidelog.promise import Promise
from tidelog.storage.trouble import Trouble

_RETRY_S = 1.0

log = structlog.get_logger("tidelog.broker")

T = TypeVar("T")


def now_ms() -> int:
    """The time of day, for what is stored and shown. It jumps when the clock is set, so deadlines use `monotonic_ms`
    instead."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """A clock that never jumps, for deadlines. Its values have no meaning after a restart of the broker."""
    return time.monotonic_ns() // 1_000_000


class Alarm:
    """Calls `ring` in the running event loop at a coordinator's next deadline. Call `set` after each call of the
    coordinator, because the deadline may have changed."""

    def __init__(self, next_deadline_ms: Callable[[], int | None], ring: Callable[[], None]) -> None:
        self._next_deadline_ms = next_deadline_ms
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms = 0
        self._closed = False
        self._trouble = Trouble(
            log, bad="deadlines of a coordinator could not be handled", good="deadlines are handled again"
        )

    def set(self) -> None:
        deadline = self._next_deadline_ms()
        if deadline is None or self._closed:
            return
        if self._timer is not None:
            if self._at_ms <= deadline:
                return
            self._timer.cancel()
        self._at_ms = deadline
        self._timer = self._loop.call_later(max(0, deadline - monotonic_ms()) / 1000, self._rings)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _rings(self) -> None:
        self._timer = None
        try:
            self._ring()
        except Exception as error:  # a bug, which must not stop all later deadlines
            self._trouble.failed(self, error)
            if self._timer is None and not self._closed:
                self._timer = self._loop.call_later(_RETRY_S, self._rings)
        else:
            self._trouble.worked(self)


def tell(news: list[str], say: Callable[..., object]) -> None:
    """Log that a coordinator has reached a bound and refuses more. The operator has to see it here, because clients
    may get no more than an error code."""
    for line in news:
        say("a limit is reached", what=line)
    news.clear()


def send(replies: Iterable[tuple[Hashable, Any]]) -> None:
    """Send replies to the waiting requests. The token of a request is a promise of its reply."""
    for token, reply in replies:
        assert isinstance(token, Promise)
        if not token.is_kept:  # else it was answered when the broker began to stop
            token.settle(reply)


def to_the_end(work: Coroutine[Any, Any, T]) -> Awaitable[T]:
    """Begin the work, and finish it even if the caller is cancelled: for example so that every durable write is also
    applied in memory. If the caller is gone, a failure is logged."""
    task = asyncio.get_running_loop().create_task(work)
    result = asyncio.shield(task)

    def ended(_: "asyncio.Task[T]") -> None:
        error = None if task.cancelled() or not result.cancelled() else task.exception()
        if error is not None:
            is_bug = not isinstance(error, TidelogError)
            log.warning(
                "what a client that is gone had asked for failed",
                reason=str(error) or repr(error),
                exc_info=error if is_bug else None,
            )

    task.add_done_callback(ended)
    return result
