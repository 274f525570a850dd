"""Compaction of one partition: which segments, in which steps, and how the files are exchanged.

The owner of the log decides and changes what is in memory; a pass (`CompactionPass`) and a `Swap` are values whose
steps any thread may carry out, one at a time, as with a `FlushJob`:

    owner   LogCompaction.begin       which segments, and what the log knows of producers and transactions
    thread  CompactionPass.build_map  reads what was never compacted
    thread  CompactionPass.next_group writes a group of segments as one, in files of its own, and syncs them
    owner   LogCompaction.begin_swap  unless the segments are gone meanwhile
    thread  Swap.commit               the state file names the exchange: from here on it happens, crash or not
    owner   LogCompaction.apply       renames, removes, and reads from the new segment
    thread  Swap.finish               syncs the names; the state file forgets the exchange
    ...     the next group; in the end
    thread  write_state               the state file says how far the log is compacted

`compaction`, the state file, is JSON and a CRC like the checkpoint. A crash before `commit` leaves `*.cleaned.*`
files that opening removes; one after it an exchange that opening finishes (`finish_swap`). Only segments that are
sealed and vouched for by the checkpoint take part. The prose of the format is in docs/formats/local-log.md.
"""

import json
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from tidelog.errors import CorruptBatch, CorruptLog, LogClosed, StorageError
from tidelog.model import Offset, TimestampMs
from tidelog.records.batch import HEADER, HEADER_SIZE, LENGTH_END, BatchHeader
from tidelog.records.compaction import NEVER, AbortedRanges, KeyMap, Newest, Rules, open_key_map
from tidelog.records.crc import crc32c
from tidelog.settings import CleanerSettings, LogSettings
from tidelog.storage.local.aborted import ABORTED_INDEX, AbortedIndex
from tidelog.storage.local.files import Files, storage_error, write_durably
from tidelog.storage.local.index import TIME_ENTRY_SIZE
from tidelog.storage.local.producers import Producers
from tidelog.storage.local.scan import MAX_RELATIVE_OFFSET
from tidelog.storage.local.segment import (
    INDEXES,
    LOG,
    IndexSpec,
    SealedSegment,
    SegmentIndexes,
    segment_name,
)
from tidelog.storage.log import AbortedTransaction

STATE = "compaction"
CLEANED = ".cleaned"
_VERSION = 1
_CHUNK = 1 << 20
_MOST_SEGMENTS_BYTES = 8  # a group reads at most so many times segment.bytes, so that a crash repeats little


class CountedSegment(Protocol):
    base_offset: Offset

    @property
    def aborted_count(self) -> int: ...


class PlannedSwap(NamedTuple):
    """The new segment's base offset and size, and the segments that it stands for, the first with the same base."""

    base_offset: Offset
    size: int
    replaced: tuple[Offset, ...]
    aborted: int = 0
    """How many aborted transactions its index has; none: there is no file."""


@dataclass(frozen=True, slots=True)
class CompactionState:
    """`clean_offset`: what is before it was compacted. `compacted_to`: what is before it may have holes. `aborted`:
    compacted segments by their base offsets, with the number of their aborted transactions; of these segments the
    checkpoint, which knows nothing of an exchange, may say something else."""

    clean_offset: Offset = 0
    compacted_to: Offset = 0
    next_horizon_ms: TimestampMs | None = None
    swap: PlannedSwap | None = None
    aborted: tuple[tuple[Offset, int], ...] = ()

    def encode(self) -> bytes:
        line = json.dumps({"version": _VERSION, **asdict(self)}, separators=(",", ":")).encode()
        return line + b"\n%08x\n" % crc32c(line)

    def cut(self, end_offset: Offset, segment: Offset) -> "CompactionState":
        """The log ends there, in the segment with this base offset, which is appended to from now on."""
        return replace(
            self,
            clean_offset=min(self.clean_offset, end_offset),
            compacted_to=min(self.compacted_to, end_offset),
            aborted=tuple(entry for entry in self.aborted if entry[0] < segment),
        )

    def aborted_in(self, segment: Offset) -> int | None:
        """None: the checkpoint knows."""
        return dict(self.aborted).get(segment)

    def recounted(self, segments: Iterable[CountedSegment]) -> "CompactionState":
        counts = {segment.base_offset: segment.aborted_count for segment in segments}
        return replace(self, aborted=tuple((base, counts[base]) for base, _ in self.aborted if base in counts))

    def exchanged(
        self, planned: PlannedSwap, end_offset: Offset, segments: Iterable[CountedSegment]
    ) -> "CompactionState":
        """After an exchange in a log with these segments."""
        known = {segment.base_offset: segment.aborted_count for segment in segments}
        gone, base_offset = planned.replaced[1:], planned.base_offset
        counts = {base: count for base, count in self.aborted if base in known and base not in gone}
        if planned.aborted or known[base_offset] or base_offset in counts:
            counts[base_offset] = planned.aborted
        return replace(self, compacted_to=max(self.compacted_to, end_offset), aborted=tuple(sorted(counts.items())))


def decode_state(content: bytes) -> CompactionState | None:
    """None if it is damaged or of a version we do not know."""
    line, _, rest = content.partition(b"\n")
    if rest != b"%08x\n" % crc32c(line):
        return None
    try:
        values = json.loads(line)
        if values.pop("version") != _VERSION:
            return None
        swap = values.pop("swap")
        planned = None if swap is None else PlannedSwap(int(swap[0]), int(swap[1]), tuple(swap[2]), *swap[3:])
        aborted = tuple((int(base), int(count)) for base, count in values.pop("aborted", ()))
        return CompactionState(**values, swap=planned, aborted=aborted)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return None


def read_state(files: Files, directory: str) -> CompactionState | None:
    """None if there is none, or none that can be believed."""
    try:
        file = files.open(f"{directory}/{STATE}", writable=False)
    except FileNotFoundError:
        return None
    return decode_state(file.pread(file.size(), 0))


def write_state(files: Files, directory: str, state: CompactionState) -> None:
    write_durably(files, f"{directory}/{STATE}", state.encode())


def cleaned_name(base_offset: Offset, suffix: str) -> str:
    return segment_name(base_offset, CLEANED + suffix)


def is_cleaned(name: str) -> bool:
    return CLEANED + "." in name


def finish_swap(
    files: Files, directory: str, state: CompactionState, sizes: dict[str, int | None]
) -> CompactionState:
    """Carry out an exchange that a crash cut short. `sizes` are the directory's log files by name."""
    swap = state.swap
    assert swap is not None
    new, old = cleaned_name(swap.base_offset, LOG), segment_name(swap.base_offset, LOG)
    done = replace(state, swap=None)
    if sizes.get(new) == swap.size or (new not in sizes and sizes.get(old) == swap.size):
        for suffix in (LOG, *INDEXES):
            try:
                _put_into_place(files, directory, swap, suffix)
            except FileNotFoundError:
                pass
        for base in swap.replaced[1:]:
            for suffix in (LOG, *INDEXES):
                try:
                    files.remove(f"{directory}/{segment_name(base, suffix)}")
                except FileNotFoundError:
                    pass
        files.sync_directory(directory)
    else:
        done = replace(done, aborted=tuple(entry for entry in done.aborted if entry[0] != swap.base_offset))
    write_state(files, directory, done)
    return done


def _put_into_place(files: Files, directory: str, swap: PlannedSwap, suffix: str) -> None:
    """One file of the new segment; FileNotFoundError if it is there already."""
    place = f"{directory}/{segment_name(swap.base_offset, suffix)}"
    if suffix == ABORTED_INDEX and not swap.aborted:
        with suppress(FileNotFoundError):
            files.remove(place)
    else:
        files.rename(f"{directory}/{cleaned_name(swap.base_offset, suffix)}", place)


class Throttle:
    """At most so many bytes a second, over all who share it."""

    def __init__(self, bytes_per_second: float = float("inf")) -> None:
        self.bytes_per_second = bytes_per_second
        self._lock = threading.Lock()
        self._free_at = 0.0

    def spend(self, size: int, stop: threading.Event) -> None:
        """Wait until so many bytes may be read or written; less long if `stop` is set."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + size / self.bytes_per_second
            pause_s = self._free_at - now
        if pause_s > 0.002:
            stop.wait(pause_s)


class Source(NamedTuple):
    """A segment to read."""

    base_offset: Offset
    end_offset: Offset
    size: int
    path: str
    aborted: list[AbortedTransaction]


class Group(NamedTuple):
    """Segments that were written as one, in files that are durable and not part of the log yet."""

    planned: PlannedSwap
    end_offset: Offset


class Cancelled(StorageError):
    """The log was closed or its segments went while they were compacted. Nothing is lost."""


class CompactionPass:
    """One run over a log. The steps are called one after another, by any threads."""

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
        _remove_cleaned(self._files, self._directory, group.planned.base_offset)

    def _fill(self, writer: "_GroupWriter", sources: list[Source]) -> int:
        """Thin as many of the sources as one segment can hold; how many."""
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
        assert key_map is not None, "the map comes first"
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
        """Give the whole segment to `take` in chunks; it says how many of their bytes are whole batches."""
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
                wanted = int.from_bytes(chunk[8:LENGTH_END], "big") + LENGTH_END
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
        """Whether the indexes of so many bytes more, at the worst, are not larger than indexes may be."""
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
        """Durable, names included."""
        self._file.sync()
        self._indexes.close()
        saved = self._indexes.save(self._files, self._path, anew=True)
        for file in saved + AbortedIndex(aborted).save(self._files, self._path):
            file.sync()
        self._files.sync_directory(self._directory)

    def discard(self) -> None:
        _remove_cleaned(self._files, self._directory, self._base_offset)


def _remove_cleaned(files: Files, directory: str, base_offset: Offset) -> None:
    for suffix in (LOG, *INDEXES):
        try:
            files.remove(f"{directory}/{cleaned_name(base_offset, suffix)}")
        except OSError:
            pass  # gone with the directory, or a leftover that opening removes


class Swap:
    """The exchange of a group for its segments: what has to be written before and after it."""

    def __init__(
        self, files: Files, directory: str, group: Group, before: CompactionState, after: CompactionState
    ) -> None:
        self._files = files
        self._directory = directory
        self.group = group
        self.before = before
        self.after = after
        self.applied = False

    def commit(self) -> None:
        """After this the exchange will have happened, also if the machine stops."""
        write_state(self._files, self._directory, replace(self.after, swap=self.group.planned))

    def finish(self) -> None:
        self._files.sync_directory(self._directory)
        write_state(self._files, self._directory, self.after)

    def call_off(self) -> None:
        """Nothing was exchanged, and nothing will be."""
        write_state(self._files, self._directory, self.before)
        _remove_cleaned(self._files, self._directory, self.group.planned.base_offset)


class Dirtiness(NamedTuple):
    """What compaction would find in a log."""

    dirty_bytes: int
    ratio: float
    urgent: bool
    """A record, a tombstone or a marker has waited as long as it may."""
    wanted: bool
    """Enough of it is dirty, or it is urgent."""


class CompactedLog(Protocol):
    """What compaction needs of the log whose owner it works for."""

    directory: str
    settings: LogSettings

    @property
    def producers(self) -> Producers: ...
    @property
    def end_offset(self) -> Offset: ...
    @property
    def decided_offset(self) -> Offset:
        """No record before it belongs to a transaction whose end is not durable."""

    def aborted_between(self, start: Offset, end: Offset) -> list[AbortedTransaction]:
        """The aborted transactions that have records there, in the order of their markers."""

    def durable_segments(self) -> list[SealedSegment]:
        """The sealed segments that the checkpoint vouches for, in order."""

    def replace_segments(self, replaced: Sequence[Offset], size: int, aborted: int, spec: IndexSpec) -> None:
        """Read from one new segment, whose log file stands in the place of the first, instead of from these."""


class LogCompaction:
    """Compaction as the owner of a log sees it. Everything here runs in the owner's thread."""

    def __init__(self, log: CompactedLog, files: Files, state: CompactionState) -> None:
        self._log = log
        self._files = files
        self.state = state
        self.fault: StorageError | None = None
        """Why there will be no more compaction until the log is opened again."""
        self._pass: CompactionPass | None = None
        self._swap: Swap | None = None
        self.running: Future[Any] | None = None
        """The step under way, if another thread has it."""

    def measure(self, now_ms: TimestampMs) -> Dirtiness:
        settings = self._log.settings.compaction
        if settings is None or self.fault is not None or self._pass is not None:
            return Dirtiness(0, 0.0, urgent=False, wanted=False)
        segments = self._cleanable(now_ms)
        clean_offset = self._clean_offset(segments)
        clean_bytes = sum(segment.size for segment in segments if segment.base_offset < clean_offset)
        dirty = [segment for segment in segments if segment.end_offset > clean_offset]
        dirty_bytes = sum(segment.size for segment in dirty)
        if dirty and dirty[0].base_offset < clean_offset:
            already = dirty[0].locate(clean_offset)
            dirty_bytes -= already
            clean_bytes += already - dirty[0].size
        due = self.state.next_horizon_ms
        urgent = clean_bytes > 0 and due is not None and due <= now_ms
        if dirty_bytes and settings.max_lag_ms < NEVER:
            oldest = min((at for at in map(_first_timestamp, dirty) if at >= 0), default=now_ms)
            urgent = urgent or now_ms - oldest > settings.max_lag_ms
        ratio = dirty_bytes / (clean_bytes + dirty_bytes) if dirty_bytes else 0.0
        wanted = urgent or (dirty_bytes > 0 and ratio >= settings.min_dirty_ratio)
        return Dirtiness(dirty_bytes, ratio, urgent, wanted)

    def begin(self, now_ms: TimestampMs, cleaner: CleanerSettings, throttle: Throttle) -> CompactionPass | None:
        """A pass over everything that may be compacted; None if there is nothing."""
        settings, segments = self._log.settings, self._cleanable(now_ms)
        if settings.compaction is None or not segments or self.fault is not None or self._pass is not None:
            return None
        newest = {
            id_: Newest(known.epoch, known.batches[-1].last_offset if known.batches else None)
            for id_, known in self._log.producers
        }
        start_offset, end_offset = self._clean_offset(segments), segments[-1].end_offset
        aborted = self._log.aborted_between(segments[0].base_offset, end_offset)
        ended_before = partial(bisect_left, aborted, key=lambda entry: entry.last_offset)
        rules = Rules(
            now_ms,
            settings.compaction.delete_retention_ms,
            start_offset,
            max(start_offset, end_offset),
            newest,
            AbortedRanges(aborted),
            self._log.end_offset,
        )
        sources = [
            Source(
                one.base_offset,
                one.end_offset,
                one.size,
                one.path + LOG,
                aborted[ended_before(one.base_offset) : ended_before(one.end_offset)],
            )
            for one in segments
        ]
        self._pass = CompactionPass(self._files, self._log.directory, sources, rules, settings, cleaner, throttle)
        return self._pass

    def begin_swap(self, group: Group) -> Swap | None:
        """None, with the group discarded, if the log does not have these segments any more."""
        segments = self._log.durable_segments()
        bases = [segment.base_offset for segment in segments]
        replaced = list(group.planned.replaced)
        first = bases.index(replaced[0]) if replaced[0] in bases else 0
        if self._pass is None or bases[first : first + len(replaced)] != replaced:
            _remove_cleaned(self._files, self._log.directory, group.planned.base_offset)
            return None
        after = self.state.exchanged(group.planned, group.end_offset, segments)
        self._swap = Swap(self._files, self._log.directory, group, self.state, after)
        return self._swap

    def apply(self, swap: Swap) -> bool:
        """Exchange the files and read from the new one. False if it was settled already: nothing is left to do."""
        if self._swap is not swap or swap.applied or self._pass is None:
            return False
        planned, directory = swap.group.planned, self._log.directory
        try:
            for segment in self._log.durable_segments():
                if segment.base_offset == planned.base_offset:
                    segment.pin()  # should the exchange get stuck half-way, it is still read from
            _put_into_place(self._files, directory, planned, LOG)
        except StorageError:
            self.abandon_swap(swap)
            raise
        except OSError as error:
            self.abandon_swap(swap)
            raise storage_error(error, f"exchange segments of {directory}") from error
        swap.applied = True
        self.state = swap.after
        try:
            for suffix in INDEXES:
                _put_into_place(self._files, directory, planned, suffix)
            self._log.replace_segments(planned.replaced, planned.size, planned.aborted, self._pass.spec)
        except OSError as error:  # the state file still names the exchange: opening finishes it
            self._swap = None
            self.fault = storage_error(error, f"exchange segments of {directory}; open it again")
            raise self.fault from error
        return True

    def abandon_swap(self, swap: Swap) -> None:
        """An exchange that could not be committed. If even that cannot be written down, nothing is removed, and a
        crash may still make the exchange, which is as good."""
        self._swap = None
        try:
            swap.call_off()
        except OSError as error:
            self.fault = storage_error(error, f"write {self._log.directory}/{STATE}")

    def finished(self, swap: Swap) -> None:
        """Another thread has finished it."""
        if self._swap is swap:
            self._swap = None

    def end(self, finished: CompactionPass) -> CompactionState:
        """The pass went over everything; what is to be written down now (`write_state`)."""
        if self._pass is finished:
            self.state = replace(
                self.state,
                clean_offset=max(self.state.clean_offset, finished.end_offset),
                next_horizon_ms=finished.next_horizon_ms,
            )
            self._pass = None
        return self.state

    def give_up(self, failed: CompactionPass) -> None:
        if self._pass is failed:
            self.settle()
            self._pass = None

    def settle(self) -> None:
        """Bring an exchange under way to its end, so that nothing else changes the directory meanwhile."""
        swap = self._swap
        if swap is None:
            return
        if self.running is not None:
            wait([self.running])
            failure = self.running.exception()
            if failure is not None and not swap.applied:
                self.abandon_swap(swap)
                return
        elif not swap.applied:
            self.abandon_swap(swap)
            return
        self.apply(swap)
        self.finish(swap)

    def finish(self, swap: Swap) -> None:
        """In this thread, what `Swap.finish` does. If it fails the state file still names the exchange, and must not
        be overwritten by that of another."""
        if self._swap is not swap or not swap.applied:
            return
        self._swap = None
        try:
            swap.finish()
        except OSError as error:
            self.fault = storage_error(error, f"exchange segments of {self._log.directory}; open it again")

    def stop(self) -> None:
        """The log is closed: wait for the step under way, and let nobody begin another."""
        current, self._pass = self._pass, None
        self._swap = None  # what is committed is finished when the log is opened again
        if current is not None:
            current.stop.set()
            if self.running is not None:
                wait([self.running])
        if self.fault is None:
            self.fault = LogClosed(f"{self._log.directory} is closed")

    def interrupt(self) -> None:
        """Bring the pass under way to its end, so that nobody else writes to the directory."""
        self.settle()
        current, self._pass = self._pass, None
        if current is not None:
            current.stop.set()
        if self.running is not None:
            wait([self.running])

    def cut(self, end_offset: Offset, segment: Offset) -> None:
        """The log is going to end at `end_offset`, in this segment. Raises OSError."""
        self.interrupt()
        self._write(self.state.cut(end_offset, segment))

    def recount(self, segments: Iterable[CountedSegment]) -> None:
        """The aborted transactions of the log's segments were found anew, after `interrupt`. Raises OSError."""
        self._write(self.state.recounted(segments))

    def _write(self, state: CompactionState) -> None:
        if state != self.state:
            write_state(self._files, self._log.directory, state)
            self.state = state

    def run(self, now_ms: TimestampMs, cleaner: CleanerSettings | None = None) -> CompactionPass | None:
        """A whole pass in this thread, for those who have no other."""
        current = self.begin(now_ms, cleaner or CleanerSettings(), Throttle())
        if current is None:
            return None
        try:
            current.build_map()
            while (group := current.next_group()) is not None:
                swap = self.begin_swap(group)
                if swap is None:
                    raise Cancelled(f"{self._log.directory} was changed while it was compacted")
                try:
                    swap.commit()
                except OSError:
                    self.abandon_swap(swap)
                    raise
                self.apply(swap)
                self.finish(swap)
                if self.fault is not None:
                    raise self.fault
            write_state(self._files, self._log.directory, self.end(current))
        except OSError as error:
            raise storage_error(error, f"compact {self._log.directory}") from error
        finally:
            self.give_up(current)
        return current

    def _cleanable(self, now_ms: TimestampMs) -> list[SealedSegment]:
        settings = self._log.settings.compaction
        found: list[SealedSegment] = []
        if settings is None:
            return found
        for segment in self._log.durable_segments():
            if segment.end_offset > self._log.decided_offset:
                break
            if settings.min_lag_ms and now_ms - segment.max_timestamp < settings.min_lag_ms:
                break
            found.append(segment)
        return found

    def _clean_offset(self, segments: list[SealedSegment]) -> Offset:
        return max(self.state.clean_offset, segments[0].base_offset) if segments else self.state.clean_offset


def _first_timestamp(segment: SealedSegment) -> TimestampMs:
    content = segment.file.pread(HEADER_SIZE, 0)
    return BatchHeader._make(HEADER.unpack(content)).max_timestamp if len(content) == HEADER_SIZE else -1
