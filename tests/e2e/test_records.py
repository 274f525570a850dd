"""Records come back as they were sent, with every client and every codec, from wherever one asks for them."""

import time

import pytest

from tests.e2e.clients import CODECS, Client, ClientError, Message
from tests.e2e.conftest import MakeTopic
from tests.support.brokers import BrokerProcess, unique

MESSAGE_TOO_LARGE = 10


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_sent_comes_back_the_same(client: Client, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic()
    now = int(time.time() * 1000)
    messages = [
        Message(b"value", b"key", 0, (("name", b"content"), ("name", b"again"), ("empty", b"")), now - 10_000),
        Message(b"no key", None, 0),
        Message(None, b"tombstone", 0),
        Message(b"", b"empty value", 0),
        Message(b"empty key", b"", 0),
        Message("Grüße, 世界".encode(), "clé".encode(), 0, (("kopf", "ü".encode()),), now),
        *(Message(b"%d " % number * 50, b"key %d" % number, 0) for number in range(200)),
    ]
    places = client.produce(topic, messages, codec=codec)
    assert places == [(0, offset) for offset in range(len(messages))]
    records = client.read(topic, len(messages))
    assert [record.place for record in records] == places
    assert [(record.key, record.value, record.headers) for record in records] == [
        (message.key, message.value, message.headers) for message in messages
    ]
    assert [records[0].timestamp_ms, records[5].timestamp_ms] == [now - 10_000, now]
    assert {record.timestamp_type for record in records} == {0}


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_each_level_of_acks_delivers(client: Client, make_topic: MakeTopic, acks: int) -> None:
    topic = make_topic()
    client.produce(topic, [Message(b"%d" % number) for number in range(100)], acks=acks)
    assert [record.value for record in client.read(topic, 100)] == [b"%d" % number for number in range(100)]


def test_an_idempotent_producer_is_served(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    places = client.produce(topic, [Message(b"%d" % n, b"%d" % n) for n in range(300)], idempotent=True)
    records = client.read(topic, 300, partitions=3)
    assert sorted(record.place for record in records) == sorted(places)


@pytest.mark.parametrize("name", ["a", "0", "UPPER.and_lower-123", "x" * 249])
def test_every_name_that_kafka_allows_can_be_used(client: Client, broker: BrokerProcess, name: str) -> None:
    topic = unique(name)[-249:] if len(name) < 249 else unique("")[1:].rjust(249, "x")
    client.produce(topic, [Message(b"value")])  # it is created by asking for it
    assert [record.value for record in client.read(topic, 1)] == [b"value"]


def test_large_messages_pass(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    large = [bytes([65 + number]) * 900_000 for number in range(4)]
    client.produce(topic, [Message(value) for value in large])
    assert [record.value for record in client.read(topic, 4)] == large


def test_a_too_large_message_is_refused_as_such(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with pytest.raises(ClientError) as refusal:
        client.produce(topic, [Message(b"x" * 2_000_000)])
    assert refusal.value.code == MESSAGE_TOO_LARGE
    assert client.produce(topic, [Message(b"small")]) == [(0, 0)]


def test_keys_choose_partitions_and_order_holds_within_each(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(50)
    messages = [Message(b"%d" % number, b"key %d" % (number % 200)) for number in range(2000)]
    places = client.produce(topic, messages)
    assert len({partition for partition, _ in places}) > 40
    records = client.read(topic, len(messages), partitions=50)
    by_partition: dict[int, list[tuple[int, int]]] = {}
    for record in records:
        by_partition.setdefault(record.partition, []).append((record.offset, int(record.value or b"")))
    for found in by_partition.values():
        assert [offset for offset, _ in found] == list(range(len(found)))
        assert found == sorted(found, key=lambda each: each[1])
    partition_of = {record.key: record.partition for record in records}
    assert all(partition_of[record.key] == record.partition for record in records)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_reading_may_start_in_the_middle_of_a_batch(client: Client, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic()
    client.produce(topic, [Message(b"%d" % number * 100, partition=0) for number in range(100)], codec=codec)
    with client.reader(topic) as reader:
        reader.assign({0: 37})
        assert [record.offset for record in reader.read(63)] == list(range(37, 100))


def test_seeks_go_back_and_forth(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, [Message(b"%d" % number) for number in range(50)], codec="gzip")
    with client.reader(topic) as reader:
        reader.assign({0: 0})
        assert len(reader.read(50)) == 50
        for offset in (10, 49, 0, 25):
            reader.seek(0, offset)
            records = reader.read(50 - offset)
            assert [record.offset for record in records] == list(range(offset, 50))


def test_beginning_and_end_are_known(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    with client.reader(topic) as reader:
        assert reader.watermarks(0) == (0, 0)
        client.produce(topic, [Message(b"x", partition=1)] * 7)
        assert reader.watermarks(1) == (0, 7)
        assert reader.watermarks(0) == (0, 0)


def test_offsets_are_found_by_time(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    start = int(time.time() * 1000) - 1_000_000
    messages = [Message(b"x", partition=0, timestamp_ms=start + 1000 * number) for number in range(100)]
    for part in (messages[:30], messages[30:31], messages[31:]):
        client.produce(topic, part, codec="gzip")
    with client.reader(topic) as reader:
        assert reader.offset_for_time(0, start - 5) == 0
        assert reader.offset_for_time(0, start) == 0
        assert reader.offset_for_time(0, start + 1) == 1
        assert reader.offset_for_time(0, start + 30_000) == 30
        assert reader.offset_for_time(0, start + 30_001) == 31
        assert reader.offset_for_time(0, start + 99_000) == 99
        assert reader.offset_for_time(0, start + 99_001) in (None, 100)  # librdkafka tells the end


def test_a_reader_at_the_end_gets_what_comes(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, [Message(b"old")])
    with client.reader(topic) as reader:
        reader.assign({0: 1})
        assert reader.poll(0.1) == []
        for number in range(5):
            client.produce(topic, [Message(b"new %d" % number)])
            assert [record.value for record in reader.read(1)] == [b"new %d" % number]


def test_clients_read_what_other_clients_compressed(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    from tests.e2e.clients import CLIENTS

    topic = make_topic()
    sent = []
    for name, kind in CLIENTS.items():
        for codec in CODECS:
            values = [f"{name} {codec} {number}".encode() * 20 for number in range(20)]
            kind(broker.bootstrap).produce(topic, [Message(value) for value in values], codec=codec)
            sent += values
    for kind in CLIENTS.values():
        assert [record.value for record in kind(broker.bootstrap).read(topic, len(sent))] == sent
