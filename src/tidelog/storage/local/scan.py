"""Walking a segment's log file batch by batch: for recovery, index rebuilding, time look-ups, verification."""

import sys
from collections.abc import Iterator
from typing import NamedTuple

from tidelog.errors import CorruptBatch
from tidelog.model import Offset
from tidelog.records.batch import HEADER_SIZE, LENGTH_END, BatchView, check_integrity, read_header
from tidelog.storage.local.files import File

_CHUNK = 1 << 20
MAX_RELATIVE_OFFSET = 0x7FFF_FFFF  # what an index entry can hold


class Damage(NamedTuple):
    """The first place of a segment that is not a whole, valid batch."""

    position: int
    reason: str


class BatchScan:
    """The batches of `file` between two positions, as views into chunks that are read ahead.

    Stops at the end or at the first batch that is not valid; then `damage` says where and why, and `position` is the
    end of the last good batch either way. Without `verify` only the headers are looked at. With `base_offset`, an
    offset that such a segment cannot hold is damage too: the CRC does not cover it.
    """

    def __init__(self, file: File, start: int, end: int, *, verify: bool, base_offset: Offset | None = None) -> None:
        self._file = file
        self._end = end
        self._base_offset = base_offset
        self._verify = verify
        self.position = start
        self.damage: Damage | None = None

    def __iter__(self) -> Iterator[BatchView]:
        chunk = memoryview(b"")
        chunk_start = self.position
        lowest = self._base_offset or 0
        highest = sys.maxsize if self._base_offset is None else self._base_offset + MAX_RELATIVE_OFFSET
        last_offset = lowest - 1
        while self.position < self._end:
            at = self.position - chunk_start
            wanted = self._wanted(chunk, at)
            if at + wanted > len(chunk):
                chunk_start, at = self.position, 0
                size = min(max(_CHUNK, wanted), self._end - chunk_start)
                chunk = memoryview(self._file.pread(size, chunk_start))
                wanted = self._wanted(chunk, at)
                if wanted > len(chunk) and size < self._end - chunk_start:
                    chunk = memoryview(self._file.pread(min(wanted, self._end - chunk_start), chunk_start))
            try:
                header = read_header(chunk, at)
                if self._verify:
                    check_integrity(chunk, at, header)
                if header.base_offset <= last_offset:
                    raise CorruptBatch(f"base offset {header.base_offset} does not follow offset {last_offset}")
                if header.last_offset > highest:
                    raise CorruptBatch(f"offset {header.last_offset} cannot be in segment {self._base_offset}")
            except CorruptBatch as error:
                self.damage = Damage(self.position, str(error).replace(f" at position {at}", ""))
                return
            last_offset = header.last_offset
            position, self.position = self.position, self.position + header.size
            yield BatchView(position, header, chunk[at : at + header.size])

    def _wanted(self, chunk: memoryview, at: int) -> int:
        """How many bytes the batch at `at` takes, as far as the chunk shows."""
        if at + HEADER_SIZE > len(chunk):
            return HEADER_SIZE
        return max(HEADER_SIZE, int.from_bytes(chunk[at + 8 : at + 12], "big", signed=True) + LENGTH_END)


def batch_at(file: File, position: int, end: int) -> BatchView | None:
    """The one batch that starts at `position`, or None if there is no whole valid one."""
    return next(iter(BatchScan(file, position, end, verify=True)), None)
