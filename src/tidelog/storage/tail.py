"""The tail cache: the newest batches of every partition in memory, with one limit for all partitions together.

Consumers that keep up with the log read here and never touch a file; those that lag by many batches get them from the
page cache with one call. The batch that was appended first is dropped first, whichever partition it belongs to, so a
quiet partition cannot hold memory that a busy one needs.
"""

from bisect import bisect_left, bisect_right
from collections import deque

from tidelog.model import Offset
from tidelog.records.batch import ReadBuffer
from tidelog.storage.log import MemoryUse

_COPY_BELOW = 16 << 10
_MOST_BATCHES, _MOST_BYTES = 32, 64 << 10  # per read of a reader that keeps up
_MOST_PARTS = 1024  # per read, if there is no page cache behind the tail
_PLACE_BYTES = 64


class TailCache:
    """The budget that the tails share. Each batch is charged its size and a little for its place in the queue, so
    that neither data nor bookkeeping can outgrow the capacity."""

    __slots__ = ("_order", "capacity_bytes", "is_over_files", "size_bytes")

    def __init__(self, capacity_bytes: int, *, is_over_files: bool = True) -> None:
        """`is_over_files`: what is not in the tail is in a file, which serves many or large batches as cheaply."""
        self.capacity_bytes = capacity_bytes
        self.is_over_files = is_over_files
        self.size_bytes = 0
        self._order: deque[Tail] = deque()

    @property
    def memory(self) -> MemoryUse:
        return MemoryUse("newest batches", "tail-cache-bytes", self.capacity_bytes, self.size_bytes)

    def added(self, tail: "Tail", size: int) -> None:
        self._order.append(tail)
        size_bytes = self.size_bytes + size + _PLACE_BYTES
        while size_bytes > self.capacity_bytes:
            size_bytes -= self._order.popleft().drop_oldest() + _PLACE_BYTES
        self.size_bytes = size_bytes

    def cleared(self, size: int) -> None:
        """A tail has dropped `size` bytes. Its places stay in the queue and free nothing when they are reached."""
        self.size_bytes -= size


class Tail:
    """The newest appends of one partition, without gaps, up to its end."""

    __slots__ = ("_base_offsets", "_cache", "_first", "_views")

    def __init__(self, cache: TailCache) -> None:
        self._cache = cache
        self._base_offsets: list[Offset] = []
        self._views: list[ReadBuffer] = []
        self._first = 0  # earlier entries are dropped; the lists are shortened now and then

    def append(self, base_offset: Offset, batch: memoryview) -> None:
        """Keep one batch: a small one as a copy; a large one without copying, if it is most of the buffer that it
        keeps alive. Other large batches are left to the page cache, from where they are sent as cheaply as from here;
        to copy them would cost more than the write."""
        size = len(batch)
        keep: ReadBuffer
        if size + _PLACE_BYTES > self._cache.capacity_bytes:
            self.clear()
            return
        if size < _COPY_BELOW:
            keep = bytes(batch)
        elif 2 * size >= len(batch.obj):  # type: ignore[arg-type]  # bytes or a bytearray
            keep = batch
        elif not self._cache.is_over_files:
            keep = bytes(batch)
        else:
            self.clear()
            return
        self._base_offsets.append(base_offset)
        self._views.append(keep)
        self._cache.added(self, size)

    def read(self, offset: Offset, max_bytes: int, up_to: Offset, *, at_least_one: bool) -> list[ReadBuffer] | None:
        """Whole batches from the one that holds `offset`. None if that batch is no longer cached, or if there are so
        many batches that sending them from the file is cheaper."""
        bases = self._base_offsets
        at = bisect_right(bases, offset, self._first) - 1
        views = self._views
        if at < self._first:
            return None
        if len(views) - at > _MOST_BATCHES and max_bytes > _MOST_BYTES and self._cache.is_over_files:
            return None
        found: list[ReadBuffer] = []
        while at < len(views) and bases[at] < up_to:
            view = views[at]
            max_bytes -= len(view)
            if max_bytes < 0 and (found or not at_least_one):
                break
            found.append(view)
            at += 1
            if len(found) == _MOST_PARTS:
                break
        return found

    def between(self, offset: Offset, end: Offset) -> list[ReadBuffer] | None:
        """All batches from `offset`, where one begins, up to `end`. None if that batch is no longer cached."""
        bases = self._base_offsets
        first = bisect_left(bases, offset, self._first)
        if first == len(bases) or bases[first] != offset:
            return None
        return self._views[first : bisect_left(bases, end, first)]

    @property
    def first_offset(self) -> Offset | None:
        """The base offset of the oldest batch in memory; None if there is none."""
        return self._base_offsets[self._first] if self._first < len(self._views) else None

    def drop_oldest(self) -> int:
        """Returns the size of the dropped batch; 0 if the tail is empty."""
        first = self._first
        if first == len(self._views):
            return 0
        size = len(self._views[first])
        self._views[first] = b""
        self._first = first + 1
        if self._first > 64 and 2 * self._first > len(self._views):
            del self._views[: self._first], self._base_offsets[: self._first]
            self._first = 0
        return size

    def drop_before(self, offset: Offset) -> None:
        """Drop the batches that begin before `offset`: compaction may have changed them."""
        while self._first < len(self._views) and self._base_offsets[self._first] < offset:
            self._cache.cleared(self.drop_oldest())

    def clear(self) -> None:
        self._cache.cleared(sum(map(len, self._views)))
        self._views, self._base_offsets, self._first = [], [], 0
