"""OffsetDelete: API key 47, v0 to v0."""
# Made by tools/wiregen from messages/offset_delete.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import array, string
from tidelog.wire.writing import put_array, put_string

_i = struct.Struct(">i")
_hi = struct.Struct(">hi")
_ih = struct.Struct(">ih")


class OffsetDeleteRequestPartition(Struct):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class OffsetDeleteRequestTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetDeleteRequest(Struct):
    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics


class OffsetDeleteResponsePartition(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetDeleteResponseTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetDeleteResponse(Struct):
    __slots__ = (
        "error_code",
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_offset_delete_request_partition_v0(
    buf: bytes, pos: int
) -> tuple[OffsetDeleteRequestPartition, int]:
    offset_delete_request_partition = new(OffsetDeleteRequestPartition)
    (offset_delete_request_partition.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    return offset_delete_request_partition, pos


def _read_request_offset_delete_request_topic_v0(buf: bytes, pos: int) -> tuple[OffsetDeleteRequestTopic, int]:
    offset_delete_request_topic = new(OffsetDeleteRequestTopic)
    offset_delete_request_topic.name, pos = string(buf, pos)
    offset_delete_request_topic.partitions, pos = array(
        buf, pos, _read_request_offset_delete_request_partition_v0, 4, 1
    )
    return offset_delete_request_topic, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[OffsetDeleteRequest, int]:
    message = new(OffsetDeleteRequest)
    message.group_id, pos = string(buf, pos)
    message.topics, pos = array(buf, pos, _read_request_offset_delete_request_topic_v0, 6, 2)
    return message, pos


def _write_request_offset_delete_request_partition_v0(
    out: bytearray, offset_delete_request_partition: OffsetDeleteRequestPartition, _inserts: Inserts
) -> None:
    out += _i.pack(offset_delete_request_partition.partition_index)


def _write_request_offset_delete_request_topic_v0(
    out: bytearray, offset_delete_request_topic: OffsetDeleteRequestTopic, inserts: Inserts
) -> None:
    put_string(out, offset_delete_request_topic.name)
    put_array(out, offset_delete_request_topic.partitions, _write_request_offset_delete_request_partition_v0, inserts)


def _write_request_v0(out: bytearray, message: OffsetDeleteRequest, inserts: Inserts) -> None:
    put_string(out, message.group_id)
    put_array(out, message.topics, _write_request_offset_delete_request_topic_v0, inserts)


def _read_response_offset_delete_response_partition_v0(
    buf: bytes, pos: int
) -> tuple[OffsetDeleteResponsePartition, int]:
    offset_delete_response_partition = new(OffsetDeleteResponsePartition)
    offset_delete_response_partition.partition_index, offset_delete_response_partition.error_code = _ih.unpack_from(
        buf, pos
    )
    pos += 6
    return offset_delete_response_partition, pos


def _read_response_offset_delete_response_topic_v0(buf: bytes, pos: int) -> tuple[OffsetDeleteResponseTopic, int]:
    offset_delete_response_topic = new(OffsetDeleteResponseTopic)
    offset_delete_response_topic.name, pos = string(buf, pos)
    offset_delete_response_topic.partitions, pos = array(
        buf, pos, _read_response_offset_delete_response_partition_v0, 6
    )
    return offset_delete_response_topic, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[OffsetDeleteResponse, int]:
    message = new(OffsetDeleteResponse)
    message.error_code, message.throttle_time_ms = _hi.unpack_from(buf, pos)
    pos += 6
    message.topics, pos = array(buf, pos, _read_response_offset_delete_response_topic_v0, 6)
    return message, pos


def _write_response_offset_delete_response_partition_v0(
    out: bytearray, offset_delete_response_partition: OffsetDeleteResponsePartition, _inserts: Inserts
) -> None:
    out += _ih.pack(offset_delete_response_partition.partition_index, offset_delete_response_partition.error_code)


def _write_response_offset_delete_response_topic_v0(
    out: bytearray, offset_delete_response_topic: OffsetDeleteResponseTopic, inserts: Inserts
) -> None:
    put_string(out, offset_delete_response_topic.name)
    put_array(
        out, offset_delete_response_topic.partitions, _write_response_offset_delete_response_partition_v0, inserts
    )


def _write_response_v0(out: bytearray, message: OffsetDeleteResponse, inserts: Inserts) -> None:
    out += _hi.pack(message.error_code, message.throttle_time_ms)
    put_array(out, message.topics, _write_response_offset_delete_response_topic_v0, inserts)


REQUEST: MessageCodec[OffsetDeleteRequest] = MessageCodec(
    "OffsetDeleteRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[OffsetDeleteResponse] = MessageCodec(
    "OffsetDeleteResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
