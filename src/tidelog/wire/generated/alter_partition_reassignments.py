"""AlterPartitionReassignments: API key 45, v0 to v1."""
# Made by tools/wiregen from messages/alter_partition_reassignments.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_string,
    nullable_compact_numbers,
    nullable_compact_string,
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    absent,
    put_compact_array,
    put_compact_string,
    put_nullable_compact_numbers,
    put_nullable_compact_string,
)

_i = struct.Struct(">i")
_it = struct.Struct(">i?")
_ih = struct.Struct(">ih")
_ith = struct.Struct(">i?h")


class ReassignablePartition(Struct):
    __slots__ = (
        "partition_index",
        "replicas",
    )

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterPartitionReassignmentsRequest(Struct):
    __slots__ = (
        "timeout_ms",
        "allow_replication_factor_change",
        "topics",
    )

    def __init__(
        self,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,  # 1+
        topics: list[ReassignableTopic] = EMPTY,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is EMPTY else topics


class ReassignablePartitionResponse(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class ReassignableTopicResponse(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterPartitionReassignmentsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,  # 1+
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses


def _read_request_reassignable_partition_v0_to_v1(buf: bytes, pos: int) -> tuple[ReassignablePartition, int]:
    reassignable_partition = new(ReassignablePartition)
    (reassignable_partition.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    reassignable_partition.replicas, pos = nullable_compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return reassignable_partition, pos


def _read_request_reassignable_topic_v0_to_v1(buf: bytes, pos: int) -> tuple[ReassignableTopic, int]:
    reassignable_topic = new(ReassignableTopic)
    reassignable_topic.name, pos = compact_string(buf, pos)
    reassignable_topic.partitions, pos = compact_array(buf, pos, _read_request_reassignable_partition_v0_to_v1, 6, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return reassignable_topic, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[AlterPartitionReassignmentsRequest, int]:
    message = new(AlterPartitionReassignmentsRequest)
    message.allow_replication_factor_change = True
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_request_reassignable_topic_v0_to_v1, 3, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[AlterPartitionReassignmentsRequest, int]:
    message = new(AlterPartitionReassignmentsRequest)
    message.timeout_ms, message.allow_replication_factor_change = _it.unpack_from(buf, pos)
    pos += 5
    message.topics, pos = compact_array(buf, pos, _read_request_reassignable_topic_v0_to_v1, 3, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_reassignable_partition_v0_to_v1(
    out: bytearray, reassignable_partition: ReassignablePartition, _inserts: Inserts
) -> None:
    out += _i.pack(reassignable_partition.partition_index)
    put_nullable_compact_numbers(out, reassignable_partition.replicas, "i")
    out.append(0)


def _write_request_reassignable_topic_v0_to_v1(
    out: bytearray, reassignable_topic: ReassignableTopic, inserts: Inserts
) -> None:
    put_compact_string(out, reassignable_topic.name)
    put_compact_array(out, reassignable_topic.partitions, _write_request_reassignable_partition_v0_to_v1, inserts)
    out.append(0)


def _write_request_v0(out: bytearray, message: AlterPartitionReassignmentsRequest, inserts: Inserts) -> None:
    if not message.allow_replication_factor_change:
        raise absent("allow_replication_factor_change")
    out += _i.pack(message.timeout_ms)
    put_compact_array(out, message.topics, _write_request_reassignable_topic_v0_to_v1, inserts)
    out.append(0)


def _write_request_v1(out: bytearray, message: AlterPartitionReassignmentsRequest, inserts: Inserts) -> None:
    out += _it.pack(message.timeout_ms, message.allow_replication_factor_change)
    put_compact_array(out, message.topics, _write_request_reassignable_topic_v0_to_v1, inserts)
    out.append(0)


def _read_response_reassignable_partition_response_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[ReassignablePartitionResponse, int]:
    reassignable_partition_response = new(ReassignablePartitionResponse)
    reassignable_partition_response.partition_index, reassignable_partition_response.error_code = _ih.unpack_from(
        buf, pos
    )
    pos += 6
    reassignable_partition_response.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return reassignable_partition_response, pos


def _read_response_reassignable_topic_response_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[ReassignableTopicResponse, int]:
    reassignable_topic_response = new(ReassignableTopicResponse)
    reassignable_topic_response.name, pos = compact_string(buf, pos)
    reassignable_topic_response.partitions, pos = compact_array(
        buf, pos, _read_response_reassignable_partition_response_v0_to_v1, 8
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return reassignable_topic_response, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[AlterPartitionReassignmentsResponse, int]:
    message = new(AlterPartitionReassignmentsResponse)
    message.allow_replication_factor_change = True
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.responses, pos = compact_array(buf, pos, _read_response_reassignable_topic_response_v0_to_v1, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[AlterPartitionReassignmentsResponse, int]:
    message = new(AlterPartitionReassignmentsResponse)
    message.throttle_time_ms, message.allow_replication_factor_change, message.error_code = _ith.unpack_from(buf, pos)
    pos += 7
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.responses, pos = compact_array(buf, pos, _read_response_reassignable_topic_response_v0_to_v1, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_reassignable_partition_response_v0_to_v1(
    out: bytearray, reassignable_partition_response: ReassignablePartitionResponse, _inserts: Inserts
) -> None:
    out += _ih.pack(reassignable_partition_response.partition_index, reassignable_partition_response.error_code)
    put_nullable_compact_string(out, reassignable_partition_response.error_message)
    out.append(0)


def _write_response_reassignable_topic_response_v0_to_v1(
    out: bytearray, reassignable_topic_response: ReassignableTopicResponse, inserts: Inserts
) -> None:
    put_compact_string(out, reassignable_topic_response.name)
    put_compact_array(
        out, reassignable_topic_response.partitions, _write_response_reassignable_partition_response_v0_to_v1, inserts
    )
    out.append(0)


def _write_response_v0(out: bytearray, message: AlterPartitionReassignmentsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.responses, _write_response_reassignable_topic_response_v0_to_v1, inserts)
    out.append(0)


def _write_response_v1(out: bytearray, message: AlterPartitionReassignmentsResponse, inserts: Inserts) -> None:
    out += _ith.pack(message.throttle_time_ms, message.allow_replication_factor_change, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.responses, _write_response_reassignable_topic_response_v0_to_v1, inserts)
    out.append(0)


REQUEST: MessageCodec[AlterPartitionReassignmentsRequest] = MessageCodec(
    "AlterPartitionReassignmentsRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1,
    ),
    (
        _write_request_v0,
        _write_request_v1,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[AlterPartitionReassignmentsResponse] = MessageCodec(
    "AlterPartitionReassignmentsResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1,
    ),
    (
        _write_response_v0,
        _write_response_v1,
    ),
    holds_views=False,
)
