"""The client without an event loop, against a real broker."""

import asyncio
import gc
import socket
import threading
import time
import uuid
from datetime import UTC, datetime

import pytest

import tidelog
from tests.support.brokers import unique
from tidelog.client import (
    AsyncClient,
    BrokerError,
    Client,
    ClientClosed,
    DeliveryFailed,
    FetchOptions,
    GroupDescription,
    GroupOptions,
    ProducerOptions,
    Unreachable,
    connect,
)
from tidelog.model import TopicPartition
from tidelog.records.compression import Codec
from tidelog.records.record import build_batch
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@pytest.fixture
def topic(client: Client) -> str:
    name = unique("t")
    client.create_topic(name, partitions=3)
    return name


def threads_of_clients() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tidelog client"]


def test_it_is_exported_from_the_package() -> None:
    assert tidelog.connect is connect


def test_what_was_produced_is_consumed(client: Client, topic: str) -> None:
    where = client.produce(
        topic, "wert", key="schlüssel", headers={"h": None}, timestamp=datetime.fromtimestamp(5, UTC)
    )
    assert (where.topic, where.offset, where.timestamp) == (topic, 0, 5000)
    (record,) = client.consume(topic, follow=False)
    assert record == (topic, where.partition, 0, 5000, "schlüssel".encode(), b"wert", [("h", None)])


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_comes_back_as_it_went(client: Client, topic: str, codec: Codec) -> None:
    sent = [bytes([number]) * 200 for number in range(100)]
    with client.producer(ProducerOptions(compression=codec)) as producer:
        for value in sent:
            producer.send(topic, value, partition=1)
    assert [record.value for record in client.consume(topic, follow=False)] == sent


def test_receipts_say_where_records_stand(client: Client, topic: str) -> None:
    with client.producer(ProducerOptions(linger_ms=50)) as producer:
        receipts = [producer.send(topic, str(number), partition=2) for number in range(10)]
        assert not receipts[0].done()
    assert [receipt.result().offset for receipt in receipts] == list(range(10))


def test_threads_may_share_a_producer_with_a_small_buffer(client: Client, topic: str) -> None:
    def work(number: int) -> None:
        for step in range(500):
            producer.send(topic, f"{number} {step}", key=str(number))

    with client.producer(ProducerOptions(buffer_bytes=5000, linger_ms=0)) as producer:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    seen: dict[str, list[int]] = {}
    for record in client.consume(topic, follow=False):
        number, step = (record.value or b"").decode().split()
        seen.setdefault(number, []).append(int(step))
    assert seen == {str(number): list(range(500)) for number in range(4)}


def test_a_block_that_fails_sends_no_more(client: Client, topic: str) -> None:
    def fail() -> None:
        with client.producer(ProducerOptions(linger_ms=10_000)) as producer:
            producer.send(topic, "x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(client.consume(topic, follow=False)) == []


def test_records_that_are_refused_make_the_block_fail(client: Client) -> None:
    topic = unique("small")
    client.create_topic(topic, configs={"max.message.bytes": "100"})
    with pytest.raises(DeliveryFailed) as error, client.producer() as producer:
        producer.send(topic, "x" * 1000)
    assert isinstance(error.value.first, BrokerError)
    assert error.value.first.kafka_code == ErrorCode.MESSAGE_TOO_LARGE


def test_following_waits_for_what_comes(client: Client, topic: str) -> None:
    with client.consume(topic, start="latest", limit=2) as stream:
        seen: list[bytes | None] = []
        reading = threading.Thread(target=lambda: seen.extend(record.value for record in stream))
        reading.start()
        client.produce(topic, "1", partition=0)
        client.produce(topic, "2", partition=0)
        reading.join(10)
    assert seen == [b"1", b"2"]


def test_a_group_goes_on_where_it_was(client: Client, topic: str) -> None:
    group = unique("g")
    for number in range(6):
        client.produce(topic, str(number), partition=0)
    with client.consume(topic, group=group, limit=4) as stream:
        assert [record.offset for record in stream] == [0, 1, 2, 3]
    with client.consume(topic, group=group, limit=1) as stream:
        assert [[record.offset for record in chunk] for chunk in stream.chunks()] == [[4]]
    with client.consume(topic, group=group, follow=False) as stream:
        assert [record.offset for record in stream] == [5]
    assert client.committed(group)[TopicPartition(topic, 0)].offset == 6
    assert group in [listed.group for listed in client.groups()]
    assert client.group(group).state == "Empty"
    client.delete_group(group)


def test_two_members_of_one_process_share_a_topic(client: Client, bootstrap: str, topic: str) -> None:
    group = unique("g")
    done = threading.Event()
    options = GroupOptions(heartbeat_ms=20)

    def work() -> None:
        with connect(bootstrap) as other, other.consume(topic, group=group, group_options=options) as stream:
            while not done.is_set():
                stream.poll(0.02)

    with client.consume(topic, group=group, group_options=options) as first:
        first.poll(0.1)
        working = threading.Thread(target=work)
        working.start()
        try:
            deadline = time.monotonic() + 15
            while len(members := client.group(group).members) != 2 or not all(m.partitions for m in members):
                assert time.monotonic() < deadline
                first.poll(0.02)
        finally:
            done.set()
            working.join(15)
    assert sorted(len(member.partitions) for member in members) == [1, 2]
    assert not working.is_alive()


def test_topics_and_records_are_administered(client: Client, topic: str) -> None:
    t0 = TopicPartition(topic, 0)
    for number in range(5):
        client.produce(topic, str(number), partition=0, timestamp=number)
    assert topic in [info.name for info in client.topics()]
    assert client.delete_records({t0: 2}) == {t0: 2}
    assert [(row.start_offset, row.end_offset) for row in client.partitions(topic)] == [(2, 5), (0, 0), (0, 0)]
    assert client.start_offsets([t0], -1) == {t0: 4}
    assert client.offsets({t0: 3})[t0].offset == 3
    client.alter_topic_configs(topic, {"retention.ms": "1234567"})
    assert {entry.name: entry.value for entry in client.topic_configs(topic)}["retention.ms"] == "1234567"
    client.add_partitions(topic, 4)
    assert len(client.topic(topic).partitions) == 4
    client.delete_topic(topic)
    assert topic not in [info.name for info in client.topics()]
    assert client.cluster_info().nodes


def test_committed_offsets_are_administered(client: Client, topic: str) -> None:
    group, t0 = unique("g"), TopicPartition(topic, 0)
    client.set_committed(group, {t0: 0})
    assert client.committed(group, [t0])[t0].offset == 0
    client.delete_committed(group, [t0])
    assert client.committed(group) == {}


def test_groups_of_the_new_protocol_are_described(bootstrap: str, client: Client, topic: str) -> None:
    group = unique("g")

    async def join_and_describe() -> GroupDescription:
        async with AsyncClient(bootstrap) as other:
            request = ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id=str(uuid.uuid4()),
                rebalance_timeout_ms=10_000,
                subscribed_topic_names=[topic],
                topic_partitions=[],
            )
            response: ConsumerGroupHeartbeatResponse = await other.cluster.request("ConsumerGroupHeartbeat", request)
            assert response.error_code == 0
            return await other.groups.describe(group)

    described = asyncio.run(join_and_describe())
    assert [member.client_id for member in described.members] == ["tidelog"]
    assert described.members[0].partitions == [TopicPartition(topic, number) for number in range(3)]
    assert [listed.type for listed in client.groups() if listed.group == group] == ["consumer"]


def test_ready_batches_go_in_and_come_out_as_bytes(client: Client, topic: str) -> None:
    batch = build_batch([(1, b"k", b"v", ())])
    assert client.produce_batches(topic, 0, bytes(batch)) == 0
    assert client.produce_batches(topic, 0, bytes(batch) + bytes(batch)) == 1
    assert client.produce_batches(topic, 0, bytes(batch)) == 3
    with client.consume(topic, follow=False, fetch=FetchOptions(max_wait_ms=10)) as stream:
        found = []
        while not stream.is_done:
            found += stream.poll()
    assert bytes(found[0].batches[0].view)[16:] == bytes(batch)[16:]  # all but offset, length and epoch


def test_a_client_that_was_closed_says_so_and_may_be_closed_again(bootstrap: str) -> None:
    client = connect(bootstrap)
    client.close()
    client.close()
    with pytest.raises(ClientClosed):
        client.topics()


def test_nobody_there_is_an_error_at_once_and_leaves_no_thread() -> None:
    before = len(threads_of_clients())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable, match="is the broker running"):
            connect(f"127.0.0.1:{free.getsockname()[1]}")
    assert len(threads_of_clients()) == before


def test_a_client_that_was_forgotten_takes_its_thread_with_it(bootstrap: str) -> None:
    before = len(threads_of_clients())
    client = connect(bootstrap)
    client.topics()
    assert len(threads_of_clients()) == before + 1
    del client
    gc.collect()
    assert len(threads_of_clients()) == before
