"""Segments read straight from their files, where a task can see them.

What is read must be what the broker would give. So a file counts only after the broker was shown to have the same
batch at the place where reading begins: another broker's files under the same path, or a topic that was deleted and
created anew, do not. The file is opened before that, and stays readable whatever is deleted afterwards. Whoever
decodes the batches checks their CRC. Every doubt ends the reading of files, without an error: `Stretch.end` says how
far they led, and the broker is asked for the rest.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from tidelog.client.fetcher import whole_batches
from tidelog.errors import CorruptBatch, TidelogError
from tidelog.model import Offset
from tidelog.records.batch import HEADER_SIZE, read_header
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


def read_files(directory: str, start: Offset, end: Offset, first_batch: FirstBatch) -> Iterator[Stretch]:
    """As much of the range from `start` to `end` as files hold, in order. What is before `end` must be readable from
    the broker already: then it stands whole in the files, also in the segment that is being written."""
    position = start
    while position < end:
        try:
            segments = sorted(list_partition(OsFiles(), directory).segments)
        except (OSError, TidelogError):
            return
        bounds = pairwise([*segments, NO_END])
        found = next(((base, following) for base, following in bounds if base <= position < following), None)
        if found is None:
            return
        base, following = found
        for stretch in _read_segment(directory, base, following, position, end, first_batch):
            position = stretch.end
            yield stretch
        if position < min(end, following):
            return


def _read_segment(
    directory: str, base: Offset, following: Offset, start: Offset, end: Offset, first_batch: FirstBatch
) -> Iterator[Stretch]:
    path = f"{directory}/{log_name(base)}"
    try:
        file = OsFiles().open(path, writable=False)
    except OSError:
        return
    try:
        size = file.size()
        at = _find(file, size, path, base, start)
        if at is None or file.pread(HEADER_SIZE, at) != first_batch(start):
            return
        wanted = _CHUNK
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
