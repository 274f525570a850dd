"""Reading the batches of a log from its objects, for readers whose offset is no longer in memory.

A read begins at the batch that holds an offset. Where that batch is in its extent is known if an earlier read ended
right before it, which is so for every reader that goes through the log; otherwise the extent is walked, from one
batch header to the next. Segments have an index that says where to begin. The neighbouring extents are fetched at the
same time.

    ObjectMissing   the object is gone. If the log has exchanged its extents meanwhile, the read begins again;
                    otherwise data was lost, and only reads of this range fail.
    CorruptLog      the bytes in the object are not the batches of the extent
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from tidelog.errors import CorruptBatch, CorruptLog
from tidelog.model import Offset, TimestampMs
from tidelog.records.batch import (
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MIN_LENGTH,
    BatchHeader,
    BatchView,
    ReadBuffer,
    size_at,
)
from tidelog.records.record import decode
from tidelog.storage.log import TimestampOffset
from tidelog.storage.shared.blocks import BlockCache
from tidelog.storage.shared.extents import Extents
from tidelog.storage.shared.objects import ObjectMissing, ObjectStore
from tidelog.storage.shared.order import Extent
from tidelog.storage.shared.segment_object import PREFIX as SEGMENTS
from tidelog.storage.shared.segment_object import SegmentIndex, load_segment_after

T = TypeVar("T")

_WINDOW_BYTES = 1 << 20  # read at once while a batch is looked for
_TOGETHER = 32  # extents of one read
_REMEMBERED_PLACES = 10_000
_REMEMBERED_INDEXES = 256
_INDEXED_BYTES = 1 << 20  # smaller segments are walked


class ColdReader:
    """`readers` of its reads are at work at the same time; others wait."""

    def __init__(self, objects: ObjectStore, blocks: BlockCache, readers: int = 16) -> None:
        self._objects = objects
        self._blocks = blocks
        self._indexes: OrderedDict[str, SegmentIndex] = OrderedDict()
        self._slots = asyncio.Semaphore(readers)
        self._places: OrderedDict[tuple[str, int, Offset], int] = OrderedDict()
        """The ends of earlier reads: in an extent (key and position) the position of the batch with a base offset."""

    async def batches(
        self,
        extents: Callable[[], Extents],
        offset: Offset,
        max_bytes: int,
        end: Offset,
        *,
        at_least_one: bool,
    ) -> list[ReadBuffer]:
        """Whole batches from the one that holds `offset`, all of them before `end`: at most `max_bytes`, but with
        `at_least_one` the first one whatever its size. Each part holds batches of one extent."""
        async with self._slots:
            while True:
                chosen = _chosen(extents(), offset, max_bytes, end)
                try:
                    return await self._batches(chosen, offset, max_bytes, end, at_least_one=at_least_one)
                except ObjectMissing:
                    if _chosen(extents(), offset, max_bytes, end) == chosen:
                        raise

    async def _batches(
        self, extents: list[Extent], offset: Offset, max_bytes: int, end: Offset, *, at_least_one: bool
    ) -> list[ReadBuffer]:
        fetched = await _all_of(
            self._fetch(extent, offset, max_bytes, at_least_one=at_least_one and not number)
            for number, extent in enumerate(extents)
        )
        found: list[ReadBuffer] = []
        for extent, result in zip(extents, fetched, strict=True):
            if isinstance(result, BaseException):
                if found:
                    break  # the next read, which begins here, will fail
                raise result
            position, data = result
            size, next_offset = whole_batches(
                data, extent, position, max_bytes, end, at_least_one=at_least_one and not found
            )
            if size:
                found.append(data[:size])
                max_bytes -= size
                self._remember(extent, next_offset, position + size)
            if position + size < extent.position + extent.size:
                break
        return found

    async def _fetch(
        self, extent: Extent, offset: Offset, max_bytes: int, *, at_least_one: bool
    ) -> tuple[int, memoryview]:
        """The position of the batch that holds `offset`, and bytes from there on: at most `max_bytes`, but with
        `at_least_one` the whole batch."""
        position = await self.position_of(extent, offset)
        limit = extent.position + extent.size
        data = await self._read(extent, position, min(limit - position, max(max_bytes, HEADER_SIZE)))
        if at_least_one and HEADER_SIZE <= len(data) < size_at(data, 0) <= limit - position:
            data = await self._read(extent, position, size_at(data, 0))
        return position, memoryview(data)

    async def position_of(self, extent: Extent, offset: Offset) -> int:
        """The position in the object of the batch that holds `offset`, or of the first one after it."""
        if offset <= extent.base_offset:
            return extent.position
        known = self._places.get((extent.key, extent.position, offset))
        if known is not None:
            return known
        async for position, header, _ in self._walk(extent, await self._start(extent, offset)):
            if header.last_offset >= offset:
                return position
        raise CorruptLog("the extent ends too early", file=extent.key, position=extent.position, offset=offset)

    async def first_at_or_after(
        self, extents: Callable[[], Extents], timestamp: TimestampMs, start: Offset, end: Offset
    ) -> TimestampOffset | None:
        """The first record from `start` on, before `end`, whose timestamp is at or after `timestamp`."""
        async with self._slots:
            offset = start
            while True:
                known = extents()
                number = known.first_with_time(timestamp, known.at_or_after(offset))
                if number == len(known) or known[number].base_offset >= end:
                    return None
                extent = known[number]
                try:
                    found = await self._in_extent(extent, timestamp, start)
                except ObjectMissing:
                    known = extents()
                    number = known.at_or_after(extent.base_offset)
                    if number < len(known) and known[number] == extent:
                        raise
                    continue
                if found is not None:
                    return found if found.offset < end else None
                offset = extent.last_offset + 1

    async def _in_extent(self, extent: Extent, timestamp: TimestampMs, start: Offset) -> TimestampOffset | None:
        index = await self._index(extent)
        begin = extent.position if index is None else index.around_time(timestamp)[0]
        async for position, header, batch in self._walk(extent, begin, contents=True):
            if header.max_timestamp < timestamp or header.last_offset < start:
                continue
            try:
                records = decode(BatchView(0, header, batch))
            except CorruptBatch as error:
                raise CorruptLog(str(error), file=extent.key, position=position, offset=header.base_offset) from None
            for record in records:
                if record.timestamp >= timestamp and record.offset >= start:
                    return TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
        return None

    async def _start(self, extent: Extent, offset: Offset) -> int:
        """Where to begin to look for an offset."""
        index = await self._index(extent)
        return extent.position if index is None else max(extent.position, index.around(offset)[0])

    async def _index(self, extent: Extent) -> SegmentIndex | None:
        """The index of a large segment. An extent that is its only one is all of its data."""
        if extent.size < _INDEXED_BYTES or extent.position or not extent.key.startswith(SEGMENTS):
            return None
        index = self._indexes.get(extent.key)
        if index is None:
            segment = await load_segment_after(self._objects, extent.key, extent.size)
            index = self._indexes[extent.key] = segment.index
            if len(self._indexes) > _REMEMBERED_INDEXES:
                self._indexes.popitem(last=False)
        else:
            self._indexes.move_to_end(extent.key)
        return index

    async def _walk(
        self, extent: Extent, position: int, *, contents: bool = False
    ) -> AsyncIterator[tuple[int, BatchHeader, memoryview]]:
        """The batches of an extent from a position on: position in the object, header, and bytes, which are whole
        only with `contents`."""
        limit = extent.position + extent.size
        data, at = memoryview(b""), 0
        while position < limit:
            left = len(data) - at
            if left < HEADER_SIZE or (contents and left < size_at(data, at)):
                wanted = max(_WINDOW_BYTES, size_at(data, at) if left >= HEADER_SIZE else 0)
                data, at = memoryview(await self._read(extent, position, min(wanted, limit - position))), 0
            header = _header(data, at, extent, position)
            yield position, header, data[at : at + header.size]
            position += header.size
            at += min(header.size, len(data) - at)

    async def _read(self, extent: Extent, position: int, size: int) -> ReadBuffer:
        parts = await self._blocks.read(extent.key, position, size, cold=True)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _remember(self, extent: Extent, offset: Offset, position: int) -> None:
        if offset > extent.last_offset:
            return
        self._places[extent.key, extent.position, offset] = position
        if len(self._places) > _REMEMBERED_PLACES:
            self._places.popitem(last=False)


def _chosen(extents: Extents, offset: Offset, max_bytes: int, end: Offset) -> list[Extent]:
    """The extents from the one that holds `offset`, as many as are needed."""
    chosen: list[Extent] = []
    number, size = extents.at_or_after(offset), 0
    while number < len(extents) and len(chosen) < _TOGETHER and (size < max_bytes or not chosen):
        extent = extents[number]
        if extent.base_offset >= end:
            break
        if chosen:  # of the first one it is not known how much comes before `offset`
            size += extent.size
        chosen.append(extent)
        number += 1
    return chosen


def whole_batches(
    data: memoryview, extent: Extent, position: int, max_bytes: int, end: Offset, *, at_least_one: bool
) -> tuple[int, Offset]:
    """How many bytes of `data`, which begins at `position` of the object, are whole batches before `end`: at most
    `max_bytes`, but with `at_least_one` the first batch; and the offset after them."""
    at, next_offset = 0, extent.base_offset
    while len(data) - at >= HEADER_SIZE:
        header = _header(data, at, extent, position + at)
        stop = at + header.size
        if header.base_offset >= end or stop > len(data) or (stop > max_bytes and (at or not at_least_one)):
            break
        at, next_offset = stop, header.next_offset
    return at, next_offset


def _header(data: memoryview, at: int, extent: Extent, position: int) -> BatchHeader:
    """The header at `at` in `data`, which is `position` in the object. Its batch may go on after the end of
    `data`."""
    if len(data) - at >= HEADER_SIZE:
        header = BatchHeader._make(HEADER.unpack_from(data, at))
        if (
            header.magic == MAGIC
            and MIN_LENGTH <= header.length <= extent.position + extent.size - position - LENGTH_END
            and extent.base_offset <= header.base_offset <= header.last_offset <= extent.last_offset
        ):
            return header
    raise CorruptLog("not a batch of this log", file=extent.key, position=position, offset=extent.base_offset)


async def _all_of(reads: Iterable[Coroutine[Any, Any, T]]) -> list[T | BaseException]:
    """The results or errors of all reads, which are made at the same time."""
    tasks = [asyncio.ensure_future(read) for read in reads]
    try:
        return await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
