"""One segment: a log file of record batches, its two indexes, and its aborted transactions.

`ActiveSegment` is appended to; `seal()` turns it into a `SealedSegment`, which never changes. Both translate offsets
and timestamps to positions in the log file; they do not read the records there, except to find one by its timestamp.
"""

import os
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from tidelog.errors import CorruptBatch, CorruptLog
from tidelog.model import NO_TIMESTAMP, Offset, ProducerId, TimestampMs
from tidelog.records.batch import (
    CONTROL_BIT,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MIN_LENGTH,
    TRANSACTIONAL_BIT,
    BatchHeader,
    header_struct,
)
from tidelog.records.record import decode
from tidelog.settings import LogSettings
from tidelog.storage.local.aborted import ABORTED_INDEX, AbortedIndex, TransactionTracker, read_aborted
from tidelog.storage.local.files import File, Files, storage_error
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.index import (
    OFFSET_ENTRY_SIZE,
    POSITION_MASK,
    TIME_ENTRY_SIZE,
    OffsetIndex,
    OffsetIndexReader,
    OffsetIndexWriter,
    TimeIndex,
    TimeIndexReader,
    TimeIndexWriter,
    WrongIndexError,
)
from tidelog.storage.local.scan import MAX_RELATIVE_OFFSET, BatchScan, Damage
from tidelog.storage.log import TimestampOffset

LOG, INDEX, TIME_INDEX = ".log", ".index", ".timeindex"
INDEXES = (INDEX, TIME_INDEX, ABORTED_INDEX)
_NAME_DIGITS = 20
_WALK = header_struct("base_offset", "length", "magic", "last_offset_delta")
_WALK_CHUNK = 8 << 10
_EXPECTED_READERS = 16
_FEW = 100


def segment_name(base_offset: Offset, suffix: str) -> str:
    return f"{base_offset:0{_NAME_DIGITS}d}{suffix}"


def base_offset_of(name: str, suffix: str) -> Offset | None:
    """The base offset in a file's name, or None if this is not the name of a segment's file."""
    stem = name[: -len(suffix)]
    return int(stem) if name.endswith(suffix) and len(stem) == _NAME_DIGITS and stem.isdecimal() else None


class IndexSpec(NamedTuple):
    """How densely a segment is indexed and how large its indexes may become."""

    interval_bytes: int
    max_bytes: int


class SavedIndexes(NamedTuple):
    """How many bytes of each index file were durable at a checkpoint."""

    offsets_bytes: int
    times_bytes: int


class Leaving:
    """The files of a segment that is no longer part of the log. Call `remove` in a thread: freeing a large file takes
    long, and so does closing the last handle to a file that is removed already."""

    def __init__(self, files: Files, path: str, held: File | None) -> None:
        self._files = files
        self._path = path
        self._held = held

    def remove(self) -> None:
        """Removes the log first, because an index without a log is recognised as a leftover. Raises OSError."""
        for suffix in (LOG, *INDEXES):
            try:
                self._files.remove(self._path + suffix)
            except FileNotFoundError:
                pass
        self._held = None


class Segment:
    """What both kinds share: finding positions through the index, checked against the log file."""

    _writable: ClassVar[bool] = False
    __slots__ = (
        *("_expected", "_file", "_files", "_pool", "base_offset"),
        *("path", "recently_used", "size", "unreadable"),
    )

    def __init__(self, files: Files, pool: HandlePool, directory: str, base_offset: Offset, size: int) -> None:
        self._files = files
        self._pool = pool
        self._file: File | None = None
        self.base_offset = base_offset
        self.path = f"{directory}/{segment_name(base_offset, '')}"
        self.size = size
        self.recently_used = False
        self._expected: dict[Offset, int] = {}  # offset to position: where sequential readers will continue
        self.unreadable: range | None = None
        """Positions at which a read of the file failed."""

    @property
    def file(self) -> File:
        """The open log file. Hold on to it to keep reading after the segment is deleted."""
        self.recently_used = True
        file = self._file
        if file is None:
            path = self.path + LOG
            writable = self._writable
            file = self._pool.open(self, lambda: self._files.open(path, writable=writable), f"open {path}")
            self._file = file
        return file

    @property
    def index(self) -> OffsetIndex:
        raise NotImplementedError

    @property
    def times(self) -> TimeIndex:
        raise NotImplementedError

    def rebuild_indexes(self) -> Damage | None:
        """Rebuild both indexes from the log file. Returns where the log itself is damaged, if it is."""
        raise NotImplementedError

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def release(self) -> None:
        self._file = None

    def leave(self) -> Leaving:
        """The segment is no longer part of the log. Readers that hold its file can go on reading."""
        leaving = Leaving(self._files, self.path, self._file)
        self._pool.forget(self)
        return leaving

    def locate(self, offset: Offset) -> int:
        """The position of the first batch whose last offset is at or after `offset`; the segment's size if there is
        none."""
        return self._located(offset)[0]

    def find(self, offset: Offset, max_bytes: int, limit: int, *, at_least_one: bool) -> tuple[int, int, bytes]:
        """Start and end position of whole batches, from the one that holds `offset`: at most `max_bytes`, none past
        position `limit`; and the batches themselves if the search has read them, else b""."""
        start = self._expected.pop(offset, -1)
        chunk, at = b"", 0
        if start < 0:
            start, chunk, at = self._located(offset)
        end = self._end_in(chunk, at, start, max_bytes, limit)
        if end < 0:
            end = self._end_by_index(start, max_bytes, limit)
        if end == start and at_least_one and start < limit:
            end = start + self._batch_size(start)
        if self.unreadable is not None and end > start:
            end = self._readable_end(start, end)
        size = end - start
        return start, end, chunk[at : at + size] if at + size <= len(chunk) else b""

    def _readable_end(self, start: int, end: int) -> int:
        """The end of the whole batches before the range where a read failed. If the range begins with the first
        batch, try to read that batch, and return its end if this works now. Checked here, an error fails only reads
        of this log; once the reply to a fetch is being written, it could only be broken off."""
        bad = self.unreadable
        assert bad is not None
        if end <= bad.start or start >= bad.stop:
            return end
        good, following = start, start + self._batch_size(start)
        while following <= bad.start:
            good, following = following, following + self._batch_size(following)
        if good > start:
            return good
        if len(self.file.pread(following - start, start)) != following - start:
            raise self._corrupt("the file ends inside a batch", start, -1)
        self.unreadable = range(following, bad.stop) if following < bad.stop else None
        return following

    def _located(self, offset: Offset) -> tuple[int, bytes, int]:
        """The position of the batch, the chunk of the file that was read to find it, and the batch's place in the
        chunk."""
        try:
            return self._locate(offset)
        except WrongIndexError:
            damage = self.rebuild_indexes()
            if damage is not None:
                raise self._corrupt(damage.reason, damage.position, offset) from None
        try:
            return self._locate(offset)
        except WrongIndexError:
            raise self._corrupt("the index that was rebuilt from the log does not match it", 0, offset) from None

    def _locate(self, offset: Offset) -> tuple[int, bytes, int]:
        entry = self.index.at_or_before(offset - self.base_offset)
        position = entry & POSITION_MASK if entry >= 0 else 0
        if position >= self.size and entry >= 0:
            raise WrongIndexError
        while position < self.size:
            chunk = self.file.pread(min(_WALK_CHUNK, self.size - position), position)
            at, available = 0, len(chunk) - HEADER_SIZE
            if available < 0:
                raise self._corrupt("the file ends inside a batch header", position, offset)
            while at <= available:
                base, length, magic, last_delta = _WALK.unpack_from(chunk, at)
                if entry >= 0:
                    if base + last_delta != self.base_offset + (entry >> 32) or magic != MAGIC:
                        raise WrongIndexError
                    entry = -1
                if magic != MAGIC or length < MIN_LENGTH or not 0 <= base - self.base_offset <= MAX_RELATIVE_OFFSET:
                    raise self._corrupt("invalid batch header", position + at, offset)
                if base + last_delta >= offset:
                    return position + at, chunk, at
                at += length + LENGTH_END
            position += at
        return self.size, b"", 0

    def _end_in(self, chunk: bytes, at: int, start: int, max_bytes: int, limit: int) -> int:
        """The end of a short range, found in bytes that were read already; -1 if it may be after them."""
        if start + max_bytes >= limit:
            return limit
        if at + max_bytes + HEADER_SIZE > len(chunk):
            return -1
        end = at
        while True:
            _, length, magic, _ = _WALK.unpack_from(chunk, end)
            if magic != MAGIC or length < MIN_LENGTH:
                raise self._corrupt("invalid batch header", start + end - at, -1)
            if end + length + LENGTH_END - at > max_bytes:
                return start + end - at
            end += length + LENGTH_END

    def _end_by_index(self, start: int, max_bytes: int, limit: int) -> int:
        """The last indexed batch start within the range, checked against the log; if the index is too coarse, the end
        is searched batch by batch. The position is cached, because a sequential reader continues there."""
        try:
            end = self.index.boundary_at_or_before(start + max_bytes)
        except WrongIndexError:
            end = start
            self.rebuild_indexes()
        if end > start:
            header = self.file.pread(HEADER_SIZE, end)
            if len(header) == HEADER_SIZE:
                base, length, magic, _ = _WALK.unpack_from(header)
                if magic == MAGIC and length >= MIN_LENGTH and base >= self.base_offset:
                    if len(self._expected) >= _EXPECTED_READERS:
                        self._expected.clear()
                    self._expected[base] = end
                    return end
            self.rebuild_indexes()
        end = start
        while end < limit and (size := self._batch_size(end)) <= start + max_bytes - end:
            end += size
        return end

    def _batch_size(self, position: int) -> int:
        header = self.file.pread(HEADER_SIZE, position)
        length: int
        _, length, magic, _ = _WALK.unpack_from(header) if len(header) == HEADER_SIZE else (0, 0, 0, 0)
        if magic != MAGIC or length < MIN_LENGTH:
            raise self._corrupt("invalid batch header", position, -1)
        return length + LENGTH_END

    def first_at_or_after(self, timestamp: TimestampMs, from_offset: Offset) -> TimestampOffset | None:
        """The first record of the segment from `from_offset` on whose timestamp is at or after `timestamp`."""
        try:
            not_before = self.times.before(timestamp)
        except WrongIndexError:
            self.rebuild_indexes()
            not_before = 0
        start = self.locate(max(from_offset, self.base_offset + not_before))
        scan = BatchScan(self.file, start, self.size, base_offset=self.base_offset, verify=False)
        for batch in scan:
            if batch.header.max_timestamp < timestamp or batch.header.last_offset < from_offset:
                continue
            try:
                records = decode(batch)
            except CorruptBatch as error:
                raise self._corrupt(str(error), batch.position, batch.header.base_offset) from None
            for record in records:
                if record.timestamp >= timestamp and record.offset >= from_offset:
                    return TimestampOffset(record.timestamp, record.offset, batch.header.leader_epoch)
        if scan.damage is not None:
            raise self._corrupt(scan.damage.reason, scan.damage.position, from_offset)
        return None

    def _corrupt(self, reason: str, position: int, offset: Offset) -> CorruptLog:
        return CorruptLog(reason, file=self.path + LOG, position=position, offset=offset)


class SealedSegment(Segment):
    """Immutable: batches from `base_offset` up to, not including, `end_offset`; `aborted_count` of them are markers
    that aborted a transaction."""

    __slots__ = (
        "_aborted",
        "_index",
        "_is_pinned",
        "_max_timestamp",
        "_spec",
        "_times",
        "aborted_count",
        "aborted_is_unsaved",
        "end_offset",
    )

    def __init__(
        self,
        files: Files,
        pool: HandlePool,
        directory: str,
        base_offset: Offset,
        size: int,
        end_offset: Offset,
        spec: IndexSpec,
        aborted_count: int = 0,
    ) -> None:
        super().__init__(files, pool, directory, base_offset, size)
        self.end_offset = end_offset
        self._spec = spec
        self._index: OffsetIndexReader | None = None
        self._times: TimeIndexReader | None = None
        self._max_timestamp: TimestampMs | None = None
        self._aborted: AbortedIndex | None = None
        self._is_pinned = False
        self.aborted_count = aborted_count
        self.aborted_is_unsaved = False
        """The aborted transactions were found again in the log; their file is still missing or wrong."""

    @property
    def index(self) -> OffsetIndexReader:
        if self._index is None:
            self._index = OffsetIndexReader(self._index_file(INDEX, OFFSET_ENTRY_SIZE))
        return self._index

    @property
    def times(self) -> TimeIndexReader:
        if self._times is None:
            self._times = TimeIndexReader(self._index_file(TIME_INDEX, TIME_ENTRY_SIZE))
        return self._times

    @property
    def max_timestamp(self) -> TimestampMs:
        """The largest timestamp of the segment: the last entry of the time index."""
        if self._max_timestamp is None:
            try:
                last = self.times.last()
            except WrongIndexError:
                self.rebuild_indexes()
                last = self.times.last()
            self._max_timestamp = last.timestamp if last else NO_TIMESTAMP
        return self._max_timestamp

    def rebuild_indexes(self) -> Damage | None:
        indexes, damage = index_anew(self, self._spec)
        indexes.close()
        self._index = self._times = self._max_timestamp = None
        try:
            indexes.save(self._files, self.path, anew=True)
        except OSError as error:
            raise storage_error(error, f"rebuild the indexes of {self.path}{LOG}") from error
        return damage

    def pin(self) -> None:
        """From now on read the files that are open now, even if others take their names."""
        _ = self.file, self.index, self.times
        if self.aborted_count:
            self.load_aborted()
        self._is_pinned = True

    def unpin(self) -> None:
        self._is_pinned = False

    def release(self) -> None:
        if not self._is_pinned:
            super().release()
            self._index = self._times = None
            if not self.aborted_is_unsaved:
                self._aborted = None

    def load_aborted(self) -> AbortedIndex | None:
        """The aborted transactions; None if their file is missing or wrong. To rebuild it the whole log must be
        read."""
        if self._aborted is None:
            _ = self.file  # the pool counts a segment by its log file
            try:
                entries = read_aborted(
                    self._files, self.path, self.aborted_count, self.base_offset, self.end_offset, is_sealed=True
                )
            except OSError as error:
                raise storage_error(error, f"read {self.path}{ABORTED_INDEX}") from error
            if entries is None:
                return None
            self._aborted = AbortedIndex(entries, saved=True)
        return self._aborted

    def keep_aborted(self, index: AbortedIndex) -> None:
        """Use this index, because the file is missing or wrong."""
        self._aborted, self.aborted_count, self.aborted_is_unsaved = index, len(index), True

    def replace_aborted(self, index: AbortedIndex) -> bool:
        """Replace the index of aborted transactions and its file; True if it was different before."""
        stored = self.load_aborted()
        if stored is not None and stored.entries == index.entries:
            return False
        index.replace(self._files, self.path)
        self._aborted, self.aborted_count = index, len(index)
        return True

    def open_indexes(self) -> list[File]:
        suffixes = INDEXES if self.aborted_count and not self.aborted_is_unsaved else (INDEX, TIME_INDEX)
        return [self._files.open(self.path + suffix, writable=False) for suffix in suffixes]

    def _index_file(self, suffix: str, entry_size: int) -> File:
        path = self.path + suffix
        _ = self.file  # the pool counts a segment by its log file
        for attempt in (1, 2):
            try:
                stored = self._pool.open_another(lambda: self._files.open(path, writable=False))
                if stored.size() % entry_size == 0:
                    return stored
            except FileNotFoundError:
                pass
            except OSError as error:
                raise storage_error(error, f"open {path}") from error
            if attempt == 1:
                self.rebuild_indexes()
        raise CorruptLog("the index cannot be rebuilt", file=path, position=0, offset=self.base_offset)


class SegmentIndexes:
    """Both indexes of the active segment, and the state that they need between batches."""

    __slots__ = (
        "_base_offset",
        "_bytes_since_entry",
        "_saved_offsets",
        "_saved_times",
        "full",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "times",
    )

    def __init__(self, base_offset: Offset, offsets: bytes = b"", times: bytes = b"", size: int = 0) -> None:
        self._base_offset = base_offset
        self.offsets = OffsetIndexWriter(offsets)
        self.times = TimeIndexWriter(times)
        self._saved_offsets, self._saved_times = len(self.offsets), len(self.times)
        last_entry, last_time = self.offsets.last(), self.times.last()
        self._bytes_since_entry = size - (last_entry.position if last_entry else 0)
        self.max_timestamp: TimestampMs = last_time.timestamp if last_time else NO_TIMESTAMP
        self.max_timestamp_offset: Offset = base_offset + (last_time.relative_offset if last_time else 0)
        self.full = False  # set when an entry is added

    def add(self, header: BatchHeader, last_offset: Offset, position: int, spec: IndexSpec) -> None:
        """Add the batch at `position`."""
        self.note(header.max_timestamp, last_offset, position, header.length + LENGTH_END, spec)

    def note(
        self, max_timestamp: TimestampMs, last_offset: Offset, position: int, size: int, spec: IndexSpec
    ) -> None:
        """Add a batch by its numbers; `size` may include following batches that get no index entry of their own."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._bytes_since_entry > spec.interval_bytes:
            self.offsets.append(last_offset - self._base_offset, position)
            self.times.append(self.max_timestamp, self.max_timestamp_offset - self._base_offset)
            self._bytes_since_entry = 0
            self._look_for_room(spec.max_bytes)
        self._bytes_since_entry += size

    def widen(self, max_timestamp: TimestampMs, last_offset: Offset) -> None:
        """Take account of the timestamp of a batch whose size was passed to `note` already."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset

    def close(self) -> None:
        """Append the largest timestamp to the time index: readers expect it in the last entry."""
        self.times.append(self.max_timestamp, self.max_timestamp_offset - self._base_offset)

    def _look_for_room(self, max_bytes: int) -> None:
        """Set `full` if one more entry and the closing one would not fit."""
        offsets_bytes = (len(self.offsets) + 1) * OFFSET_ENTRY_SIZE
        times_bytes = (len(self.times) + 2) * TIME_ENTRY_SIZE
        self.full = max(offsets_bytes, times_bytes) > max_bytes

    def save(self, files: Files, path: str, *, anew: bool = False) -> list[File]:
        """Write the entries that are not in the files yet. The caller syncs the returned files if they must be
        durable."""
        if anew:
            self._saved_offsets = self._saved_times = 0
        saved = []
        for suffix, entry_size, index, first in (
            (INDEX, OFFSET_ENTRY_SIZE, self.offsets, self._saved_offsets),
            (TIME_INDEX, TIME_ENTRY_SIZE, self.times, self._saved_times),
        ):
            file = files.open(path + suffix, create=True)
            if len(index) > first:
                file.pwrite(index.stored(first), first * entry_size)
            if file.size() > len(index) * entry_size:  # entries that survived a crash although their batches did not
                file.truncate(len(index) * entry_size)
            saved.append(file)
        self._saved_offsets, self._saved_times = len(self.offsets), len(self.times)
        return saved


def index_anew(segment: Segment, spec: IndexSpec) -> tuple[SegmentIndexes, Damage | None]:
    """The indexes of a segment, rebuilt from its batch headers, and where the log itself is damaged, if it is."""
    indexes = SegmentIndexes(segment.base_offset)
    scan = BatchScan(segment.file, 0, segment.size, base_offset=segment.base_offset, verify=False)
    for batch in scan:
        indexes.add(batch.header, batch.header.last_offset, batch.position, spec)
    return indexes, scan.damage


def transactions_in(
    segments: Iterable[Segment],
) -> tuple[dict[Offset, AbortedIndex], dict[ProducerId, Offset]]:
    """The transactions that were aborted in each segment, and those that are open at the end, found from the batches
    alone. Reads all segments; they must begin with the first of the log."""
    transactions = TransactionTracker()
    aborted: dict[Offset, AbortedIndex] = {}
    for segment in segments:
        index = aborted[segment.base_offset] = AbortedIndex()
        for batch in BatchScan(segment.file, 0, segment.size, base_offset=segment.base_offset, verify=False):
            if batch.header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
                ended = transactions.saw(batch)
                if ended is not None:
                    index.entries.append(ended)
    return aborted, transactions.open


class ActiveSegment(Segment):
    """The segment that is appended to. One writer; readers see whole batches up to `size`.

    `saved` is how many bytes of the index files a checkpoint vouches for; None: none, rebuild them."""

    _writable = True
    __slots__ = ("_indexed_size", "_indexes", "_saved", "_spec", "_unindexed", "aborted", "created_ms", "end_offset")

    def __init__(
        self,
        files: Files,
        pool: HandlePool,
        directory: str,
        base_offset: Offset,
        spec: IndexSpec,
        *,
        size: int = 0,
        end_offset: Offset | None = None,
        created_ms: TimestampMs,
        saved: SavedIndexes | None = None,
    ) -> None:
        super().__init__(files, pool, directory, base_offset, size)
        self.end_offset = base_offset if end_offset is None else end_offset
        self.created_ms = created_ms
        self._saved = saved
        self._spec = spec
        self._indexes = SegmentIndexes(base_offset) if size == 0 else None
        self._indexed_size = size
        self.aborted = AbortedIndex()
        self._unindexed: list[BatchHeader] = []  # batches after `_indexed_size`, added when the indexes are loaded

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)

    @property
    def indexes(self) -> SegmentIndexes:
        """Loaded on first use, so that opening a thousand partitions reads no index."""
        if self._indexes is None:
            try:
                self._indexes = self._load_indexes()
            except OSError as error:
                raise storage_error(error, f"index {self.path}{LOG}") from error
        return self._indexes

    @property
    def index(self) -> OffsetIndexWriter:
        return self.indexes.offsets

    @property
    def times(self) -> TimeIndexWriter:
        return self.indexes.times

    @property
    def max_timestamp(self) -> TimestampMs:
        return self.indexes.max_timestamp

    @property
    def aborted_count(self) -> int:
        return len(self.aborted)

    def load_aborted(self) -> AbortedIndex:
        return self.aborted

    def replace_aborted(self, index: AbortedIndex) -> bool:
        """Replace the index of aborted transactions and its file; True if it was different before."""
        if index.entries == self.aborted.entries:
            return False
        index.replace(self._files, self.path)
        self.aborted = index
        return True

    def write(self, data: memoryview, headers: list[BatchHeader]) -> None:
        """Append whole batches with one write call. If it fails, no batch belongs to the segment, but bytes may be
        left after its end, which must be cut off before the next write."""
        (self._file or self.file).pwrite(data, self.size)
        self.recently_used = True
        for header in headers:
            self.appended(header, self.end_offset)

    def appended(self, header: BatchHeader, base_offset: Offset) -> None:
        """The batch that was written at the segment's end becomes part of the segment."""
        last_offset = base_offset + header.last_offset_delta
        size = self.size
        (self._indexes or self.indexes).add(header, last_offset, size, self._spec)
        self.size = size + header.length + LENGTH_END
        self.end_offset = last_offset + 1

    def recovered(self, header: BatchHeader) -> None:
        """The same for a batch that recovery found after the end. The indexes are loaded only if there are many."""
        if self._indexes is None and len(self._unindexed) < _FEW:
            self._unindexed.append(header)
            self.size += header.length + LENGTH_END
            self.end_offset = header.next_offset
        else:
            self.appended(header, header.base_offset)

    def drop_unfinished(self) -> None:
        """Cut off the bytes after the last batch, durably: otherwise a crash could bring them back after the next
        one."""
        self.file.truncate(self.size)
        self.file.sync()

    def is_full(self, more_bytes: int, last_offset: Offset, now_ms: TimestampMs, settings: LogSettings) -> bool:
        """True if the next bytes need a new segment: because of size, age, offsets or a full index. A segment that
        was created far in the future was created while the clock was wrong: its age is unknown, so it counts as
        old."""
        return self.size > 0 and (
            self.size + more_bytes > settings.segment_bytes
            or abs(now_ms - self.created_ms) >= settings.segment_ms
            or last_offset - self.base_offset > MAX_RELATIVE_OFFSET
            or (self._indexes or self.indexes).full
        )

    def save_indexes(self) -> list[File]:
        """Bring the index files up to date. The caller must sync the returned files before a checkpoint vouches for
        them."""
        self.indexes.close()
        return self.indexes.save(self._files, self.path) + self.aborted.save(self._files, self.path)

    @property
    def saved(self) -> SavedIndexes:
        """What `save_indexes` has written."""
        if self._indexes is None:
            return self._saved or SavedIndexes(0, 0)
        return SavedIndexes(len(self.index) * OFFSET_ENTRY_SIZE, len(self.times) * TIME_ENTRY_SIZE)

    def seal(self) -> SealedSegment:
        """The same segment, immutable. Does not sync anything: the log does that with the next flush."""
        self.save_indexes()
        sealed = SealedSegment(
            self._files,
            self._pool,
            self.directory,
            self.base_offset,
            self.size,
            self.end_offset,
            self._spec,
            len(self.aborted),
        )
        self._pool.forget(self)
        return sealed

    def rebuild_indexes(self) -> Damage | None:
        self._indexes, damage = index_anew(self, self._spec)
        return damage

    def _load_indexes(self) -> SegmentIndexes:
        """The index entries that the checkpoint vouches for; if they are missing, rebuilt from the log."""
        if self._saved is not None:
            offsets = self._read_prefix(INDEX, self._saved.offsets_bytes)
            times = self._read_prefix(TIME_INDEX, self._saved.times_bytes)
            if offsets is not None and times is not None:
                indexes = SegmentIndexes(self.base_offset, offsets, times, self._indexed_size)
                position = self._indexed_size
                for header in self._unindexed:
                    indexes.add(header, header.last_offset, position, self._spec)
                    position += header.size
                self._unindexed = []
                return indexes
        return index_anew(self, self._spec)[0]

    def _read_prefix(self, suffix: str, size: int) -> bytes | None:
        try:
            content = self._files.open(self.path + suffix, writable=False).pread(size, 0)
        except FileNotFoundError:
            return None
        return content if len(content) == size else None
