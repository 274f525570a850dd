"""AlterReplicaLogDirs: API key 34, v1 to v2."""
# Made by tools/wiregen from messages/alter_replica_log_dirs.txt; do not edit.
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
    numbers,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    put_array,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_numbers,
    put_string,
)

_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_ihx = struct.Struct(">ihx")


class AlterReplicaLogDirTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterReplicaLogDir(Struct):
    __slots__ = (
        "path",
        "topics",
    )

    def __init__(
        self,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = EMPTY,
    ) -> None:
        self.path = path
        self.topics = [] if topics is EMPTY else topics


class AlterReplicaLogDirsRequest(Struct):
    __slots__ = ("dirs",)

    def __init__(
        self,
        dirs: list[AlterReplicaLogDir] = EMPTY,
    ) -> None:
        self.dirs = [] if dirs is EMPTY else dirs


class AlterReplicaLogDirPartitionResult(Struct):
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


class AlterReplicaLogDirTopicResult(Struct):
    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterReplicaLogDirsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results


def _read_request_alter_replica_log_dir_topic_v1(buf: bytes, pos: int) -> tuple[AlterReplicaLogDirTopic, int]:
    alter_replica_log_dir_topic = new(AlterReplicaLogDirTopic)
    alter_replica_log_dir_topic.name, pos = string(buf, pos)
    alter_replica_log_dir_topic.partitions, pos = numbers(buf, pos, "i")
    return alter_replica_log_dir_topic, pos


def _read_request_alter_replica_log_dir_topic_v2(buf: bytes, pos: int) -> tuple[AlterReplicaLogDirTopic, int]:
    alter_replica_log_dir_topic = new(AlterReplicaLogDirTopic)
    alter_replica_log_dir_topic.name, pos = compact_string(buf, pos)
    alter_replica_log_dir_topic.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_replica_log_dir_topic, pos


def _read_request_alter_replica_log_dir_v1(buf: bytes, pos: int) -> tuple[AlterReplicaLogDir, int]:
    alter_replica_log_dir = new(AlterReplicaLogDir)
    alter_replica_log_dir.path, pos = string(buf, pos)
    alter_replica_log_dir.topics, pos = array(buf, pos, _read_request_alter_replica_log_dir_topic_v1, 6, 2)
    return alter_replica_log_dir, pos


def _read_request_alter_replica_log_dir_v2(buf: bytes, pos: int) -> tuple[AlterReplicaLogDir, int]:
    alter_replica_log_dir = new(AlterReplicaLogDir)
    alter_replica_log_dir.path, pos = compact_string(buf, pos)
    alter_replica_log_dir.topics, pos = compact_array(buf, pos, _read_request_alter_replica_log_dir_topic_v2, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_replica_log_dir, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[AlterReplicaLogDirsRequest, int]:
    message = new(AlterReplicaLogDirsRequest)
    message.dirs, pos = array(buf, pos, _read_request_alter_replica_log_dir_v1, 6, 3)
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[AlterReplicaLogDirsRequest, int]:
    message = new(AlterReplicaLogDirsRequest)
    message.dirs, pos = compact_array(buf, pos, _read_request_alter_replica_log_dir_v2, 3, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_alter_replica_log_dir_topic_v1(
    out: bytearray, alter_replica_log_dir_topic: AlterReplicaLogDirTopic, _inserts: Inserts
) -> None:
    put_string(out, alter_replica_log_dir_topic.name)
    put_numbers(out, alter_replica_log_dir_topic.partitions, "i")


def _write_request_alter_replica_log_dir_topic_v2(
    out: bytearray, alter_replica_log_dir_topic: AlterReplicaLogDirTopic, _inserts: Inserts
) -> None:
    put_compact_string(out, alter_replica_log_dir_topic.name)
    put_compact_numbers(out, alter_replica_log_dir_topic.partitions, "i")
    out.append(0)


def _write_request_alter_replica_log_dir_v1(
    out: bytearray, alter_replica_log_dir: AlterReplicaLogDir, inserts: Inserts
) -> None:
    put_string(out, alter_replica_log_dir.path)
    put_array(out, alter_replica_log_dir.topics, _write_request_alter_replica_log_dir_topic_v1, inserts)


def _write_request_alter_replica_log_dir_v2(
    out: bytearray, alter_replica_log_dir: AlterReplicaLogDir, inserts: Inserts
) -> None:
    put_compact_string(out, alter_replica_log_dir.path)
    put_compact_array(out, alter_replica_log_dir.topics, _write_request_alter_replica_log_dir_topic_v2, inserts)
    out.append(0)


def _write_request_v1(out: bytearray, message: AlterReplicaLogDirsRequest, inserts: Inserts) -> None:
    put_array(out, message.dirs, _write_request_alter_replica_log_dir_v1, inserts)


def _write_request_v2(out: bytearray, message: AlterReplicaLogDirsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.dirs, _write_request_alter_replica_log_dir_v2, inserts)
    out.append(0)


def _read_response_alter_replica_log_dir_partition_result_v1(
    buf: bytes, pos: int
) -> tuple[AlterReplicaLogDirPartitionResult, int]:
    alter_replica_log_dir_partition_result = new(AlterReplicaLogDirPartitionResult)
    alter_replica_log_dir_partition_result.partition_index, alter_replica_log_dir_partition_result.error_code = (
        _ih.unpack_from(buf, pos)
    )
    pos += 6
    return alter_replica_log_dir_partition_result, pos


def _read_response_alter_replica_log_dir_partition_result_v2(
    buf: bytes, pos: int
) -> tuple[AlterReplicaLogDirPartitionResult, int]:
    alter_replica_log_dir_partition_result = new(AlterReplicaLogDirPartitionResult)
    alter_replica_log_dir_partition_result.partition_index, alter_replica_log_dir_partition_result.error_code = (
        _ih.unpack_from(buf, pos)
    )
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_replica_log_dir_partition_result, pos


def _read_response_alter_replica_log_dir_topic_result_v1(
    buf: bytes, pos: int
) -> tuple[AlterReplicaLogDirTopicResult, int]:
    alter_replica_log_dir_topic_result = new(AlterReplicaLogDirTopicResult)
    alter_replica_log_dir_topic_result.topic_name, pos = string(buf, pos)
    alter_replica_log_dir_topic_result.partitions, pos = array(
        buf, pos, _read_response_alter_replica_log_dir_partition_result_v1, 6
    )
    return alter_replica_log_dir_topic_result, pos


def _read_response_alter_replica_log_dir_topic_result_v2(
    buf: bytes, pos: int
) -> tuple[AlterReplicaLogDirTopicResult, int]:
    alter_replica_log_dir_topic_result = new(AlterReplicaLogDirTopicResult)
    alter_replica_log_dir_topic_result.topic_name, pos = compact_string(buf, pos)
    alter_replica_log_dir_topic_result.partitions, pos = compact_array(
        buf, pos, _read_response_alter_replica_log_dir_partition_result_v2, 7
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_replica_log_dir_topic_result, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[AlterReplicaLogDirsResponse, int]:
    message = new(AlterReplicaLogDirsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = array(buf, pos, _read_response_alter_replica_log_dir_topic_result_v1, 6)
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[AlterReplicaLogDirsResponse, int]:
    message = new(AlterReplicaLogDirsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = compact_array(buf, pos, _read_response_alter_replica_log_dir_topic_result_v2, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_alter_replica_log_dir_partition_result_v1(
    out: bytearray, alter_replica_log_dir_partition_result: AlterReplicaLogDirPartitionResult, _inserts: Inserts
) -> None:
    out += _ih.pack(
        alter_replica_log_dir_partition_result.partition_index, alter_replica_log_dir_partition_result.error_code
    )


def _write_response_alter_replica_log_dir_partition_result_v2(
    out: bytearray, alter_replica_log_dir_partition_result: AlterReplicaLogDirPartitionResult, _inserts: Inserts
) -> None:
    out += _ihx.pack(
        alter_replica_log_dir_partition_result.partition_index, alter_replica_log_dir_partition_result.error_code
    )


def _write_response_alter_replica_log_dir_topic_result_v1(
    out: bytearray, alter_replica_log_dir_topic_result: AlterReplicaLogDirTopicResult, inserts: Inserts
) -> None:
    put_string(out, alter_replica_log_dir_topic_result.topic_name)
    put_array(
        out,
        alter_replica_log_dir_topic_result.partitions,
        _write_response_alter_replica_log_dir_partition_result_v1,
        inserts,
    )


def _write_response_alter_replica_log_dir_topic_result_v2(
    out: bytearray, alter_replica_log_dir_topic_result: AlterReplicaLogDirTopicResult, inserts: Inserts
) -> None:
    put_compact_string(out, alter_replica_log_dir_topic_result.topic_name)
    put_compact_array(
        out,
        alter_replica_log_dir_topic_result.partitions,
        _write_response_alter_replica_log_dir_partition_result_v2,
        inserts,
    )
    out.append(0)


def _write_response_v1(out: bytearray, message: AlterReplicaLogDirsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.results, _write_response_alter_replica_log_dir_topic_result_v1, inserts)


def _write_response_v2(out: bytearray, message: AlterReplicaLogDirsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.results, _write_response_alter_replica_log_dir_topic_result_v2, inserts)
    out.append(0)


REQUEST: MessageCodec[AlterReplicaLogDirsRequest] = MessageCodec(
    "AlterReplicaLogDirsRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2,
    ),
    (
        _write_request_v1,
        _write_request_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[AlterReplicaLogDirsResponse] = MessageCodec(
    "AlterReplicaLogDirsResponse",
    1,
    (
        _read_response_v1,
        _read_response_v2,
    ),
    (
        _write_response_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
