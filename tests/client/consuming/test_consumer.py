"""Every record once and in order, from where it was said, whatever happens to brokers and connections."""

import asyncio
from datetime import UTC, datetime

import pytest

from tests.client.fake_broker import FAST, FakeCluster, against_a_fake, cut_short, drop_before, refuse, silence
from tidelog.client import (
    AsyncClient,
    BrokerError,
    ClientClosed,
    ClientOptions,
    ConnectionLost,
    ConsumedRecord,
    FetchOptions,
    Start,
)
from tidelog.errors import CorruptBatch, InvalidInput
from tidelog.model import ProducerEpoch, ProducerId, TopicPartition
from tidelog.records.compression import Codec
from tidelog.records.record import BatchBuilder, build_batch, build_marker
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.fetch import AbortedTransaction

QUICK = FetchOptions(max_wait_ms=20)


def fill(cluster: FakeCluster, topic: str, values: range, *, partition: int = 0, each: int = 3) -> None:
    """Values with their number as timestamp, in batches of `each`."""
    for start in range(values.start, values.stop, each):
        rows = [(n, None, b"%d" % n, ()) for n in range(start, min(start + each, values.stop))]
        cluster.partition(topic, partition).append(build_batch(rows, Codec.GZIP))
    cluster.tell()


async def read(client: AsyncClient, topic: str = "t", start: Start = "earliest", **options: object) -> list[str]:
    stream = client.consume(topic, start=start, **{"follow": False, **options})  # type: ignore[arg-type]
    async with stream:
        return [(record.value or b"").decode() async for record in stream]


@against_a_fake()
async def test_records_come_with_everything_they_have(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    await client.produce("t", b"\x00value", key="key", headers=[("h", b"1"), ("h", None)], timestamp=1234)
    async with client.consume("t", follow=False) as stream:
        records = [record async for record in stream]
    assert records == [ConsumedRecord("t", 0, 0, 1234, b"key", b"\x00value", [("h", b"1"), ("h", None)])]


@against_a_fake()
async def test_reading_starts_where_it_was_said(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(10))
    assert await read(client, start="earliest") == [str(n) for n in range(10)]
    assert await read(client, start="latest") == []
    assert await read(client, start=4) == [str(n) for n in range(4, 10)]  # inside a batch
    assert await read(client, start=-2) == ["8", "9"]
    assert await read(client, start=-100) == [str(n) for n in range(10)]
    assert await read(client, start=datetime.fromtimestamp(0.007, UTC)) == ["7", "8", "9"]
    assert await read(client, start=datetime.fromtimestamp(1, UTC)) == []
    with pytest.raises(InvalidInput, match="yesterday"):
        await read(client, start="yesterday")  # type: ignore[arg-type]


@against_a_fake(nodes=3)
async def test_partitions_of_many_brokers_are_read_together(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=7)
    for number in range(7):
        fill(cluster, "t", range(100 * number, 100 * number + 20), partition=number)
    assert len(await read(client, fetch=QUICK)) == 140
    assert await read(client, fetch=QUICK, partitions=[2]) == [str(n) for n in range(200, 220)]
    with pytest.raises(BrokerError, match="t-9: the topic has 7"):
        await read(client, partitions=[9])


@against_a_fake()
async def test_several_topics_make_one_stream(cluster: FakeCluster, client: AsyncClient) -> None:
    for name in ("a", "b"):
        cluster.create(name)
        fill(cluster, name, range(3))
    async with client.consume(["a", "b"], follow=False) as stream:
        assert {record.topic async for record in stream} == {"a", "b"}


@against_a_fake()
async def test_following_sees_what_is_written_later(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(2))
    seen = []
    async with client.consume("t", limit=5) as stream:
        async for record in stream:
            seen.append(record.offset)
            if record.offset == 1:
                fill(cluster, "t", range(2, 9))
    assert seen == [0, 1, 2, 3, 4]


@against_a_fake()
async def test_what_is_written_after_the_start_does_not_keep_a_reader_from_its_end(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    fill(cluster, "t", range(3))
    seen = 0
    async with client.consume("t", follow=False) as stream:
        async for _ in stream:
            seen += 1
            fill(cluster, "t", range(3))
    assert seen >= 3


@against_a_fake()
async def test_a_batch_cut_off_at_the_end_is_read_later(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(6))
    tail = bytes(cluster.partition("t").batches[0])
    for size in (1, 11, 12, 40, 61, len(tail) - 1):
        cluster.fetch_tail = tail[:size]
        assert await read(client) == [str(n) for n in range(6)]


@against_a_fake()
async def test_damage_is_an_error_and_not_a_record(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(3))
    cluster.partition("t").batches[0][70] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        await read(client)


@against_a_fake()
async def test_connections_that_break_are_no_loss(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(10))
    cluster.fail("Fetch", drop_before, cut_short, refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER), drop_before)
    cluster.fail("ListOffsets", drop_before, refuse(ErrorCode.LEADER_NOT_AVAILABLE))
    assert await read(client) == [str(n) for n in range(10)]


@against_a_fake(nodes=2)
async def test_a_new_leader_is_read_from(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(3))
    seen = []
    async with client.consume("t", limit=6, fetch=QUICK) as stream:
        async for record in stream:
            seen.append(record.value)
            if len(seen) == 3:
                cluster.partition("t").leader = 1
                fill(cluster, "t", range(3, 6))
    assert seen == [b"%d" % n for n in range(6)]
    assert cluster.asked("Fetch")[-1] == 1


@against_a_fake(options=ClientOptions(retry_backoff_ms=1, retry_backoff_max_ms=5, timeout_ms=40))
async def test_trouble_that_does_not_pass_is_an_error_in_the_end(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    cluster.fail("Fetch", *[drop_before] * 500)
    with pytest.raises(ConnectionLost):
        await read(client, follow=True)


@against_a_fake()
async def test_what_the_broker_refuses_for_good_is_an_error_at_once(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    fill(cluster, "t", range(3))
    cluster.fail("Fetch", refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerError, match="reading t-0 from offset 0"):
        await read(client)


@against_a_fake()
async def test_an_offset_that_is_gone_goes_on_where_it_was_said(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(9))
    cluster.partition("t").start = 6
    assert await read(client, start=2) == ["6", "7", "8"]
    assert await read(client, start=2, fetch=FetchOptions(out_of_range="latest")) == []
    with pytest.raises(BrokerError, match="reading t-0 from offset 2: the offset is not in the log"):
        await read(client, start=2, fetch=FetchOptions(out_of_range="error"))


@against_a_fake()
async def test_a_deleted_and_recreated_topic_is_followed(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(3))
    seen = []
    async with client.consume("t", limit=4, fetch=QUICK) as stream:
        async for record in stream:
            seen.append(record.value)
            if len(seen) == 3:
                cluster.create("t")
                fill(cluster, "t", range(2))
    assert seen == [b"0", b"1", b"2", b"0"]


def transaction(producer: int, value: bytes) -> bytearray:
    builder = BatchBuilder(
        producer_id=ProducerId(producer), producer_epoch=ProducerEpoch(0), base_sequence=0, transactional=True
    )
    builder.append(value, timestamp=1)
    return builder.build()


def marker(producer: int, *, committed: bool) -> bytearray:
    return build_marker(
        committed=committed,
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(0),
        coordinator_epoch=0,
        timestamp=1,
    )


@against_a_fake()
async def test_read_committed_leaves_aborted_transactions_out(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    partition = cluster.partition("t")
    for batch in (
        transaction(1, b"aborted"),
        transaction(2, b"committed"),
        marker(1, committed=False),
        build_batch([(1, None, b"plain", ())]),
        marker(2, committed=True),
        transaction(3, b"committed later"),
        marker(3, committed=True),
    ):
        batch[:8] = len(partition.batches).to_bytes(8)  # one record each: its offset
        partition.batches.append(batch)
    partition.aborted = [AbortedTransaction(producer_id=1, first_offset=0)]
    assert await read(client, fetch=FetchOptions(read_committed=True)) == ["committed", "plain", "committed later"]
    assert await read(client) == ["aborted", "committed", "plain", "committed later"]


@against_a_fake()
async def test_batches_can_be_had_as_they_are_stored(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(9))
    source = await client.open_source("t", start=4, follow=False)
    found = []
    while not source.is_done:
        found += await source.poll()
    await source.close()
    assert [bytes(batch.view) for fetched in found for batch in fetched.batches] == [
        bytes(batch) for batch in cluster.partition("t").batches[1:]
    ]
    assert found[-1].next_offset == 9
    assert found[-1].high_watermark == 9


@against_a_fake()
async def test_offsets_of_ones_own_can_be_given(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=2)
    for number in range(2):
        fill(cluster, "t", range(10 * number, 10 * number + 5), partition=number)
    starts = {TopicPartition("t", 0): 4, TopicPartition("t", 1): 3}
    async with client.consume("t", start=starts, follow=False) as stream:
        assert {record.value async for record in stream} == {b"4", b"13", b"14"}


@against_a_fake(
    options=ClientOptions(
        retry_backoff_ms=1, retry_backoff_max_ms=5, request_timeout_ms=30, timeout_ms=FAST.timeout_ms
    )
)
async def test_a_fetch_without_a_reply_is_sent_again(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(3))
    cluster.fail("Fetch", silence)
    assert await read(client, fetch=QUICK) == ["0", "1", "2"]


@against_a_fake()
async def test_a_stream_that_is_closed_while_it_is_read_says_so(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    source = await client.open_source(["t"], fetch=FetchOptions(max_wait_ms=20_000))
    reading = asyncio.ensure_future(source.poll(20))
    while not cluster.asked("Fetch"):
        await asyncio.sleep(0.001)
    await source.close()
    with pytest.raises(ClientClosed):
        await reading


@against_a_fake()
async def test_no_records_are_asked_for_none_are_read(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    async with client.consume("t", limit=0) as stream:
        assert [record async for record in stream] == []
