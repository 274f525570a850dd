"""Looking at logs on the disk without opening them: which files there are, every batch also behind damage, and
whether index entries are true.

Nothing here writes or takes a lock, so a directory that a broker uses can be looked at. `verify` and `repair` build
on this, and so does everything that shows files to people.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple, TypeAlias, TypeVar

from tidelog.errors import StorageUnavailable
from tidelog.model import NO_TIMESTAMP, Offset, TimestampMs, TopicPartition, is_topic_name
from tidelog.records.batch import (
    HEADER,
    HEADER_SIZE,
    MAGIC,
    MIN_LENGTH,
    BatchHeader,
    BatchView,
)
from tidelog.storage.local.checkpoint import CHECKPOINT
from tidelog.storage.local.files import File, Files, storage_error
from tidelog.storage.local.index import OFFSET_ENTRY_SIZE, TIME_ENTRY, TIME_ENTRY_SIZE, OffsetEntry, TimeEntry
from tidelog.storage.local.scan import MAX_RELATIVE_OFFSET, BatchScan, batch_at
from tidelog.storage.local.segment import INDEXES, LOG, base_offset_of, segment_name
from tidelog.storage.local.store import LOCK, LOGS

_SEARCH_CHUNK = 1 << 20
_MAGIC_AT = 16
# The magic byte, with attributes behind the CRC of which no unknown bit is set: what a header cannot do without, and
# what the regular expression engine finds at native speed.
_LIKELY_MAGIC = re.compile(rb"\x02(?=.{4}\x00[\x00-\x7f])", re.DOTALL)


_OFFSET_ENTRY = Struct(">II")
_NO_MORE = 1 << 62
T = TypeVar("T")


class PartitionPlace(NamedTuple):
    """A partition's directory. `data_directory` is None for one that stands alone, such as a copy."""

    partition: TopicPartition | None
    directory: str
    data_directory: str | None

    @property
    def name(self) -> str:
        return str(self.partition) if self.partition else self.directory


class DamagedRange(NamedTuple):
    """Bytes of a log file that are not whole, valid batches."""

    position: int
    size: int
    reason: str
    offset: Offset
    """What should stand there: the offset after the last good batch."""
    next_offset: Offset | None
    """Where the log goes on behind the damage; None if no good batch follows in this file."""


SegmentPart: TypeAlias = BatchView | DamagedRange


@dataclass(slots=True)
class PartitionFiles:
    """What stands in a partition's directory, by what it is for."""

    directory: str
    segments: dict[Offset, int] = field(default_factory=dict)
    """Sizes of the log files by base offset, in order."""
    indexes: set[str] = field(default_factory=set)
    orphans: dict[str, Offset] = field(default_factory=dict)
    """Index files without a log file."""
    others: list[str] = field(default_factory=list)
    has_checkpoint: bool = False

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"


def list_partition(files: Files, directory: str) -> PartitionFiles:
    found = PartitionFiles(directory)
    try:
        entries = files.list(directory, sizes=LOG)
    except OSError as error:
        raise storage_error(error, f"list {directory}") from error
    for entry in sorted(entries):
        base = base_offset_of(entry.name, LOG)
        if base is not None:
            found.segments[base] = entry.size or 0
    for entry in sorted(entries):
        indexed = _indexed_by(entry.name)
        if entry.name == CHECKPOINT:
            found.has_checkpoint = True
        elif indexed is not None and indexed in found.segments:
            found.indexes.add(entry.name)
        elif indexed is not None:
            found.orphans[entry.name] = indexed
        elif base_offset_of(entry.name, LOG) is None:
            found.others.append(entry.name)
    return found


def _indexed_by(name: str) -> Offset | None:
    for suffix in INDEXES:
        base = base_offset_of(name, suffix)
        if base is not None:
            return base
    return None


def find_partitions(files: Files, path: str) -> list[PartitionPlace]:
    """The partitions at a data directory, a topic's directory or a partition's directory."""
    path = path.rstrip("/") or "/"
    try:
        names = {entry.name: entry.is_directory for entry in files.list(path)}
    except OSError as error:
        raise storage_error(error, f"look into {path}") from error
    if names.get(LOGS):
        return [
            place
            for topic in sorted(
                e.name for e in files.list(f"{path}/{LOGS}") if e.is_directory and is_topic_name(e.name)
            )
            for place in _partitions_of_topic(files, f"{path}/{LOGS}/{topic}")
        ]
    if CHECKPOINT in names or any(base_offset_of(name, LOG) is not None for name in names):
        return [_place(path)]
    partitions = _partitions_of_topic(files, path)
    if partitions:
        return partitions
    if os.path.basename(path).isdecimal():
        return [_place(path)]
    raise StorageUnavailable(
        f"{path} holds no log; give a data directory (with {LOGS}/ in it), the directory of a topic or of a partition"
    )


def _partitions_of_topic(files: Files, directory: str) -> list[PartitionPlace]:
    numbers = [int(e.name) for e in files.list(directory) if e.is_directory and e.name.isdecimal()]
    return [_place(f"{directory}/{number}") for number in sorted(numbers)]


def _place(directory: str) -> PartitionPlace:
    """Where a partition belongs, as its path tells: {data}/logs/{topic}/{partition}."""
    topic_directory, number = os.path.split(os.path.abspath(directory))
    logs, topic = os.path.split(topic_directory)
    if not number.isdecimal() or not is_topic_name(topic):
        return PartitionPlace(None, directory, None)
    inside = os.path.basename(logs) == LOGS
    return PartitionPlace(TopicPartition(topic, int(number)), directory, os.path.dirname(logs) if inside else None)


def holder_of(data_directory: str) -> str | None:
    """Who holds the lock of a data directory, found out without touching the lock; None if nobody does.

    A process of another container or machine cannot be seen this way: then its directory counts as free."""
    path = f"{data_directory}/{LOCK}"
    try:
        with open(path, encoding="utf-8", errors="replace") as lock:
            holder = lock.read(200).strip()
        inode = os.stat(path).st_ino
    except OSError:
        return None
    try:
        with open("/proc/locks", encoding="ascii") as locks:
            # 1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF
            held = any(f":{inode} " in line and " FLOCK " in line for line in locks)
    except OSError:  # not Linux: the process that wrote its number into the lock is as good as we can tell
        held = _is_alive(holder)
    return (holder or "an unknown process") if held else None


def _is_alive(holder: str) -> bool:
    number = holder.rpartition(" ")[2]
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def walk_segment(
    file: File, size: int, base_offset: Offset, *, progress: Callable[[int], None] | None = None
) -> Iterator[SegmentPart]:
    """Everything in a log file up to `size`: its batches, checked by CRC, and between them what is damaged.

    Behind damage the walk goes on at the next batch that is valid and whose offset can follow. Whether the offsets
    of good batches follow one another is for the caller to judge."""
    position, expected = 0, base_offset
    reported = 0
    while position < size:
        scan = BatchScan(file, position, size, verify=True)
        for batch in scan:
            expected = batch.header.next_offset
            yield batch
            if progress is not None and scan.position - reported >= _SEARCH_CHUNK:
                progress(scan.position - reported)
                reported = scan.position
        position = scan.position
        if scan.damage is None:
            break
        misplaced = batch_at(file, position, size)
        if misplaced is not None:  # a good batch, of which the scan only disliked the offset
            yield misplaced
            expected = misplaced.header.next_offset
            position += misplaced.header.size
            continue
        found = _next_batch(file, position, size, base_offset, expected)
        end = size if found is None else found.position
        yield DamagedRange(
            position, end - position, scan.damage.reason, expected, found.header.base_offset if found else None
        )
        position = end
    if progress is not None:
        progress(size - reported)


def _next_batch(file: File, damaged: int, end: int, base_offset: Offset, expected: Offset) -> BatchView | None:
    """The first valid batch behind a damaged position."""
    head = file.pread(HEADER_SIZE, damaged)
    if len(head) == HEADER_SIZE:
        header = BatchHeader._make(HEADER.unpack(head))
        if header.magic == MAGIC and header.length >= MIN_LENGTH and damaged + header.size < end:
            # Most damage is inside the records. Then the header still tells where the next batch is, and a search
            # cannot be led astray by records that contain batches themselves.
            neighbour = batch_at(file, damaged + header.size, end)
            if neighbour is not None and neighbour.header.base_offset == header.next_offset:
                return neighbour
    start = damaged + 1
    while start + HEADER_SIZE <= end:
        chunk = file.pread(min(_SEARCH_CHUNK + HEADER_SIZE, end - start), start)
        last = len(chunk) - HEADER_SIZE
        for match in _LIKELY_MAGIC.finditer(chunk, _MAGIC_AT):
            at = match.start() - _MAGIC_AT
            if at > last:
                break
            base, length, *_ = HEADER.unpack_from(chunk, at)
            if expected <= base <= base_offset + MAX_RELATIVE_OFFSET and MIN_LENGTH <= length <= end - start - at:
                batch = batch_at(file, start + at, end)
                if batch is not None:
                    return batch
        if last < 0:
            break
        start += last + 1
    return None


def with_next(items: Iterable[T]) -> Iterator[tuple[T, T | None]]:
    """Each with the one behind it; None behind the last."""
    iterator = iter(items)
    for item in iterator:
        for following in iterator:
            yield item, following
            item = following
        yield item, None


def log_name(base_offset: Offset) -> str:
    return segment_name(base_offset, LOG)


def offset_entries(content: bytes) -> list[OffsetEntry]:
    """The whole entries of an .index file."""
    whole = len(content) - len(content) % OFFSET_ENTRY_SIZE
    return [OffsetEntry._make(entry) for entry in _OFFSET_ENTRY.iter_unpack(memoryview(content)[:whole])]


def time_entries(content: bytes) -> list[TimeEntry]:
    """The whole entries of a .timeindex file."""
    whole = len(content) - len(content) % TIME_ENTRY_SIZE
    return [TimeEntry._make(entry) for entry in TIME_ENTRY.iter_unpack(memoryview(content)[:whole])]


class WrongEntry(NamedTuple):
    number: int
    offset: Offset
    what: str


class OffsetIndexCheck:
    """An offset index against the batches of its log, which must be shown to it in order.

    `next_position` spares the caller the calls for batches that no entry names."""

    def __init__(self, base_offset: Offset, content: bytes) -> None:
        self._base = base_offset
        self._entries = offset_entries(content)
        # By position, so that one entry that points too far does not hide those behind it.
        self._order = sorted(range(len(self._entries)), key=lambda number: self._entries[number].position)
        self._next = 0
        self.next_position = 0
        self._advance(0)

    def out_of_order(self) -> Iterator[WrongEntry]:
        before = OffsetEntry(-1, -1)
        for number, entry in enumerate(self._entries):
            if entry.relative_offset <= before.relative_offset or entry.position <= before.position:
                offset = self._base + entry.relative_offset
                yield WrongEntry(
                    number, offset, f"offset {offset} at {entry.position} does not follow the entry before"
                )
            before = entry

    def saw(self, position: int, last_offset: Offset | None) -> Iterator[WrongEntry]:
        """A batch at `position`; None: which offsets it has cannot be told."""
        yield from self._skipped(position)
        while self.next_position == position:
            number = self._order[self._next]
            offset = self._base + self._entries[number].relative_offset
            if last_offset is not None and offset != last_offset:
                what = f"says offset {offset} for the batch at {position}, whose last offset is {last_offset}"
                yield WrongEntry(number, offset, what)
            self._advance(self._next + 1)

    def passed_damage(self, start: int, end: int) -> Iterator[WrongEntry]:
        """Entries into damaged bytes cannot be judged."""
        yield from self._skipped(start)
        while self.next_position < end:
            self._advance(self._next + 1)

    def rest(self) -> Iterator[WrongEntry]:
        """What is left at the end of the log file."""
        yield from self._skipped(_NO_MORE)

    def _skipped(self, position: int) -> Iterator[WrongEntry]:
        while self.next_position < position:
            number = self._order[self._next]
            offset = self._base + self._entries[number].relative_offset
            what = f"says offset {offset} stands at {self.next_position} of the log, where no batch starts"
            yield WrongEntry(number, offset, what)
            self._advance(self._next + 1)

    def _advance(self, to: int) -> None:
        self._next = to
        self.next_position = self._entries[self._order[to]].position if to < len(self._order) else _NO_MORE


class TimeIndexCheck:
    """A time index against the batches of its log: each entry must be the largest timestamp up to its offset."""

    def __init__(self, base_offset: Offset, content: bytes) -> None:
        self._base = base_offset
        self._entries = time_entries(content)
        self._order = sorted(range(len(self._entries)), key=lambda number: self._entries[number].relative_offset)
        self._next = 0
        self._next_offset: Offset = 0
        self._exact = True
        self.max_timestamp = NO_TIMESTAMP
        self._advance(0)

    def out_of_order(self) -> Iterator[WrongEntry]:
        before = TimeEntry(NO_TIMESTAMP, -1)
        for number, entry in enumerate(self._entries):
            if entry.timestamp <= before.timestamp or entry.relative_offset < before.relative_offset:
                offset = self._base + entry.relative_offset
                what = f"timestamp {entry.timestamp} for offset {offset} does not follow the entry before"
                yield WrongEntry(number, offset, what)
            before = entry

    def concerns(self, last_offset: Offset, max_timestamp: TimestampMs) -> bool:
        """Whether a batch is worth a call of `saw`."""
        return max_timestamp > self.max_timestamp or last_offset >= self._next_offset

    def saw(self, base_offset: Offset, last_offset: Offset, max_timestamp: TimestampMs) -> Iterator[WrongEntry]:
        if self._next_offset < base_offset:
            yield from self._judge(base_offset - 1)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
        if self._next_offset <= last_offset:
            yield from self._judge(last_offset)

    def passed_damage(self) -> None:
        """From here on the largest timestamp may be one that was in the damaged bytes."""
        self._exact = False

    def rest(self, *, sealed: bool) -> Iterator[WrongEntry]:
        """What is left at the end of the log file. With damage in it, its end is not known well enough to judge."""
        if not self._exact:
            return
        for number in self._order[self._next :]:
            offset = self._base + self._entries[number].relative_offset
            yield WrongEntry(number, offset, f"names offset {offset}, behind the segment's end")
        last = self._entries[-1].timestamp if self._entries else NO_TIMESTAMP
        if sealed and last != self.max_timestamp:
            number = max(0, len(self._entries) - 1)
            what = f"ends with timestamp {last}, but the segment's largest is {self.max_timestamp}"
            yield WrongEntry(number, self._base, what)

    def _judge(self, up_to: Offset) -> Iterator[WrongEntry]:
        largest = self.max_timestamp
        while self._next_offset <= up_to:
            number = self._order[self._next]
            timestamp = self._entries[number].timestamp
            if timestamp != largest if self._exact else timestamp < largest:
                what = f"says timestamp {timestamp} up to offset {self._next_offset}, but the largest is {largest}"
                yield WrongEntry(number, self._next_offset, what)
            self._advance(self._next + 1)

    def _advance(self, to: int) -> None:
        self._next = to
        order = self._order
        self._next_offset = self._base + self._entries[order[to]].relative_offset if to < len(order) else _NO_MORE
