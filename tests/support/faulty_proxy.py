"""A proxy before PostgreSQL or an S3 server that lets a share of the clients' requests meet a fault, for as long as a
test wants. It runs in a thread of its own, so that the test may use any thread or event loop."""

import asyncio
import random
import re
import threading
from collections import Counter
from collections.abc import Coroutine, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple, Self

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_AT_ONCE = 65_536
_START_SECONDS = 30.0
_LATE_SECONDS = 20.0  # how long the answer to a late request is awaited


class Fault(Enum):
    """After all but SLOW, the connection ends."""

    REPLY_LOST = "the server gets the request; its reply is lost"
    LOST = "the server never gets the request"
    LATE = "the server gets the request when the connection of the client is long gone"
    SLOW = "the server gets the request late"
    REFUSED = "the proxy answers with status 503; the server never gets the request"


class _Link(NamedTuple):
    from_client: asyncio.StreamReader
    to_client: asyncio.StreamWriter
    from_server: asyncio.StreamReader
    to_server: asyncio.StreamWriter


class FaultyProxy:
    """Forwards to a port of 127.0.0.1. A request is what the client sent at once; with `http`, a request of HTTP/1.1,
    without which REFUSED is not possible. `delay_s` is the range of the delays of SLOW and LATE."""

    def __init__(
        self, target: int, seed: int, *, http: bool = False, delay_s: tuple[float, float] = (0.1, 5.0)
    ) -> None:
        self._target = target
        self._http = http
        self._delay_s = delay_s
        self._random = random.Random(seed)
        self._faults: Sequence[Fault] = ()
        self._share = 0.0
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="faulty proxy", daemon=True)
        self.port = 0
        self.met: Counter[str] = Counter()
        """How many requests have met each fault."""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._is_up.wait(_START_SECONDS), "the proxy does not start"
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    def trouble(self, faults: Sequence[Fault], share: float) -> None:
        """From now on until `calm`, this share of the requests meets one of these faults."""
        assert self._http or Fault.REFUSED not in faults
        self._faults, self._share = faults, share

    def calm(self) -> None:
        self._share = 0.0

    def cut_all(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._cut)

    # In the thread of the proxy

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_up.set()
        await self._ending.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._cut()
        await server.wait_closed()

    def _cut(self) -> None:
        for link in self._links:
            link.to_client.transport.abort()
            link.to_server.transport.abort()

    async def _accept(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            link = _Link(from_client, to_client, *await asyncio.open_connection("127.0.0.1", self._target))
        except OSError:
            to_client.transport.abort()
            return
        self._links.add(link)
        replies = self._start(_forward(link))
        self._start(self._serve(link, replies))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _serve(self, link: _Link, replies: asyncio.Task[None]) -> None:
        try:
            while request := await self._next_request(link.from_client):
                fault = self._random.choice(self._faults) if self._random.random() < self._share else None
                if fault is not None:
                    self.met[fault.name] += 1
                if fault is Fault.SLOW:
                    await asyncio.sleep(self._random.uniform(*self._delay_s))
                elif fault is not None:
                    replies.cancel()
                    await asyncio.wait([replies])
                    await self._meet(fault, link, request)
                    return
                link.to_server.write(request)
                await link.to_server.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            replies.cancel()
            self._links.discard(link)
            link.to_client.close()
            link.to_server.close()

    async def _next_request(self, from_client: asyncio.StreamReader) -> bytes:
        if not self._http:
            return await from_client.read(_AT_ONCE)
        head = await from_client.readuntil(b"\r\n\r\n")
        assert not _CHUNKED.search(head), "the proxy does not know chunks"
        length = _LENGTH.search(head)
        return head + await from_client.readexactly(int(length[1]) if length else 0)

    async def _meet(self, fault: Fault, link: _Link, request: bytes) -> None:
        if fault is Fault.REFUSED:
            link.to_client.write(_BUSY)
            await link.to_client.drain()
        elif fault is Fault.REPLY_LOST:
            link.to_server.write(request)
            await link.from_server.read(1)
            link.to_client.transport.abort()
        elif fault is Fault.LATE:
            link.to_client.transport.abort()
            await asyncio.sleep(self._random.uniform(*self._delay_s))
            link.to_server.write(request)
            try:
                async with asyncio.timeout(_LATE_SECONDS):
                    await link.from_server.read(1)
            except TimeoutError:
                pass
        else:
            link.to_client.transport.abort()


async def _forward(link: _Link) -> None:
    try:
        while data := await link.from_server.read(_AT_ONCE):
            link.to_client.write(data)
            await link.to_client.drain()
    except ConnectionError:
        pass
    link.to_client.close()
