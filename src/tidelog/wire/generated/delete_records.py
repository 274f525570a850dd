"""DeleteRecords: API key 21, v0 to v2."""
# Made by tools/wiregen from messages/delete_records.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import array, compact_array, compact_string, skip_tagged_fields, string
from tidelog.wire.writing import put_array, put_compact_array, put_compact_string, put_string

_i = struct.Struct(">i")
_iq = struct.Struct(">iq")
_ix = struct.Struct(">ix")
_iqh = struct.Struct(">iqh")
_iqx = struct.Struct(">iqx")
_iqhx = struct.Struct(">iqhx")


class DeleteRecordsPartition(Struct):
    __slots__ = (
        "partition_index",
        "offset",
    )

    def __init__(
        self,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DeleteRecordsRequest(Struct):
    __slots__ = (
        "topics",
        "timeout_ms",
    )

    def __init__(
        self,
        topics: list[DeleteRecordsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms


class DeleteRecordsPartitionResult(Struct):
    __slots__ = (
        "partition_index",
        "low_watermark",
        "error_code",
    )

    def __init__(
        self,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


class DeleteRecordsTopicResult(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DeleteRecordsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_delete_records_partition_v0_to_v1(buf: bytes, pos: int) -> tuple[DeleteRecordsPartition, int]:
    delete_records_partition = new(DeleteRecordsPartition)
    delete_records_partition.partition_index, delete_records_partition.offset = _iq.unpack_from(buf, pos)
    pos += 12
    return delete_records_partition, pos


def _read_request_delete_records_partition_v2(buf: bytes, pos: int) -> tuple[DeleteRecordsPartition, int]:
    delete_records_partition = new(DeleteRecordsPartition)
    delete_records_partition.partition_index, delete_records_partition.offset = _iq.unpack_from(buf, pos)
    pos += 12
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_records_partition, pos


def _read_request_delete_records_topic_v0_to_v1(buf: bytes, pos: int) -> tuple[DeleteRecordsTopic, int]:
    delete_records_topic = new(DeleteRecordsTopic)
    delete_records_topic.name, pos = string(buf, pos)
    delete_records_topic.partitions, pos = array(buf, pos, _read_request_delete_records_partition_v0_to_v1, 12, 1)
    return delete_records_topic, pos


def _read_request_delete_records_topic_v2(buf: bytes, pos: int) -> tuple[DeleteRecordsTopic, int]:
    delete_records_topic = new(DeleteRecordsTopic)
    delete_records_topic.name, pos = compact_string(buf, pos)
    delete_records_topic.partitions, pos = compact_array(buf, pos, _read_request_delete_records_partition_v2, 13, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_records_topic, pos


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[DeleteRecordsRequest, int]:
    message = new(DeleteRecordsRequest)
    message.topics, pos = array(buf, pos, _read_request_delete_records_topic_v0_to_v1, 6, 2)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[DeleteRecordsRequest, int]:
    message = new(DeleteRecordsRequest)
    message.topics, pos = compact_array(buf, pos, _read_request_delete_records_topic_v2, 3, 2)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_delete_records_partition_v0_to_v1(
    out: bytearray, delete_records_partition: DeleteRecordsPartition, _inserts: Inserts
) -> None:
    out += _iq.pack(delete_records_partition.partition_index, delete_records_partition.offset)


def _write_request_delete_records_partition_v2(
    out: bytearray, delete_records_partition: DeleteRecordsPartition, _inserts: Inserts
) -> None:
    out += _iqx.pack(delete_records_partition.partition_index, delete_records_partition.offset)


def _write_request_delete_records_topic_v0_to_v1(
    out: bytearray, delete_records_topic: DeleteRecordsTopic, inserts: Inserts
) -> None:
    put_string(out, delete_records_topic.name)
    put_array(out, delete_records_topic.partitions, _write_request_delete_records_partition_v0_to_v1, inserts)


def _write_request_delete_records_topic_v2(
    out: bytearray, delete_records_topic: DeleteRecordsTopic, inserts: Inserts
) -> None:
    put_compact_string(out, delete_records_topic.name)
    put_compact_array(out, delete_records_topic.partitions, _write_request_delete_records_partition_v2, inserts)
    out.append(0)


def _write_request_v0_to_v1(out: bytearray, message: DeleteRecordsRequest, inserts: Inserts) -> None:
    put_array(out, message.topics, _write_request_delete_records_topic_v0_to_v1, inserts)
    out += _i.pack(message.timeout_ms)


def _write_request_v2(out: bytearray, message: DeleteRecordsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.topics, _write_request_delete_records_topic_v2, inserts)
    out += _ix.pack(message.timeout_ms)


def _read_response_delete_records_partition_result_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[DeleteRecordsPartitionResult, int]:
    delete_records_partition_result = new(DeleteRecordsPartitionResult)
    (
        delete_records_partition_result.partition_index,
        delete_records_partition_result.low_watermark,
        delete_records_partition_result.error_code,
    ) = _iqh.unpack_from(buf, pos)
    pos += 14
    return delete_records_partition_result, pos


def _read_response_delete_records_partition_result_v2(
    buf: bytes, pos: int
) -> tuple[DeleteRecordsPartitionResult, int]:
    delete_records_partition_result = new(DeleteRecordsPartitionResult)
    (
        delete_records_partition_result.partition_index,
        delete_records_partition_result.low_watermark,
        delete_records_partition_result.error_code,
    ) = _iqh.unpack_from(buf, pos)
    pos += 14
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_records_partition_result, pos


def _read_response_delete_records_topic_result_v0_to_v1(buf: bytes, pos: int) -> tuple[DeleteRecordsTopicResult, int]:
    delete_records_topic_result = new(DeleteRecordsTopicResult)
    delete_records_topic_result.name, pos = string(buf, pos)
    delete_records_topic_result.partitions, pos = array(
        buf, pos, _read_response_delete_records_partition_result_v0_to_v1, 14
    )
    return delete_records_topic_result, pos


def _read_response_delete_records_topic_result_v2(buf: bytes, pos: int) -> tuple[DeleteRecordsTopicResult, int]:
    delete_records_topic_result = new(DeleteRecordsTopicResult)
    delete_records_topic_result.name, pos = compact_string(buf, pos)
    delete_records_topic_result.partitions, pos = compact_array(
        buf, pos, _read_response_delete_records_partition_result_v2, 15
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_records_topic_result, pos


def _read_response_v0_to_v1(buf: bytes, pos: int) -> tuple[DeleteRecordsResponse, int]:
    message = new(DeleteRecordsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_delete_records_topic_result_v0_to_v1, 6)
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[DeleteRecordsResponse, int]:
    message = new(DeleteRecordsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_delete_records_topic_result_v2, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_delete_records_partition_result_v0_to_v1(
    out: bytearray, delete_records_partition_result: DeleteRecordsPartitionResult, _inserts: Inserts
) -> None:
    out += _iqh.pack(
        delete_records_partition_result.partition_index,
        delete_records_partition_result.low_watermark,
        delete_records_partition_result.error_code,
    )


def _write_response_delete_records_partition_result_v2(
    out: bytearray, delete_records_partition_result: DeleteRecordsPartitionResult, _inserts: Inserts
) -> None:
    out += _iqhx.pack(
        delete_records_partition_result.partition_index,
        delete_records_partition_result.low_watermark,
        delete_records_partition_result.error_code,
    )


def _write_response_delete_records_topic_result_v0_to_v1(
    out: bytearray, delete_records_topic_result: DeleteRecordsTopicResult, inserts: Inserts
) -> None:
    put_string(out, delete_records_topic_result.name)
    put_array(
        out, delete_records_topic_result.partitions, _write_response_delete_records_partition_result_v0_to_v1, inserts
    )


def _write_response_delete_records_topic_result_v2(
    out: bytearray, delete_records_topic_result: DeleteRecordsTopicResult, inserts: Inserts
) -> None:
    put_compact_string(out, delete_records_topic_result.name)
    put_compact_array(
        out, delete_records_topic_result.partitions, _write_response_delete_records_partition_result_v2, inserts
    )
    out.append(0)


def _write_response_v0_to_v1(out: bytearray, message: DeleteRecordsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_delete_records_topic_result_v0_to_v1, inserts)


def _write_response_v2(out: bytearray, message: DeleteRecordsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_delete_records_topic_result_v2, inserts)
    out.append(0)


REQUEST: MessageCodec[DeleteRecordsRequest] = MessageCodec(
    "DeleteRecordsRequest",
    0,
    (
        _read_request_v0_to_v1,
        _read_request_v0_to_v1,
        _read_request_v2,
    ),
    (
        _write_request_v0_to_v1,
        _write_request_v0_to_v1,
        _write_request_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DeleteRecordsResponse] = MessageCodec(
    "DeleteRecordsResponse",
    0,
    (
        _read_response_v0_to_v1,
        _read_response_v0_to_v1,
        _read_response_v2,
    ),
    (
        _write_response_v0_to_v1,
        _write_response_v0_to_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
