"""AlterShareGroupOffsets: API key 91, v0 to v0."""
# Made by tools/wiregen from messages/alter_share_group_offsets.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_string, put_nullable_compact_string, wrong_uuid

_g = struct.Struct(">16s")
_ih = struct.Struct(">ih")
_iq = struct.Struct(">iq")
_iqx = struct.Struct(">iqx")


class AlterShareGroupOffsetsRequestPartition(Struct):
    __slots__ = (
        "partition_index",
        "start_offset",
    )

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


class AlterShareGroupOffsetsRequestTopic(Struct):
    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterShareGroupOffsetsRequest(Struct):
    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics


class AlterShareGroupOffsetsResponsePartition(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class AlterShareGroupOffsetsResponseTopic(Struct):
    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = NO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class AlterShareGroupOffsetsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses


def _read_request_alter_share_group_offsets_request_partition_v0(
    buf: bytes, pos: int
) -> tuple[AlterShareGroupOffsetsRequestPartition, int]:
    alter_share_group_offsets_request_partition = new(AlterShareGroupOffsetsRequestPartition)
    (
        alter_share_group_offsets_request_partition.partition_index,
        alter_share_group_offsets_request_partition.start_offset,
    ) = _iq.unpack_from(buf, pos)
    pos += 12
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_share_group_offsets_request_partition, pos


def _read_request_alter_share_group_offsets_request_topic_v0(
    buf: bytes, pos: int
) -> tuple[AlterShareGroupOffsetsRequestTopic, int]:
    alter_share_group_offsets_request_topic = new(AlterShareGroupOffsetsRequestTopic)
    alter_share_group_offsets_request_topic.topic_name, pos = compact_string(buf, pos)
    alter_share_group_offsets_request_topic.partitions, pos = compact_array(
        buf, pos, _read_request_alter_share_group_offsets_request_partition_v0, 13
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_share_group_offsets_request_topic, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[AlterShareGroupOffsetsRequest, int]:
    message = new(AlterShareGroupOffsetsRequest)
    message.group_id, pos = compact_string(buf, pos)
    message.topics, pos = compact_array(buf, pos, _read_request_alter_share_group_offsets_request_topic_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_alter_share_group_offsets_request_partition_v0(
    out: bytearray,
    alter_share_group_offsets_request_partition: AlterShareGroupOffsetsRequestPartition,
    _inserts: Inserts,
) -> None:
    out += _iqx.pack(
        alter_share_group_offsets_request_partition.partition_index,
        alter_share_group_offsets_request_partition.start_offset,
    )


def _write_request_alter_share_group_offsets_request_topic_v0(
    out: bytearray, alter_share_group_offsets_request_topic: AlterShareGroupOffsetsRequestTopic, inserts: Inserts
) -> None:
    put_compact_string(out, alter_share_group_offsets_request_topic.topic_name)
    put_compact_array(
        out,
        alter_share_group_offsets_request_topic.partitions,
        _write_request_alter_share_group_offsets_request_partition_v0,
        inserts,
    )
    out.append(0)


def _write_request_v0(out: bytearray, message: AlterShareGroupOffsetsRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    put_compact_array(out, message.topics, _write_request_alter_share_group_offsets_request_topic_v0, inserts)
    out.append(0)


def _read_response_alter_share_group_offsets_response_partition_v0(
    buf: bytes, pos: int
) -> tuple[AlterShareGroupOffsetsResponsePartition, int]:
    alter_share_group_offsets_response_partition = new(AlterShareGroupOffsetsResponsePartition)
    (
        alter_share_group_offsets_response_partition.partition_index,
        alter_share_group_offsets_response_partition.error_code,
    ) = _ih.unpack_from(buf, pos)
    pos += 6
    alter_share_group_offsets_response_partition.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_share_group_offsets_response_partition, pos


def _read_response_alter_share_group_offsets_response_topic_v0(
    buf: bytes, pos: int
) -> tuple[AlterShareGroupOffsetsResponseTopic, int]:
    alter_share_group_offsets_response_topic = new(AlterShareGroupOffsetsResponseTopic)
    alter_share_group_offsets_response_topic.topic_name, pos = compact_string(buf, pos)
    (alter_share_group_offsets_response_topic.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    alter_share_group_offsets_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_alter_share_group_offsets_response_partition_v0, 8
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_share_group_offsets_response_topic, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[AlterShareGroupOffsetsResponse, int]:
    message = new(AlterShareGroupOffsetsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.responses, pos = compact_array(buf, pos, _read_response_alter_share_group_offsets_response_topic_v0, 19)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_alter_share_group_offsets_response_partition_v0(
    out: bytearray,
    alter_share_group_offsets_response_partition: AlterShareGroupOffsetsResponsePartition,
    _inserts: Inserts,
) -> None:
    out += _ih.pack(
        alter_share_group_offsets_response_partition.partition_index,
        alter_share_group_offsets_response_partition.error_code,
    )
    put_nullable_compact_string(out, alter_share_group_offsets_response_partition.error_message)
    out.append(0)


def _write_response_alter_share_group_offsets_response_topic_v0(
    out: bytearray, alter_share_group_offsets_response_topic: AlterShareGroupOffsetsResponseTopic, inserts: Inserts
) -> None:
    put_compact_string(out, alter_share_group_offsets_response_topic.topic_name)
    if len(alter_share_group_offsets_response_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(alter_share_group_offsets_response_topic.topic_id)
    put_compact_array(
        out,
        alter_share_group_offsets_response_topic.partitions,
        _write_response_alter_share_group_offsets_response_partition_v0,
        inserts,
    )
    out.append(0)


def _write_response_v0(out: bytearray, message: AlterShareGroupOffsetsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.responses, _write_response_alter_share_group_offsets_response_topic_v0, inserts)
    out.append(0)


REQUEST: Codec[AlterShareGroupOffsetsRequest] = Codec(
    "AlterShareGroupOffsetsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: Codec[AlterShareGroupOffsetsResponse] = Codec(
    "AlterShareGroupOffsetsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
