"""The extents of a log in its leader's memory: some 50 bytes for each, found by bisection."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from tidelog.model import Offset, TimestampMs
from tidelog.storage.shared.order import Extent


class Extents:
    """In the order of their offsets. They are given out without their producer facts, which only a new leader
    needs."""

    __slots__ = ("_bases", "_keys", "_lasts", "_positions", "_sizes", "_timestamps", "size_bytes")

    def __init__(self, extents: Iterable[Extent] = ()) -> None:
        self._bases, self._lasts, self._positions, self._sizes, self._timestamps = (array("q") for _ in range(5))
        self._keys: list[str] = []
        self.size_bytes = 0
        for extent in extents:
            self.append(extent)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, number: int) -> Extent:
        return Extent(
            self._bases[number],
            self._lasts[number],
            self._keys[number],
            self._positions[number],
            self._sizes[number],
            self._timestamps[number],
        )

    def __iter__(self) -> Iterator[Extent]:
        return map(self.__getitem__, range(len(self)))

    def append(self, extent: Extent) -> None:
        assert not self._lasts or extent.base_offset > self._lasts[-1], "extents are in order"
        self._bases.append(extent.base_offset)
        self._lasts.append(extent.last_offset)
        self._positions.append(extent.position)
        self._sizes.append(extent.size)
        self._timestamps.append(extent.max_timestamp)
        self._keys.append(extent.key)
        self.size_bytes += extent.size

    def at_or_after(self, offset: Offset) -> int:
        """The number of the first extent that ends at or after `offset`; `len` if there is none."""
        return bisect_left(self._lasts, offset)

    @property
    def sizes(self) -> Sequence[int]:
        return self._sizes

    @property
    def max_timestamp(self) -> TimestampMs:
        """The largest of all; -1 if there are no extents."""
        return max(self._timestamps, default=-1)

    def first_with_time(self, timestamp: TimestampMs, start: int = 0) -> int:
        """The number of the first extent from `start` on that may have a record at or after `timestamp`; `len` if
        there is none."""
        for number in range(start, len(self)):
            if self._timestamps[number] >= timestamp:
                return number
        return len(self)

    def forget_before(self, offset: Offset) -> None:
        """Forget the extents that end before `offset`."""
        self._exchange(0, self.at_or_after(offset), ())

    def has(self, neighbours: Sequence[Extent]) -> bool:
        first = self.at_or_after(neighbours[0].base_offset)
        return [self[number] for number in range(first, min(first + len(neighbours), len(self)))] == list(neighbours)

    def replace(self, old: Sequence[Extent], new: Sequence[Extent]) -> None:
        """Exchange neighbours for others. `has` must be true of `old`."""
        first = self.at_or_after(old[0].base_offset)
        self._exchange(first, first + len(old), new)

    def _exchange(self, start: int, stop: int, new: Sequence[Extent]) -> None:
        self.size_bytes += sum(extent.size for extent in new) - sum(self._sizes[start:stop])
        self._bases[start:stop] = array("q", [extent.base_offset for extent in new])
        self._lasts[start:stop] = array("q", [extent.last_offset for extent in new])
        self._positions[start:stop] = array("q", [extent.position for extent in new])
        self._sizes[start:stop] = array("q", [extent.size for extent in new])
        self._timestamps[start:stop] = array("q", [extent.max_timestamp for extent in new])
        self._keys[start:stop] = [extent.key for extent in new]
