"""What one broker can do, a cluster can: whoever is asked, the right broker does it, and all know of it."""

from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.gateways.raw import RawClient
from tests.support.brokers import eventually, unique
from tests.support.clusters import ClusterProcesses, cluster_of
from tidelog.gateways.kafka.config_resources import BROKER, GROUP, TOPIC
from tidelog.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tidelog.wire.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic

SECONDS = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    with cluster_of(3, tmp_path_factory.mktemp("cluster")) as running:
        yield running


def alter(broker: RawClient, kind: int, resource: str, name: str, value: str) -> tuple[int, str | None]:
    wanted = AlterConfigsResource(kind, resource, [AlterableConfig(name, 0, value)])
    (done,) = broker.ask("IncrementalAlterConfigs", 1, IncrementalAlterConfigsRequest([wanted])).responses
    return done.error_code, done.error_message


def value_of(broker: RawClient, kind: int, resource: str, name: str) -> str:
    wanted = DescribeConfigsResource(kind, resource, [name])
    (found,) = broker.ask("DescribeConfigs", 4, DescribeConfigsRequest([wanted])).results
    assert found.error_code == 0, found.error_message
    return str(found.configs[0].value) if found.configs else ""


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TOPIC, "retention.ms"), (GROUP, "consumer.session.timeout.ms"), (BROKER, "log.retention.ms")],
)
def test_configs_are_altered_at_any_broker_and_known_at_all(cluster: ClusterProcesses, kind: int, name: str) -> None:
    resource = "" if kind == BROKER else unique("resource")
    clients = [RawClient(broker.port) for broker in cluster.brokers]
    try:
        if kind == TOPIC:
            clients[0].create_topic(resource)
        for number, client in enumerate(clients):
            value = str(50_000 + number)
            assert alter(client, kind, resource, name, value) == (0, None)
            assert value_of(client, kind, resource, name) == value, "whoever was asked knows it at once"
            for other in clients:
                look = partial(value_of, other, kind, resource, name)
                eventually(look, within=SECONDS, until=value.__eq__)
    finally:
        for client in clients:
            client.close()


def test_configs_of_one_broker_are_altered_at_any_and_hold_there(cluster: ClusterProcesses) -> None:
    name = "log.retention.ms"
    clients = [RawClient(broker.port) for broker in cluster.brokers]
    try:
        for asked in range(3):
            for broker_id in (1, 2, 3):
                value = str(70_000 + 10 * asked + broker_id)
                assert alter(clients[asked], BROKER, str(broker_id), name, value) == (0, None)
                look = partial(value_of, clients[broker_id - 1], BROKER, str(broker_id), name)
                eventually(look, within=SECONDS, until=value.__eq__)
            code, why = alter(clients[asked], BROKER, "9", name, "1")
            assert code == 42
            assert "there is no broker '9'" in str(why)
    finally:
        for client in clients:
            client.close()


def test_a_topic_is_created_with_the_leaders_that_were_asked_for(cluster: ClusterProcesses) -> None:
    leaders = [3, 1, 2, 3, 3]
    for broker in cluster.brokers:
        with RawClient(broker.port) as client:
            name = unique("topic")
            assignments = [CreatableReplicaAssignment(number, [leader]) for number, leader in enumerate(leaders)]
            wanted = CreatableTopic(name, -1, -1, assignments)
            (made,) = client.ask("CreateTopics", 7, CreateTopicsRequest([wanted], 10_000)).topics
            assert (made.error_code, made.error_message) == (0, None)

            def led(name: str = name, client: RawClient = client) -> list[int]:
                (topic,) = client.ask("Metadata", 12, MetadataRequest([MetadataRequestTopic(name=name)])).topics
                return [each.leader_id for each in sorted(topic.partitions, key=lambda each: each.partition_index)]

            eventually(led, within=SECONDS, until=leaders.__eq__)
            nowhere = CreatableTopic(unique("topic"), -1, -1, [CreatableReplicaAssignment(0, [4])])
            (refused,) = client.ask("CreateTopics", 7, CreateTopicsRequest([nowhere], 10_000)).topics
            assert refused.error_code == 39
            assert "there are only brokers 1, 2, 3" in refused.error_message


def test_retention_waits_for_a_group_whoever_coordinates_it(cluster: ClusterProcesses) -> None:
    topic, group = unique("topic"), unique("group")
    with RawClient(cluster.brokers[0].port) as client:
        assignments = [CreatableReplicaAssignment(number, [number + 1]) for number in range(3)]
        configs = [
            CreatableTopicConfig("retention.ms", "1"),
            CreatableTopicConfig("tidelog.retention.wait.for.group", group),
        ]
        wanted = CreatableTopic(topic, -1, -1, assignments, configs)
        (made,) = client.ask("CreateTopics", 7, CreateTopicsRequest([wanted], 10_000)).topics
        assert made.error_code == 0
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for _ in range(2):
        for partition in range(3):
            for number in range(5):
                producer.produce(topic, str(number), partition=partition, timestamp=1_000)
        assert producer.flush(SECONDS) == 0  # so that there are two pieces
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False})

    def starts() -> list[int]:
        return [
            consumer.get_watermark_offsets(TopicPartition(topic, number), SECONDS, cached=False)[0]
            for number in range(3)
        ]

    try:
        assert starts() == [0, 0, 0]
        consumer.commit(
            offsets=[TopicPartition(topic, number, offset) for number, offset in enumerate((5, 10, 5))],
            asynchronous=False,
        )
        eventually(starts, within=SECONDS, until=[5, 10, 5].__eq__)
    finally:
        consumer.close()
