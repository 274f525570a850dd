"""What a connection promises whatever the client does: order, bounds, and that nobody else is hurt."""

import contextlib
import os
import random
import signal
import socket
import struct
import time

import pytest

from tests.gateways.conftest import StartBroker
from tests.gateways.raw import RawClient, all_closed, fetch_request, frame, produce_request, values_of
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.engines import Engine
from tests.support.logs import batch
from tidelog.wire.apis import BY_NAME
from tidelog.wire.envelope import decode_response, response_correlation_id
from tidelog.wire.generated.api_versions import ApiVersionsRequest
from tidelog.wire.generated.metadata import MetadataRequest

UNSUPPORTED_VERSION = 35
MIB = 1 << 20


def test_replies_come_in_the_order_of_the_requests(client: RawClient, topic: str) -> None:
    """Also when a later one could be answered first: the long fetch is the first to be answered."""
    client.send("Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=300, min_bytes=1))
    client.send("Metadata", 12, MetadataRequest([]))
    client.send("Produce", 9, produce_request(topic, batch(b"value", timestamp=-1)))
    client.send("ApiVersions", 3, ApiVersionsRequest("raw", "1"))
    fetched = client.reply()
    assert values_of(fetched.responses[0].partitions[0]) == [b"value"]  # the produce behind it woke it
    assert client.reply().cluster_id
    assert client.reply().responses[0].partition_responses[0].base_offset == 0
    assert client.reply().api_keys


def test_many_requests_in_one_packet_are_all_answered(client: RawClient, topic: str) -> None:
    frames = []
    for number in range(500):
        frames.append(client.framed("Produce", 9, produce_request(topic, batch(b"%d" % number, timestamp=-1))))
        frames.append(client.framed("ApiVersions", 0, ApiVersionsRequest()))
    client.socket.sendall(b"".join(frames))
    for number in range(500):
        assert client.reply().responses[0].partition_responses[0].base_offset == number
        assert client.reply().error_code == 0


def test_replies_that_are_ready_together_are_sent_together(client: RawClient, topic: str) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.is_answered()
    frames = [client.framed("ApiVersions", 0, ApiVersionsRequest()) for _ in range(20)]
    client.socket.sendall(b"".join(frames))
    first = client.socket.recv(MIB)
    size = 4 + struct.unpack_from(">i", first)[0]
    assert len(first) == 20 * size


def test_a_frame_may_come_in_drops(client: RawClient) -> None:
    for byte in client.framed("ApiVersions", 0, ApiVersionsRequest()):
        client.socket.sendall(bytes([byte]))
    assert client.reply().api_keys


@pytest.mark.parametrize("version", [5, 99, 0x7FFF])
def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest_form(client: RawClient, version: int) -> None:
    api = BY_NAME["ApiVersions"]
    body = struct.pack(">hhih3s", 18, version, 77, 3, b"raw") + b"\x00" + b"\x04abc\x041.0\x00"
    client.socket.sendall(struct.pack(">i", len(body)) + body)
    reply = client.receive_frame()
    assert response_correlation_id(reply) == 77
    decoded = decode_response(api, 0, reply)
    assert decoded.error_code == UNSUPPORTED_VERSION
    assert {key.api_key for key in decoded.api_keys} >= {0, 1, 3, 18}
    assert client.is_answered()  # and the client may try again with another version


def test_produce_is_advertised_from_0_for_older_clients(client: RawClient) -> None:
    ranges = {key.api_key: key for key in client.ask("ApiVersions", 3, ApiVersionsRequest("raw", "1")).api_keys}
    assert ranges[0].min_version == 0
    assert all(each.min_version <= each.max_version for each in ranges.values())


def test_bytes_behind_a_message_are_passed_over(client: RawClient) -> None:
    """As librdkafka sends them when it asks for the metadata of all topics."""
    request = client.framed("Metadata", 13, MetadataRequest(None))
    client.socket.sendall(struct.pack(">i", len(request) - 4 + 3) + request[4:] + b"\x01\x00\x00")
    assert client.reply().brokers
    assert client.is_answered()


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(struct.pack(">ihhih", 10, 999, 0, 1, -1), id="an API that is not known"),
        pytest.param(struct.pack(">ihhih", 10, 17, 0, 1, -1), id="an API that is not offered"),
        pytest.param(struct.pack(">ihhih", 10, 3, 99, 1, -1) + b"\x00", id="a version that is not offered"),
        pytest.param(struct.pack(">ihhih", 10, 0, 2, 1, -1), id="a version that is only advertised"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40), id="TLS"),
        pytest.param(struct.pack(">i", -1), id="a negative length"),
        pytest.param(struct.pack(">i", 0), id="no length"),
        pytest.param(struct.pack(">i", 0x7FFF_FFFF), id="an enormous length"),
        pytest.param(struct.pack(">i", (100 << 20) + 1), id="a length above the limit"),
        pytest.param(struct.pack(">ihhih", 10, 18, 0, 1, 500), id="a header that is cut short"),
        pytest.param(struct.pack(">ihhih2s", 12, 18, 0, 1, 2, b"\xff\xff"), id="a client id that is no text"),
        pytest.param(struct.pack(">i", 64) + bytes(range(64)), id="garbage"),
        pytest.param(struct.pack(">ihhih", 14, 3, 1, 1, -1) + b"\x7f\xff\xff\xff", id="a list longer than its frame"),
        pytest.param(struct.pack(">ihhih", 12, 3, 1, 1, -1) + b"\xff\xff\xff\xff\x00\x00"[:2], id="a body cut short"),
    ],
)
def test_what_makes_no_sense_ends_the_connection_and_no_other(
    broker: BrokerProcess, client: RawClient, frame: bytes
) -> None:
    with RawClient(broker.port) as hostile:
        hostile.socket.sendall(frame)
        assert hostile.is_closed_by_the_broker()
    assert client.is_answered()


def test_half_a_frame_and_then_silence_hurts_nobody(broker: BrokerProcess, client: RawClient) -> None:
    silent = [RawClient(broker.port) for _ in range(20)]
    for number, each in enumerate(silent):
        whole = each.framed("Metadata", 12, MetadataRequest(None))
        each.socket.sendall(whole[: 1 + number % (len(whole) - 1)])
        assert client.is_answered()
    all_closed(silent)
    assert client.is_answered()


def test_a_client_that_stops_sending_gets_its_replies(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.port) as client:
        client.send("Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=200, min_bytes=1))
        client.send("ApiVersions", 0, ApiVersionsRequest())
        client.socket.shutdown(socket.SHUT_WR)
        assert client.reply().error_code == 0
        assert client.reply().api_keys
        assert client.is_closed_by_the_broker()


def test_clients_that_read_slowly_get_their_replies_from_a_broker_that_stops(start_broker: StartBroker) -> None:
    """The last bytes go out when there is room for them, and then the connection is over, once."""
    broker = start_broker({})
    topic = unique("topic")
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(RawClient(broker.port, receive_buffer=4096)) for _ in range(8)]
        slow[0].create_topic(topic)
        for _ in range(150):
            slow[0].produce(topic, bytes(50_000))
        for number, client in enumerate(slow):
            most = 6 * MIB + number * 60_000
            client.send("Fetch", 12, fetch_request(topic, {0: 0}, partition_max_bytes=most))
            client.socket.recv(1, socket.MSG_PEEK)
        os.kill(broker.pid, signal.SIGTERM)
        eventually(lambda: not takes_connections(broker))
        for client in slow:
            assert len(values_of(client.reply().responses[0].partitions[0])) > 100
            assert client.is_closed_by_the_broker()
    eventually(lambda: not broker.is_running)
    assert "Traceback" not in broker.log, broker.log


def takes_connections(broker: BrokerProcess) -> bool:
    try:
        RawClient(broker.port).close()
    except ConnectionRefusedError:
        return False
    return True


def test_acks_0_is_not_answered_and_what_goes_wrong_ends_the_connection(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.port) as client:
        api = BY_NAME["Produce"]
        client.socket.sendall(frame(api, 9, 1, produce_request(topic, batch(b"value", timestamp=-1), acks=0)))
        assert client.is_answered()  # this is the first reply that comes
        eventually(lambda: values_of(client.fetch(topic)), until=[b"value"].__eq__)
        client.socket.sendall(frame(api, 9, 1, produce_request(topic, b"not a batch", acks=0)))
        assert client.is_closed_by_the_broker()


def test_200_connections_work_at_once(broker: BrokerProcess, topic: str) -> None:
    clients = [RawClient(broker.port) for _ in range(200)]
    for number, client in enumerate(clients):
        client.send("Produce", 9, produce_request(topic, batch(b"%d" % number, timestamp=-1), acks=-1))
        client.send("Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=5000, min_bytes=1))
    offsets = [client.reply().responses[0].partition_responses[0].base_offset for client in clients]
    assert sorted(offsets) == list(range(200))
    for client in clients:
        assert client.reply().responses[0].partitions[0].high_watermark > 0
    all_closed(clients)


def test_connections_above_the_limit_are_refused_until_there_is_room(start_broker: StartBroker) -> None:
    broker = start_broker({"kafka.max.connections": "5"})
    clients = [RawClient(broker.port) for _ in range(5)]
    assert all(client.is_answered() for client in clients)
    with RawClient(broker.port) as refused:
        assert refused.is_closed_by_the_broker()
    assert all(client.is_answered() for client in clients)
    clients.pop().close()

    def there_is_room() -> bool:
        with RawClient(broker.port) as client:
            try:
                return client.is_answered()
            except OSError:
                return False

    eventually(there_is_room)
    all_closed(clients)


@pytest.mark.slow
def test_a_client_that_does_not_read_is_let_go_in_the_end(start_broker: StartBroker) -> None:
    broker = start_broker({"kafka.connections.max.idle.ms": "1000"})
    topic = unique("topic")
    with RawClient(broker.port) as client:
        client.create_topic(topic)
        for _ in range(8):
            client.produce(topic, bytes(900_000))
    with RawClient(broker.port, receive_buffer=4096) as stuck:  # only now: else it could be idle for too long before
        for _ in range(8):
            stuck.send("Fetch", 12, fetch_request(topic, {0: 0}, partition_max_bytes=8 * MIB))
        eventually(lambda: "does not read its replies" in broker.log)
        assert stuck.is_closed_by_the_broker()
    assert "request failed" not in broker.log


def test_idle_connections_are_closed_and_busy_ones_are_not(start_broker: StartBroker) -> None:
    broker = start_broker({"kafka.connections.max.idle.ms": "1000"})
    with RawClient(broker.port) as idle, RawClient(broker.port) as busy, RawClient(broker.port) as waiting:
        topic = unique("topic")
        assert idle.is_answered()
        waiting.create_topic(topic)
        waiting.send("Fetch", 12, fetch_request(topic, {0: 0}, max_wait_ms=2500, min_bytes=1))
        deadline = time.monotonic() + 2.2
        while time.monotonic() < deadline:
            assert busy.is_answered()
            time.sleep(0.05)
        assert idle.is_closed_by_the_broker(within=2)
        assert waiting.reply().error_code == 0  # a long poll is not idle


def test_a_frame_above_the_limit_is_not_read(start_broker: StartBroker) -> None:
    broker = start_broker({"kafka.socket.request.max.bytes": "100000"})
    with RawClient(broker.port) as client:
        topic = unique("topic")
        client.create_topic(topic)
        assert client.produce(topic, b"x" * 90_000).error_code == 0
        client.socket.sendall(struct.pack(">i", 100_001))
        assert client.is_closed_by_the_broker()


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False], ids=["from memory", "from disk"])
def test_a_reader_that_does_not_read_does_not_fill_the_memory(
    engine: Engine, start_broker: StartBroker, cached: bool
) -> None:
    broker = start_broker({"tail-cache-bytes": str(64 * MIB if cached else 0)})
    topic = unique("topic")
    with RawClient(broker.port) as writer, RawClient(broker.port, receive_buffer=64 << 10) as slow:
        writer.create_topic(topic)
        for _ in range(32):
            assert writer.produce(topic, b"x" * 1_000_000).error_code == 0
        before = broker.memory_bytes
        request = fetch_request(topic, {0: 0}, partition_max_bytes=32 * MIB)
        slow.socket.sendall(b"".join(slow.framed("Fetch", 12, request) for _ in range(300)))  # 9 GB, if it came to it
        grown = 0
        for _ in range(40):
            assert writer.is_answered()
            grown = max(grown, broker.memory_bytes - before)
            time.sleep(0.05)
        allowed = 200 if cached else 32
        if engine is Engine.CLUSTER:
            allowed += 64 + 32  # of the block cache, and of a fetch that is read before it is answered
        assert grown < allowed * MIB, f"{grown / MIB:.0f} MiB more"
        for _ in range(5):  # and once it reads it gets everything
            assert len(slow.reply().responses[0].partitions[0].records) > 31_000_000


def test_large_replies_reach_a_slow_reader_whole_and_in_order(start_broker: StartBroker) -> None:
    """They are written in pieces, each when the socket has room; other requests are answered meanwhile."""
    broker = start_broker({"tail-cache-bytes": "0"})
    topic, partitions = unique("topic"), 6
    rng = random.Random(4)
    with RawClient(broker.port) as writer, RawClient(broker.port, receive_buffer=64 << 10) as slow:
        writer.create_topic(topic, partitions)
        sizes = [700_000, 5_000, 900_000, 40_000, 300_000]
        sent = {number: [rng.randbytes(size) for size in sizes] for number in range(partitions)}
        for number, values in sent.items():
            for value in values:
                assert writer.produce(topic, value, partition=number).error_code == 0
        request = fetch_request(topic, dict.fromkeys(range(partitions), 0), partition_max_bytes=2 * MIB)
        slow.socket.sendall(b"".join(slow.framed("Fetch", 12, request) for _ in range(3)))
        assert writer.is_answered()
        for _ in range(3):
            found = {data.partition_index: values_of(data) for data in slow.reply().responses[0].partitions}
            assert found == sent
            assert writer.is_answered()


def test_a_reader_that_hangs_up_is_no_error_of_the_broker(start_broker: StartBroker) -> None:
    broker = start_broker({"tail-cache-bytes": "0"})
    topic = unique("topic")
    with RawClient(broker.port) as writer:
        writer.create_topic(topic)
        for _ in range(8):
            assert writer.produce(topic, b"x" * 1_000_000).error_code == 0
        for _ in range(30):
            with RawClient(broker.port, receive_buffer=64 << 10) as rude:
                rude.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                request = fetch_request(topic, {0: 0}, partition_max_bytes=32 * MIB)
                rude.socket.sendall(rude.framed("Fetch", 12, request) * 5)
                rude.socket.recv(1000)
        assert writer.is_answered()
    assert "Traceback" not in broker.log, broker.log


@pytest.mark.slow
def test_a_writer_that_does_not_read_is_not_read_either(start_broker: StartBroker) -> None:
    """Requests whose replies nobody takes: the bytes stay in the client's own buffers in the end."""
    broker = start_broker({})
    topic = unique("t" * 200)
    with RawClient(broker.port) as other, RawClient(broker.port, receive_buffer=4096) as deaf:
        other.create_topic(topic, 100)
        before = broker.memory_bytes
        request = deaf.framed("Metadata", 12, MetadataRequest(None))
        deaf.socket.settimeout(0.5)
        assert not everything_is_taken(deaf, request * 1000, 300 * MIB)
        assert other.is_answered()
        assert broker.memory_bytes - before < 100 * MIB


def everything_is_taken(client: RawClient, data: bytes, size: int) -> bool:
    """Whether so many bytes can be sent; False as soon as the other side takes no more."""
    sent = 0
    try:
        while sent < size:
            sent += client.socket.send(data)
    except TimeoutError:
        return False
    return True
