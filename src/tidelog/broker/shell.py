"""What the shells of all coordinators do alike: wake them when something is due, store what they have decided, and
send what they say."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from tidelog.errors import TidelogError
from tidelog.metadata.store import Change, MetadataStore
from tidelog.promise import Promise


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


class Writes:
    """Decisions on their way into the store."""

    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._under_way = 0
        self._drained: asyncio.Future[None] | None = None

    def write(self, changes: Sequence[Change], then: Callable[[TidelogError | None], None]) -> None:
        """`then` is called when they are durable, or with the reason why they are not."""

        def done(_: None, error: Exception | None) -> None:
            try:
                if error is not None and not isinstance(error, TidelogError):
                    raise error
                then(error)
            finally:
                self._under_way -= 1
                if self._drained is not None and not self._under_way:
                    self._drained.set_result(None)
                    self._drained = None

        self._under_way += 1
        self._metadata.write(changes).when_done(done)

    async def drain(self) -> None:
        """Wait until none is under way, also of those that the ones before them led to."""
        if self._under_way:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained


def send(replies: Iterable[tuple[Hashable, Any]]) -> None:
    """To those who wait: the tokens of a shell's questions are promises."""
    for token, reply in replies:
        assert isinstance(token, Promise)
        if not token.is_kept:  # else it was told that the broker stops
            token.settle(reply)
