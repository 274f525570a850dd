"""One request, an outcome for each of its batches."""

import pytest

from tests.client.fake_broker import FakeCluster, against_a_fake, drop_after, refuse
from tidelog.client import AsyncClient, BrokerError, ClientOptions, ConnectionLost, ProducerOptions, Unreachable
from tidelog.client.cluster import Cluster
from tidelog.client.options import Address
from tidelog.client.producing.produce_requests import EncodedBatch, Placed, ProduceRequests
from tidelog.errors import TidelogError
from tidelog.model import NO_TIMESTAMP, TopicPartition
from tidelog.records.record import build_batch
from tidelog.wire.error_codes import ErrorCode

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(partition: TopicPartition = T0, records: int = 2) -> EncodedBatch:
    return EncodedBatch(partition, records, bytes(build_batch([(1, None, b"v", ())] * records)))


def requests(client: AsyncClient, **options: object) -> ProduceRequests:
    return ProduceRequests(client.cluster, ProducerOptions(**options))  # type: ignore[arg-type]


@against_a_fake()
async def test_each_batch_has_its_own_outcome(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=1)
    await client.cluster.topic("t")
    placed, missing = await requests(client).send(0, [batch(T0), batch(T1, records=1)])
    assert isinstance(placed, Placed)
    assert placed.base_offset == 0
    assert isinstance(missing, BrokerError)
    assert str(missing).startswith("producing 1 record to t-1: ")
    assert await requests(client).send_one(batch()) == 2


@against_a_fake()
async def test_a_request_that_fails_is_the_error_of_every_batch(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=2)
    await client.cluster.topic("t")
    cluster.fail("Produce", drop_after)
    outcomes = await requests(client).send(0, [batch(T0), batch(T1)])
    assert [type(outcome) for outcome in outcomes] == [ConnectionLost, ConnectionLost]
    cluster.fail("Produce", drop_after)
    with pytest.raises(ConnectionLost):
        await requests(client).send_one(batch())
    assert len(cluster.asked("Produce")) == 2, "it is sent once"


@against_a_fake()
async def test_the_place_of_a_batch_is_not_known_with_acks_0(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    await client.cluster.topic("t")
    assert await requests(client, acks=0).send(0, [batch()]) == [Placed(-1, NO_TIMESTAMP)]


@against_a_fake()
async def test_a_repeat_is_written_if_the_producer_numbers_its_batches_and_an_error_if_not(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    cluster.fail("Produce", *[refuse(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)] * 2)
    assert await requests(client).send_one(batch()) == -1
    with pytest.raises(BrokerError, match="DUPLICATE_SEQUENCE_NUMBER"):
        await requests(client, idempotent=False).send_one(batch())


@pytest.mark.parametrize(
    ("error", "age_s", "may_pass"),
    [
        (Unreachable("gone"), 0.0, True),
        (Unreachable("gone"), 10.0, False),  # delivery_timeout_ms has passed
        (BrokerError(ErrorCode.MESSAGE_TOO_LARGE, "producing"), 0.0, False),
        (BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "producing"), 1.0, True),
        (BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "producing"), 6.0, False),  # it is not coming back
    ],
)
def test_which_errors_may_pass(error: TidelogError, age_s: float, may_pass: bool) -> None:
    cluster = Cluster([Address("127.0.0.1", 9092)], ClientOptions())
    assert ProduceRequests(cluster, ProducerOptions(delivery_timeout_ms=9000)).may_pass(error, age_s) == may_pass
