"""Transactions on the wire: what Produce takes and refuses, in which order, and what a fetch tells."""

import threading
import time

import pytest

from tests.gateways.raw import RawClient
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.logs import batch
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.records.batch import iterate
from tidelog.records.record import build_marker
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidelog.wire.generated.api_versions import ApiVersionsRequest
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.end_txn import EndTxnRequest, EndTxnResponse
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from tidelog.wire.generated.find_coordinator import FindCoordinatorRequest
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest
from tidelog.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def offsets(data: PartitionData) -> list[int]:
    """Where its batches begin."""
    assert isinstance(data.records, memoryview)
    return [view.header.base_offset for view in iterate(data.records)]


class Producer:
    """A transactional producer that sends what it is told, with the versions that it is told."""

    def __init__(self, client: RawClient, *, version: int = 12) -> None:
        self.client = client
        self.version = version
        self.id = unique("id")
        self.topic = unique("topic")
        created = client.ask("CreateTopics", 5, CreateTopicsRequest([CreatableTopic(self.topic, 2, 1)], 10_000))
        assert created.topics[0].error_code == 0
        reply = client.ask("InitProducerId", 4, InitProducerIdRequest(self.id, 60_000))
        self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
        self.sequence = 0

    def request(
        self, *values: bytes, partition: int = 0, epoch: int | None = None, id_: str | None = None
    ) -> ProduceRequest:
        data = batch(
            *values,
            timestamp=time.time_ns() // 1_000_000,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            sequence=self.sequence,
            transactional=True,
        )
        self.sequence += len(values)
        topics = [TopicProduceData(self.topic, partition_data=[PartitionProduceData(partition, data)])]
        return ProduceRequest(id_ or self.id, -1, 10_000, topics)

    def produce(self, *values: bytes, partition: int = 0, epoch: int | None = None) -> int:
        reply = self.client.ask("Produce", self.version, self.request(*values, partition=partition, epoch=epoch))
        code: int = reply.responses[0].partition_responses[0].error_code
        if code:
            self.sequence -= len(values)
        return code

    def add(self, *partitions: int) -> int:
        message = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(self.topic, list(partitions))],
        )
        reply = self.client.ask("AddPartitionsToTxn", 3, message)
        code: int = reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return code

    def end(self, committed: bool = True, version: int | None = None) -> EndTxnResponse:
        version = version or (5 if self.version >= 12 else 4)
        reply: EndTxnResponse = self.client.ask(
            "EndTxn", version, EndTxnRequest(self.id, self.producer_id, self.epoch, committed)
        )
        if version >= 5 and not reply.error_code:
            self.producer_id, self.epoch, self.sequence = reply.producer_id, reply.producer_epoch, 0
        return reply

    def fetch(self, *, committed: bool, wait_ms: int = 0, offset: int = 0) -> PartitionData:
        message = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=int(committed),
            topics=[
                FetchTopic(
                    self.topic, partitions=[FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)]
                )
            ],
        )
        data: PartitionData = self.client.ask("Fetch", 12, message).responses[0].partitions[0]
        return data

    def latest(self, *, committed: bool, timestamp: int = -1) -> int:
        wanted = [ListOffsetsTopic(self.topic, [ListOffsetsPartition(0, timestamp=timestamp)])]
        reply = self.client.ask("ListOffsets", 7, ListOffsetsRequest(-1, int(committed), wanted))
        offset: int = reply.topics[0].partitions[0].offset
        return offset


def test_the_broker_says_that_it_has_transactions_of_version_2(client: RawClient) -> None:
    reply = client.ask("ApiVersions", 3, ApiVersionsRequest("test", "1"))
    assert ("transaction.version", 2) in [(each.name, each.max_version_level) for each in reply.finalized_features]
    found = client.ask("FindCoordinator", 4, FindCoordinatorRequest(key_type=1, coordinator_keys=["id"]))
    assert [each.error_code for each in found.coordinators] == [0]


@pytest.mark.parametrize(
    ("version", "code"), [(9, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE), (12, 0)]
)
def test_a_partition_that_is_not_in_the_transaction(client: RawClient, version: int, code: int) -> None:
    producer = Producer(client, version=version)
    assert producer.produce(b"first") == code
    if code:
        assert producer.add(0) == 0
        assert producer.produce(b"first") == 0
        assert producer.produce(b"other partition", partition=1) == code
        assert producer.end().error_code == 0
        # Until the markers are durable the client is told to try again.
        eventually(lambda: producer.produce(b"after the end"), until=lambda seen: seen == code)


@pytest.mark.parametrize("committed", [False, True])
def test_the_next_transaction_is_aborted_while_the_last_is_being_completed(
    client: RawClient, committed: bool
) -> None:
    """A client knows its next epoch; with linger it may have sent nothing of a transaction that it aborts."""
    producer = Producer(client)
    for _ in range(10):
        assert producer.produce(b"in it") == 0
        for ends, epoch in ((committed, producer.epoch), (False, producer.epoch + 1)):
            client.send("EndTxn", 5, EndTxnRequest(producer.id, producer.producer_id, epoch, ends))
        first, second = client.reply(), client.reply()
        assert (first.error_code, second.error_code) == (0, 0)
        assert second.producer_epoch == first.producer_epoch + 1 == producer.epoch + 2
        producer.epoch, producer.sequence = second.producer_epoch, 0


def test_late_batches_of_a_transaction_do_not_slip_into_the_next(client: RawClient) -> None:
    producer = Producer(client)
    assert producer.produce(b"in it") == 0
    old_epoch = producer.epoch
    producer.end()
    assert producer.produce(b"late", epoch=old_epoch) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.produce(b"next") == 0
    assert producer.end().error_code == 0
    assert offsets(producer.fetch(committed=True)) == [0, 1, 2, 3]


def test_requests_that_came_together_are_appended_in_their_order(client: RawClient) -> None:
    producer = Producer(client)
    for _ in range(20):
        frames = b"".join(
            client.framed("Produce", 12, producer.request(b"%d" % number, partition=0)) for number in range(10)
        )
        client.socket.sendall(frames)
        for _ in range(10):
            result = client.reply().responses[0].partition_responses[0]
            assert result.error_code == 0, result
        assert producer.end().error_code == 0


def test_only_the_owner_of_a_transactional_id_may_use_it(client: RawClient) -> None:
    producer, other = Producer(client), Producer(client)
    reply = client.ask("Produce", 12, producer.request(b"x", id_=other.id))
    assert reply.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    message = producer.request(b"x")
    message.transactional_id = None
    reply = client.ask("Produce", 12, message)
    assert reply.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD


def test_nobody_may_produce_markers(client: RawClient) -> None:
    producer = Producer(client)
    assert producer.produce(b"open") == 0
    marker = build_marker(
        committed=True,
        producer_id=ProducerId(producer.producer_id),
        producer_epoch=ProducerEpoch(producer.epoch),
        coordinator_epoch=0,
        timestamp=time.time_ns() // 1_000_000,
    )
    plain = batch(b"in front", timestamp=time.time_ns() // 1_000_000)
    for data in (marker, plain + marker):
        for id_ in (None, producer.id):
            topics = [TopicProduceData(producer.topic, partition_data=[PartitionProduceData(0, data)])]
            reply = client.ask("Produce", 12, ProduceRequest(id_, -1, 10_000, topics))
            assert reply.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD
    assert producer.fetch(committed=False).last_stable_offset == 0


def test_a_fetch_of_committed_records_ends_at_the_last_stable_offset_and_tells_what_was_aborted(
    client: RawClient,
) -> None:
    producer = Producer(client)
    producer.produce(b"aborted")
    first_id = producer.producer_id
    producer.end(committed=False)
    producer.produce(b"open")
    data = producer.fetch(committed=True)
    assert (data.high_watermark, data.last_stable_offset) == (3, 2)
    assert offsets(data) == [0, 1]
    assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()] == [(first_id, 0)]
    assert producer.fetch(committed=False).aborted_transactions is None
    assert (producer.latest(committed=True), producer.latest(committed=False)) == (2, 3)
    newest = time.time_ns() // 1_000_000 - 60_000
    producer.end(committed=False)
    assert producer.latest(committed=True, timestamp=newest) == 0


def test_an_open_record_is_not_found_by_its_time_unless_uncommitted_ones_are_wanted(client: RawClient) -> None:
    producer = Producer(client)
    producer.produce(b"open")
    for timestamp in (0, -3):
        assert producer.latest(committed=False, timestamp=timestamp) == 0
        assert producer.latest(committed=True, timestamp=timestamp) == -1


def test_a_waiting_fetch_of_committed_records_is_answered_by_the_commit(
    client: RawClient, broker: BrokerProcess
) -> None:
    producer = Producer(client)
    producer.produce(b"first")
    answered: list[tuple[float, PartitionData]] = []

    def wait() -> None:
        with RawClient(broker.port) as other:
            reader = Producer.__new__(Producer)
            reader.client, reader.topic = other, producer.topic
            data = reader.fetch(committed=True, wait_ms=8000)
            answered.append((time.monotonic(), data))

    waiting = threading.Thread(target=wait)
    began = time.monotonic()
    waiting.start()
    for number in range(5):
        time.sleep(0.05)  # batches that it must not be woken for
        producer.produce(b"more %d" % number)
    assert not answered
    committed_at = time.monotonic()
    producer.end()
    waiting.join(10)
    ((at, data),) = answered
    assert committed_at <= at < began + 6
    assert len(offsets(data)) == 7


def test_many_transactions_are_verified_with_one_request(client: RawClient) -> None:
    first, second = Producer(client), Producer(client)
    first.produce(b"x")
    asked = [
        AddPartitionsToTxnTransaction(
            each.id, each.producer_id, each.epoch, True, [AddPartitionsToTxnTopic(each.topic, [0, 1])]
        )
        for each in (first, second)
    ]
    for version, missing in ((4, ErrorCode.INVALID_TXN_STATE), (5, ErrorCode.TRANSACTION_ABORTABLE)):
        reply = client.ask("AddPartitionsToTxn", version, AddPartitionsToTxnRequest(asked))
        codes = [
            [each.partition_error_code for each in result.topic_results[0].results_by_partition]
            for result in reply.results_by_transaction
        ]
        assert codes == [[0, missing], [missing, missing]]


def test_an_unknown_partition_keeps_the_others_from_being_added(client: RawClient) -> None:
    producer = Producer(client, version=9)
    message = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(producer.topic, [0, 7])],
    )
    reply = client.ask("AddPartitionsToTxn", 3, message)
    (topic,) = reply.results_by_topic_v3_and_below
    assert [each.partition_error_code for each in topic.results_by_partition] == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert producer.produce(b"x") == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
def test_old_clients_know_a_fence_by_another_code(client: RawClient, version: int, code: int) -> None:
    producer = Producer(client, version=9)
    client.ask("InitProducerId", 4, InitProducerIdRequest(producer.id, 60_000))
    assert producer.end(version=version).error_code == code
