"""What can go wrong between a simulated broker and the two services, chosen by a seed."""

import asyncio
import random
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from tests.support.fake_order import Call, Moment, StillOnItsWay
from tests.support.faulty_objects import MemoryObjects
from tidelog.errors import OutcomeUnknown, StorageUnavailable
from tidelog.records.batch import ReadBuffer
from tidelog.storage.shared.objects import StoredObject


@dataclass
class Weather:
    """How bad it is. `storm` is the probability of a fault for each call; it is set to 0 to let everything end."""

    chance: random.Random
    storm: float

    def delay_s(self) -> float:
        """Mostly milliseconds, sometimes seconds."""
        if self.chance.random() < self.storm / 4:
            return self.chance.uniform(0.5, 6.0)
        return self.chance.uniform(0.0005, 0.02)

    def strikes(self, share: float = 1.0) -> bool:
        return self.chance.random() < self.storm * share


class Process:
    """A broker's process: while it is paused, nothing reaches it and it sends nothing; when it has crashed, never
    again."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self.is_alive = True
        self._running = asyncio.Event()
        self._running.set()

    def crash(self) -> None:
        self.is_alive = False

    def pause(self) -> None:
        self._running.clear()

    def resume(self) -> None:
        self._running.set()

    async def go_on(self) -> None:
        """The process does something: it must be there to do so."""
        while self.is_alive and not self._running.is_set():
            await self._running.wait()
        if not self.is_alive:
            await asyncio.Future()

    async def send(self) -> None:
        """A request of this process is on its way. One that was sent arrives even if the process crashes."""
        await self.go_on()
        await asyncio.sleep(self._weather.delay_s())
        if not self.is_alive and self._weather.chance.random() < 0.5:
            await asyncio.Future()

    async def receive(self) -> None:
        """The reply is on its way."""
        await asyncio.sleep(self._weather.delay_s())
        await self.go_on()

    async def order_hook(self, call: Call) -> None:
        weather = self._weather
        if call.moment is Moment.AFTER:
            await self.receive()
            if weather.strikes():
                raise OutcomeUnknown("the reply was lost")
            return
        await self.send()
        if weather.strikes():
            raise StorageUnavailable("the database refused")
        if weather.strikes(0.5):
            raise OutcomeUnknown("the request was lost")
        if weather.strikes(0.5):
            raise StillOnItsWay(asyncio.sleep(weather.delay_s()))


class SimulatedObjects:
    """The object store as one process reaches it."""

    place = "simulation://"

    def __init__(self, store: MemoryObjects, process: Process, weather: Weather) -> None:
        self._store = store
        self._process = process
        self._weather = weather

    async def put(self, key: str, parts: Sequence[ReadBuffer]) -> None:
        content = [bytes(part) for part in parts]
        await self._there()
        await self._store.put(key, content)
        await self._back()

    async def read(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        await self._there()
        found = await self._store.read(key, ranges)
        await self._back()
        return found

    async def put_stream(self, key: str, parts: AsyncIterable[ReadBuffer]) -> int:
        content = [bytes(part) async for part in parts]
        await self.put(key, content)
        return sum(map(len, content))

    async def read_up_to(self, key: str, position: int, size: int) -> bytes:
        await self._there()
        found = await self._store.read_up_to(key, position, size)
        await self._back()
        return found

    async def remove(self, keys: Iterable[str]) -> None:
        await self._there()
        await self._store.remove(keys)
        await self._back()

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        await self._there()
        found = [one async for one in self._store.list(prefix)]
        await self._back()
        for one in found:
            yield one

    async def close(self) -> None:
        pass

    async def _there(self) -> None:
        await self._process.send()
        if self._weather.strikes():
            raise StorageUnavailable("503 Slow Down")

    async def _back(self) -> None:
        await self._process.receive()
        if self._weather.strikes():
            raise StorageUnavailable("the connection was lost")
