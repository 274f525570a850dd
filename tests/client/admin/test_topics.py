"""Topics, configs and records are asked for and changed."""

import pytest

from tests.client.consuming.test_consumer import fill
from tests.client.fake_broker import Answer, FakeCluster, Reply, against_a_fake, refuse
from tidelog.client import EARLIEST, LATEST, AsyncClient, BrokerError, OffsetAtTime
from tidelog.model import TopicPartition
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.primitives import Struct

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@against_a_fake(nodes=2)
async def test_the_cluster_is_described(cluster: FakeCluster, client: AsyncClient) -> None:
    info = await client.admin.cluster_info()
    assert (info.cluster_id, info.controller_id, [node.id for node in info.nodes]) == ("fake", 0, [0, 1])


@against_a_fake()
async def test_a_topic_is_created_listed_grown_and_deleted(cluster: FakeCluster, client: AsyncClient) -> None:
    admin = client.admin
    await admin.create_topic("t", partitions=2, configs={"retention.ms": "5"})
    await admin.create_topic("a")
    assert [(topic.name, len(topic.partitions)) for topic in await admin.topics()] == [("a", 1), ("t", 2)]
    await admin.add_partitions("t", 3)
    assert len((await admin.topic("t")).partitions) == 3
    with pytest.raises(BrokerError, match="growing topic 't' to 2 partitions"):
        await admin.add_partitions("t", 2)
    await admin.delete_topic("t")
    assert [topic.name for topic in await admin.topics()] == ["a"]
    with pytest.raises(BrokerError, match="deleting topic 't'"):
        await admin.delete_topic("t")


@against_a_fake()
async def test_creating_a_topic_again_is_an_error_with_its_code(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    with pytest.raises(BrokerError, match="creating topic 't': it exists already") as error:
        await client.admin.create_topic("t")
    assert error.value.kafka_code == ErrorCode.TOPIC_ALREADY_EXISTS


@against_a_fake()
async def test_creating_waits_until_the_topic_can_be_used(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.fail("CreateTopics", refuse(ErrorCode.NOT_CONTROLLER))
    cluster.fail("Metadata", refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), refuse(ErrorCode.LEADER_NOT_AVAILABLE))
    await client.admin.create_topic("t")
    assert client.cluster.cached_topic("t") is not None


@against_a_fake(nodes=2)
async def test_a_new_controller_is_found(cluster: FakeCluster, client: AsyncClient) -> None:
    await client.admin.create_topic("a")

    async def resign(answer: Answer, request: Struct) -> Reply:
        cluster.controller = 1
        return await refuse(ErrorCode.NOT_CONTROLLER)(answer, request)

    cluster.fail("CreateTopics", resign)
    await client.admin.create_topic("b")
    assert cluster.asked("CreateTopics") == [0, 0, 1]


@against_a_fake()
async def test_a_dry_run_creates_nothing(cluster: FakeCluster, client: AsyncClient) -> None:
    await client.admin.create_topic("t", validate_only=True)
    assert cluster.topics == {}


@against_a_fake()
async def test_configs_are_set_and_taken_back(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t").configs = {"a": "1", "b": "2"}
    await client.admin.alter_topic_configs("t", {"a": "3", "b": None})
    (entry,) = await client.admin.topic_configs("t")
    assert (entry.name, entry.value, entry.source, entry.is_default) == ("a", "3", "topic", False)


@against_a_fake(nodes=2)
async def test_offsets_and_records_of_partitions(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=2)
    fill(cluster, "t", range(5))
    fill(cluster, "t", range(3), partition=1)
    assert await client.admin.offsets({T0: LATEST, T1: LATEST}) == {T0: OffsetAtTime(5, -1), T1: OffsetAtTime(3, -1)}
    assert await client.admin.offsets({T0: 4, T1: 4}) == {T0: OffsetAtTime(4, 4), T1: OffsetAtTime(-1, -1)}
    assert await client.admin.delete_records({T0: 2, T1: -1}) == {T0: 2, T1: 3}
    assert (await client.admin.offsets({T0: EARLIEST}))[T0].offset == 2
    rows = await client.admin.partitions("t")
    assert [(row.partition, row.leader, row.start_offset, row.end_offset) for row in rows] == [
        (0, 0, 2, 5),
        (1, 1, 3, 3),
    ]
