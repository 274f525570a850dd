"""OffsetForLeaderEpoch: API key 23, v2 to v4."""
# Made by tools/wiregen from messages/offset_for_leader_epoch.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import array, compact_array, compact_string, skip_tagged_fields, string
from tidelog.wire.writing import put_array, put_compact_array, put_compact_string, put_string

_i = struct.Struct(">i")
_iii = struct.Struct(">iii")
_hiiq = struct.Struct(">hiiq")
_iiix = struct.Struct(">iiix")
_hiiqx = struct.Struct(">hiiqx")


class OffsetForLeaderPartition(Struct):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "leader_epoch",
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Struct):
    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetForLeaderEpochRequest(Struct):
    __slots__ = (
        "replica_id",
        "topics",
    )

    def __init__(
        self,
        replica_id: int = -2,  # 3+
        topics: list[OffsetForLeaderTopic] = EMPTY,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is EMPTY else topics


class EpochEndOffset(Struct):
    __slots__ = (
        "error_code",
        "partition",
        "leader_epoch",
        "end_offset",
    )

    def __init__(
        self,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(Struct):
    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[EpochEndOffset] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class OffsetForLeaderEpochResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_offset_for_leader_partition_v2_to_v3(buf: bytes, pos: int) -> tuple[OffsetForLeaderPartition, int]:
    offset_for_leader_partition = new(OffsetForLeaderPartition)
    (
        offset_for_leader_partition.partition,
        offset_for_leader_partition.current_leader_epoch,
        offset_for_leader_partition.leader_epoch,
    ) = _iii.unpack_from(buf, pos)
    pos += 12
    return offset_for_leader_partition, pos


def _read_request_offset_for_leader_partition_v4(buf: bytes, pos: int) -> tuple[OffsetForLeaderPartition, int]:
    offset_for_leader_partition = new(OffsetForLeaderPartition)
    (
        offset_for_leader_partition.partition,
        offset_for_leader_partition.current_leader_epoch,
        offset_for_leader_partition.leader_epoch,
    ) = _iii.unpack_from(buf, pos)
    pos += 12
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_for_leader_partition, pos


def _read_request_offset_for_leader_topic_v2_to_v3(buf: bytes, pos: int) -> tuple[OffsetForLeaderTopic, int]:
    offset_for_leader_topic = new(OffsetForLeaderTopic)
    offset_for_leader_topic.topic, pos = string(buf, pos)
    offset_for_leader_topic.partitions, pos = array(
        buf, pos, _read_request_offset_for_leader_partition_v2_to_v3, 12, 1
    )
    return offset_for_leader_topic, pos


def _read_request_offset_for_leader_topic_v4(buf: bytes, pos: int) -> tuple[OffsetForLeaderTopic, int]:
    offset_for_leader_topic = new(OffsetForLeaderTopic)
    offset_for_leader_topic.topic, pos = compact_string(buf, pos)
    offset_for_leader_topic.partitions, pos = compact_array(
        buf, pos, _read_request_offset_for_leader_partition_v4, 13, 1
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_for_leader_topic, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    message = new(OffsetForLeaderEpochRequest)
    message.replica_id = -2
    message.topics, pos = array(buf, pos, _read_request_offset_for_leader_topic_v2_to_v3, 6, 2)
    return message, pos


def _read_request_v3(buf: bytes, pos: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    message = new(OffsetForLeaderEpochRequest)
    (message.replica_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_request_offset_for_leader_topic_v2_to_v3, 6, 2)
    return message, pos


def _read_request_v4(buf: bytes, pos: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    message = new(OffsetForLeaderEpochRequest)
    (message.replica_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_request_offset_for_leader_topic_v4, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_offset_for_leader_partition_v2_to_v3(
    out: bytearray, offset_for_leader_partition: OffsetForLeaderPartition, _inserts: Inserts
) -> None:
    out += _iii.pack(
        offset_for_leader_partition.partition,
        offset_for_leader_partition.current_leader_epoch,
        offset_for_leader_partition.leader_epoch,
    )


def _write_request_offset_for_leader_partition_v4(
    out: bytearray, offset_for_leader_partition: OffsetForLeaderPartition, _inserts: Inserts
) -> None:
    out += _iiix.pack(
        offset_for_leader_partition.partition,
        offset_for_leader_partition.current_leader_epoch,
        offset_for_leader_partition.leader_epoch,
    )


def _write_request_offset_for_leader_topic_v2_to_v3(
    out: bytearray, offset_for_leader_topic: OffsetForLeaderTopic, inserts: Inserts
) -> None:
    put_string(out, offset_for_leader_topic.topic)
    put_array(out, offset_for_leader_topic.partitions, _write_request_offset_for_leader_partition_v2_to_v3, inserts)


def _write_request_offset_for_leader_topic_v4(
    out: bytearray, offset_for_leader_topic: OffsetForLeaderTopic, inserts: Inserts
) -> None:
    put_compact_string(out, offset_for_leader_topic.topic)
    put_compact_array(out, offset_for_leader_topic.partitions, _write_request_offset_for_leader_partition_v4, inserts)
    out.append(0)


def _write_request_v2(out: bytearray, message: OffsetForLeaderEpochRequest, inserts: Inserts) -> None:
    put_array(out, message.topics, _write_request_offset_for_leader_topic_v2_to_v3, inserts)


def _write_request_v3(out: bytearray, message: OffsetForLeaderEpochRequest, inserts: Inserts) -> None:
    out += _i.pack(message.replica_id)
    put_array(out, message.topics, _write_request_offset_for_leader_topic_v2_to_v3, inserts)


def _write_request_v4(out: bytearray, message: OffsetForLeaderEpochRequest, inserts: Inserts) -> None:
    out += _i.pack(message.replica_id)
    put_compact_array(out, message.topics, _write_request_offset_for_leader_topic_v4, inserts)
    out.append(0)


def _read_response_epoch_end_offset_v2_to_v3(buf: bytes, pos: int) -> tuple[EpochEndOffset, int]:
    epoch_end_offset = new(EpochEndOffset)
    (
        epoch_end_offset.error_code,
        epoch_end_offset.partition,
        epoch_end_offset.leader_epoch,
        epoch_end_offset.end_offset,
    ) = _hiiq.unpack_from(buf, pos)
    pos += 18
    return epoch_end_offset, pos


def _read_response_epoch_end_offset_v4(buf: bytes, pos: int) -> tuple[EpochEndOffset, int]:
    epoch_end_offset = new(EpochEndOffset)
    (
        epoch_end_offset.error_code,
        epoch_end_offset.partition,
        epoch_end_offset.leader_epoch,
        epoch_end_offset.end_offset,
    ) = _hiiq.unpack_from(buf, pos)
    pos += 18
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return epoch_end_offset, pos


def _read_response_offset_for_leader_topic_result_v2_to_v3(
    buf: bytes, pos: int
) -> tuple[OffsetForLeaderTopicResult, int]:
    offset_for_leader_topic_result = new(OffsetForLeaderTopicResult)
    offset_for_leader_topic_result.topic, pos = string(buf, pos)
    offset_for_leader_topic_result.partitions, pos = array(buf, pos, _read_response_epoch_end_offset_v2_to_v3, 18)
    return offset_for_leader_topic_result, pos


def _read_response_offset_for_leader_topic_result_v4(buf: bytes, pos: int) -> tuple[OffsetForLeaderTopicResult, int]:
    offset_for_leader_topic_result = new(OffsetForLeaderTopicResult)
    offset_for_leader_topic_result.topic, pos = compact_string(buf, pos)
    offset_for_leader_topic_result.partitions, pos = compact_array(buf, pos, _read_response_epoch_end_offset_v4, 19)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return offset_for_leader_topic_result, pos


def _read_response_v2_to_v3(buf: bytes, pos: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    message = new(OffsetForLeaderEpochResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_offset_for_leader_topic_result_v2_to_v3, 6)
    return message, pos


def _read_response_v4(buf: bytes, pos: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    message = new(OffsetForLeaderEpochResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_offset_for_leader_topic_result_v4, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_epoch_end_offset_v2_to_v3(
    out: bytearray, epoch_end_offset: EpochEndOffset, _inserts: Inserts
) -> None:
    out += _hiiq.pack(
        epoch_end_offset.error_code,
        epoch_end_offset.partition,
        epoch_end_offset.leader_epoch,
        epoch_end_offset.end_offset,
    )


def _write_response_epoch_end_offset_v4(out: bytearray, epoch_end_offset: EpochEndOffset, _inserts: Inserts) -> None:
    out += _hiiqx.pack(
        epoch_end_offset.error_code,
        epoch_end_offset.partition,
        epoch_end_offset.leader_epoch,
        epoch_end_offset.end_offset,
    )


def _write_response_offset_for_leader_topic_result_v2_to_v3(
    out: bytearray, offset_for_leader_topic_result: OffsetForLeaderTopicResult, inserts: Inserts
) -> None:
    put_string(out, offset_for_leader_topic_result.topic)
    put_array(out, offset_for_leader_topic_result.partitions, _write_response_epoch_end_offset_v2_to_v3, inserts)


def _write_response_offset_for_leader_topic_result_v4(
    out: bytearray, offset_for_leader_topic_result: OffsetForLeaderTopicResult, inserts: Inserts
) -> None:
    put_compact_string(out, offset_for_leader_topic_result.topic)
    put_compact_array(out, offset_for_leader_topic_result.partitions, _write_response_epoch_end_offset_v4, inserts)
    out.append(0)


def _write_response_v2_to_v3(out: bytearray, message: OffsetForLeaderEpochResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_offset_for_leader_topic_result_v2_to_v3, inserts)


def _write_response_v4(out: bytearray, message: OffsetForLeaderEpochResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_offset_for_leader_topic_result_v4, inserts)
    out.append(0)


REQUEST: MessageCodec[OffsetForLeaderEpochRequest] = MessageCodec(
    "OffsetForLeaderEpochRequest",
    2,
    (
        _read_request_v2,
        _read_request_v3,
        _read_request_v4,
    ),
    (
        _write_request_v2,
        _write_request_v3,
        _write_request_v4,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[OffsetForLeaderEpochResponse] = MessageCodec(
    "OffsetForLeaderEpochResponse",
    2,
    (
        _read_response_v2_to_v3,
        _read_response_v2_to_v3,
        _read_response_v4,
    ),
    (
        _write_response_v2_to_v3,
        _write_response_v2_to_v3,
        _write_response_v4,
    ),
    holds_views=False,
)
