"""Every API that the broker offers, at every version it offers, answers with a message of that version."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.every_request import REQUESTS, TOPIC
from tidelog.embedding import EmbeddedBroker
from tidelog.gateways.kafka.api_table import OFFERED
from tidelog.wire.apis import BY_NAME, Api
from tidelog.wire.envelope import decode_response, encode_request
from tidelog.wire.framing import FrameReader
from tidelog.wire.generated import metadata

CASES = [(api, version) for api in OFFERED for version in range(api.min_version, api.max_version + 1)]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        broker.create_topic(TOPIC)
        yield broker


class RawClient:
    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        self._reader = FrameReader()

    def ask(self, api: Api, version: int, message: Any) -> Any:
        self._socket.sendall(b"".join(encode_request(api, version, 7, "test", message)))  # type: ignore[arg-type]
        while True:
            data = self._socket.recv(65536)
            assert data, f"the broker closed the connection after {api.name} v{version}"
            for frame in self._reader.feed(data):
                return decode_response(api, version, bytes(frame))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[RawClient]:
    client = RawClient(broker.bootstrap_servers)
    yield client
    client.close()


@pytest.mark.parametrize(("api", "version"), CASES, ids=[f"{api.name}-v{version}" for api, version in CASES])
def test_every_version_of_every_api_is_answered(client: RawClient, api: Api, version: int) -> None:

    found = client.ask(BY_NAME["Metadata"], 12, metadata.MetadataRequest([metadata.MetadataRequestTopic(name=TOPIC)]))
    topic_id = found.topics[0].topic_id
    reply = client.ask(api, version, REQUESTS[api.key](version, topic_id))
    assert reply is not None
    assert "UNKNOWN_SERVER_ERROR" not in repr(reply)
    assert "error_code=-1" not in repr(reply)
