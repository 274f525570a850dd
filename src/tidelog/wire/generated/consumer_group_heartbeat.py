"""ConsumerGroupHeartbeat: API key 68, v0 to v1."""
# Made by tools/wiregen from messages/consumer_group_heartbeat.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_numbers,
    compact_string,
    nullable_compact_array,
    nullable_compact_string,
    nullable_struct,
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    absent,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_compact_array,
    put_nullable_compact_string,
    put_nullable_compact_strings,
    put_nullable_struct,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_ii = struct.Struct(">ii")


class RequestTopicPartitions(Struct):
    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerGroupHeartbeatRequest(Struct):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,  # 1+
        server_assignor: str | None = None,
        topic_partitions: list[RequestTopicPartitions] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions


class ResponseTopicPartitions(Struct):
    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Struct):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[ResponseTopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


class ConsumerGroupHeartbeatResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment


def _read_request_request_topic_partitions_v0_to_v1(buf: bytes, pos: int) -> tuple[RequestTopicPartitions, int]:
    request_topic_partitions = new(RequestTopicPartitions)
    (request_topic_partitions.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    request_topic_partitions.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return request_topic_partitions, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    message = new(ConsumerGroupHeartbeatRequest)
    message.subscribed_topic_regex = None
    message.group_id, pos = compact_string(buf, pos)
    message.member_id, pos = compact_string(buf, pos)
    (message.member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.instance_id, pos = nullable_compact_string(buf, pos)
    message.rack_id, pos = nullable_compact_string(buf, pos)
    (message.rebalance_timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.subscribed_topic_names, pos = nullable_compact_array(buf, pos, compact_string, 1, 1)
    message.server_assignor, pos = nullable_compact_string(buf, pos)
    message.topic_partitions, pos = nullable_compact_array(
        buf, pos, _read_request_request_topic_partitions_v0_to_v1, 18, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    message = new(ConsumerGroupHeartbeatRequest)
    message.group_id, pos = compact_string(buf, pos)
    message.member_id, pos = compact_string(buf, pos)
    (message.member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.instance_id, pos = nullable_compact_string(buf, pos)
    message.rack_id, pos = nullable_compact_string(buf, pos)
    (message.rebalance_timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.subscribed_topic_names, pos = nullable_compact_array(buf, pos, compact_string, 1, 1)
    message.subscribed_topic_regex, pos = nullable_compact_string(buf, pos)
    message.server_assignor, pos = nullable_compact_string(buf, pos)
    message.topic_partitions, pos = nullable_compact_array(
        buf, pos, _read_request_request_topic_partitions_v0_to_v1, 18, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_request_topic_partitions_v0_to_v1(
    out: bytearray, request_topic_partitions: RequestTopicPartitions, _inserts: Inserts
) -> None:
    if len(request_topic_partitions.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(request_topic_partitions.topic_id)
    put_compact_numbers(out, request_topic_partitions.partitions, "i")
    out.append(0)


def _write_request_v0(out: bytearray, message: ConsumerGroupHeartbeatRequest, inserts: Inserts) -> None:
    if message.subscribed_topic_regex is not None:
        raise absent("subscribed_topic_regex")
    put_compact_string(out, message.group_id)
    put_compact_string(out, message.member_id)
    out += _i.pack(message.member_epoch)
    put_nullable_compact_string(out, message.instance_id)
    put_nullable_compact_string(out, message.rack_id)
    out += _i.pack(message.rebalance_timeout_ms)
    put_nullable_compact_strings(out, message.subscribed_topic_names)
    put_nullable_compact_string(out, message.server_assignor)
    put_nullable_compact_array(
        out, message.topic_partitions, _write_request_request_topic_partitions_v0_to_v1, inserts
    )
    out.append(0)


def _write_request_v1(out: bytearray, message: ConsumerGroupHeartbeatRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    put_compact_string(out, message.member_id)
    out += _i.pack(message.member_epoch)
    put_nullable_compact_string(out, message.instance_id)
    put_nullable_compact_string(out, message.rack_id)
    out += _i.pack(message.rebalance_timeout_ms)
    put_nullable_compact_strings(out, message.subscribed_topic_names)
    put_nullable_compact_string(out, message.subscribed_topic_regex)
    put_nullable_compact_string(out, message.server_assignor)
    put_nullable_compact_array(
        out, message.topic_partitions, _write_request_request_topic_partitions_v0_to_v1, inserts
    )
    out.append(0)


def _read_response_response_topic_partitions_v0_to_v1(buf: bytes, pos: int) -> tuple[ResponseTopicPartitions, int]:
    response_topic_partitions = new(ResponseTopicPartitions)
    (response_topic_partitions.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    response_topic_partitions.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_topic_partitions, pos


def _read_response_assignment_v0_to_v1(buf: bytes, pos: int) -> tuple[Assignment, int]:
    assignment = new(Assignment)
    assignment.topic_partitions, pos = compact_array(buf, pos, _read_response_response_topic_partitions_v0_to_v1, 18)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return assignment, pos


def _read_response_v0_to_v1(buf: bytes, pos: int) -> tuple[ConsumerGroupHeartbeatResponse, int]:
    message = new(ConsumerGroupHeartbeatResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.member_id, pos = nullable_compact_string(buf, pos)
    message.member_epoch, message.heartbeat_interval_ms = _ii.unpack_from(buf, pos)
    pos += 8
    message.assignment, pos = nullable_struct(buf, pos, _read_response_assignment_v0_to_v1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_response_topic_partitions_v0_to_v1(
    out: bytearray, response_topic_partitions: ResponseTopicPartitions, _inserts: Inserts
) -> None:
    if len(response_topic_partitions.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(response_topic_partitions.topic_id)
    put_compact_numbers(out, response_topic_partitions.partitions, "i")
    out.append(0)


def _write_response_assignment_v0_to_v1(out: bytearray, assignment: Assignment, inserts: Inserts) -> None:
    put_compact_array(out, assignment.topic_partitions, _write_response_response_topic_partitions_v0_to_v1, inserts)
    out.append(0)


def _write_response_v0_to_v1(out: bytearray, message: ConsumerGroupHeartbeatResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_nullable_compact_string(out, message.member_id)
    out += _ii.pack(message.member_epoch, message.heartbeat_interval_ms)
    put_nullable_struct(out, message.assignment, _write_response_assignment_v0_to_v1, inserts)
    out.append(0)


REQUEST: MessageCodec[ConsumerGroupHeartbeatRequest] = MessageCodec(
    "ConsumerGroupHeartbeatRequest",
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

RESPONSE: MessageCodec[ConsumerGroupHeartbeatResponse] = MessageCodec(
    "ConsumerGroupHeartbeatResponse",
    0,
    (
        _read_response_v0_to_v1,
        _read_response_v0_to_v1,
    ),
    (
        _write_response_v0_to_v1,
        _write_response_v0_to_v1,
    ),
    holds_views=False,
)
