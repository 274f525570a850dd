"""`Promise`: a result that comes later, in the thread of the event loop.

The broker has one convention for results that may take a while: a function returns the result, or a promise of it. A
promise is lighter than a future of the event loop: it calls its listener in the iteration in which the result
arrives, not in a later one. A transaction's requests wait for two writes and two syncs, and with futures each wait
took several iterations.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")
Continuation: TypeAlias = Callable[[T | None, Exception | None], None]
"""Called with the result or with the error."""


class Promise(Generic[T]):
    """Kept once, by `settle` or `fail`. It has at most one listener: an `await`, `when_done`, or `then`."""

    __slots__ = ("_error", "_listener", "_result", "is_kept")

    def __init__(self) -> None:
        self.is_kept = False
        self._result: T | None = None
        self._error: Exception | None = None
        self._listener: Continuation[T] | None = None

    def settle(self, result: T) -> None:
        assert not self.is_kept, "the promise is kept already"
        self.is_kept = True
        self._result = result
        if self._listener is not None:
            self._tell()

    def fail(self, error: Exception) -> None:
        assert not self.is_kept, "the promise is kept already"
        self.is_kept = True
        self._error = error
        if self._listener is not None:
            self._tell()

    def when_done(self, call: Continuation[T]) -> None:
        """Call `call` with the result or the error, but never before `when_done` returns. An exception in `call` is a
        bug: it goes to the loop's exception handler, not to the caller of `settle` or `fail`."""
        assert self._listener is None, "the promise has a listener already"
        self._listener = call
        if self.is_kept:
            asyncio.get_running_loop().call_soon(self._tell)

    def then(self, make: Callable[[T], U], otherwise: Callable[[Exception], U] | None = None) -> "Promise[U]":
        """A promise of `make(result)`; if this promise fails and `otherwise` is given, of `otherwise(error)`."""
        made: Promise[U] = Promise()
        self.when_done(partial(_pass_on, made, make, otherwise))
        return made

    def result(self) -> T:
        """The result; raises the error if the promise failed. Only for a promise that is kept."""
        assert self.is_kept, "the promise is not kept yet"
        if self._error is not None:
            raise self._error
        return cast("T", self._result)

    def __await__(self) -> Generator[Any, None, T]:
        if not self.is_kept:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_done(lambda _result, _error: None if future.done() else future.set_result(None))
            yield from future
        return self.result()

    def _tell(self) -> None:
        assert self._listener is not None
        try:
            self._listener(self._result, self._error)
        except Exception as bug:
            context = {"message": "the listener of a promise raised an exception", "exception": bug}
            asyncio.get_running_loop().call_exception_handler(context)


async def result_of(given: T | Promise[T]) -> T:
    """The given result, or the result of the given promise."""
    return await given if isinstance(given, Promise) else given


def after_all(waiting: Sequence[tuple[Promise[T], Continuation[T]]], make: Callable[[], U]) -> Promise[U]:
    """A promise of `make()`, called when all of these promises are kept. The continuation of each promise is called
    first. If one raises, the returned promise fails with that, after all continuations have been called."""
    assert waiting, "no promises were given"
    together = _Together(len(waiting), make)
    for promise, call in waiting:
        promise.when_done(partial(together.one_is_kept, call))
    return together


# Not nested in the functions that use them: the annotations of a nested function are evaluated at each call.


def _pass_on(
    made: Promise[U],
    make: Callable[[T], U],
    otherwise: Callable[[Exception], U] | None,
    result: T | None,
    error: Exception | None,
) -> None:
    if error is not None and otherwise is None:
        made.fail(error)
        return
    try:
        value = make(cast("T", result)) if error is None else cast("Any", otherwise)(error)
    except Exception as failure:
        made.fail(failure)
    else:
        made.settle(value)


class _Together(Promise[U]):
    """Of `after_all`."""

    __slots__ = ("_failure", "_make", "_missing")

    def __init__(self, missing: int, make: Callable[[], U]) -> None:
        super().__init__()
        self._missing = missing
        self._make = make
        self._failure: Exception | None = None

    def one_is_kept(self, call: Continuation[T], result: T | None, error: Exception | None) -> None:
        self._missing -= 1
        try:
            call(result, error)
            if not self._missing and self._failure is None:
                self.settle(self._make())
                return
        except Exception as bug:
            self._failure = bug
        if not self._missing and self._failure is not None:
            self.fail(self._failure)
