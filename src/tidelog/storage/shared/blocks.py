"""The block cache: reads of objects, 1 MiB at a time, each block fetched once for all its readers.

Blocks are aligned, so that readers of neighbouring ranges share them; an object smaller than a block is one block.
Objects never change, so a block is never stale.

What is kept: a segmented LRU. A new block is on probation. If bytes of it are read that were read before, it becomes
protected. Whoever goes through old data once, in pieces of any size, reads every byte once and so displaces only
blocks on probation.

What is fetched: missing neighbouring blocks with one request (a *flight*), shared by all who need one of them. A
reader that is cancelled leaves the flight to the others; a failed flight fails its readers and leaves nothing behind.
The number of requests is limited in two lanes: readers of old data (`cold`) wait for each other, never readers of
recent data for them. A reader that comes from block to block has the next ones fetched ahead, while the cold lane has
nothing else to do.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import TypeAlias

from tidelog.errors import LogClosed, StorageError, fresh
from tidelog.records.batch import ReadBuffer
from tidelog.storage.log import MemoryUse
from tidelog.storage.shared.objects import ObjectMissing, ObjectStore

BLOCK_SIZE = 1 << 20
HOT_REQUESTS = 8
COLD_REQUESTS = 4
MOST_BLOCKS_PER_REQUEST = 2
MOST_BLOCKS_AHEAD = 4
_PROTECTED_SHARE = 0.8
_OVERHEAD = 512  # of an entry; so many tiny objects do not take more memory than allowed
_GRAINS = 1024  # a block remembers with this precision which bytes were read

_Id: TypeAlias = tuple[str, int]  # key and number of a block
_Landed: TypeAlias = dict[int, ReadBuffer] | Exception  # blocks by their numbers, or why there are none


class _Block:
    __slots__ = ("content", "grains")

    def __init__(self, content: ReadBuffer) -> None:
        self.content = content
        self.grains = 0
        """A bit for each 1/1024 of the block whose first byte was read."""


class _Flight:
    """A request for neighbouring blocks of an object, which waits for its turn or is under way."""

    __slots__ = ("cold", "count", "first", "is_ahead", "key", "started", "waiting")

    def __init__(self, key: str, first: int, count: int, *, cold: bool, is_ahead: bool) -> None:
        self.key = key
        self.first = first
        self.count = count
        self.cold = cold
        self.is_ahead = is_ahead
        self.started = False
        self.waiting: list[asyncio.Future[_Landed]] = []

    @property
    def is_wanted(self) -> bool:
        return self.is_ahead or any(not each.done() for each in self.waiting)


class BlockCache:
    """Used only from the thread of the event loop."""

    def __init__(self, objects: ObjectStore, capacity_bytes: int, *, block_size: int = BLOCK_SIZE) -> None:
        self._objects = objects
        self._capacity = capacity_bytes
        self._block_size = block_size
        self._grain = max(1, block_size // _GRAINS)
        self._most_ahead = min(MOST_BLOCKS_AHEAD, capacity_bytes // (8 * block_size))
        # The least recently used block is first in each.
        self._probation: OrderedDict[_Id, _Block] = OrderedDict()
        self._protected: OrderedDict[_Id, _Block] = OrderedDict()
        self._probation_bytes = self._protected_bytes = 0
        self._flights: dict[_Id, _Flight] = {}
        self._queues: tuple[deque[_Flight], deque[_Flight]] = (deque(), deque())  # hot, cold
        self._running = [0, 0]
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self.hits = self.misses = 0
        """Reads that found everything in memory, and those that did not."""

    @property
    def memory(self) -> MemoryUse:
        used = self._probation_bytes + self._protected_bytes
        return MemoryUse("blocks of objects", "cluster.cache-bytes", self._capacity, used)

    def cached(self, key: str, position: int, size: int) -> list[ReadBuffer] | None:
        """The bytes, in parts, if all of them are in memory; else None. ObjectMissing: the object is known to be
        shorter."""
        assert size > 0, "nothing is asked for"
        for number in self._numbers(position, size):
            if self._find((key, number)) is None:
                return None
        self.hits += 1
        return self._take(key, position, size, {})

    async def read(self, key: str, position: int, size: int, *, cold: bool = False) -> list[ReadBuffer]:
        """The bytes, in parts. ObjectMissing: the object is not there, or shorter. StorageUnavailable: the store does
        not answer."""
        if (found := self.cached(key, position, size)) is not None:
            return found
        self.misses += 1
        # A reader holds its blocks: others may displace them from the cache before it gets to run.
        held: dict[int, ReadBuffer] = {}
        waiting: list[asyncio.Future[_Landed]] = []
        missing: list[int] = []
        for number in self._numbers(position, size):
            block = self._find((key, number))
            if block is not None:
                held[number] = block.content
            elif (flight := self._flights.get((key, number))) is not None:
                waiting.append(self._join(flight, cold))
            else:
                missing.append(number)
        waiting += [self._join(self._fly(key, run, cold=cold), cold) for run in self._runs(missing)]
        try:
            for future in waiting:
                landed = await future
                if isinstance(landed, Exception):
                    raise fresh(landed)
                held.update(landed)
        finally:
            for future in waiting:
                future.cancel()  # so that nobody fetches what only this reader wanted
        return self._take(key, position, size, held)

    def prefetch(self, key: str, position: int, size: int) -> None:
        """Fetch the bytes ahead of a reader that will soon come for them, if the cold lane is free."""
        for number in self._numbers(position, size):
            self._fetch_ahead((key, number))

    async def close(self) -> None:
        """Readers that still wait fail with LogClosed."""
        self._is_closed = True
        for queue in self._queues:
            queue.clear()
        for flight in list(self._flights.values()):
            self._land(flight, _stopping())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # What is kept

    def _find(self, which: _Id) -> _Block | None:
        return self._protected.get(which) or self._probation.get(which)

    def _keep(self, which: _Id, content: ReadBuffer) -> None:
        if len(content) + _OVERHEAD > self._capacity or which in self._protected or which in self._probation:
            return
        self._probation[which] = _Block(content)
        self._probation_bytes += len(content) + _OVERHEAD
        self._make_room()

    def _make_room(self) -> None:
        while self._probation_bytes + self._protected_bytes > self._capacity:
            if self._probation:
                _, block = self._probation.popitem(last=False)
                self._probation_bytes -= len(block.content) + _OVERHEAD
            else:
                _, block = self._protected.popitem(last=False)
                self._protected_bytes -= len(block.content) + _OVERHEAD

    def _touch(self, which: _Id, block: _Block, start: int, end: int) -> None:
        """Bytes of the block were read."""
        if which in self._protected:
            self._protected.move_to_end(which)
            return
        grain = self._grain
        low, high = -(-start // grain), -(-end // grain)
        read = ((1 << (high - low)) - 1) << low
        is_again, is_first = bool(block.grains & read), not block.grains
        block.grains |= read
        if is_again:
            self._protect(which, block)
        else:
            self._probation.move_to_end(which)
        if is_first and read and len(block.content) == self._block_size:
            self._read_ahead(which)

    def _protect(self, which: _Id, block: _Block) -> None:
        size = len(block.content) + _OVERHEAD
        del self._probation[which]
        self._probation_bytes -= size
        self._protected[which] = block
        self._protected_bytes += size
        while self._protected_bytes > _PROTECTED_SHARE * self._capacity and len(self._protected) > 1:
            demoted, old = self._protected.popitem(last=False)
            size = len(old.content) + _OVERHEAD
            self._protected_bytes -= size
            self._probation[demoted] = old
            self._probation_bytes += size

    def _take(self, key: str, position: int, size: int, held: dict[int, ReadBuffer]) -> list[ReadBuffer]:
        """The bytes from the blocks, which are in the cache or held by the reader."""
        parts: list[ReadBuffer] = []
        end = position + size
        for number in self._numbers(position, size):
            base = number * self._block_size
            block = self._find((key, number))
            content = block.content if block is not None else held.get(number, b"")
            start, stop = max(0, position - base), min(self._block_size, end - base)
            if stop > len(content):
                raise ObjectMissing(f"{key}: the object ends before position {end}")
            parts.append(content if stop - start == len(content) else memoryview(content)[start:stop])
            if block is not None:
                self._touch((key, number), block, start, stop)
        return parts

    # What is fetched

    def _numbers(self, position: int, size: int) -> range:
        return range(position // self._block_size, (position + size - 1) // self._block_size + 1)

    def _runs(self, numbers: list[int]) -> Iterator[range]:
        """Neighbours together, as many as one request may fetch."""
        at = 0
        while at < len(numbers):
            first, count = numbers[at], 1
            while (
                count < MOST_BLOCKS_PER_REQUEST and at + count < len(numbers) and numbers[at + count] == first + count
            ):
                count += 1
            yield range(first, first + count)
            at += count

    def _read_ahead(self, which: _Id) -> None:
        """The block is read for the first time. The more blocks before it are here, the more come after it."""
        key, number = which
        ahead = 0
        while ahead < self._most_ahead and self._find((key, number - 1 - ahead)) is not None:
            ahead += 1
        for step in range(1, ahead + 1):
            self._fetch_ahead((key, number + step))

    def _fetch_ahead(self, which: _Id) -> None:
        is_free = self._running[True] < COLD_REQUESTS and not self._queues[True]
        if (
            is_free
            and self._most_ahead
            and not self._is_closed
            and which not in self._flights
            and self._find(which) is None
        ):
            self._fly(which[0], range(which[1], which[1] + 1), cold=True, is_ahead=True)

    def _fly(self, key: str, numbers: range, *, cold: bool, is_ahead: bool = False) -> _Flight:
        if self._is_closed:
            raise _stopping()
        flight = _Flight(key, numbers.start, len(numbers), cold=cold, is_ahead=is_ahead)
        for number in numbers:
            self._flights[key, number] = flight
        self._queues[cold].append(flight)
        self._start_flights(cold)
        return flight

    def _join(self, flight: _Flight, cold: bool) -> "asyncio.Future[_Landed]":
        future: asyncio.Future[_Landed] = asyncio.get_running_loop().create_future()
        flight.waiting.append(future)
        if flight.cold and not cold and not flight.started:
            flight.cold = False  # a reader of recent data does not wait behind cold ones
            self._queues[True].remove(flight)
            self._queues[False].append(flight)
            self._start_flights(False)
        return future

    def _start_flights(self, cold: bool) -> None:
        queue, most = self._queues[cold], COLD_REQUESTS if cold else HOT_REQUESTS
        while queue and self._running[cold] < most:
            flight = queue.popleft()
            if flight.waiting and not flight.is_wanted:
                self._land(flight, {})  # all its readers were cancelled while it waited
                continue
            flight.started = True
            self._running[cold] += 1
            task = asyncio.get_running_loop().create_task(self._run(flight, cold))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, flight: _Flight, cold: bool) -> None:
        size = self._block_size
        landed: _Landed = _stopping()
        try:
            found = await self._objects.read_up_to(flight.key, flight.first * size, flight.count * size)
            pieces: list[ReadBuffer] = [found]
            if len(found) > size:  # each in memory of its own, so that one does not keep the others alive
                pieces = [bytes(memoryview(found)[at : at + size]) for at in range(0, len(found), size)]
            landed = dict(enumerate(pieces, flight.first))
            for number, piece in landed.items():
                self._keep((flight.key, number), piece)
        except Exception as error:
            landed = error
        finally:
            self._running[cold] -= 1
            self._land(flight, landed)
            self._start_flights(cold)

    def _land(self, flight: _Flight, landed: _Landed) -> None:
        """Tell the readers. Does nothing for a flight that has landed already."""
        for number in range(flight.first, flight.first + flight.count):
            if self._flights.get((flight.key, number)) is flight:
                del self._flights[flight.key, number]
        for future in flight.waiting:
            if not future.done():
                future.set_result(landed)
        flight.waiting.clear()
        if isinstance(landed, Exception) and not isinstance(landed, StorageError):
            context = {"message": "fetching blocks of an object failed", "exception": landed}
            asyncio.get_running_loop().call_exception_handler(context)


def _stopping() -> LogClosed:
    return LogClosed("the broker is stopping")
