"""A client that says exactly what a test wants to say: frames over a plain blocking socket."""

import socket
import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from tests.support.logs import batch
from tidelog.records.batch import iterate
from tidelog.records.record import Record, decode
from tidelog.wire.apis import BY_NAME, Api
from tidelog.wire.envelope import decode_response, encode_request, response_correlation_id
from tidelog.wire.generated.api_versions import ApiVersionsRequest
from tidelog.wire.generated.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from tidelog.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tidelog.wire.primitives import Struct

SECONDS = 20.0
_LENGTH = struct.Struct(">i")


class RawClient:
    """Requests go out without waiting; replies are read when they are asked for."""

    def __init__(self, port: int, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(SECONDS)
        try:
            self.socket.connect(("127.0.0.1", port))
        except BaseException:
            self.socket.close()
            raise
        self._next_id = 0
        self._expected: list[tuple[int, Api, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # one request, one reply

    def ask(self, api: str, version: int, message: Struct) -> Any:
        self.send(api, version, message)
        return self.reply()

    def send(self, api: str, version: int, message: Struct) -> None:
        self.socket.sendall(self.framed(api, version, message))

    def framed(self, api: str, version: int, message: Struct) -> bytes:
        """The bytes of a request; its reply is expected from now on."""
        self._next_id += 1
        self._expected.append((self._next_id, BY_NAME[api], version))
        return frame(BY_NAME[api], version, self._next_id, message)

    def reply(self) -> Any:
        """The reply to the oldest request without one: replies come in order."""
        id_, api, version = self._expected.pop(0)
        frame = self.receive_frame()
        assert response_correlation_id(frame) == id_
        return decode_response(api, version, frame)

    def receive_frame(self) -> bytes:
        size = _LENGTH.unpack(self._receive(4))[0]
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionResetError(f"closed after {len(parts)} of {size} bytes")
            parts += part
        return bytes(parts)

    # whether it lives

    def is_answered(self) -> bool:
        return bool(self.ask("ApiVersions", 0, ApiVersionsRequest()).api_keys)

    def is_closed_by_the_broker(self, within: float = SECONDS) -> bool:
        """Waits for it; what arrives before the end is passed over."""
        self.socket.settimeout(within)
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(SECONDS)
        return True

    # what most tests need

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """The topic's id."""
        named = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
        topic = CreatableTopic(name, partitions, 1, [], named)
        result = self.ask("CreateTopics", 7, CreateTopicsRequest([topic], 10_000, False)).topics[0]
        assert result.error_code == 0, result
        topic_id: bytes = result.topic_id
        return topic_id

    def produce(self, topic: str, *values: bytes, partition: int = 0, acks: int = 1) -> PartitionProduceResponse:
        self.send("Produce", 9, produce_request(topic, batch(*values, timestamp=-1), partition=partition, acks=acks))
        result: PartitionProduceResponse = self.reply().responses[0].partition_responses[0]
        return result

    def fetch(self, topic: str, offset: int = 0, **options: int) -> PartitionData:
        """Of partition 0, without a session and without waiting."""
        response = self.ask("Fetch", 12, fetch_request(topic, {0: offset}, **options))
        assert response.error_code == 0
        data: PartitionData = response.responses[0].partitions[0]
        return data


def frame(api: Api, version: int, correlation_id: int, message: Struct) -> bytes:
    return b"".join(encode_request(api, version, correlation_id, "raw", message))  # type: ignore[arg-type]


def produce_request(
    topic: str, records: bytes | bytearray | None, *, partition: int = 0, acks: int = 1
) -> ProduceRequest:
    data = PartitionProduceData(partition, records)
    return ProduceRequest(None, acks, 10_000, [TopicProduceData(topic, partition_data=[data])])


def fetch_request(
    topic: str,
    offsets: dict[int, int],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 1 << 20,
    session_id: int = 0,
    session_epoch: int = -1,
) -> FetchRequest:
    partitions = [
        FetchPartition(partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        for partition, offset in offsets.items()
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic, partitions=partitions)] if partitions else [],
    )


def partitions_of(response: FetchResponse) -> dict[int, PartitionData]:
    return {data.partition_index: data for topic in response.responses for data in topic.partitions}


def records_of(data: PartitionData) -> list[Record]:
    return [record for view in iterate(bytes(data.records or b"")) for record in decode(view)]  # type: ignore[arg-type]


def values_of(data: PartitionData) -> list[bytes | None]:
    return [record.value for record in records_of(data)]


def all_closed(clients: Iterable[RawClient]) -> None:
    for client in clients:
        client.close()
