"""What Produce refuses on the wire: more than one batch, batches that no consumer could read, records that the topic
does not take; and that nothing of it is appended."""

import struct
import time
from collections.abc import Callable

import pytest

from tests.gateways.conftest import StartBroker
from tests.gateways.raw import RawClient, produce_request, values_of
from tests.gateways.test_transactions import Producer
from tests.support.brokers import unique
from tests.support.logs import batch
from tidelog.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from tidelog.records.batch import CRC_START, HEADER_SIZE, assemble, iterate
from tidelog.records.compression import Codec, compress
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder, build_batch
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def produce(client: RawClient, topic: str, records: bytes | bytearray, version: int = 9) -> PartitionProduceResponse:
    reply = client.ask("Produce", version, produce_request(topic, records))
    result: PartitionProduceResponse = reply.responses[0].partition_responses[0]
    return result


def end_of(client: RawClient, topic: str) -> int:
    return client.fetch(topic).high_watermark


def sealed(records: bytearray) -> bytearray:
    struct.pack_into(">I", records, 17, crc32c(memoryview(records)[CRC_START:]))
    return records


def around(payload: bytes, count: int = 1, codec: int = Codec.NONE) -> bytearray:
    """A batch with a right CRC around whatever it is."""
    return assemble(
        payload,
        attributes=codec,
        record_count=count,
        base_timestamp=-1,
        max_timestamp=-1,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=-1,
    )


def changed(position: int, form: str, value: int) -> bytearray:
    records = batch(b"a", b"b", timestamp=-1)
    struct.pack_into(form, records, position, value)
    return sealed(records)


RECORDS = bytes(batch(b"a", b"b", timestamp=-1)[HEADER_SIZE:])


def damaged(codec: Codec) -> bytearray:
    """The frame is right, what is in it is not."""
    payload = bytearray(compress(codec, b"the same words and the same words again " * 50))
    payload[24:40] = b"\x5a" * 16
    return around(bytes(payload), 2, codec)


POISON: dict[str, bytearray] = {
    "garbage": around(b"these are no records at all", 2),
    "one record more than there is": around(RECORDS, 3),
    "one record less than there is": around(RECORDS, 1),
    "a record that claims all offsets": changed(23, ">i", 2**31 - 1),
    "no offsets": changed(23, ">i", -1),
    "a count that the bytes cannot hold": around(RECORDS, 2**31 - 1),
    "the same offset twice": around(RECORDS[: len(RECORDS) // 2] * 2, 2),
    "a record that is cut off": around(RECORDS[:-1], 2),
    "a header key that is not UTF-8": around(b"\x12\x00\x00\x00\x01\x01\x02\x02\xff\x01"),
    "a bomb": around(bytes(compress(Codec.GZIP, bytes(70 << 20)))[:100], 1, Codec.GZIP),
    "unknown attributes": changed(21, ">h", 1 << 9),
    "a delete horizon": changed(21, ">h", 1 << 6),
    **{f"{codec.name} of garbage": around(bytes(compress(codec, b"x" * 50)), 2, codec) for codec in Codec if codec},
    **{f"damaged {codec.name}": damaged(codec) for codec in Codec if codec},
    **{f"{codec.name} that is none": around(RECORDS, 2, codec) for codec in Codec if codec},
    **{f"{codec.name}, cut off": around(bytes(compress(codec, RECORDS))[:-3], 2, codec) for codec in Codec if codec},
}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
def test_a_batch_that_no_consumer_can_read_is_refused(client: RawClient, topic: str, poison: bytearray) -> None:
    result = produce(client, topic, poison)
    assert result.error_code == ErrorCode.INVALID_RECORD, result
    assert result.error_message
    assert end_of(client, topic) == 0
    assert produce(client, topic, batch(b"good", timestamp=-1)).base_offset == 0
    # The same again, when the request is one that the connection has seen.
    assert produce(client, topic, poison).error_code == ErrorCode.INVALID_RECORD
    assert values_of(client.fetch(topic)) == [b"good"]


def test_an_unknown_codec_is_refused_as_such(client: RawClient, topic: str) -> None:
    assert produce(client, topic, changed(21, ">h", 5)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_damage_on_the_way_is_told_from_poison(client: RawClient, topic: str) -> None:
    """It may be sent again, so it must not be called invalid."""
    for codec in Codec:
        records = batch(b"value" * 20, timestamp=-1, codec=codec)
        records[-4] ^= 1
        assert produce(client, topic, records).error_code == ErrorCode.CORRUPT_MESSAGE
    assert end_of(client, topic) == 0


def test_header_takes_what_only_a_look_at_the_records_can_tell(client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, tidelog_validate="header")
    assert produce(client, topic, POISON["garbage"]).error_code == 0
    assert produce(client, topic, POISON["LZ4 of garbage"]).error_code == 0
    for name in ("a record that claims all offsets", "a count that the bytes cannot hold", "LZ4 that is none"):
        assert produce(client, topic, POISON[name]).error_code == ErrorCode.INVALID_RECORD


def test_full_looks_into_every_compressed_batch(client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, tidelog_validate="full")
    good = build_batch([(now_ms(), b"key", b"value %d" % number * 30, ()) for number in range(200)], Codec.ZSTD)
    for _ in range(1500):  # more than `auto` could afford
        client.send("Produce", 9, produce_request(topic, bytearray(good)))
    assert [client.reply().responses[0].partition_responses[0].error_code for _ in range(1500)] == [0] * 1500
    assert produce(client, topic, POISON["ZSTD of garbage"]).error_code == ErrorCode.INVALID_RECORD


# One batch for a partition


SEVERAL: dict[str, Callable[[], bytearray]] = {
    "two batches": lambda: batch(b"a", timestamp=-1) + batch(b"b", timestamp=-1),
    "a byte behind the batch": lambda: batch(b"a", timestamp=-1) + b"\x00",
    "half a batch behind it": lambda: batch(b"a", timestamp=-1) + batch(b"b", timestamp=-1)[:40],
}


@pytest.mark.parametrize("several", SEVERAL.values(), ids=SEVERAL.keys())
@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_exactly_one_batch_is_taken(
    client: RawClient, topic: str, several: Callable[[], bytearray], version: int
) -> None:
    assert produce(client, topic, several(), version).error_code == ErrorCode.INVALID_RECORD
    assert end_of(client, topic) == 0
    assert produce(client, topic, batch(b"good", timestamp=-1), version).error_code == 0
    assert produce(client, topic, several(), version).error_code == ErrorCode.INVALID_RECORD
    assert values_of(client.fetch(topic)) == [b"good"]


def test_a_retry_with_one_batch_more_is_refused_and_not_taken_for_a_repeat(client: RawClient, topic: str) -> None:
    def numbered(sequence: int) -> bytearray:
        return batch(b"%d" % sequence, timestamp=-1, producer_id=7_000_001, producer_epoch=0, sequence=sequence)

    assert produce(client, topic, numbered(0)).error_code == 0
    assert produce(client, topic, numbered(0) + numbered(1)).error_code == ErrorCode.INVALID_RECORD
    assert produce(client, topic, numbered(0)).base_offset == 0
    assert produce(client, topic, numbered(1)).base_offset == 1


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_batch_of_another_producer_cannot_ride_with_that_of_a_transaction(client: RawClient, version: int) -> None:
    producer, other = Producer(client, version=version), Producer(client, version=version)
    if version < 12:
        assert producer.add(0) == 0
    mine = producer.request(b"mine").topic_data[0].partition_data[0].records
    theirs = other.request(b"theirs").topic_data[0].partition_data[0].records
    both = bytearray(mine or b"") + bytearray(theirs or b"")
    topics = [TopicProduceData(producer.topic, partition_data=[PartitionProduceData(0, both)])]
    reply = client.ask("Produce", version, ProduceRequest(producer.id, -1, 10_000, topics))
    assert reply.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD
    assert end_of(client, producer.topic) == 0
    producer.sequence = 0
    assert producer.produce(b"mine") == 0
    fetched = client.fetch(producer.topic)
    assert (fetched.high_watermark, fetched.last_stable_offset) == (1, 0)


# Records that the topic does not take


@pytest.mark.parametrize("codec", list(Codec))
def test_records_without_keys_are_named(client: RawClient, codec: Codec) -> None:
    topic = unique("topic")
    client.create_topic(topic, cleanup_policy="compact")
    keys = [None if number % 10 == 3 else b"key" for number in range(100)]
    records = build_batch([(now_ms(), key, b"value", ()) for key in keys], codec)
    for _ in range(2):
        result = produce(client, topic, bytearray(records), 8)
        assert result.error_code == ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in result.record_errors] == list(range(3, 100, 10))
        assert all("key" in (error.batch_index_error_message or "") for error in result.record_errors)
        assert "10 records" in (result.error_message or "")
    assert produce(client, topic, bytearray(records), 7).error_code == ErrorCode.INVALID_RECORD
    assert end_of(client, topic) == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize(
    ("config", "offset_ms"),
    [
        ({"message.timestamp.before.max.ms": "60000"}, -70_000),
        ({"message.timestamp.after.max.ms": "60000"}, 70_000),
        ({}, 3_700_000),
    ],
)
def test_timestamps_out_of_bounds_are_named(
    client: RawClient, config: dict[str, str], offset_ms: int, codec: Codec
) -> None:
    topic = unique("topic")
    client.create_topic(topic, 1, **config)
    now = now_ms()
    times = [now + (offset_ms if number in (2, 5) else 0) for number in range(8)]
    result = produce(client, topic, build_batch([(time, b"k", b"v", ()) for time in times], codec))
    assert result.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in result.record_errors] == [2, 5]
    assert str(now + offset_ms) in (result.record_errors[0].batch_index_error_message or "")
    assert end_of(client, topic) == 0
    assert produce(client, topic, build_batch([(now, b"k", b"v", ())], codec)).error_code == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_wrong_max_timestamp_is_corrected(client: RawClient, topic: str, codec: Codec) -> None:
    """As Kafka does: offsets by time are looked up by it."""
    now = now_ms()
    for wrong in (now + 10_000_000, now - 5, -1):
        records = build_batch([(now + number, None, b"v", ()) for number in range(3)], codec)
        struct.pack_into(">q", records, 35, wrong)
        assert produce(client, topic, sealed(records)).error_code == 0
    fetched = client.fetch(topic).records
    assert isinstance(fetched, memoryview)
    assert [view.header.max_timestamp for view in iterate(fetched)] == [now + 2] * 3


def test_recompressed_batches_are_looked_into(client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, compression_type="zstd", tidelog_validate="header")
    assert produce(client, topic, POISON["garbage"]).error_code == ErrorCode.INVALID_RECORD
    assert produce(client, topic, batch(b"a", b"b", timestamp=-1, codec=Codec.LZ4)).error_code == 0
    assert values_of(client.fetch(topic)) == [b"a", b"b"]


def test_a_long_error_names_a_bounded_number_of_records(client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, cleanup_policy="compact")
    builder = BatchBuilder()
    for _ in range(5000):
        builder.append(b"", timestamp=now_ms())
    result = produce(client, topic, builder.build())
    assert len(result.record_errors) == 1000
    assert "5000 records" in (result.error_message or "")


def test_many_errors_name_a_bounded_number_of_records_together(client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, 20, cleanup_policy="compact")
    keyless = build_batch([(now_ms(), None, b"", ()) for _ in range(100)])
    entries = [PartitionProduceData(index, bytearray(keyless)) for index in range(20)]
    reply = client.ask(
        "Produce", 9, ProduceRequest(None, 1, 10_000, [TopicProduceData(topic, partition_data=entries)])
    )
    results = reply.responses[0].partition_responses
    assert {result.error_code for result in results} == {ErrorCode.INVALID_RECORD}
    assert [len(result.record_errors) for result in results] == [100] * 10 + [0] * 10


WITHOUT_C = """
import sys
sys.modules["tidelog.records._walk"] = None
from tidelog.cli.main import main
main()
"""


def test_a_broker_without_a_compiled_walk_says_so_and_refuses_the_same(start_broker: StartBroker) -> None:
    broker = start_broker(program=("-c", WITHOUT_C))
    with RawClient(broker.port) as client:
        client.create_topic("topic")
        for name, poison in POISON.items():
            assert produce(client, "topic", bytearray(poison)).error_code == ErrorCode.INVALID_RECORD, name
        for codec in Codec:
            assert produce(client, "topic", batch(b"good", timestamp=-1, codec=codec)).error_code == 0
        assert values_of(client.fetch("topic")) == [b"good"] * 5
        broker.stop()
    assert "batches are checked in Python" in broker.log
