"""One connection: versions are agreed on, replies find their requests, and whatever goes wrong is said clearly."""

import asyncio
import socket
import traceback

import pytest

from tests.client.fake_broker import FAST, FakeCluster, against_a_fake, cut_short, garbage, garbled_body, silence
from tidelog.client import (
    AsyncClient,
    ClientOptions,
    ConnectionLost,
    IncompatibleBroker,
    RequestTimedOut,
    Unreachable,
)
from tidelog.client.connection import BrokerConnection
from tidelog.client.options import Address
from tidelog.errors import TidelogError
from tidelog.wire.apis import BY_NAME
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.protocol_errors import RemoteProtocolError

METADATA = BY_NAME["Metadata"]


async def connected(cluster: FakeCluster, options: ClientOptions = FAST) -> BrokerConnection:
    return await BrokerConnection.open(Address("127.0.0.1", cluster.nodes[0].port), options)


def ask(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)


@against_a_fake()
async def test_the_highest_version_that_both_know_is_used(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.ranges["Metadata"] = (4, 9)
    connection = await connected(cluster)
    assert connection.version_of(METADATA) == 9
    assert connection.version_of(METADATA, at_most=7) == 7
    await connection.request(METADATA, ask("t"), timeout_s=5)
    assert cluster.requests[-1] == (0, "Metadata", 9)
    connection.close()


@against_a_fake()
async def test_a_broker_that_knows_only_old_api_versions_is_asked_again(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.ranges["ApiVersions"] = (0, 2)
    connection = await connected(cluster)
    assert [row for row in cluster.requests if row[1] == "ApiVersions"][-2:] == [
        (0, "ApiVersions", 4),
        (0, "ApiVersions", 2),
    ]
    connection.close()


@against_a_fake()
async def test_no_common_version_is_an_error_that_names_both_sides(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.ranges["Metadata"] = (14, 15)
    connection = await connected(cluster)
    with pytest.raises(IncompatibleBroker, match=r"supports v14 to v15 of Metadata, this client v0 to v13"):
        await connection.request(METADATA, ask("t"), timeout_s=5)
    with pytest.raises(IncompatibleBroker, match="supports no version of EndTxn"):
        connection.version_of(BY_NAME["EndTxn"])
    connection.close()


@against_a_fake()
async def test_replies_find_their_requests(cluster: FakeCluster, client: AsyncClient) -> None:
    connection = await connected(cluster, ClientOptions(max_in_flight=7))
    names = [f"topic-{number}" for number in range(50)]
    replies = await asyncio.gather(*(connection.request(METADATA, ask(name), timeout_s=5) for name in names))
    assert [reply.topics[0].name for reply in replies] == names
    connection.close()


def test_no_more_requests_are_under_way_than_allowed() -> None:
    async def main() -> None:
        received = asyncio.Queue[bytes]()

        async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while size := await reader.read(4):
                received.put_nowait(await reader.readexactly(int.from_bytes(size)))
            writer.close()

        server = await asyncio.start_server(count, "127.0.0.1", 0)
        connection = BrokerConnection(
            Address("127.0.0.1", server.sockets[0].getsockname()[1]), ClientOptions(max_in_flight=3)
        )
        connection._ranges = {METADATA.key: (0, 13)}
        await asyncio.get_running_loop().create_connection(lambda: connection, *connection.address)
        requests = [asyncio.create_task(connection.request(METADATA, ask("t"), timeout_s=5)) for _ in range(10)]
        for _ in range(3):
            await received.get()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(received.get(), 0.05)
        connection.close()
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert all(isinstance(outcome, ConnectionLost) for outcome in outcomes)
        await connection.wait_closed()
        server.close()
        await server.wait_closed()

    asyncio.run(main())


def test_nobody_listening_is_said_with_what_to_do() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", free.getsockname()[1])
        with pytest.raises(Unreachable) as error:
            asyncio.run(BrokerConnection.open(address, FAST))
    assert str(error.value) == (
        f"cannot reach {address}: connection refused; is the broker running? start it with: tidelog serve"
    )
    assert error.value.retriable


def test_a_host_without_an_address_is_named() -> None:
    with pytest.raises(Unreachable, match=r"cannot reach no-such-host\.invalid:9092: the host name"):
        asyncio.run(BrokerConnection.open(Address("no-such-host.invalid", 9092), FAST))


def test_a_server_that_never_says_a_word_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(Unreachable, match="no answer in 40 ms"):
            asyncio.run(BrokerConnection.open(address, ClientOptions(connect_timeout_ms=40)))


@against_a_fake()
async def test_a_server_that_does_not_speak_kafka_is_recognized(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.fail("ApiVersions", garbage)
    with pytest.raises(RemoteProtocolError, match="does not speak the Kafka protocol"):
        await connected(cluster)


@against_a_fake()
async def test_a_response_that_cannot_be_read_ends_the_connection(cluster: FakeCluster, client: AsyncClient) -> None:
    connection = await connected(cluster)
    cluster.fail("Metadata", garbled_body)
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        await connection.request(METADATA, ask("t"), timeout_s=5)
    assert not connection.is_open


@against_a_fake()
async def test_an_answer_to_nobodys_question_ends_the_connection(cluster: FakeCluster, client: AsyncClient) -> None:
    connection = await connected(cluster)
    connection._last_id = 40
    request = asyncio.create_task(connection.request(METADATA, ask("t"), timeout_s=5))
    await asyncio.sleep(0)
    connection._waiting[7] = connection._waiting.pop(41)
    with pytest.raises(RemoteProtocolError, match="request 41, which was never sent"):
        await request


@against_a_fake()
async def test_a_response_cut_short_says_what_was_not_answered(cluster: FakeCluster, client: AsyncClient) -> None:
    connection = await connected(cluster)
    cluster.fail("Metadata", cut_short)
    with pytest.raises(ConnectionLost, match="closed the connection before it answered Metadata"):
        await connection.request(METADATA, ask("t"), timeout_s=5)


@against_a_fake()
async def test_an_overdue_reply_ends_the_connection_and_what_waits_behind_it(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    connection = await connected(cluster)
    cluster.fail("Metadata", silence)
    behind = asyncio.create_task(connection.request(METADATA, ask("u"), timeout_s=5))
    await asyncio.sleep(0)
    with pytest.raises(RequestTimedOut, match=r"no reply to Metadata from .* in 30 ms"):
        await connection.request(METADATA, ask("t"), timeout_s=0.03)
    with pytest.raises(RequestTimedOut):
        await behind
    assert not connection.is_open


@against_a_fake()
async def test_who_gives_up_waiting_does_not_disturb_others(cluster: FakeCluster, client: AsyncClient) -> None:
    connection = await connected(cluster, ClientOptions(max_in_flight=1))
    given_up = asyncio.create_task(connection.request(METADATA, ask("t"), timeout_s=5))
    await asyncio.sleep(0)
    given_up.cancel()
    reply = await connection.request(METADATA, ask("u"), timeout_s=5)
    assert reply.topics[0].name == "u"
    connection.close()


@against_a_fake()
async def test_requests_on_a_lost_connection_fail_each_with_an_error_of_its_own(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    connection = await connected(cluster)
    connection.close()
    errors = []
    for _ in range(3):
        with pytest.raises(TidelogError) as caught:
            await connection.request(METADATA, ask("t"), timeout_s=5)
        errors.append(caught.value)
    assert len({id(error) for error in errors}) == 3
    assert len({len(traceback.extract_tb(error.__traceback__)) for error in errors}) == 1
