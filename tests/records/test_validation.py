"""What a batch must be beyond its header, on each level, and what looking may cost."""

import struct

import pytest

from tidelog.errors import InvalidRecord, InvalidTimestamp, UnsupportedCompression
from tidelog.records import validation
from tidelog.records.batch import HEADER_SIZE, BatchHeader, assemble, iterate
from tidelog.records.compression import Codec, compress
from tidelog.records.record import build_batch
from tidelog.records.validation import MOST_NAMED, Demands, Examined, Level, Validator
from tidelog.records.walk import IS_COMPILED, walk_in_python

BASE_MS = 1_700_000_000_000


@pytest.fixture(params=["compiled", "python"], autouse=True)
def walk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(validation, "walk", walk_in_python)
    elif not IS_COMPILED:
        pytest.skip("there is no compiler")
    return str(request.param)


def records_batch(payload: bytes, count: int, codec: int = Codec.NONE, max_timestamp: int = BASE_MS) -> bytearray:
    return assemble(
        payload,
        attributes=codec,
        record_count=count,
        base_timestamp=BASE_MS,
        max_timestamp=max_timestamp,
        producer_id=-1,  # type: ignore[arg-type]
        producer_epoch=-1,  # type: ignore[arg-type]
        base_sequence=-1,
    )


def examine(
    batch: bytearray,
    level: Level = Level.FULL,
    demands: Demands = Demands(),  # noqa: B008, a constant
    *,
    validator: Validator | None = None,
    must: bool = False,
) -> Examined | None:
    header = BatchHeader._make(next(iterate(batch)).header)
    return (validator or Validator()).examine(memoryview(batch), header, level, demands, "topic", must=must)


GOOD = [(BASE_MS + number, b"key", b"value %d" % number, ()) for number in range(10)]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_good_batch_passes_on_every_level(codec: Codec) -> None:
    batch = build_batch(GOOD, codec)
    for level in Level:
        examined = examine(batch, level)
        if level is Level.HEADER:
            assert examined is None
        else:
            assert examined is not None
            assert examined.max_timestamp == BASE_MS + 9
            assert bytes(examined.records) == bytes(build_batch(GOOD)[HEADER_SIZE:])


@pytest.mark.parametrize("level", [Level.FULL, Level.AUTO])
@pytest.mark.parametrize("codec", list(Codec))
def test_garbage_is_refused_however_it_is_compressed(codec: Codec, level: Level) -> None:
    payload = bytes(compress(codec, b"these are no records at all"))
    with pytest.raises(InvalidRecord, match="record 0 of the 2"):
        examine(records_batch(payload, 2, codec), level)


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_data_that_is_not_compressed_is_refused_on_every_level(codec: Codec, level: Level) -> None:
    with pytest.raises(InvalidRecord, match=f"{codec.name.lower()} data of the batch is damaged"):
        examine(records_batch(b"these are no records at all", 2, codec), level)


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_count_that_the_block_cannot_hold_is_refused_on_every_level(codec: Codec, level: Level) -> None:
    payload = bytes(compress(codec, bytes(build_batch(GOOD)[HEADER_SIZE:])))
    with pytest.raises(InvalidRecord, match="cannot hold"):
        examine(records_batch(payload, 1_000_000_000, codec), level)


def test_damage_inside_of_a_block_is_found_by_looking_into_it() -> None:
    payload = bytearray(compress(Codec.ZSTD, b"the same words and the same words again " * 100))
    payload[20:40] = bytes(20)
    batch = records_batch(bytes(payload), 2, Codec.ZSTD)
    assert examine(batch, Level.HEADER) is None
    with pytest.raises(InvalidRecord, match="zstd data of the batch is damaged"):
        examine(batch, Level.AUTO)


def test_a_bomb_is_refused_without_being_set_off() -> None:
    payload = bytes(compress(Codec.ZSTD, bytes(65 << 20)))
    batch = records_batch(payload, 1, Codec.ZSTD)
    with pytest.raises(InvalidRecord, match="more than 67108864 bytes"):
        examine(batch, Level.FULL)
    assert examine(batch, Level.AUTO) is None  # more than can be paid for


def test_an_unknown_codec_is_named() -> None:
    batch = build_batch(GOOD)
    struct.pack_into(">h", batch, 21, 5)
    header = BatchHeader._make(struct.unpack_from(">qiibIhiqqqhii", batch))
    with pytest.raises(UnsupportedCompression, match="5"):
        Validator().examine(memoryview(batch), header, Level.HEADER, Demands(), "topic", must=False)


def test_records_that_the_topic_does_not_take_are_named() -> None:
    keys = [b"key" if number % 10 else None for number in range(100)]
    batch = build_batch([(BASE_MS, key, b"v", ()) for key in keys])
    with pytest.raises(InvalidRecord, match="topic is compacted: 10 records of the batch without a key") as refused:
        examine(batch, Level.HEADER, Demands(keys=True), must=True)
    assert [index for index, _ in refused.value.records] == list(range(0, 100, 10))
    assert {reason for _, reason in refused.value.records} == {"a record of a compacted topic needs a key"}


def test_timestamps_out_of_bounds_are_named_and_decide_the_error() -> None:
    batch = build_batch([(BASE_MS + number, None if number < 2 else b"k", b"v", ()) for number in range(10)])
    with pytest.raises(InvalidTimestamp, match="topic: 4 records of the batch cannot be accepted") as refused:
        examine(batch, demands=Demands(True, BASE_MS, BASE_MS + 7))
    assert [index for index, _ in refused.value.records] == [0, 1, 8, 9]
    assert str(BASE_MS + 9) in refused.value.records[-1][1]


def test_an_error_names_a_bounded_number_of_records() -> None:
    batch = build_batch([(BASE_MS, None, b"v", ()) for _ in range(MOST_NAMED + 50)])
    with pytest.raises(InvalidRecord, match=f"{MOST_NAMED + 50} records") as refused:
        examine(batch, demands=Demands(keys=True))
    assert len(refused.value.records) == MOST_NAMED


@pytest.mark.parametrize(
    ("times", "stored", "correct"),
    [
        ([5, 9, 7], 9, 9),
        ([5, 9, 7], 7, 9),
        ([5, 9, 7], 10, 9),
        ([-1, -1], -1, -1),
        ([-5, -3], -3, -3),  # as the header has it
        ([-5, -3], -1, -1),  # as Kafka counts
        ([-5, -3], 4, -1),
    ],
)
def test_the_max_timestamp_is_what_the_records_say(times: list[int], stored: int, correct: int) -> None:
    batch = build_batch([(time, None, b"v", ()) for time in times])
    struct.pack_into(">q", batch, 35, stored)
    header = BatchHeader._make(struct.unpack_from(">qiibIhiqqqhii", batch))
    examined = Validator().examine(memoryview(batch), header, Level.FULL, Demands(), "topic", must=False)
    assert examined is not None
    assert examined.max_timestamp == correct


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_compressed_batches_are_looked_into_until_the_credit_is_spent_and_again_when_it_is_earned(
    codec: Codec,
) -> None:
    """All of a short run, or of one with little to do; else a share, always the same one."""
    seconds = 0.0
    validator = Validator(lambda: seconds)
    batch = build_batch([(BASE_MS, b"key", b"value %d" % number * 100, ()) for number in range(100)], codec)
    looked = [examine(batch, Level.AUTO, validator=validator) is not None for _ in range(3000)]
    assert all(looked[:50])
    assert 0 < sum(looked[2000:]) < 200
    again = Validator(lambda: seconds)
    assert looked == [examine(batch, Level.AUTO, validator=again) is not None for _ in range(3000)]
    rested = []
    for _ in range(200):  # one batch after the other, with time between them
        seconds += 0.5
        rested.append(examine(batch, Level.AUTO, validator=validator) is not None)
    assert all(rested)


def test_without_c_large_batches_are_looked_into_as_the_credit_allows(
    walk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "IS_COMPILED", walk == "compiled")
    monkeypatch.setattr(validation, "_RECORD_NS", 8 if walk == "compiled" else 1000)
    many = build_batch([(BASE_MS, b"key", b"value", ()) for number in range(600)])
    validator = Validator(lambda: 0.0)
    looked = [examine(many, Level.AUTO, validator=validator) is not None for _ in range(300)]
    assert all(looked) is (walk == "compiled")
    assert all(looked[:20])


def test_very_many_small_records_are_looked_at_as_the_credit_allows() -> None:
    validator = Validator(lambda: 0.0)
    few = build_batch([(BASE_MS, b"key", bytes(100), ()) for _ in range(600)])
    many = build_batch([(BASE_MS, b"key", b"", ()) for _ in range(5000)])
    looked = [examine(many, Level.AUTO, validator=validator) is not None for _ in range(1500)]
    assert looked[0]
    assert 0 < sum(looked) < 1500
    if IS_COMPILED:
        assert all(examine(few, Level.AUTO, validator=validator) is not None for _ in range(100))


def test_full_looks_into_everything_whatever_it_costs() -> None:
    validator = Validator()
    batch = build_batch(GOOD * 20, Codec.ZSTD)
    assert all(examine(batch, Level.FULL, validator=validator) is not None for _ in range(3000))
