"""Segments read straight from their files, where a task can see them.

What is read must be what the broker would give. So a file counts only after the broker was shown to have the same
batch at the place where reading begins: another broker's files under the same path, or a topic that was deleted and
created anew, do not. The file is opened before that, and stays readable whatever is deleted afterwards. Whoever
decodes the batches checks their CRC. Every doubt ends the reading of files, without an error: `Stretch.end` says how
far they led, and the broker is asked for the rest.

For readers of committed records, batches of aborted transactions are left out. Whether one was aborted is said by the
next marker of its producer, which is looked for ahead of reading, in this file and those after it. The index of
aborted transactions is no help: the broker writes it when it likes.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from tidelog.client.fetcher import whole_batches
from tidelog.errors import CorruptBatch, TidelogError
from tidelog.model import Offset, ProducerId
from tidelog.records.batch import HEADER_SIZE, BatchView, check_integrity, iterate, read_header
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, read_marker
from tidelog.storage.local.files import File, OsFiles
from tidelog.storage.local.index import POSITION_MASK, OffsetIndexReader
from tidelog.storage.local.inspect import list_partition, log_name
from tidelog.storage.local.scan import BatchScan

_CHUNK = 4 << 20
NO_END: Offset = 2**63 - 1  # of the segment that is being written

FirstBatch = Callable[[Offset], bytes | None]
"""The header of the batch that holds an offset, or of the first after it, as the broker has it."""


class Stretch(NamedTuple):
    """Whole batches; everything of the log before `end` that is at or after what was asked for."""

    records: memoryview
    end: Offset


def read_files(
    directory: str, start: Offset, end: Offset, first_batch: FirstBatch, *, committed: bool = False
) -> Iterator[Stretch]:
    """As much of the range from `start` to `end` as files hold, in order. What is before `end` must be readable from
    the broker already (with `committed`: by readers of committed records): then it stands whole in the files, also in
    the segment that is being written."""
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
    """Its base offset and that of the next one."""
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
    """Where the first batch that is asked for begins."""


def _open(directory: str, base: Offset, start: Offset, first_batch: FirstBatch) -> _Opened | None:
    """A segment whose first batch from `start` on is the one that the broker has."""
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
            records, last = whole_batches(memoryview(file.pread(wanted, at)))
            if last < 0:
                if wanted >= size - at:
                    return
                wanted = size - at  # a batch larger than a chunk
                continue
            at += len(records)
            reached = following if at == size and following != NO_END else read_header(records, last).next_offset
            yield Stretch(records, min(reached, end))
            if reached >= end:
                return
    except (OSError, CorruptBatch):
        return


class _NoEnding(Exception):
    """The files do not say how a transaction ended."""


class _Endings:
    """How transactions ended, from the first one that is asked for on."""

    def __init__(self, directory: str, first_batch: FirstBatch) -> None:
        self._directory = directory
        self._first_batch = first_batch
        self._ahead: Iterator[BatchView] | None = None
        self._markers: dict[ProducerId, deque[tuple[Offset, bool]]] = {}  # in order; whether it is an abort

    def committed(self, records: memoryview, end: Offset) -> memoryview:
        """Without what was aborted, and up to `end`: transactions behind it may be open. To be asked in the order of
        offsets."""
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
        """Of the log, as far as there are files that are what the broker has."""
        while (found := _segment_of(self._directory, position)) is not None:
            base, following = found
            opened = _open(self._directory, base, position, self._first_batch)
            if opened is None:
                return
            scan = BatchScan(opened.file, opened.at, opened.size, verify=False, base_offset=base)
            yield from scan
            if scan.damage is not None or following == NO_END:
                return
            position = following


def _find(file: File, size: int, path: str, base: Offset, offset: Offset) -> int | None:
    """Where the batch that holds the offset begins, or the first one after it; None: not in this file."""
    at = 0
    try:
        with open(path.removesuffix(".log") + ".index", "rb") as index:
            entry = OffsetIndexReader(index.read()).at_or_before(offset - base)
        at = entry & POSITION_MASK if entry >= 0 else 0
    except (OSError, TypeError, ValueError):
        pass
    for batch in BatchScan(file, at, size, verify=False, base_offset=base):
        if batch.header.last_offset >= offset:
            return batch.position
    return None
