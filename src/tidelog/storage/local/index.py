"""Sparse indexes of a segment: from offset to file position, and from time to offset. Byte-compatible with Kafka's.

    .index      8 bytes an entry, big-endian: offset relative to the segment's base (4), position in the log (4)
                The offset is the last one of the batch that starts at the position.
    .timeindex  12 bytes an entry, big-endian: timestamp (8), relative offset (4)
                No record at or before the offset has a later timestamp.

An entry is made for the first batch after every `index_interval_bytes`. Both numbers increase from entry to entry.
The active segment's indexes are in memory and are saved beside the log; a sealed segment's are read from their files,
a few entries at a time. (They are not memory-mapped: a page that cannot be read, or that was truncated, would kill
the process with SIGBUS.) Indexes are hints: their entries are checked against the log, and an index that is missing
or wrong is rebuilt from the log.
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
_FENCE = 64  # one of so many entries is kept in memory; the search between two of them reads one run of the file
_RUN_BYTES = _FENCE * OFFSET_ENTRY_SIZE
_CHUNK = 128 * _RUN_BYTES
_LITTLE_ENDIAN = sys.byteorder == "little"


class WrongIndexError(Exception):
    """The index does not match its log: an entry names no batch, or the file is shorter than it was."""


class StoredIndex(Protocol):
    """The part of `File` that index readers need."""

    def size(self) -> int: ...
    def pread(self, size: int, position: int) -> bytes: ...


class OffsetEntry(NamedTuple):
    relative_offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: TimestampMs
    relative_offset: int


def _position(entry: int) -> int:
    return entry & _LOW


def _native(stored: ReadBuffer) -> "array[int]":
    """Entries as numbers (offset << 32 | position), which have the same order as the entries."""
    entries = array("Q")
    entries.frombytes(stored)
    if _LITTLE_ENDIAN:
        entries.byteswap()
    return entries


class OffsetIndex(Protocol):
    def at_or_before(self, relative_offset: int) -> int:
        """The entry of the batch from which to scan for the offset, as a number (offset << 32 | position); -1: there
        is none, scan from the segment's start."""

    def boundary_at_or_before(self, position: int) -> int:
        """The last indexed batch start at or before `position`, or 0."""


class TimeIndex(Protocol):
    def last(self) -> TimeEntry | None: ...
    def before(self, timestamp: TimestampMs) -> int:
        """A relative offset up to which every record is older than `timestamp`, or 0."""


class OffsetIndexWriter:
    """The offset index of the active segment."""

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
        """The entries from number `first` on, in the format of the file."""
        entries = self._entries[first:]
        if _LITTLE_ENDIAN:
            entries.byteswap()
        return entries.tobytes()


class OffsetIndexReader:
    """The offset index of a sealed segment, in its file. Raises OSError, and WrongIndexError if the file was
    truncated."""

    __slots__ = ("_fences", "_file", "_run", "_run_number", "_size")

    def __init__(self, file: StoredIndex) -> None:
        self._file = file
        self._size = file.size()
        self._run, self._run_number = array("Q"), -1
        self._fences = array("Q")
        for position in range(0, self._size, _CHUNK):
            entries = array("Q", _whole(file, min(_CHUNK, self._size - position), position))
            self._fences += entries[::_FENCE]
        if _LITTLE_ENDIAN:
            self._fences.byteswap()

    def at_or_before(self, relative_offset: int) -> int:
        key = relative_offset << 32 | _LOW
        fence = bisect_right(self._fences, key)
        if not fence:
            return -1
        run = self._run if fence - 1 == self._run_number else self._read_run(fence - 1)
        return run[bisect_right(run, key) - 1]

    def boundary_at_or_before(self, position: int) -> int:
        fence = bisect_right(self._fences, position, key=_position)
        if not fence:
            return 0
        run = self._run if fence - 1 == self._run_number else self._read_run(fence - 1)
        return run[bisect_right(run, position, key=_position) - 1] & _LOW

    def _read_run(self, number: int) -> "array[int]":
        """The entries from one fence to the next. The last run is cached, because sequential readers need it
        again."""
        start = number * _RUN_BYTES
        stored = self._file.pread(_RUN_BYTES, start)
        if len(stored) != _RUN_BYTES and start + len(stored) != self._size:
            raise WrongIndexError
        self._run = run = array("Q", stored)
        if _LITTLE_ENDIAN:
            run.byteswap()
        self._run_number = number
        return run


class TimeIndexWriter:
    """The time index of the active segment: the largest timestamp so far and its offset."""

    __slots__ = ("_stored", "_timestamps")

    def __init__(self, stored: ReadBuffer = b"") -> None:
        self._stored = bytearray(stored)
        self._timestamps = array("q", [timestamp for timestamp, _ in TIME_ENTRY.iter_unpack(stored)])

    def __len__(self) -> int:
        return len(self._timestamps)

    def append(self, timestamp: TimestampMs, relative_offset: int) -> None:
        """Does nothing unless the timestamp is larger than the last one: entries must increase."""
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
    """The time index of a sealed segment, in its file. Raises OSError, and WrongIndexError if the file was
    truncated."""

    __slots__ = ("_file", "_size")

    def __init__(self, file: StoredIndex) -> None:
        self._file = file
        self._size = file.size()

    def __len__(self) -> int:
        return self._size // TIME_ENTRY_SIZE

    def last(self) -> TimeEntry | None:
        return self.entry(len(self) - 1) if len(self) else None

    def entry(self, number: int) -> TimeEntry:
        return TimeEntry._make(TIME_ENTRY.unpack(_whole(self._file, TIME_ENTRY_SIZE, number * TIME_ENTRY_SIZE)))

    def before(self, timestamp: TimestampMs) -> int:
        found = bisect_right(range(len(self)), timestamp - 1, key=lambda number: self.entry(number).timestamp)
        return self.entry(found - 1).relative_offset if found else 0


def _whole(file: StoredIndex, size: int, position: int) -> bytes:
    content = file.pread(size, position)
    if len(content) != size:
        raise WrongIndexError
    return content
