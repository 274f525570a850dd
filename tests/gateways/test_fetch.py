"""When a fetch is answered, and with how much."""

import gc
import time
from collections.abc import Iterator

import pytest

from tests.gateways.conftest import StartBroker
from tests.gateways.raw import (
    RawClient,
    fetch_request,
    partitions_of,
    produce_request,
    records_of,
    values_of,
)
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.engines import Engine, embedded_broker
from tests.support.logs import batch
from tidelog.broker.fetching import LongPoll
from tidelog.records.batch import iterate
from tidelog.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
UNKNOWN_LEADER_EPOCH = 75
UNKNOWN_TOPIC_ID = 100
PATIENT_MS = 60_000  # longer than the client waits for a reply


@pytest.fixture
def other(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as connected:
        yield connected


def test_without_data_it_waits_for_max_wait(client: RawClient, topic: str) -> None:
    began = time.monotonic()
    response = client.ask("Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=300, min_bytes=1))
    assert time.monotonic() - began > 0.28
    assert values_of(partitions_of(response)[0]) == []


@pytest.mark.parametrize(("min_bytes", "max_wait_ms"), [(0, PATIENT_MS), (1, 0)])
def test_without_a_minimum_or_patience_it_is_answered_at_once(
    client: RawClient, topic: str, min_bytes: int, max_wait_ms: int
) -> None:
    client.ask("Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=max_wait_ms, min_bytes=min_bytes))


def test_it_is_answered_as_soon_as_data_comes(client: RawClient, other: RawClient, topic: str) -> None:
    """Also when both arrive in the same moment, so that the data comes before the wait has begun."""
    for offset in range(100):
        client.send("Fetch", 12, fetch_request(topic, {0: offset}, max_wait_ms=PATIENT_MS, min_bytes=1))
        other.send("Produce", 9, produce_request(topic, batch(b"value", timestamp=-1)))
        assert values_of(partitions_of(client.reply())[0]) == [b"value"]
        other.reply()


def test_a_minimum_above_the_maximum_is_not_waited_for(client: RawClient, topic: str) -> None:
    for _ in range(5):
        client.produce(topic, b"x" * 1000)
    response = client.ask(
        "Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=PATIENT_MS, min_bytes=1 << 30, max_bytes=1000)
    )
    assert len(values_of(partitions_of(response)[0])) == 1


def test_min_bytes_are_gathered_over_appends_and_partitions(client: RawClient, other: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, 3)
    client.send("Fetch", 12, fetch_request(topic, {0: 0, 1: 0, 2: 0}, max_wait_ms=PATIENT_MS, min_bytes=3000))
    for number in range(6):
        assert other.produce(topic, b"x" * 500, partition=number % 3).error_code == 0
    found = partitions_of(client.reply())
    assert sum(len(data.records or b"") for data in found.values()) >= 3000


def test_min_bytes_that_never_come_are_waited_for_and_what_is_there_comes(
    client: RawClient, other: RawClient, topic: str
) -> None:
    other.produce(topic, b"little")
    began = time.monotonic()
    response = client.ask("Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=300, min_bytes=100_000))
    assert time.monotonic() - began > 0.28
    assert values_of(partitions_of(response)[0]) == [b"little"]


def test_an_error_in_one_partition_is_told_at_once(client: RawClient, topic: str) -> None:
    response = client.ask("Fetch", 12, fetch_request(topic, {0: 0, 7: 0}, max_wait_ms=PATIENT_MS, min_bytes=1))
    found = partitions_of(response)
    assert found[0].error_code == 0
    assert found[7].error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_a_waiting_fetch_learns_that_its_topic_is_deleted(client: RawClient, other: RawClient, topic: str) -> None:
    client.send("Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=PATIENT_MS, min_bytes=1))
    other.ask("DeleteTopics", 6, DeleteTopicsRequest([DeleteTopicState(topic)], timeout_ms=1000))
    assert partitions_of(client.reply())[0].error_code == UNKNOWN_TOPIC_OR_PARTITION


def test_batches_come_whole_from_the_one_that_holds_the_offset(client: RawClient, topic: str) -> None:
    for number in range(5):
        client.produce(topic, *(b"%d-%d" % (number, each) for each in range(10)))
    records = records_of(client.fetch(topic, 23))
    assert [record.offset for record in records] == list(range(20, 50))


def test_partition_max_bytes_bounds_what_comes(client: RawClient, topic: str) -> None:
    for _ in range(10):
        client.produce(topic, b"x" * 1000)
    whole = client.fetch(topic)
    size = len(whole.records or b"") // 10
    assert len(values_of(client.fetch(topic, partition_max_bytes=3 * size))) == 3
    assert len(values_of(client.fetch(topic, partition_max_bytes=3 * size + size - 1))) == 3


@pytest.mark.parametrize("limits", [{"partition_max_bytes": 1}, {"max_bytes": 1}, {"partition_max_bytes": 0}])
def test_the_first_batch_comes_however_large_it_is(client: RawClient, topic: str, limits: dict[str, int]) -> None:
    client.produce(topic, b"x" * 900_000)
    client.produce(topic, b"y" * 900_000)
    assert values_of(client.fetch(topic, **limits)) == [b"x" * 900_000]
    assert values_of(client.fetch(topic, 1, **limits)) == [b"y" * 900_000]


def test_max_bytes_bounds_all_partitions_together(client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, 4)
    for partition in range(4):
        client.produce(topic, b"x" * 10_000, partition=partition)
    offsets = dict.fromkeys(range(4), 0)
    found = partitions_of(client.ask("Fetch", 12, fetch_request(topic, offsets, max_bytes=25_000)))
    assert [len(values_of(found[partition])) for partition in range(4)] == [1, 1, 0, 0]
    found = partitions_of(client.ask("Fetch", 12, fetch_request(topic, offsets, max_bytes=1)))
    assert [len(values_of(found[partition])) for partition in range(4)] == [1, 0, 0, 0]
    assert {data.high_watermark for data in found.values()} == {1}


def test_a_session_gives_every_partition_its_turn(client: RawClient) -> None:
    """Those that were served go to the back, so one that is always full does not starve the others."""
    topic = unique("topic")
    client.create_topic(topic, 4)
    for partition in range(4):
        client.produce(topic, b"x" * 10_000, partition=partition)
    offsets = dict.fromkeys(range(4), 0)
    response = client.ask("Fetch", 12, fetch_request(topic, offsets, max_bytes=1, session_epoch=0))
    served = []
    for epoch in range(1, 9):
        response = client.ask(
            "Fetch", 12, fetch_request(topic, {}, max_bytes=1, session_id=response.session_id, session_epoch=epoch)
        )
        served += [partition for partition, data in partitions_of(response).items() if data.records]
    assert sorted(served) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_broker_has_a_bound_of_its_own_for_a_reply(start_broker: StartBroker) -> None:
    broker = start_broker({"kafka.fetch.max.bytes": "100000"})
    with RawClient(broker.port) as client:
        topic = unique("topic")
        client.create_topic(topic)
        for _ in range(20):
            client.produce(topic, b"x" * 20_000)
        data = client.fetch(topic, max_bytes=0x7FFF_FFFF, partition_max_bytes=0x7FFF_FFFF)
        assert len(data.records or b"") <= 100_000


@pytest.mark.parametrize("offset", [-1, 2, 1 << 40, -(1 << 62)])
def test_an_offset_outside_the_log_is_refused_with_the_bounds(client: RawClient, topic: str, offset: int) -> None:
    client.produce(topic, b"value")
    data = client.fetch(topic, offset)
    assert data.error_code == OFFSET_OUT_OF_RANGE
    assert values_of(data) == []


def test_the_end_of_the_log_is_an_offset_like_any_other(client: RawClient, topic: str) -> None:
    client.produce(topic, b"value")
    data = client.fetch(topic, 1)
    assert (data.error_code, data.high_watermark, data.log_start_offset) == (0, 1, 0)


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (1, UNKNOWN_LEADER_EPOCH)])
def test_the_leader_epoch_is_checked(client: RawClient, topic: str, epoch: int, code: int) -> None:
    partition = FetchPartition(0, current_leader_epoch=epoch, partition_max_bytes=1000)
    response = client.ask("Fetch", 12, FetchRequest(topics=[FetchTopic(topic, partitions=[partition])]))
    assert partitions_of(response)[0].error_code == code


def test_topic_ids_replace_names_from_version_13(client: RawClient) -> None:
    topic = unique("topic")
    topic_id = client.create_topic(topic)
    client.produce(topic, b"value")
    for asked, code in ((topic_id, 0), (b"\x01" * 16, UNKNOWN_TOPIC_ID)):
        partition = FetchPartition(0, partition_max_bytes=1000)
        response = client.ask("Fetch", 16, FetchRequest(topics=[FetchTopic("", asked, [partition])]))
        assert response.responses[0].topic_id == asked
        assert partitions_of(response)[0].error_code == code


def test_every_version_gives_the_same_records(client: RawClient) -> None:
    topic = unique("topic")
    topic_id = client.create_topic(topic)
    client.produce(topic, b"a", b"b", b"c")
    for version in range(4, 19):
        wanted = [FetchTopic(topic, topic_id, [FetchPartition(0, partition_max_bytes=1 << 20)])]
        response = client.ask("Fetch", version, FetchRequest(topics=wanted))
        assert values_of(partitions_of(response)[0]) == [b"a", b"b", b"c"], version


def test_stored_batches_carry_their_offsets_and_the_leader_epoch(client: RawClient, topic: str) -> None:
    client.send("Produce", 9, produce_request(topic, batch(b"a", b"b", timestamp=-1)))
    client.send("Produce", 9, produce_request(topic, batch(b"c", timestamp=-1)))
    assert client.reply().responses[0].partition_responses[0].base_offset == 0
    assert client.reply().responses[0].partition_responses[0].base_offset == 2
    views = list(iterate(bytes(client.fetch(topic).records or b"")))  # type: ignore[arg-type]
    assert [view.header.base_offset for view in views] == [0, 2]
    assert {view.header.leader_epoch for view in views} == {0}


def test_a_fetch_whose_client_hangs_up_waits_no_longer(engine: Engine) -> None:
    def waiting() -> int:
        gc.collect()
        return sum(isinstance(each, LongPoll) for each in gc.get_objects())

    with embedded_broker(engine) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        clients = [RawClient(port) for _ in range(20)]
        clients[0].create_topic("t", 5)
        for client in clients:
            client.send("Fetch", 12, fetch_request("t", dict.fromkeys(range(5), 0), max_wait_ms=300_000, min_bytes=1))
        eventually(lambda: waiting() == 20)
        for client in clients[1:]:
            client.close()
        eventually(lambda: waiting() == 1)
        with RawClient(port) as other:
            other.produce("t", b"value", partition=3)
        assert values_of(partitions_of(clients[0].reply())[3]) == [b"value"]
        eventually(lambda: waiting() == 0)
        clients[0].close()
