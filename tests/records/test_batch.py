"""The batch as bytes: its header, its checks, and what a broker may write into it."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import CorruptBatch, InvalidRecord
from tidelog.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, LeaderEpoch, ProducerEpoch, ProducerId, TimestampType
from tidelog.records import batch as batch_module
from tidelog.records.batch import (
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_AT,
    LENGTH_END,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    assemble,
    check_crc,
    check_integrity,
    check_produced,
    header_struct,
    iterate,
    place,
    read_header,
    read_produced,
    reassemble,
    set_crc,
    size_at,
    stamp_append_time,
    whole_prefix,
)
from tidelog.records.compression import Codec
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder, build_batch, build_marker, decode


def batch_of(*values: bytes, timestamp: int = 1_000) -> bytearray:
    return build_batch([(timestamp + i, None, value, ()) for i, value in enumerate(values)])


def with_field(batch: bytearray, position: int, form: str, value: int) -> bytearray:
    """The batch with one header field overwritten and the CRC made right again."""
    changed = bytearray(batch)
    struct.pack_into(form, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[CRC_START:]))
    return changed


def check(batch: bytearray) -> BatchHeader:
    header = read_header(batch)
    check_integrity(memoryview(batch), 0, header)
    return header


def test_crc32c_is_castagnoli_and_can_be_continued() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(b"456789"), crc32c(b"123")) == 0xE3069283
    assert crc32c(b"") == 0


def test_a_batch_has_the_bytes_that_kafka_defines() -> None:
    batch = BatchBuilder(
        base_offset=7,
        leader_epoch=LeaderEpoch(3),
        producer_id=ProducerId(9),
        producer_epoch=ProducerEpoch(2),
        base_sequence=5,
    )
    batch.append(b"v", key=b"k", timestamp=1_000, headers=[("h", b"x")])
    expected = bytes.fromhex(
        "0000000000000007"  # base offset
        "0000003e"  # length
        "00000003"  # leader epoch
        "02"  # magic
        "00000000"  # CRC, set below
        "0000"  # attributes
        "00000000"  # last offset delta
        "00000000000003e8"  # base timestamp
        "00000000000003e8"  # max timestamp
        "0000000000000009"  # producer id
        "0002"  # producer epoch
        "00000005"  # base sequence
        "00000001"  # record count
        "18 00 00 00 02 6b 02 76 02 02 68 02 78"  # the record
    )
    built = batch.build()
    crc = struct.pack(">I", crc32c(expected[CRC_START:]))
    assert built == expected[:17] + crc + expected[21:]
    assert len(built) == batch.size


def test_every_header_field_is_read() -> None:
    fields = (11, 49, 12, 2, 0xFEDCBA98, 0b111_1100, 4, -5, 1_700_000_000_000, 2**40, 14, 2**31 - 3, 5)
    header = read_header(HEADER.pack(*fields))
    assert tuple(header) == fields
    assert header.size == HEADER_SIZE
    assert header.last_offset == 15
    assert header.next_offset == 16
    assert header.codec_id == Codec.ZSTD
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.is_transactional
    assert header.is_control
    assert header.has_delete_horizon
    assert header.has_producer
    assert header.last_sequence == 1  # wrapped


def test_a_batch_without_a_producer_has_no_sequence() -> None:
    header = read_header(batch_of(b"a", b"b"))
    assert not header.has_producer
    assert (header.producer_id, header.producer_epoch) == (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
    assert header.base_sequence == header.last_sequence == -1


def test_a_batch_truncated_at_any_length_is_refused() -> None:
    batch = batch_of(b"value")
    for size in range(len(batch)):
        with pytest.raises(CorruptBatch, match="truncated"):
            read_header(batch[:size])


@pytest.mark.parametrize(
    ("position", "form", "value", "message"),
    [
        (16, ">b", 0, "magic 0"),
        (16, ">b", 1, "magic 1"),
        (16, ">b", 3, "magic 3"),
        (16, ">b", -1, "magic -1"),
        (8, ">i", 48, "below the minimum"),
        (8, ">i", 0, "below the minimum"),
        (8, ">i", -1, "below the minimum"),
        (8, ">i", -(2**31), "below the minimum"),
        (8, ">i", 2**31 - 1, "truncated"),
        (23, ">i", -1, "last offset delta -1"),
        (23, ">i", -(2**31), "last offset delta"),
        (57, ">i", -1, "-1 records"),
        (57, ">i", 2, "2 records with last offset delta 0"),
        (57, ">i", 2**31 - 1, "records"),
        (21, ">h", 5, "unknown compression codec 5"),
        (21, ">h", 6, "unknown compression codec 6"),
        (21, ">h", 7, "unknown compression codec 7"),
    ],
)
def test_a_header_that_cannot_be_true_is_refused(position: int, form: str, value: int, message: str) -> None:
    with pytest.raises(CorruptBatch, match=message):
        check(with_field(batch_of(b"value"), position, form, value))


def test_a_batch_that_compaction_thinned_out_is_whole_but_may_not_be_produced() -> None:
    for count in (0, 1, 2):
        header = check(with_field(with_field(batch_of(b"a", b"b"), 23, ">i", 9), 57, ">i", count))
        with pytest.raises(InvalidRecord, match="last offset delta"):
            check_produced(header)


def test_any_flipped_bit_that_the_crc_covers_is_found() -> None:
    batch = batch_of(b"some value", b"another")
    for position in range(17, len(batch)):
        for bit in range(8):
            damaged = bytearray(batch)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptBatch, match="CRC mismatch"):
                check(damaged)


def test_base_offset_and_leader_epoch_stand_outside_the_crc() -> None:
    batch = batch_of(b"some value")
    for position in (*range(8), *range(12, 16)):
        for bit in range(8):
            changed = bytearray(batch)
            changed[position] ^= 1 << bit
            check(changed)


def test_a_flipped_bit_in_length_or_magic_is_found_by_their_own_checks_or_the_crc() -> None:
    batch = batch_of(b"some value") + bytes(100)  # so that a larger length stays inside the buffer
    check(batch)
    for position in (*range(8, 12), 16):
        for bit in range(8):
            damaged = bytearray(batch)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptBatch):
                check(damaged)


@pytest.mark.parametrize("base_offset", [0, 1, 2**31, 2**63 - 1])
@pytest.mark.parametrize("leader_epoch", [-1, 0, 2**31 - 1])
def test_placing_a_batch_changes_two_fields_and_keeps_the_crc(base_offset: int, leader_epoch: int) -> None:
    batch = bytearray(b"before") + batch_of(b"a", b"b")
    before = read_header(batch, 6)
    place(batch, 6, before, base_offset, LeaderEpoch(leader_epoch))
    after = read_header(batch, 6)
    assert after == before._replace(base_offset=base_offset, leader_epoch=LeaderEpoch(leader_epoch))
    check_integrity(memoryview(batch), 6, after)
    assert batch[:6] == b"before"


def test_stamping_the_append_time_gives_every_record_that_time() -> None:
    batch = bytearray(b"..") + batch_of(b"a", b"b", b"c")
    header = stamp_append_time(batch, 2, read_header(batch, 2), 77_000)
    assert header == read_header(batch, 2)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.attributes & TIMESTAMP_TYPE_BIT
    assert header.max_timestamp == 77_000
    assert header.base_timestamp == 1_000
    (view,) = iterate(memoryview(batch)[2:])
    assert [record.timestamp for record in decode(view)] == [77_000] * 3


def test_batches_in_a_buffer_are_found_one_after_another_without_a_copy() -> None:
    batches = [batch_of(b"a"), batch_of(b"b", b"c"), batch_of(b"d" * 1000)]
    buffer = bytearray().join(batches)
    views = list(iterate(buffer))
    assert [view.position for view in views] == [0, len(batches[0]), len(batches[0]) + len(batches[1])]
    assert [view.view for view in views] == batches
    assert [view.header.record_count for view in views] == [1, 2, 1]
    assert all(view.payload == view.view[HEADER_SIZE:] for view in views)
    buffer[-1] ^= 1
    assert views[-1].view[-1] == buffer[-1]


def test_an_empty_buffer_holds_no_batches() -> None:
    assert list(iterate(b"")) == []


def test_batches_before_the_first_bad_one_are_given() -> None:
    good, bad = batch_of(b"good"), batch_of(b"bad")
    bad[-1] ^= 1
    batches = iterate(bytes(good + bad))
    assert next(batches).view == good
    with pytest.raises(CorruptBatch, match=f"CRC mismatch at position {len(good)}"):
        next(batches)
    assert len(list(iterate(bytes(good + bad), verify=False))) == 2


@pytest.mark.parametrize(
    ("position", "form", "value", "message"),
    [
        (21, ">h", 1 << 7, "unknown attribute bits"),
        (21, ">h", -(1 << 15), "unknown attribute bits"),
        (21, ">h", TRANSACTIONAL_BIT, "transactional, but has no producer id"),
        (43, ">q", 5, "without a producer epoch"),
        (57, ">i", 0, "claims 0 records"),
        (23, ">i", 1, "last offset delta is 1"),
    ],
)
def test_a_produced_batch_must_be_as_producers_make_them(position: int, form: str, value: int, message: str) -> None:
    header = check(with_field(batch_of(b"value"), position, form, value))
    with pytest.raises(InvalidRecord, match=message):
        check_produced(header)


def in_several_steps(batch: memoryview) -> BatchHeader:
    header = read_header(batch)
    check_crc(batch, 0, header)
    check_produced(header)
    check_integrity(batch, 0, header)
    return header


FIELDS = [(0, ">q"), (8, ">i"), (12, ">i"), (16, ">b"), (21, ">h"), (23, ">i"), (27, ">q"), (35, ">q"), (43, ">q")]
FIELDS += [(51, ">h"), (53, ">i"), (57, ">i")]


@settings(max_examples=400)
@given(
    st.lists(
        st.tuples(st.sampled_from(FIELDS), st.integers(-2, 9) | st.sampled_from([16, 32, 48, 64, 127])), max_size=4
    ),
    st.booleans(),
    st.integers(0, 200),
)
def test_a_produced_batch_is_read_in_one_step_as_in_several(
    changes: list[tuple[tuple[int, str], int]], right_crc: bool, size: int
) -> None:
    batch = batch_of(b"some", b"values")
    for (position, form), value in changes:
        batch = with_field(batch, position, form, value)
    if not right_crc:
        batch[-1] ^= 1
    outcomes: list[BatchHeader | str] = []
    for read in (in_several_steps, lambda buffer: read_produced(buffer, 0)):
        try:
            outcomes.append(read(memoryview(batch)[: max(size, 50)]))
        except (CorruptBatch, InvalidRecord) as error:
            outcomes.append(repr(error))
    assert outcomes[0] == outcomes[1]


def test_a_producer_id_needs_a_sequence_number_except_in_a_control_batch() -> None:
    header = check(with_field(with_field(batch_of(b"value"), 43, ">q", 5), 51, ">h", 0))
    with pytest.raises(InvalidRecord, match="without a sequence number"):
        check_produced(header)
    check_produced(header._replace(attributes=CONTROL_BIT))
    check_produced(header._replace(base_sequence=0))
    check_produced(
        read_header(
            build_marker(
                committed=True,
                producer_id=ProducerId(5),
                producer_epoch=ProducerEpoch(0),
                coordinator_epoch=1,
                timestamp=0,
            )
        )
    )


def test_no_records_cannot_be_produced() -> None:
    header = read_header(batch_of(b"value"))._replace(record_count=0, last_offset_delta=-1)
    with pytest.raises(InvalidRecord, match="no records"):
        check_produced(header)


def test_assembled_batches_carry_any_payload() -> None:
    batch = assemble(
        memoryview(b"anything"),
        attributes=Codec.LZ4,
        record_count=3,
        base_timestamp=1,
        max_timestamp=2,
        producer_id=ProducerId(4),
        producer_epoch=ProducerEpoch(5),
        base_sequence=6,
    )
    header = check(batch)
    assert batch[HEADER_SIZE:] == b"anything"
    assert header.length == len(batch) - LENGTH_END
    assert (header.base_offset, header.leader_epoch, header.last_offset_delta) == (0, -1, 2)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_no_bytes_make_anything_but_batches_or_corrupt_batch(data: bytes) -> None:
    try:
        views = list(iterate(data))
    except CorruptBatch:
        return
    assert b"".join(view.view for view in views) == data


def test_positions_are_those_of_the_struct() -> None:
    """A header of zeros but for one field: there it has its first byte that is not zero."""
    for name, value in vars(batch_module).items():
        if name.endswith("_AT"):
            field = BatchHeader._fields.index(name.removesuffix("_AT").lower())
            numbers = [0] * len(BatchHeader._fields)
            numbers[field] = 1 << 31 if name == "CRC_AT" else -1
            header = HEADER.pack(*numbers)
            assert next(at for at, byte in enumerate(header) if byte) == value, name


@pytest.mark.parametrize(
    "fields",
    [
        ("base_offset",),
        ("length", "magic"),
        ("base_offset", "length", "leader_epoch"),
        ("record_count",),
        ("attributes", "producer_id", "record_count"),
        BatchHeader._fields,
    ],
)
def test_a_few_fields_are_read_as_all_of_them_are(fields: tuple[str, ...]) -> None:
    batch = batch_of(b"abc")
    header = read_header(batch)
    assert header_struct(*fields).unpack_from(batch) == tuple(getattr(header, field) for field in fields)


def test_a_batch_reassembled_around_other_records_is_whole() -> None:
    header = read_header(batch_of(b"abc"))
    other = reassemble(header, b"other records")
    (view,) = iterate(other)
    assert bytes(view.payload) == b"other records"
    assert size_at(other, 0) == len(other)
    other[-1] ^= 1
    with pytest.raises(CorruptBatch):
        list(iterate(other))
    set_crc(memoryview(other))
    assert len(list(iterate(other))) == 1


def test_records_end_with_the_last_whole_batch() -> None:
    batch = batch_of(b"abc")
    for cut in (0, 1, LENGTH_END - 1, LENGTH_END, len(batch) - 1):
        whole, last = whole_prefix(memoryview(batch + batch + batch[:cut]))
        assert (len(whole), last) == (2 * len(batch), len(batch))
    assert whole_prefix(memoryview(batch[:-1])) == (memoryview(b""), -1)


def test_the_length_of_a_batch_that_is_no_length_is_not_taken_for_a_cut() -> None:
    batch = batch_of(b"abc")
    damaged = bytearray(batch)
    damaged[LENGTH_AT:LENGTH_END] = b"\xff\xff\xff\xf0"
    assert len(whole_prefix(memoryview(damaged))[0]) == len(damaged)
