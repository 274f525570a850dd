"""DescribeLogDirs: API key 35, v1 to v4."""
# Made by tools/wiregen from messages/describe_log_dirs.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_numbers,
    compact_string,
    nullable_array,
    nullable_compact_array,
    numbers,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    put_array,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_array,
    put_nullable_compact_array,
    put_numbers,
    put_string,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_qq = struct.Struct(">qq")
_qqx = struct.Struct(">qqx")
_iqqt = struct.Struct(">iqq?")
_iqqtx = struct.Struct(">iqq?x")


class DescribableLogDirTopic(Struct):
    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeLogDirsRequest(Struct):
    __slots__ = ("topics",)

    def __init__(
        self,
        topics: list[DescribableLogDirTopic] | None = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics


class DescribeLogDirsPartition(Struct):
    __slots__ = (
        "partition_index",
        "partition_size",
        "offset_lag",
        "is_future_key",
    )

    def __init__(
        self,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeLogDirsResult(Struct):
    __slots__ = (
        "error_code",
        "log_dir",
        "topics",
        "total_bytes",
        "usable_bytes",
    )

    def __init__(
        self,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = EMPTY,
        total_bytes: int = -1,  # 4+
        usable_bytes: int = -1,  # 4+
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is EMPTY else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes


class DescribeLogDirsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # 3+
        results: list[DescribeLogDirsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is EMPTY else results


def _read_request_describable_log_dir_topic_v1(buf: bytes, pos: int) -> tuple[DescribableLogDirTopic, int]:
    describable_log_dir_topic = new(DescribableLogDirTopic)
    describable_log_dir_topic.topic, pos = string(buf, pos)
    describable_log_dir_topic.partitions, pos = numbers(buf, pos, "i")
    return describable_log_dir_topic, pos


def _read_request_describable_log_dir_topic_v2_to_v4(buf: bytes, pos: int) -> tuple[DescribableLogDirTopic, int]:
    describable_log_dir_topic = new(DescribableLogDirTopic)
    describable_log_dir_topic.topic, pos = compact_string(buf, pos)
    describable_log_dir_topic.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describable_log_dir_topic, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[DescribeLogDirsRequest, int]:
    message = new(DescribeLogDirsRequest)
    message.topics, pos = nullable_array(buf, pos, _read_request_describable_log_dir_topic_v1, 6, 2)
    return message, pos


def _read_request_v2_to_v4(buf: bytes, pos: int) -> tuple[DescribeLogDirsRequest, int]:
    message = new(DescribeLogDirsRequest)
    message.topics, pos = nullable_compact_array(buf, pos, _read_request_describable_log_dir_topic_v2_to_v4, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_describable_log_dir_topic_v1(
    out: bytearray, describable_log_dir_topic: DescribableLogDirTopic, _inserts: Inserts
) -> None:
    put_string(out, describable_log_dir_topic.topic)
    put_numbers(out, describable_log_dir_topic.partitions, "i")


def _write_request_describable_log_dir_topic_v2_to_v4(
    out: bytearray, describable_log_dir_topic: DescribableLogDirTopic, _inserts: Inserts
) -> None:
    put_compact_string(out, describable_log_dir_topic.topic)
    put_compact_numbers(out, describable_log_dir_topic.partitions, "i")
    out.append(0)


def _write_request_v1(out: bytearray, message: DescribeLogDirsRequest, inserts: Inserts) -> None:
    put_nullable_array(out, message.topics, _write_request_describable_log_dir_topic_v1, inserts)


def _write_request_v2_to_v4(out: bytearray, message: DescribeLogDirsRequest, inserts: Inserts) -> None:
    put_nullable_compact_array(out, message.topics, _write_request_describable_log_dir_topic_v2_to_v4, inserts)
    out.append(0)


def _read_response_describe_log_dirs_partition_v1(buf: bytes, pos: int) -> tuple[DescribeLogDirsPartition, int]:
    describe_log_dirs_partition = new(DescribeLogDirsPartition)
    (
        describe_log_dirs_partition.partition_index,
        describe_log_dirs_partition.partition_size,
        describe_log_dirs_partition.offset_lag,
        describe_log_dirs_partition.is_future_key,
    ) = _iqqt.unpack_from(buf, pos)
    pos += 21
    return describe_log_dirs_partition, pos


def _read_response_describe_log_dirs_partition_v2_to_v4(buf: bytes, pos: int) -> tuple[DescribeLogDirsPartition, int]:
    describe_log_dirs_partition = new(DescribeLogDirsPartition)
    (
        describe_log_dirs_partition.partition_index,
        describe_log_dirs_partition.partition_size,
        describe_log_dirs_partition.offset_lag,
        describe_log_dirs_partition.is_future_key,
    ) = _iqqt.unpack_from(buf, pos)
    pos += 21
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_log_dirs_partition, pos


def _read_response_describe_log_dirs_topic_v1(buf: bytes, pos: int) -> tuple[DescribeLogDirsTopic, int]:
    describe_log_dirs_topic = new(DescribeLogDirsTopic)
    describe_log_dirs_topic.name, pos = string(buf, pos)
    describe_log_dirs_topic.partitions, pos = array(buf, pos, _read_response_describe_log_dirs_partition_v1, 21)
    return describe_log_dirs_topic, pos


def _read_response_describe_log_dirs_topic_v2_to_v4(buf: bytes, pos: int) -> tuple[DescribeLogDirsTopic, int]:
    describe_log_dirs_topic = new(DescribeLogDirsTopic)
    describe_log_dirs_topic.name, pos = compact_string(buf, pos)
    describe_log_dirs_topic.partitions, pos = compact_array(
        buf, pos, _read_response_describe_log_dirs_partition_v2_to_v4, 22
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_log_dirs_topic, pos


def _read_response_describe_log_dirs_result_v1(buf: bytes, pos: int) -> tuple[DescribeLogDirsResult, int]:
    describe_log_dirs_result = new(DescribeLogDirsResult)
    describe_log_dirs_result.total_bytes = -1
    describe_log_dirs_result.usable_bytes = -1
    (describe_log_dirs_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_log_dirs_result.log_dir, pos = string(buf, pos)
    describe_log_dirs_result.topics, pos = array(buf, pos, _read_response_describe_log_dirs_topic_v1, 6)
    return describe_log_dirs_result, pos


def _read_response_describe_log_dirs_result_v2_to_v3(buf: bytes, pos: int) -> tuple[DescribeLogDirsResult, int]:
    describe_log_dirs_result = new(DescribeLogDirsResult)
    describe_log_dirs_result.total_bytes = -1
    describe_log_dirs_result.usable_bytes = -1
    (describe_log_dirs_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_log_dirs_result.log_dir, pos = compact_string(buf, pos)
    describe_log_dirs_result.topics, pos = compact_array(buf, pos, _read_response_describe_log_dirs_topic_v2_to_v4, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_log_dirs_result, pos


def _read_response_describe_log_dirs_result_v4(buf: bytes, pos: int) -> tuple[DescribeLogDirsResult, int]:
    describe_log_dirs_result = new(DescribeLogDirsResult)
    (describe_log_dirs_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_log_dirs_result.log_dir, pos = compact_string(buf, pos)
    describe_log_dirs_result.topics, pos = compact_array(buf, pos, _read_response_describe_log_dirs_topic_v2_to_v4, 3)
    describe_log_dirs_result.total_bytes, describe_log_dirs_result.usable_bytes = _qq.unpack_from(buf, pos)
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_log_dirs_result, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = array(buf, pos, _read_response_describe_log_dirs_result_v1, 8)
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = compact_array(buf, pos, _read_response_describe_log_dirs_result_v2_to_v3, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v3(buf: bytes, pos: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.results, pos = compact_array(buf, pos, _read_response_describe_log_dirs_result_v2_to_v3, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v4(buf: bytes, pos: int) -> tuple[DescribeLogDirsResponse, int]:
    message = new(DescribeLogDirsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.results, pos = compact_array(buf, pos, _read_response_describe_log_dirs_result_v4, 21)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_describe_log_dirs_partition_v1(
    out: bytearray, describe_log_dirs_partition: DescribeLogDirsPartition, _inserts: Inserts
) -> None:
    out += _iqqt.pack(
        describe_log_dirs_partition.partition_index,
        describe_log_dirs_partition.partition_size,
        describe_log_dirs_partition.offset_lag,
        describe_log_dirs_partition.is_future_key,
    )


def _write_response_describe_log_dirs_partition_v2_to_v4(
    out: bytearray, describe_log_dirs_partition: DescribeLogDirsPartition, _inserts: Inserts
) -> None:
    out += _iqqtx.pack(
        describe_log_dirs_partition.partition_index,
        describe_log_dirs_partition.partition_size,
        describe_log_dirs_partition.offset_lag,
        describe_log_dirs_partition.is_future_key,
    )


def _write_response_describe_log_dirs_topic_v1(
    out: bytearray, describe_log_dirs_topic: DescribeLogDirsTopic, inserts: Inserts
) -> None:
    put_string(out, describe_log_dirs_topic.name)
    put_array(out, describe_log_dirs_topic.partitions, _write_response_describe_log_dirs_partition_v1, inserts)


def _write_response_describe_log_dirs_topic_v2_to_v4(
    out: bytearray, describe_log_dirs_topic: DescribeLogDirsTopic, inserts: Inserts
) -> None:
    put_compact_string(out, describe_log_dirs_topic.name)
    put_compact_array(
        out, describe_log_dirs_topic.partitions, _write_response_describe_log_dirs_partition_v2_to_v4, inserts
    )
    out.append(0)


def _write_response_describe_log_dirs_result_v1(
    out: bytearray, describe_log_dirs_result: DescribeLogDirsResult, inserts: Inserts
) -> None:
    out += _h.pack(describe_log_dirs_result.error_code)
    put_string(out, describe_log_dirs_result.log_dir)
    put_array(out, describe_log_dirs_result.topics, _write_response_describe_log_dirs_topic_v1, inserts)


def _write_response_describe_log_dirs_result_v2_to_v3(
    out: bytearray, describe_log_dirs_result: DescribeLogDirsResult, inserts: Inserts
) -> None:
    out += _h.pack(describe_log_dirs_result.error_code)
    put_compact_string(out, describe_log_dirs_result.log_dir)
    put_compact_array(out, describe_log_dirs_result.topics, _write_response_describe_log_dirs_topic_v2_to_v4, inserts)
    out.append(0)


def _write_response_describe_log_dirs_result_v4(
    out: bytearray, describe_log_dirs_result: DescribeLogDirsResult, inserts: Inserts
) -> None:
    out += _h.pack(describe_log_dirs_result.error_code)
    put_compact_string(out, describe_log_dirs_result.log_dir)
    put_compact_array(out, describe_log_dirs_result.topics, _write_response_describe_log_dirs_topic_v2_to_v4, inserts)
    out += _qqx.pack(describe_log_dirs_result.total_bytes, describe_log_dirs_result.usable_bytes)


def _write_response_v1(out: bytearray, message: DescribeLogDirsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.results, _write_response_describe_log_dirs_result_v1, inserts)


def _write_response_v2(out: bytearray, message: DescribeLogDirsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.results, _write_response_describe_log_dirs_result_v2_to_v3, inserts)
    out.append(0)


def _write_response_v3(out: bytearray, message: DescribeLogDirsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.results, _write_response_describe_log_dirs_result_v2_to_v3, inserts)
    out.append(0)


def _write_response_v4(out: bytearray, message: DescribeLogDirsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.results, _write_response_describe_log_dirs_result_v4, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeLogDirsRequest] = MessageCodec(
    "DescribeLogDirsRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2_to_v4,
        _read_request_v2_to_v4,
        _read_request_v2_to_v4,
    ),
    (
        _write_request_v1,
        _write_request_v2_to_v4,
        _write_request_v2_to_v4,
        _write_request_v2_to_v4,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeLogDirsResponse] = MessageCodec(
    "DescribeLogDirsResponse",
    1,
    (
        _read_response_v1,
        _read_response_v2,
        _read_response_v3,
        _read_response_v4,
    ),
    (
        _write_response_v1,
        _write_response_v2,
        _write_response_v3,
        _write_response_v4,
    ),
    holds_views=False,
)
