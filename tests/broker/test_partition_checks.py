"""A partition checks a producer's batch the same way with the walk in C and without it, whatever its topic asks."""

import struct
from typing import Protocol

import pytest

from tests.support.logs import NOW_MS, at_once, batch, open_log, read_batches, read_records, values
from tests.support.memory_files import MemoryFiles
from tidelog.broker import partition as served
from tidelog.broker.configs import BrokerConfig
from tidelog.broker.partition import DataWait, Partition
from tidelog.broker.refused_batches import RefusedBatches
from tidelog.broker.topics import Topic
from tidelog.errors import CorruptBatch, InvalidInput, InvalidRecord, InvalidTimestamp, UnsupportedCompression
from tidelog.model import LeaderEpoch, TimestampType, TopicPartition
from tidelog.records import validation
from tidelog.records.batch import CRC_START, HEADER_SIZE, WriteBuffer, assemble
from tidelog.records.compression import Codec, compress
from tidelog.records.crc import crc32c
from tidelog.records.record import build_batch, build_marker
from tidelog.records.validation import Validator
from tidelog.records.walk import IS_COMPILED, walk_in_python
from tidelog.storage.local.log import LocalLog
from tidelog.storage.log import Appended


class MakePartition(Protocol):
    def __call__(self, **configs: str) -> Partition: ...


@pytest.fixture(params=["compiled", "python"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> MakePartition:
    """Partitions of a broker with the walk in C, and of one that was installed without a compiler."""
    if request.param == "python":
        monkeypatch.setattr(served, "IS_COMPILED", False)
        monkeypatch.setattr(served, "walk", walk_in_python)
        monkeypatch.setattr(validation, "IS_COMPILED", False)
        monkeypatch.setattr(validation, "walk", walk_in_python)
    elif not IS_COMPILED:
        pytest.skip("there is no compiler")

    def made(**configs: str) -> Partition:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        topic = Topic("topic", bytes(16), 1, NOW_MS, named, BrokerConfig().topic_config(named))
        return Partition(
            TopicPartition("topic", 0), open_log(MemoryFiles()), topic, Validator(), RefusedBatches(), LeaderEpoch(0)
        )

    return made


def append(partition: Partition, data: WriteBuffer, *, transactional: bool = False) -> Appended:
    return at_once(partition.append(data, durable=False, now_ms=NOW_MS, transactional=transactional))


def log_of(partition: Partition) -> LocalLog:
    assert isinstance(partition.log, LocalLog)
    return partition.log


def sealed(records: bytearray) -> bytearray:
    struct.pack_into(">I", records, 17, crc32c(memoryview(records)[CRC_START:]))
    return records


def garbage(codec: Codec = Codec.NONE) -> bytearray:
    return assemble(
        compress(codec, b"these are no records at all"),
        attributes=codec,
        record_count=2,
        base_timestamp=NOW_MS,
        max_timestamp=NOW_MS,
        producer_id=-1,  # type: ignore[arg-type]
        producer_epoch=-1,  # type: ignore[arg-type]
        base_sequence=-1,
    )


TOPICS = [
    {},
    {"tidelog_validate": "full"},
    {"cleanup_policy": "compact"},
    {"message_timestamp_type": "LogAppendTime"},
    {"message_timestamp_before_max_ms": "1000"},
    {"compression_type": "zstd"},
    {"compression_type": "uncompressed"},
]


@pytest.mark.parametrize("configs", TOPICS, ids=str)
@pytest.mark.parametrize("codec", list(Codec))
def test_good_batches_are_taken_and_garbage_is_not(
    make: MakePartition, codec: Codec, configs: dict[str, str]
) -> None:
    partition = make(**configs)
    for _ in range(3):
        append(partition, build_batch([(NOW_MS, b"key", b"value", ()), (NOW_MS + 1, b"key", None, ())], codec))
        with pytest.raises(InvalidRecord):
            append(partition, garbage(codec))
    assert values(read_records(log_of(partition))) == [b"value", None] * 3


@pytest.mark.parametrize("configs", TOPICS, ids=str)
def test_damage_on_the_way_is_the_reason_before_any_other(make: MakePartition, configs: dict[str, str]) -> None:
    partition = make(**configs)
    for codec in Codec:
        for data in (garbage(codec), build_batch([(NOW_MS - 5000, None, b"value", ())], codec)):
            data[-1] ^= 0x40
            with pytest.raises(CorruptBatch, match="CRC"):
                append(partition, data)
    assert partition.high_watermark == 0


def test_a_wrong_max_timestamp_is_corrected_but_never_over_damage(make: MakePartition) -> None:
    partition = make()
    data = build_batch([(NOW_MS, None, b"a", ()), (NOW_MS + 7, None, b"b", ())])
    struct.pack_into(">q", data, 35, NOW_MS + 99)
    with pytest.raises(CorruptBatch, match="CRC"):
        append(partition, data)
    append(partition, sealed(data))
    assert [view.header.max_timestamp for view in read_batches(log_of(partition))] == [NOW_MS + 7]


def test_with_log_append_time_the_brokers_clock_counts(make: MakePartition) -> None:
    partition = make(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms="1")
    append(partition, build_batch([(5, None, b"old", ()), (NOW_MS * 2, None, b"new", ())]))
    (view,) = read_batches(log_of(partition))
    assert (view.header.timestamp_type, view.header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, NOW_MS)


def test_a_producer_that_says_log_append_time_is_bound_by_it(make: MakePartition) -> None:
    partition = make()
    for time, error in ((NOW_MS, None), (NOW_MS + 10**10, InvalidTimestamp)):
        data = build_batch([(NOW_MS, None, b"a", ()), (NOW_MS, None, b"b", ())])
        struct.pack_into(">h", data, 21, 1 << 3)
        struct.pack_into(">q", data, 35, time)
        if error is None:
            append(partition, sealed(data))
        else:
            with pytest.raises(error) as refused:
                append(partition, sealed(data))
            assert [index for index, _ in refused.value.records] == [0, 1]


def test_records_are_compressed_anew_as_the_topic_says(make: MakePartition) -> None:
    partition = make(compression_type="lz4")
    for codec in Codec:
        append(partition, batch(b"a", b"b", codec=codec))
    assert {view.header.codec_id for view in read_batches(log_of(partition))} == {Codec.LZ4}
    assert values(read_records(log_of(partition))) == [b"a", b"b"] * 5


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", InvalidRecord),
        (bytes(30), CorruptBatch),
        (bytes(batch(b"a"))[:-1], CorruptBatch),
        (bytes(batch(b"a")) + b"\x00", InvalidRecord),
        (bytes(batch(b"a")) * 2, InvalidRecord),
        (bytes(batch(b"a")[:16]) + b"\x01" + bytes(batch(b"a")[17:]) * 2, CorruptBatch),  # magic 1
        (bytes(batch(b"a", transactional=True, producer_id=1, producer_epoch=0, sequence=0)), InvalidRecord),
    ],
)
def test_what_is_not_one_whole_batch_is_refused(make: MakePartition, data: bytes, error: type[InvalidInput]) -> None:
    partition = make()
    with pytest.raises(error):
        append(partition, bytearray(data))
    assert partition.high_watermark == 0


def test_markers_and_unknown_codecs_are_refused(make: MakePartition) -> None:
    partition = make()
    marker = build_marker(
        committed=True,
        producer_id=1,  # type: ignore[arg-type]
        producer_epoch=0,  # type: ignore[arg-type]
        coordinator_epoch=0,
        timestamp=NOW_MS,
    )
    with pytest.raises(InvalidRecord, match="control"):
        append(partition, marker, transactional=True)
    data = batch(b"a")
    struct.pack_into(">h", data, 21, 6)
    with pytest.raises(UnsupportedCompression):
        append(partition, sealed(data))


def test_what_the_topic_asks_for_can_change(make: MakePartition) -> None:
    partition = make(tidelog_validate="header")
    append(partition, garbage())
    configs = {"tidelog.validate": "full"}
    partition.configure(Topic("topic", bytes(16), 1, NOW_MS, configs, BrokerConfig().topic_config(configs)))
    with pytest.raises(InvalidRecord):
        append(partition, garbage())


def test_those_who_wait_are_woken_by_what_is_appended_and_by_nothing_else(make: MakePartition) -> None:
    partition = make()
    woken: list[bool] = []
    partition.add_wait(DataWait(lambda: woken.append(True), HEADER_SIZE))
    with pytest.raises(InvalidRecord):
        append(partition, garbage())
    assert woken == []
    append(partition, batch(b"a"))
    assert woken == [True]
