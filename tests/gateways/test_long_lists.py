"""Requests with the longest lists there may be, of every API: others are served meanwhile, and memory stays bounded.

The time that counts is the CPU time of the event loop's thread in one turn: it is what everybody else waits for.
"""

import contextlib
import gc
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.gateways.raw import RawClient, fetch_request, produce_request
from tests.gateways.raw import frame as framed
from tests.support.brokers import eventually, unique
from tests.support.engines import Engine, embedded_broker
from tests.support.logs import batch
from tests.support.long_lists import KNOWN_PARTITIONS, KNOWN_TOPIC, Shape, long_frame, request_kind, shapes
from tidelog.embedding import EmbeddedBroker
from tidelog.gateways.kafka.api_table import TABLE
from tidelog.gateways.kafka.long_requests import PLANS, plan_of
from tidelog.wire.apis import APIS, BY_NAME, Api
from tidelog.wire.envelope import decode_bounded_body, decode_request_header, decode_response
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.wire.protocol_errors import TooManyEntries

MOST_SECONDS = 0.2  # of CPU; the goal is half of it, on a machine that does nothing else
MOST_ENTRIES = 1 << 16
UNKNOWN_TOPIC_OR_PARTITION = 3


class Watch:
    """The longest turn of a loop, in CPU time of its thread. Without garbage collection, which here goes through
    everything that pytest and the modules of all tests hold."""

    def __init__(self, loop: Any) -> None:
        self.longest = 0.0
        run_once = loop._run_once
        thread = 0
        collecting = began_collecting = 0.0

        def timed() -> None:
            nonlocal collecting
            collecting, began = 0.0, time.thread_time()
            run_once()
            self.longest = max(self.longest, time.thread_time() - began - collecting)

        def collected(phase: str, _info: dict[str, int]) -> None:
            nonlocal collecting, began_collecting
            if threading.get_ident() == thread:
                if phase == "start":
                    began_collecting = time.thread_time()
                else:
                    collecting += time.thread_time() - began_collecting

        watching = threading.Event()

        def begin() -> None:
            nonlocal thread
            thread = threading.get_ident()
            loop._run_once = timed
            watching.set()

        gc.callbacks.append(collected)
        self.end = partial(gc.callbacks.remove, collected)
        loop.call_soon_threadsafe(begin)
        watching.wait()


@pytest.fixture(scope="module")
def broker(engine: Engine) -> Iterator[EmbeddedBroker]:
    with embedded_broker(engine, {"auto.create.topics.enable": "false"}) as running:
        running.create_topic(KNOWN_TOPIC, KNOWN_PARTITIONS)
        yield running


@pytest.fixture(scope="module")
def watch(broker: EmbeddedBroker) -> Iterator[Watch]:
    watching = Watch(broker._loop)
    yield watching
    watching.end()


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[RawClient]:
    topic_id(broker)  # which creates it, if an earlier test has deleted it
    with RawClient(port_of(broker)) as connected:
        yield connected


def port_of(broker: EmbeddedBroker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


def topic_id(broker: EmbeddedBroker) -> bytes:
    """Of the topic that requests know; one of them may have deleted it."""
    topics = broker._node.broker.topics
    if topics.find(KNOWN_TOPIC) is None:
        broker.create_topic(KNOWN_TOPIC, KNOWN_PARTITIONS)
    found = topics.find(KNOWN_TOPIC)
    assert found is not None
    return found.topic_id


def longest_allowed(api: Api, version: int, shape: Shape, id_: bytes) -> bytes | None:
    """None: there are no such lists in this version."""
    samples = [long_frame(api, version, shape, count, topic_id=id_) for count in (1000, 2000)]
    if samples[0] is None or samples[1] is None:
        return None
    fewer, more = entries_of(samples[0]), entries_of(samples[1])
    each = (more - fewer) / 1000
    count = min(MOST_ENTRIES, int((MOST_ENTRIES - fewer) / max(1, each)) + 1000)
    while count > 100:
        encoded = long_frame(api, version, shape, count, topic_id=id_)
        assert encoded is not None
        try:
            entries_of(encoded)
        except TooManyEntries:
            count = count * 19 // 20
        else:
            return encoded
    raise AssertionError(f"{api.name} v{version} {shape}: no request is short enough")


def entries_of(encoded: bytes) -> int:
    frame = memoryview(encoded)[4:]
    return decode_bounded_body(decode_request_header(frame), frame, MOST_ENTRIES)[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", [APIS[key].name for key in TABLE])
def test_no_request_stalls_the_others(broker: EmbeddedBroker, watch: Watch, name: str) -> None:
    api = BY_NAME[name]
    for shape in shapes(request_kind(api)):
        for version in (api.max_version, api.min_version):  # the last one that has these lists
            encoded = longest_allowed(api, version, shape, topic_id(broker))
            if encoded is not None:
                break
        else:
            continue
        watch.longest = 0.0
        with RawClient(port_of(broker)) as hostile, RawClient(port_of(broker)) as steady:
            hostile.socket.settimeout(120)
            hostile.socket.sendall(encoded)
            assert steady.is_answered()
            reply = hostile.receive_frame()
            decode_response(api, version, reply)
            assert len(reply) < 100 * len(encoded)
        assert watch.longest < MOST_SECONDS, f"{shape} v{version}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [APIS[key].name for key in TABLE])
def test_requests_beyond_the_limit_are_refused_before_they_are_read(
    broker: EmbeddedBroker, watch: Watch, name: str
) -> None:
    """With an error if there is a place for it, else by closing the connection."""
    api = BY_NAME[name]
    for shape in shapes(request_kind(api)):
        encoded = long_frame(api, api.max_version, shape, MOST_ENTRIES + 1, topic_id=topic_id(broker), different=1000)
        if encoded is None:
            continue
        watch.longest = 0.0
        with RawClient(port_of(broker)) as hostile, RawClient(port_of(broker)) as steady:
            hostile.socket.sendall(encoded)
            try:
                decode_response(api, api.max_version, hostile.receive_frame())
            except ConnectionResetError:
                pass
            assert steady.is_answered()
        assert watch.longest < MOST_SECONDS, shape


def test_twelve_million_empty_entries_are_refused(client: RawClient, broker: EmbeddedBroker, watch: Watch) -> None:
    entry = b"\x00\x00\x00\x00\x01\x00"  # a partition without records
    count = 12_000_000
    header = b"\x00\x00\x00\x09\x00\x00\x00\x01\xff\xff\x00"
    size = bytearray()
    claimed = count + 1
    while claimed > 127:
        size.append(claimed & 127 | 128)
        claimed >>= 7
    size.append(claimed)
    body = header + b"\x00\xff\xff\x00\x00\x03\xe8\x02\x02t" + bytes(size) + entry * count + b"\x00\x00"
    watch.longest = 0.0
    with RawClient(port_of(broker)) as hostile:
        hostile.socket.sendall(len(body).to_bytes(4, "big") + body)
        assert hostile.is_closed_by_the_broker()
    assert client.is_answered()
    assert watch.longest < MOST_SECONDS


def test_every_plan_names_lists_that_there_are() -> None:
    for key in PLANS:
        api = APIS[key]
        plan = plan_of(api, api.max_version)
        assert plan is not None
        assert plan.asked in [shape.path for shape in shapes(request_kind(api))]


# What comes of a request in pieces is what would come of it in one.


def test_a_long_list_is_answered_whole_and_in_order(client: RawClient) -> None:
    topics = [
        ListOffsetsTopic(name, [ListOffsetsPartition(index, timestamp=-1) for index in range(count)])
        for name, count in (("nobody", 3), (KNOWN_TOPIC, 450), ("none", 250), (KNOWN_TOPIC, 1))
    ]
    reply = client.ask("ListOffsets", 7, ListOffsetsRequest(topics=topics))
    assert [topic.name for topic in reply.topics] == ["nobody", KNOWN_TOPIC, "none", KNOWN_TOPIC]
    for asked, answered in zip(topics, reply.topics, strict=True):
        assert [each.partition_index for each in answered.partitions] == list(range(len(asked.partitions)))
        for each in answered.partitions:
            known = asked.name == KNOWN_TOPIC and each.partition_index < KNOWN_PARTITIONS
            assert each.error_code == (0 if known else UNKNOWN_TOPIC_OR_PARTITION)


def test_lists_in_lists_are_answered_whole(client: RawClient) -> None:
    committed = [OffsetCommitRequestPartition(index, committed_offset=index) for index in range(KNOWN_PARTITIONS)]
    group = unique("group")
    done = client.ask(
        "OffsetCommit",
        8,
        OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(KNOWN_TOPIC, partitions=committed)]),
    )
    assert {each.error_code for each in done.topics[0].partitions} == {0}
    topics = [
        OffsetFetchRequestTopics(KNOWN_TOPIC, partition_indexes=list(range(700))),
        OffsetFetchRequestTopics("none"),
    ]
    wanted = [OffsetFetchRequestGroup(name, topics=topics) for name in (group, "nobody")]
    reply = client.ask("OffsetFetch", 9, OffsetFetchRequest(groups=wanted))
    assert [each.group_id for each in reply.groups] == [group, "nobody"]
    for each in reply.groups:
        assert [topic.name for topic in each.topics] == [KNOWN_TOPIC, "none"]
        offsets = [partition.committed_offset for partition in each.topics[0].partitions]
        known = list(range(KNOWN_PARTITIONS)) if each.group_id == group else []
        assert offsets == known + [-1] * (700 - len(known))


def test_what_can_only_be_answered_alike_is_answered_once(client: RawClient) -> None:
    groups = client.ask("DescribeGroups", 5, DescribeGroupsRequest(["a", "b"] * 10_000)).groups
    assert [each.group_id for each in groups] == ["a", "b"]
    topics = [MetadataRequestTopic(name=name) for name in (KNOWN_TOPIC, "none")] * 10_000
    found = client.ask("Metadata", 12, MetadataRequest(topics)).topics
    assert [(each.name, len(each.partitions)) for each in found] == [(KNOWN_TOPIC, KNOWN_PARTITIONS), ("none", 0)]


def test_all_topics_are_told_in_parts(
    broker: EmbeddedBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidelog.gateways.kafka.api import metadata

    monkeypatch.setattr(metadata, "_AT_ONCE", 2)
    names = {unique("topic") for _ in range(5)}
    for name in names:
        broker.create_topic(name)
    for version in (0, 8, 13):
        found = client.ask("Metadata", version, MetadataRequest(None if version else []))
        assert names <= {topic.name for topic in found.topics}
        assert found.brokers


def test_batches_of_a_long_request_are_appended_before_those_of_the_next(client: RawClient) -> None:
    name = unique("topic")
    client.create_topic(name, 1500)
    data = [PartitionProduceData(index, batch(b"first", timestamp=-1)) for index in range(1500)]
    client.send("Produce", 9, ProduceRequest(None, -1, 10_000, [TopicProduceData(name, partition_data=data)]))
    client.send("Produce", 9, produce_request(name, batch(b"second", timestamp=-1), partition=1499))
    first, second = client.reply(), client.reply()
    results = first.responses[0].partition_responses
    assert [(each.index, each.error_code, each.base_offset) for each in results] == [(i, 0, 0) for i in range(1500)]
    assert second.responses[0].partition_responses[0].base_offset == 1


def test_a_fetch_of_many_partitions_waits_for_data_in_any(broker: EmbeddedBroker, client: RawClient) -> None:
    name = unique("topic")
    client.create_topic(name, 2500)
    with RawClient(port_of(broker)) as consumer:
        offsets = dict.fromkeys(range(2500), 0)
        request = fetch_request(name, offsets, max_wait_ms=20_000, min_bytes=1, session_epoch=0)
        consumer.send("Fetch", 12, request)
        eventually(lambda: broker._node.broker.waits)
        assert client.produce(name, b"value", partition=2400).error_code == 0
        reply = consumer.reply()
        found = {data.partition_index for data in reply.responses[0].partitions if data.records}
        assert found == {2400}
        again = FetchRequest(max_wait_ms=0, session_id=reply.session_id, session_epoch=1)
        again.topics = [FetchTopic(name, partitions=[FetchPartition(2400, fetch_offset=1)])]
        assert consumer.ask("Fetch", 12, again).error_code == 0


def test_a_reply_that_would_be_too_large_is_an_error(
    broker: EmbeddedBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = broker._node.server
    monkeypatch.setattr(server, "limits", replace(server.limits, max_reply_bytes=2000))
    too_large = client.ask("Metadata", 13, MetadataRequest([MetadataRequestTopic(name=KNOWN_TOPIC)]))
    assert too_large.error_code == 42
    assert client.is_answered()
    many = [MetadataRequestTopic(name=f"nobody-{number}") for number in range(1000)]
    assert client.ask("Metadata", 13, MetadataRequest(many, allow_auto_topic_creation=False)).error_code == 42


def test_the_longest_requests_of_a_whole_broker_are_allowed() -> None:
    """A client may name each of 20,000 partitions, also if each is a topic of its own."""
    topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0)])] * 20_000
    for name, message in (
        ("OffsetCommit", OffsetCommitRequest("g", topics=topics)),
        ("Fetch", FetchRequest(topics=[FetchTopic("t", partitions=[FetchPartition(0)])] * 20_000)),
        ("Metadata", MetadataRequest([MetadataRequestTopic(name="t")] * 20_000)),
    ):
        frame = memoryview(framed(BY_NAME[name], 8, 1, message))[4:]
        assert decode_bounded_body(decode_request_header(frame), frame, MOST_ENTRIES)[1] <= MOST_ENTRIES


def test_replies_that_nobody_reads_are_bounded_over_all_connections(
    broker: EmbeddedBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = broker._node.server
    name = unique("topic")
    client.create_topic(name, 1500)
    ask = MetadataRequest([MetadataRequestTopic(name=name)])
    reply_bytes = len(framed_reply(client, ask))
    monkeypatch.setattr(server, "limits", replace(server.limits, max_total_reply_bytes=20 * reply_bytes))
    with RawClient(port_of(broker), receive_buffer=4096) as silent:
        requests = b"".join(silent.framed("Metadata", 12, ask) for _ in range(400))
        with contextlib.suppress(ConnectionError):
            silent.socket.sendall(requests)
        assert silent.is_closed_by_the_broker()
    assert client.is_answered()
    eventually(lambda: server.reply_bytes == 0)


def framed_reply(client: RawClient, ask: MetadataRequest) -> bytes:
    client.socket.sendall(framed(BY_NAME["Metadata"], 12, 1, ask))
    return client.receive_frame()


def test_a_large_request_is_written_in_steps(broker: EmbeddedBroker, client: RawClient, watch: Watch) -> None:
    """Not many entries, but many bytes: records are looked at and written."""
    name = unique("topic")
    client.create_topic(name, 60)
    data = [PartitionProduceData(index, batch(bytes(900_000), timestamp=-1)) for index in range(60)]
    watch.longest = 0.0
    reply = client.ask("Produce", 9, ProduceRequest(None, -1, 10_000, [TopicProduceData(name, partition_data=data)]))
    assert [each.error_code for each in reply.responses[0].partition_responses] == [0] * 60
    assert watch.longest < MOST_SECONDS


def test_many_requests_in_one_packet_do_not_stall_the_others_either(
    broker: EmbeddedBroker, client: RawClient, watch: Watch
) -> None:
    topic_id(broker)
    wanted = [ListOffsetsPartition(index % KNOWN_PARTITIONS, timestamp=-1) for index in range(400)]
    ask = ListOffsetsRequest(topics=[ListOffsetsTopic(KNOWN_TOPIC, wanted)])
    watch.longest = 0.0
    client.socket.sendall(b"".join(client.framed("ListOffsets", 7, ask) for _ in range(300)))
    for _ in range(300):
        assert len(client.reply().topics[0].partitions) == 400
    assert watch.longest < MOST_SECONDS
