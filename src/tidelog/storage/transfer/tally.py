"""Counts what is moved, on both sides: batches, records, bytes, and one CRC32C over all bytes in their order."""

from collections.abc import Callable
from typing import NamedTuple

from tidelog.errors import CorruptBatch, CorruptLog
from tidelog.records.batch import HEADER_SIZE, BatchView, ReadBuffer, check_integrity, read_header, size_at
from tidelog.records.crc import crc32c

MOST_BATCH = 1 << 30
"""A larger batch is taken for a damaged length: otherwise everything after it would be gathered in memory."""


class Totals(NamedTuple):
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    crc: int = 0
    """CRC32C of all batches, one after the other."""

    def __str__(self) -> str:
        return f"{self.batches:,} batches, {self.records:,} records, {self.size_bytes:,} bytes, CRC {self.crc:08x}"


NOTHING = Totals()


class Tally:
    """Of bytes that come in pieces, cut anywhere. Every batch is checked."""

    def __init__(
        self, where: str, before: Totals = NOTHING, on_batch: Callable[[BatchView], None] = lambda _: None
    ) -> None:
        """`where` is named in errors. `before`: what came before in the same log."""
        self._where = where
        self._batches, self._records, self._size, self._crc = before
        self._on_batch = on_batch
        self._rest = b""
        self._next = 0

    @property
    def totals(self) -> Totals:
        return Totals(self._batches, self._records, self._size, self._crc)

    def add(self, piece: ReadBuffer) -> None:
        """CorruptLog: the bytes are not valid batches in the order of their offsets."""
        view = memoryview(self._rest + bytes(piece) if self._rest else piece)
        position = 0
        while len(view) - position >= HEADER_SIZE:
            size = size_at(view, position)
            if position + size > len(view) and HEADER_SIZE <= size <= MOST_BATCH:
                break
            try:
                header = read_header(view, position)
                check_integrity(view, position, header)
            except CorruptBatch as error:
                raise self._damaged(position, str(error)) from None
            if header.base_offset < self._next:
                raise self._damaged(position, f"offset {header.base_offset} comes after {self._next - 1}")
            self._next = header.next_offset
            self._batches += 1
            self._records += header.record_count
            self._on_batch(BatchView(position, header, view[position : position + size]))
            position += size
        self._crc = crc32c(view[:position], self._crc)
        self._size += position
        self._rest = bytes(view[position:])

    def finish(self) -> Totals:
        """The last piece was added."""
        if self._rest:
            raise self._damaged(0, "the last batch is cut off")
        return self.totals

    def _damaged(self, position: int, reason: str) -> CorruptLog:
        return CorruptLog(reason, file=self._where, position=self._size + position, offset=self._next)
