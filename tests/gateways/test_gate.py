"""Every request of every API, at every version, is put to the broker's admission before anything is done for it; what
is refused is told in the API's own fields, and the rest of the request is answered."""

from collections.abc import Iterator

import pytest

from tests.gateways.raw import RawClient, fetch_request, produce_request, values_of
from tests.support.engines import Engine, embedded_broker
from tests.support.every_request import GROUP, REQUESTS, TOPIC
from tests.support.logs import batch
from tidelog.broker.admission import Operation, ResourceKind
from tidelog.broker.sessions import LONGEST_SOFTWARE, Session
from tidelog.embedding import EmbeddedBroker
from tidelog.gateways.kafka.api_table import OFFERED, TABLE
from tidelog.wire.apis import APIS, Api
from tidelog.wire.generated.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tidelog.wire.generated.api_versions import ApiVersionsRequest
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest
from tidelog.wire.generated.describe_topic_partitions import DescribeTopicPartitionsRequest
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest
from tidelog.wire.generated.list_groups import ListGroupsRequest
from tidelog.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.wire.generated.list_transactions import ListTransactionsRequest
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.wire.primitives import Struct

ON_TOPIC, ON_GROUP, ON_CLUSTER, ON_TRANSACTION = 29, 30, 31, 53
NOT_ATTEMPTED = 55
WRITE, T, CLUSTER = Operation.WRITE, ResourceKind.TOPIC, ResourceKind.CLUSTER

# What somebody who may do nothing at all is told.
REFUSED = {
    **dict.fromkeys((0, 1, 2, 3, 19, 20, 21, 23, 37, 61, 75, 10000, 10001, 10006), ON_TOPIC),
    **dict.fromkeys((8, 9, 10, 11, 12, 13, 14, 15, 42, 47, 68, 69, 77, 89, 90), ON_GROUP),
    **dict.fromkeys(
        (22, 27, 29, 30, 31, 34, 35, 43, 45, 46, 48, 49, 50, 51, 55, 57, 64, 74, 10004, 10005, 10007, 10008),
        ON_CLUSTER,
    ),
    **dict.fromkeys((25, 26, 28, 65, 10002, 10003), ON_TRANSACTION),
}
# Here it depends: on the version (24), or on the resources that are named (configs of a topic and of a broker).
REFUSED_WITH_ONE_OF = {24: {ON_TRANSACTION, ON_CLUSTER}, 32: {ON_TOPIC, ON_CLUSTER}, 33: {ON_TOPIC}, 44: {ON_TOPIC}}
# Who is there, which APIs there are, how to log in: for everybody. The lists 16 and 66 are empty.
FOR_EVERYBODY = {16, 17, 18, 36, 38, 39, 40, 41, 60, 66}
# Versions without a field for the error: the connection is closed, as for every error that cannot be told.
WITHOUT_A_PLACE = {(35, 1), (35, 2), (10004, 0)}

Rule = tuple[Operation, ResourceKind, str]


class Rules:
    """An authorizer of a test: refuses everything, or some things, and remembers what it was asked."""

    def __init__(self) -> None:
        self.version = 0
        self.asked: list[Rule] = []
        self.refused: set[Rule] | None = None  # None: everything

    def allows(self, _session: Session, operation: Operation, kind: ResourceKind, name: str) -> bool:
        self.asked.append((operation, kind, name))
        return self.refused is not None and (operation, kind, name) not in self.refused

    def refuse(self, *rules: Rule) -> None:
        self.refused = set(rules)
        self.version += 1


@pytest.fixture(scope="module")
def broker(engine: Engine) -> Iterator[EmbeddedBroker]:
    with embedded_broker(engine) as running:
        running.create_topic(TOPIC)
        yield running


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[RawClient]:
    with RawClient(int(broker.bootstrap_servers.rpartition(":")[2])) as connected:
        yield connected


@pytest.fixture
def rules(broker: EmbeddedBroker) -> Iterator[Rules]:
    admission = broker._node.broker.admission
    admission.authorizer = rules = Rules()
    yield rules
    admission.authorizer = None


@pytest.fixture
def topic_id(broker: EmbeddedBroker) -> bytes:
    return broker._node.broker.topics.get(TOPIC).topic_id


def codes(struct: Struct) -> set[int]:
    """All error codes of a reply but 0."""
    found = set()
    for name in struct.__slots__:
        value = getattr(struct, name)
        if name in ("error_code", "partition_error_code"):
            found.add(value)
        elif isinstance(value, list):
            for item in value:
                found |= codes(item) if isinstance(item, Struct) else set()
    return found - {0}


def test_every_api_that_is_offered_is_known_here() -> None:
    known = [*REFUSED, *REFUSED_WITH_ONE_OF, *FOR_EVERYBODY]
    assert sorted(known) == sorted(TABLE)


@pytest.mark.parametrize("key", sorted(FOR_EVERYBODY))
def test_what_is_for_everybody_demands_nothing(key: int) -> None:
    assert not TABLE[key].demands


@pytest.mark.parametrize("api", OFFERED, ids=lambda api: api.name)
def test_somebody_who_may_do_nothing_is_refused_at_every_version(
    client: RawClient, rules: Rules, topic_id: bytes, api: Api
) -> None:
    for version in range(api.min_version, api.max_version + 1):
        rules.asked.clear()
        rules.version += 1
        request = REQUESTS[api.key](version, topic_id)
        if (api.key, version) in WITHOUT_A_PLACE:
            continue
        found = codes(client.ask(api.name, version, request))
        if api.key in FOR_EVERYBODY:
            assert not found & {ON_TOPIC, ON_GROUP, ON_CLUSTER, ON_TRANSACTION}
            continue
        assert rules.asked, f"v{version} is answered without being asked for"
        assert found, f"v{version} is not refused"
        assert found <= REFUSED_WITH_ONE_OF.get(api.key, {REFUSED.get(api.key, 0)}), f"v{version}"


@pytest.mark.parametrize(("key", "version"), sorted(WITHOUT_A_PLACE))
def test_a_refusal_that_cannot_be_told_ends_the_connection(
    client: RawClient, rules: Rules, topic_id: bytes, key: int, version: int
) -> None:
    client.send(APIS[key].name, version, REQUESTS[key](version, topic_id))
    assert client.is_closed_by_the_broker()


def test_a_produce_with_acks_0_that_is_refused_ends_the_connection(client: RawClient, rules: Rules) -> None:
    client.send("Produce", 9, produce_request(TOPIC, batch(b"value", timestamp=-1), acks=0))
    assert client.is_closed_by_the_broker()


def test_a_produce_that_repeats_an_earlier_one_is_asked_for_too(client: RawClient, rules: Rules) -> None:
    rules.refuse()
    before = client.produce(TOPIC, b"admitted").base_offset
    assert client.produce(TOPIC, b"admitted").base_offset == before + 1
    rules.refuse((WRITE, T, TOPIC))
    assert client.produce(TOPIC, b"refused").error_code == ON_TOPIC
    rules.refuse()
    assert client.produce(TOPIC, b"admitted").base_offset == before + 2
    assert values_of(client.fetch(TOPIC, before)) == [b"admitted"] * 3


def test_a_decision_is_made_once_for_a_session_until_the_rules_change(client: RawClient, rules: Rules) -> None:
    rules.refuse()
    for _ in range(5):
        assert client.produce(TOPIC, b"value").error_code == 0
    assert rules.asked.count((WRITE, T, TOPIC)) == 1
    rules.refuse()
    assert client.produce(TOPIC, b"value").error_code == 0
    assert rules.asked.count((WRITE, T, TOPIC)) == 2


def test_a_request_is_answered_but_for_the_topics_that_are_refused(
    broker: EmbeddedBroker, client: RawClient, rules: Rules
) -> None:
    broker.create_topic("open")
    broker.create_topic("closed")
    rules.refuse((WRITE, T, "closed"), (Operation.DESCRIBE, T, "closed"))

    def data() -> list[PartitionProduceData]:
        return [PartitionProduceData(0, batch(b"value", timestamp=-1))]

    for number in range(2):  # the second must not be taken for a repeat of what was left of the first
        topics = [TopicProduceData(name, partition_data=data()) for name in ("closed", "open")]
        reply = client.ask("Produce", 9, ProduceRequest(None, -1, 1000, topics))
        found = {topic.name: topic.partition_responses[0] for topic in reply.responses}
        assert {name: each.error_code for name, each in found.items()} == {"open": 0, "closed": ON_TOPIC}
        assert found["open"].base_offset == number
    wanted = [ListOffsetsTopic(name, [ListOffsetsPartition(0, timestamp=-1)]) for name in ("open", "closed")]
    reply = client.ask("ListOffsets", 7, ListOffsetsRequest(-1, 0, wanted))
    assert [(topic.name, topic.partitions[0].error_code) for topic in reply.topics] == [
        ("open", 0),
        ("closed", ON_TOPIC),
    ]


def test_metadata_tells_of_the_brokers_and_of_the_topics_that_may_be_described(
    broker: EmbeddedBroker, client: RawClient, rules: Rules
) -> None:
    broker.create_topic("shown")
    broker.create_topic("hidden")
    hidden_id = broker._node.broker.topics.get("hidden").topic_id
    rules.refuse((Operation.DESCRIBE, T, "hidden"), (Operation.DESCRIBE, T, "none"))
    everything = client.ask("Metadata", 12, MetadataRequest(None))
    assert everything.brokers
    assert "shown" in {topic.name for topic in everything.topics}
    assert "hidden" not in {topic.name for topic in everything.topics}
    named = [MetadataRequestTopic(name=name) for name in ("shown", "hidden", "none")]
    found = client.ask("Metadata", 12, MetadataRequest(named, allow_auto_topic_creation=True))
    assert [(each.name, each.error_code, each.topic_id == bytes(16)) for each in found.topics] == [
        ("shown", 0, False),
        ("hidden", ON_TOPIC, True),
        ("none", ON_TOPIC, True),
    ]
    by_id = client.ask("Metadata", 12, MetadataRequest([MetadataRequestTopic(topic_id=hidden_id)])).topics
    assert [(each.name, each.error_code, each.topic_id) for each in by_id] == [(None, ON_TOPIC, hidden_id)]
    pages = client.ask("DescribeTopicPartitions", 0, DescribeTopicPartitionsRequest([])).topics
    assert "shown" in {each.name for each in pages}
    assert "hidden" not in {each.name for each in pages}


def test_a_topic_is_made_by_metadata_only_for_those_who_may(client: RawClient, rules: Rules) -> None:
    on_cluster = (Operation.CREATE, ResourceKind.CLUSTER, "kafka-cluster")

    def ask(name: str) -> int:
        wanted = [MetadataRequestTopic(name=name)]
        found = client.ask("Metadata", 12, MetadataRequest(wanted, allow_auto_topic_creation=True))
        code: int = found.topics[0].error_code
        return code

    rules.refuse(on_cluster, (Operation.CREATE, T, "wanted"))
    assert ask("wanted") == ON_TOPIC
    rules.refuse(on_cluster)
    assert ask("wanted") == 0
    rules.refuse((Operation.CREATE, T, "another"))
    assert ask("another") == 0


def test_a_fetch_session_is_told_of_each_partition_that_is_refused(
    broker: EmbeddedBroker, client: RawClient, rules: Rules
) -> None:
    broker.create_topic("fetched")
    rules.refuse()
    reply = client.ask("Fetch", 12, fetch_request("fetched", {0: 0}, session_epoch=0))
    assert codes(reply) == set()
    rules.refuse((Operation.READ, T, "fetched"))
    assert client.produce("fetched", b"value").error_code == 0
    again = client.ask("Fetch", 12, fetch_request("fetched", {}, session_id=reply.session_id, session_epoch=1))
    assert codes(again) == {ON_TOPIC}
    assert not again.responses[0].partitions[0].records


def test_offsets_of_a_group_are_told_but_for_the_topics_that_are_refused(client: RawClient, rules: Rules) -> None:
    rules.refuse((Operation.DESCRIBE, T, "closed"), (Operation.DESCRIBE, ResourceKind.GROUP, "other"))
    topics = [OffsetFetchRequestTopics(name, partition_indexes=[0, 1]) for name in ("closed", TOPIC)]
    groups = [OffsetFetchRequestGroup(name, topics=topics) for name in (GROUP, "other")]
    found = client.ask("OffsetFetch", 9, OffsetFetchRequest(groups=groups)).groups
    assert [(group.group_id, group.error_code) for group in found] == [(GROUP, 0), ("other", ON_GROUP)]
    assert {topic.name: {each.error_code for each in topic.partitions} for topic in found[0].topics} == {
        TOPIC: {0},
        "closed": {ON_TOPIC},
    }


def test_no_partition_is_added_to_a_transaction_if_one_is_refused(client: RawClient, rules: Rules) -> None:
    rules.refuse((WRITE, T, "closed"))
    topics = [AddPartitionsToTxnTopic(name, [0]) for name in (TOPIC, "closed")]
    reply = client.ask("AddPartitionsToTxn", 3, AddPartitionsToTxnRequest([], "id", 1, 0, topics))
    results = {each.name: codes(each) for each in reply.results_by_topic_v3_and_below}
    assert results == {TOPIC: {NOT_ATTEMPTED}, "closed": {ON_TOPIC}}


def test_topics_are_created_but_for_those_that_are_refused(client: RawClient, rules: Rules) -> None:
    rules.refuse((Operation.CREATE, ResourceKind.CLUSTER, "kafka-cluster"), (Operation.CREATE, T, "not-mine"))
    wanted = [CreatableTopic(name, 1, 1) for name in ("mine", "not-mine")]
    found = client.ask("CreateTopics", 7, CreateTopicsRequest(wanted, 1000)).topics
    assert {each.name: each.error_code for each in found} == {"mine": 0, "not-mine": ON_TOPIC}


def test_a_request_with_a_long_list_is_refused_entry_by_entry(client: RawClient, rules: Rules) -> None:
    rules.refuse(*((Operation.DESCRIBE, ResourceKind.GROUP, f"group-{number}") for number in range(0, 2000, 2)))
    found = client.ask("DescribeGroups", 6, DescribeGroupsRequest([f"group-{number}" for number in range(2000)]))
    refused = {each.group_id for each in found.groups if each.error_code == ON_GROUP}
    assert len(found.groups) == 2000
    assert refused == {f"group-{number}" for number in range(0, 2000, 2)}


def test_lists_tell_only_of_what_may_be_described(client: RawClient, rules: Rules) -> None:
    offsets = [OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, 1)])]
    rules.refuse()
    for group in ("listed", "unlisted"):
        assert codes(client.ask("OffsetCommit", 8, OffsetCommitRequest(group, topics=offsets))) == set()
        reply = client.ask("InitProducerId", 4, InitProducerIdRequest(group, 1000))
        assert reply.error_code == 0
    hidden = ("unlisted", Operation.DESCRIBE)
    rules.refuse(*((hidden[1], kind, hidden[0]) for kind in ResourceKind), (hidden[1], CLUSTER, "kafka-cluster"))
    groups = {each.group_id for each in client.ask("ListGroups", 5, ListGroupsRequest()).groups}
    ids = client.ask("ListTransactions", 2, ListTransactionsRequest()).transaction_states
    assert "listed" in groups
    assert "unlisted" not in groups
    assert {"listed"} == {each.transactional_id for each in ids} & {"listed", "unlisted"}


def test_a_client_is_told_what_it_may_do(client: RawClient, rules: Rules) -> None:
    rules.refuse((WRITE, T, TOPIC), (Operation.ALTER, CLUSTER, "kafka-cluster"))
    request = MetadataRequest([MetadataRequestTopic(name=TOPIC)], False, True, True)
    reply = client.ask("Metadata", 8, request)
    told = reply.topics[0].topic_authorized_operations, reply.cluster_authorized_operations
    on_topic, on_cluster = ({code for code in range(16) if bits >> code & 1} for bits in told)
    assert on_topic == {3, 5, 6, 7, 8, 10, 11} - {4}
    assert on_cluster == {5, 8, 9, 10, 11, 12}


def test_a_session_knows_its_client(broker: EmbeddedBroker, client: RawClient) -> None:
    client.ask("ApiVersions", 3, ApiVersionsRequest("some-library", "1." + "2" * 1000))
    sessions = [connection.session for connection in broker._node.server._connections]
    mine = next(each for each in sessions if each.software.name == "some-library")
    assert (str(mine.principal), mine.client_id, mine.peer) == ("User:ANONYMOUS", "raw", "127.0.0.1")
    assert mine.software.version == "1." + "2" * (LONGEST_SOFTWARE - 2)
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    assert mine.listener == ("PLAINTEXT", "127.0.0.1", port)
