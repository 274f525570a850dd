"""Columns: the same as the slow path on everything, good or bad, and back again."""

import mmap
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import CorruptBatch, InvalidInput, InvalidRecord, InvalidTimestamp, RecordTooLarge
from tidelog.model import ProducerEpoch, ProducerId, TimestampType
from tidelog.records.batch import CRC_START, HEADER, HEADER_SIZE, iterate, read_header, stamp_append_time
from tidelog.records.columnar import COLUMNS, ColumnEncoder, decode_columns, murmur2_partitions, schema
from tidelog.records.compression import Codec, compress
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder, Headers, build_batch, build_marker, decode

Content = tuple[int, bytes | None, bytes | None, Headers]
Row = tuple[int, int, int, bytes | None, bytes | None, Any]
INT64_MAX = 2**63 - 1
LARGEST_MS = INT64_MAX // 1000

fields = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), fields), max_size=3).map(tuple)
contents: st.SearchStrategy[Content] = st.tuples(st.integers(-(2**40), 2**41), fields, fields, headers)
codecs = st.sampled_from(list(Codec))


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches of all kinds one after another, as a log has them."""
    log, offset = b"", draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(1, 4))):
        builder = BatchBuilder(
            draw(codecs),
            base_offset=offset,
            timestamp_type=draw(st.sampled_from(TimestampType)),
            transactional=draw(st.booleans()),
            control=draw(st.booleans()),
        )
        for timestamp, key, value, named in draw(st.lists(contents, min_size=1, max_size=6)):
            builder.append(value, key=key, timestamp=timestamp, headers=named)
        log += builder.build()
        offset += len(builder) + draw(st.integers(0, 3))
    return log


def slow_rows(
    log: bytes | bytearray, start: int = -(2**63), end: int = INT64_MAX, *, control: bool = False
) -> list[Row]:
    rows: list[Row] = []
    for batch in iterate(log):
        if control or not batch.header.is_control:
            for record in decode(batch):
                timestamp_us = max(min(record.timestamp, LARGEST_MS), -LARGEST_MS) * 1000
                named = [{"key": name, "value": value} for name, value in record.headers] or None
                kind = batch.header.timestamp_type.value
                if start <= record.offset < end:
                    rows.append((record.offset, timestamp_us, kind, record.key, record.value, named))
    return rows


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    rows: list[Row] = []
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == schema()
        assert batch.num_rows > 0
        columns = (
            batch["offset"],
            batch["timestamp"].cast(pa.int64()),
            batch["timestampType"],
            batch["key"],
            batch["value"],
            batch["headers"],
        )
        rows += zip(*(column.to_pylist() for column in columns), strict=True)
    return rows


def log_of(*batches: Sequence[Content], codec: Codec = Codec.NONE, base_offset: int = 0) -> bytearray:
    log = bytearray()
    for records in batches:
        builder = BatchBuilder(codec, base_offset=base_offset)
        for timestamp, key, value, named in records:
            builder.append(value, key=key, timestamp=timestamp, headers=named)
        log += builder.build()
        base_offset += len(records)
    return log


def values(*contents: bytes | None) -> list[Content]:
    return [(1_000 + i, None, content, ()) for i, content in enumerate(contents)]


def with_crc(batch: bytes | bytearray) -> bytearray:
    """The batch, or what has become of it, with the CRC made right."""
    mended = bytearray(batch)
    struct.pack_into(">I", mended, 17, crc32c(memoryview(mended)[CRC_START:]))
    return mended


# Reading


@settings(max_examples=150)
@given(logs(), st.booleans(), st.integers(1, 8), st.sampled_from([1, 100, 1 << 20]))
def test_columns_hold_what_the_slow_path_reads(log: bytes, control: bool, max_rows: int, max_bytes: int) -> None:
    batches = decode_columns(log, include_control=control, max_rows=max_rows, max_bytes=max_bytes)
    assert rows_of(batches) == slow_rows(log, control=control)


@settings(max_examples=100)
@given(logs(), st.integers(-2, 30), st.integers(-2, 30))
def test_a_range_of_offsets_cuts_through_batches(log: bytes, first: int, last: int) -> None:
    base = read_header(log).base_offset
    start, end = base + first, base + last
    assert rows_of(decode_columns(log, start_offset=start, end_offset=end)) == slow_rows(log, start, end)


@settings(max_examples=50)
@given(logs(), st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True))
def test_any_columns_in_any_order_are_those_of_the_whole(log: bytes, columns: list[str]) -> None:
    whole = pa.Table.from_batches(decode_columns(log), schema())
    some = pa.Table.from_batches(decode_columns(log, columns=columns), schema(columns))
    assert some.equals(whole.select(columns))


def test_the_schema_is_that_of_sparks_kafka_source() -> None:
    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    expected = pa.schema(
        [
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("headers", pa.list_(pa.field("element", header))),
            pa.field("offset", pa.int64()),
            pa.field("timestamp", pa.timestamp("us", tz="UTC")),
            pa.field("timestampType", pa.int32()),
        ]
    )
    assert schema().equals(expected)
    assert schema(["value", "key"]).names == ["value", "key"]
    for wrong in (["topic"], ["key", "key"], []):
        with pytest.raises(InvalidInput, match="columns must be some of"):
            schema(wrong)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_batches_are_read_from_any_buffer_and_leave_it_free(kind: type[bytes]) -> None:
    log = kind(log_of(values(b"a", b"b"), values(b"c")))
    (batch,) = decode_columns(log)
    if isinstance(log, bytearray):
        log.clear()
    assert batch["value"].to_pylist() == [b"a", b"b", b"c"]


def test_batches_are_read_from_a_mapped_file() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(log_of(values(b"a", b"b"), values(b"c")))
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            (batch,) = decode_columns(memoryview(mapped))
            assert batch["value"].to_pylist() == [b"a", b"b", b"c"]


def test_nothing_gives_nothing() -> None:
    assert list(decode_columns(b"")) == []
    assert list(decode_columns(bytearray())) == []
    assert list(decode_columns(log_of(values(b"a")), start_offset=5)) == []
    assert list(decode_columns(log_of(values(b"a")), end_offset=0)) == []


def test_arrow_batches_end_with_record_batches_and_stay_within_their_bounds() -> None:
    log = log_of(*[values(*[b"x" * 10] * 4)] * 10)
    assert [b.num_rows for b in decode_columns(log, max_rows=10)] == [8] * 5
    assert [b.num_rows for b in decode_columns(log, max_rows=3)] == [3, 1] * 10
    assert [b.num_rows for b in decode_columns(log, max_rows=40)] == [40]
    payload = read_header(log).size - HEADER_SIZE
    assert [b.num_rows for b in decode_columns(log, max_bytes=3 * payload)] == [12, 12, 12, 4]
    assert [b.num_rows for b in decode_columns(log, max_bytes=1)] == [4] * 10


@pytest.mark.parametrize("codec", list(Codec))
def test_the_bound_on_bytes_counts_what_is_decompressed(codec: Codec) -> None:
    log = log_of(*[values(bytes(10_000))] * 6, codec=codec)
    assert [b.num_rows for b in decode_columns(log, max_bytes=25_000)] == [2, 2, 2]


def test_bounds_that_admit_nothing_are_refused_at_once() -> None:
    for max_rows, max_bytes in ((0, 1), (1, 0)):
        with pytest.raises(InvalidInput, match="cannot hold a record"):
            decode_columns(b"", max_rows=max_rows, max_bytes=max_bytes)


def test_control_batches_are_left_out_unless_asked_for() -> None:
    marker = build_marker(
        committed=True, producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), coordinator_epoch=0, timestamp=5
    )
    struct.pack_into(">q", marker, 0, 1)
    log = log_of(values(b"a")) + marker
    assert [row[0] for row in rows_of(decode_columns(log))] == [0]
    assert [row[0] for row in rows_of(decode_columns(log, include_control=True))] == [0, 1]
    log[-1] ^= 1
    with pytest.raises(CorruptBatch, match="CRC mismatch"):
        list(decode_columns(log))


def test_append_time_is_given_to_every_record() -> None:
    log = log_of(values(b"a", b"b"))
    stamp_append_time(log, 0, read_header(log), 1_700_000_000_123)
    (batch,) = decode_columns(log)
    assert batch["timestamp"].to_pylist() == [datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)] * 2
    assert batch["timestampType"].to_pylist() == [1, 1]


def test_a_timestamp_that_microseconds_cannot_hold_is_clamped() -> None:
    times = [0, INT64_MAX, LARGEST_MS, LARGEST_MS + 1, -1, -LARGEST_MS, -LARGEST_MS - 1]
    (batch,) = decode_columns(build_batch([(time, None, None, ()) for time in times]))
    largest = LARGEST_MS * 1000
    expected = [0, largest, largest, largest, -1000, -largest, -largest]
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == expected


def test_a_batch_from_which_compaction_took_records_is_read() -> None:
    batch = bytearray(log_of(values(b"a", b"b", b"c")))
    struct.pack_into(">i", batch, 23, 100)
    emptied = with_crc(HEADER.pack(50, 49, 0, 2, 0, 0, 9, 0, 0, -1, -1, -1, 0))
    log = with_crc(batch) + emptied
    assert [row[0] for row in rows_of(decode_columns(log))] == [0, 1, 2]


def test_reading_ends_at_the_end_offset_whatever_stands_behind() -> None:
    log = log_of(values(b"a", b"b"), values(b"c"), values(b"d"))
    last = len(log) - 1
    log[last] ^= 1
    assert [row[0] for row in rows_of(decode_columns(log, end_offset=3))] == [0, 1, 2]
    with pytest.raises(CorruptBatch):
        list(decode_columns(log, end_offset=4))


def test_what_stands_before_a_bad_batch_is_given_first() -> None:
    good, bad = log_of(values(b"good")), log_of(values(b"bad"))
    bad[16] = 1
    batches = decode_columns(good + bad)
    assert next(batches)["value"].to_pylist() == [b"good"]
    with pytest.raises(CorruptBatch, match=f"magic 2 .* position {len(good)}"):
        next(batches)


def test_the_crc_is_checked_unless_told_otherwise() -> None:
    log = log_of(values(b"a", b"b"))
    log[-2] ^= 1
    with pytest.raises(CorruptBatch, match="CRC mismatch at position 0"):
        list(decode_columns(log))
    assert [batch.num_rows for batch in decode_columns(log, verify_crc=False)] == [2]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_limit_bounds_what_a_batch_expands_to(codec: Codec) -> None:
    log = log_of(values(bytes(100_000)), codec=codec)
    assert len(list(decode_columns(log, limit=101_000))) == 1
    with pytest.raises(CorruptBatch, match="limit of 99999 bytes"):
        list(decode_columns(log, limit=99_999))


def test_a_batch_truncated_at_any_length_is_refused() -> None:
    log = log_of(values(b"a", b"b"))
    for size in range(1, len(log)):
        with pytest.raises(CorruptBatch):
            list(decode_columns(log[:size]))
        with pytest.raises(CorruptBatch):
            list(decode_columns(log + log[:size]))


@pytest.mark.parametrize("count", [3, 1_000, 2**31 - 1])
@pytest.mark.parametrize("codec", list(Codec))
def test_a_false_count_is_refused_before_anything_is_allocated(count: int, codec: Codec) -> None:
    log = log_of(values(b"a", b"b"), codec=codec)
    struct.pack_into(">i", log, 23, count - 1)
    struct.pack_into(">i", log, 57, count)
    with pytest.raises(CorruptBatch):
        list(decode_columns(with_crc(log)))


def test_offsets_that_do_not_fit_in_64_bits_are_refused() -> None:
    log = log_of(values(b"a", b"b"), base_offset=INT64_MAX - 2)
    assert [row[0] for row in rows_of(decode_columns(log))] == [INT64_MAX - 2, INT64_MAX - 1]
    with pytest.raises(CorruptBatch, match="64 bits"):
        list(decode_columns(log_of(values(b"a", b"b"), base_offset=INT64_MAX - 1)))


def outcome(read: Any) -> Any:
    try:
        return read()
    except CorruptBatch:
        return CorruptBatch


def agree(log: bytes | bytearray) -> None:
    """Accepted by both paths with the same content, or refused by both, whichever columns are asked for."""
    slow = outcome(lambda: slow_rows(log, control=True))
    assert outcome(lambda: rows_of(decode_columns(log, include_control=True))) == slow
    offsets = outcome(lambda: [b["offset"].to_pylist() for b in decode_columns(log, columns=["offset"])])
    assert (offsets is CorruptBatch) == (slow is CorruptBatch) or read_header(log).is_control


damages = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=3)


@settings(max_examples=500)
@given(st.lists(contents, min_size=1, max_size=4), damages, st.integers(0, 3), st.booleans())
def test_damaged_records_are_refused_and_accepted_as_by_the_slow_path(
    records: list[Content], damage: list[tuple[int, int]], cut: int, with_headers: bool
) -> None:
    if with_headers:
        records = [(*record[:3], (("näme", b"v"), ("☃", None))) for record in records]
    batch = build_batch(records)
    first = HEADER_SIZE if cut else CRC_START
    for position, byte in damage:
        batch[first + position % (len(batch) - first)] = byte
    agree(with_crc(batch))
    shorter = batch[: max(HEADER_SIZE, len(batch) - cut)]
    struct.pack_into(">i", shorter, 8, len(shorter) - 12)
    agree(with_crc(shorter))


@settings(max_examples=400)
@given(st.binary(max_size=60), st.integers(0, 4), st.integers(0, 5))
def test_garbage_is_refused_and_accepted_as_by_the_slow_path(garbage: bytes, count: int, last_delta: int) -> None:
    header = HEADER.pack(0, 49 + len(garbage), 0, 2, 0, 0, last_delta, 0, 0, -1, -1, -1, count)
    agree(with_crc(header + garbage))


@settings(max_examples=150)
@given(st.sampled_from(list(Codec)[1:]), st.binary(max_size=40), st.integers(0, 2))
def test_garbage_in_compressed_batches_is_treated_as_by_the_slow_path(
    codec: Codec, garbage: bytes, count: int
) -> None:
    for payload in (garbage, bytes(compress(codec, garbage))):
        header = HEADER.pack(0, 49 + len(payload), 0, 2, 0, codec, 3, 0, 0, -1, -1, -1, count)
        agree(with_crc(header + payload))


@settings(max_examples=200)
@given(st.binary(max_size=150))
def test_no_bytes_make_anything_but_columns_or_corrupt_batch(data: bytes) -> None:
    agree(data)
    agree(bytes(log_of(values(b"a"))) + data)


NEARLY_TEXT = st.lists(
    st.sampled_from(
        [b"a", b"\x7f", "é".encode(), "☃".encode(), "𝄞".encode(), "\uffff".encode(), "\U0010ffff".encode()]
    )
    | st.sampled_from([b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xed\xa0\x80"])
    | st.sampled_from(
        [b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\xe2\x98", b"\xf0\x9d"]
    )
    | st.binary(min_size=1, max_size=4),
    max_size=4,
).map(b"".join)


@settings(max_examples=400)
@given(NEARLY_TEXT)
def test_header_keys_are_utf8_exactly_when_python_says_so(name: bytes) -> None:
    body = b"\0\0\0\1\1" + b"\x02" + bytes([len(name) * 2]) + name + b"\1"
    payload = bytes([len(body) * 2]) + body
    header = HEADER.pack(0, 49 + len(payload), 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    batch = with_crc(header + payload)
    agree(batch)
    assert (outcome(lambda: slow_rows(batch)) is CorruptBatch) == (name.decode("utf8", "replace").encode() != name)


def test_without_the_extra_the_error_says_what_to_install() -> None:
    program = """if True:
        import sys
        sys.modules["numba"] = None
        from tidelog.errors import TidelogError
        try:
            import tidelog.records.columnar
        except TidelogError as error:
            print(error)
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 'pip install "tidelog[columnar]"' in run.stdout


# Writing


def arrow(records: Sequence[Content]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": pa.array([key for _, key, _, _ in records], pa.binary()),
            "value": pa.array([value for _, _, value, _ in records], pa.binary()),
            "headers": pa.array(
                [[{"key": k, "value": v} for k, v in named] or None for _, _, _, named in records],
                schema().field("headers").type,
            ),
            "timestamp": pa.array([time * 1000 for time, _, _, _ in records], pa.timestamp("us", tz="UTC")),
        }
    )


def records_in(batches: Iterator[bytearray]) -> list[Content]:
    return [
        (record.timestamp, record.key, record.value, tuple(record.headers))
        for batch in batches
        for view in iterate(batch)
        for record in decode(view)
    ]


@settings(max_examples=100)
@given(st.lists(contents, min_size=1, max_size=12), codecs, st.data())
def test_rows_become_the_batches_that_the_slow_path_builds(
    records: list[Content], codec: Codec, data: st.DataObject
) -> None:
    encoder = ColumnEncoder(arrow(records), now_ms=0)
    assert list(encoder.batches(codec=codec)) == [build_batch(records, codec)]
    rows = data.draw(st.lists(st.integers(0, len(records) - 1), min_size=1))
    assert list(encoder.batches(np.array(rows), codec=codec)) == [build_batch([records[row] for row in rows], codec)]


@settings(max_examples=50)
@given(st.lists(contents, max_size=12), st.integers(0, 12), st.integers(1, 5), st.integers(600, 2000))
def test_sliced_columns_come_back_from_bounded_batches(
    records: list[Content], start: int, max_records: int, max_bytes: int
) -> None:
    encoder = ColumnEncoder(arrow(records).slice(start), now_ms=0)
    batches = list(encoder.batches(max_records=max_records, max_bytes=max_bytes))
    assert records_in(iter(batches)) == records[start:]
    for batch in batches:
        assert len(batch) <= max_bytes
        assert read_header(batch).record_count <= max_records


@settings(max_examples=50)
@given(logs())
def test_decoded_columns_can_be_encoded_again(log: bytes) -> None:
    for columns in decode_columns(log):
        (again,) = decode_columns(b"".join(ColumnEncoder(columns, now_ms=0).batches()))
        assert again.select(["key", "value", "headers", "timestamp"]).equals(
            columns.select(["key", "value", "headers", "timestamp"])
        )


def test_sequence_numbers_run_on_and_wrap() -> None:
    encoder = ColumnEncoder(arrow(values(*[b"x"] * 7)), now_ms=0)
    batches = encoder.batches(
        max_records=3,
        codec=Codec.GZIP,
        producer_id=ProducerId(5),
        producer_epoch=ProducerEpoch(6),
        base_sequence=2**31 - 4,
        transactional=True,
    )
    headers = [read_header(batch) for batch in batches]
    assert [header.base_sequence for header in headers] == [2**31 - 4, 2**31 - 1, 2]
    assert [header.last_sequence for header in headers] == [2**31 - 2, 1, 2]
    assert all((h.producer_id, h.producer_epoch, h.is_transactional, h.codec_id) == (5, 6, True, 1) for h in headers)
    assert [read_header(b).base_sequence for b in encoder.batches(max_records=4)] == [-1, -1]


def test_a_batch_is_filled_up_to_its_last_byte() -> None:
    one, two = (len(build_batch(values(*[b"x" * 10] * count))) for count in (1, 2))
    encoder = ColumnEncoder(arrow(values(*[b"x" * 10] * 4)), now_ms=0)
    for max_bytes, counts in ((two, [2, 2]), (two - 1, [1] * 4), (one, [1] * 4)):
        assert [read_header(batch).record_count for batch in encoder.batches(max_bytes=max_bytes)] == counts
    with pytest.raises(RecordTooLarge, match="row 0: the record is larger than a batch may be"):
        list(encoder.batches(max_bytes=one - 1))


def test_a_record_that_does_not_fit_is_named_by_its_row() -> None:
    encoder = ColumnEncoder(arrow(values(b"a", b"b" * 1000, b"c")), now_ms=0)
    batches = encoder.batches(np.array([2, 0, 1]), max_bytes=500)
    assert records_in(iter([next(batches)])) == [(1002, None, b"c", ()), (1000, None, b"a", ())]
    with pytest.raises(RecordTooLarge, match="row 1:"):
        next(batches)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([0, 1_999, None, -1], pa.timestamp("us", tz="UTC")), [0, 1, 77, -1]),
        (pa.array([0, 1_999, None, -1], pa.timestamp("us")), [0, 1, 77, -1]),
        (pa.array([0, 1_999, None, -1], pa.timestamp("ms", tz="UTC")), [0, 1_999, 77, -1]),
        (pa.array([0, 1, None, -1], pa.timestamp("s")), [0, 1_000, 77, -1_000]),
        (pa.array([0, 1_999_999, None, -1_000_000], pa.timestamp("ns")), [0, 1, 77, -1]),
        (pa.array([0, 1_999, None, -1], pa.int64()), [0, 1_999, 77, -1]),
    ],
)
def test_timestamps_of_any_unit_become_milliseconds_and_nulls_become_now(
    column: pa.Array, expected: list[int]
) -> None:
    batches = ColumnEncoder(pa.record_batch({"timestamp": column}), now_ms=77).batches()
    assert [record[0] for record in records_in(batches)] == expected


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.string_view(), pa.binary_view()]
)
def test_keys_and_values_may_be_any_string_or_binary_type(kind: pa.DataType) -> None:
    texts = pa.array(["ä", None, ""]).cast(kind)
    batches = ColumnEncoder(pa.record_batch({"key": texts, "value": texts, "other": texts}), now_ms=1).batches()
    encoded = ["ä".encode(), None, b""]
    assert records_in(batches) == [(1, content, content, ()) for content in encoded]


def test_columns_without_rows_give_no_batches() -> None:
    assert list(ColumnEncoder(arrow([]), now_ms=0).batches()) == []
    assert list(ColumnEncoder(arrow(values(b"a")), now_ms=0).batches(np.array([], np.int64))) == []


def test_what_cannot_be_encoded_is_refused() -> None:
    encoder = ColumnEncoder(arrow(values(b"a", b"b")), now_ms=0)
    for rows in ([2], [-1], [0, 1, 2**40]):
        with pytest.raises(InvalidInput, match="rows must be 0 to 1"):
            encoder.batches(np.array(rows))
    for max_records, max_bytes in ((0, 1000), (1, HEADER_SIZE)):
        with pytest.raises(InvalidInput, match="cannot hold a record"):
            encoder.batches(max_records=max_records, max_bytes=max_bytes)
    with pytest.raises(InvalidInput, match="timestamp column"):
        ColumnEncoder(pa.record_batch({"timestamp": pa.array(["now"])}), now_ms=0)
    for wrong in (pa.array(["h"]), pa.array([["h"]]), pa.array([[{"name": "h", "value": b"x"}]])):
        with pytest.raises(InvalidInput, match="headers column"):
            ColumnEncoder(pa.record_batch({"headers": wrong}), now_ms=0)
    with pytest.raises(InvalidTimestamp, match="further apart"):
        ColumnEncoder(pa.record_batch({"timestamp": pa.array([-INT64_MAX, INT64_MAX])}), now_ms=0)
    keyless = pa.array([None, [{"key": None, "value": b"x"}]], schema().field("headers").type)
    with pytest.raises(InvalidRecord, match="row 1: the record has a header without a key"):
        list(ColumnEncoder(pa.record_batch({"headers": keyless}), now_ms=0).batches())


# Partitions: the vectors are those of Kafka's own UtilsTest.testMurmur2.


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_keys_go_where_the_java_client_sends_them(key: str, hashed: int) -> None:
    positive = hashed & 0x7FFF_FFFF
    for count in (1, 2, 3, 7, 1000, 2**31 - 1):
        assert murmur2_partitions(pa.array([key]), count).tolist() == [positive % count]


def test_null_keys_have_no_partition_and_slices_are_respected() -> None:
    keys = pa.array([b"x", b"abc", None, b"", b"21"])
    whole = murmur2_partitions(keys, 10)
    assert whole.dtype == np.int32
    assert whole[2] == -1
    assert whole[1] == 479470107 % 10
    assert murmur2_partitions(keys.slice(1, 3), 10).tolist() == whole[1:4].tolist()
    assert murmur2_partitions(pa.array([], pa.binary()), 10).tolist() == []
    with pytest.raises(InvalidInput, match="no partitions"):
        murmur2_partitions(keys, 0)
