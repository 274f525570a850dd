"""A broker that knows of another one: it tells clients who owns what, and refuses what is not its own."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.gateways.raw import RawClient, fetch_request, partitions_of, produce_request
from tests.support.every_request import REQUESTS
from tests.support.logs import batch
from tidelog.broker.ownership import NOBODY, BrokerAddress, Coordinated, Owner, Ownership
from tidelog.broker.sessions import PEER_CLIENT_ID, Endpoint
from tidelog.embedding import EmbeddedBroker, embedded
from tidelog.gateways.kafka.api_table import TABLE
from tidelog.records.batch import iterate
from tidelog.wire.apis import APIS, BY_NAME
from tidelog.wire.envelope import encode_request
from tidelog.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.describe_cluster import DescribeClusterRequest
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest
from tidelog.wire.generated.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from tidelog.wire.generated.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from tidelog.wire.generated.elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.wire.generated.end_txn import EndTxnRequest
from tidelog.wire.generated.find_coordinator import FindCoordinatorRequest
from tidelog.wire.generated.heartbeat import HeartbeatRequest
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest
from tidelog.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tidelog.wire.generated.list_config_resources import ListConfigResourcesRequest
from tidelog.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tidelog.wire.generated.unregister_broker import UnregisterBrokerRequest

TOPIC = "shared"
MINE, OTHERS = 0, 1  # partitions, and the brokers that lead them
MY_EPOCH, OTHER_EPOCH = 3, 5
OTHER = BrokerAddress(1, "other.example", 9999)
NOT_LEADER, NOT_COORDINATOR, NOT_CONTROLLER = 6, 16, 41
FENCED, UNKNOWN_EPOCH = 74, 75


class TwoBrokers(Ownership):
    """Partitions with odd numbers, and groups and transactional ids that begin with "other", are the other's."""

    version = 0
    is_sole = False

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.controller_id = OTHER.broker_id
        self.led = {MINE: Owner(node_id, MY_EPOCH), OTHERS: Owner(OTHER.broker_id, OTHER_EPOCH)}
        self._mine: list[BrokerAddress] = []

    def brokers(self, listener: str) -> Sequence[BrokerAddress]:
        assert listener == "PLAINTEXT"
        return [*self._mine, OTHER]

    def controller(self) -> Owner:
        return Owner(self.controller_id, 7)

    def leader(self, topic_id: bytes, index: int) -> Owner:
        return self.led[index % 2]

    def coordinator(self, kind: Coordinated, key: str) -> Owner:
        if key.startswith("nobody"):
            return Owner(NOBODY, 0)
        return Owner(OTHER.broker_id, OTHER_EPOCH) if key.startswith("other") else Owner(self.node_id, MY_EPOCH)

    def advertise(self, endpoint: Endpoint) -> None:
        self._mine = [BrokerAddress(self.node_id, endpoint.host, endpoint.port)]


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedBroker]:
    monkeypatch.setattr("tidelog.node.node.SoleOwnership", TwoBrokers)
    with embedded() as running:
        running.create_topic(TOPIC, 2)
        yield running


@pytest.fixture
def ownership(broker: EmbeddedBroker) -> TwoBrokers:
    found = broker._node.ownership
    assert isinstance(found, TwoBrokers)
    return found


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[RawClient]:
    with RawClient(int(broker.bootstrap_servers.rpartition(":")[2])) as connected:
        yield connected


class Others:
    """The other brokers, of whom this one asks nothing but what has changed."""

    def __init__(self) -> None:
        self.refreshed = 0

    async def refresh(self) -> None:
        self.refreshed += 1


def test_a_broker_that_asks_for_no_topics_tells_this_one_to_look(
    broker: EmbeddedBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = Others()
    monkeypatch.setattr(broker._node.broker, "others", others)
    assert client.ask("Metadata", 12, MetadataRequest([])).topics == []
    assert others.refreshed == 0, "clients do not make it look"
    peer = encode_request(BY_NAME["Metadata"], 12, 7, f"{PEER_CLIENT_ID}1", MetadataRequest([]))
    client.socket.sendall(b"".join(peer))  # type: ignore[arg-type]  # it has no stored records
    client.receive_frame()
    assert others.refreshed == 1


def test_clients_are_told_of_both(broker: EmbeddedBroker, client: RawClient) -> None:
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    both = [(0, "127.0.0.1", port), OTHER[:3]]
    reply = client.ask("Metadata", 12, MetadataRequest([MetadataRequestTopic(name=TOPIC)]))
    assert [(each.node_id, each.host, each.port) for each in reply.brokers] == both
    assert reply.controller_id == OTHER.broker_id
    leaders = [(MINE, 0, 0, MY_EPOCH, [0]), (OTHERS, 0, OTHER.broker_id, OTHER_EPOCH, [OTHER.broker_id])]
    for partitions in (
        reply.topics[0].partitions,
        client.ask("DescribeTopicPartitions", 0, DescribeTopicPartitionsRequest([TopicRequest(TOPIC)]))
        .topics[0]
        .partitions,
    ):
        assert [
            (each.partition_index, each.error_code, each.leader_id, each.leader_epoch, each.replica_nodes)
            for each in partitions
        ] == leaders
    cluster = client.ask("DescribeCluster", 2, DescribeClusterRequest())
    assert [(each.broker_id, each.host, each.port) for each in cluster.brokers] == both
    assert cluster.controller_id == OTHER.broker_id
    wanted = [RequestTopicData("__cluster_metadata", [RequestPartitionData(0)])]
    quorum = client.ask("DescribeQuorum", 2, DescribeQuorumRequest(wanted))
    assert (quorum.topics[0].partitions[0].leader_id, quorum.topics[0].partitions[0].leader_epoch) == (1, 7)
    assert [(node.node_id, node.listeners[0].host) for node in quorum.nodes] == [(1, OTHER.host)]
    resources = client.ask("ListConfigResources", 1, ListConfigResourcesRequest([4])).config_resources
    assert [each.resource_name for each in resources] == ["0", "1"]


def test_the_coordinator_that_is_found_is_the_one_that_owns_the_key(client: RawClient) -> None:
    for kind in (0, 1):
        found = client.ask("FindCoordinator", 6, FindCoordinatorRequest("", kind, ["mine", "others", "nobody's"]))
        assert [(each.key, each.error_code, each.node_id) for each in found.coordinators] == [
            ("mine", 0, 0),
            ("others", 0, OTHER.broker_id),
            ("nobody's", 15, -1),
        ]
        assert (found.coordinators[1].host, found.coordinators[1].port) == (OTHER.host, OTHER.port)
    old = client.ask("FindCoordinator", 2, FindCoordinatorRequest("others", 0))
    assert (old.error_code, old.node_id, old.host) == (0, OTHER.broker_id, OTHER.host)


def test_partitions_of_the_other_are_not_served(client: RawClient) -> None:
    assert client.produce(TOPIC, b"mine", partition=MINE).error_code == 0
    for _ in range(2):
        assert client.produce(TOPIC, b"others", partition=OTHERS).error_code == NOT_LEADER
    fetched = partitions_of(client.ask("Fetch", 12, fetch_request(TOPIC, {MINE: 0, OTHERS: 0}, max_wait_ms=60_000)))
    assert {index: each.error_code for index, each in fetched.items()} == {MINE: 0, OTHERS: NOT_LEADER}
    stamped = [view.header.leader_epoch for view in iterate(bytes(fetched[MINE].records))]  # type: ignore[arg-type]
    assert stamped == [MY_EPOCH]
    wanted = [ListOffsetsPartition(index, timestamp=-1) for index in (MINE, OTHERS)]
    listed = client.ask("ListOffsets", 7, ListOffsetsRequest(-1, 0, [ListOffsetsTopic(TOPIC, wanted)])).topics[0]
    assert [(each.error_code, each.leader_epoch) for each in listed.partitions] == [(0, MY_EPOCH), (NOT_LEADER, -1)]


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (MY_EPOCH, 0), (2, FENCED), (4, UNKNOWN_EPOCH)])
def test_a_client_must_know_the_epoch_of_the_leader(client: RawClient, epoch: int, code: int) -> None:
    request = fetch_request(TOPIC, {MINE: 0})
    request.topics[0].partitions[0].current_leader_epoch = epoch
    assert partitions_of(client.ask("Fetch", 12, request))[MINE].error_code == code
    wanted = [OffsetForLeaderTopic(TOPIC, [OffsetForLeaderPartition(MINE, epoch, MY_EPOCH)])]
    told = client.ask("OffsetForLeaderEpoch", 4, OffsetForLeaderEpochRequest(-1, wanted)).topics[0].partitions[0]
    assert told.error_code == code
    if not code:
        assert (told.leader_epoch, told.end_offset) == (MY_EPOCH, 0)


def test_a_partition_that_comes_over_from_the_other_is_served(client: RawClient, ownership: TwoBrokers) -> None:
    assert client.produce(TOPIC, b"too early", partition=OTHERS).error_code == NOT_LEADER
    ownership.led[OTHERS] = Owner(0, OTHER_EPOCH + 1)
    ownership.version += 1
    assert client.produce(TOPIC, b"in time", partition=OTHERS).base_offset == 0
    found = client.ask("Metadata", 12, MetadataRequest([MetadataRequestTopic(name=TOPIC)])).topics[0].partitions
    assert [(each.leader_id, each.leader_epoch) for each in found] == [(0, MY_EPOCH), (0, OTHER_EPOCH + 1)]


def test_a_partition_without_a_leader_is_not_available(client: RawClient, ownership: TwoBrokers) -> None:
    ownership.led[OTHERS] = Owner(NOBODY, OTHER_EPOCH)
    ownership.version += 1
    found = client.ask("Metadata", 12, MetadataRequest([MetadataRequestTopic(name=TOPIC)])).topics[0].partitions
    assert [(each.error_code, each.leader_id) for each in found] == [(0, 0), (5, -1)]
    ownership.controller_id = 0
    elected = client.ask("ElectLeaders", 2, ElectLeadersRequest(0, [TopicPartitions(TOPIC, [MINE, OTHERS])]))
    assert [each.error_code for each in elected.replica_election_results[0].partition_result] == [84, 83]


def test_groups_of_the_other_are_refused(client: RawClient) -> None:
    protocols = [JoinGroupRequestProtocol("range", b"")]
    joining = JoinGroupRequest("others", 10_000, protocol_type="consumer", protocols=protocols)
    assert client.ask("JoinGroup", 9, joining).error_code == NOT_COORDINATOR
    assert client.ask("Heartbeat", 4, HeartbeatRequest("others", 1, "m")).error_code == NOT_COORDINATOR
    offsets = [OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, 1)])]
    for group, code in (("mine", 0), ("others", NOT_COORDINATOR)):
        reply = client.ask("OffsetCommit", 8, OffsetCommitRequest(group, topics=offsets))
        assert reply.topics[0].partitions[0].error_code == code
    described = client.ask("DescribeGroups", 5, DescribeGroupsRequest(["mine", "others"])).groups
    assert {each.group_id: each.error_code for each in described} == {"mine": 0, "others": NOT_COORDINATOR}


def test_transactional_ids_of_the_other_are_refused(client: RawClient) -> None:
    assert client.ask("InitProducerId", 4, InitProducerIdRequest("others", 1000)).error_code == NOT_COORDINATOR
    assert client.ask("InitProducerId", 4, InitProducerIdRequest("mine", 1000)).error_code == 0
    assert client.ask("EndTxn", 3, EndTxnRequest("others", 1, 0, True)).error_code == NOT_COORDINATOR


def test_what_is_for_the_controller_is_refused_by_others(client: RawClient, ownership: TwoBrokers) -> None:
    wanted = CreateTopicsRequest([CreatableTopic("new", 1, 1)], 1000)
    assert client.ask("CreateTopics", 7, wanted).topics[0].error_code == NOT_CONTROLLER
    ownership.controller_id = 0
    assert client.ask("CreateTopics", 7, wanted).topics[0].error_code == 0
    moves = [ReassignablePartition(MINE, [0]), ReassignablePartition(OTHERS, [1]), ReassignablePartition(MINE, [1])]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(TOPIC, moves)])
    told = client.ask("AlterPartitionReassignments", 0, request).responses[0].partitions
    assert [each.error_code for each in told] == [0, 0, 39]
    codes = [client.ask("UnregisterBroker", 0, UnregisterBrokerRequest(each)).error_code for each in (0, 1, 2)]
    assert codes == [42, 42, 102]


@pytest.mark.parametrize("key", [key for key, row in TABLE.items() if row.for_controller])
def test_every_api_for_the_controller_says_so_at_every_version(client: RawClient, key: int) -> None:
    api = APIS[key]
    for version in range(api.min_version, api.max_version + 1):
        reply: Any = client.ask(api.name, version, REQUESTS[key](version, bytes(16)))
        assert f"error_code={NOT_CONTROLLER}" in repr(reply), f"v{version}"


def test_markers_carry_the_epoch_of_the_coordinator(broker: EmbeddedBroker, client: RawClient) -> None:
    got = client.ask("InitProducerId", 4, InitProducerIdRequest("mine", 60_000))
    data = batch(
        b"value",
        timestamp=-1,
        producer_id=got.producer_id,
        producer_epoch=got.producer_epoch,
        sequence=0,
        transactional=True,
    )
    request = produce_request(TOPIC, data)
    request.transactional_id = "mine"
    reply = client.ask("Produce", 12, request)
    assert reply.responses[0].partition_responses[0].error_code == 0
    assert client.ask("EndTxn", 3, EndTxnRequest("mine", got.producer_id, got.producer_epoch, True)).error_code == 0
    states = broker._node.broker.partition(TOPIC, MINE).log.active_producers()
    assert [each.coordinator_epoch for each in states] == [MY_EPOCH]
