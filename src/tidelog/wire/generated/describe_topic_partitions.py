"""DescribeTopicPartitions: API key 75, v0 to v0."""
# Made by tools/wiregen from messages/describe_topic_partitions.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_numbers,
    compact_string,
    nullable_compact_numbers,
    nullable_compact_string,
    nullable_struct,
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_compact_numbers,
    put_nullable_compact_string,
    put_nullable_struct,
    wrong_uuid,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_gt = struct.Struct(">16s?")
_ix = struct.Struct(">ix")
_hiii = struct.Struct(">hiii")


class TopicRequest(Struct):
    __slots__ = ("name",)

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


class RequestCursor(Struct):
    __slots__ = (
        "topic_name",
        "partition_index",
    )

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Struct):
    __slots__ = (
        "topics",
        "response_partition_limit",
        "cursor",
    )

    def __init__(
        self,
        topics: list[TopicRequest] = EMPTY,
        response_partition_limit: int = 2000,
        cursor: RequestCursor | None = None,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


class DescribeTopicPartitionsResponsePartition(Struct):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas


class DescribeTopicPartitionsResponseTopic(Struct):
    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = NO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations = topic_authorized_operations


class ResponseCursor(Struct):
    __slots__ = (
        "topic_name",
        "partition_index",
    )

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
        "next_cursor",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY,
        next_cursor: ResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.next_cursor = next_cursor


def _read_request_topic_request_v0(buf: bytes, pos: int) -> tuple[TopicRequest, int]:
    topic_request = new(TopicRequest)
    topic_request.name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_request, pos


def _read_request_request_cursor_v0(buf: bytes, pos: int) -> tuple[RequestCursor, int]:
    request_cursor = new(RequestCursor)
    request_cursor.topic_name, pos = compact_string(buf, pos)
    (request_cursor.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return request_cursor, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[DescribeTopicPartitionsRequest, int]:
    message = new(DescribeTopicPartitionsRequest)
    message.topics, pos = compact_array(buf, pos, _read_request_topic_request_v0, 2, 1)
    (message.response_partition_limit,) = _i.unpack_from(buf, pos)
    pos += 4
    message.cursor, pos = nullable_struct(buf, pos, _read_request_request_cursor_v0)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_topic_request_v0(out: bytearray, topic_request: TopicRequest, _inserts: Inserts) -> None:
    put_compact_string(out, topic_request.name)
    out.append(0)


def _write_request_request_cursor_v0(out: bytearray, request_cursor: RequestCursor, _inserts: Inserts) -> None:
    put_compact_string(out, request_cursor.topic_name)
    out += _ix.pack(request_cursor.partition_index)


def _write_request_v0(out: bytearray, message: DescribeTopicPartitionsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.topics, _write_request_topic_request_v0, inserts)
    out += _i.pack(message.response_partition_limit)
    put_nullable_struct(out, message.cursor, _write_request_request_cursor_v0, inserts)
    out.append(0)


def _read_response_describe_topic_partitions_response_partition_v0(
    buf: bytes, pos: int
) -> tuple[DescribeTopicPartitionsResponsePartition, int]:
    describe_topic_partitions_response_partition = new(DescribeTopicPartitionsResponsePartition)
    (
        describe_topic_partitions_response_partition.error_code,
        describe_topic_partitions_response_partition.partition_index,
        describe_topic_partitions_response_partition.leader_id,
        describe_topic_partitions_response_partition.leader_epoch,
    ) = _hiii.unpack_from(buf, pos)
    pos += 14
    describe_topic_partitions_response_partition.replica_nodes, pos = compact_numbers(buf, pos, "i")
    describe_topic_partitions_response_partition.isr_nodes, pos = compact_numbers(buf, pos, "i")
    describe_topic_partitions_response_partition.eligible_leader_replicas, pos = nullable_compact_numbers(
        buf, pos, "i"
    )
    describe_topic_partitions_response_partition.last_known_elr, pos = nullable_compact_numbers(buf, pos, "i")
    describe_topic_partitions_response_partition.offline_replicas, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_topic_partitions_response_partition, pos


def _read_response_describe_topic_partitions_response_topic_v0(
    buf: bytes, pos: int
) -> tuple[DescribeTopicPartitionsResponseTopic, int]:
    describe_topic_partitions_response_topic = new(DescribeTopicPartitionsResponseTopic)
    (describe_topic_partitions_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_topic_partitions_response_topic.name, pos = nullable_compact_string(buf, pos)
    describe_topic_partitions_response_topic.topic_id, describe_topic_partitions_response_topic.is_internal = (
        _gt.unpack_from(buf, pos)
    )
    pos += 17
    describe_topic_partitions_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_describe_topic_partitions_response_partition_v0, 20
    )
    (describe_topic_partitions_response_topic.topic_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_topic_partitions_response_topic, pos


def _read_response_response_cursor_v0(buf: bytes, pos: int) -> tuple[ResponseCursor, int]:
    response_cursor = new(ResponseCursor)
    response_cursor.topic_name, pos = compact_string(buf, pos)
    (response_cursor.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_cursor, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeTopicPartitionsResponse, int]:
    message = new(DescribeTopicPartitionsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_describe_topic_partitions_response_topic_v0, 26)
    message.next_cursor, pos = nullable_struct(buf, pos, _read_response_response_cursor_v0)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_describe_topic_partitions_response_partition_v0(
    out: bytearray,
    describe_topic_partitions_response_partition: DescribeTopicPartitionsResponsePartition,
    _inserts: Inserts,
) -> None:
    out += _hiii.pack(
        describe_topic_partitions_response_partition.error_code,
        describe_topic_partitions_response_partition.partition_index,
        describe_topic_partitions_response_partition.leader_id,
        describe_topic_partitions_response_partition.leader_epoch,
    )
    put_compact_numbers(out, describe_topic_partitions_response_partition.replica_nodes, "i")
    put_compact_numbers(out, describe_topic_partitions_response_partition.isr_nodes, "i")
    put_nullable_compact_numbers(out, describe_topic_partitions_response_partition.eligible_leader_replicas, "i")
    put_nullable_compact_numbers(out, describe_topic_partitions_response_partition.last_known_elr, "i")
    put_compact_numbers(out, describe_topic_partitions_response_partition.offline_replicas, "i")
    out.append(0)


def _write_response_describe_topic_partitions_response_topic_v0(
    out: bytearray, describe_topic_partitions_response_topic: DescribeTopicPartitionsResponseTopic, inserts: Inserts
) -> None:
    out += _h.pack(describe_topic_partitions_response_topic.error_code)
    put_nullable_compact_string(out, describe_topic_partitions_response_topic.name)
    if len(describe_topic_partitions_response_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _gt.pack(
        describe_topic_partitions_response_topic.topic_id, describe_topic_partitions_response_topic.is_internal
    )
    put_compact_array(
        out,
        describe_topic_partitions_response_topic.partitions,
        _write_response_describe_topic_partitions_response_partition_v0,
        inserts,
    )
    out += _ix.pack(describe_topic_partitions_response_topic.topic_authorized_operations)


def _write_response_response_cursor_v0(out: bytearray, response_cursor: ResponseCursor, _inserts: Inserts) -> None:
    put_compact_string(out, response_cursor.topic_name)
    out += _ix.pack(response_cursor.partition_index)


def _write_response_v0(out: bytearray, message: DescribeTopicPartitionsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_describe_topic_partitions_response_topic_v0, inserts)
    put_nullable_struct(out, message.next_cursor, _write_response_response_cursor_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeTopicPartitionsRequest] = MessageCodec(
    "DescribeTopicPartitionsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeTopicPartitionsResponse] = MessageCodec(
    "DescribeTopicPartitionsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
