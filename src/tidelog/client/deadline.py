"""Deadlines, and pauses between tries."""

import random
import time

_CHANCE = random.Random()  # noqa: S311  (nothing secret; not the global one, whose state programs may rely on)


class Deadline:
    """The time by which an operation and all its retries must be done, by the monotonic clock."""

    __slots__ = ("at",)

    def __init__(self, timeout_ms: float) -> None:
        self.at = time.monotonic() + timeout_ms / 1000

    def left_s(self) -> float:
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self.at


class Backoff:
    """Exponential backoff with jitter, so that many clients do not retry at the same moment."""

    __slots__ = ("_first_s", "_limit_s", "_tries")

    def __init__(self, first_ms: int, limit_ms: int) -> None:
        self._first_s = first_ms / 1000
        self._limit_s = limit_ms / 1000
        self._tries = 0

    def next_s(self) -> float:
        pause: float = min(self._limit_s, self._first_s * 2 ** min(self._tries, 30))
        self._tries += 1
        return pause * _CHANCE.uniform(0.8, 1.2)

    def reset(self) -> None:
        self._tries = 0
