"""`LocalDirectLog`: reads segments directly from their files, in any process that can see them.

The data must be what the broker would send. So a file is used only if the broker has the same batch at the place
where reading begins; this rejects another broker's files under the same path, and a topic that was deleted and
created again. The file is opened before that check, and stays readable whatever is deleted afterwards. CRCs are not
checked here; the code that decodes the batches does that.

For readers of committed records, batches of aborted transactions are left out. The next marker of a batch's producer
says whether the batch was aborted; it is searched ahead of reading, in the same file and the following ones. The
index of aborted transactions cannot be used: the broker may write it much later.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from tidelog.errors import CorruptBatch, TidelogError
from tidelog.model import Offset, PartitionIdentity, ProducerId
from tidelog.records.batch import HEADER_SIZE, BatchView, check_integrity, iterate, read_header, whole_prefix
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, read_marker
from tidelog.storage.direct import CheckableLog, CheckedLog, KeptLog, LogLeader, LogProblem, Stretch
from tidelog.storage.local.files import File, OsFiles
from tidelog.storage.local.index import POSITION_MASK, OffsetIndexWriter
from tidelog.storage.local.inspect import find_partitions, holder_of, list_partition, log_name
from tidelog.storage.local.layout import LOGS, partition_directory
from tidelog.storage.local.scan import BatchScan

FirstBatch: TypeAlias = Callable[[Offset], bytes | None]
"""`LogLeader.first_batch`."""

_CHUNK = 4 << 20
NO_END: Offset = 2**63 - 1  # end offset of the segment that is being written


@dataclass(frozen=True, slots=True)
class LocalDirectLog(CheckableLog):
    directory: str
    """The partition's directory."""

    def is_worth_a_try(self, *, leader_is_here: bool) -> bool:
        return leader_is_here and os.access(self.directory, os.R_OK | os.X_OK)

    def read(self, start: Offset, end: Offset, leader: LogLeader, *, committed: bool = False) -> Iterator[Stretch]:
        """Everything before `end` is complete in the files, also in the segment that is being written."""
        return _read_files(self.directory, start, end, leader.first_batch, committed=committed)

    def check(self, *, in_use: bool, deep: bool, most_problems: int) -> CheckedLog:
        from tidelog.storage.local.verify import PartitionCheck  # processes that only read need not load its imports

        check = PartitionCheck(OsFiles(), self.directory, in_use=in_use, deep=deep)
        problems: list[LogProblem] = []
        for found in check:
            if len(problems) < most_problems:
                problem = LogProblem(found.severity.value, found.what, found.path, found.position, found.offset)
                problems.append(problem)
        tally = check.tally
        return CheckedLog(tally.batches, tally.records, tally.size_bytes, problems)


def local_log(place: str, partition: PartitionIdentity) -> LocalDirectLog:
    """A log in the data directory `place`, which need not be on this machine."""
    return LocalDirectLog(f"{place}/{LOGS}/{partition_directory(partition)}")


def local_logs(place: str) -> list[KeptLog]:
    """The logs in a data directory, or in the directory of a topic or a partition."""
    files = OsFiles()
    in_use = holder_of(place) is not None
    return [
        KeptLog(
            found.partition,
            sum(list_partition(files, found.directory).segments.values()),
            in_use,
            LocalDirectLog(found.directory),
        )
        for found in find_partitions(files, place)
        if found.partition is not None
    ]


def _read_files(
    directory: str, start: Offset, end: Offset, first_batch: FirstBatch, *, committed: bool
) -> Iterator[Stretch]:
    position = start
    endings = _Endings(directory, first_batch) if committed else None
    while position < end:
        found = _segment_of(directory, position)
        if found is None:
            return
        base, following = found
        for stretch in _read_segment(directory, base, following, position, end, first_batch):
            if endings is not None:
                try:
                    stretch = stretch._replace(records=endings.committed(stretch.records, end))
                except (OSError, CorruptBatch, _NoEnding):
                    return
            position = stretch.end
            yield stretch
        if position < min(end, following):
            return


def _segment_of(directory: str, position: Offset) -> tuple[Offset, Offset] | None:
    """The base offset of the segment that holds `position`, and that of the next segment."""
    try:
        segments = sorted(list_partition(OsFiles(), directory).segments)
    except (OSError, TidelogError):
        return None
    bounds = pairwise([*segments, NO_END])
    return next(((base, following) for base, following in bounds if base <= position < following), None)


class _Opened(NamedTuple):
    file: File
    size: int
    at: int
    """The position where the first requested batch begins."""


def _open(directory: str, base: Offset, start: Offset, first_batch: FirstBatch) -> _Opened | None:
    """Open a segment; None unless its first batch from `start` on is the same as the broker's."""
    path = f"{directory}/{log_name(base)}"
    try:
        file = OsFiles().open(path, writable=False)
        size = file.size()
        at = _find(file, size, path, base, start)
        if at is None or file.pread(HEADER_SIZE, at) != first_batch(start):
            return None
    except (OSError, CorruptBatch):
        return None
    return _Opened(file, size, at)


def _read_segment(
    directory: str, base: Offset, following: Offset, start: Offset, end: Offset, first_batch: FirstBatch
) -> Iterator[Stretch]:
    opened = _open(directory, base, start, first_batch)
    if opened is None:
        return
    file, size, at = opened
    wanted = _CHUNK
    try:
        while at < size:
            records, last = whole_prefix(memoryview(file.pread(wanted, at)))
            if last < 0:
                if wanted >= size - at:
                    return
                wanted = size - at  # a batch larger than a chunk
                continue
            at += len(records)
            reached = read_header(records, last).next_offset
            if at == size and _is_hole(directory, reached, following, first_batch):
                reached = following
            yield Stretch(records, min(reached, end))
            if reached >= end:
                return
    except (OSError, CorruptBatch):
        return


def _is_hole(directory: str, start: Offset, end: Offset, first_batch: FirstBatch) -> bool:
    """True if compaction removed everything from `start` up to the segment at `end`: then the broker's next batch is
    also that segment's first one. Otherwise a file may be missing in between."""
    return start < end != NO_END and _open(directory, end, start, first_batch) is not None


class _NoEnding(Exception):
    """The files do not say how a transaction ended."""


class _Endings:
    """How transactions ended, from the first requested one on."""

    def __init__(self, directory: str, first_batch: FirstBatch) -> None:
        self._directory = directory
        self._first_batch = first_batch
        self._ahead: Iterator[BatchView] | None = None
        self._markers: dict[ProducerId, deque[tuple[Offset, bool]]] = {}  # in order; True: an abort

    def committed(self, records: memoryview, end: Offset) -> memoryview:
        """The batches up to `end`, without the aborted ones. Transactions after `end` may still be open. Call this in
        the order of offsets."""
        batches = list(iterate(records, verify=False))
        kept = [batch.view for batch in batches if batch.header.base_offset < end and not self._is_aborted(batch)]
        return records if len(kept) == len(batches) else memoryview(b"".join(kept))

    def _is_aborted(self, batch: BatchView) -> bool:
        header = batch.header
        if header.is_control or not header.is_transactional:
            return False
        markers = self._markers.setdefault(header.producer_id, deque())
        while markers and markers[0][0] < header.base_offset:
            markers.popleft()
        if self._ahead is None:
            self._ahead = self._batches_from(header.base_offset)
        while not markers:
            self._note(next(self._ahead, None))
        return markers[0][1]

    def _note(self, batch: BatchView | None) -> None:
        if batch is None:
            raise _NoEnding
        header = batch.header
        if header.is_control and header.record_count:
            check_integrity(batch.view, 0, header)
            kind = read_marker(batch).type
            if kind in (ABORT_MARKER, COMMIT_MARKER):
                markers = self._markers.setdefault(header.producer_id, deque())
                markers.append((header.base_offset, kind == ABORT_MARKER))

    def _batches_from(self, position: Offset) -> Iterator[BatchView]:
        """The batches of the log, as far as the files match the broker's log."""
        while (found := _segment_of(self._directory, position)) is not None:
            base, following = found
            opened = _open(self._directory, base, position, self._first_batch)
            if opened is None:
                return
            scan = BatchScan(opened.file, opened.at, opened.size, verify=False, base_offset=base)
            for batch in scan:
                yield batch
                position = batch.header.next_offset
            if scan.damage is not None or position > following:
                return
            if position < following and not _is_hole(self._directory, position, following, self._first_batch):
                return
            position = following


def _find(file: File, size: int, path: str, base: Offset, offset: Offset) -> int | None:
    """The position of the batch that holds the offset, or of the first one after it; None: not in this file."""
    at = 0
    try:
        with open(path.removesuffix(".log") + ".index", "rb") as index:
            entry = OffsetIndexWriter(index.read()).at_or_before(offset - base)
        at = entry & POSITION_MASK if entry >= 0 else 0
    except (OSError, TypeError, ValueError):
        pass
    for batch in BatchScan(file, at, size, verify=False, base_offset=base):
        if batch.header.last_offset >= offset:
            return batch.position
    return None
