"""A proxy before PostgreSQL that loses what a test wants it to lose."""

import asyncio
from collections.abc import Coroutine
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple, Self


class Fate(Enum):
    """Of a message. The client's connection is closed afterwards."""

    ANSWERED = "the server gets it and answers; the answer is lost"
    LOST = "the server never gets it"
    LATE = "the server gets it when the test says so; its connection stays open until then"


class _Link(NamedTuple):
    from_client: asyncio.StreamReader
    to_client: asyncio.StreamWriter
    from_server: asyncio.StreamReader
    to_server: asyncio.StreamWriter


class LosingProxy:
    """Forwards to a port. The next message of a client that contains the trigger meets its fate."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._trigger = b""
        self._fate = Fate.LOST
        self._late: tuple[bytes, _Link] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def lose(self, trigger: bytes, fate: Fate) -> None:
        self._trigger, self._fate = trigger, fate

    async def deliver(self) -> None:
        """Give the server the message that is late, and wait until the server has closed the connection."""
        assert self._late is not None
        data, link = self._late
        link.to_server.write(data)
        try:
            while await link.from_server.read(65_536):
                pass
        except ConnectionError:
            pass
        link.to_server.close()

    async def _accept(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            link = _Link(from_client, to_client, *await asyncio.open_connection("127.0.0.1", self._target))
        except OSError:
            to_client.close()
            return
        replies = self._start(_forward(link.from_server, link.to_client))
        self._start(self._serve(link, replies))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _serve(self, link: _Link, replies: asyncio.Task[None]) -> None:
        keep_server = False
        try:
            while data := await link.from_client.read(65_536):
                if self._trigger and self._trigger in data:
                    self._trigger = b""
                    replies.cancel()
                    await asyncio.wait([replies])
                    if self._fate is Fate.ANSWERED:
                        link.to_server.write(data)
                        await link.from_server.read(1)
                    elif self._fate is Fate.LATE:
                        self._late = (data, link)
                        keep_server = True
                    break
                link.to_server.write(data)
                await link.to_server.drain()
        except ConnectionError:
            pass
        finally:
            replies.cancel()
            link.to_client.close()
            if not keep_server:
                link.to_server.close()


async def _forward(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    except ConnectionError:
        pass
    target.close()
