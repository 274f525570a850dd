"""Sparse indexes of a segment: where an offset stands, and which offset a time has. Byte-compatible with Kafka's.

    .index      8 bytes an entry, big-endian: offset relative to the segment's base (4), position in the log (4)
                The offset is the last one of the batch that starts at the position.
    .timeindex  12 bytes an entry, big-endian: timestamp (8), relative offset (4)
                No record with a later timestamp stands at or before the offset.

An entry is made for the first batch after every `index_interval_bytes`. Entries grow in both numbers. The writer's
indexes live in memory and are saved beside the log; a sealed segment's are mapped from the file. Indexes are hints:
what they say is checked against the log, and they are made anew from it when they are missing or wrong.
"""

import sys
from array import array
from bisect import bisect_right
from struct import Struct
from typing import NamedTuple, Protocol

from tidelog.model import NO_TIMESTAMP, TimestampMs
from tidelog.records.batch import ReadBuffer

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY = Struct(">qI")
TIME_ENTRY_SIZE = TIME_ENTRY.size

POSITION_MASK = _LOW = 0xFFFF_FFFF
_FENCE = 64  # one entry in so many is held in memory; the search inside them reads one run of the mapped file
_RUN_BYTES = _FENCE * OFFSET_ENTRY_SIZE
_LITTLE_ENDIAN = sys.byteorder == "little"


class OffsetEntry(NamedTuple):
    relative_offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: TimestampMs
    relative_offset: int


def _position(entry: int) -> int:
    return entry & _LOW


def _native(stored: ReadBuffer) -> "array[int]":
    """Entries as numbers (offset << 32 | position), which sort as the entries do."""
    entries = array("Q")
    entries.frombytes(stored)
    if _LITTLE_ENDIAN:
        entries.byteswap()
    return entries


class OffsetIndex(Protocol):
    def __len__(self) -> int: ...
    def entry(self, number: int) -> OffsetEntry: ...
    def at_or_before(self, relative_offset: int) -> int:
        """The entry of the batch to scan from to find the offset, as a number (offset << 32 | position); -1: there is
        none, scan from the segment's start."""

    def boundary_at_or_before(self, position: int) -> int:
        """The last indexed batch start that is not past `position`, or 0."""


class TimeIndex(Protocol):
    def __len__(self) -> int: ...
    def entry(self, number: int) -> TimeEntry: ...
    def last(self) -> TimeEntry | None: ...
    def before(self, timestamp: TimestampMs) -> int:
        """An offset (relative) up to which every record is older than `timestamp`, or 0."""


class OffsetIndexWriter:
    """The offset index of a segment that still grows."""

    __slots__ = ("_entries",)

    def __init__(self, stored: ReadBuffer = b"") -> None:
        self._entries = _native(stored)

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, relative_offset: int, position: int) -> None:
        self._entries.append(relative_offset << 32 | position)

    def last(self) -> OffsetEntry | None:
        return self.entry(len(self._entries) - 1) if self._entries else None

    def entry(self, number: int) -> OffsetEntry:
        value = self._entries[number]
        return OffsetEntry(value >> 32, value & _LOW)

    def at_or_before(self, relative_offset: int) -> int:
        found = bisect_right(self._entries, relative_offset << 32 | _LOW)
        return self._entries[found - 1] if found else -1

    def boundary_at_or_before(self, position: int) -> int:
        found = bisect_right(self._entries, position, key=_position)
        return self._entries[found - 1] & _LOW if found else 0

    def stored(self, first: int = 0) -> bytes:
        """The entries from number `first` on, as they stand in the file."""
        entries = self._entries[first:]
        if _LITTLE_ENDIAN:
            entries.byteswap()
        return entries.tobytes()


class OffsetIndexReader:
    """The offset index of a sealed segment, over its mapped file."""

    __slots__ = ("_fences", "_view")

    def __init__(self, stored: ReadBuffer) -> None:
        self._view = memoryview(stored)
        self._fences = _native(self._view.cast("Q")[::_FENCE].tobytes()) if stored else array("Q")

    def __len__(self) -> int:
        return len(self._view) // OFFSET_ENTRY_SIZE

    def entry(self, number: int) -> OffsetEntry:
        (value,) = _native(self._view[number * 8 : number * 8 + 8])
        return OffsetEntry(value >> 32, value & _LOW)

    def at_or_before(self, relative_offset: int) -> int:
        key = relative_offset << 32 | _LOW
        fence = bisect_right(self._fences, key)
        if not fence:
            return -1
        run = array("Q", self._view[(fence - 1) * _RUN_BYTES : fence * _RUN_BYTES].tobytes())
        if _LITTLE_ENDIAN:
            run.byteswap()
        return run[bisect_right(run, key) - 1]

    def boundary_at_or_before(self, position: int) -> int:
        fence = bisect_right(self._fences, position, key=_position)
        if not fence:
            return 0
        run = _native(self._view[(fence - 1) * _RUN_BYTES : fence * _RUN_BYTES])
        return run[bisect_right(run, position, key=_position) - 1] & _LOW


class TimeIndexWriter:
    """The time index of a segment that still grows: the largest timestamp so far and where it stands."""

    __slots__ = ("_stored", "_timestamps")

    def __init__(self, stored: ReadBuffer = b"") -> None:
        self._stored = bytearray(stored)
        self._timestamps = array("q", [timestamp for timestamp, _ in TIME_ENTRY.iter_unpack(stored)])

    def __len__(self) -> int:
        return len(self._timestamps)

    def append(self, timestamp: TimestampMs, relative_offset: int) -> None:
        """Skipped unless the timestamp grows, as the entries must."""
        if timestamp > (self._timestamps[-1] if self._timestamps else NO_TIMESTAMP):
            self._timestamps.append(timestamp)
            self._stored += TIME_ENTRY.pack(timestamp, relative_offset)

    def last(self) -> TimeEntry | None:
        return self.entry(len(self._timestamps) - 1) if self._timestamps else None

    def entry(self, number: int) -> TimeEntry:
        return TimeEntry._make(TIME_ENTRY.unpack_from(self._stored, number * TIME_ENTRY_SIZE))

    def before(self, timestamp: TimestampMs) -> int:
        found = bisect_right(self._timestamps, timestamp - 1)
        return self.entry(found - 1).relative_offset if found else 0

    def stored(self, first: int = 0) -> bytes:
        return bytes(self._stored[first * TIME_ENTRY_SIZE :])


class TimeIndexReader:
    """The time index of a sealed segment, over its mapped file."""

    __slots__ = ("_view",)

    def __init__(self, stored: ReadBuffer) -> None:
        self._view = memoryview(stored)

    def __len__(self) -> int:
        return len(self._view) // TIME_ENTRY_SIZE

    def last(self) -> TimeEntry | None:
        return self.entry(len(self) - 1) if len(self) else None

    def entry(self, number: int) -> TimeEntry:
        return TimeEntry._make(TIME_ENTRY.unpack_from(self._view, number * TIME_ENTRY_SIZE))

    def before(self, timestamp: TimestampMs) -> int:
        found = bisect_right(range(len(self)), timestamp - 1, key=lambda number: self.entry(number).timestamp)
        return self.entry(found - 1).relative_offset if found else 0
