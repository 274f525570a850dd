"""OffsetFetch: API key 9, v1 to v10."""
# Made by tools/wiregen from messages/offset_fetch.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
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
    absent,
    null_in_this_version,
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
    wrong_uuid,
)

_g = struct.Struct(">16s")
_t = struct.Struct(">?")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_tx = struct.Struct(">?x")
_hx = struct.Struct(">hx")
_iq = struct.Struct(">iq")
_iqi = struct.Struct(">iqi")


class OffsetFetchRequestTopic(Struct):
    __slots__ = (
        "name",
        "partition_indexes",
    )

    def __init__(
        self,
        name: str = "",  # 1-7
        partition_indexes: list[int] = EMPTY,  # 1-7
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class OffsetFetchRequestTopics(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "partition_indexes",
    )

    def __init__(
        self,
        name: str = "",  # 8-9
        topic_id: bytes = NO_UUID,  # 10+
        partition_indexes: list[int] = EMPTY,  # 8+
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class OffsetFetchRequestGroup(Struct):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "topics",
    )

    def __init__(
        self,
        group_id: str = "",  # 8+
        member_id: str | None = None,  # 9+
        member_epoch: int = -1,  # 9+
        topics: list[OffsetFetchRequestTopics] | None = EMPTY,  # 8+
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = [] if topics is EMPTY else topics


class OffsetFetchRequest(Struct):
    __slots__ = (
        "group_id",
        "topics",
        "groups",
        "require_stable",
    )

    def __init__(
        self,
        group_id: str = "",  # 1-7
        topics: list[OffsetFetchRequestTopic] | None = EMPTY,  # 1-7
        groups: list[OffsetFetchRequestGroup] = EMPTY,  # 8+
        require_stable: bool = False,  # 7+
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.groups = [] if groups is EMPTY else groups
        self.require_stable = require_stable


class OffsetFetchResponsePartition(Struct):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )

    def __init__(
        self,
        partition_index: int = 0,  # 1-7
        committed_offset: int = 0,  # 1-7
        committed_leader_epoch: int = -1,  # 5-7
        metadata: str | None = "",  # 1-7
        error_code: int = 0,  # 1-7
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",  # 1-7
        partitions: list[OffsetFetchResponsePartition] = EMPTY,  # 1-7
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetFetchResponsePartitions(Struct):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )

    def __init__(
        self,
        partition_index: int = 0,  # 8+
        committed_offset: int = 0,  # 8+
        committed_leader_epoch: int = -1,  # 8+
        metadata: str | None = "",  # 8+
        error_code: int = 0,  # 8+
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",  # 8-9
        topic_id: bytes = NO_UUID,  # 10+
        partitions: list[OffsetFetchResponsePartitions] = EMPTY,  # 8+
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetFetchResponseGroup(Struct):
    __slots__ = (
        "group_id",
        "topics",
        "error_code",
    )

    def __init__(
        self,
        group_id: str = "",  # 8+
        topics: list[OffsetFetchResponseTopics] = EMPTY,  # 8+
        error_code: int = 0,  # 8+
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code


class OffsetFetchResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
        "error_code",
        "groups",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 3+
        topics: list[OffsetFetchResponseTopic] = EMPTY,  # 1-7
        error_code: int = 0,  # 2-7
        groups: list[OffsetFetchResponseGroup] = EMPTY,  # 8+
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups


def _read_request_offset_fetch_request_topic_v1_to_v5(buf: bytes, pos: int) -> tuple[OffsetFetchRequestTopic, int]:
    offset_fetch_request_topic = new(OffsetFetchRequestTopic)
    offset_fetch_request_topic.name, pos = string(buf, pos)
    offset_fetch_request_topic.partition_indexes, pos = numbers(buf, pos, "i")
    return offset_fetch_request_topic, pos


def _read_request_offset_fetch_request_topic_v6_to_v7(buf: bytes, pos: int) -> tuple[OffsetFetchRequestTopic, int]:
    offset_fetch_request_topic = new(OffsetFetchRequestTopic)
    offset_fetch_request_topic.name, pos = compact_string(buf, pos)
    offset_fetch_request_topic.partition_indexes, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_request_topic, pos


def _read_request_offset_fetch_request_topics_v8_to_v9(buf: bytes, pos: int) -> tuple[OffsetFetchRequestTopics, int]:
    offset_fetch_request_topics = new(OffsetFetchRequestTopics)
    offset_fetch_request_topics.topic_id = NO_UUID
    offset_fetch_request_topics.name, pos = compact_string(buf, pos)
    offset_fetch_request_topics.partition_indexes, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_request_topics, pos


def _read_request_offset_fetch_request_topics_v10(buf: bytes, pos: int) -> tuple[OffsetFetchRequestTopics, int]:
    offset_fetch_request_topics = new(OffsetFetchRequestTopics)
    offset_fetch_request_topics.name = ""
    (offset_fetch_request_topics.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    offset_fetch_request_topics.partition_indexes, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_request_topics, pos


def _read_request_offset_fetch_request_group_v8(buf: bytes, pos: int) -> tuple[OffsetFetchRequestGroup, int]:
    offset_fetch_request_group = new(OffsetFetchRequestGroup)
    offset_fetch_request_group.member_id = None
    offset_fetch_request_group.member_epoch = -1
    offset_fetch_request_group.group_id, pos = compact_string(buf, pos)
    offset_fetch_request_group.topics, pos = nullable_compact_array(
        buf, pos, _read_request_offset_fetch_request_topics_v8_to_v9, 3, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_request_group, pos


def _read_request_offset_fetch_request_group_v9(buf: bytes, pos: int) -> tuple[OffsetFetchRequestGroup, int]:
    offset_fetch_request_group = new(OffsetFetchRequestGroup)
    offset_fetch_request_group.group_id, pos = compact_string(buf, pos)
    offset_fetch_request_group.member_id, pos = nullable_compact_string(buf, pos)
    (offset_fetch_request_group.member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    offset_fetch_request_group.topics, pos = nullable_compact_array(
        buf, pos, _read_request_offset_fetch_request_topics_v8_to_v9, 3, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_request_group, pos


def _read_request_offset_fetch_request_group_v10(buf: bytes, pos: int) -> tuple[OffsetFetchRequestGroup, int]:
    offset_fetch_request_group = new(OffsetFetchRequestGroup)
    offset_fetch_request_group.group_id, pos = compact_string(buf, pos)
    offset_fetch_request_group.member_id, pos = nullable_compact_string(buf, pos)
    (offset_fetch_request_group.member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    offset_fetch_request_group.topics, pos = nullable_compact_array(
        buf, pos, _read_request_offset_fetch_request_topics_v10, 18, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_request_group, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.groups = []
    message.require_stable = False
    message.group_id, pos = string(buf, pos)
    message.topics, pos = array(buf, pos, _read_request_offset_fetch_request_topic_v1_to_v5, 6, 2)
    return message, pos


def _read_request_v2_to_v5(buf: bytes, pos: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.groups = []
    message.require_stable = False
    message.group_id, pos = string(buf, pos)
    message.topics, pos = nullable_array(buf, pos, _read_request_offset_fetch_request_topic_v1_to_v5, 6, 2)
    return message, pos


def _read_request_v6(buf: bytes, pos: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.groups = []
    message.require_stable = False
    message.group_id, pos = compact_string(buf, pos)
    message.topics, pos = nullable_compact_array(buf, pos, _read_request_offset_fetch_request_topic_v6_to_v7, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v7(buf: bytes, pos: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.groups = []
    message.group_id, pos = compact_string(buf, pos)
    message.topics, pos = nullable_compact_array(buf, pos, _read_request_offset_fetch_request_topic_v6_to_v7, 3, 2)
    (message.require_stable,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v8(buf: bytes, pos: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.group_id = ""
    message.topics = []
    message.groups, pos = compact_array(buf, pos, _read_request_offset_fetch_request_group_v8, 3, 3)
    (message.require_stable,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v9(buf: bytes, pos: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.group_id = ""
    message.topics = []
    message.groups, pos = compact_array(buf, pos, _read_request_offset_fetch_request_group_v9, 8, 3)
    (message.require_stable,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v10(buf: bytes, pos: int) -> tuple[OffsetFetchRequest, int]:
    message = new(OffsetFetchRequest)
    message.group_id = ""
    message.topics = []
    message.groups, pos = compact_array(buf, pos, _read_request_offset_fetch_request_group_v10, 8, 3)
    (message.require_stable,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_offset_fetch_request_topic_v1_to_v5(
    out: bytearray, offset_fetch_request_topic: OffsetFetchRequestTopic, _inserts: Inserts
) -> None:
    put_string(out, offset_fetch_request_topic.name)
    put_numbers(out, offset_fetch_request_topic.partition_indexes, "i")


def _write_request_offset_fetch_request_topic_v6_to_v7(
    out: bytearray, offset_fetch_request_topic: OffsetFetchRequestTopic, _inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_request_topic.name)
    put_compact_numbers(out, offset_fetch_request_topic.partition_indexes, "i")
    out.append(0)


def _write_request_offset_fetch_request_topics_v8_to_v9(
    out: bytearray, offset_fetch_request_topics: OffsetFetchRequestTopics, _inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_request_topics.name)
    put_compact_numbers(out, offset_fetch_request_topics.partition_indexes, "i")
    out.append(0)


def _write_request_offset_fetch_request_topics_v10(
    out: bytearray, offset_fetch_request_topics: OffsetFetchRequestTopics, _inserts: Inserts
) -> None:
    if len(offset_fetch_request_topics.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(offset_fetch_request_topics.topic_id)
    put_compact_numbers(out, offset_fetch_request_topics.partition_indexes, "i")
    out.append(0)


def _write_request_offset_fetch_request_group_v8(
    out: bytearray, offset_fetch_request_group: OffsetFetchRequestGroup, inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_request_group.group_id)
    put_nullable_compact_array(
        out, offset_fetch_request_group.topics, _write_request_offset_fetch_request_topics_v8_to_v9, inserts
    )
    out.append(0)


def _write_request_offset_fetch_request_group_v9(
    out: bytearray, offset_fetch_request_group: OffsetFetchRequestGroup, inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_request_group.group_id)
    put_nullable_compact_string(out, offset_fetch_request_group.member_id)
    out += _i.pack(offset_fetch_request_group.member_epoch)
    put_nullable_compact_array(
        out, offset_fetch_request_group.topics, _write_request_offset_fetch_request_topics_v8_to_v9, inserts
    )
    out.append(0)


def _write_request_offset_fetch_request_group_v10(
    out: bytearray, offset_fetch_request_group: OffsetFetchRequestGroup, inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_request_group.group_id)
    put_nullable_compact_string(out, offset_fetch_request_group.member_id)
    out += _i.pack(offset_fetch_request_group.member_epoch)
    put_nullable_compact_array(
        out, offset_fetch_request_group.topics, _write_request_offset_fetch_request_topics_v10, inserts
    )
    out.append(0)


def _write_request_v1(out: bytearray, message: OffsetFetchRequest, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    if message.require_stable:
        raise absent("require_stable")
    put_string(out, message.group_id)
    if message.topics is None:
        raise null_in_this_version("topics")
    put_array(out, message.topics, _write_request_offset_fetch_request_topic_v1_to_v5, inserts)


def _write_request_v2_to_v5(out: bytearray, message: OffsetFetchRequest, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    if message.require_stable:
        raise absent("require_stable")
    put_string(out, message.group_id)
    put_nullable_array(out, message.topics, _write_request_offset_fetch_request_topic_v1_to_v5, inserts)


def _write_request_v6(out: bytearray, message: OffsetFetchRequest, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    if message.require_stable:
        raise absent("require_stable")
    put_compact_string(out, message.group_id)
    put_nullable_compact_array(out, message.topics, _write_request_offset_fetch_request_topic_v6_to_v7, inserts)
    out.append(0)


def _write_request_v7(out: bytearray, message: OffsetFetchRequest, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    put_compact_string(out, message.group_id)
    put_nullable_compact_array(out, message.topics, _write_request_offset_fetch_request_topic_v6_to_v7, inserts)
    out += _tx.pack(message.require_stable)


def _write_request_v8(out: bytearray, message: OffsetFetchRequest, inserts: Inserts) -> None:
    if message.group_id:
        raise absent("group_id")
    if message.topics != []:
        raise absent("topics")
    put_compact_array(out, message.groups, _write_request_offset_fetch_request_group_v8, inserts)
    out += _tx.pack(message.require_stable)


def _write_request_v9(out: bytearray, message: OffsetFetchRequest, inserts: Inserts) -> None:
    if message.group_id:
        raise absent("group_id")
    if message.topics != []:
        raise absent("topics")
    put_compact_array(out, message.groups, _write_request_offset_fetch_request_group_v9, inserts)
    out += _tx.pack(message.require_stable)


def _write_request_v10(out: bytearray, message: OffsetFetchRequest, inserts: Inserts) -> None:
    if message.group_id:
        raise absent("group_id")
    if message.topics != []:
        raise absent("topics")
    put_compact_array(out, message.groups, _write_request_offset_fetch_request_group_v10, inserts)
    out += _tx.pack(message.require_stable)


def _read_response_offset_fetch_response_partition_v1_to_v4(
    buf: bytes, pos: int
) -> tuple[OffsetFetchResponsePartition, int]:
    offset_fetch_response_partition = new(OffsetFetchResponsePartition)
    offset_fetch_response_partition.committed_leader_epoch = -1
    offset_fetch_response_partition.partition_index, offset_fetch_response_partition.committed_offset = (
        _iq.unpack_from(buf, pos)
    )
    pos += 12
    offset_fetch_response_partition.metadata, pos = nullable_string(buf, pos)
    (offset_fetch_response_partition.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return offset_fetch_response_partition, pos


def _read_response_offset_fetch_response_partition_v5(
    buf: bytes, pos: int
) -> tuple[OffsetFetchResponsePartition, int]:
    offset_fetch_response_partition = new(OffsetFetchResponsePartition)
    (
        offset_fetch_response_partition.partition_index,
        offset_fetch_response_partition.committed_offset,
        offset_fetch_response_partition.committed_leader_epoch,
    ) = _iqi.unpack_from(buf, pos)
    pos += 16
    offset_fetch_response_partition.metadata, pos = nullable_string(buf, pos)
    (offset_fetch_response_partition.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return offset_fetch_response_partition, pos


def _read_response_offset_fetch_response_partition_v6_to_v7(
    buf: bytes, pos: int
) -> tuple[OffsetFetchResponsePartition, int]:
    offset_fetch_response_partition = new(OffsetFetchResponsePartition)
    (
        offset_fetch_response_partition.partition_index,
        offset_fetch_response_partition.committed_offset,
        offset_fetch_response_partition.committed_leader_epoch,
    ) = _iqi.unpack_from(buf, pos)
    pos += 16
    offset_fetch_response_partition.metadata, pos = nullable_compact_string(buf, pos)
    (offset_fetch_response_partition.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_response_partition, pos


def _read_response_offset_fetch_response_topic_v1_to_v4(buf: bytes, pos: int) -> tuple[OffsetFetchResponseTopic, int]:
    offset_fetch_response_topic = new(OffsetFetchResponseTopic)
    offset_fetch_response_topic.name, pos = string(buf, pos)
    offset_fetch_response_topic.partitions, pos = array(
        buf, pos, _read_response_offset_fetch_response_partition_v1_to_v4, 16
    )
    return offset_fetch_response_topic, pos


def _read_response_offset_fetch_response_topic_v5(buf: bytes, pos: int) -> tuple[OffsetFetchResponseTopic, int]:
    offset_fetch_response_topic = new(OffsetFetchResponseTopic)
    offset_fetch_response_topic.name, pos = string(buf, pos)
    offset_fetch_response_topic.partitions, pos = array(
        buf, pos, _read_response_offset_fetch_response_partition_v5, 20
    )
    return offset_fetch_response_topic, pos


def _read_response_offset_fetch_response_topic_v6_to_v7(buf: bytes, pos: int) -> tuple[OffsetFetchResponseTopic, int]:
    offset_fetch_response_topic = new(OffsetFetchResponseTopic)
    offset_fetch_response_topic.name, pos = compact_string(buf, pos)
    offset_fetch_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_offset_fetch_response_partition_v6_to_v7, 20
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_response_topic, pos


def _read_response_offset_fetch_response_partitions_v8_to_v10(
    buf: bytes, pos: int
) -> tuple[OffsetFetchResponsePartitions, int]:
    offset_fetch_response_partitions = new(OffsetFetchResponsePartitions)
    (
        offset_fetch_response_partitions.partition_index,
        offset_fetch_response_partitions.committed_offset,
        offset_fetch_response_partitions.committed_leader_epoch,
    ) = _iqi.unpack_from(buf, pos)
    pos += 16
    offset_fetch_response_partitions.metadata, pos = nullable_compact_string(buf, pos)
    (offset_fetch_response_partitions.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_response_partitions, pos


def _read_response_offset_fetch_response_topics_v8_to_v9(
    buf: bytes, pos: int
) -> tuple[OffsetFetchResponseTopics, int]:
    offset_fetch_response_topics = new(OffsetFetchResponseTopics)
    offset_fetch_response_topics.topic_id = NO_UUID
    offset_fetch_response_topics.name, pos = compact_string(buf, pos)
    offset_fetch_response_topics.partitions, pos = compact_array(
        buf, pos, _read_response_offset_fetch_response_partitions_v8_to_v10, 20
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_response_topics, pos


def _read_response_offset_fetch_response_topics_v10(buf: bytes, pos: int) -> tuple[OffsetFetchResponseTopics, int]:
    offset_fetch_response_topics = new(OffsetFetchResponseTopics)
    offset_fetch_response_topics.name = ""
    (offset_fetch_response_topics.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    offset_fetch_response_topics.partitions, pos = compact_array(
        buf, pos, _read_response_offset_fetch_response_partitions_v8_to_v10, 20
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_response_topics, pos


def _read_response_offset_fetch_response_group_v8_to_v9(buf: bytes, pos: int) -> tuple[OffsetFetchResponseGroup, int]:
    offset_fetch_response_group = new(OffsetFetchResponseGroup)
    offset_fetch_response_group.group_id, pos = compact_string(buf, pos)
    offset_fetch_response_group.topics, pos = compact_array(
        buf, pos, _read_response_offset_fetch_response_topics_v8_to_v9, 3
    )
    (offset_fetch_response_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_response_group, pos


def _read_response_offset_fetch_response_group_v10(buf: bytes, pos: int) -> tuple[OffsetFetchResponseGroup, int]:
    offset_fetch_response_group = new(OffsetFetchResponseGroup)
    offset_fetch_response_group.group_id, pos = compact_string(buf, pos)
    offset_fetch_response_group.topics, pos = compact_array(
        buf, pos, _read_response_offset_fetch_response_topics_v10, 18
    )
    (offset_fetch_response_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_fetch_response_group, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.throttle_time_ms = 0
    message.error_code = 0
    message.groups = []
    message.topics, pos = array(buf, pos, _read_response_offset_fetch_response_topic_v1_to_v4, 6)
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.throttle_time_ms = 0
    message.groups = []
    message.topics, pos = array(buf, pos, _read_response_offset_fetch_response_topic_v1_to_v4, 6)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return message, pos


def _read_response_v3_to_v4(buf: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.groups = []
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_offset_fetch_response_topic_v1_to_v4, 6)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return message, pos


def _read_response_v5(buf: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.groups = []
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_offset_fetch_response_topic_v5, 6)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return message, pos


def _read_response_v6_to_v7(buf: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.groups = []
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_offset_fetch_response_topic_v6_to_v7, 3)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v8_to_v9(buf: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.topics = []
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_offset_fetch_response_group_v8_to_v9, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v10(buf: bytes, pos: int) -> tuple[OffsetFetchResponse, int]:
    message = new(OffsetFetchResponse)
    message.topics = []
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_offset_fetch_response_group_v10, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_offset_fetch_response_partition_v1_to_v4(
    out: bytearray, offset_fetch_response_partition: OffsetFetchResponsePartition, _inserts: Inserts
) -> None:
    out += _iq.pack(offset_fetch_response_partition.partition_index, offset_fetch_response_partition.committed_offset)
    put_nullable_string(out, offset_fetch_response_partition.metadata)
    out += _h.pack(offset_fetch_response_partition.error_code)


def _write_response_offset_fetch_response_partition_v5(
    out: bytearray, offset_fetch_response_partition: OffsetFetchResponsePartition, _inserts: Inserts
) -> None:
    out += _iqi.pack(
        offset_fetch_response_partition.partition_index,
        offset_fetch_response_partition.committed_offset,
        offset_fetch_response_partition.committed_leader_epoch,
    )
    put_nullable_string(out, offset_fetch_response_partition.metadata)
    out += _h.pack(offset_fetch_response_partition.error_code)


def _write_response_offset_fetch_response_partition_v6_to_v7(
    out: bytearray, offset_fetch_response_partition: OffsetFetchResponsePartition, _inserts: Inserts
) -> None:
    out += _iqi.pack(
        offset_fetch_response_partition.partition_index,
        offset_fetch_response_partition.committed_offset,
        offset_fetch_response_partition.committed_leader_epoch,
    )
    put_nullable_compact_string(out, offset_fetch_response_partition.metadata)
    out += _hx.pack(offset_fetch_response_partition.error_code)


def _write_response_offset_fetch_response_topic_v1_to_v4(
    out: bytearray, offset_fetch_response_topic: OffsetFetchResponseTopic, inserts: Inserts
) -> None:
    put_string(out, offset_fetch_response_topic.name)
    put_array(
        out, offset_fetch_response_topic.partitions, _write_response_offset_fetch_response_partition_v1_to_v4, inserts
    )


def _write_response_offset_fetch_response_topic_v5(
    out: bytearray, offset_fetch_response_topic: OffsetFetchResponseTopic, inserts: Inserts
) -> None:
    put_string(out, offset_fetch_response_topic.name)
    put_array(
        out, offset_fetch_response_topic.partitions, _write_response_offset_fetch_response_partition_v5, inserts
    )


def _write_response_offset_fetch_response_topic_v6_to_v7(
    out: bytearray, offset_fetch_response_topic: OffsetFetchResponseTopic, inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_response_topic.name)
    put_compact_array(
        out, offset_fetch_response_topic.partitions, _write_response_offset_fetch_response_partition_v6_to_v7, inserts
    )
    out.append(0)


def _write_response_offset_fetch_response_partitions_v8_to_v10(
    out: bytearray, offset_fetch_response_partitions: OffsetFetchResponsePartitions, _inserts: Inserts
) -> None:
    out += _iqi.pack(
        offset_fetch_response_partitions.partition_index,
        offset_fetch_response_partitions.committed_offset,
        offset_fetch_response_partitions.committed_leader_epoch,
    )
    put_nullable_compact_string(out, offset_fetch_response_partitions.metadata)
    out += _hx.pack(offset_fetch_response_partitions.error_code)


def _write_response_offset_fetch_response_topics_v8_to_v9(
    out: bytearray, offset_fetch_response_topics: OffsetFetchResponseTopics, inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_response_topics.name)
    put_compact_array(
        out,
        offset_fetch_response_topics.partitions,
        _write_response_offset_fetch_response_partitions_v8_to_v10,
        inserts,
    )
    out.append(0)


def _write_response_offset_fetch_response_topics_v10(
    out: bytearray, offset_fetch_response_topics: OffsetFetchResponseTopics, inserts: Inserts
) -> None:
    if len(offset_fetch_response_topics.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(offset_fetch_response_topics.topic_id)
    put_compact_array(
        out,
        offset_fetch_response_topics.partitions,
        _write_response_offset_fetch_response_partitions_v8_to_v10,
        inserts,
    )
    out.append(0)


def _write_response_offset_fetch_response_group_v8_to_v9(
    out: bytearray, offset_fetch_response_group: OffsetFetchResponseGroup, inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_response_group.group_id)
    put_compact_array(
        out, offset_fetch_response_group.topics, _write_response_offset_fetch_response_topics_v8_to_v9, inserts
    )
    out += _hx.pack(offset_fetch_response_group.error_code)


def _write_response_offset_fetch_response_group_v10(
    out: bytearray, offset_fetch_response_group: OffsetFetchResponseGroup, inserts: Inserts
) -> None:
    put_compact_string(out, offset_fetch_response_group.group_id)
    put_compact_array(
        out, offset_fetch_response_group.topics, _write_response_offset_fetch_response_topics_v10, inserts
    )
    out += _hx.pack(offset_fetch_response_group.error_code)


def _write_response_v1(out: bytearray, message: OffsetFetchResponse, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    put_array(out, message.topics, _write_response_offset_fetch_response_topic_v1_to_v4, inserts)


def _write_response_v2(out: bytearray, message: OffsetFetchResponse, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    put_array(out, message.topics, _write_response_offset_fetch_response_topic_v1_to_v4, inserts)
    out += _h.pack(message.error_code)


def _write_response_v3_to_v4(out: bytearray, message: OffsetFetchResponse, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_offset_fetch_response_topic_v1_to_v4, inserts)
    out += _h.pack(message.error_code)


def _write_response_v5(out: bytearray, message: OffsetFetchResponse, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_offset_fetch_response_topic_v5, inserts)
    out += _h.pack(message.error_code)


def _write_response_v6_to_v7(out: bytearray, message: OffsetFetchResponse, inserts: Inserts) -> None:
    if message.groups:
        raise absent("groups")
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_offset_fetch_response_topic_v6_to_v7, inserts)
    out += _hx.pack(message.error_code)


def _write_response_v8_to_v9(out: bytearray, message: OffsetFetchResponse, inserts: Inserts) -> None:
    if message.topics:
        raise absent("topics")
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_offset_fetch_response_group_v8_to_v9, inserts)
    out.append(0)


def _write_response_v10(out: bytearray, message: OffsetFetchResponse, inserts: Inserts) -> None:
    if message.topics:
        raise absent("topics")
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_offset_fetch_response_group_v10, inserts)
    out.append(0)


REQUEST: MessageCodec[OffsetFetchRequest] = MessageCodec(
    "OffsetFetchRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2_to_v5,
        _read_request_v2_to_v5,
        _read_request_v2_to_v5,
        _read_request_v2_to_v5,
        _read_request_v6,
        _read_request_v7,
        _read_request_v8,
        _read_request_v9,
        _read_request_v10,
    ),
    (
        _write_request_v1,
        _write_request_v2_to_v5,
        _write_request_v2_to_v5,
        _write_request_v2_to_v5,
        _write_request_v2_to_v5,
        _write_request_v6,
        _write_request_v7,
        _write_request_v8,
        _write_request_v9,
        _write_request_v10,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[OffsetFetchResponse] = MessageCodec(
    "OffsetFetchResponse",
    1,
    (
        _read_response_v1,
        _read_response_v2,
        _read_response_v3_to_v4,
        _read_response_v3_to_v4,
        _read_response_v5,
        _read_response_v6_to_v7,
        _read_response_v6_to_v7,
        _read_response_v8_to_v9,
        _read_response_v8_to_v9,
        _read_response_v10,
    ),
    (
        _write_response_v1,
        _write_response_v2,
        _write_response_v3_to_v4,
        _write_response_v3_to_v4,
        _write_response_v5,
        _write_response_v6_to_v7,
        _write_response_v6_to_v7,
        _write_response_v8_to_v9,
        _write_response_v8_to_v9,
        _write_response_v10,
    ),
    holds_views=False,
)
