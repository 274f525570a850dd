"""ListOffsets: API key 2, v1 to v11."""
# Made by tools/wiregen from messages/list_offsets.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import array, compact_array, compact_string, skip_tagged_fields, string
from tidelog.wire.writing import absent, put_array, put_compact_array, put_compact_string, put_string

_i = struct.Struct(">i")
_ib = struct.Struct(">ib")
_iq = struct.Struct(">iq")
_ix = struct.Struct(">ix")
_iiq = struct.Struct(">iiq")
_ihqq = struct.Struct(">ihqq")
_iiqx = struct.Struct(">iiqx")
_ihqqi = struct.Struct(">ihqqi")
_ihqqix = struct.Struct(">ihqqix")


class ListOffsetsPartition(Struct):
    __slots__ = (
        "partition_index",
        "current_leader_epoch",
        "timestamp",
    )

    def __init__(
        self,
        partition_index: int = 0,
        current_leader_epoch: int = -1,  # 4+
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListOffsetsRequest(Struct):
    __slots__ = (
        "replica_id",
        "isolation_level",
        "topics",
        "timeout_ms",
    )

    def __init__(
        self,
        replica_id: int = 0,
        isolation_level: int = 0,  # 2+
        topics: list[ListOffsetsTopic] = EMPTY,
        timeout_ms: int = 0,  # 10+
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms


class ListOffsetsPartitionResponse(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "timestamp",
        "offset",
        "leader_epoch",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,  # 4+
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


class ListOffsetsTopicResponse(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class ListOffsetsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 2+
        topics: list[ListOffsetsTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_list_offsets_partition_v1_to_v3(buf: bytes, pos: int) -> tuple[ListOffsetsPartition, int]:
    list_offsets_partition = new(ListOffsetsPartition)
    list_offsets_partition.current_leader_epoch = -1
    list_offsets_partition.partition_index, list_offsets_partition.timestamp = _iq.unpack_from(buf, pos)
    pos += 12
    return list_offsets_partition, pos


def _read_request_list_offsets_partition_v4_to_v5(buf: bytes, pos: int) -> tuple[ListOffsetsPartition, int]:
    list_offsets_partition = new(ListOffsetsPartition)
    (
        list_offsets_partition.partition_index,
        list_offsets_partition.current_leader_epoch,
        list_offsets_partition.timestamp,
    ) = _iiq.unpack_from(buf, pos)
    pos += 16
    return list_offsets_partition, pos


def _read_request_list_offsets_partition_v6_to_v11(buf: bytes, pos: int) -> tuple[ListOffsetsPartition, int]:
    list_offsets_partition = new(ListOffsetsPartition)
    (
        list_offsets_partition.partition_index,
        list_offsets_partition.current_leader_epoch,
        list_offsets_partition.timestamp,
    ) = _iiq.unpack_from(buf, pos)
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return list_offsets_partition, pos


def _read_request_list_offsets_topic_v1_to_v3(buf: bytes, pos: int) -> tuple[ListOffsetsTopic, int]:
    list_offsets_topic = new(ListOffsetsTopic)
    list_offsets_topic.name, pos = string(buf, pos)
    list_offsets_topic.partitions, pos = array(buf, pos, _read_request_list_offsets_partition_v1_to_v3, 12, 1)
    return list_offsets_topic, pos


def _read_request_list_offsets_topic_v4_to_v5(buf: bytes, pos: int) -> tuple[ListOffsetsTopic, int]:
    list_offsets_topic = new(ListOffsetsTopic)
    list_offsets_topic.name, pos = string(buf, pos)
    list_offsets_topic.partitions, pos = array(buf, pos, _read_request_list_offsets_partition_v4_to_v5, 16, 1)
    return list_offsets_topic, pos


def _read_request_list_offsets_topic_v6_to_v11(buf: bytes, pos: int) -> tuple[ListOffsetsTopic, int]:
    list_offsets_topic = new(ListOffsetsTopic)
    list_offsets_topic.name, pos = compact_string(buf, pos)
    list_offsets_topic.partitions, pos = compact_array(
        buf, pos, _read_request_list_offsets_partition_v6_to_v11, 17, 1
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return list_offsets_topic, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.isolation_level = 0
    message.timeout_ms = 0
    (message.replica_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_request_list_offsets_topic_v1_to_v3, 6, 2)
    return message, pos


def _read_request_v2_to_v3(buf: bytes, pos: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.timeout_ms = 0
    message.replica_id, message.isolation_level = _ib.unpack_from(buf, pos)
    pos += 5
    message.topics, pos = array(buf, pos, _read_request_list_offsets_topic_v1_to_v3, 6, 2)
    return message, pos


def _read_request_v4_to_v5(buf: bytes, pos: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.timeout_ms = 0
    message.replica_id, message.isolation_level = _ib.unpack_from(buf, pos)
    pos += 5
    message.topics, pos = array(buf, pos, _read_request_list_offsets_topic_v4_to_v5, 6, 2)
    return message, pos


def _read_request_v6_to_v9(buf: bytes, pos: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.timeout_ms = 0
    message.replica_id, message.isolation_level = _ib.unpack_from(buf, pos)
    pos += 5
    message.topics, pos = compact_array(buf, pos, _read_request_list_offsets_topic_v6_to_v11, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v10_to_v11(buf: bytes, pos: int) -> tuple[ListOffsetsRequest, int]:
    message = new(ListOffsetsRequest)
    message.replica_id, message.isolation_level = _ib.unpack_from(buf, pos)
    pos += 5
    message.topics, pos = compact_array(buf, pos, _read_request_list_offsets_topic_v6_to_v11, 3, 2)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_list_offsets_partition_v1_to_v3(
    out: bytearray, list_offsets_partition: ListOffsetsPartition, _inserts: Inserts
) -> None:
    out += _iq.pack(list_offsets_partition.partition_index, list_offsets_partition.timestamp)


def _write_request_list_offsets_partition_v4_to_v5(
    out: bytearray, list_offsets_partition: ListOffsetsPartition, _inserts: Inserts
) -> None:
    out += _iiq.pack(
        list_offsets_partition.partition_index,
        list_offsets_partition.current_leader_epoch,
        list_offsets_partition.timestamp,
    )


def _write_request_list_offsets_partition_v6_to_v11(
    out: bytearray, list_offsets_partition: ListOffsetsPartition, _inserts: Inserts
) -> None:
    out += _iiqx.pack(
        list_offsets_partition.partition_index,
        list_offsets_partition.current_leader_epoch,
        list_offsets_partition.timestamp,
    )


def _write_request_list_offsets_topic_v1_to_v3(
    out: bytearray, list_offsets_topic: ListOffsetsTopic, inserts: Inserts
) -> None:
    put_string(out, list_offsets_topic.name)
    put_array(out, list_offsets_topic.partitions, _write_request_list_offsets_partition_v1_to_v3, inserts)


def _write_request_list_offsets_topic_v4_to_v5(
    out: bytearray, list_offsets_topic: ListOffsetsTopic, inserts: Inserts
) -> None:
    put_string(out, list_offsets_topic.name)
    put_array(out, list_offsets_topic.partitions, _write_request_list_offsets_partition_v4_to_v5, inserts)


def _write_request_list_offsets_topic_v6_to_v11(
    out: bytearray, list_offsets_topic: ListOffsetsTopic, inserts: Inserts
) -> None:
    put_compact_string(out, list_offsets_topic.name)
    put_compact_array(out, list_offsets_topic.partitions, _write_request_list_offsets_partition_v6_to_v11, inserts)
    out.append(0)


def _write_request_v1(out: bytearray, message: ListOffsetsRequest, inserts: Inserts) -> None:
    if message.isolation_level:
        raise absent("isolation_level")
    out += _i.pack(message.replica_id)
    put_array(out, message.topics, _write_request_list_offsets_topic_v1_to_v3, inserts)


def _write_request_v2_to_v3(out: bytearray, message: ListOffsetsRequest, inserts: Inserts) -> None:
    out += _ib.pack(message.replica_id, message.isolation_level)
    put_array(out, message.topics, _write_request_list_offsets_topic_v1_to_v3, inserts)


def _write_request_v4_to_v5(out: bytearray, message: ListOffsetsRequest, inserts: Inserts) -> None:
    out += _ib.pack(message.replica_id, message.isolation_level)
    put_array(out, message.topics, _write_request_list_offsets_topic_v4_to_v5, inserts)


def _write_request_v6_to_v9(out: bytearray, message: ListOffsetsRequest, inserts: Inserts) -> None:
    out += _ib.pack(message.replica_id, message.isolation_level)
    put_compact_array(out, message.topics, _write_request_list_offsets_topic_v6_to_v11, inserts)
    out.append(0)


def _write_request_v10_to_v11(out: bytearray, message: ListOffsetsRequest, inserts: Inserts) -> None:
    out += _ib.pack(message.replica_id, message.isolation_level)
    put_compact_array(out, message.topics, _write_request_list_offsets_topic_v6_to_v11, inserts)
    out += _ix.pack(message.timeout_ms)


def _read_response_list_offsets_partition_response_v1_to_v3(
    buf: bytes, pos: int
) -> tuple[ListOffsetsPartitionResponse, int]:
    list_offsets_partition_response = new(ListOffsetsPartitionResponse)
    list_offsets_partition_response.leader_epoch = -1
    (
        list_offsets_partition_response.partition_index,
        list_offsets_partition_response.error_code,
        list_offsets_partition_response.timestamp,
        list_offsets_partition_response.offset,
    ) = _ihqq.unpack_from(buf, pos)
    pos += 22
    return list_offsets_partition_response, pos


def _read_response_list_offsets_partition_response_v4_to_v5(
    buf: bytes, pos: int
) -> tuple[ListOffsetsPartitionResponse, int]:
    list_offsets_partition_response = new(ListOffsetsPartitionResponse)
    (
        list_offsets_partition_response.partition_index,
        list_offsets_partition_response.error_code,
        list_offsets_partition_response.timestamp,
        list_offsets_partition_response.offset,
        list_offsets_partition_response.leader_epoch,
    ) = _ihqqi.unpack_from(buf, pos)
    pos += 26
    return list_offsets_partition_response, pos


def _read_response_list_offsets_partition_response_v6_to_v11(
    buf: bytes, pos: int
) -> tuple[ListOffsetsPartitionResponse, int]:
    list_offsets_partition_response = new(ListOffsetsPartitionResponse)
    (
        list_offsets_partition_response.partition_index,
        list_offsets_partition_response.error_code,
        list_offsets_partition_response.timestamp,
        list_offsets_partition_response.offset,
        list_offsets_partition_response.leader_epoch,
    ) = _ihqqi.unpack_from(buf, pos)
    pos += 26
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return list_offsets_partition_response, pos


def _read_response_list_offsets_topic_response_v1_to_v3(buf: bytes, pos: int) -> tuple[ListOffsetsTopicResponse, int]:
    list_offsets_topic_response = new(ListOffsetsTopicResponse)
    list_offsets_topic_response.name, pos = string(buf, pos)
    list_offsets_topic_response.partitions, pos = array(
        buf, pos, _read_response_list_offsets_partition_response_v1_to_v3, 22
    )
    return list_offsets_topic_response, pos


def _read_response_list_offsets_topic_response_v4_to_v5(buf: bytes, pos: int) -> tuple[ListOffsetsTopicResponse, int]:
    list_offsets_topic_response = new(ListOffsetsTopicResponse)
    list_offsets_topic_response.name, pos = string(buf, pos)
    list_offsets_topic_response.partitions, pos = array(
        buf, pos, _read_response_list_offsets_partition_response_v4_to_v5, 26
    )
    return list_offsets_topic_response, pos


def _read_response_list_offsets_topic_response_v6_to_v11(
    buf: bytes, pos: int
) -> tuple[ListOffsetsTopicResponse, int]:
    list_offsets_topic_response = new(ListOffsetsTopicResponse)
    list_offsets_topic_response.name, pos = compact_string(buf, pos)
    list_offsets_topic_response.partitions, pos = compact_array(
        buf, pos, _read_response_list_offsets_partition_response_v6_to_v11, 27
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return list_offsets_topic_response, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    message.throttle_time_ms = 0
    message.topics, pos = array(buf, pos, _read_response_list_offsets_topic_response_v1_to_v3, 6)
    return message, pos


def _read_response_v2_to_v3(buf: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_list_offsets_topic_response_v1_to_v3, 6)
    return message, pos


def _read_response_v4_to_v5(buf: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_list_offsets_topic_response_v4_to_v5, 6)
    return message, pos


def _read_response_v6_to_v11(buf: bytes, pos: int) -> tuple[ListOffsetsResponse, int]:
    message = new(ListOffsetsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_list_offsets_topic_response_v6_to_v11, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_list_offsets_partition_response_v1_to_v3(
    out: bytearray, list_offsets_partition_response: ListOffsetsPartitionResponse, _inserts: Inserts
) -> None:
    if list_offsets_partition_response.leader_epoch != -1:
        raise absent("leader_epoch")
    out += _ihqq.pack(
        list_offsets_partition_response.partition_index,
        list_offsets_partition_response.error_code,
        list_offsets_partition_response.timestamp,
        list_offsets_partition_response.offset,
    )


def _write_response_list_offsets_partition_response_v4_to_v5(
    out: bytearray, list_offsets_partition_response: ListOffsetsPartitionResponse, _inserts: Inserts
) -> None:
    out += _ihqqi.pack(
        list_offsets_partition_response.partition_index,
        list_offsets_partition_response.error_code,
        list_offsets_partition_response.timestamp,
        list_offsets_partition_response.offset,
        list_offsets_partition_response.leader_epoch,
    )


def _write_response_list_offsets_partition_response_v6_to_v11(
    out: bytearray, list_offsets_partition_response: ListOffsetsPartitionResponse, _inserts: Inserts
) -> None:
    out += _ihqqix.pack(
        list_offsets_partition_response.partition_index,
        list_offsets_partition_response.error_code,
        list_offsets_partition_response.timestamp,
        list_offsets_partition_response.offset,
        list_offsets_partition_response.leader_epoch,
    )


def _write_response_list_offsets_topic_response_v1_to_v3(
    out: bytearray, list_offsets_topic_response: ListOffsetsTopicResponse, inserts: Inserts
) -> None:
    put_string(out, list_offsets_topic_response.name)
    put_array(
        out, list_offsets_topic_response.partitions, _write_response_list_offsets_partition_response_v1_to_v3, inserts
    )


def _write_response_list_offsets_topic_response_v4_to_v5(
    out: bytearray, list_offsets_topic_response: ListOffsetsTopicResponse, inserts: Inserts
) -> None:
    put_string(out, list_offsets_topic_response.name)
    put_array(
        out, list_offsets_topic_response.partitions, _write_response_list_offsets_partition_response_v4_to_v5, inserts
    )


def _write_response_list_offsets_topic_response_v6_to_v11(
    out: bytearray, list_offsets_topic_response: ListOffsetsTopicResponse, inserts: Inserts
) -> None:
    put_compact_string(out, list_offsets_topic_response.name)
    put_compact_array(
        out,
        list_offsets_topic_response.partitions,
        _write_response_list_offsets_partition_response_v6_to_v11,
        inserts,
    )
    out.append(0)


def _write_response_v1(out: bytearray, message: ListOffsetsResponse, inserts: Inserts) -> None:
    put_array(out, message.topics, _write_response_list_offsets_topic_response_v1_to_v3, inserts)


def _write_response_v2_to_v3(out: bytearray, message: ListOffsetsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_list_offsets_topic_response_v1_to_v3, inserts)


def _write_response_v4_to_v5(out: bytearray, message: ListOffsetsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_list_offsets_topic_response_v4_to_v5, inserts)


def _write_response_v6_to_v11(out: bytearray, message: ListOffsetsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_list_offsets_topic_response_v6_to_v11, inserts)
    out.append(0)


REQUEST: MessageCodec[ListOffsetsRequest] = MessageCodec(
    "ListOffsetsRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2_to_v3,
        _read_request_v2_to_v3,
        _read_request_v4_to_v5,
        _read_request_v4_to_v5,
        _read_request_v6_to_v9,
        _read_request_v6_to_v9,
        _read_request_v6_to_v9,
        _read_request_v6_to_v9,
        _read_request_v10_to_v11,
        _read_request_v10_to_v11,
    ),
    (
        _write_request_v1,
        _write_request_v2_to_v3,
        _write_request_v2_to_v3,
        _write_request_v4_to_v5,
        _write_request_v4_to_v5,
        _write_request_v6_to_v9,
        _write_request_v6_to_v9,
        _write_request_v6_to_v9,
        _write_request_v6_to_v9,
        _write_request_v10_to_v11,
        _write_request_v10_to_v11,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[ListOffsetsResponse] = MessageCodec(
    "ListOffsetsResponse",
    1,
    (
        _read_response_v1,
        _read_response_v2_to_v3,
        _read_response_v2_to_v3,
        _read_response_v4_to_v5,
        _read_response_v4_to_v5,
        _read_response_v6_to_v11,
        _read_response_v6_to_v11,
        _read_response_v6_to_v11,
        _read_response_v6_to_v11,
        _read_response_v6_to_v11,
        _read_response_v6_to_v11,
    ),
    (
        _write_response_v1,
        _write_response_v2_to_v3,
        _write_response_v2_to_v3,
        _write_response_v4_to_v5,
        _write_response_v4_to_v5,
        _write_response_v6_to_v11,
        _write_response_v6_to_v11,
        _write_response_v6_to_v11,
        _write_response_v6_to_v11,
        _write_response_v6_to_v11,
        _write_response_v6_to_v11,
    ),
    holds_views=False,
)
