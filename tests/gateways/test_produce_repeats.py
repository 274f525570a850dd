"""A request that repeats an earlier one gets the answer it would get on a connection that never saw the like."""

import random
import struct
from types import SimpleNamespace

import pytest

from tests.gateways.raw import RawClient, frame, produce_request, values_of
from tests.support.brokers import BrokerProcess, unique
from tests.support.logs import batch
from tidelog.broker.admission import Admission
from tidelog.broker.sessions import Endpoint, Session
from tidelog.errors import StorageError
from tidelog.gateways.kafka.produce_repeats import MOST_KNOWN, ProduceRepeats
from tidelog.model import TopicPartition
from tidelog.promise import Promise
from tidelog.storage.log import Appended
from tidelog.wire.apis import BY_NAME
from tidelog.wire.envelope import decode_response, encode_request
from tidelog.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

PRODUCE = BY_NAME["Produce"]
SESSION = Session(Endpoint("PLAINTEXT", "localhost", 9092))
UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, CORRUPT_MESSAGE = 3, 100, 2


class NoBroker:
    admission = Admission()


def records(*values: bytes) -> bytearray:
    return batch(*values, timestamp=-1)


def request_of(version: int, topic: str, topic_id: bytes, data: bytearray, index: int, acks: int) -> ProduceRequest:
    wanted = TopicProduceData(topic, topic_id, [PartitionProduceData(index, data)])
    return ProduceRequest(None, acks, 10_000, [wanted])


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_and_record_length(client: RawClient, version: int, acks: int) -> None:
    """The length of the records is a varint of one, two and three bytes in turn."""
    topic = unique("topic")
    topic_id = client.create_topic(topic, 2)
    written: dict[int, list[bytes]] = {0: [], 1: []}
    for number, size in enumerate([1, 10, 60, 100, 500, 20_000, 1, 70_000] * 3):
        value, index = b"%d" % (number % 10) * size, number % 2
        reply = client.ask("Produce", version, request_of(version, topic, topic_id, records(value), index, acks))
        result = reply.responses[0].partition_responses[0]
        assert (reply.responses[0].name, reply.responses[0].topic_id) == (
            (topic, bytes(16)) if version < 13 else ("", topic_id)
        )
        assert (result.index, result.error_code, result.base_offset) == (index, 0, len(written[index]))
        assert (result.log_append_time_ms, result.log_start_offset) == (-1, 0 if version >= 5 else -1)
        written[index].append(value)
    assert values_of(client.fetch(topic, partition_max_bytes=10 << 20)) == written[0]


def test_a_very_long_beginning_is_not_kept() -> None:
    repeats = ProduceRepeats(NoBroker(), SESSION)  # type: ignore[arg-type]
    message = produce_request("topic", records(b"value"))
    for client_id, known in (("c" * 100, 1), ("c" * 30_000, 0)):
        framed = b"".join(encode_request(PRODUCE, 9, 1, client_id, message))[4:]  # type: ignore[arg-type]
        repeats._known.clear()
        repeats.learn(memoryview(framed), 9, message.topic_data[0], durable=True)
        assert len(repeats._known) == known


def test_append_time_and_log_start_are_of_now(client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, message_timestamp_type="LogAppendTime")
    times = [client.produce(topic, b"value").log_append_time_ms for _ in range(3)]
    assert times == sorted(times)
    assert times[0] > 1_700_000_000_000


def test_topics_by_turns(client: RawClient) -> None:
    """More names and lengths of names than are remembered."""
    topics = [unique("topic" + "x" * number) for number in range(7)]
    for topic in topics:
        client.create_topic(topic)
    for offset in range(4):
        for topic in topics:
            assert client.produce(topic, b"%d" % offset).base_offset == offset


def test_a_topic_that_is_gone_is_gone_for_repeats(client: RawClient) -> None:
    topic = unique("topic")
    topic_id = client.create_topic(topic)
    ask = request_of(13, topic, topic_id, records(b"value"), 0, 1)
    for version in (9, 9, 13, 13):
        assert client.ask("Produce", version, ask).responses[0].partition_responses[0].error_code == 0
    gone = client.ask("DeleteTopics", 6, DeleteTopicsRequest([DeleteTopicState(topic)], [], 10_000))
    assert gone.responses[0].error_code == 0
    assert client.produce(topic, b"value").error_code == UNKNOWN_TOPIC_OR_PARTITION
    client.create_topic(topic)
    assert client.produce(topic, b"value").base_offset == 0
    old_id = client.ask("Produce", 13, ask).responses[0].partition_responses[0]
    assert old_id.error_code == UNKNOWN_TOPIC_ID


def test_what_is_wrong_with_a_repeat_is_said(client: RawClient, topic: str) -> None:
    good, bad = records(b"value"), records(b"value")
    bad[-1] ^= 1
    for expected, data in enumerate([good, good, bad, good]):
        result = client.ask("Produce", 9, produce_request(topic, data)).responses[0].partition_responses[0]
        if data is bad:
            assert (result.error_code, result.base_offset) == (CORRUPT_MESSAGE, -1)
            assert "CRC" in result.error_message
        else:
            assert (result.error_code, result.base_offset) == (0, expected - (expected > 2))


def outcome(broker: BrokerProcess, frames: list[bytes]) -> bytes | None:
    """The last of the replies with its offset blanked, or None if the connection was closed instead."""
    with RawClient(broker.port) as client:
        client.socket.sendall(b"".join(frames))
        try:
            replies = [client.receive_frame() for _ in frames]
        except ConnectionError:
            return None
    reply: ProduceResponse = decode_response(PRODUCE, 9, replies[-1])
    for topic in reply.responses:
        for result in topic.partition_responses:
            result.base_offset = min(result.base_offset, 0)
    return repr(reply).encode() + replies[-1][:4]


@pytest.mark.parametrize("seed", range(4))
def test_almost_a_repeat_is_answered_as_if_it_came_first(
    broker: BrokerProcess, client: RawClient, topic: str, seed: int
) -> None:
    rng = random.Random(seed)
    right = frame(PRODUCE, 9, 7, produce_request(topic, records(b"value" * 30)))
    for _ in range(60):
        wrong = bytearray(right[4:])
        for _ in range(rng.randint(1, 2)):
            place = rng.choice([rng.randrange(8, 70), rng.randrange(8, len(wrong)), len(wrong) - rng.randint(1, 4)])
            change = rng.choice(["flip", "insert", "cut"])
            if change == "flip":
                wrong[place] ^= 1 << rng.randrange(8)
            elif change == "insert":
                wrong[place:place] = bytes([rng.choice([0, 1, 127, 128, 255])])
            else:
                del wrong[place]
        framed = struct.pack(">i", len(wrong)) + wrong
        assert outcome(broker, [right, right, framed]) == outcome(broker, [framed]), framed.hex()


@pytest.mark.parametrize("is_sole", [True, False])
def test_a_failed_sync_is_an_error_and_memory_is_bounded(is_sole: bool) -> None:
    """Against a broker of our own making, whose sync fails; and with more partitions than are remembered."""

    syncing: Promise[Appended] = Promise()
    refusals: list[tuple[object, ...]] = []

    class Partition:
        name = TopicPartition("topic", 0)

        class config:  # noqa: N801
            message_timestamp_type = None

        class log:  # noqa: N801
            start_offset = 0

        def append(self, data: memoryview, **_: object) -> Promise[Appended]:
            return syncing

    class Broker(NoBroker):
        ownership = SimpleNamespace(is_sole=is_sole)

        def batch_refused(self, *noted: object) -> None:
            refusals.append(noted)

        def partition(self, topic: str, index: int) -> Partition:
            return Partition()

    repeats = ProduceRepeats(Broker(), SESSION)  # type: ignore[arg-type]
    for index in range(MOST_KNOWN + 10):
        message = produce_request("topic", records(b"value"), partition=index, acks=-1)
        framed = memoryview(frame(PRODUCE, 9, 77, message))[4:]
        repeats.learn(framed, 9, message.topic_data[0], durable=True)
    assert len(repeats._known) <= MOST_KNOWN
    waiting = repeats.answer(framed)
    assert isinstance(waiting, Promise)
    syncing.fail(StorageError("the disk is gone"))
    sent = waiting.result()
    reply = decode_response(PRODUCE, 9, bytes(sent[4:]))
    result = reply.responses[0].partition_responses[0]
    assert (result.index, result.base_offset, result.error_message) == (MOST_KNOWN + 9, -1, "the disk is gone")
    assert result.error_code == StorageError.kafka_code
    assert sent[4:8] == struct.pack(">i", 77)
    assert len(refusals) == (0 if is_sole else 1), "in a cluster the log may forget the batch"
