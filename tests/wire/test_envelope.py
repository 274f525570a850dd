"""Headers, and whole frames."""

import random
import struct

import pytest

from tests.wire.random_messages import all_cases, random_message
from tidelog.wire.apis import APIS, BY_NAME
from tidelog.wire.codec import joinable
from tidelog.wire.envelope import (
    MAX_STRUCTURED_SIZE,
    Chunks,
    decode_request_body,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    response_correlation_id,
)
from tidelog.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.wire.generated.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tidelog.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tidelog.wire.primitives import RecordSource
from tidelog.wire.protocol_errors import (
    FrameTooLarge,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedApi,
    UnsupportedVersion,
)

HEARTBEAT, API_VERSIONS, FETCH = BY_NAME["Heartbeat"], BY_NAME["ApiVersions"], BY_NAME["Fetch"]


def joined(chunks: Chunks) -> bytes:
    return b"".join(joinable(chunk) for chunk in chunks)


def test_a_request_of_a_version_that_is_not_flexible() -> None:
    frame = joined(encode_request(HEARTBEAT, 0, 7, "me", HeartbeatRequest("g", 1, "m")))
    body = b"\x00\x01g\x00\x00\x00\x01\x00\x01m"
    assert frame == struct.pack(">ihhi", 12 + len(body), 12, 0, 7) + b"\x00\x02me" + body


def test_a_flexible_request_has_tagged_fields_in_its_header_but_no_compact_client_id() -> None:
    frame = joined(encode_request(HEARTBEAT, 4, 7, None, HeartbeatRequest("g", 1, "m")))
    body = b"\x02g\x00\x00\x00\x01\x02m\x00\x00"
    assert frame == struct.pack(">ihhi", 11 + len(body), 12, 4, 7) + b"\xff\xff" + b"\x00" + body


def test_every_request_and_response_survives_as_a_frame() -> None:
    for case in all_cases():
        if case.definition.api_key is None:
            continue
        api, rng = APIS[case.definition.api_key], random.Random(str(case))
        message = random_message(case, rng)
        if case.message.role == "request":
            frame = memoryview(joined(encode_request(api, case.version, 99, "client", message)))[4:]
            header = decode_request_header(frame)
            assert (header.api, header.api_version, header.correlation_id) == (api, case.version, 99)
            assert header.client_id == "client"
            assert decode_request_body(header, frame) == message
        else:
            encoded = joined(encode_response(api, case.version, 99, message))
            assert int.from_bytes(encoded[:4], "big") == len(encoded) - 4
            assert response_correlation_id(encoded[4:]) == 99
            assert decode_response(api, case.version, encoded[4:]) == message


def test_an_api_versions_response_has_the_first_header_at_every_version() -> None:
    for version in range(5):
        frame = joined(encode_response(API_VERSIONS, version, 5, ApiVersionsResponse(error_code=35)))
        assert frame[4:10] == b"\x00\x00\x00\x05\x00\x23"
    frame = joined(encode_response(HEARTBEAT, 4, 5, HeartbeatResponse()))
    assert frame[4:9] == b"\x00\x00\x00\x05\x00"


def test_the_header_of_an_unknown_version_is_read_so_that_it_can_be_answered() -> None:
    newest = joined(encode_request(API_VERSIONS, 4, 3, "new", ApiVersionsRequest("lib", "9")))
    frame = memoryview(newest[:6] + b"\x00\x63" + newest[8:])[4:]
    header = decode_request_header(frame)
    assert (header.api.name, header.api_version, header.correlation_id, header.client_id) == (
        "ApiVersions",
        99,
        3,
        "new",
    )
    with pytest.raises(UnsupportedVersion):
        decode_request_body(header, frame)


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises(UnsupportedApi) as refusal:
        decode_request_header(memoryview(struct.pack(">hhih", 999, 0, 1, -1)))
    assert refusal.value.api_key == 999
    assert refusal.value.kafka_code == 35


def test_tagged_fields_of_headers_are_passed_over() -> None:
    head = struct.pack(">hhih", 12, 4, 7, -1) + b"\x01\x05\x02hi"
    frame = memoryview(head + HEARTBEAT.request.encode(HeartbeatRequest("g"), 4))
    assert decode_request_body(decode_request_header(frame), frame) == HeartbeatRequest("g")
    response = (
        struct.pack(">i", 7) + b"\x01\x05\x02hi" + HEARTBEAT.response.encode(HeartbeatResponse(error_code=3), 4)
    )
    assert decode_response(HEARTBEAT, 4, response) == HeartbeatResponse(error_code=3)


def test_a_frame_cut_at_any_byte_is_refused() -> None:
    request = joined(encode_request(HEARTBEAT, 4, 7, "me", HeartbeatRequest("g", 1, "m")))[4:]
    for cut in range(len(request)):
        frame = memoryview(request[:cut])
        with pytest.raises(RemoteProtocolError):
            decode_request_body(decode_request_header(frame), frame)
    response = joined(encode_response(HEARTBEAT, 4, 7, HeartbeatResponse()))[4:]
    for cut in range(len(response)):
        with pytest.raises(RemoteProtocolError):
            decode_response(HEARTBEAT, 4, response[:cut])
    for cut in range(4):
        with pytest.raises(RemoteProtocolError):
            response_correlation_id(response[:cut])


def test_a_client_id_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="UTF-8"):
        decode_request_header(memoryview(struct.pack(">hhih", 12, 0, 1, 1) + b"\xff"))


def test_random_headers_raise_nothing_but_remote_protocol_errors() -> None:
    rng = random.Random(3)
    for _ in range(20_000):
        frame = memoryview(
            struct.pack(">hh", rng.choice([*APIS, 999]), rng.randint(-1, 20)) + rng.randbytes(rng.randint(0, 40))
        )
        try:
            decode_request_body(decode_request_header(frame), frame)
        except RemoteProtocolError:
            pass


def test_records_are_chunks_of_their_own_and_count_in_the_length() -> None:
    class Range(RecordSource):
        def __len__(self) -> int:
            return 5000

    cold, hot = Range(), memoryview(b"h" * 100)
    partitions = [PartitionData(0, records=cold), PartitionData(1, records=hot), PartitionData(2, records=b"")]
    chunks = encode_response(
        FETCH, 12, 1, FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])
    )
    assert chunks[1] is cold
    assert chunks[3] is hot
    assert len(chunks) == 5
    assert int.from_bytes(bytes(joinable(chunks[0]))[:4], "big") == sum(len(chunk) for chunk in chunks) - 4


def test_a_frame_over_two_gigabytes_is_our_fault() -> None:
    class Range(RecordSource):
        def __len__(self) -> int:
            return 1 << 30

    partitions = [PartitionData(number, records=Range()) for number in range(2)]
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])
    with pytest.raises(LocalProtocolError, match="length"):
        encode_response(FETCH, 12, 1, response)


def test_a_huge_request_without_records_is_refused_unread() -> None:
    head = struct.pack(">hhih", 12, 0, 1, -1)
    frame = memoryview(head + bytes(MAX_STRUCTURED_SIZE))
    with pytest.raises(FrameTooLarge):
        decode_request_body(decode_request_header(frame), frame)
    batch = bytes(MAX_STRUCTURED_SIZE)
    request = ProduceRequest(topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])])
    frame = memoryview(joined(encode_request(BY_NAME["Produce"], 9, 1, None, request)))[4:]
    assert decode_request_body(decode_request_header(frame), frame) == request


def test_a_client_id_that_is_too_long_is_our_fault() -> None:
    with pytest.raises(LocalProtocolError):
        encode_request(HEARTBEAT, 0, 7, "x" * 40000, HeartbeatRequest())
