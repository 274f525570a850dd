"""A bug of ours in a handler: the client gets an error in its API's own fields, and its connection lives on."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.gateways.raw import RawClient, fetch_request, produce_request
from tests.support.brokers import eventually
from tests.support.engines import Engine, embedded_broker
from tests.support.logs import batch
from tidelog.embedding import EmbeddedBroker
from tidelog.gateways.kafka.api_table import TABLE
from tidelog.gateways.kafka.error_replies import error_reply
from tidelog.wire.apis import APIS, BY_NAME
from tidelog.wire.envelope import decode_request_body, decode_request_header, encode_request
from tidelog.wire.generated.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTransaction
from tidelog.wire.generated.add_partitions_to_txn import AddPartitionsToTxnTopic as TxnTopic
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.delete_groups import DeleteGroupsRequest
from tidelog.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.generated.find_coordinator import FindCoordinatorRequest
from tidelog.wire.generated.heartbeat import HeartbeatRequest
from tidelog.wire.generated.join_group import JoinGroupRequest
from tidelog.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.wire.generated.list_groups import ListGroupsRequest
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.wire.generated.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tidelog.wire.primitives import Struct

UNKNOWN = -1
ID = bytes(range(16))


class Bug(RuntimeError):
    pass


@pytest.fixture(scope="module")
def broker(engine: Engine) -> Iterator[EmbeddedBroker]:
    with embedded_broker(engine) as running:
        yield running


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[RawClient]:
    with RawClient(int(broker.bootstrap_servers.rpartition(":")[2])) as connected:
        yield connected


Inject = Callable[[str], None]


@pytest.fixture
def fail(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> Inject:
    """The handler of an API raises from now on, for this test."""

    def inject(name: str, *, later: bool = False) -> None:
        def at_once(_request: object, _message: object) -> None:
            raise Bug("nobody thought of this")

        async def after_a_wait(_request: object, _message: object) -> None:
            raise Bug("nobody thought of this")

        handlers = broker._node.server._handlers  # the only way in: it is a bug that is put there
        monkeypatch.setitem(handlers, BY_NAME[name].key, after_a_wait if later else at_once)

    return inject


def one_partition(number: int) -> ProduceRequest:
    return ProduceRequest(None, -1, 1000, [TopicProduceData("t", ID, [PartitionProduceData(number, b"")])])


REQUESTS: list[tuple[str, int, Struct, Callable[[Any], Any]]] = [
    ("Produce", 9, one_partition(3), lambda r: (r.responses[0].name, r.responses[0].partition_responses[0].index)),
    (
        "Produce",
        13,
        one_partition(3),
        lambda r: (r.responses[0].topic_id, r.responses[0].partition_responses[0].index),
    ),
    ("Fetch", 4, fetch_request("t", {3: 0}), lambda r: (r.responses[0].topic, r.responses[0].partitions[0])),
    ("Metadata", 4, MetadataRequest([MetadataRequestTopic(name="t")]), lambda r: r.topics[0].name),
    ("Metadata", 13, MetadataRequest(None), lambda r: r.error_code),
    ("FindCoordinator", 3, FindCoordinatorRequest("g"), lambda r: r.error_code),
    ("FindCoordinator", 6, FindCoordinatorRequest(coordinator_keys=["g"]), lambda r: r.coordinators[0].key),
    ("JoinGroup", 9, JoinGroupRequest("g"), lambda r: r.error_code),
    ("Heartbeat", 4, HeartbeatRequest("g"), lambda r: r.error_code),
    ("LeaveGroup", 2, LeaveGroupRequest("g", "m"), lambda r: r.error_code),
    ("LeaveGroup", 5, LeaveGroupRequest("g", members=[MemberIdentity("m")]), lambda r: r.members[0].member_id),
    ("ListGroups", 5, ListGroupsRequest(), lambda r: r.error_code),
    ("DescribeGroups", 5, DescribeGroupsRequest(["g", "h"]), lambda r: [each.group_id for each in r.groups]),
    ("DeleteGroups", 2, DeleteGroupsRequest(["g", "h"]), lambda r: [each.group_id for each in r.results]),
    ("CreateTopics", 7, CreateTopicsRequest([CreatableTopic("t", 3, 1)]), lambda r: r.topics[0].name),
    ("DeleteTopics", 5, DeleteTopicsRequest(topic_names=["t"]), lambda r: r.responses[0].name),
    ("DeleteTopics", 6, DeleteTopicsRequest([DeleteTopicState("t")]), lambda r: r.responses[0].name),
    (
        "OffsetCommit",
        8,
        OffsetCommitRequest(
            "g", topics=[OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(3)])]
        ),
        lambda r: (r.topics[0].name, r.topics[0].partitions[0].partition_index),
    ),
    (
        "OffsetFetch",
        1,
        OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [3])]),
        lambda r: (r.topics[0].name, r.topics[0].partitions[0].partition_index),
    ),
    (
        "OffsetFetch",
        9,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("t", ID, [3])])]),
        lambda r: r.groups[0].group_id,
    ),
    (
        "DescribeConfigs",
        4,
        DescribeConfigsRequest([DescribeConfigsResource(2, "t")]),
        lambda r: (r.results[0].resource_type, r.results[0].resource_name),
    ),
    (
        "AddPartitionsToTxn",
        3,
        AddPartitionsToTxnRequest(v3_and_below_transactional_id="x", v3_and_below_topics=[TxnTopic("t", [3])]),
        lambda r: r.results_by_topic_v3_and_below[0].results_by_partition[0].partition_index,
    ),
    (
        "AddPartitionsToTxn",
        5,
        AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction("x", 1, 2, False, [TxnTopic("t", [3])])]),
        lambda r: (
            r.results_by_transaction[0].transactional_id,
            r.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_index,
        ),
    ),
    (
        "WriteTxnMarkers",
        1,
        WriteTxnMarkersRequest([WritableTxnMarker(7, 0, True, [WritableTxnMarkerTopic("t", [3])])]),
        lambda r: (r.markers[0].producer_id, r.markers[0].topics[0].partitions[0].partition_index),
    ),
]


def codes(message: Struct) -> list[int]:
    found = []
    for name in message.__slots__:
        value = getattr(message, name)
        if name.endswith("error_code") and name != "topic_config_error_code":
            found.append(value)
        elif isinstance(value, list):
            found += [code for item in value if isinstance(item, Struct) for code in codes(item)]
    return found


@pytest.mark.parametrize("later", [False, True], ids=["at once", "after a wait"])
@pytest.mark.parametrize(("api", "version", "message", "named"), REQUESTS, ids=lambda value: str(value)[:20])
def test_the_client_is_told_and_may_go_on(
    client: RawClient, fail: Any, api: str, version: int, message: Struct, named: Callable[[Any], Any], later: bool
) -> None:
    fail(api, later=later)
    with capture_logs() as logs:
        reply = client.ask(api, version, message)
    assert UNKNOWN in codes(reply)
    assert set(codes(reply)) <= {UNKNOWN, 0}
    named(reply)  # what the request named is in the reply
    assert client.is_answered()
    (logged,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert logged["request"] == f"{api} v{version}"
    assert isinstance(logged["exc_info"], Bug)


def test_what_the_request_named_comes_back_under_the_replys_names(client: RawClient, fail: Any) -> None:
    fail("Produce")
    produced = client.ask("Produce", 13, one_partition(3)).responses[0]
    assert (produced.topic_id, produced.partition_responses[0].index) == (ID, 3)
    assert produced.partition_responses[0].base_offset == -1
    assert produced.partition_responses[0].error_message
    fail("Fetch")
    fetched = client.ask("Fetch", 12, fetch_request("t", {3: 0, 5: 0}))
    assert fetched.error_code == UNKNOWN
    assert [data.partition_index for data in fetched.responses[0].partitions] == [3, 5]
    assert [data.high_watermark for data in fetched.responses[0].partitions] == [-1, -1]
    assert fetched.responses[0].topic == "t"
    fail("FindCoordinator")
    found = client.ask("FindCoordinator", 6, FindCoordinatorRequest(coordinator_keys=["g", "h"])).coordinators
    assert [(each.key, each.node_id, each.port) for each in found] == [("g", -1, -1), ("h", -1, -1)]
    fail("DescribeGroups")
    groups = client.ask("DescribeGroups", 5, DescribeGroupsRequest(["g", "h"])).groups
    assert [each.group_id for each in groups] == ["g", "h"]


def test_partitions_that_a_fetch_forgets_are_not_answered_for(client: RawClient, fail: Any) -> None:
    fail("Fetch")
    message = FetchRequest(session_id=1, session_epoch=1)
    message.forgotten_topics_data = [import_module("tidelog.wire.generated.fetch").ForgottenTopic("t", ID, [1])]
    reply = client.ask("Fetch", 13, message)
    assert (reply.error_code, reply.responses) == (UNKNOWN, [])


def test_without_a_place_for_the_error_the_connection_ends(client: RawClient, fail: Any) -> None:
    """Old metadata replies have no code of their own, and nothing was named that could carry one: an answer would
    tell of a cluster without topics."""
    fail("Metadata")
    client.send("Metadata", 12, MetadataRequest(None))
    assert client.is_closed_by_the_broker()


def test_acks_0_has_no_reply_so_the_connection_ends(client: RawClient, fail: Any) -> None:
    fail("Produce")
    client.send("Produce", 9, produce_request("t", batch(b"value", timestamp=-1), acks=0))
    assert client.is_closed_by_the_broker()


def test_a_reply_that_cannot_be_encoded_is_a_bug_too(
    broker: EmbeddedBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidelog.wire.generated.heartbeat import HeartbeatResponse

    handlers = broker._node.server._handlers
    monkeypatch.setitem(handlers, 12, lambda _request, _message: HeartbeatResponse(error_code="none"))  # type: ignore[arg-type]
    with capture_logs() as logs:
        assert client.ask("Heartbeat", 4, HeartbeatRequest("g")).error_code == UNKNOWN
    assert [entry["request"] for entry in logs if entry["log_level"] == "error"] == ["Heartbeat v4"]
    assert client.is_answered()


def test_a_repeated_produce_request_that_fails_is_answered(
    broker: EmbeddedBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("repeated")
    assert client.produce("repeated", b"one").error_code == 0
    from tidelog.broker.partition import Partition

    def bug(*_args: object, **_options: object) -> None:
        raise Bug("in the way that repeats take")

    monkeypatch.setattr(Partition, "append", bug)
    assert client.produce("repeated", b"two").error_code == UNKNOWN
    monkeypatch.undo()
    assert eventually(lambda: client.produce("repeated", b"two")).base_offset == 1


def test_a_batch_that_arrives_before_a_refused_one_is_refused_too(
    broker: EmbeddedBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients take the acknowledgement of a later batch for one of the earlier ones."""
    broker.create_topic("opening")
    from tidelog.broker.broker import Broker
    from tidelog.broker.ownership import NotLeader

    def produce(sequence: int) -> int:
        numbered = batch(b"a", b"b", timestamp=-1, producer_id=7, producer_epoch=0, sequence=sequence)
        reply = client.ask("Produce", 9, produce_request("opening", numbered, acks=-1))
        return int(reply.responses[0].partition_responses[0].error_code)

    def opening(*_: object) -> None:
        raise NotLeader("opening-0 is being opened")

    def produce_while_opening(sequence: int) -> int:
        with monkeypatch.context() as patched:
            patched.setattr(Broker, "partition", opening)
            return produce(sequence)

    assert produce_while_opening(0) == 6
    assert [produce(2), produce(4)] == [6, 6]
    assert [produce(0), produce(2), produce(4)] == [0, 0, 0]
    # Also if the log knows the producer: OUT_OF_ORDER_SEQUENCE makes clients send other batches twice.
    assert produce_while_opening(6) == 6
    assert [produce(8), produce(10)] == [6, 6]
    assert [produce(6), produce(8), produce(10)] == [0, 0, 0]
    assert client.fetch("opening").high_watermark == 12


def test_replies_keep_their_order_around_a_failure(broker: EmbeddedBroker, client: RawClient, fail: Any) -> None:
    broker.create_topic("ordered")
    fail("Heartbeat")
    client.send("Fetch", 12, fetch_request("ordered", {0: 0}, max_wait_ms=100, min_bytes=1))
    client.send("Heartbeat", 4, HeartbeatRequest("g"))
    client.send("Metadata", 12, MetadataRequest([]))
    assert client.reply().error_code == 0
    assert client.reply().error_code == UNKNOWN
    assert client.reply().cluster_id


@pytest.mark.parametrize("key", sorted(TABLE))
def test_every_api_that_names_nothing_either_tells_the_error_or_has_no_reply(key: int) -> None:
    """With a request of nothing but defaults: a reply, if there is one, can be read and holds the code."""
    api = APIS[key]
    kind = getattr(import_module(api.module), f"{api.name}Request")
    for version in range(api.min_version, api.max_version + 1):
        chunks = encode_request(api, version, 7, "test", kind())
        frame = memoryview(b"".join(chunks))[4:]  # type: ignore[arg-type]
        header = decode_request_header(frame)
        reply = error_reply(header, decode_request_body(header, frame), UNKNOWN, "why")
        if reply is not None:
            assert UNKNOWN in codes(api.response.decode(api.response.encode(reply, version), version))


def test_a_fetch_by_topic_id_is_answered_for_that_id() -> None:
    api = BY_NAME["Fetch"]
    message = FetchRequest(topics=[FetchTopic(topic_id=ID, partitions=[FetchPartition(3)])])
    frame = memoryview(b"".join(encode_request(api, 17, 7, "test", message)))[4:]  # type: ignore[arg-type]
    header = decode_request_header(frame)
    reply = error_reply(header, decode_request_body(header, frame), 56, "the disk is full")
    assert reply is not None
    decoded = api.response.decode(api.response.encode(reply, 17), 17)
    assert (decoded.error_code, decoded.responses[0].topic_id) == (56, ID)
    assert decoded.responses[0].partitions[0].error_code == 56
