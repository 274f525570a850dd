"""Scanning a segment's log file batch by batch: for recovery, index rebuilding, time look-ups and verification."""

import sys
from collections.abc import Iterator
from typing import NamedTuple

from tidelog.errors import CorruptBatch
from tidelog.model import Offset
from tidelog.records.batch import HEADER_SIZE, BatchView, check_integrity, read_header, size_at
from tidelog.storage.local.files import File

_CHUNK = 1 << 20
MAX_RELATIVE_OFFSET = 0x7FFF_FFFF  # the largest that an index entry can hold


class Damage(NamedTuple):
    """The first place of a segment that is not a whole, valid batch."""

    position: int
    reason: str


class BatchScan:
    """The batches of `file` between two positions, as views into chunks that are read ahead.

    Stops at the end or at the first invalid batch; in the latter case `damage` says where and why. In both cases
    `position` is the end of the last good batch. Without `verify` only the headers are checked. With `base_offset`,
    an offset that such a segment cannot hold counts as damage too: the CRC does not cover the offset.
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
        """The size of the batch at `at`, or of a header if the chunk does not hold the header yet."""
        if at + HEADER_SIZE > len(chunk):
            return HEADER_SIZE
        return max(HEADER_SIZE, size_at(chunk, at))


def batch_at(file: File, position: int, end: int) -> BatchView | None:
    """The batch that starts at `position`, or None if no whole valid batch does."""
    return next(iter(BatchScan(file, position, end, verify=True)), None)
