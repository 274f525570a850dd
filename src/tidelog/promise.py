"""`Promise`: a result that comes later, in the thread of the event loop.

Lighter than a future of the loop: whoever waits is called in the very turn in which the result is there, not in one
of the next. A transaction's requests wait for two writes and two syncs, and each wait went through several turns.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeAlias, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")
Listener: TypeAlias = Callable[[T | None, Exception | None], None]


class Promise(Generic[T]):
    """Kept once, by `settle` or `fail`. One waits for it: in a task, with `when_done`, or with `then`."""

    __slots__ = ("_error", "_listener", "_result", "is_kept")

    def __init__(self) -> None:
        self.is_kept = False
        self._result: T | None = None
        self._error: Exception | None = None
        self._listener: Listener[T] | None = None

    def settle(self, result: T) -> None:
        self._keep(result, None)

    def fail(self, error: Exception) -> None:
        self._keep(None, error)

    def when_done(self, call: Listener[T]) -> None:
        """Call it with the result or the error; not within this call. What it raises is a bug: it is reported to the
        loop and does not reach whoever keeps the promise."""
        assert self._listener is None, "somebody waits already"
        self._listener = call
        if self.is_kept:
            asyncio.get_running_loop().call_soon(self._tell)

    def then(self, make: Callable[[T], U]) -> "Promise[U]":
        """A promise of what `make` makes of the result."""
        made: Promise[U] = Promise()

        def go_on(result: T | None, error: Exception | None) -> None:
            if error is not None:
                made.fail(error)
                return
            try:
                value = make(cast("T", result))
            except Exception as failure:
                made.fail(failure)
            else:
                made.settle(value)

        self.when_done(go_on)
        return made

    def __await__(self) -> Generator[Any, None, T]:
        if not self.is_kept:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_done(lambda _result, _error: None if future.done() else future.set_result(None))
            yield from future
        if self._error is not None:
            raise self._error
        return cast("T", self._result)

    def _keep(self, result: T | None, error: Exception | None) -> None:
        assert not self.is_kept, "it is kept already"
        self.is_kept = True
        self._result = result
        self._error = error
        if self._listener is not None:
            self._tell()

    def _tell(self) -> None:
        assert self._listener is not None
        try:
            self._listener(self._result, self._error)
        except Exception as bug:
            context = {"message": "whoever waited for a promise failed at its result", "exception": bug}
            asyncio.get_running_loop().call_exception_handler(context)
