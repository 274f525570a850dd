"""Groups, members, offsets and transactional ids have bounds over all clients: what they are told that go beyond."""

import pytest

from tests.gateways.conftest import StartBroker
from tests.gateways.raw import RawClient
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidelog.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest
from tidelog.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUP_RESOURCE = 32


def heartbeat(client: RawClient, group: str, member: str, *topics: str) -> int:
    message = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=list(topics) or ["t"],
        topic_partitions=[],
    )
    code: int = client.ask("ConsumerGroupHeartbeat", 0, message).error_code
    return code


def join(client: RawClient, group: str, metadata: bytes = b"") -> int:
    offers = [JoinGroupRequestProtocol("range", metadata)]
    message = JoinGroupRequest(group, 30_000, 30_000, "", None, "consumer", offers)
    code: int = client.ask("JoinGroup", 5, message).error_code
    return code


def commit(client: RawClient, group: str, partition: int = 0) -> int:
    topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(partition, 7)])
    reply = client.ask("OffsetCommit", 8, OffsetCommitRequest(group, -1, "", None, topics=[topic]))
    code: int = reply.topics[0].partitions[0].error_code
    return code


def init(client: RawClient, transactional_id: str) -> int:
    code: int = client.ask("InitProducerId", 4, InitProducerIdRequest(transactional_id, 60_000)).error_code
    return code


def configure(client: RawClient, group: str) -> int:
    config = AlterableConfig("consumer.heartbeat.interval.ms", 0, "6000")
    resource = AlterConfigsResource(GROUP_RESOURCE, group, [config])
    code: int = (
        client.ask("IncrementalAlterConfigs", 1, IncrementalAlterConfigsRequest([resource])).responses[0].error_code
    )
    return code


def test_what_is_said_to_those_who_go_beyond_a_bound(start_broker: StartBroker) -> None:
    broker = start_broker(
        {
            "kafka.group.consumer.session.timeout.ms": "45000",
            "kafka.group.consumer.heartbeat.interval.ms": "5000",
            "kafka.tidelog.max.groups": "3",
            "kafka.tidelog.max.group.members": "2",
            "kafka.tidelog.max.group.bytes": "20000",
            "kafka.tidelog.max.group.offset.bytes": "800",
            "kafka.tidelog.max.transactional.ids": "1",
        }
    )
    full = ErrorCode.GROUP_MAX_SIZE_REACHED
    with RawClient(broker.port) as client:
        client.create_topic("t", 4)
        assert heartbeat(client, "one", "a") == 0
        assert heartbeat(client, "one", "big", *(f"topic-{n}" for n in range(300))) == full
        assert heartbeat(client, "one", "b") == 0
        assert heartbeat(client, "one", "c") == full
        assert join(client, "two") == full
        assert [commit(client, "two", partition) for partition in range(3)] == [
            0,
            0,
            ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ]
        assert commit(client, "two") == 0, "what is there can be committed again"
        assert [init(client, id_) for id_ in ("x", "y", "x")] == [0, ErrorCode.POLICY_VIOLATION, 0]
        assert [configure(client, f"g{n}") for n in range(4)] == [0, 0, 0, ErrorCode.INVALID_CONFIG]
    broker.stop()
    for config in ("group.members", "group.bytes", "group.offset.bytes", "transactional.ids"):
        assert broker.log.count(f"(tidelog.max.{config}); more are refused") == 1, broker.log


@pytest.mark.parametrize("kind", ["new protocol", "classic", "offsets"])
def test_a_group_too_many(start_broker: StartBroker, kind: str) -> None:
    broker = start_broker({"kafka.tidelog.max.groups": "1"})
    with RawClient(broker.port) as client:
        client.create_topic("t")
        assert commit(client, "one") == 0
        if kind == "offsets":
            assert commit(client, "two") == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        else:
            code = heartbeat(client, "two", "a") if kind == "new protocol" else join(client, "two")
            assert code == ErrorCode.GROUP_MAX_SIZE_REACHED
