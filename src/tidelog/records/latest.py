"""The last record of each key in consecutive batches, for tables. Uses Arrow columns if they are installed (extra
`columnar`); otherwise goes record by record."""

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.errors import MissingExtra
from tidelog.model import Offset, TimestampMs
from tidelog.records.batch import ReadBuffer, iterate
from tidelog.records.compaction import Aborted, AbortedRanges
from tidelog.records.loading import load
from tidelog.records.record import Record, decode


class Latest(NamedTuple):
    """Columns of the same length; each key occurs once. A null value means that the key was deleted."""

    keys: list[bytes]
    values: list[bytes | None]
    offsets: list[Offset]
    timestamps: list[TimestampMs]


def latest_by_key(
    data: ReadBuffer, start_offset: Offset, aborted: Iterable[Aborted] = (), kernels: bool = True
) -> Latest:
    """The last record of each key among those from `start_offset` on; records without a key and records of aborted
    transactions are ignored. Without `kernels` it goes record by record, which avoids waiting for their
    compilation."""
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
