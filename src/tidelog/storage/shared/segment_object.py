"""A segment: the object that holds a long run of one log. Merging, compaction and import make them.

    data      batches, byte for byte as a local .log file has them
    footer    topic id (16), partition (4), base offset (8), last offset (8), size of the data (8), max timestamp (8),
              CRC32C of the data (4), number of index entries (4), number of aborted transactions (4), size of the
              snapshot (4)
              index, column by column: base offsets of batches relative to the segment's (8 each), their positions
              (4 each), the largest timestamp of all batches before them or -1 (8 each)
              aborted transactions, 32 bytes each: producer id, first offset, last offset, last stable offset
              snapshot of the producers after the last batch: see `producer_facts.py`
    end       see `footer.py`; kind "TLsegm", version 1

Numbers are big-endian. The index has an entry for the first batch after every 64 KiB, none for the first batch. All
numbers of a column increase, or stay the same for timestamps.
"""

import asyncio
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from struct import Struct
from uuid import UUID

from tidelog.errors import CorruptBatch, CorruptLog
from tidelog.model import NO_TIMESTAMP, Offset, TimestampMs
from tidelog.records.batch import HEADER_SIZE, BatchView, ReadBuffer, check_integrity, read_header, size_at
from tidelog.records.crc import crc32c
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, read_marker
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.producers import Producers
from tidelog.storage.shared import footer
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.producer_facts import pack_snapshot

KIND = footer.Kind(b"TLsegm", 1)
PREFIX = "s/"
INDEX_INTERVAL = 64 << 10
MOST_DATA = 1 << 32
MOST_BATCH = 1 << 29
"""A larger batch is taken for a damaged length: otherwise everything after it would be gathered in memory."""
_LOOKED_AT_ONCE = 128 << 10
_HEAD = Struct(">16siqqqqIIII")
_ABORTED = Struct(">qqqq")
_ENTRY_SIZE = 8 + 4 + 8
_LITTLE_ENDIAN = sys.byteorder == "little"
_POSITION = "I" if array("I").itemsize == 4 else "L"


def new_key(topic_id: bytes, partition: int, base_offset: Offset, unique: UUID) -> str:
    return f"{PREFIX}{topic_id.hex()}/{partition}/{base_offset:020}-{unique.hex}"


class SegmentIndex:
    """Where to look in the data of a segment."""

    __slots__ = ("_base_offset", "_data_size", "_offsets", "_positions", "_timestamps")

    def __init__(self, base_offset: Offset, data_size: int) -> None:
        self._base_offset = base_offset
        self._data_size = data_size
        self._offsets, self._positions, self._timestamps = array("q"), array(_POSITION), array("q")

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[tuple[Offset, int, TimestampMs]]:
        """Of each entry: the base offset of its batch, its position, the largest timestamp before it."""
        for offset, position, timestamp in zip(self._offsets, self._positions, self._timestamps, strict=True):
            yield self._base_offset + offset, position, timestamp

    def around(self, offset: Offset) -> tuple[int, int]:
        """The byte range, as (position, size), in which the batch that holds `offset` begins. It consists of whole
        batches. The last range if `offset` is after the segment."""
        return self._range(bisect_right(self._offsets, offset - self._base_offset))

    def around_time(self, timestamp: TimestampMs) -> tuple[int, int]:
        """The byte range in which the first batch with a timestamp at or after `timestamp` begins, if the segment has
        one."""
        return self._range(bisect_left(self._timestamps, timestamp))

    def _range(self, number: int) -> tuple[int, int]:
        """Before the entry `number`, and from the one before it on."""
        start = self._positions[number - 1] if number else 0
        end = self._positions[number] if number < len(self) else self._data_size
        return start, end - start

    # For the writer and the reader of the format

    def append(self, relative_offset: Offset, position: int, timestamp: TimestampMs) -> None:
        self._offsets.append(relative_offset)
        self._positions.append(position)
        self._timestamps.append(timestamp)

    def complete(self, data_size: int) -> None:
        self._data_size = data_size

    def packed(self) -> bytes:
        columns = []
        for column in (self._offsets, self._positions, self._timestamps):
            stored = column[:]
            if _LITTLE_ENDIAN:
                stored.byteswap()
            columns.append(stored.tobytes())
        return b"".join(columns)

    def load(self, packed: memoryview, count: int) -> bool:
        """False if the entries cannot be right."""
        at = 0
        for column in (self._offsets, self._positions, self._timestamps):
            size = count * column.itemsize
            column.frombytes(packed[at : at + size])
            if _LITTLE_ENDIAN:
                column.byteswap()
            at += size
        return (
            _increases(self._offsets, strictly=True)
            and _increases(self._positions, strictly=True)
            and _increases(self._timestamps, strictly=False)
            and (not count or (self._offsets[0] > 0 and 0 < self._positions[0] <= self._positions[-1]))
            and (not count or self._positions[-1] < self._data_size)
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """The footer of a segment."""

    topic_id: bytes
    partition: int
    base_offset: Offset
    last_offset: Offset
    data_size: int
    max_timestamp: TimestampMs
    crc: int
    index: SegmentIndex
    aborted: list[AbortedTransaction]
    """The transactions whose abort markers are in the segment, in their order."""
    producers: bytes
    """The producers after the last batch, for `read_snapshot`."""


class SegmentWriter:
    """Makes a segment of batches that come piece by piece. Nothing is kept of them."""

    def __init__(self, topic_id: bytes, partition: int, producers: Producers, now_ms: TimestampMs) -> None:
        """`producers` are those of the log before the first batch; the writer changes them."""
        self._topic_id = topic_id
        self._partition = partition
        self._producers = producers
        self._now_ms = now_ms
        self._index = SegmentIndex(0, 0)
        self._aborted: list[AbortedTransaction] = []
        self._rest = bytearray()  # the beginning of a batch whose end has not come yet
        self._needed = HEADER_SIZE  # bytes of it before it makes sense to look at it again
        self._indexed_at = 0
        self._base_offset = self._next_offset = -1
        self._max_timestamp: TimestampMs = NO_TIMESTAMP
        self._crc = 0
        self.data_size = 0
        """Bytes of whole batches so far."""

    @property
    def base_offset(self) -> Offset:
        """Of the first batch; -1 if there is none yet."""
        return self._base_offset

    @property
    def last_offset(self) -> Offset:
        """Of the last batch so far."""
        return self._next_offset - 1

    @property
    def max_timestamp(self) -> TimestampMs:
        return self._max_timestamp

    async def parts(self, batches: AsyncIterable[ReadBuffer]) -> AsyncIterator[ReadBuffer]:
        """The whole object for `ObjectStore.put_stream`. `batches` may be cut anywhere. CorruptLog: they are not
        valid batches in the order of their offsets."""
        async for piece in batches:
            view = memoryview(piece)
            for at in range(0, len(view), _LOOKED_AT_ONCE):
                self.add(view[at : at + _LOOKED_AT_ONCE])
                await asyncio.sleep(0)  # small batches take a while
            yield piece
        yield self.finish()

    def add(self, piece: ReadBuffer) -> None:
        """The next bytes of the data."""
        self._crc = crc32c(piece, self._crc)
        buffer = piece
        if self._rest:
            self._rest += piece
            if len(self._rest) < self._needed:
                return
            buffer, self._rest = self._rest, bytearray()
        view = memoryview(buffer)
        position, self._needed = 0, HEADER_SIZE
        while len(view) - position >= HEADER_SIZE:
            size = size_at(view, position)
            if position + size > len(view) and HEADER_SIZE <= size <= MOST_BATCH:
                self._needed = size
                break
            try:
                header = read_header(view, position)
                check_integrity(view, position, header)
            except CorruptBatch as error:
                raise self._damaged(str(error)) from None
            self._saw(BatchView(position, header, view[position : position + size]))
            position += size
        self._rest += view[position:]

    def finish(self) -> bytes:
        """The last bytes of the object."""
        if self._rest:
            raise self._damaged("the last batch is cut off")
        assert self.data_size, "a segment holds at least one batch"
        self._index.complete(self.data_size)
        snapshot = pack_snapshot(self._producers)
        head = _HEAD.pack(
            self._topic_id,
            self._partition,
            self._base_offset,
            self._next_offset - 1,
            self.data_size,
            self._max_timestamp,
            self._crc,
            len(self._index),
            len(self._aborted),
            len(snapshot),
        )
        aborted = b"".join(_ABORTED.pack(*each) for each in self._aborted)
        return footer.seal(KIND, b"".join([head, self._index.packed(), aborted, snapshot]))

    def _saw(self, batch: BatchView) -> None:
        header = batch.header
        if header.base_offset < max(self._next_offset, 0):
            raise self._damaged(f"base offset {header.base_offset} after {self._next_offset - 1}")
        if self._base_offset < 0:
            self._base_offset = header.base_offset
        elif self.data_size - self._indexed_at >= INDEX_INTERVAL:
            self._index.append(header.base_offset - self._base_offset, self.data_size, self._max_timestamp)
            self._indexed_at = self.data_size
        if header.has_producer:
            self._producers.update(header, header.base_offset, self._now_ms)
            if header.is_control:
                self._saw_marker(batch)
        self._max_timestamp = max(self._max_timestamp, header.max_timestamp)
        self._next_offset = header.next_offset
        self.data_size += header.size
        assert self.data_size < MOST_DATA, "the segment is too large"

    def _saw_marker(self, batch: BatchView) -> None:
        try:
            marker = read_marker(batch)
        except CorruptBatch:  # a control batch of another kind
            return
        header = batch.header
        self._producers.saw_marker(header.producer_id, marker.coordinator_epoch)
        if marker.type in (COMMIT_MARKER, ABORT_MARKER):
            aborted = self._producers.ended(header, header.base_offset, marker.type == COMMIT_MARKER)
            if aborted is not None:
                self._aborted.append(aborted)

    def _damaged(self, reason: str) -> CorruptLog:
        where = f"data for a segment of {self._topic_id.hex()}-{self._partition}"
        return CorruptLog(reason, file=where, position=self.data_size, offset=self._next_offset)


def read_segment(tail: ReadBuffer, size: int, key: str) -> Segment:
    """The footer of a segment of `size` bytes, of whose last bytes `tail` are enough (`footer.needed`)."""
    return _segment(footer.unseal(tail, KIND, size, key), key)


async def load_segment(objects: ObjectStore, key: str, size: int) -> Segment:
    """Fetch the footer of a segment of `size` bytes."""
    return _segment(await footer.load(objects, key, size, KIND, _likely_footer(size)), key)


async def load_segment_after(objects: ObjectStore, key: str, data_size: int) -> Segment:
    """Fetch the footer of a segment of which only the size of its data is known, as its last extent tells it."""
    most = _likely_footer(data_size)
    while True:
        tail = await objects.read_up_to(key, data_size, most)
        if len(tail) < most:
            return _segment(footer.unseal(tail, KIND, data_size + len(tail), key), key)
        if most > footer.MOST_BYTES:
            raise CorruptLog("no footer after the data", file=key, position=data_size, offset=-1)
        most *= 8


def _likely_footer(size: int) -> int:
    """Enough for the footer of nearly every segment of about this size."""
    return footer.TAIL_SIZE + size // INDEX_INTERVAL * _ENTRY_SIZE


def _segment(found: footer.Footer, key: str) -> Segment:
    content = found.content

    def damaged(reason: str) -> CorruptLog:
        return CorruptLog(reason, file=key, position=found.position, offset=-1)

    if len(content) < _HEAD.size:
        raise damaged("the footer is too short")
    topic_id, partition, base, last, data_size, max_timestamp, crc, entries, aborts, snapshot = _HEAD.unpack_from(
        content
    )
    if len(content) != _HEAD.size + entries * _ENTRY_SIZE + aborts * _ABORTED.size + snapshot:
        raise damaged("the footer has another size than its parts")
    if data_size != found.position or not 0 <= base <= last or partition < 0:
        raise damaged("the footer does not fit the object")
    index = SegmentIndex(base, data_size)
    at = _HEAD.size
    if not index.load(content[at:], entries):
        raise damaged("the index is not in order")
    at += entries * _ENTRY_SIZE
    aborted = list(map(AbortedTransaction._make, _ABORTED.iter_unpack(content[at : at + aborts * _ABORTED.size])))
    if not _are_in_order(aborted, base, last):
        raise damaged("the aborted transactions are not in order")
    at += aborts * _ABORTED.size
    return Segment(
        topic_id, partition, base, last, data_size, max_timestamp, crc, index, aborted, bytes(content[at:])
    )


def _increases(column: "array[int]", *, strictly: bool) -> bool:
    return all(a < b or (a == b and not strictly) for a, b in pairwise(column))


def _are_in_order(aborted: Iterable[AbortedTransaction], base: Offset, last: Offset) -> bool:
    before = base - 1
    for each in aborted:
        if not before < each.last_offset <= last or not 0 <= each.first_offset <= each.last_offset:
            return False
        before = each.last_offset
    return True
