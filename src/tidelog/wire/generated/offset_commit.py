"""OffsetCommit: API key 8, v2 to v10."""
# Made by tools/wiregen from messages/offset_commit.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_string,
    nullable_compact_string,
    nullable_string,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    put_array,
    put_compact_array,
    put_compact_string,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_i = struct.Struct(">i")
_q = struct.Struct(">q")
_ih = struct.Struct(">ih")
_iq = struct.Struct(">iq")
_ihx = struct.Struct(">ihx")
_iqi = struct.Struct(">iqi")


class OffsetCommitRequestPartition(Struct):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # 6+
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",  # 2-9
        topic_id: bytes = NO_UUID,  # 10+
        partitions: list[OffsetCommitRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetCommitRequest(Struct):
    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,  # 7+
        retention_time_ms: int = -1,  # 2-4
        topics: list[OffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is EMPTY else topics


class OffsetCommitResponsePartition(Struct):
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


class OffsetCommitResponseTopic(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",  # 2-9
        topic_id: bytes = NO_UUID,  # 10+
        partitions: list[OffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetCommitResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 3+
        topics: list[OffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_offset_commit_request_partition_v2_to_v5(
    buf: bytes, pos: int
) -> tuple[OffsetCommitRequestPartition, int]:
    offset_commit_request_partition = new(OffsetCommitRequestPartition)
    offset_commit_request_partition.committed_leader_epoch = -1
    offset_commit_request_partition.partition_index, offset_commit_request_partition.committed_offset = (
        _iq.unpack_from(buf, pos)
    )
    pos += 12
    offset_commit_request_partition.committed_metadata, pos = nullable_string(buf, pos)
    return offset_commit_request_partition, pos


def _read_request_offset_commit_request_partition_v6_to_v7(
    buf: bytes, pos: int
) -> tuple[OffsetCommitRequestPartition, int]:
    offset_commit_request_partition = new(OffsetCommitRequestPartition)
    (
        offset_commit_request_partition.partition_index,
        offset_commit_request_partition.committed_offset,
        offset_commit_request_partition.committed_leader_epoch,
    ) = _iqi.unpack_from(buf, pos)
    pos += 16
    offset_commit_request_partition.committed_metadata, pos = nullable_string(buf, pos)
    return offset_commit_request_partition, pos


def _read_request_offset_commit_request_partition_v8_to_v10(
    buf: bytes, pos: int
) -> tuple[OffsetCommitRequestPartition, int]:
    offset_commit_request_partition = new(OffsetCommitRequestPartition)
    (
        offset_commit_request_partition.partition_index,
        offset_commit_request_partition.committed_offset,
        offset_commit_request_partition.committed_leader_epoch,
    ) = _iqi.unpack_from(buf, pos)
    pos += 16
    offset_commit_request_partition.committed_metadata, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_commit_request_partition, pos


def _read_request_offset_commit_request_topic_v2_to_v5(buf: bytes, pos: int) -> tuple[OffsetCommitRequestTopic, int]:
    offset_commit_request_topic = new(OffsetCommitRequestTopic)
    offset_commit_request_topic.topic_id = NO_UUID
    offset_commit_request_topic.name, pos = string(buf, pos)
    offset_commit_request_topic.partitions, pos = array(
        buf, pos, _read_request_offset_commit_request_partition_v2_to_v5, 14, 1
    )
    return offset_commit_request_topic, pos


def _read_request_offset_commit_request_topic_v6_to_v7(buf: bytes, pos: int) -> tuple[OffsetCommitRequestTopic, int]:
    offset_commit_request_topic = new(OffsetCommitRequestTopic)
    offset_commit_request_topic.topic_id = NO_UUID
    offset_commit_request_topic.name, pos = string(buf, pos)
    offset_commit_request_topic.partitions, pos = array(
        buf, pos, _read_request_offset_commit_request_partition_v6_to_v7, 18, 1
    )
    return offset_commit_request_topic, pos


def _read_request_offset_commit_request_topic_v8_to_v9(buf: bytes, pos: int) -> tuple[OffsetCommitRequestTopic, int]:
    offset_commit_request_topic = new(OffsetCommitRequestTopic)
    offset_commit_request_topic.topic_id = NO_UUID
    offset_commit_request_topic.name, pos = compact_string(buf, pos)
    offset_commit_request_topic.partitions, pos = compact_array(
        buf, pos, _read_request_offset_commit_request_partition_v8_to_v10, 18, 1
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_commit_request_topic, pos


def _read_request_offset_commit_request_topic_v10(buf: bytes, pos: int) -> tuple[OffsetCommitRequestTopic, int]:
    offset_commit_request_topic = new(OffsetCommitRequestTopic)
    offset_commit_request_topic.name = ""
    (offset_commit_request_topic.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    offset_commit_request_topic.partitions, pos = compact_array(
        buf, pos, _read_request_offset_commit_request_partition_v8_to_v10, 18, 1
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_commit_request_topic, pos


def _read_request_v2_to_v4(buf: bytes, pos: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.group_instance_id = None
    message.group_id, pos = string(buf, pos)
    (message.generation_id_or_member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    (message.retention_time_ms,) = _q.unpack_from(buf, pos)
    pos += 8
    message.topics, pos = array(buf, pos, _read_request_offset_commit_request_topic_v2_to_v5, 6, 2)
    return message, pos


def _read_request_v5(buf: bytes, pos: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.group_instance_id = None
    message.retention_time_ms = -1
    message.group_id, pos = string(buf, pos)
    (message.generation_id_or_member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    message.topics, pos = array(buf, pos, _read_request_offset_commit_request_topic_v2_to_v5, 6, 2)
    return message, pos


def _read_request_v6(buf: bytes, pos: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.group_instance_id = None
    message.retention_time_ms = -1
    message.group_id, pos = string(buf, pos)
    (message.generation_id_or_member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    message.topics, pos = array(buf, pos, _read_request_offset_commit_request_topic_v6_to_v7, 6, 2)
    return message, pos


def _read_request_v7(buf: bytes, pos: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.retention_time_ms = -1
    message.group_id, pos = string(buf, pos)
    (message.generation_id_or_member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    message.group_instance_id, pos = nullable_string(buf, pos)
    message.topics, pos = array(buf, pos, _read_request_offset_commit_request_topic_v6_to_v7, 6, 2)
    return message, pos


def _read_request_v8_to_v9(buf: bytes, pos: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.retention_time_ms = -1
    message.group_id, pos = compact_string(buf, pos)
    (message.generation_id_or_member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = compact_string(buf, pos)
    message.group_instance_id, pos = nullable_compact_string(buf, pos)
    message.topics, pos = compact_array(buf, pos, _read_request_offset_commit_request_topic_v8_to_v9, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v10(buf: bytes, pos: int) -> tuple[OffsetCommitRequest, int]:
    message = new(OffsetCommitRequest)
    message.retention_time_ms = -1
    message.group_id, pos = compact_string(buf, pos)
    (message.generation_id_or_member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = compact_string(buf, pos)
    message.group_instance_id, pos = nullable_compact_string(buf, pos)
    message.topics, pos = compact_array(buf, pos, _read_request_offset_commit_request_topic_v10, 18, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_offset_commit_request_partition_v2_to_v5(
    out: bytearray, offset_commit_request_partition: OffsetCommitRequestPartition, _inserts: Inserts
) -> None:
    out += _iq.pack(offset_commit_request_partition.partition_index, offset_commit_request_partition.committed_offset)
    put_nullable_string(out, offset_commit_request_partition.committed_metadata)


def _write_request_offset_commit_request_partition_v6_to_v7(
    out: bytearray, offset_commit_request_partition: OffsetCommitRequestPartition, _inserts: Inserts
) -> None:
    out += _iqi.pack(
        offset_commit_request_partition.partition_index,
        offset_commit_request_partition.committed_offset,
        offset_commit_request_partition.committed_leader_epoch,
    )
    put_nullable_string(out, offset_commit_request_partition.committed_metadata)


def _write_request_offset_commit_request_partition_v8_to_v10(
    out: bytearray, offset_commit_request_partition: OffsetCommitRequestPartition, _inserts: Inserts
) -> None:
    out += _iqi.pack(
        offset_commit_request_partition.partition_index,
        offset_commit_request_partition.committed_offset,
        offset_commit_request_partition.committed_leader_epoch,
    )
    put_nullable_compact_string(out, offset_commit_request_partition.committed_metadata)
    out.append(0)


def _write_request_offset_commit_request_topic_v2_to_v5(
    out: bytearray, offset_commit_request_topic: OffsetCommitRequestTopic, inserts: Inserts
) -> None:
    put_string(out, offset_commit_request_topic.name)
    put_array(
        out, offset_commit_request_topic.partitions, _write_request_offset_commit_request_partition_v2_to_v5, inserts
    )


def _write_request_offset_commit_request_topic_v6_to_v7(
    out: bytearray, offset_commit_request_topic: OffsetCommitRequestTopic, inserts: Inserts
) -> None:
    put_string(out, offset_commit_request_topic.name)
    put_array(
        out, offset_commit_request_topic.partitions, _write_request_offset_commit_request_partition_v6_to_v7, inserts
    )


def _write_request_offset_commit_request_topic_v8_to_v9(
    out: bytearray, offset_commit_request_topic: OffsetCommitRequestTopic, inserts: Inserts
) -> None:
    put_compact_string(out, offset_commit_request_topic.name)
    put_compact_array(
        out, offset_commit_request_topic.partitions, _write_request_offset_commit_request_partition_v8_to_v10, inserts
    )
    out.append(0)


def _write_request_offset_commit_request_topic_v10(
    out: bytearray, offset_commit_request_topic: OffsetCommitRequestTopic, inserts: Inserts
) -> None:
    if len(offset_commit_request_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(offset_commit_request_topic.topic_id)
    put_compact_array(
        out, offset_commit_request_topic.partitions, _write_request_offset_commit_request_partition_v8_to_v10, inserts
    )
    out.append(0)


def _write_request_v2_to_v4(out: bytearray, message: OffsetCommitRequest, inserts: Inserts) -> None:
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.group_id)
    out += _i.pack(message.generation_id_or_member_epoch)
    put_string(out, message.member_id)
    out += _q.pack(message.retention_time_ms)
    put_array(out, message.topics, _write_request_offset_commit_request_topic_v2_to_v5, inserts)


def _write_request_v5(out: bytearray, message: OffsetCommitRequest, inserts: Inserts) -> None:
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.group_id)
    out += _i.pack(message.generation_id_or_member_epoch)
    put_string(out, message.member_id)
    put_array(out, message.topics, _write_request_offset_commit_request_topic_v2_to_v5, inserts)


def _write_request_v6(out: bytearray, message: OffsetCommitRequest, inserts: Inserts) -> None:
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.group_id)
    out += _i.pack(message.generation_id_or_member_epoch)
    put_string(out, message.member_id)
    put_array(out, message.topics, _write_request_offset_commit_request_topic_v6_to_v7, inserts)


def _write_request_v7(out: bytearray, message: OffsetCommitRequest, inserts: Inserts) -> None:
    put_string(out, message.group_id)
    out += _i.pack(message.generation_id_or_member_epoch)
    put_string(out, message.member_id)
    put_nullable_string(out, message.group_instance_id)
    put_array(out, message.topics, _write_request_offset_commit_request_topic_v6_to_v7, inserts)


def _write_request_v8_to_v9(out: bytearray, message: OffsetCommitRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    out += _i.pack(message.generation_id_or_member_epoch)
    put_compact_string(out, message.member_id)
    put_nullable_compact_string(out, message.group_instance_id)
    put_compact_array(out, message.topics, _write_request_offset_commit_request_topic_v8_to_v9, inserts)
    out.append(0)


def _write_request_v10(out: bytearray, message: OffsetCommitRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    out += _i.pack(message.generation_id_or_member_epoch)
    put_compact_string(out, message.member_id)
    put_nullable_compact_string(out, message.group_instance_id)
    put_compact_array(out, message.topics, _write_request_offset_commit_request_topic_v10, inserts)
    out.append(0)


def _read_response_offset_commit_response_partition_v2_to_v7(
    buf: bytes, pos: int
) -> tuple[OffsetCommitResponsePartition, int]:
    offset_commit_response_partition = new(OffsetCommitResponsePartition)
    offset_commit_response_partition.partition_index, offset_commit_response_partition.error_code = _ih.unpack_from(
        buf, pos
    )
    pos += 6
    return offset_commit_response_partition, pos


def _read_response_offset_commit_response_partition_v8_to_v10(
    buf: bytes, pos: int
) -> tuple[OffsetCommitResponsePartition, int]:
    offset_commit_response_partition = new(OffsetCommitResponsePartition)
    offset_commit_response_partition.partition_index, offset_commit_response_partition.error_code = _ih.unpack_from(
        buf, pos
    )
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_commit_response_partition, pos


def _read_response_offset_commit_response_topic_v2_to_v7(
    buf: bytes, pos: int
) -> tuple[OffsetCommitResponseTopic, int]:
    offset_commit_response_topic = new(OffsetCommitResponseTopic)
    offset_commit_response_topic.topic_id = NO_UUID
    offset_commit_response_topic.name, pos = string(buf, pos)
    offset_commit_response_topic.partitions, pos = array(
        buf, pos, _read_response_offset_commit_response_partition_v2_to_v7, 6
    )
    return offset_commit_response_topic, pos


def _read_response_offset_commit_response_topic_v8_to_v9(
    buf: bytes, pos: int
) -> tuple[OffsetCommitResponseTopic, int]:
    offset_commit_response_topic = new(OffsetCommitResponseTopic)
    offset_commit_response_topic.topic_id = NO_UUID
    offset_commit_response_topic.name, pos = compact_string(buf, pos)
    offset_commit_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_offset_commit_response_partition_v8_to_v10, 7
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_commit_response_topic, pos


def _read_response_offset_commit_response_topic_v10(buf: bytes, pos: int) -> tuple[OffsetCommitResponseTopic, int]:
    offset_commit_response_topic = new(OffsetCommitResponseTopic)
    offset_commit_response_topic.name = ""
    (offset_commit_response_topic.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    offset_commit_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_offset_commit_response_partition_v8_to_v10, 7
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_commit_response_topic, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[OffsetCommitResponse, int]:
    message = new(OffsetCommitResponse)
    message.throttle_time_ms = 0
    message.topics, pos = array(buf, pos, _read_response_offset_commit_response_topic_v2_to_v7, 6)
    return message, pos


def _read_response_v3_to_v7(buf: bytes, pos: int) -> tuple[OffsetCommitResponse, int]:
    message = new(OffsetCommitResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_offset_commit_response_topic_v2_to_v7, 6)
    return message, pos


def _read_response_v8_to_v9(buf: bytes, pos: int) -> tuple[OffsetCommitResponse, int]:
    message = new(OffsetCommitResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_offset_commit_response_topic_v8_to_v9, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v10(buf: bytes, pos: int) -> tuple[OffsetCommitResponse, int]:
    message = new(OffsetCommitResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_offset_commit_response_topic_v10, 18)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_offset_commit_response_partition_v2_to_v7(
    out: bytearray, offset_commit_response_partition: OffsetCommitResponsePartition, _inserts: Inserts
) -> None:
    out += _ih.pack(offset_commit_response_partition.partition_index, offset_commit_response_partition.error_code)


def _write_response_offset_commit_response_partition_v8_to_v10(
    out: bytearray, offset_commit_response_partition: OffsetCommitResponsePartition, _inserts: Inserts
) -> None:
    out += _ihx.pack(offset_commit_response_partition.partition_index, offset_commit_response_partition.error_code)


def _write_response_offset_commit_response_topic_v2_to_v7(
    out: bytearray, offset_commit_response_topic: OffsetCommitResponseTopic, inserts: Inserts
) -> None:
    put_string(out, offset_commit_response_topic.name)
    put_array(
        out,
        offset_commit_response_topic.partitions,
        _write_response_offset_commit_response_partition_v2_to_v7,
        inserts,
    )


def _write_response_offset_commit_response_topic_v8_to_v9(
    out: bytearray, offset_commit_response_topic: OffsetCommitResponseTopic, inserts: Inserts
) -> None:
    put_compact_string(out, offset_commit_response_topic.name)
    put_compact_array(
        out,
        offset_commit_response_topic.partitions,
        _write_response_offset_commit_response_partition_v8_to_v10,
        inserts,
    )
    out.append(0)


def _write_response_offset_commit_response_topic_v10(
    out: bytearray, offset_commit_response_topic: OffsetCommitResponseTopic, inserts: Inserts
) -> None:
    if len(offset_commit_response_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(offset_commit_response_topic.topic_id)
    put_compact_array(
        out,
        offset_commit_response_topic.partitions,
        _write_response_offset_commit_response_partition_v8_to_v10,
        inserts,
    )
    out.append(0)


def _write_response_v2(out: bytearray, message: OffsetCommitResponse, inserts: Inserts) -> None:
    put_array(out, message.topics, _write_response_offset_commit_response_topic_v2_to_v7, inserts)


def _write_response_v3_to_v7(out: bytearray, message: OffsetCommitResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_offset_commit_response_topic_v2_to_v7, inserts)


def _write_response_v8_to_v9(out: bytearray, message: OffsetCommitResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_offset_commit_response_topic_v8_to_v9, inserts)
    out.append(0)


def _write_response_v10(out: bytearray, message: OffsetCommitResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_offset_commit_response_topic_v10, inserts)
    out.append(0)


REQUEST: MessageCodec[OffsetCommitRequest] = MessageCodec(
    "OffsetCommitRequest",
    2,
    (
        _read_request_v2_to_v4,
        _read_request_v2_to_v4,
        _read_request_v2_to_v4,
        _read_request_v5,
        _read_request_v6,
        _read_request_v7,
        _read_request_v8_to_v9,
        _read_request_v8_to_v9,
        _read_request_v10,
    ),
    (
        _write_request_v2_to_v4,
        _write_request_v2_to_v4,
        _write_request_v2_to_v4,
        _write_request_v5,
        _write_request_v6,
        _write_request_v7,
        _write_request_v8_to_v9,
        _write_request_v8_to_v9,
        _write_request_v10,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[OffsetCommitResponse] = MessageCodec(
    "OffsetCommitResponse",
    2,
    (
        _read_response_v2,
        _read_response_v3_to_v7,
        _read_response_v3_to_v7,
        _read_response_v3_to_v7,
        _read_response_v3_to_v7,
        _read_response_v3_to_v7,
        _read_response_v8_to_v9,
        _read_response_v8_to_v9,
        _read_response_v10,
    ),
    (
        _write_response_v2,
        _write_response_v3_to_v7,
        _write_response_v3_to_v7,
        _write_response_v3_to_v7,
        _write_response_v3_to_v7,
        _write_response_v3_to_v7,
        _write_response_v8_to_v9,
        _write_response_v8_to_v9,
        _write_response_v10,
    ),
    holds_views=False,
)
