"""ShareGroupHeartbeat: API key 76, v1 to v1."""
# Made by tools/wiregen from messages/share_group_heartbeat.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
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
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_compact_string,
    put_nullable_compact_strings,
    put_nullable_struct,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_ii = struct.Struct(">ii")


class ShareGroupHeartbeatRequest(Struct):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "rack_id",
        "subscribed_topic_names",
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names


class TopicPartitions(Struct):
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
        topic_partitions: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


class ShareGroupHeartbeatResponse(Struct):
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


def _read_request_v1(buf: bytes, pos: int) -> tuple[ShareGroupHeartbeatRequest, int]:
    message = new(ShareGroupHeartbeatRequest)
    message.group_id, pos = compact_string(buf, pos)
    message.member_id, pos = compact_string(buf, pos)
    (message.member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.rack_id, pos = nullable_compact_string(buf, pos)
    message.subscribed_topic_names, pos = nullable_compact_array(buf, pos, compact_string, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v1(out: bytearray, message: ShareGroupHeartbeatRequest, _inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    put_compact_string(out, message.member_id)
    out += _i.pack(message.member_epoch)
    put_nullable_compact_string(out, message.rack_id)
    put_nullable_compact_strings(out, message.subscribed_topic_names)
    out.append(0)


def _read_response_topic_partitions_v1(buf: bytes, pos: int) -> tuple[TopicPartitions, int]:
    topic_partitions = new(TopicPartitions)
    (topic_partitions.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    topic_partitions.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_partitions, pos


def _read_response_assignment_v1(buf: bytes, pos: int) -> tuple[Assignment, int]:
    assignment = new(Assignment)
    assignment.topic_partitions, pos = compact_array(buf, pos, _read_response_topic_partitions_v1, 18)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return assignment, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[ShareGroupHeartbeatResponse, int]:
    message = new(ShareGroupHeartbeatResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.member_id, pos = nullable_compact_string(buf, pos)
    message.member_epoch, message.heartbeat_interval_ms = _ii.unpack_from(buf, pos)
    pos += 8
    message.assignment, pos = nullable_struct(buf, pos, _read_response_assignment_v1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_topic_partitions_v1(out: bytearray, topic_partitions: TopicPartitions, _inserts: Inserts) -> None:
    if len(topic_partitions.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(topic_partitions.topic_id)
    put_compact_numbers(out, topic_partitions.partitions, "i")
    out.append(0)


def _write_response_assignment_v1(out: bytearray, assignment: Assignment, inserts: Inserts) -> None:
    put_compact_array(out, assignment.topic_partitions, _write_response_topic_partitions_v1, inserts)
    out.append(0)


def _write_response_v1(out: bytearray, message: ShareGroupHeartbeatResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_nullable_compact_string(out, message.member_id)
    out += _ii.pack(message.member_epoch, message.heartbeat_interval_ms)
    put_nullable_struct(out, message.assignment, _write_response_assignment_v1, inserts)
    out.append(0)


REQUEST: Codec[ShareGroupHeartbeatRequest] = Codec(
    "ShareGroupHeartbeatRequest",
    1,
    (_read_request_v1,),
    (_write_request_v1,),
    holds_views=False,
)

RESPONSE: Codec[ShareGroupHeartbeatResponse] = Codec(
    "ShareGroupHeartbeatResponse",
    1,
    (_read_response_v1,),
    (_write_response_v1,),
    holds_views=False,
)
