"""What a producer was given is written once and in order, or its error is known."""

import asyncio
import warnings

import pytest

from tests.client.fake_broker import (
    FakeCluster,
    after,
    against_a_fake,
    cut_short,
    drop_after,
    drop_before,
    linger_and_drop,
    refuse,
)
from tidelog.client import (
    AsyncClient,
    BrokerError,
    ClientClosed,
    ClientOptions,
    ConnectionLost,
    Delivered,
    DeliveryFailed,
    ProducerOptions,
)
from tidelog.client.producing.partitioner import partition_of_key
from tidelog.errors import InvalidInput
from tidelog.model import TopicPartition
from tidelog.records.batch import iterate
from tidelog.records.compression import Codec
from tidelog.records.record import build_batch
from tidelog.wire.error_codes import ErrorCode

with warnings.catch_warnings():  # importing kafka-python reads its files in a way that Python will give up
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch  # type: ignore[import-untyped]

AT_ONCE = ProducerOptions(linger_ms=0)
SMALL_BATCHES = ProducerOptions(linger_ms=0, batch_bytes=150)


@against_a_fake()
async def test_a_record_is_written_when_produce_returns(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    assert await client.produce("t", "value", key="key", headers={"h": b"1"}, timestamp=5) == Delivered("t", 0, 0, 5)
    assert await client.produce("t", None) == Delivered("t", 0, 1, cluster.partition("t").records()[1].timestamp)
    (first, second) = cluster.partition("t").records()
    assert (first.key, first.value, list(first.headers)) == (b"key", b"value", [("h", b"1")])
    assert second.value is None


@against_a_fake(nodes=2)
async def test_keys_go_to_the_partition_that_every_client_sends_them_to(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t", partitions=5)
    async with client.producer() as producer:
        receipts = {key: await producer.send("t", key, key=key) for key in ("a", "b", "c", "d", "e", "f")}
    for key, receipt in receipts.items():
        assert receipt.partition == partition_of_key(key.encode(), 5)
        assert key.encode() in cluster.values("t", receipt.partition)


@against_a_fake()
async def test_records_without_a_key_share_a_batch(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=8)
    async with client.producer(ProducerOptions(linger_ms=50)) as producer:
        receipts = [await producer.send("t", str(number)) for number in range(100)]
    assert len({receipt.partition for receipt in receipts}) == 1
    assert len(cluster.partition("t", receipts[0].partition).batches) == 1


@against_a_fake()
async def test_a_chosen_partition_is_kept_and_one_that_is_not_there_refused(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t", partitions=3)
    assert (await client.produce("t", "x", partition=2)).partition == 2
    with pytest.raises(BrokerError, match="t-3: the topic has 3"):
        await client.produce("t", "x", partition=3)


@against_a_fake()
async def test_order_is_kept_when_tries_fail(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    cluster.fail(
        "Produce",
        drop_before,
        refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        drop_after,
        cut_short,
        refuse(ErrorCode.KAFKA_STORAGE_ERROR),
    )
    async with client.producer(SMALL_BATCHES) as producer:
        for number in range(200):
            await producer.send("t", b"%d" % number)
    assert cluster.values("t") == [b"%d" % number for number in range(200)]


@against_a_fake()
async def test_a_batch_that_was_written_without_a_word_is_not_written_twice(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    cluster.fail("Produce", drop_after, drop_after)
    assert (await client.produce("t", "once")).offset == 0
    assert cluster.values("t") == [b"once"]
    assert len(cluster.asked("Produce")) == 3


@against_a_fake()
async def test_without_idempotence_it_may_be(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    cluster.fail("Produce", drop_after)
    async with client.producer(ProducerOptions(acks=1, linger_ms=0)) as producer:
        await producer.send("t", "twice")
    assert cluster.values("t") == [b"twice", b"twice"]
    assert cluster.asked("InitProducerId") == []


@against_a_fake(nodes=2)
async def test_a_new_leader_is_found(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    await client.produce("t", "1")
    cluster.partition("t").leader = 1
    await client.produce("t", "2")
    assert cluster.values("t") == [b"1", b"2"]
    assert cluster.asked("Produce") == [0, 0, 1]


@against_a_fake()
async def test_what_the_broker_refuses_fails_with_its_reason_and_the_rest_goes_on(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    async with client.producer(AT_ONCE) as producer:
        cluster.fail("Produce", refuse(ErrorCode.MESSAGE_TOO_LARGE))
        with pytest.raises(BrokerError, match=r"producing 1 record to t-0: .*max\.message\.bytes"):
            await (await producer.send("t", "large"))
        assert (await (await producer.send("t", "small"))).offset == 0
    assert cluster.values("t") == [b"small"]


@against_a_fake()
async def test_errors_that_nobody_asked_for_come_out_at_the_flush(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    producer = client.producer(ProducerOptions(linger_ms=1000))
    cluster.fail("Produce", refuse(ErrorCode.INVALID_RECORD))
    await producer.send("t", "1")
    await producer.send("t", "2")
    with pytest.raises(DeliveryFailed, match="2 records not delivered: producing 2 records to t-0"):
        await producer.flush()
    assert not producer.has_failures
    await producer.close()


@against_a_fake(options=ClientOptions(retry_backoff_ms=1, retry_backoff_max_ms=5))
async def test_after_a_batch_of_unknown_fate_the_producer_takes_a_new_identity(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    async with client.producer(ProducerOptions(linger_ms=0, delivery_timeout_ms=1)) as producer:
        cluster.fail("Produce", linger_and_drop)
        receipt = await producer.send("t", "perhaps")
        with pytest.raises(ConnectionLost):
            await receipt
        await (await producer.send("t", "surely"))
    assert cluster.values("t") == [b"perhaps", b"surely"]
    assert len(cluster.asked("InitProducerId")) == 2


@against_a_fake()
async def test_a_broker_that_has_forgotten_the_producer_gets_it_under_a_new_name(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    async with client.producer(AT_ONCE) as producer:
        await (await producer.send("t", "1"))
        cluster.partition("t").sequences.clear()
        assert (await (await producer.send("t", "2"))).offset == 1
    assert cluster.values("t") == [b"1", b"2"]
    assert len(cluster.asked("InitProducerId")) == 2


@against_a_fake()
async def test_an_identity_that_cannot_be_had_yet_is_asked_for_again(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    cluster.fail("InitProducerId", refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), drop_before)
    await client.produce("t", "x")
    assert cluster.values("t") == [b"x"]


@against_a_fake()
async def test_acks_0_does_not_wait_for_anybody(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    async with client.producer(ProducerOptions(acks=0, linger_ms=0)) as producer:
        receipt = await producer.send("t", "x")
        assert (await receipt).offset == -1
        while not cluster.values("t"):
            await cluster.changed.wait()
    assert cluster.values("t") == [b"x"]


@against_a_fake()
async def test_send_waits_when_the_buffer_is_full(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    go = asyncio.Event()
    cluster.fail("Produce", after(go))
    async with client.producer(ProducerOptions(linger_ms=0, buffer_bytes=1000)) as producer:
        await producer.send("t", b"x" * 800)
        waiting = asyncio.create_task(producer.send("t", b"y" * 800))
        done, _ = await asyncio.wait([waiting], timeout=0.03)
        assert not done
        go.set()
        await waiting
    assert len(cluster.values("t")) == 2


@against_a_fake()
async def test_a_topic_may_come_into_being_by_producing(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.auto_create = True
    await client.produce("new", "x")
    assert cluster.values("new") == [b"x"]


@against_a_fake()
async def test_a_topic_that_is_not_there_is_an_error_at_the_first_send(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    with pytest.raises(BrokerError, match="does not exist"):
        await client.produce("nowhere", "x")


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_can_be_read_by_kafka_python(codec: Codec) -> None:
    if codec in (Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        pytest.importorskip({Codec.SNAPPY: "snappy", Codec.LZ4: "lz4", Codec.ZSTD: "zstandard"}[codec])

    @against_a_fake()
    async def written(cluster: FakeCluster, client: AsyncClient) -> None:
        cluster.create("t")
        async with client.producer(ProducerOptions(compression=codec)) as producer:
            for number in range(3):
                await producer.send("t", b"v%d" % number * 50, key=b"k", headers=[("h", None)], timestamp=7)
        (batch,) = cluster.partition("t").batches
        assert next(iterate(batch)).header.codec_id == codec
        foreign = DefaultRecordBatch(bytes(batch))
        assert foreign.validate_crc()
        records = [(r.key, r.value, r.headers, r.timestamp) for r in foreign]
        assert records == [(b"k", b"v%d" % number * 50, [("h", None)], 7) for number in range(3)]

    written()


@against_a_fake()
async def test_ready_batches_are_sent_as_they_are(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    batch = bytes(build_batch([(1, None, b"a", ()), (2, None, b"b", ())]))
    cluster.fail("Produce", refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert await client.produce_batches(TopicPartition("t", 0), batch) == 0
    assert await client.produce_batches(TopicPartition("t", 0), batch, acks=1) == 2
    assert await client.produce_batches(TopicPartition("t", 0), batch, acks=0) == -1
    while cluster.partition("t").end < 6:
        await cluster.changed.wait()
    cluster.fail("Produce", drop_after)
    with pytest.raises(ConnectionLost):
        await client.produce_batches(TopicPartition("t", 0), batch)
    assert cluster.partition("t").end == 8


@against_a_fake()
async def test_a_closed_producer_takes_nothing_and_leaves_nobody_waiting(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    producer = client.producer(ProducerOptions(linger_ms=10_000))
    receipt = await producer.send("t", "x")
    await producer.close(flush=False)
    with pytest.raises(ClientClosed):
        await receipt
    with pytest.raises(ClientClosed):
        await producer.send("t", "x")
    assert cluster.values("t") == []


@against_a_fake()
async def test_closing_the_client_delivers_what_its_producers_have(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    producer = client.producer(ProducerOptions(linger_ms=10_000))
    await producer.send("t", "x")
    await client.close()
    assert cluster.values("t") == [b"x"]


@against_a_fake()
async def test_what_is_not_bytes_or_text_is_refused(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    with pytest.raises(InvalidInput, match="not int"):
        await client.produce("t", 7)  # type: ignore[arg-type]


@against_a_fake(nodes=3)
async def test_many_partitions_on_many_brokers_all_arrive(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=30)
    options = ProducerOptions(linger_ms=1, request_bytes=2000)
    async with client.producer(options) as producer:
        for number in range(900):
            await producer.send("t", b"%d" % number, partition=number % 30)
    for partition in range(30):
        assert cluster.values("t", partition) == [b"%d" % number for number in range(partition, 900, 30)]
