"""An object store in memory that fails as real ones do, on request.

UNAVAILABLE   the call fails and has no effect: 503, or no connection
REPLY_LOST    the call takes effect, but its caller learns only that the store did not answer
HANG          the call waits for `release`, then goes on
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from enum import Enum, auto

from tidelog.errors import StorageUnavailable
from tidelog.model import TimestampMs
from tidelog.records.batch import ReadBuffer
from tidelog.storage.shared.objects import ObjectMissing, StoredObject


class Fault(Enum):
    UNAVAILABLE = auto()
    REPLY_LOST = auto()
    HANG = auto()


class MemoryObjects:
    """`ObjectStore` in memory. Calls without faults take one iteration of the event loop."""

    place = "memory://"

    def __init__(self, now_ms: Callable[[], TimestampMs] = lambda: 1_700_000_000_000) -> None:
        self.objects: dict[str, bytes] = {}
        self.modified_ms: dict[str, TimestampMs] = {}
        self.puts = self.reads = 0  # calls that reached the store, failed ones included
        self.ranges: list[tuple[str, int, int]] = []  # that were asked for: key, position, size
        self.hanging = 0  # calls that wait for `release`
        self._now_ms = now_ms
        self._faults: dict[str, deque[Fault | None]] = {kind: deque() for kind in ("put", "read", "remove", "list")}
        self._released = asyncio.Event()

    def fail(self, call: str, fault: Fault, times: int = 1) -> None:
        """The next `times` calls of this kind ("put", "read", "remove", "list") meet the fault, after those that were
        requested before."""
        self._faults[call].extend([fault] * times)
        if fault is Fault.HANG:
            self._released.clear()

    def fail_later(self, call: str, fault: Fault, good: int) -> None:
        """The call of this kind after `good` others meets the fault."""
        self._faults[call].extend([*([None] * good), fault])

    def fail_no_more(self, call: str) -> None:
        """Forget the faults that were requested and not met."""
        self._faults[call].clear()

    def release(self) -> None:
        """Let the calls that hang go on."""
        self._released.set()

    def lose(self, key: str) -> None:
        del self.objects[key]

    def truncate(self, key: str, size: int) -> None:
        self.objects[key] = self.objects[key][:size]

    def damage(self, key: str, position: int) -> None:
        content = bytearray(self.objects[key])
        content[position] ^= 0xFF
        self.objects[key] = bytes(content)

    async def put(self, key: str, parts: Sequence[ReadBuffer]) -> None:
        self.puts += 1
        fault = await self._meet("put")
        if key in self.objects:
            raise StorageUnavailable(f"{key}: there is an object of this key already")
        self.objects[key] = b"".join(parts)
        self.modified_ms[key] = self._now_ms()
        self._reply(fault)

    async def put_stream(self, key: str, parts: AsyncIterable[ReadBuffer]) -> int:
        content = [bytes(part) async for part in parts]
        await self.put(key, content)
        return sum(map(len, content))

    async def read(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.reads += 1
        self.ranges += [(key, position, size) for position, size in ranges]
        self._reply(await self._meet("read"))
        content = self.objects.get(key)
        if content is None:
            raise ObjectMissing(f"{key}: there is no such object")
        if any(position + size > len(content) for position, size in ranges):
            raise ObjectMissing(f"{key}: the object is shorter than expected")
        return [content[position : position + size] for position, size in ranges]

    async def read_up_to(self, key: str, position: int, size: int) -> bytes:
        end = min(position + size, max(position + 1, len(self.objects.get(key, b""))))
        [content] = await self.read(key, [(position, end - position)])
        return content

    async def remove(self, keys: Iterable[str]) -> None:
        fault = await self._meet("remove")
        for key in keys:
            self.objects.pop(key, None)
        self._reply(fault)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        self._reply(await self._meet("list"))
        for key, content in sorted(self.objects.items()):  # as it is now: objects may be removed meanwhile
            if key.startswith(prefix):
                yield StoredObject(key, len(content), self.modified_ms.get(key, 0))

    async def close(self) -> None:
        pass

    async def _meet(self, call: str) -> Fault | None:
        fault = self._faults[call].popleft() if self._faults[call] else None
        if fault is Fault.HANG:
            self.hanging += 1
            try:
                await self._released.wait()
            finally:
                self.hanging -= 1
        else:
            await asyncio.sleep(0)
        if fault is Fault.UNAVAILABLE:
            raise StorageUnavailable("memory://: 503 Slow Down")
        return fault

    def _reply(self, fault: Fault | None) -> None:
        if fault is Fault.REPLY_LOST:
            raise StorageUnavailable("memory://: the connection was lost")
