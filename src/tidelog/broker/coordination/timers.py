"""Deadlines without a clock: the caller passes the time. Setting, moving and cancelling take constant time.

A heartbeat moves its member's deadline a thousand times more often than a session expires. So moving a deadline later
does not change the heap: when the timer's old entry comes up it is not due yet, and is pushed again with the new
deadline.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count


class Timer:
    """Calls `action(now_ms)` once its deadline has passed. It fires once; `Timers.set` arms it again."""

    __slots__ = ("action", "deadline_ms", "queued_ms")

    def __init__(self, action: Callable[[int], None]) -> None:
        self.action = action
        self.deadline_ms: int | None = None
        self.queued_ms: int | None = None  # of its valid entry in the heap; its other entries are stale


class Timers:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = count()

    def set(self, timer: Timer, deadline_ms: int) -> None:
        """Arms the timer, or moves its deadline."""
        timer.deadline_ms = deadline_ms
        if timer.queued_ms is None or timer.queued_ms > deadline_ms:
            self._push(timer, deadline_ms)

    @staticmethod
    def cancel(timer: Timer) -> None:
        timer.deadline_ms = None

    def next_deadline_ms(self) -> int | None:
        """When to call `run` again: never later than the next deadline, sometimes earlier."""
        heap = self._heap
        while heap and (heap[0][2].deadline_ms is None or heap[0][2].queued_ms != heap[0][0]):
            at_ms, _, timer = heappop(heap)
            if timer.queued_ms == at_ms:
                timer.queued_ms = None
        return heap[0][0] if heap else None

    def run(self, now_ms: int) -> None:
        """Runs the actions of all timers whose deadline is now or earlier, in the order of their deadlines."""
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            at_ms, _, timer = heappop(heap)
            if timer.queued_ms != at_ms:
                continue
            timer.queued_ms = None
            deadline_ms = timer.deadline_ms
            if deadline_ms is None:
                continue
            if deadline_ms > now_ms:
                self._push(timer, deadline_ms)
            else:
                timer.deadline_ms = None
                timer.action(now_ms)

    def _push(self, timer: Timer, deadline_ms: int) -> None:
        timer.queued_ms = deadline_ms
        heappush(self._heap, (deadline_ms, next(self._order), timer))
