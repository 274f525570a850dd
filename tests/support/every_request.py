"""A request of every offered API, at every version."""

from collections.abc import Callable
from typing import Any

from tests.support.logs import NOW_MS, batch
from tidelog.wire.generated import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    decide_transactions,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_decision,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_memory,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    drain_brokers,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    locate_records,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    share_group_describe,
    store_transaction_offsets,
    streams_group_describe,
    sync_group,
    table_describe,
    table_get,
    transaction_ended,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from tidelog.wire.primitives import NO_UUID

TOPIC, GROUP = "every-version", "every-version-group"
Make = Callable[[int, bytes], Any]


def produced(version: int, topic_id: bytes) -> Any:
    data = [produce.PartitionProduceData(0, batch(b"x", timestamp=NOW_MS))]
    by_id = version >= 13
    topic = produce.TopicProduceData("" if by_id else TOPIC, topic_id if by_id else NO_UUID, data)
    return produce.ProduceRequest(None, -1, 1000, [topic])


def fetched(version: int, topic_id: bytes) -> Any:
    by_id = version >= 13
    wanted = [fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    topic = fetch.FetchTopic("" if by_id else TOPIC, topic_id if by_id else NO_UUID, wanted)
    return fetch.FetchRequest(max_wait_ms=0, max_bytes=1000, topics=[topic])


def committed(version: int, topic_id: bytes) -> Any:
    by_id = version >= 10
    offsets = [offset_commit.OffsetCommitRequestPartition(0, 1, committed_metadata="note")]
    topic = offset_commit.OffsetCommitRequestTopic("" if by_id else TOPIC, topic_id if by_id else NO_UUID, offsets)
    return offset_commit.OffsetCommitRequest(GROUP, topics=[topic])


def offsets_fetched(version: int, topic_id: bytes) -> Any:
    if version < 8:
        return offset_fetch.OffsetFetchRequest(GROUP, [offset_fetch.OffsetFetchRequestTopic(TOPIC, [0])])
    by_id = version >= 10
    topic = offset_fetch.OffsetFetchRequestTopics("" if by_id else TOPIC, topic_id if by_id else NO_UUID, [0])
    return offset_fetch.OffsetFetchRequest(groups=[offset_fetch.OffsetFetchRequestGroup(GROUP, topics=[topic])])


def deleted(version: int, _topic_id: bytes) -> Any:
    if version >= 6:
        return delete_topics.DeleteTopicsRequest([delete_topics.DeleteTopicState("none")])
    return delete_topics.DeleteTopicsRequest(topic_names=["none"])


def left(version: int, _topic_id: bytes) -> Any:
    if version >= 3:
        return leave_group.LeaveGroupRequest(GROUP, members=[leave_group.MemberIdentity("nobody")])
    return leave_group.LeaveGroupRequest(GROUP, "nobody")


def coordinator(version: int, _topic_id: bytes) -> Any:
    if version >= 4:
        return find_coordinator.FindCoordinatorRequest(coordinator_keys=[GROUP])
    return find_coordinator.FindCoordinatorRequest(GROUP)


def added_to_transaction(version: int, _topic_id: bytes) -> Any:
    topics = [add_partitions_to_txn.AddPartitionsToTxnTopic(TOPIC, [0])]
    if version >= 4:
        both = [
            add_partitions_to_txn.AddPartitionsToTxnTransaction("nobody", 1, 0, verify_only, topics)
            for verify_only in (False, True)
        ]
        return add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=both)
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="nobody",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics,
    )


REQUESTS: dict[int, Make] = {
    0: produced,
    1: fetched,
    2: lambda v, t: list_offsets.ListOffsetsRequest(
        -1,
        0,
        [
            list_offsets.ListOffsetsTopic(
                TOPIC,
                [list_offsets.ListOffsetsPartition(0, timestamp=at) for at in (-1, -2, NOW_MS)],
            )
        ],
    ),
    3: lambda v, t: metadata.MetadataRequest([metadata.MetadataRequestTopic(name=TOPIC)]),
    8: committed,
    9: offsets_fetched,
    10: coordinator,
    11: lambda v, t: join_group.JoinGroupRequest(
        GROUP,
        10_000,
        member_id="unknown-member",
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol("range", b"")],
    ),
    12: lambda v, t: heartbeat.HeartbeatRequest(GROUP, 1, "nobody"),
    13: left,
    14: lambda v, t: sync_group.SyncGroupRequest(GROUP, 1, "nobody"),
    15: lambda v, t: describe_groups.DescribeGroupsRequest([GROUP, "none"]),
    16: lambda v, t: list_groups.ListGroupsRequest(),
    18: lambda v, t: api_versions.ApiVersionsRequest(),
    19: lambda v, t: create_topics.CreateTopicsRequest(
        [create_topics.CreatableTopic(f"made-{v}", 1, 1), create_topics.CreatableTopic(TOPIC, 1, 1)], 1000
    ),
    20: deleted,
    21: lambda v, t: delete_records.DeleteRecordsRequest(
        [delete_records.DeleteRecordsTopic(TOPIC, [delete_records.DeleteRecordsPartition(0, 0)])], 1000
    ),
    22: lambda v, t: init_producer_id.InitProducerIdRequest(None, 1000),
    23: lambda v, t: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
        -2,
        [
            offset_for_leader_epoch.OffsetForLeaderTopic(
                TOPIC, [offset_for_leader_epoch.OffsetForLeaderPartition(0, -1, 0)]
            )
        ],
    ),
    24: added_to_transaction,
    25: lambda v, t: add_offsets_to_txn.AddOffsetsToTxnRequest("nobody", 1, 0, GROUP),
    10002: lambda v, t: decide_transactions.DecideTransactionsRequest(
        "scope", 0, [decide_transactions.DecidedTransaction("nobody", 1, 0)]
    ),
    10003: lambda v, t: describe_decision.DescribeDecisionRequest("scope"),
    10004: lambda v, t: describe_memory.DescribeMemoryRequest(),
    10005: lambda v, t: drain_brokers.DrainBrokersRequest([drain_brokers.DrainableBroker(7, False)]),
    10006: lambda v, t: locate_records.LocateRecordsRequest(TOPIC, t, 0, 0, 10, 0),
    10007: lambda v, t: store_transaction_offsets.StoreTransactionOffsetsRequest(
        "id",
        0,
        0,
        GROUP,
        True,
        NOW_MS,
        [
            store_transaction_offsets.StoredOffsetsTopic(
                TOPIC, [store_transaction_offsets.StoredOffsetsPartition(0, 1, -1, "")]
            )
        ],
    ),
    10008: lambda v, t: transaction_ended.TransactionEndedRequest(GROUP, "id", [TOPIC]),
    26: lambda v, t: end_txn.EndTxnRequest("nobody", 1, 0, True),
    27: lambda v, t: write_txn_markers.WriteTxnMarkersRequest(
        [
            write_txn_markers.WritableTxnMarker(
                1, 0, False, [write_txn_markers.WritableTxnMarkerTopic(TOPIC, [0, 9])], 0
            )
        ]
    ),
    28: lambda v, t: txn_offset_commit.TxnOffsetCommitRequest(
        "nobody",
        GROUP,
        1,
        0,
        topics=[
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                TOPIC, [txn_offset_commit.TxnOffsetCommitRequestPartition(0, 1, committed_metadata=None)]
            )
        ],
    ),
    32: lambda v, t: describe_configs.DescribeConfigsRequest(
        [
            describe_configs.DescribeConfigsResource(2, TOPIC, None),
            describe_configs.DescribeConfigsResource(4, "0", None),
        ],
        True,
    ),
    33: lambda v, t: alter_configs.AlterConfigsRequest(
        [alter_configs.AlterConfigsResource(2, TOPIC, [alter_configs.AlterableConfig("retention.ms", "1000")])], True
    ),
    35: lambda v, t: describe_log_dirs.DescribeLogDirsRequest(None),
    37: lambda v, t: create_partitions.CreatePartitionsRequest(
        [create_partitions.CreatePartitionsTopic(TOPIC, 1, None)], 1000
    ),
    42: lambda v, t: delete_groups.DeleteGroupsRequest(["none"]),
    43: lambda v, t: elect_leaders.ElectLeadersRequest(
        topic_partitions=[elect_leaders.TopicPartitions(TOPIC, [0, 9])], timeout_ms=1000
    ),
    44: lambda v, t: incremental_alter_configs.IncrementalAlterConfigsRequest(
        [
            incremental_alter_configs.AlterConfigsResource(
                2, TOPIC, [incremental_alter_configs.AlterableConfig("retention.ms", 0, "1000")]
            )
        ],
        True,
    ),
    45: lambda v, t: alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        topics=[
            alter_partition_reassignments.ReassignableTopic(
                TOPIC, [alter_partition_reassignments.ReassignablePartition(0, [7])]
            )
        ]
    ),
    46: lambda v, t: list_partition_reassignments.ListPartitionReassignmentsRequest(),
    47: lambda v, t: offset_delete.OffsetDeleteRequest(
        GROUP, [offset_delete.OffsetDeleteRequestTopic("none", [offset_delete.OffsetDeleteRequestPartition(0)])]
    ),
    60: lambda v, t: describe_cluster.DescribeClusterRequest(),
    61: lambda v, t: describe_producers.DescribeProducersRequest([describe_producers.TopicRequest(TOPIC, [0])]),
    65: lambda v, t: describe_transactions.DescribeTransactionsRequest(["nobody"]),
    66: lambda v, t: list_transactions.ListTransactionsRequest(["Ongoing", "Odd"], [7]),
    68: lambda v, t: consumer_group_heartbeat.ConsumerGroupHeartbeatRequest("kip848", "nobody", 5),
    69: lambda v, t: consumer_group_describe.ConsumerGroupDescribeRequest(["none"]),
    74: lambda v, t: list_config_resources.ListConfigResourcesRequest(),
    75: lambda v, t: describe_topic_partitions.DescribeTopicPartitionsRequest(
        [describe_topic_partitions.TopicRequest(TOPIC), describe_topic_partitions.TopicRequest("none")]
    ),
    17: lambda v, t: sasl_handshake.SaslHandshakeRequest("PLAIN"),
    29: lambda v, t: describe_acls.DescribeAclsRequest(2, None, 1, None, None, 1, 1),
    30: lambda v, t: create_acls.CreateAclsRequest([create_acls.AclCreation(2, TOPIC, 3, "User:a", "*", 3, 3)]),
    31: lambda v, t: delete_acls.DeleteAclsRequest([delete_acls.DeleteAclsFilter(2, None, 3, None, None, 1, 1)]),
    34: lambda v, t: alter_replica_log_dirs.AlterReplicaLogDirsRequest(
        [
            alter_replica_log_dirs.AlterReplicaLogDir(
                "/elsewhere", [alter_replica_log_dirs.AlterReplicaLogDirTopic(TOPIC, [0])]
            )
        ]
    ),
    36: lambda v, t: sasl_authenticate.SaslAuthenticateRequest(b"secret"),
    38: lambda v, t: create_delegation_token.CreateDelegationTokenRequest(),
    39: lambda v, t: renew_delegation_token.RenewDelegationTokenRequest(b"token", 1000),
    40: lambda v, t: expire_delegation_token.ExpireDelegationTokenRequest(b"token", 1000),
    41: lambda v, t: describe_delegation_token.DescribeDelegationTokenRequest(None),
    48: lambda v, t: describe_client_quotas.DescribeClientQuotasRequest(
        [describe_client_quotas.ComponentData("user", 2, None)]
    ),
    49: lambda v, t: alter_client_quotas.AlterClientQuotasRequest(
        [
            alter_client_quotas.RequestEntryData(
                [alter_client_quotas.RequestEntityData("user", None)], [alter_client_quotas.OpData("rate", 1.0)]
            )
        ]
    ),
    50: lambda v, t: describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
        [describe_user_scram_credentials.UserName("nobody")]
    ),
    51: lambda v, t: alter_user_scram_credentials.AlterUserScramCredentialsRequest(
        [alter_user_scram_credentials.ScramCredentialDeletion("nobody", 1)]
    ),
    55: lambda v, t: describe_quorum.DescribeQuorumRequest(
        [describe_quorum.RequestTopicData("__cluster_metadata", [describe_quorum.RequestPartitionData(0)])]
    ),
    57: lambda v, t: update_features.UpdateFeaturesRequest(
        feature_updates=[update_features.FeatureUpdateKey("group.version", 1)]
    ),
    64: lambda v, t: unregister_broker.UnregisterBrokerRequest(7),
    77: lambda v, t: share_group_describe.ShareGroupDescribeRequest(["none"]),
    89: lambda v, t: streams_group_describe.StreamsGroupDescribeRequest(["none"]),
    90: lambda v, t: describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
        [describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup("none", None)]
    ),
    10000: lambda v, t: table_get.TableGetRequest(
        TOPIC, -1, 1000, [table_get.TableGetPartition(0, [table_get.TableGetKey(b"key")])]
    ),
    10001: lambda v, t: table_describe.TableDescribeRequest([TOPIC, "none"]),
}
