"""CreatePartitions: API key 37, v0 to v3."""
# Made by tools/wiregen from messages/create_partitions.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_numbers,
    compact_string,
    nullable_array,
    nullable_compact_array,
    nullable_compact_string,
    nullable_string,
    numbers,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    put_array,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_array,
    put_nullable_compact_array,
    put_nullable_compact_string,
    put_nullable_string,
    put_numbers,
    put_string,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_it = struct.Struct(">i?")
_itx = struct.Struct(">i?x")


class CreatePartitionsAssignment(Struct):
    __slots__ = ("broker_ids",)

    def __init__(
        self,
        broker_ids: list[int] = EMPTY,
    ) -> None:
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids


class CreatePartitionsTopic(Struct):
    __slots__ = (
        "name",
        "count",
        "assignments",
    )

    def __init__(
        self,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = EMPTY,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = [] if assignments is EMPTY else assignments


class CreatePartitionsRequest(Struct):
    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )

    def __init__(
        self,
        topics: list[CreatePartitionsTopic] = EMPTY,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatePartitionsTopicResult(Struct):
    __slots__ = (
        "name",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results


def _read_request_create_partitions_assignment_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[CreatePartitionsAssignment, int]:
    create_partitions_assignment = new(CreatePartitionsAssignment)
    create_partitions_assignment.broker_ids, pos = numbers(buf, pos, "i")
    return create_partitions_assignment, pos


def _read_request_create_partitions_assignment_v2_to_v3(
    buf: bytes, pos: int
) -> tuple[CreatePartitionsAssignment, int]:
    create_partitions_assignment = new(CreatePartitionsAssignment)
    create_partitions_assignment.broker_ids, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return create_partitions_assignment, pos


def _read_request_create_partitions_topic_v0_to_v1(buf: bytes, pos: int) -> tuple[CreatePartitionsTopic, int]:
    create_partitions_topic = new(CreatePartitionsTopic)
    create_partitions_topic.name, pos = string(buf, pos)
    (create_partitions_topic.count,) = _i.unpack_from(buf, pos)
    pos += 4
    create_partitions_topic.assignments, pos = nullable_array(
        buf, pos, _read_request_create_partitions_assignment_v0_to_v1, 4, 2
    )
    return create_partitions_topic, pos


def _read_request_create_partitions_topic_v2_to_v3(buf: bytes, pos: int) -> tuple[CreatePartitionsTopic, int]:
    create_partitions_topic = new(CreatePartitionsTopic)
    create_partitions_topic.name, pos = compact_string(buf, pos)
    (create_partitions_topic.count,) = _i.unpack_from(buf, pos)
    pos += 4
    create_partitions_topic.assignments, pos = nullable_compact_array(
        buf, pos, _read_request_create_partitions_assignment_v2_to_v3, 2, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return create_partitions_topic, pos


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[CreatePartitionsRequest, int]:
    message = new(CreatePartitionsRequest)
    message.topics, pos = array(buf, pos, _read_request_create_partitions_topic_v0_to_v1, 10, 3)
    message.timeout_ms, message.validate_only = _it.unpack_from(buf, pos)
    pos += 5
    return message, pos


def _read_request_v2_to_v3(buf: bytes, pos: int) -> tuple[CreatePartitionsRequest, int]:
    message = new(CreatePartitionsRequest)
    message.topics, pos = compact_array(buf, pos, _read_request_create_partitions_topic_v2_to_v3, 7, 3)
    message.timeout_ms, message.validate_only = _it.unpack_from(buf, pos)
    pos += 5
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_create_partitions_assignment_v0_to_v1(
    out: bytearray, create_partitions_assignment: CreatePartitionsAssignment, _inserts: Inserts
) -> None:
    put_numbers(out, create_partitions_assignment.broker_ids, "i")


def _write_request_create_partitions_assignment_v2_to_v3(
    out: bytearray, create_partitions_assignment: CreatePartitionsAssignment, _inserts: Inserts
) -> None:
    put_compact_numbers(out, create_partitions_assignment.broker_ids, "i")
    out.append(0)


def _write_request_create_partitions_topic_v0_to_v1(
    out: bytearray, create_partitions_topic: CreatePartitionsTopic, inserts: Inserts
) -> None:
    put_string(out, create_partitions_topic.name)
    out += _i.pack(create_partitions_topic.count)
    put_nullable_array(
        out, create_partitions_topic.assignments, _write_request_create_partitions_assignment_v0_to_v1, inserts
    )


def _write_request_create_partitions_topic_v2_to_v3(
    out: bytearray, create_partitions_topic: CreatePartitionsTopic, inserts: Inserts
) -> None:
    put_compact_string(out, create_partitions_topic.name)
    out += _i.pack(create_partitions_topic.count)
    put_nullable_compact_array(
        out, create_partitions_topic.assignments, _write_request_create_partitions_assignment_v2_to_v3, inserts
    )
    out.append(0)


def _write_request_v0_to_v1(out: bytearray, message: CreatePartitionsRequest, inserts: Inserts) -> None:
    put_array(out, message.topics, _write_request_create_partitions_topic_v0_to_v1, inserts)
    out += _it.pack(message.timeout_ms, message.validate_only)


def _write_request_v2_to_v3(out: bytearray, message: CreatePartitionsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.topics, _write_request_create_partitions_topic_v2_to_v3, inserts)
    out += _itx.pack(message.timeout_ms, message.validate_only)


def _read_response_create_partitions_topic_result_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[CreatePartitionsTopicResult, int]:
    create_partitions_topic_result = new(CreatePartitionsTopicResult)
    create_partitions_topic_result.name, pos = string(buf, pos)
    (create_partitions_topic_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    create_partitions_topic_result.error_message, pos = nullable_string(buf, pos)
    return create_partitions_topic_result, pos


def _read_response_create_partitions_topic_result_v2_to_v3(
    buf: bytes, pos: int
) -> tuple[CreatePartitionsTopicResult, int]:
    create_partitions_topic_result = new(CreatePartitionsTopicResult)
    create_partitions_topic_result.name, pos = compact_string(buf, pos)
    (create_partitions_topic_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    create_partitions_topic_result.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return create_partitions_topic_result, pos


def _read_response_v0_to_v1(buf: bytes, pos: int) -> tuple[CreatePartitionsResponse, int]:
    message = new(CreatePartitionsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = array(buf, pos, _read_response_create_partitions_topic_result_v0_to_v1, 6)
    return message, pos


def _read_response_v2_to_v3(buf: bytes, pos: int) -> tuple[CreatePartitionsResponse, int]:
    message = new(CreatePartitionsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = compact_array(buf, pos, _read_response_create_partitions_topic_result_v2_to_v3, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_create_partitions_topic_result_v0_to_v1(
    out: bytearray, create_partitions_topic_result: CreatePartitionsTopicResult, _inserts: Inserts
) -> None:
    put_string(out, create_partitions_topic_result.name)
    out += _h.pack(create_partitions_topic_result.error_code)
    put_nullable_string(out, create_partitions_topic_result.error_message)


def _write_response_create_partitions_topic_result_v2_to_v3(
    out: bytearray, create_partitions_topic_result: CreatePartitionsTopicResult, _inserts: Inserts
) -> None:
    put_compact_string(out, create_partitions_topic_result.name)
    out += _h.pack(create_partitions_topic_result.error_code)
    put_nullable_compact_string(out, create_partitions_topic_result.error_message)
    out.append(0)


def _write_response_v0_to_v1(out: bytearray, message: CreatePartitionsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.results, _write_response_create_partitions_topic_result_v0_to_v1, inserts)


def _write_response_v2_to_v3(out: bytearray, message: CreatePartitionsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.results, _write_response_create_partitions_topic_result_v2_to_v3, inserts)
    out.append(0)


REQUEST: MessageCodec[CreatePartitionsRequest] = MessageCodec(
    "CreatePartitionsRequest",
    0,
    (
        _read_request_v0_to_v1,
        _read_request_v0_to_v1,
        _read_request_v2_to_v3,
        _read_request_v2_to_v3,
    ),
    (
        _write_request_v0_to_v1,
        _write_request_v0_to_v1,
        _write_request_v2_to_v3,
        _write_request_v2_to_v3,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[CreatePartitionsResponse] = MessageCodec(
    "CreatePartitionsResponse",
    0,
    (
        _read_response_v0_to_v1,
        _read_response_v0_to_v1,
        _read_response_v2_to_v3,
        _read_response_v2_to_v3,
    ),
    (
        _write_response_v0_to_v1,
        _write_response_v0_to_v1,
        _write_response_v2_to_v3,
        _write_response_v2_to_v3,
    ),
    holds_views=False,
)
