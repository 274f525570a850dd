"""Inspecting logs on disk without opening them: which files there are, every batch including those after damage, and
whether index entries are correct.

Nothing here writes or takes a lock, so a directory that a broker uses can be inspected. `verify` and `repair` build
on this, and so do the commands that show files to people.
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
    MAGIC_AT,
    MIN_LENGTH,
    BatchHeader,
    BatchView,
)
from tidelog.storage.local.checkpoint import CHECKPOINT
from tidelog.storage.local.files import File, Files, storage_error
from tidelog.storage.local.index import OFFSET_ENTRY_SIZE, TIME_ENTRY, TIME_ENTRY_SIZE, OffsetEntry, TimeEntry
from tidelog.storage.local.layout import DELETED, LOCK, LOGS, topic_of
from tidelog.storage.local.scan import MAX_RELATIVE_OFFSET, BatchScan, batch_at
from tidelog.storage.local.segment import INDEXES, LOG, base_offset_of, segment_name

_PROC_LOCKS = "/proc/locks"
_SEARCH_CHUNK = 1 << 20
# The magic byte, followed by the CRC and attributes without unknown bits. Every batch header matches, and the regular
# expression engine searches at native speed.
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
    """The offset expected there: the one after the last good batch."""
    next_offset: Offset | None
    """The offset at which the log continues after the damage; None if no good batch follows in this file."""


SegmentPart: TypeAlias = BatchView | DamagedRange


@dataclass(slots=True)
class PartitionFiles:
    """The files in a partition's directory, by purpose."""

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
        raise storage_error(error, f"list {path}") from error
    if names.get(LOGS):
        return [
            place
            for topic in sorted(
                e.name for e in files.list(f"{path}/{LOGS}") if e.is_directory and not e.name.startswith(DELETED)
            )
            if _topic_name_of(topic) is not None
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


def with_topic_id(path: str) -> str:
    """Complete a path in which a topic's directory is given by the topic's name alone: {data}/logs/orders/0 becomes
    {data}/logs/orders~{id}/0. A path that exists, or that names no topic, is returned as it is."""
    parts = path.split("/")
    if os.path.exists(path) or LOGS not in parts[:-1]:
        return path
    at = len(parts) - 1 - parts[-2::-1].index(LOGS)
    logs, topic = "/".join(parts[:at]), parts[at]
    try:
        found = [name for name in os.listdir(logs) if (one := topic_of(name)) is not None and one.name == topic]
    except OSError:
        return path
    if len(found) > 1:
        raise StorageUnavailable(
            f"several topics in {logs} have the name {topic}: {', '.join(sorted(found))}; give one of these names"
        )
    return "/".join([logs, *found, *parts[at + 1 :]]) if found else path


def _partitions_of_topic(files: Files, directory: str) -> list[PartitionPlace]:
    numbers = [int(e.name) for e in files.list(directory) if e.is_directory and e.name.isdecimal()]
    return [_place(f"{directory}/{number}") for number in sorted(numbers)]


def _topic_name_of(directory: str) -> str | None:
    """The topic's name in a directory name, which has the topic's id (or, from earlier versions, not)."""
    topic = topic_of(directory)
    return topic.name if topic is not None else directory if is_topic_name(directory) else None


def _place(directory: str) -> PartitionPlace:
    """The topic, partition and data directory in a path: {data}/logs/{topic}~{id}/{partition}."""
    topic_directory, number = os.path.split(os.path.abspath(directory))
    logs, name = os.path.split(topic_directory)
    topic = _topic_name_of(name)
    if not number.isdecimal() or topic is None:
        return PartitionPlace(None, directory, None)
    inside = os.path.basename(logs) == LOGS
    return PartitionPlace(TopicPartition(topic, int(number)), directory, os.path.dirname(logs) if inside else None)


def holder_of(data_directory: str) -> str | None:
    """The process that holds the lock of a data directory, found without touching the lock; None if none does.

    A process in another container or on another machine is not visible here: its directory counts as free."""
    path = f"{data_directory}/{LOCK}"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # the path may be a FIFO or a device
        with open(descriptor, encoding="utf-8", errors="replace") as lock:
            holder = lock.read(200).strip()
            place = _as_in_proc_locks(lock.fileno())
    except OSError:
        return None
    try:
        with open(_PROC_LOCKS, encoding="ascii") as locks:
            # 1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF
            held = any(f" {place} " in line and " FLOCK " in line for line in locks)
    except OSError:  # not Linux: check whether the process whose id is in the lock file is alive
        held = _is_alive(holder)
    return (holder or "an unknown process") if held else None


def _as_in_proc_locks(fd: int) -> str:
    """Device and inode of an open file in the notation of /proc/locks. The device is needed because inode numbers are
    unique only within one. It is the device of the mount: on file systems with subvolumes, such as btrfs, `stat`
    returns a different one."""
    status = os.fstat(fd)
    major, minor = os.major(status.st_dev), os.minor(status.st_dev)
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as info:
            mount = next(line.split()[1] for line in info if line.startswith("mnt_id:"))
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            # 29 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
            device = next(fields[2] for line in mounts if (fields := line.split())[0] == mount)
        major, minor = map(int, device.split(":"))
    except (OSError, StopIteration):
        pass  # an old kernel, or not Linux
    return f"{major:02x}:{minor:02x}:{status.st_ino}"


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
    file: File, size: int, base_offset: Offset, *, start: int = 0, progress: Callable[[int], None] | None = None
) -> Iterator[SegmentPart]:
    """Everything in a log file from `start` up to `size`: its batches, checked by CRC, and the damaged ranges between
    them.

    After damage the walk continues at the next valid batch whose offset can follow. The caller must check whether the
    offsets of good batches follow one another."""
    position, expected = start, base_offset
    reported = start
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
        if misplaced is not None:  # a good batch; the scan rejected only its offset
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
    """The first valid batch after a damaged position."""
    head = file.pread(HEADER_SIZE, damaged)
    if len(head) == HEADER_SIZE:
        header = BatchHeader._make(HEADER.unpack(head))
        if header.magic == MAGIC and header.length >= MIN_LENGTH and damaged + header.size < end:
            # Most damage is inside the records. Then the header still says where the next batch is. A search could be
            # misled by records that contain batches themselves.
            neighbour = batch_at(file, damaged + header.size, end)
            if neighbour is not None and neighbour.header.base_offset == header.next_offset:
                return neighbour
    start = damaged + 1
    while start + HEADER_SIZE <= end:
        chunk = file.pread(min(_SEARCH_CHUNK + HEADER_SIZE, end - start), start)
        last = len(chunk) - HEADER_SIZE
        for match in _LIKELY_MAGIC.finditer(chunk, MAGIC_AT):
            at = match.start() - MAGIC_AT
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
    """Each item with the one after it; None after the last."""
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
    """Checks an offset index against the batches of its log, which the caller must pass to `saw` in order.

    The caller need not call `saw` for batches before `next_position`: no entry names them."""

    def __init__(self, base_offset: Offset, content: bytes) -> None:
        self._base = base_offset
        self._entries = offset_entries(content)
        # By position, so that one entry that points too far does not hide the entries after it.
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
                    number, offset, f"offset {offset} at {entry.position} does not follow the previous entry"
                )
            before = entry

    def saw(self, position: int, last_offset: Offset | None) -> Iterator[WrongEntry]:
        """There is a batch at `position`. `last_offset` is None if its offsets cannot be trusted."""
        yield from self._skipped(position)
        while self.next_position == position:
            number = self._order[self._next]
            offset = self._base + self._entries[number].relative_offset
            if last_offset is not None and offset != last_offset:
                what = f"says offset {offset} for the batch at {position}, whose last offset is {last_offset}"
                yield WrongEntry(number, offset, what)
            self._advance(self._next + 1)

    def passed_damage(self, start: int, end: int) -> Iterator[WrongEntry]:
        """Skip the entries that point into damaged bytes: they cannot be checked."""
        yield from self._skipped(start)
        while self.next_position < end:
            self._advance(self._next + 1)

    def rest(self) -> Iterator[WrongEntry]:
        """Wrong entries that are left at the end of the log file."""
        yield from self._skipped(_NO_MORE)

    def _skipped(self, position: int) -> Iterator[WrongEntry]:
        while self.next_position < position:
            number = self._order[self._next]
            offset = self._base + self._entries[number].relative_offset
            what = f"says that offset {offset} is at position {self.next_position} of the log, where no batch starts"
            yield WrongEntry(number, offset, what)
            self._advance(self._next + 1)

    def _advance(self, to: int) -> None:
        self._next = to
        self.next_position = self._entries[self._order[to]].position if to < len(self._order) else _NO_MORE


class TimeIndexCheck:
    """Checks a time index against the batches of its log: each entry must be the largest timestamp up to its
    offset."""

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
                what = f"timestamp {entry.timestamp} for offset {offset} does not follow the previous entry"
                yield WrongEntry(number, offset, what)
            before = entry

    def concerns(self, last_offset: Offset, max_timestamp: TimestampMs) -> bool:
        """Whether `saw` must be called for this batch."""
        return max_timestamp > self.max_timestamp or last_offset >= self._next_offset

    def saw(self, base_offset: Offset, last_offset: Offset, max_timestamp: TimestampMs) -> Iterator[WrongEntry]:
        if self._next_offset < base_offset:
            yield from self._judge(base_offset - 1)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
        if self._next_offset <= last_offset:
            yield from self._judge(last_offset)

    def passed_damage(self) -> None:
        """From here on, the largest timestamp may have been in the damaged bytes."""
        self._exact = False

    def rest(self, *, sealed: bool) -> Iterator[WrongEntry]:
        """Wrong entries that are left at the end of the log file. Not checked if the file is damaged, because then
        its end is uncertain."""
        if not self._exact:
            return
        for number in self._order[self._next :]:
            offset = self._base + self._entries[number].relative_offset
            yield WrongEntry(number, offset, f"names offset {offset}, which is after the segment's end")
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
