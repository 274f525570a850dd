"""One compaction pass over a log's segments: reads them, and writes those that change as new segments, in files that
are not part of the log yet. `records.compaction` decides which records stay.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tidelog.errors import CorruptBatch, CorruptLog
from tidelog.model import Offset, TimestampMs
from tidelog.records.batch import HEADER_SIZE, size_at
from tidelog.records.compaction import NEVER, KeyMap, Rules, open_key_map
from tidelog.settings import CleanerSettings, LogSettings
from tidelog.storage.compaction import Cancelled, Throttle
from tidelog.storage.local.aborted import AbortedIndex
from tidelog.storage.local.compaction_state import PlannedSwap, cleaned_name, remove_cleaned
from tidelog.storage.local.files import Files
from tidelog.storage.local.index import TIME_ENTRY_SIZE
from tidelog.storage.local.scan import MAX_RELATIVE_OFFSET
from tidelog.storage.local.segment import LOG, IndexSpec, SegmentIndexes
from tidelog.storage.log import AbortedTransaction

_CHUNK = 1 << 20
_MOST_SEGMENTS_BYTES = 8  # a group reads at most so many times segment.bytes, so that a crash repeats little


class Source(NamedTuple):
    """A segment to read."""

    base_offset: Offset
    end_offset: Offset
    size: int
    path: str
    aborted: list[AbortedTransaction]


class Group(NamedTuple):
    """Several segments, rewritten as one, in files that are durable but not part of the log yet."""

    planned: PlannedSwap
    end_offset: Offset


class CompactionPass:
    """One pass over a log. Its methods are called one at a time, by any thread."""

    def __init__(
        self,
        files: Files,
        directory: str,
        sources: list[Source],
        rules: Rules,
        settings: LogSettings,
        cleaner: CleanerSettings,
        throttle: Throttle,
    ) -> None:
        self._files = files
        self._directory = directory
        self._sources = sources
        self._rules = rules
        self._segment_bytes = settings.segment_bytes
        self._spec = IndexSpec(settings.index_interval_bytes, settings.segment_index_bytes)
        self._cleaner = cleaner
        self._throttle = throttle
        self._map: KeyMap | None = None
        self._next = 0
        self._started_at = time.monotonic()
        self.stop = threading.Event()
        self.bytes_read = self.bytes_written = self.records_read = self.records_kept = self.keys = 0

    @property
    def spec(self) -> IndexSpec:
        return self._spec

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started_at

    @property
    def end_offset(self) -> Offset:
        return self._rules.end_offset

    @property
    def next_horizon_ms(self) -> TimestampMs | None:
        return None if self._rules.next_horizon_ms == NEVER else self._rules.next_horizon_ms

    def build_map(self) -> None:
        rules, cleaner = self._rules, self._cleaner
        dirty = [source for source in self._sources if source.end_offset > rules.start_offset]
        most_records = sum(source.end_offset - max(source.base_offset, rules.start_offset) for source in dirty)
        key_map = open_key_map(cleaner.dedupe_buffer_bytes, cleaner.load_factor, most_records)
        full = False

        def add(chunk: memoryview) -> int:
            nonlocal full
            added = key_map.add(chunk, rules)
            full = added.full
            return added.consumed

        for source in dirty:
            self._read(source, add, until=lambda: full)
            if full:
                break
        self._map = key_map
        self.keys = len(key_map)

    def next_group(self) -> Group | None:
        """Write the next segments that change; None when there are no more."""
        while True:
            sources = [source for source in self._sources[self._next :] if source.base_offset < self.end_offset]
            if not sources:
                return None
            writer = _GroupWriter(self._files, self._directory, sources[0].base_offset, self._spec)
            taken = self._fill(writer, sources)
            self._next += taken
            if taken == 1 and not writer.changed:
                writer.discard()
                continue
            void = self._rules.void_aborts
            aborted = [one for source in sources[:taken] for one in source.aborted if one.last_offset not in void]
            writer.finish(aborted)
            replaced = tuple(source.base_offset for source in sources[:taken])
            planned = PlannedSwap(sources[0].base_offset, writer.size, replaced, len(aborted))
            return Group(planned, sources[taken - 1].end_offset)

    def discard(self, group: Group) -> None:
        remove_cleaned(self._files, self._directory, group.planned.base_offset)

    def _fill(self, writer: "_GroupWriter", sources: list[Source]) -> int:
        """Compact as many of the sources as one segment can hold; returns how many."""
        base_offset, read = sources[0].base_offset, 0
        try:
            for number, source in enumerate(sources):
                fits = (
                    writer.size + source.size <= self._segment_bytes
                    and read + source.size <= _MOST_SEGMENTS_BYTES * self._segment_bytes
                    and source.end_offset - 1 - base_offset <= MAX_RELATIVE_OFFSET
                    and writer.has_room_for(source.size)
                )
                if number and not fits:
                    return number
                self._thin(writer, source)
                read += source.size
        except BaseException:
            writer.discard()
            raise
        return len(sources)

    def _thin(self, writer: "_GroupWriter", source: Source) -> None:
        key_map, rules = self._map, self._rules
        assert key_map is not None, "build_map must be called first"
        interval = self._spec.interval_bytes

        def thin(chunk: memoryview) -> int:
            thinned = key_map.thin(chunk, rules, interval)
            self.records_read += thinned.records_read
            self.records_kept += thinned.records_kept
            self.bytes_written += len(thinned.data)
            self._throttle.spend(len(thinned.data), self.stop)
            writer.add(thinned.data, thinned.marks, changed=thinned.changed)
            return thinned.consumed

        self._read(source, thin)

    def _read(
        self, source: Source, take: Callable[[memoryview], int], until: Callable[[], bool] | None = None
    ) -> None:
        """Pass the whole segment to `take` in chunks; `take` returns how many bytes of a chunk are whole batches."""
        try:
            file = self._files.open(source.path, writable=False)
        except FileNotFoundError as error:
            raise Cancelled(f"{source.path} was deleted while the log was compacted") from error
        position, wanted = 0, _CHUNK
        while position < source.size:
            if self.stop.is_set():
                raise Cancelled(f"{self._directory} was closed while it was compacted")
            chunk = memoryview(file.pread(min(wanted, source.size - position), position))
            self._throttle.spend(len(chunk), self.stop)
            self.bytes_read += len(chunk)
            try:
                consumed = take(chunk)
            except CorruptBatch as error:
                raise CorruptLog(
                    str(error), file=source.path, position=position, offset=source.base_offset
                ) from error
            if until is not None and until():
                return
            if consumed == 0:
                if len(chunk) < wanted or len(chunk) < HEADER_SIZE:
                    reason = "the file ends inside a batch"
                    raise CorruptLog(reason, file=source.path, position=position, offset=source.base_offset)
                wanted = size_at(chunk, 0)
                continue
            position += consumed
            wanted = _CHUNK


class _GroupWriter:
    """One new segment, in files that are not part of the log."""

    def __init__(self, files: Files, directory: str, base_offset: Offset, spec: IndexSpec) -> None:
        self._files = files
        self._directory = directory
        self._base_offset = base_offset
        self._spec = spec
        self._path = f"{directory}/{cleaned_name(base_offset, '')}"
        self._file = files.open(self._path + LOG, create=True)
        self._file.truncate(0)
        self._indexes = SegmentIndexes(base_offset)
        self.size = 0
        self.changed = False

    def has_room_for(self, size: int) -> bool:
        """True if the indexes stay within their size limit, in the worst case, when `size` more bytes are added."""
        entries = size // max(self._spec.interval_bytes, HEADER_SIZE) + 2
        return (len(self._indexes.times) + entries) * TIME_ENTRY_SIZE <= self._spec.max_bytes

    def add(self, data: bytes | bytearray | memoryview, marks: Iterable[Sequence[int]], *, changed: bool) -> None:
        self.changed = self.changed or changed
        if not len(data):
            return
        self._file.pwrite(data, self.size)
        indexes, spec = self._indexes, self._spec
        for position, size, last_offset, max_timestamp, others_timestamp, others_offset in marks:
            indexes.note(max_timestamp, last_offset, self.size + position, size, spec)
            indexes.widen(others_timestamp, others_offset)
        self.size += len(data)

    def finish(self, aborted: list[AbortedTransaction]) -> None:
        """Make the files durable, names included."""
        self._file.sync()
        self._indexes.close()
        saved = self._indexes.save(self._files, self._path, anew=True)
        for file in saved + AbortedIndex(aborted).save(self._files, self._path):
            file.sync()
        self._files.sync_directory(self._directory)

    def discard(self) -> None:
        remove_cleaned(self._files, self._directory, self._base_offset)
