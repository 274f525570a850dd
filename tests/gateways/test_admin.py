"""What admin tools ask a broker over the wire: rights, configs, features, and services that are not there."""

import struct
from typing import Any

import pytest

from tests.gateways.conftest import StartBroker
from tests.gateways.raw import RawClient
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.engines import place_of
from tidelog.broker.config_table import BROKER_CONFIGS
from tidelog.wire.apis import BY_NAME
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated import (
    alter_client_quotas,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    delete_acls,
    describe_acls,
    describe_client_quotas,
    describe_delegation_token,
    describe_quorum,
    describe_share_group_offsets,
    describe_user_scram_credentials,
    expire_delegation_token,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    share_group_describe,
    streams_group_describe,
    unregister_broker,
    update_features,
)
from tidelog.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.generated.api_versions import ApiVersionsRequest
from tidelog.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tidelog.wire.generated.describe_cluster import DescribeClusterRequest
from tidelog.wire.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest
from tidelog.wire.generated.describe_log_dirs import DescribeLogDirsRequest
from tidelog.wire.generated.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from tidelog.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.wire.generated.list_config_resources import ListConfigResourcesRequest
from tidelog.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.primitives import Struct

TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 8, 16, 32
SET, DELETE = 0, 1
DEFAULT_SOURCE, STATIC_SOURCE, ALL_BROKERS_SOURCE, BROKER_SOURCE = 5, 4, 3, 2
NOT_ASKED = -(2**31)


def operations(*codes: int) -> int:
    return sum(1 << code for code in codes)


# As Kafka numbers them: 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action, 10 describe
# configs, 11 alter configs, 12 idempotent write.
ON_TOPIC = operations(3, 4, 5, 6, 7, 8, 10, 11)
ON_GROUP = operations(3, 6, 8, 10, 11)
ON_CLUSTER = operations(5, 7, 8, 9, 10, 11, 12)


# What a client may do


def test_metadata_tells_what_a_client_may_do_if_it_asks(client: RawClient, topic: str) -> None:
    def ask(version: int, *, on_cluster: bool = False, on_topic: bool = False) -> Any:
        wanted = [MetadataRequestTopic(name=topic), MetadataRequestTopic(name="nobody")]
        return client.ask("Metadata", version, MetadataRequest(wanted, False, on_cluster, on_topic))

    for version in (8, 10):
        asked = ask(version, on_cluster=True, on_topic=True)
        assert asked.cluster_authorized_operations == ON_CLUSTER
        assert [each.topic_authorized_operations for each in asked.topics] == [ON_TOPIC, NOT_ASKED]
        silent = ask(version)
        assert silent.cluster_authorized_operations == NOT_ASKED
        assert [each.topic_authorized_operations for each in silent.topics] == [NOT_ASKED, NOT_ASKED]
    assert ask(13, on_topic=True).topics[0].topic_authorized_operations == ON_TOPIC
    everything = client.ask("Metadata", 13, MetadataRequest(None, include_topic_authorized_operations=True)).topics
    assert {each.topic_authorized_operations for each in everything} == {ON_TOPIC}
    assert ask(13).topics[0].topic_authorized_operations == NOT_ASKED, "one reply leaves no trace in the next"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_is_described_with_what_a_client_may_do(client: RawClient, version: int) -> None:
    for asked, told in ((True, ON_CLUSTER), (False, NOT_ASKED)):
        reply = client.ask("DescribeCluster", version, DescribeClusterRequest(asked))
        assert reply.cluster_authorized_operations == told


@pytest.mark.parametrize(("asked", "told"), [(True, ON_GROUP), (False, NOT_ASKED)])
def test_groups_are_described_with_what_a_client_may_do(
    client: RawClient, topic: str, asked: bool, told: int
) -> None:
    classic, consumer = unique("group"), unique("group")
    partition = OffsetCommitRequestPartition(0, 1, committed_metadata=None)
    commit = OffsetCommitRequest(classic, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])])
    assert client.ask("OffsetCommit", 8, commit).topics[0].partitions[0].error_code == 0
    member = ConsumerGroupHeartbeatRequest(
        consumer,
        "AAAAAAAAAAAAAAAAAAAAAQ",
        0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    assert client.ask("ConsumerGroupHeartbeat", 1, member).error_code == 0
    for version in (3, 6):
        groups = client.ask("DescribeGroups", version, DescribeGroupsRequest([classic], asked)).groups
        assert [(each.error_code, each.authorized_operations) for each in groups] == [(0, told)]
    groups = client.ask("ConsumerGroupDescribe", 1, ConsumerGroupDescribeRequest([consumer, "none"], asked)).groups
    assert [(each.error_code, each.authorized_operations) for each in groups] == [
        (0, told),
        (ErrorCode.GROUP_ID_NOT_FOUND, NOT_ASKED),
    ]


def test_partitions_are_described_with_what_a_client_may_do(client: RawClient, topic: str) -> None:
    reply = client.ask("DescribeTopicPartitions", 0, DescribeTopicPartitionsRequest([TopicRequest(topic)]))
    assert [each.topic_authorized_operations for each in reply.topics] == [ON_TOPIC]


# Records


@pytest.mark.parametrize(
    ("policy", "code", "start"),
    [("compact", ErrorCode.POLICY_VIOLATION, -1), ("compact,delete", 0, 2), ("delete", 0, 2)],
)
def test_records_of_a_topic_that_is_only_compacted_are_not_deleted(
    client: RawClient, policy: str, code: int, start: int
) -> None:
    name = unique("topic")
    client.create_topic(name)
    client.produce(name, b"a", b"b", b"c")
    set_config(client, TOPIC_RESOURCE, name, "cleanup.policy", policy)
    request = DeleteRecordsRequest([DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 2)])], 10_000)
    result = client.ask("DeleteRecords", 2, request).topics[0].partitions[0]
    assert (result.error_code, result.low_watermark) == (code, start)


@pytest.mark.parametrize("at", [-5, -6])
def test_nothing_is_in_tiered_storage_or_waits_for_it(client: RawClient, topic: str, at: int) -> None:
    client.produce(topic, b"a")
    wanted = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=at)])]
    (found,) = client.ask("ListOffsets", 11, ListOffsetsRequest(-1, 0, wanted)).topics[0].partitions
    assert (found.error_code, found.offset, found.timestamp) == (0, -1, -1)


# Topics with Kafka's own names


@pytest.mark.parametrize(
    "name", ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"]
)
def test_kafkas_own_topics_cannot_be_created(client: RawClient, name: str) -> None:
    reply = client.ask("CreateTopics", 7, CreateTopicsRequest([CreatableTopic(name, 1, 1)], 10_000))
    assert [each.error_code for each in reply.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    for version in (1, 13):
        request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        assert [each.error_code for each in client.ask("Metadata", version, request).topics] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ]
    assert client.produce(name, b"x").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert name not in [each.name for each in client.ask("Metadata", 13, MetadataRequest(None)).topics]


def test_other_names_with_underscores_are_for_everybody(client: RawClient) -> None:
    name = "__" + unique("topic")
    client.create_topic(name)
    assert client.produce(name, b"x").error_code == 0


# Configs


def configs(client: RawClient, kind: int, name: str, *keys: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(kind, name, list(keys) or None)
    (result,) = client.ask("DescribeConfigs", 4, DescribeConfigsRequest([resource], True, True)).results
    assert result.error_code == 0, result.error_message
    return {each.name: each for each in result.configs}


def altered(client: RawClient, kind: int, name: str, *changes: AlterableConfig) -> tuple[int, str | None]:
    resource = AlterConfigsResource(kind, name, list(changes))
    (result,) = client.ask("IncrementalAlterConfigs", 1, IncrementalAlterConfigsRequest([resource])).responses
    return result.error_code, result.error_message


def set_config(client: RawClient, kind: int, name: str, config: str, value: str) -> None:
    assert altered(client, kind, name, AlterableConfig(config, SET, value)) == (0, None)


def test_a_broker_shows_where_it_listens_and_where_its_data_is(client: RawClient, broker: BrokerProcess) -> None:
    address, data = f"PLAINTEXT://127.0.0.1:{broker.port}", place_of(broker)
    shown = configs(client, BROKER_RESOURCE, "0")
    assert {
        name: (shown[name].value, shown[name].config_source, shown[name].read_only)
        for name in ("listeners", "advertised.listeners", "log.dirs", "log.dir", "node.id", "broker.id")
    } == {
        "listeners": (address, STATIC_SOURCE, True),
        "advertised.listeners": (address, STATIC_SOURCE, True),
        "log.dirs": (data, STATIC_SOURCE, True),
        "log.dir": (data, STATIC_SOURCE, True),
        "node.id": ("0", STATIC_SOURCE, True),
        "broker.id": ("0", STATIC_SOURCE, True),
    }
    assert shown["listener.security.protocol.map"].value == "PLAINTEXT:PLAINTEXT"
    assert client.ask("DescribeLogDirs", 4, DescribeLogDirsRequest(None)).results[0].log_dir == data


def test_every_broker_config_of_kafka_is_shown(client: RawClient) -> None:
    shown = configs(client, BROKER_RESOURCE, "0")
    assert list(shown) == list(BROKER_CONFIGS)
    assert len(shown) > 300
    for name, value in (
        ("num.io.threads", "8"),
        ("controller.quorum.voters", ""),
        ("authorizer.class.name", ""),
        ("ssl.keystore.password", None),
        ("broker.rack", None),
        ("inter.broker.listener.name", None),
        ("leader.replication.throttled.rate", str(2**63 - 1)),
    ):
        assert (shown[name].value, shown[name].config_source) == (value, DEFAULT_SOURCE)
    assert "has no effect" in shown["num.io.threads"].documentation
    assert (shown["num.io.threads"].read_only, shown["num.partitions"].read_only) == (False, True)
    assert shown["ssl.keystore.password"].is_sensitive


def test_retention_in_milliseconds_shows_what_would_stand_in_for_it(start_broker: StartBroker) -> None:
    broker = start_broker({"kafka.log.retention.minutes": "90"})
    with RawClient(broker.port) as client:
        name = "log.retention.ms"

        def synonyms() -> list[tuple[int, str, str]]:
            shown = configs(client, BROKER_RESOURCE, "0", name)[name]
            return [(each.source, each.name, each.value) for each in shown.synonyms]

        assert configs(client, BROKER_RESOURCE, "0", name)[name].value is None
        assert synonyms() == []
        set_config(client, BROKER_RESOURCE, "", name, "2000000")
        set_config(client, BROKER_RESOURCE, "0", name, "1000000")
        assert synonyms() == [
            (BROKER_SOURCE, name, "1000000"),
            (ALL_BROKERS_SOURCE, name, "2000000"),
            (STATIC_SOURCE, "log.retention.minutes", "90"),
            (DEFAULT_SOURCE, "log.retention.hours", "168"),
        ]
        minutes = configs(client, BROKER_RESOURCE, "0", "log.retention.minutes")["log.retention.minutes"]
        assert [(each.name, each.value) for each in minutes.synonyms] == [
            ("log.retention.minutes", "90"),
            ("log.retention.hours", "168"),
        ]


def test_configs_without_effect_are_kept_all_the_same(start_broker: StartBroker) -> None:
    broker = start_broker({"kafka.num.network.threads": "5", "kafka.broker.rack": "r1"})
    rates = (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
    with RawClient(broker.port) as client:
        assert altered(client, BROKER_RESOURCE, "0", *(AlterableConfig(each, SET, "1000") for each in rates)) == (
            0,
            None,
        )
        set_config(client, BROKER_RESOURCE, "", "num.io.threads", "9")
    broker.stop()
    broker.start()
    with RawClient(broker.port) as client:
        shown = configs(client, BROKER_RESOURCE, "0", *rates, "num.io.threads", "num.network.threads", "broker.rack")
        assert {name: (each.value, each.config_source) for name, each in shown.items()} == {
            **dict.fromkeys(rates, ("1000", BROKER_SOURCE)),
            "num.io.threads": ("9", ALL_BROKERS_SOURCE),
            "num.network.threads": ("5", STATIC_SOURCE),
            "broker.rack": ("r1", STATIC_SOURCE),
        }
        removed = [AlterableConfig(each, DELETE, None) for each in rates]
        assert altered(client, BROKER_RESOURCE, "0", *removed) == (0, None)
        assert {each.config_source for each in configs(client, BROKER_RESOURCE, "0", *rates).values()} == {
            DEFAULT_SOURCE
        }


@pytest.mark.parametrize(
    "config", ["num.partitions", "listeners", "authorizer.class.name", "controller.quorum.voters"]
)
@pytest.mark.parametrize("resource", ["0", ""])
def test_a_read_only_config_is_not_altered_while_the_broker_runs(
    client: RawClient, config: str, resource: str
) -> None:
    value = BROKER_CONFIGS[config].default or ""
    code, message = altered(client, BROKER_RESOURCE, resource, AlterableConfig(config, SET, value))
    assert code == ErrorCode.INVALID_REQUEST
    assert f"{config} is read-only" in (message or "")


@pytest.mark.parametrize("config", ["log.retention.ms", "num.partitions", "no.such.config"])
def test_to_delete_a_config_that_is_not_there_is_done(client: RawClient, topic: str, config: str) -> None:
    for kind, name in ((BROKER_RESOURCE, "0"), (BROKER_RESOURCE, ""), (TOPIC_RESOURCE, topic), (GROUP_RESOURCE, "g")):
        assert altered(client, kind, name, AlterableConfig(config, DELETE, None)) == (0, None), (kind, name)
    code, _ = altered(client, TOPIC_RESOURCE, topic, AlterableConfig(config, SET, "1"))
    assert code == ErrorCode.INVALID_CONFIG, "no topic has it"


@pytest.mark.parametrize("kind", [LOGGER_RESOURCE, METRICS_RESOURCE])
def test_loggers_and_client_metrics_have_no_configs(client: RawClient, kind: int) -> None:
    assert configs(client, kind, "0") == {}
    assert altered(client, kind, "0", AlterableConfig("interval.ms", DELETE, None)) == (0, None)
    assert altered(client, kind, "0", AlterableConfig("interval.ms", SET, "1"))[0] == ErrorCode.INVALID_REQUEST
    reply = client.ask("ListConfigResources", 1, ListConfigResourcesRequest([kind]))
    assert [each.resource_name for each in reply.config_resources] == (["0"] if kind == LOGGER_RESOURCE else [])


# Features


def test_features_are_those_of_a_kafka_that_does_the_same(client: RawClient) -> None:
    reply = client.ask("ApiVersions", 4, ApiVersionsRequest("test", "1"))
    supported = {each.name: (each.min_version, each.max_version) for each in reply.supported_features}
    assert supported == {
        "eligible.leader.replicas.version": (0, 0),
        "group.version": (0, 1),
        "kraft.version": (0, 0),
        "metadata.version": (7, 29),
        "share.version": (0, 0),
        "streams.version": (0, 0),
        "transaction.version": (0, 2),
    }
    finalized = {each.name: (each.min_version_level, each.max_version_level) for each in reply.finalized_features}
    assert finalized == {"group.version": (1, 1), "metadata.version": (29, 29), "transaction.version": (2, 2)}


def test_older_clients_are_not_told_of_features_with_a_level_of_zero(client: RawClient) -> None:
    """Java's before 3.8 end at them, whatever they ask for; what is finalized they need."""
    reply = client.ask("ApiVersions", 3, ApiVersionsRequest("test", "1"))
    assert [each.name for each in reply.supported_features] == ["metadata.version"]
    assert {each.name for each in reply.finalized_features} == {
        "group.version",
        "metadata.version",
        "transaction.version",
    }


@pytest.mark.parametrize(
    ("feature", "level", "code"),
    [
        ("transaction.version", 2, 0),
        ("share.version", 0, 0),
        ("transaction.version", 1, ErrorCode.INVALID_UPDATE_VERSION),
        ("share.version", 1, ErrorCode.INVALID_UPDATE_VERSION),
        ("no.such.feature", 1, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_levels_of_features_stay(client: RawClient, feature: str, level: int, code: int) -> None:
    request = update_features.UpdateFeaturesRequest(
        feature_updates=[update_features.FeatureUpdateKey(feature, level, upgrade_type=1)]
    )
    assert client.ask("UpdateFeatures", 2, request).error_code == code
    (result,) = client.ask("UpdateFeatures", 1, request).results
    assert (result.feature, result.error_code) == (feature, code)


# Services that are not there

QUOTA = [alter_client_quotas.RequestEntityData("user", "a")]
NO_SUCH_GROUP = ErrorCode.GROUP_ID_NOT_FOUND
ANSWERS: list[tuple[str, Struct, Any, Any]] = [
    # the API, the request, what to look at in the reply, and what it is
    ("SaslHandshake", sasl_handshake.SaslHandshakeRequest("PLAIN"), "error_code", ErrorCode.ILLEGAL_SASL_STATE),
    ("SaslAuthenticate", sasl_authenticate.SaslAuthenticateRequest(b"x"), "error_code", ErrorCode.ILLEGAL_SASL_STATE),
    ("DescribeAcls", describe_acls.DescribeAclsRequest(1, None, 1, None, None, 1, 1), "error_code", 54),
    ("CreateAcls", create_acls.CreateAclsRequest([create_acls.AclCreation()] * 2), "results.error_code", [54, 54]),
    (
        "DeleteAcls",
        delete_acls.DeleteAclsRequest([delete_acls.DeleteAclsFilter()]),
        "filter_results.error_code",
        [54],
    ),
    ("CreateDelegationToken", create_delegation_token.CreateDelegationTokenRequest(), "error_code", 64),
    ("RenewDelegationToken", renew_delegation_token.RenewDelegationTokenRequest(), "error_code", 64),
    ("ExpireDelegationToken", expire_delegation_token.ExpireDelegationTokenRequest(), "error_code", 64),
    ("DescribeDelegationToken", describe_delegation_token.DescribeDelegationTokenRequest(None), "error_code", 64),
    ("DescribeClientQuotas", describe_client_quotas.DescribeClientQuotasRequest(), "error_code", 0),
    ("DescribeClientQuotas", describe_client_quotas.DescribeClientQuotasRequest(), "entries", []),
    (
        "AlterClientQuotas",
        alter_client_quotas.AlterClientQuotasRequest(
            [
                alter_client_quotas.RequestEntryData(QUOTA, [alter_client_quotas.OpData("rate", 1.0)]),
                alter_client_quotas.RequestEntryData(QUOTA, [alter_client_quotas.OpData("rate", 0.0, True)]),
            ]
        ),
        "entries.error_code",
        [ErrorCode.INVALID_REQUEST, 0],
    ),
    (
        "DescribeUserScramCredentials",
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(None),
        "results",
        [],
    ),
    (
        "DescribeUserScramCredentials",
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
            [describe_user_scram_credentials.UserName("a")]
        ),
        "results.error_code",
        [ErrorCode.RESOURCE_NOT_FOUND],
    ),
    (
        "AlterUserScramCredentials",
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            [alter_user_scram_credentials.ScramCredentialDeletion("a", 1)],
            [alter_user_scram_credentials.ScramCredentialUpsertion("b", 1, 4096, b"salt", b"password")],
        ),
        "results.error_code",
        [ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.UNSUPPORTED_SASL_MECHANISM],
    ),
    ("UnregisterBroker", unregister_broker.UnregisterBrokerRequest(7), "error_code", 102),
    ("UnregisterBroker", unregister_broker.UnregisterBrokerRequest(0), "error_code", ErrorCode.INVALID_REQUEST),
    (
        "ShareGroupDescribe",
        share_group_describe.ShareGroupDescribeRequest(["g"]),
        "groups.error_code",
        [NO_SUCH_GROUP],
    ),
    (
        "StreamsGroupDescribe",
        streams_group_describe.StreamsGroupDescribeRequest(["g"]),
        "groups.error_code",
        [NO_SUCH_GROUP],
    ),
    (
        "DescribeShareGroupOffsets",
        describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
            [describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup("g", None)]
        ),
        "groups.error_code",
        [NO_SUCH_GROUP],
    ),
]


@pytest.mark.parametrize(("api", "message", "look_at", "told"), ANSWERS, ids=[answer[0] for answer in ANSWERS])
def test_a_service_that_is_not_there_answers_as_in_a_kafka_without_it(
    client: RawClient, api: str, message: Struct, look_at: str, told: Any
) -> None:
    for version in range(BY_NAME[api].min_version, BY_NAME[api].max_version + 1):
        found = client.ask(api, version, message)
        for part in look_at.split("."):
            found = [getattr(each, part) for each in found] if isinstance(found, list) else getattr(found, part)
        assert found == told, version


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_node_is_a_quorum_of_its_own(client: RawClient, broker: BrokerProcess, version: int) -> None:
    partitions = [describe_quorum.RequestPartitionData(index) for index in (0, 1)]
    request = describe_quorum.DescribeQuorumRequest(
        [describe_quorum.RequestTopicData("__cluster_metadata", partitions)]
    )
    reply = client.ask("DescribeQuorum", version, request)
    metadata, nothing = reply.topics[0].partitions
    assert (reply.error_code, metadata.error_code, metadata.leader_id) == (0, 0, 0)
    assert [each.replica_id for each in metadata.current_voters] == [0]
    assert nothing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if version == 2:
        (node,) = reply.nodes
        assert [(node.node_id, each.host, each.port) for each in node.listeners] == [(0, "127.0.0.1", broker.port)]


def test_partitions_can_be_moved_to_where_they_are(client: RawClient, topic: str, broker: BrokerProcess) -> None:
    def moved(path: str, name: str, *partitions: int) -> list[int]:
        topics = [alter_replica_log_dirs.AlterReplicaLogDirTopic(name, list(partitions))]
        directory = alter_replica_log_dirs.AlterReplicaLogDir(path, topics)
        reply = client.ask("AlterReplicaLogDirs", 2, alter_replica_log_dirs.AlterReplicaLogDirsRequest([directory]))
        return [each.error_code for each in reply.results[0].partitions]

    assert moved(place_of(broker), topic, 0, 1) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert moved(place_of(broker), "nobody", 0) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert moved("/elsewhere", topic, 0) == [ErrorCode.LOG_DIR_NOT_FOUND]
    cancelled = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(topic, [ReassignablePartition(0, None), ReassignablePartition(0, [0])])]
    )
    codes = client.ask("AlterPartitionReassignments", 1, cancelled).responses[0].partitions
    assert [each.error_code for each in codes] == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, 0]


def test_an_api_that_is_not_offered_is_called_so(start_broker: StartBroker) -> None:
    broker = start_broker({})
    with RawClient(broker.port) as client:
        client.socket.sendall(struct.pack(">ihhih", 10, 78, 1, 1, -1))
        assert client.socket.recv(1) == b"", "the connection is closed, as Kafka does"
    eventually(lambda: "ShareFetch is not offered" in broker.log)
    assert "is not supported" not in broker.log
