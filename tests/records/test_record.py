"""Single records: built, read back, read by another implementation, and refused when they lie."""

import struct
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import CorruptBatch, InvalidRecord
from tidelog.model import LeaderEpoch, ProducerEpoch, ProducerId, TimestampType
from tidelog.records.batch import CRC_START, HEADER, BatchView, iterate
from tidelog.records.compression import Codec
from tidelog.records.crc import crc32c
from tidelog.records.record import (
    ABORT_MARKER,
    COMMIT_MARKER,
    BatchBuilder,
    Headers,
    Record,
    build_batch,
    build_marker,
    decode,
    read_marker,
)

with warnings.catch_warnings():  # importing kafka-python reads its files in a way that Python will give up
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import (  # type: ignore[import-untyped]
        DefaultRecordBatch,
        DefaultRecordBatchBuilder,
    )

INT64_MAX = 2**63 - 1
Content = tuple[int, bytes | None, bytes | None, Headers]

texts = st.text(max_size=8)
fields = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(texts, fields), max_size=3).map(tuple)
timestamps = st.integers(-(2**40), 2**41)
contents: st.SearchStrategy[Content] = st.tuples(timestamps, fields, fields, headers)


def only(buffer: bytes | bytearray) -> BatchView:
    (view,) = iterate(buffer)
    return view


def raw(payload: bytes, count: int = 1, last_delta: int | None = None, **changes: int) -> BatchView:
    """A batch around bytes that need not be records; the CRC is right."""
    named = {"base_offset": 0, "attributes": 0, "base_timestamp": 0, "max_timestamp": 0} | changes
    batch = bytearray(
        HEADER.pack(
            named["base_offset"],
            49 + len(payload),
            -1,
            2,
            0,
            named["attributes"],
            count - 1 if last_delta is None else last_delta,
            named["base_timestamp"],
            named["max_timestamp"],
            -1,
            -1,
            -1,
            count,
        )
        + payload
    )
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[CRC_START:]))
    return only(batch)


def varint(value: int) -> bytes:
    """Written down once more, so that the tests do not trust the code they test."""
    unsigned = value * 2 if value >= 0 else -value * 2 - 1
    out = b""
    while unsigned >= 128:
        out += bytes([unsigned % 128 + 128])
        unsigned //= 128
    return out + bytes([unsigned])


def framed(body: bytes) -> bytes:
    return varint(len(body)) + body


def body(
    timestamp_delta: int = 0, offset_delta: int = 0, key: bytes = b"\x01", value: bytes = b"\x01", rest: bytes = b"\0"
) -> bytes:
    return b"\0" + varint(timestamp_delta) + varint(offset_delta) + key + value + rest


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    "record",
    [
        (5, b"key", b"value", ()),
        (5, None, None, ()),
        (5, b"", b"", ()),
        (5, None, b"value", (("name", b"content"),)),
        (5, b"key", None, (("name", None), ("", b""), ("name", b"again"))),
        (5, b"k", b"v", (("naïve ☃ 𝄞", "größe".encode()),)),
        (-1, b"k" * 64, b"v" * 8192, ()),
        (2**62, b"k" * 63, b"v" * 100_000, ()),
    ],
    ids=["plain", "nulls", "empty", "header", "null and repeated headers", "unicode", "no timestamp", "large"],
)
def test_a_record_comes_back_as_it_was_built(record: Content, codec: Codec) -> None:
    timestamp, key, value, named = record
    (decoded,) = decode(only(build_batch([record], codec)))
    assert decoded == Record(0, timestamp, key, value, decoded.headers)
    assert tuple(decoded.headers) == named


def test_offsets_count_from_the_base_offset() -> None:
    builder = BatchBuilder(base_offset=2**40)
    for i in range(200):
        builder.append(b"%d" % i, timestamp=i)
    assert len(builder) == 200
    assert [record.offset for record in decode(only(builder.build()))] == list(range(2**40, 2**40 + 200))


def test_timestamps_may_go_back_and_the_header_has_the_first_and_the_largest() -> None:
    times = [1_000, 2_000, -5, 1_500, -(2**50), 999]
    view = only(build_batch([(time, None, b"", ()) for time in times]))
    assert [record.timestamp for record in decode(view)] == times
    assert (view.header.base_timestamp, view.header.max_timestamp) == (1_000, 2_000)


@pytest.mark.parametrize("bits", range(1, 64))
def test_varints_at_all_boundaries(bits: int) -> None:
    for delta in (2**bits - 1, -(2**bits) + 1, -(2**bits), 2 ** (bits - 1), -(2 ** (bits - 1)) - 1):
        if not -(2**63) < delta < 2**63:
            continue
        batch = build_batch([(0, None, None, ()), (delta, None, None, ())])
        assert batch.endswith(framed(body(delta, 1)))
        assert decode(only(batch))[1].timestamp == delta


def test_the_size_of_a_builder_is_the_size_of_its_batch() -> None:
    builder = BatchBuilder()
    for i in range(50):
        builder.append(b"v" * i, key=b"k" * i, timestamp=i, headers=[("h", b"x" * i)])
        assert builder.size == len(builder.build())


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(InvalidRecord, match="at least one record"):
        BatchBuilder().build()


def test_what_the_builder_is_told_stands_in_the_header() -> None:
    builder = BatchBuilder(
        Codec.ZSTD,
        base_offset=10,
        leader_epoch=LeaderEpoch(2),
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        producer_id=ProducerId(3),
        producer_epoch=ProducerEpoch(4),
        base_sequence=5,
        transactional=True,
    )
    builder.append(b"a", timestamp=1)
    builder.append(b"b", timestamp=9)
    view = only(builder.build())
    header = view.header
    assert (header.base_offset, header.leader_epoch, header.last_offset) == (10, 2, 11)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (3, 4, 5, 6)
    assert header.codec_id == Codec.ZSTD
    assert header.is_transactional
    assert not header.is_control
    assert [record.timestamp for record in decode(view)] == [9, 9]


@pytest.mark.parametrize(
    ("committed", "kind", "name"), [(True, COMMIT_MARKER, "commit"), (False, ABORT_MARKER, "abort")]
)
def test_a_marker_ends_a_transaction(committed: bool, kind: int, name: str) -> None:
    batch = build_marker(
        committed=committed,
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(8),
        coordinator_epoch=9,
        timestamp=10,
    )
    view = only(batch)
    assert view.header.is_control
    assert view.header.is_transactional
    assert (view.header.producer_id, view.header.producer_epoch) == (7, 8)
    marker = read_marker(view)
    assert (marker.version, marker.type, marker.coordinator_epoch, marker.name) == (0, kind, 9, name)


@pytest.mark.parametrize(
    "records",
    [
        [],
        [(0, b"\0\0\0", b"\0\0\0\0\0\0", ())],
        [(0, b"\0\0\0\1", b"\0\0\0\0\0", ())],
        [(0, None, None, ())],
        [(0, b"\0\0\0\1", b"\0\0\0\0\0\0", ())] * 2,
    ],
    ids=["no record", "short key", "short value", "nulls", "two records"],
)
def test_a_control_batch_that_is_no_marker_is_refused(records: list[Content]) -> None:
    view = only(build_batch(records)) if records else raw(b"", count=0, last_delta=0)
    with pytest.raises(CorruptBatch, match="control"):
        read_marker(view)


def test_an_unknown_control_type_is_named_by_its_number() -> None:
    view = only(build_batch([(0, struct.pack(">hh", 0, 5), struct.pack(">hi", 0, 1), ())]))
    assert read_marker(view).name == "control type 5"


def test_a_batch_from_which_compaction_took_records_is_read() -> None:
    view = raw(framed(body(offset_delta=2)) + framed(body(offset_delta=7)), 2, 9, base_offset=100)
    assert [record.offset for record in decode(view)] == [102, 107]
    assert decode(raw(b"", count=0, last_delta=9)) == []


VARINT_OF_2_64 = b"\x80" * 9 + b"\x02"
VARINT_OF_11_BYTES = b"\x80" * 10 + b"\x00"


@pytest.mark.parametrize(
    ("payload", "count", "last_delta"),
    [
        (b"", 1, 0),
        (b"\0", 1, 0),
        (framed(body())[:-1], 1, 0),
        (framed(body()) + b"\0", 1, 0),
        (framed(body()) * 2, 1, 0),
        (framed(body()), 2, 1),
        (framed(body()), 0, 0),
        (framed(body()), 2**31 - 1, 2**31 - 2),
        (framed(body() + b"\0"), 1, 0),
        (varint(-1) + body(), 1, 0),
        (varint(6) + body()[:-1], 1, 0),
        (varint(2**31) + body(), 1, 0),
        (varint(2**62) + body(), 1, 0),
        (framed(body(key=varint(-2))), 1, 0),
        (framed(body(key=varint(5) + b"abcd")), 1, 0),
        (framed(body(key=varint(2**63 - 1))), 1, 0),
        (framed(body(value=varint(-2))), 1, 0),
        (framed(body(value=varint(1))), 1, 0),
        (framed(body(value=varint(2**62))), 1, 0),
        (framed(body(rest=varint(-1))), 1, 0),
        (framed(body(rest=varint(1))), 1, 0),
        (framed(body(rest=varint(2**31 - 1) + b"\0\0")), 1, 0),
        (framed(body(rest=varint(1) + b"\x01\x00")), 1, 0),
        (framed(body(rest=varint(1) + varint(1) + b"k" + varint(-2))), 1, 0),
        (framed(body(rest=varint(1) + varint(1) + b"\xff" + varint(-1))), 1, 0),
        (framed(body(rest=varint(1) + varint(3) + "\ud800".encode("utf8", "surrogatepass") + varint(-1))), 1, 0),
        (framed(body(rest=varint(1) + varint(2) + b"\xc0\x80" + varint(-1))), 1, 0),
        (framed(body(offset_delta=1)), 1, 0),
        (framed(body(offset_delta=-1)), 1, 0),
        (framed(body(offset_delta=0)) * 2, 2, 1),
        (framed(body(offset_delta=1)) + framed(body(offset_delta=0)), 2, 1),
        (framed(b"\0" + VARINT_OF_2_64 + b"\0\1\1\0"), 1, 0),
        (framed(b"\0" + VARINT_OF_11_BYTES + b"\0\1\1\0"), 1, 0),
        (framed(b"\0" + b"\xff" * 5), 1, 0),
        (framed(b""), 1, 0),
        (varint(0) + b"\0" * 6, 1, 0),
    ],
)
def test_records_that_lie_about_themselves_are_refused(payload: bytes, count: int, last_delta: int) -> None:
    with pytest.raises(CorruptBatch):
        decode(raw(payload, count, last_delta))


def test_records_truncated_at_any_length_are_refused() -> None:
    payload = bytes(only(build_batch([(i, b"key", b"value" * 30, [("h", b"x")]) for i in range(3)])).payload)
    for size in range(len(payload)):
        with pytest.raises(CorruptBatch):
            decode(raw(payload[:size], 3))


def test_varints_may_be_longer_than_they_need_to_be() -> None:
    (record,) = decode(raw(framed(b"\0" + b"\x84\x80\x00" + b"\x80\x00" + b"\x81\x00" + b"\x80\x00" + b"\x80\x00")))
    assert record == Record(0, 2, None, b"", ())


def test_sums_that_do_not_fit_in_64_bits_are_refused() -> None:
    assert decode(raw(framed(body(1)), base_timestamp=INT64_MAX - 1))[0].timestamp == INT64_MAX
    assert decode(raw(framed(body(0)), base_offset=INT64_MAX - 1))[0].offset == INT64_MAX - 1
    for view in (
        raw(framed(body(1)), base_timestamp=INT64_MAX),
        raw(framed(body(-1)), base_timestamp=-INT64_MAX - 1),
        raw(framed(body()), base_offset=INT64_MAX),
        raw(framed(body()), base_offset=INT64_MAX - 5, last_delta=5),
    ):
        with pytest.raises(CorruptBatch, match="64 bits"):
            decode(view)


def test_a_batch_that_expands_over_the_limit_is_refused() -> None:
    view = only(build_batch([(0, None, bytes(100_000), ())], Codec.ZSTD))
    assert len(decode(view, limit=101_000)) == 1
    with pytest.raises(CorruptBatch, match="limit of 99999 bytes"):
        decode(view, limit=99_999)


@settings(max_examples=100)
@given(st.lists(contents, min_size=1, max_size=20), st.sampled_from(list(Codec)))
def test_any_records_come_back(records: list[Content], codec: Codec) -> None:
    decoded = decode(only(build_batch(records, codec)))
    assert [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in decoded] == records
    assert [r.offset for r in decoded] == list(range(len(records)))


@settings(max_examples=300)
@given(st.binary(max_size=120), st.integers(0, 6))
def test_garbage_gives_records_or_corrupt_batch_and_never_anything_else(payload: bytes, count: int) -> None:
    try:
        assert len(decode(raw(payload, count, last_delta=9))) == count
    except CorruptBatch:
        pass


ORACLE_CODECS = [Codec.NONE, Codec.GZIP]  # those that kafka-python has without further packages


def oracle_records(batch: bytes | bytearray) -> list[tuple[Any, ...]]:
    parsed = DefaultRecordBatch(bytes(batch))
    assert parsed.validate_crc()
    return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in parsed]


@settings(max_examples=60)
@given(st.lists(contents, min_size=1, max_size=10), st.sampled_from(ORACLE_CODECS), st.integers(0, 2**40))
def test_kafka_python_reads_what_we_build(records: list[Content], codec: Codec, base_offset: int) -> None:
    builder = BatchBuilder(codec, base_offset=base_offset)
    for timestamp, key, value, named in records:
        builder.append(value, key=key, timestamp=timestamp, headers=named)
    batch = builder.build()
    ours = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in decode(only(batch))]
    assert oracle_records(batch) == ours


@settings(max_examples=60)
@given(st.lists(contents, min_size=1, max_size=10), st.sampled_from(ORACLE_CODECS))
def test_we_read_what_kafka_python_builds_and_build_the_same_bytes(records: list[Content], codec: Codec) -> None:
    theirs = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec.value,
        is_transactional=True,
        producer_id=3,
        producer_epoch=4,
        base_sequence=5,
        batch_size=1 << 20,
    )
    ours = BatchBuilder(
        codec,
        producer_id=ProducerId(3),
        producer_epoch=ProducerEpoch(4),
        base_sequence=5,
        transactional=True,
        leader_epoch=LeaderEpoch(0),  # kafka-python sets 0 where others set -1
    )
    for offset, (timestamp, key, value, named) in enumerate(records):
        assert theirs.append(offset, timestamp, key, value, list(named)) is not None
        ours.append(value, key=key, timestamp=timestamp, headers=named)
    batch = bytes(theirs.build())
    assert [(r.timestamp, r.key, r.value, tuple(r.headers)) for r in decode(only(batch))] == records
    if codec is Codec.NONE:
        assert batch == ours.build()
