"""What an operator asks through kafka-python's KafkaAdminClient, which speaks newer versions of some APIs."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.clients import KafkaPython, Message
from tests.e2e.conftest import MakeTopic
from tests.support.brokers import BrokerProcess, unique
from tests.support.engines import place_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaAdminClient, TopicPartition  # type: ignore[import-untyped]
    from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec  # type: ignore[import-untyped]
    from kafka.errors import (  # type: ignore[import-untyped]
        GroupSubscribedToTopicError,
        InvalidPartitionsError,
        InvalidReplicationFactorError,
        InvalidTopicError,
        KafkaError,
        OffsetOutOfRangeError,
        TopicAlreadyExistsError,
        UnknownTopicOrPartitionError,
    )
    from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap, request_timeout_ms=10_000)
    yield client
    client.close()


@pytest.fixture
def client(broker: BrokerProcess) -> KafkaPython:
    return KafkaPython(broker.bootstrap)


def test_topics_are_created_described_and_deleted(admin: Any) -> None:
    name = unique("topic")
    admin.create_topics({name: {"num_partitions": 3, "replication_factor": 1, "configs": {"retention.ms": "9"}}})
    assert name in admin.list_topics()
    (topic,) = admin.describe_topics([name])
    assert (topic["name"], len(topic["partitions"])) == (name, 3)
    assert topic["partitions"][0]["leader_id"] == 0
    admin.delete_topics([name])
    assert name not in admin.list_topics()
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([name])


def test_topics_that_cannot_be_are_refused(admin: Any, make_topic: MakeTopic) -> None:
    for name, options, error in (
        (make_topic(), {}, TopicAlreadyExistsError),
        ("no/topic", {}, InvalidTopicError),
        (unique("topic"), {"replication_factor": 2}, InvalidReplicationFactorError),
        (unique("topic"), {"num_partitions": 0}, InvalidPartitionsError),
    ):
        with pytest.raises(error):
            admin.create_topics({name: options})


def test_partitions_are_added(admin: Any, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    admin.create_partitions({topic: 4})
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 4
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 4})
    described = admin.describe_topic_partitions([topic], response_partition_limit=3)
    assert len(described["topics"][0]["partitions"]) == 3
    assert described["next_cursor"] == {"topic_name": topic, "partition_index": 3}
    rest = admin.describe_topic_partitions([topic], cursor=described["next_cursor"])
    assert [each["partition_index"] for each in rest["topics"][0]["partitions"]] == [3]


@pytest.mark.parametrize("incremental", [True, False])
def test_configs_are_altered_and_reset(admin: Any, make_topic: MakeTopic, incremental: bool) -> None:
    topic = make_topic()

    def value(name: str) -> str:
        found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
        text: str = found["topic"][topic][name]["value"]
        return text

    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "4321"})
    assert admin.alter_configs([resource], incremental=incremental) == {"topic": {topic: "OK"}}
    assert value("retention.ms") == "4321"
    admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": None})])
    assert value("retention.ms") == "604800000"
    wrong = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "soon"})
    assert "retention.ms" in admin.alter_configs([wrong], incremental=incremental)["topic"][topic]


def test_brokers_have_configs_too(admin: Any) -> None:
    found = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "0")], config_filter="all")
    assert found["broker"]["0"]["num.partitions"]["value"] == "1"
    assert "0" in admin.list_config_resources(["broker"])["broker"]


def test_the_cluster_and_its_log_directories_are_described(
    admin: Any, broker: BrokerProcess, client: KafkaPython, make_topic: MakeTopic
) -> None:
    cluster = admin.describe_cluster()
    assert [(node["broker_id"], node["port"]) for node in cluster["brokers"]] == [(0, broker.port)]
    topic = make_topic(2)
    client.produce(topic, [Message(b"x" * 5000, partition=1)])
    ((directory,),) = (each["log_dirs"] for each in admin.describe_log_dirs([topic]))
    assert directory["log_dir"] == place_of(broker)
    sizes = {
        each["partition_index"]: each["partition_size"]
        for found in directory["topics"]
        if found["name"] == topic
        for each in found["partitions"]
    }
    assert sizes[0] == 0
    assert sizes[1] > 5000


def test_what_a_client_may_do_is_told(admin: Any, client: KafkaPython, make_topic: MakeTopic) -> None:
    topic, group = make_topic(), unique("group")
    assert "CLUSTER_ACTION" in str(admin.describe_cluster()["authorized_operations"])
    (described,) = admin.describe_topics([topic])
    assert "WRITE" in str(described["authorized_operations"])
    client.produce(topic, [Message(b"x")])
    with client.reader(topic, group=group) as reader:
        reader.read(1)
        told = admin.describe_groups([group], include_authorized_operations=True)[group]
    assert "READ" in str(told["authorized_operations"])


def test_features_the_quorum_and_users_are_described(admin: Any, broker: BrokerProcess) -> None:
    features = admin.describe_features()
    assert {name: features[name]["finalized"] for name in features if "finalized" in features[name]} == {
        "group.version": (1, 1),
        "metadata.version": (29, 29),
        "transaction.version": (2, 2),
    }
    quorum = admin.describe_metadata_quorum()
    (partition,) = quorum["topics"][0]["partitions"]
    assert (partition["leader_id"], [voter["replica_id"] for voter in partition["current_voters"]]) == (0, [0])
    assert [listener["port"] for node in quorum["nodes"] for listener in node["listeners"]] == [broker.port]
    assert admin.describe_user_scram_credentials() == {}


def test_elections_are_not_needed(admin: Any, make_topic: MakeTopic) -> None:
    topic = make_topic()
    result = admin.elect_leaders(0, {topic: [0]}, raise_errors=False)
    assert "84" in str(result)  # ELECTION_NOT_NEEDED


def test_records_are_deleted_and_offsets_listed(admin: Any, client: KafkaPython, make_topic: MakeTopic) -> None:
    topic = make_topic()
    place = TopicPartition(topic, 0)
    client.produce(topic, [Message(b"%d" % number) for number in range(10)])
    assert admin.delete_records({place: 6})[place]["low_watermark"] == 6
    assert admin.list_partition_offsets({place: OffsetSpec.EARLIEST})[place].offset == 6
    assert admin.list_partition_offsets({place: OffsetSpec.LATEST})[place].offset == 10
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({place: 11})


def test_producers_are_described(admin: Any, client: KafkaPython, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, [Message(b"%d" % number) for number in range(5)], idempotent=True)
    described = str(admin.describe_producers([TopicPartition(topic, 0)]))
    assert "producer_id" in described
    assert "last_sequence" in described


def test_groups_and_their_offsets(admin: Any, client: KafkaPython, make_topic: MakeTopic) -> None:
    topic, group = make_topic(), unique("group")
    place = TopicPartition(topic, 0)
    client.produce(topic, [Message(b"%d" % number) for number in range(5)])
    with client.reader(topic, group=group) as reader:
        reader.read(5)
        reader.commit()
        assert group in {each["group_id"] for each in admin.list_groups(states_filter=["Stable"])}
        described = admin.describe_groups([group])[group]
        assert (described["group_state"], described["protocol_data"]) == ("Stable", "range")
        assert [member["client_host"] for member in described["members"]] == ["/127.0.0.1"]
        assert admin.list_group_offsets({group: None})[group][place].offset == 5
        with pytest.raises(GroupSubscribedToTopicError):
            raise_first(admin.delete_group_offsets(group, [place]))
        assert admin.delete_groups([group])[group] != "OK"
    admin.alter_group_offsets(group, {place: OffsetAndMetadata(2, "note", -1)})
    altered = admin.list_group_offsets({group: [place]})[group][place]
    assert (altered.offset, altered.metadata) == (2, "note")
    raise_first(admin.delete_group_offsets(group, [place]))
    assert place not in admin.list_group_offsets({group: None})[group]
    assert admin.delete_groups([group])[group] == "OK"
    assert group not in {each["group_id"] for each in admin.list_groups()}


def raise_first(results: Any) -> None:
    """Errors come as values in some versions of the client."""
    for error in results.values() if isinstance(results, dict) else ():
        if isinstance(error, type) and issubclass(error, KafkaError) and getattr(error, "errno", None):
            raise error
