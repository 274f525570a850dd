"""Keeps Ctrl-C out of the libraries that talk to Spark."""

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class Shield:
    """Runs calls in threads of their own.

    Ctrl-C raises KeyboardInterrupt wherever the main thread is. Inside gRPC it can leave a lock taken (`Condition`
    takes its lock before the `with` statement has begun), and then all later calls wait for ever, and so does the end
    of the process. So the main thread only waits, and the call goes on until it ends by itself."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def call(self, work: Callable[[], T]) -> T:
        return self._start(work).result()

    def has_ended(self, work: Callable[[], object], within_s: float) -> bool:
        """False if the call has not ended in time; then it goes on. What it raises is ignored."""
        self._start(work)
        self._threads[-1].join(within_s)
        return not self._threads[-1].is_alive()

    def join(self, within_s: float) -> None:
        """Wait for calls that go on after Ctrl-C."""
        until = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _start(self, work: Callable[[], T]) -> Future[T]:
        outcome: Future[T] = Future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                outcome.set_result(context.run(work))
            except BaseException as error:
                outcome.set_exception(error)

        thread = threading.Thread(target=run, name="tidelog-shielded", daemon=True)
        thread.start()
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        return outcome
