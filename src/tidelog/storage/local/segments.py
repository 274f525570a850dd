"""The segments of a log as one sequence: sealed ones, and the active one at the end.

A reader gets a byte range of one segment, which stays readable whatever happens to the log meanwhile. Methods raise
plain OSErrors; the log turns them into errors that say what it was doing.
"""

from bisect import bisect_right
from collections.abc import Sequence

from tidelog.errors import StorageError
from tidelog.model import Offset, ProducerId, TimestampMs
from tidelog.storage.local.files import Files, storage_error
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.segment import (
    LOG,
    ActiveSegment,
    IndexSpec,
    Leaving,
    SealedSegment,
    transactions_in,
)
from tidelog.storage.log import AbortedTransaction, TimestampOffset


class SegmentRange:
    """A byte range of a segment. Holding it keeps the file open, even if retention deletes the segment."""

    __slots__ = ("_file", "_segment", "_segment_end", "data", "position", "size")

    def __init__(self, segment: SealedSegment | ActiveSegment, position: int, size: int, data: bytes = b"") -> None:
        self._segment = segment
        self.data = data  # b"" if it was not read yet
        self._file = segment.file
        self._segment_end = segment.end_offset
        self.position = position
        self.size = size

    def read(self, position: int | None = None, most: int | None = None) -> bytes:
        """If this fails, the segment records the range, so that the next read of the log there raises the error."""
        start, end = self.position if position is None else position, self.position + self.size
        if most is not None and end - start > most:
            end = start + most
        try:
            data = self._file.pread(end - start, start)
        except OSError as error:
            self._segment.unreadable = range(start, end)
            raise storage_error(error, f"read {self._file.path}") from error
        if len(data) != end - start:
            self._segment.unreadable = range(start, end)
            raise StorageError(f"{self._file.path} ends before position {end}")
        return data

    def fileno(self) -> int:
        return self._file.fileno()

    def need(self) -> None:
        """Within `Files.without_waiting`: raises NotCached unless the range seems to be in memory."""
        self._file.need(self.size, self.position)

    @property
    def end_offset(self) -> Offset:
        """The base offset of the batch after this range. Raises OSError."""
        base = self._file.pread(8, self.position + self.size)
        return int.from_bytes(base, "big", signed=True) if len(base) == 8 else self._segment_end


class Segments:
    """`start_offset` is where the log begins: at or after the base offset of the first segment."""

    __slots__ = ("_bases", "_directory", "_files", "_pool", "active", "has_unsaved_aborted", "sealed", "start_offset")

    def __init__(
        self,
        files: Files,
        pool: HandlePool,
        directory: str,
        sealed: list[SealedSegment],
        active: ActiveSegment,
        start_offset: Offset,
    ) -> None:
        self._files = files
        self._pool = pool
        self._directory = directory
        self.sealed = sealed
        self._bases = [segment.base_offset for segment in sealed]
        self.active = active
        self.start_offset = start_offset
        self.has_unsaved_aborted = False
        """Index files of aborted transactions are missing or wrong, and the next flush must write them."""

    def all(self) -> list[SealedSegment | ActiveSegment]:
        return [*self.sealed, self.active]

    @property
    def end_offset(self) -> Offset:
        return self.active.end_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.all())

    # Reading

    def find(self, offset: Offset, max_bytes: int, end: Offset, *, at_least_one: bool) -> SegmentRange | None:
        """Whole batches of one segment, from the one that holds `offset`, all of them before offset `end`."""
        sealed, active = self.sealed, self.active
        number = bisect_right(self._bases, offset) - 1 if offset < active.base_offset else len(sealed)
        while True:
            segment: SealedSegment | ActiveSegment = sealed[number] if number < len(sealed) else active
            limit = segment.size if end >= segment.end_offset else segment.locate(end)
            start, stop, data = segment.find(offset, max_bytes, limit, at_least_one=at_least_one)
            if start < segment.size or segment is active:
                break
            number += 1  # compaction removed the offset from the end of this segment: continue in the next one
        return SegmentRange(segment, start, stop - start, data) if stop > start else None

    def first_at_or_after(self, timestamp: TimestampMs) -> TimestampOffset | None:
        for segment in self.all():
            if segment.max_timestamp >= timestamp:
                found = segment.first_at_or_after(timestamp, self.start_offset)
                if found is not None:
                    return found
        return None

    def max_timestamp(self) -> TimestampMs:
        return max((segment.max_timestamp for segment in self.all()), default=-1)

    # Aborted transactions

    @property
    def has_aborted(self) -> bool:
        return bool(len(self.active.aborted)) or any(segment.aborted_count for segment in self.sealed)

    def aborted_between(self, start: Offset, end: Offset) -> list[AbortedTransaction] | None:
        """The aborted transactions that have, or had, records from `start` up to, not including, `end`; in the order
        of their markers. None: an index file is missing or wrong, and `follow_transactions` must be called."""
        found: list[AbortedTransaction] = []
        for segment in self.all()[max(0, bisect_right(self._bases, start) - 1) :]:
            if segment.aborted_count:
                index = segment.load_aborted()
                if index is None:
                    return None
                transactions, is_complete = index.between(start, end)
                found += transactions
                if is_complete:
                    break
        return found

    def follow_transactions(self) -> dict[ProducerId, Offset]:
        """Find from the batches alone which transactions were aborted, for segments whose index file is missing or
        wrong, and which are open at the end. The next flush writes these files."""
        anew, open_ = transactions_in(self.all())
        for segment in self.sealed:
            if segment.load_aborted() is None:
                segment.keep_aborted(anew[segment.base_offset])
                self.has_unsaved_aborted = True
        return open_

    def saved_aborted(self, paths: set[str]) -> None:
        """The index files of aborted transactions of the segments with these paths are durable now."""
        for segment in self.sealed:
            segment.aborted_is_unsaved = segment.aborted_is_unsaved and segment.path not in paths
        self.has_unsaved_aborted = any(segment.aborted_is_unsaved for segment in self.sealed)

    # Changing

    def roll(self, spec: IndexSpec, now_ms: TimestampMs) -> tuple[SealedSegment, ActiveSegment]:
        """Seal the active segment and begin the next; returns both. If this fails, nothing has changed."""
        new = ActiveSegment(self._files, self._pool, self._directory, self.end_offset, spec, created_ms=now_ms)
        sealed = self.active.seal()
        self._files.open(new.path + LOG, create=True).truncate(0)
        self.sealed.append(sealed)
        self._bases.append(sealed.base_offset)
        self.active = new
        return sealed, new

    def replace(
        self, replaced: Sequence[Offset], size: int, aborted: int, spec: IndexSpec
    ) -> tuple[SealedSegment, list[Leaving]]:
        """Read from the new log file, which has taken the place of the first of these segments. The caller removes
        the files of the others. Readers that hold ranges of the old files keep them."""
        first = self._bases.index(replaced[0])
        old = self.sealed[first : first + len(replaced)]
        new = SealedSegment(
            self._files, self._pool, self._directory, replaced[0], size, old[-1].end_offset, spec, aborted
        )
        self.sealed[first : first + len(old)] = [new]
        self._bases[first : first + len(old)] = [new.base_offset]
        old[0].unpin()
        return new, [segment.leave() for segment in old]

    def begin_at(self, start_offset: Offset) -> list[SealedSegment]:
        """The log begins at this offset from now on. Returns the segments that are no longer part of it."""
        self.start_offset = start_offset
        gone = []
        while self.sealed and self.sealed[0].end_offset <= start_offset:
            gone.append(self.sealed.pop(0))
            del self._bases[0]
        return gone

    def forget_all(self) -> None:
        for segment in self.all():
            self._pool.forget(segment)
