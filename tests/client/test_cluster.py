"""The brokers as a client knows them: what is wrong is asked for again, what is gone is found again."""

import pytest

from tests.client.fake_broker import FAST, FakeCluster, against_a_fake, drop_after, drop_before, refuse, silence
from tidelog.client import AsyncClient, BrokerError, ClientClosed, ClientOptions, ConnectionLost, Unreachable
from tidelog.client.options import Address
from tidelog.model import TopicPartition
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.metadata import MetadataRequest


@against_a_fake(nodes=2)
async def test_partitions_are_asked_for_at_their_leaders(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=4)
    groups = await client.cluster.by_leader(TopicPartition("t", number) for number in range(4))
    assert {node: [p.partition for p in group] for node, group in groups.items()} == {0: [0, 2], 1: [1, 3]}
    assert cluster.asked("Metadata").count(0) + cluster.asked("Metadata").count(1) == 2  # the start, and once for all


@against_a_fake()
async def test_one_connection_serves_a_broker(cluster: FakeCluster, client: AsyncClient) -> None:
    for _ in range(5):
        await client.admin.topics()
    assert len(cluster.asked("ApiVersions")) == 1


@against_a_fake()
async def test_a_topic_that_is_not_there_is_an_error_soon(cluster: FakeCluster, client: AsyncClient) -> None:
    with pytest.raises(
        BrokerError, match=r"'nowhere': it does not exist; create it with: tidelog topic create nowhere"
    ):
        await client.cluster.topic("nowhere")
    assert 2 < len(cluster.asked("Metadata")) < 20  # not at the first look


@against_a_fake()
async def test_a_topic_that_was_just_created_is_found(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    cluster.fail("Metadata", refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), refuse(ErrorCode.LEADER_NOT_AVAILABLE))
    assert (await client.cluster.topic("t")).name == "t"


@against_a_fake()
async def test_a_dropped_connection_is_opened_again(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    cluster.fail("Metadata", drop_before, drop_after)
    assert (await client.cluster.topic("t")).name == "t"
    assert len(cluster.asked("ApiVersions")) == 3


@against_a_fake(options=ClientOptions(retry_backoff_ms=1, retry_backoff_max_ms=2, request_timeout_ms=30))
async def test_a_request_without_a_reply_is_tried_again(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    cluster.fail("Metadata", silence)
    assert (await client.cluster.topic("t")).name == "t"


@against_a_fake(options=ClientOptions(retry_backoff_ms=1, retry_backoff_max_ms=2, timeout_ms=60))
async def test_retries_end_at_the_deadline_with_the_last_error(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.fail("Metadata", *[drop_before] * 200)
    with pytest.raises(ConnectionLost):
        await client.admin.topics()


@against_a_fake()
async def test_what_may_have_been_done_is_not_done_twice(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.fail("CreateTopics", drop_after)
    with pytest.raises(ConnectionLost):
        await client.admin.create_topic("t")
    assert cluster.asked("CreateTopics") == [0]
    assert list(cluster.topics) == ["t"]


@against_a_fake()
async def test_a_broker_that_comes_back_is_found_again(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    await cluster.nodes[0].stop()
    with pytest.raises((Unreachable, ConnectionLost)):
        await client.cluster.request("Metadata", MetadataRequest())
    await cluster.nodes[0].start()
    assert (await client.cluster.topic("t")).name == "t"


@against_a_fake(nodes=2)
async def test_another_broker_is_asked_when_one_is_gone(cluster: FakeCluster, client: AsyncClient) -> None:
    await cluster.nodes[0].stop()
    cluster.create("t")
    assert (await client.cluster.topic("t")).name == "t"
    await cluster.nodes[0].start()


@against_a_fake()
async def test_all_addresses_that_fail_are_named(cluster: FakeCluster, client: AsyncClient) -> None:
    await cluster.nodes[0].stop()
    first = Address("127.0.0.1", cluster.nodes[0].port)
    lost = AsyncClient(f"{first},no-such-host.invalid:1", FAST)
    with pytest.raises(Unreachable) as error:
        await lost.__aenter__()
    assert str(first) in str(error.value)
    assert "no-such-host.invalid:1" in str(error.value)
    await cluster.nodes[0].start()


@against_a_fake()
async def test_a_closed_client_says_so(cluster: FakeCluster, client: AsyncClient) -> None:
    await client.close()
    with pytest.raises(ClientClosed):
        await client.admin.topics()


@against_a_fake()
async def test_a_partition_beyond_the_topic_is_named(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=2)
    with pytest.raises(BrokerError, match="partition t-5: the topic has 2"):
        await client.cluster.leader(TopicPartition("t", 5))


@against_a_fake()
async def test_a_node_that_nobody_knows_is_an_error_that_may_pass(cluster: FakeCluster, client: AsyncClient) -> None:
    with pytest.raises(Unreachable, match="node 9") as error:
        await client.cluster.connection(9)
    assert error.value.retriable
