"""DescribeShareGroupOffsets: API key 90, v0 to v1."""
# Made by tools/wiregen from messages/describe_share_group_offsets.txt; do not edit.
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
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_compact_array,
    put_nullable_compact_string,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_iqih = struct.Struct(">iqih")
_iqiqh = struct.Struct(">iqiqh")


class DescribeShareGroupOffsetsRequestTopic(Struct):
    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeShareGroupOffsetsRequestGroup(Struct):
    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics


class DescribeShareGroupOffsetsRequest(Struct):
    __slots__ = ("groups",)

    def __init__(
        self,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY,
    ) -> None:
        self.groups = [] if groups is EMPTY else groups


class DescribeShareGroupOffsetsResponsePartition(Struct):
    __slots__ = (
        "partition_index",
        "start_offset",
        "leader_epoch",
        "lag",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,  # 1+
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponseTopic(Struct):
    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = NO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeShareGroupOffsetsResponseGroup(Struct):
    __slots__ = (
        "group_id",
        "topics",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups


def _read_request_describe_share_group_offsets_request_topic_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[DescribeShareGroupOffsetsRequestTopic, int]:
    describe_share_group_offsets_request_topic = new(DescribeShareGroupOffsetsRequestTopic)
    describe_share_group_offsets_request_topic.topic_name, pos = compact_string(buf, pos)
    describe_share_group_offsets_request_topic.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_share_group_offsets_request_topic, pos


def _read_request_describe_share_group_offsets_request_group_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[DescribeShareGroupOffsetsRequestGroup, int]:
    describe_share_group_offsets_request_group = new(DescribeShareGroupOffsetsRequestGroup)
    describe_share_group_offsets_request_group.group_id, pos = compact_string(buf, pos)
    describe_share_group_offsets_request_group.topics, pos = nullable_compact_array(
        buf, pos, _read_request_describe_share_group_offsets_request_topic_v0_to_v1, 3, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_share_group_offsets_request_group, pos


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[DescribeShareGroupOffsetsRequest, int]:
    message = new(DescribeShareGroupOffsetsRequest)
    message.groups, pos = compact_array(
        buf, pos, _read_request_describe_share_group_offsets_request_group_v0_to_v1, 3, 3
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_describe_share_group_offsets_request_topic_v0_to_v1(
    out: bytearray,
    describe_share_group_offsets_request_topic: DescribeShareGroupOffsetsRequestTopic,
    _inserts: Inserts,
) -> None:
    put_compact_string(out, describe_share_group_offsets_request_topic.topic_name)
    put_compact_numbers(out, describe_share_group_offsets_request_topic.partitions, "i")
    out.append(0)


def _write_request_describe_share_group_offsets_request_group_v0_to_v1(
    out: bytearray,
    describe_share_group_offsets_request_group: DescribeShareGroupOffsetsRequestGroup,
    inserts: Inserts,
) -> None:
    put_compact_string(out, describe_share_group_offsets_request_group.group_id)
    put_nullable_compact_array(
        out,
        describe_share_group_offsets_request_group.topics,
        _write_request_describe_share_group_offsets_request_topic_v0_to_v1,
        inserts,
    )
    out.append(0)


def _write_request_v0_to_v1(out: bytearray, message: DescribeShareGroupOffsetsRequest, inserts: Inserts) -> None:
    put_compact_array(
        out, message.groups, _write_request_describe_share_group_offsets_request_group_v0_to_v1, inserts
    )
    out.append(0)


def _read_response_describe_share_group_offsets_response_partition_v0(
    buf: bytes, pos: int
) -> tuple[DescribeShareGroupOffsetsResponsePartition, int]:
    describe_share_group_offsets_response_partition = new(DescribeShareGroupOffsetsResponsePartition)
    describe_share_group_offsets_response_partition.lag = -1
    (
        describe_share_group_offsets_response_partition.partition_index,
        describe_share_group_offsets_response_partition.start_offset,
        describe_share_group_offsets_response_partition.leader_epoch,
        describe_share_group_offsets_response_partition.error_code,
    ) = _iqih.unpack_from(buf, pos)
    pos += 18
    describe_share_group_offsets_response_partition.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_share_group_offsets_response_partition, pos


def _read_response_describe_share_group_offsets_response_partition_v1(
    buf: bytes, pos: int
) -> tuple[DescribeShareGroupOffsetsResponsePartition, int]:
    describe_share_group_offsets_response_partition = new(DescribeShareGroupOffsetsResponsePartition)
    (
        describe_share_group_offsets_response_partition.partition_index,
        describe_share_group_offsets_response_partition.start_offset,
        describe_share_group_offsets_response_partition.leader_epoch,
        describe_share_group_offsets_response_partition.lag,
        describe_share_group_offsets_response_partition.error_code,
    ) = _iqiqh.unpack_from(buf, pos)
    pos += 26
    describe_share_group_offsets_response_partition.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_share_group_offsets_response_partition, pos


def _read_response_describe_share_group_offsets_response_topic_v0(
    buf: bytes, pos: int
) -> tuple[DescribeShareGroupOffsetsResponseTopic, int]:
    describe_share_group_offsets_response_topic = new(DescribeShareGroupOffsetsResponseTopic)
    describe_share_group_offsets_response_topic.topic_name, pos = compact_string(buf, pos)
    (describe_share_group_offsets_response_topic.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    describe_share_group_offsets_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_describe_share_group_offsets_response_partition_v0, 20
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_share_group_offsets_response_topic, pos


def _read_response_describe_share_group_offsets_response_topic_v1(
    buf: bytes, pos: int
) -> tuple[DescribeShareGroupOffsetsResponseTopic, int]:
    describe_share_group_offsets_response_topic = new(DescribeShareGroupOffsetsResponseTopic)
    describe_share_group_offsets_response_topic.topic_name, pos = compact_string(buf, pos)
    (describe_share_group_offsets_response_topic.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    describe_share_group_offsets_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_describe_share_group_offsets_response_partition_v1, 28
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_share_group_offsets_response_topic, pos


def _read_response_describe_share_group_offsets_response_group_v0(
    buf: bytes, pos: int
) -> tuple[DescribeShareGroupOffsetsResponseGroup, int]:
    describe_share_group_offsets_response_group = new(DescribeShareGroupOffsetsResponseGroup)
    describe_share_group_offsets_response_group.group_id, pos = compact_string(buf, pos)
    describe_share_group_offsets_response_group.topics, pos = compact_array(
        buf, pos, _read_response_describe_share_group_offsets_response_topic_v0, 19
    )
    (describe_share_group_offsets_response_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_share_group_offsets_response_group.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_share_group_offsets_response_group, pos


def _read_response_describe_share_group_offsets_response_group_v1(
    buf: bytes, pos: int
) -> tuple[DescribeShareGroupOffsetsResponseGroup, int]:
    describe_share_group_offsets_response_group = new(DescribeShareGroupOffsetsResponseGroup)
    describe_share_group_offsets_response_group.group_id, pos = compact_string(buf, pos)
    describe_share_group_offsets_response_group.topics, pos = compact_array(
        buf, pos, _read_response_describe_share_group_offsets_response_topic_v1, 19
    )
    (describe_share_group_offsets_response_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_share_group_offsets_response_group.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_share_group_offsets_response_group, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    message = new(DescribeShareGroupOffsetsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_describe_share_group_offsets_response_group_v0, 6)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    message = new(DescribeShareGroupOffsetsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_describe_share_group_offsets_response_group_v1, 6)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_describe_share_group_offsets_response_partition_v0(
    out: bytearray,
    describe_share_group_offsets_response_partition: DescribeShareGroupOffsetsResponsePartition,
    _inserts: Inserts,
) -> None:
    out += _iqih.pack(
        describe_share_group_offsets_response_partition.partition_index,
        describe_share_group_offsets_response_partition.start_offset,
        describe_share_group_offsets_response_partition.leader_epoch,
        describe_share_group_offsets_response_partition.error_code,
    )
    put_nullable_compact_string(out, describe_share_group_offsets_response_partition.error_message)
    out.append(0)


def _write_response_describe_share_group_offsets_response_partition_v1(
    out: bytearray,
    describe_share_group_offsets_response_partition: DescribeShareGroupOffsetsResponsePartition,
    _inserts: Inserts,
) -> None:
    out += _iqiqh.pack(
        describe_share_group_offsets_response_partition.partition_index,
        describe_share_group_offsets_response_partition.start_offset,
        describe_share_group_offsets_response_partition.leader_epoch,
        describe_share_group_offsets_response_partition.lag,
        describe_share_group_offsets_response_partition.error_code,
    )
    put_nullable_compact_string(out, describe_share_group_offsets_response_partition.error_message)
    out.append(0)


def _write_response_describe_share_group_offsets_response_topic_v0(
    out: bytearray,
    describe_share_group_offsets_response_topic: DescribeShareGroupOffsetsResponseTopic,
    inserts: Inserts,
) -> None:
    put_compact_string(out, describe_share_group_offsets_response_topic.topic_name)
    if len(describe_share_group_offsets_response_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(describe_share_group_offsets_response_topic.topic_id)
    put_compact_array(
        out,
        describe_share_group_offsets_response_topic.partitions,
        _write_response_describe_share_group_offsets_response_partition_v0,
        inserts,
    )
    out.append(0)


def _write_response_describe_share_group_offsets_response_topic_v1(
    out: bytearray,
    describe_share_group_offsets_response_topic: DescribeShareGroupOffsetsResponseTopic,
    inserts: Inserts,
) -> None:
    put_compact_string(out, describe_share_group_offsets_response_topic.topic_name)
    if len(describe_share_group_offsets_response_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(describe_share_group_offsets_response_topic.topic_id)
    put_compact_array(
        out,
        describe_share_group_offsets_response_topic.partitions,
        _write_response_describe_share_group_offsets_response_partition_v1,
        inserts,
    )
    out.append(0)


def _write_response_describe_share_group_offsets_response_group_v0(
    out: bytearray,
    describe_share_group_offsets_response_group: DescribeShareGroupOffsetsResponseGroup,
    inserts: Inserts,
) -> None:
    put_compact_string(out, describe_share_group_offsets_response_group.group_id)
    put_compact_array(
        out,
        describe_share_group_offsets_response_group.topics,
        _write_response_describe_share_group_offsets_response_topic_v0,
        inserts,
    )
    out += _h.pack(describe_share_group_offsets_response_group.error_code)
    put_nullable_compact_string(out, describe_share_group_offsets_response_group.error_message)
    out.append(0)


def _write_response_describe_share_group_offsets_response_group_v1(
    out: bytearray,
    describe_share_group_offsets_response_group: DescribeShareGroupOffsetsResponseGroup,
    inserts: Inserts,
) -> None:
    put_compact_string(out, describe_share_group_offsets_response_group.group_id)
    put_compact_array(
        out,
        describe_share_group_offsets_response_group.topics,
        _write_response_describe_share_group_offsets_response_topic_v1,
        inserts,
    )
    out += _h.pack(describe_share_group_offsets_response_group.error_code)
    put_nullable_compact_string(out, describe_share_group_offsets_response_group.error_message)
    out.append(0)


def _write_response_v0(out: bytearray, message: DescribeShareGroupOffsetsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_describe_share_group_offsets_response_group_v0, inserts)
    out.append(0)


def _write_response_v1(out: bytearray, message: DescribeShareGroupOffsetsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_describe_share_group_offsets_response_group_v1, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeShareGroupOffsetsRequest] = MessageCodec(
    "DescribeShareGroupOffsetsRequest",
    0,
    (
        _read_request_v0_to_v1,
        _read_request_v0_to_v1,
    ),
    (
        _write_request_v0_to_v1,
        _write_request_v0_to_v1,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeShareGroupOffsetsResponse] = MessageCodec(
    "DescribeShareGroupOffsetsResponse",
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
