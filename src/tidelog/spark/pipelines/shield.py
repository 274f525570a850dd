"""Keeps Ctrl-C out of the libraries that talk to Spark."""

import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Shield:
    """Runs calls in threads of their own.

    Ctrl-C raises KeyboardInterrupt wherever the main thread is. Inside gRPC it can leave a lock taken (`Condition`
    takes its lock before the `with` statement has begun), and then all later calls wait for ever, and so does the end
    of the process. So the main thread only waits, and the call goes on until it ends by itself."""

    def __init__(self) -> None:
        self._calls: list[_Call[Any]] = []

    def call(self, work: Callable[[], T]) -> T:
        call = self._begin(work)
        call.has_ended(-1)
        if call.error is not None:
            raise call.error
        return call.result

    def has_ended(self, work: Callable[[], object], within_s: float) -> bool:
        """False if the call has not ended in time; then it goes on. What it raises is ignored."""
        return self._begin(work).has_ended(within_s)

    def join(self, within_s: float) -> None:
        """Wait for calls that go on after Ctrl-C."""
        until = time.monotonic() + within_s
        for call in self._calls:
            call.has_ended(max(0.0, until - time.monotonic()))

    def _begin(self, work: Callable[[], T]) -> "_Call[T]":
        call = _Call(work)
        self._calls = [one for one in self._calls if not one.is_done] + [call]
        call.begin()
        return call


class _Call(Generic[T]):
    """Its end is told by a bare lock, which unlike events and futures cannot be left in a wrong state by Ctrl-C."""

    result: T

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._context = contextvars.copy_context()
        self._end = threading.Lock()
        self._end.acquire()
        self.error: BaseException | None = None
        self.is_done = False

    def begin(self) -> None:
        threading.Thread(target=self._run, name="tidelog-shielded", daemon=True).start()

    def has_ended(self, within_s: float) -> bool:
        return self.is_done or self._end.acquire(timeout=within_s) or self.is_done

    def _run(self) -> None:
        try:
            self.result = self._context.run(self._work)
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._end.release()
