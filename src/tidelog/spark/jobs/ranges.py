"""Which records a job reads, and reading them as Arrow columns."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tidelog.client import EARLIEST, LATEST, Client, FetchOptions
from tidelog.errors import InvalidInput, TidelogError
from tidelog.model import Offset, TopicPartition
from tidelog.records.batch import iterate

if TYPE_CHECKING:
    import pyarrow as pa

FETCH = FetchOptions(
    max_wait_ms=100, max_bytes=32 << 20, partition_max_bytes=8 << 20, read_committed=True, out_of_range="error"
)


class Range(NamedTuple):
    topic: str
    partition: int
    start: Offset
    end: Offset

    @property
    def size(self) -> int:
        return self.end - self.start


def ends(client: Client, topic: str, *, committed: bool = True) -> dict[int, tuple[Offset, Offset]]:
    """The start and end offset of each partition. `committed`: the end is the first open transaction; records after
    it can be read when it has ended."""
    partitions = [TopicPartition(topic, row.partition) for row in client.topic(topic).partitions]
    if not partitions:
        raise InvalidInput(f"{topic} has no partitions")
    first = client.offsets(dict.fromkeys(partitions, EARLIEST))
    last = client.offsets(dict.fromkeys(partitions, LATEST), read_committed=committed)
    return {p.partition: (first[p].offset, last[p].offset) for p in partitions}


def cut(whole: Range, size: int) -> Iterator[Range]:
    """Cut into pieces that end at multiples of `size`, so that a repeated cut gives the same pieces."""
    position = whole.start
    while position < whole.end:
        end = min(whole.end, (position // size + 1) * size)
        yield whole._replace(start=position, end=end)
        position = end


def count_records(client: Client, part: Range) -> int:
    """The number of committed records in the range. It is lower than the number of offsets, since markers of
    transactions have offsets, too. Taken from the headers of batches, so records that compaction removed from a batch
    are counted."""
    if part.size <= 0:
        return 0
    count = 0
    for chunk in client.read_range(part.topic, part.partition, part.start, part.end, fetch=FETCH):
        for batch in iterate(chunk.committed()):
            header = batch.header
            if not header.is_control:
                count += max(0, min(header.next_offset, part.end) - max(header.base_offset, part.start))
    return count


def read_columns(client: Client, part: Range, columns: Sequence[str]) -> "Iterator[pa.RecordBatch]":
    """The committed records of the range, in order."""
    from tidelog.records.columnar import decode_columns  # takes a second to load; an audit does not need it

    for chunk in client.read_range(part.topic, part.partition, part.start, part.end, fetch=FETCH):
        if chunk.next_offset == chunk.from_offset:
            if chunk.readable_end < part.end:
                raise TidelogError(
                    f"{part.topic}-{part.partition} ends at offset {chunk.readable_end}, "
                    f"but should be read up to {part.end}"
                )
            return
        yield from decode_columns(
            chunk.committed(), columns=columns, start_offset=part.start, end_offset=part.end, max_rows=1 << 20
        )
