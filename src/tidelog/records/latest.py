"""The last record of each key in a run of batches, for tables. By Arrow columns if they are installed (extra
`columnar`), else record by record."""

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.errors import MissingExtra
from tidelog.model import Offset, TimestampMs
from tidelog.records.batch import ReadBuffer, iterate
from tidelog.records.compaction import Aborted, AbortedRanges
from tidelog.records.loading import load
from tidelog.records.record import Record, decode


class Latest(NamedTuple):
    """Columns of the same length, a key in each row once; a null value says that the key was deleted."""

    keys: list[bytes]
    values: list[bytes | None]
    offsets: list[Offset]
    timestamps: list[TimestampMs]


def latest_by_key(
    data: ReadBuffer, start_offset: Offset, aborted: Iterable[Aborted] = (), kernels: bool = True
) -> Latest:
    """Of the records from `start_offset` on; those without a key, and those of aborted transactions, do not count.
    Without `kernels` record by record, for those who would have to wait for them to be compiled."""
    view = memoryview(data)
    ranges = AbortedRanges(aborted)
    if ranges:
        counted = (batch.view for batch in iterate(view, verify=False) if not ranges.has(batch.header))
        view = memoryview(b"".join(counted))
    if not kernels:
        return _by_record(view, start_offset)
    try:
        columns = load("columnar")
    except MissingExtra:
        return _by_record(view, start_offset)
    return Latest._make(columns.latest_rows(view, start_offset))


def _by_record(view: memoryview, start_offset: Offset) -> Latest:
    last: dict[bytes, Record] = {}
    for batch in iterate(view):
        if not batch.header.is_control:
            for record in decode(batch):
                if record.key is not None and record.offset >= start_offset:
                    last[record.key] = record
    rows = list(last.values())
    return Latest(
        list(last), [row.value for row in rows], [row.offset for row in rows], [row.timestamp for row in rows]
    )
