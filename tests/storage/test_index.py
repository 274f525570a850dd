"""The indexes: their bytes, their answers, and that reader and writer agree."""

import random
from struct import pack

import pytest

from tidelog.storage.local.index import (
    OffsetEntry,
    OffsetIndexReader,
    OffsetIndexWriter,
    TimeEntry,
    TimeIndexReader,
    TimeIndexWriter,
    WrongIndexError,
)


class Stored:
    """An index file."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def size(self) -> int:
        return len(self.content)

    def pread(self, size: int, position: int) -> bytes:
        return self.content[position : position + size]


def test_an_offset_entry_is_two_big_endian_numbers_as_in_kafka() -> None:
    index = OffsetIndexWriter()
    index.append(1, 4096)
    index.append(0x01020304, 0x7FFFFFFF)
    assert index.stored() == pack(">II", 1, 4096) + pack(">II", 0x01020304, 0x7FFFFFFF)
    assert index.stored(1) == pack(">II", 0x01020304, 0x7FFFFFFF)


def test_a_time_entry_is_a_timestamp_and_an_offset_as_in_kafka() -> None:
    index = TimeIndexWriter()
    index.append(1_700_000_000_123, 77)
    assert index.stored() == pack(">qI", 1_700_000_000_123, 77)


@pytest.mark.parametrize("entries", [0, 1, 2, 63, 64, 65, 127, 128, 129, 1000])
def test_reader_and_writer_find_the_same_entries(entries: int) -> None:
    rng = random.Random(entries)
    writer = OffsetIndexWriter()
    rows: list[OffsetEntry] = []
    offset = position = 0
    for _ in range(entries):
        offset += rng.randint(1, 50)
        position += rng.randint(1, 9000)
        writer.append(offset, position)
        rows.append(OffsetEntry(offset, position))
    reader = OffsetIndexReader(Stored(writer.stored()))
    assert len(writer) == entries
    for wanted in {0, 1, offset, offset + 1, *(rng.randint(0, offset + 5) for _ in range(200))}:
        expected = next((row[0] << 32 | row[1] for row in reversed(rows) if row.relative_offset <= wanted), -1)
        assert reader.at_or_before(wanted) == writer.at_or_before(wanted) == expected
    for wanted in {0, 1, position, position + 1, *(rng.randint(0, position + 5) for _ in range(200))}:
        expected_position = next((row.position for row in reversed(rows) if row.position <= wanted), 0)
        assert reader.boundary_at_or_before(wanted) == expected_position
        assert writer.boundary_at_or_before(wanted) == expected_position


def test_time_look_ups_give_an_offset_before_which_everything_is_older() -> None:
    writer = TimeIndexWriter()
    for timestamp, offset in ((100, 5), (200, 9), (300, 20)):
        writer.append(timestamp, offset)
    reader = TimeIndexReader(Stored(writer.stored()))
    for wanted, expected in ((50, 0), (100, 0), (101, 5), (200, 5), (201, 9), (300, 9), (301, 20), (999, 20)):
        assert writer.before(wanted) == reader.before(wanted) == expected
    assert reader.last() == writer.last() == TimeEntry(300, 20)


def test_the_time_index_only_takes_timestamps_that_grow() -> None:
    index = TimeIndexWriter()
    for timestamp, offset in ((100, 1), (100, 2), (90, 3), (101, 4), (-1, 5)):
        index.append(timestamp, offset)
    assert [index.entry(number) for number in range(len(index))] == [TimeEntry(100, 1), TimeEntry(101, 4)]


def test_empty_indexes_find_nothing() -> None:
    assert OffsetIndexReader(Stored(b"")).at_or_before(9) == -1
    assert OffsetIndexReader(Stored(b"")).boundary_at_or_before(9) == 0
    assert TimeIndexReader(Stored(b"")).last() is None
    assert TimeIndexReader(Stored(b"")).before(9) == 0


def test_a_file_that_became_shorter_is_noticed() -> None:
    offsets, times = OffsetIndexWriter(), TimeIndexWriter()
    for number in range(1, 200):
        offsets.append(number, number)
        times.append(number, number)
    stored = Stored(offsets.stored())
    reader = OffsetIndexReader(stored)
    stored.content = stored.content[:800]
    assert reader.at_or_before(10) == 10 << 32 | 10
    with pytest.raises(WrongIndexError):
        reader.at_or_before(190)
    stored = Stored(times.stored())
    time_reader = TimeIndexReader(stored)
    stored.content = stored.content[:800]
    with pytest.raises(WrongIndexError):
        time_reader.last()
