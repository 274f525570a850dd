"""Accepts connections on a listener, and pauses when the process runs out of file descriptors.

The last descriptors are reserved for segments, which must be opened while clients connect. The kernel gives out the
lowest free descriptor, so a connection whose descriptor is near the limit is closed at once, as if none had been
left. During a pause clients wait in the backlog; a client whose connection was closed connects again. asyncio's own
servers would retry a thousand times in each iteration of the event loop and log each failure.
"""

import asyncio
import errno
import resource
import socket
from collections.abc import Callable

import structlog

BACKLOG = 1024
RESERVED_DESCRIPTORS = 128
PAUSE_SECONDS = 1.0
_CALM_SECONDS = 5.0  # without a failure: the shortage is over
_AT_ONCE = 64
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = structlog.get_logger("tidelog.kafka")


def descriptor_limit() -> int | None:
    """How many files the process may have open; None if there is no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def reserved_descriptors(limit: int) -> int:
    return min(RESERVED_DESCRIPTORS, limit // 8)


class Acceptor:
    """One listener. It accepts connections from the call of `accept` on; `close` must be called."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self._sockets = sockets
        self._make: Callable[[], asyncio.BaseProtocol]
        self._loop = asyncio.get_running_loop()
        limit = descriptor_limit()
        self._highest = None if limit is None else limit - reserved_descriptors(limit)
        self._accepting: set[asyncio.Task[object]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._failing_since: float | None = None
        self._last_failure = 0.0
        self._closed = False

    @classmethod
    async def bound(cls, host: str, port: int) -> "Acceptor":
        """An acceptor that is bound to all addresses of the host; port 0 means any free port."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        sockets: list[socket.socket] = []
        try:
            for family, address in dict.fromkeys((each[0], each[4]) for each in found):
                sockets.append(socket.create_server(address[:2], family=family, backlog=BACKLOG))
                sockets[-1].setblocking(False)
        except OSError:
            for each in sockets:
                each.close()
            raise
        return cls(sockets)

    def accept(self, make: Callable[[], asyncio.BaseProtocol]) -> None:
        """Begin to accept; `make` creates the protocol of each connection."""
        self._make = make
        self._resume()

    @property
    def address(self) -> tuple[str, int]:
        name = self._sockets[0].getsockname()
        return name[0], name[1]

    def close(self) -> None:
        self._closed = True
        self._stop()
        if self._paused is not None:
            self._paused.cancel()
        for each in self._sockets:
            each.close()

    def descriptor_freed(self) -> None:
        """A connection was closed: there may be room for another."""
        if self._paused is not None and self._paused.when() > self._loop.time() + 0.1:
            self._paused.cancel()
            self._paused = self._loop.call_later(0.1, self._resume)

    def _resume(self) -> None:
        self._paused = None
        for each in self._sockets:
            self._loop.add_reader(each.fileno(), self._accept, each)

    def _stop(self) -> None:
        for each in self._sockets:
            self._loop.remove_reader(each.fileno())

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._pause(error.strerror or str(error))
                return
            if self._highest is not None and accepted.fileno() >= self._highest:
                accepted.close()
                self._pause("the remaining descriptors are reserved for segments")
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._connected(accepted))
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)

    async def _connected(self, accepted: socket.socket) -> None:
        try:
            # asyncio sets this for its own servers only. Without it replies wait for ACKs, up to 40 ms.
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError as error:
            accepted.close()
            log.debug("client disconnected before it was served", reason=str(error))

    def _pause(self, reason: str) -> None:
        now = self._last_failure = self._loop.time()
        if self._failing_since is None:
            self._failing_since = now
            log.error(
                "out of file descriptors: new connections wait; raise the limit of open files (ulimit -n) "
                "or lower max.connections",
                reason=reason,
                limit=descriptor_limit(),
            )
            self._loop.call_later(_CALM_SECONDS, self._look_whether_it_is_over)
        self._stop()
        self._paused = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _look_whether_it_is_over(self) -> None:
        if self._closed or self._failing_since is None:
            return
        calm = self._loop.time() - self._last_failure
        if calm < _CALM_SECONDS:
            self._loop.call_later(_CALM_SECONDS - calm + 0.01, self._look_whether_it_is_over)
            return
        lasted, self._failing_since = self._last_failure - self._failing_since, None
        log.warning("file descriptors are available again: connections are accepted", seconds=round(lasted, 1))
