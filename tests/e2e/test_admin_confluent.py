"""What an operator asks through confluent-kafka's AdminClient."""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ElectionType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)

from tests.e2e.clients import Confluent, Message
from tests.e2e.clients.base import SECONDS
from tests.e2e.clients.confluent import common
from tests.e2e.clients.confluent_admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from tests.e2e.conftest import MakeTopic
from tests.support.brokers import BrokerProcess, eventually, unique


@pytest.fixture
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient(common(broker.bootstrap))


@pytest.fixture
def client(broker: BrokerProcess) -> Confluent:
    return Confluent(broker.bootstrap)


def only(futures: dict[Any, Future[Any]]) -> Any:
    (future,) = futures.values()
    return future.result(SECONDS)


def refusal(ask: Callable[[], Any]) -> int:
    with pytest.raises(KafkaException) as refused:
        ask()
    code: int = refused.value.args[0].code()
    return code


# Topics


def test_topics_are_created_described_and_deleted(admin: AdminClient) -> None:
    name = unique("topic")
    only(admin.create_topics([NewTopic(name, 3, 1, config={"retention.ms": "1234567"})]))
    topic = only(admin.describe_topics(TopicCollection([name])))
    assert (topic.name, topic.is_internal, len(topic.partitions)) == (name, False, 3)
    assert [[node.id for node in partition.replicas] for partition in topic.partitions] == [[0]] * 3
    assert [partition.leader.id for partition in topic.partitions] == [0] * 3
    listed = admin.list_topics(timeout=SECONDS).topics[name]
    assert sorted(listed.partitions) == [0, 1, 2]
    only(admin.delete_topics([name]))
    assert name not in admin.list_topics(timeout=SECONDS).topics
    assert refusal(lambda: only(admin.delete_topics([name]))) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_deleted_topic_can_be_created_anew_and_begins_empty(admin: AdminClient, client: Confluent) -> None:
    name = unique("topic")
    ids = []
    for _ in range(3):
        only(admin.create_topics([NewTopic(name, 1, 1)]))
        ids.append(str(only(admin.describe_topics(TopicCollection([name]))).topic_id))
        assert client.produce(name, [Message(b"value")]) == [(0, 0)]
        only(admin.delete_topics([name]))
    assert len(set(ids)) == 3


def test_the_default_number_of_partitions_is_the_brokers(admin: AdminClient) -> None:
    name = unique("topic")
    only(admin.create_topics([NewTopic(name)]))
    assert len(only(admin.describe_topics(TopicCollection([name]))).partitions) == 1


def test_a_trial_creates_nothing(admin: AdminClient) -> None:
    name = unique("topic")
    only(admin.create_topics([NewTopic(name, 1, 1)], validate_only=True))
    assert name not in admin.list_topics(timeout=SECONDS).topics
    new = NewTopic("no/topic", 1, 1)
    assert refusal(lambda: only(admin.create_topics([new], validate_only=True))) == KafkaError.TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (lambda: NewTopic("white space", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (lambda: NewTopic("ünicode", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (lambda: NewTopic("..", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (lambda: NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (lambda: NewTopic(unique("topic"), 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (lambda: NewTopic(unique("topic"), 0, 1), KafkaError.INVALID_PARTITIONS),
        (lambda: NewTopic(unique("topic"), 100_000, 1), KafkaError.POLICY_VIOLATION),
        (lambda: NewTopic(unique("topic"), 1, 1, config={"no.such": "1"}), KafkaError.INVALID_CONFIG),
        (lambda: NewTopic(unique("topic"), 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (
            lambda: NewTopic(unique("topic"), num_partitions=1, replica_assignment=[[7]]),
            KafkaError.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_topics_that_cannot_be_are_refused(admin: AdminClient, new: Callable[[], NewTopic], code: int) -> None:
    assert refusal(lambda: only(admin.create_topics([new()]))) == code


def test_an_existing_topic_is_not_created_again(admin: AdminClient, make_topic: MakeTopic) -> None:
    name = make_topic()
    assert refusal(lambda: only(admin.create_topics([NewTopic(name, 1, 1)]))) == KafkaError.TOPIC_ALREADY_EXISTS


def test_one_refusal_does_not_keep_the_others_from_being_created(admin: AdminClient, make_topic: MakeTopic) -> None:
    existing, new = make_topic(), unique("topic")
    futures = admin.create_topics([NewTopic(existing, 1, 1), NewTopic(new, 1, 1)])
    futures[new].result(SECONDS)
    with pytest.raises(KafkaException):
        futures[existing].result(SECONDS)


def test_partitions_can_be_added_and_never_taken(
    admin: AdminClient, client: Confluent, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    only(admin.create_partitions([NewPartitions(topic, 5)]))
    assert len(only(admin.describe_topics(TopicCollection([topic]))).partitions) == 5
    assert client.produce(topic, [Message(b"value", partition=4)]) == [(4, 0)]
    for count in (5, 3):
        ask = partial(admin.create_partitions, [NewPartitions(topic, count)])
        assert refusal(lambda ask=ask: only(ask())) == KafkaError.INVALID_PARTITIONS  # type: ignore[misc]
    missing = NewPartitions(unique("topic"), 3)
    assert refusal(lambda: only(admin.create_partitions([missing]))) == KafkaError.UNKNOWN_TOPIC_OR_PART


# Configs


def configs_of(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    found: dict[str, ConfigEntry] = only(admin.describe_configs([ConfigResource(kind, name)]))
    return found


def altered(topic: str, operation: AlterConfigOpType, name: str, value: str | None = None) -> ConfigResource:
    entry = ConfigEntry(name, value, incremental_operation=operation)
    return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])


def test_configs_are_described_with_their_sources(admin: AdminClient, make_topic: MakeTopic) -> None:
    configs = configs_of(admin, ResourceType.TOPIC, make_topic(configs={"retention.ms": "1000"}))
    assert configs["retention.ms"].value == "1000"
    assert configs["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value  # type: ignore[comparison-overlap]
    assert configs["cleanup.policy"].value == "delete"
    assert configs["cleanup.policy"].source == ConfigSource.DEFAULT_CONFIG.value  # type: ignore[comparison-overlap]
    broker = configs_of(admin, ResourceType.BROKER, "0")
    assert broker["group.min.session.timeout.ms"].source == ConfigSource.STATIC_BROKER_CONFIG.value  # type: ignore[comparison-overlap]


def test_single_configs_are_set_extended_and_deleted(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    steps: list[tuple[AlterConfigOpType, str, str | None, str]] = [
        (AlterConfigOpType.SET, "retention.ms", "5000", "5000"),
        (AlterConfigOpType.APPEND, "cleanup.policy", "compact", "delete,compact"),
        (AlterConfigOpType.SUBTRACT, "cleanup.policy", "delete", "compact"),
        (AlterConfigOpType.DELETE, "retention.ms", None, "604800000"),
    ]
    for operation, name, value, then in steps:
        only(admin.incremental_alter_configs([altered(topic, operation, name, value)]))
        assert configs_of(admin, ResourceType.TOPIC, topic)[name].value == then


def test_altering_all_configs_resets_those_that_are_not_named(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"retention.ms": "1000", "segment.bytes": "20000"})
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.bytes": "30000"})
    with pytest.warns(DeprecationWarning, match="incremental"):
        only(admin.alter_configs([resource]))
    configs = configs_of(admin, ResourceType.TOPIC, topic)
    assert (configs["segment.bytes"].value, configs["retention.ms"].value) == ("30000", "604800000")


def test_what_is_no_config_is_refused(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for name, value in (("no.such.config", "1"), ("retention.ms", "soon"), ("compression.type", "rar")):
        ask = partial(admin.incremental_alter_configs, [altered(topic, AlterConfigOpType.SET, name, value)])
        assert refusal(lambda ask=ask: only(ask())) == KafkaError.INVALID_CONFIG  # type: ignore[misc]
    missing = altered(unique("topic"), AlterConfigOpType.SET, "retention.ms", "1")
    assert refusal(lambda: only(admin.incremental_alter_configs([missing]))) == KafkaError.UNKNOWN_TOPIC_OR_PART
    unknown = ConfigResource(ResourceType.TOPIC, unique("topic"))
    assert refusal(lambda: only(admin.describe_configs([unknown]))) == KafkaError.UNKNOWN_TOPIC_OR_PART


# The cluster


def test_the_cluster_is_described(admin: AdminClient, broker: BrokerProcess) -> None:
    cluster = admin.describe_cluster().result(SECONDS)
    assert len(cluster.cluster_id) == 22
    assert [(node.id, node.host, node.port) for node in cluster.nodes] == [(0, "127.0.0.1", broker.port)]
    assert cluster.controller.id == 0


def test_what_a_client_may_do_is_told_if_it_asks(
    admin: AdminClient, client: Confluent, make_topic: MakeTopic
) -> None:
    topic, group = make_topic(), unique("group")
    with client.reader(topic, group=group) as reader:
        eventually(lambda: reader.poll(0.05) or reader.assignment())
        groups = [
            only(admin.describe_consumer_groups([group], include_authorized_operations=ask)) for ask in (True, False)
        ]
    clusters = [admin.describe_cluster(include_authorized_operations=ask).result(SECONDS) for ask in (True, False)]
    topics = [
        only(admin.describe_topics(TopicCollection([topic]), include_authorized_operations=ask))
        for ask in (True, False)
    ]
    for asked, not_asked in (groups, clusters, topics):
        assert AclOperation.DESCRIBE_CONFIGS in asked.authorized_operations
        assert not_asked.authorized_operations is None
    assert AclOperation.WRITE in topics[0].authorized_operations
    assert AclOperation.READ in groups[0].authorized_operations
    assert AclOperation.CLUSTER_ACTION in clusters[0].authorized_operations


def test_access_is_not_controlled_and_there_are_no_users(admin: AdminClient) -> None:
    anything: Any = None
    everything = AclBindingFilter(
        ResourceType.ANY,
        anything,
        ResourcePatternType.ANY,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert admin.describe_acls(everything).result(SECONDS) == []  # the client does not tell that security is disabled
    everybody: Any = admin.describe_user_scram_credentials()
    assert everybody.result(SECONDS) == {}
    nobody: Any = admin.describe_user_scram_credentials(["nobody"])
    assert refusal(lambda: only(nobody)) == KafkaError.RESOURCE_NOT_FOUND


def test_elections_are_not_needed(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    wanted = [TopicPartition(topic, 0), TopicPartition(topic, 9)]
    results = admin.elect_leaders(ElectionType.PREFERRED, wanted).result(SECONDS)
    codes = {place.partition: error.code() for place, error in results.items()}
    assert codes == {0: KafkaError.ELECTION_NOT_NEEDED, 9: KafkaError.UNKNOWN_TOPIC_OR_PART}


# Records and offsets


def test_records_are_deleted_up_to_an_offset(admin: AdminClient, client: Confluent, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, [Message(b"%d" % number) for number in range(10)])
    deleted = only(admin.delete_records([TopicPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4
    with client.reader(topic) as reader:
        assert reader.watermarks(0) == (4, 10)
        reader.assign({0: 4})
        assert [record.offset for record in reader.read(6)] == list(range(4, 10))
    assert refusal(lambda: only(admin.delete_records([TopicPartition(topic, 0, 11)]))) == (
        KafkaError.OFFSET_OUT_OF_RANGE
    )
    assert only(admin.delete_records([TopicPartition(topic, 0, -1)])).low_watermark == 10  # everything


def test_offsets_are_listed_by_every_spec(admin: AdminClient, client: Confluent, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"retention.ms": "-1"})  # the records are old
    stamps = [1000, 5000, 9000, 2000]
    client.produce(topic, [Message(b"x", partition=0, timestamp_ms=1_700_000_000_000 + each) for each in stamps])
    place = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        found: int = only(admin.list_offsets({place: spec})).offset
        return found

    assert offset(OffsetSpec.earliest()) == 0  # type: ignore[no-untyped-call]
    assert offset(OffsetSpec.latest()) == 4  # type: ignore[no-untyped-call]
    assert offset(OffsetSpec.max_timestamp()) == 2  # type: ignore[no-untyped-call]
    assert offset(OffsetSpec.for_timestamp(1_700_000_004_000)) == 1
    assert offset(OffsetSpec.for_timestamp(1_700_000_099_000)) == -1


# Groups


def test_groups_are_listed_described_and_deleted(
    admin: AdminClient, client: Confluent, make_topic: MakeTopic
) -> None:
    topic, group = make_topic(2), unique("group")
    client.produce(topic, [Message(b"x", partition=n % 2) for n in range(10)])
    with client.reader(topic, group=group) as reader:
        reader.read(10)
        reader.commit()
        listed = {each.group_id: each for each in admin.list_consumer_groups().result(SECONDS).valid}
        assert listed[group].state == ConsumerGroupState.STABLE
        described = only(admin.describe_consumer_groups([group]))
        assert described.state == ConsumerGroupState.STABLE
        assert described.partition_assignor == "range"
        assert described.coordinator.id == 0
        (member,) = described.members
        assert member.host == "/127.0.0.1"
        assert {place.partition for place in member.assignment.topic_partitions} == {0, 1}
        assert refusal(lambda: only(admin.delete_consumer_groups([group]))) == KafkaError.NON_EMPTY_GROUP
    assert only(admin.describe_consumer_groups([group])).state == ConsumerGroupState.EMPTY
    only(admin.delete_consumer_groups([group]))
    assert group not in {each.group_id for each in admin.list_consumer_groups().result(SECONDS).valid}
    assert refusal(lambda: only(admin.delete_consumer_groups([group]))) == KafkaError.GROUP_ID_NOT_FOUND


def test_groups_are_listed_by_state(admin: AdminClient, client: Confluent, make_topic: MakeTopic) -> None:
    topic, group = make_topic(), unique("group")
    with client.reader(topic, group=group) as reader:
        eventually(lambda: reader.poll(0.05) or reader.assignment())
        for state, there in ((ConsumerGroupState.STABLE, True), (ConsumerGroupState.EMPTY, False)):
            listed = admin.list_consumer_groups(states={state}).result(SECONDS).valid
            assert (group in {each.group_id for each in listed}) is there


def test_offsets_of_a_group_are_listed_and_altered(
    admin: AdminClient, client: Confluent, make_topic: MakeTopic
) -> None:
    topic, group = make_topic(2), unique("group")
    client.produce(topic, [Message(b"x", partition=n % 2) for n in range(10)])
    places = [TopicPartition(topic, 0, 3), TopicPartition(topic, 1, 5)]
    only(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)]))

    def committed() -> dict[int, int]:
        found = only(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
        return {place.partition: place.offset for place in found.topic_partitions}

    assert committed() == {0: 3, 1: 5}
    with client.reader(topic, group=group) as reader:
        assert [record.place for record in reader.read(2)] == [(0, 3), (0, 4)]
        moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])
        (refused,) = only(admin.alter_consumer_group_offsets([moved])).topic_partitions
        assert refused.error.code() == KafkaError.UNKNOWN_MEMBER_ID
    only(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])]))
    assert committed() == {0: 0, 1: 5}
