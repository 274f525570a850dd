"""An event loop in a thread of its own, and methods that wait for what it runs: the base of the blocking client."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from tidelog.client.errors import ClientClosed

T = TypeVar("T")
P = ParamSpec("P")
A = TypeVar("A")


class LoopThread:
    """An event loop in a thread of its own; other threads give it coroutines to run."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="tidelog client", daemon=True)
        self._thread.start()
        self._is_stopped = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine and return its result. An interrupt of the waiting thread (Ctrl-C) cancels it."""
        if self._is_stopped:
            work.close()
            raise ClientClosed("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("the client was closed in the meantime") from None
        except BaseException:
            future.cancel()
            raise

    def stop(self, last: Coroutine[Any, Any, None]) -> None:
        """Run a last coroutine and end the thread. May be called by the thread itself, which runs the garbage
        collector too."""
        if self._is_stopped:
            last.close()
            return
        self._is_stopped = True

        async def end() -> None:
            try:
                await last
            finally:
                self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run_loop(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class Blocking:
    """An object whose `blocking` methods are run by this thread."""

    _thread: LoopThread


B = TypeVar("B", bound=Blocking)


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]], of: Callable[[B], A]
) -> Callable[Concatenate[B, P], T]:
    """A method of a `Blocking` class that waits for an asynchronous one, with its parameters and its documentation.

        topics = blocking(Admin.topics, of=_admin)

    `of` gives the object that has the asynchronous method.
    """
    return cast("Callable[Concatenate[B, P], T]", _Forwarder(method, of))


class _Forwarder(Generic[B, A, P, T]):
    """Replaces itself by a function when it learns its name, so that help() and tracebacks show that name."""

    def __init__(self, method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]], of: Callable[[B], A]) -> None:
        self._method = method
        self._of = of

    def __set_name__(self, owner: type[B], name: str) -> None:
        method, of = self._method, self._of

        @wraps(method)
        def wait(self: B, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return self._thread.run(method(of(self), *args, **kwargs))

        wait.__name__, wait.__qualname__, wait.__module__ = name, f"{owner.__qualname__}.{name}", owner.__module__
        setattr(owner, name, wait)
