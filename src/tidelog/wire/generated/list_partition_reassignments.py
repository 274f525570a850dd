"""ListPartitionReassignments: API key 46, v0 to v0."""
# Made by tools/wiregen from messages/list_partition_reassignments.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_numbers,
    compact_string,
    nullable_compact_array,
    nullable_compact_string,
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_compact_array,
    put_nullable_compact_string,
)

_i = struct.Struct(">i")
_ih = struct.Struct(">ih")


class ListPartitionReassignmentsTopics(Struct):
    __slots__ = (
        "name",
        "partition_indexes",
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class ListPartitionReassignmentsRequest(Struct):
    __slots__ = (
        "timeout_ms",
        "topics",
    )

    def __init__(
        self,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics


class OngoingPartitionReassignment(Struct):
    __slots__ = (
        "partition_index",
        "replicas",
        "adding_replicas",
        "removing_replicas",
    )

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,
        removing_replicas: list[int] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is EMPTY else replicas
        self.adding_replicas = [] if adding_replicas is EMPTY else adding_replicas
        self.removing_replicas = [] if removing_replicas is EMPTY else removing_replicas


class OngoingTopicReassignment(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListPartitionReassignmentsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics


def _read_request_list_partition_reassignments_topics_v0(
    buf: bytes, pos: int
) -> tuple[ListPartitionReassignmentsTopics, int]:
    list_partition_reassignments_topics = new(ListPartitionReassignmentsTopics)
    list_partition_reassignments_topics.name, pos = compact_string(buf, pos)
    list_partition_reassignments_topics.partition_indexes, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return list_partition_reassignments_topics, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[ListPartitionReassignmentsRequest, int]:
    message = new(ListPartitionReassignmentsRequest)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = nullable_compact_array(buf, pos, _read_request_list_partition_reassignments_topics_v0, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_list_partition_reassignments_topics_v0(
    out: bytearray, list_partition_reassignments_topics: ListPartitionReassignmentsTopics, _inserts: Inserts
) -> None:
    put_compact_string(out, list_partition_reassignments_topics.name)
    put_compact_numbers(out, list_partition_reassignments_topics.partition_indexes, "i")
    out.append(0)


def _write_request_v0(out: bytearray, message: ListPartitionReassignmentsRequest, inserts: Inserts) -> None:
    out += _i.pack(message.timeout_ms)
    put_nullable_compact_array(out, message.topics, _write_request_list_partition_reassignments_topics_v0, inserts)
    out.append(0)


def _read_response_ongoing_partition_reassignment_v0(
    buf: bytes, pos: int
) -> tuple[OngoingPartitionReassignment, int]:
    ongoing_partition_reassignment = new(OngoingPartitionReassignment)
    (ongoing_partition_reassignment.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    ongoing_partition_reassignment.replicas, pos = compact_numbers(buf, pos, "i")
    ongoing_partition_reassignment.adding_replicas, pos = compact_numbers(buf, pos, "i")
    ongoing_partition_reassignment.removing_replicas, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return ongoing_partition_reassignment, pos


def _read_response_ongoing_topic_reassignment_v0(buf: bytes, pos: int) -> tuple[OngoingTopicReassignment, int]:
    ongoing_topic_reassignment = new(OngoingTopicReassignment)
    ongoing_topic_reassignment.name, pos = compact_string(buf, pos)
    ongoing_topic_reassignment.partitions, pos = compact_array(
        buf, pos, _read_response_ongoing_partition_reassignment_v0, 8
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return ongoing_topic_reassignment, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[ListPartitionReassignmentsResponse, int]:
    message = new(ListPartitionReassignmentsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.topics, pos = compact_array(buf, pos, _read_response_ongoing_topic_reassignment_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_ongoing_partition_reassignment_v0(
    out: bytearray, ongoing_partition_reassignment: OngoingPartitionReassignment, _inserts: Inserts
) -> None:
    out += _i.pack(ongoing_partition_reassignment.partition_index)
    put_compact_numbers(out, ongoing_partition_reassignment.replicas, "i")
    put_compact_numbers(out, ongoing_partition_reassignment.adding_replicas, "i")
    put_compact_numbers(out, ongoing_partition_reassignment.removing_replicas, "i")
    out.append(0)


def _write_response_ongoing_topic_reassignment_v0(
    out: bytearray, ongoing_topic_reassignment: OngoingTopicReassignment, inserts: Inserts
) -> None:
    put_compact_string(out, ongoing_topic_reassignment.name)
    put_compact_array(
        out, ongoing_topic_reassignment.partitions, _write_response_ongoing_partition_reassignment_v0, inserts
    )
    out.append(0)


def _write_response_v0(out: bytearray, message: ListPartitionReassignmentsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.topics, _write_response_ongoing_topic_reassignment_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[ListPartitionReassignmentsRequest] = MessageCodec(
    "ListPartitionReassignmentsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[ListPartitionReassignmentsResponse] = MessageCodec(
    "ListPartitionReassignmentsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
