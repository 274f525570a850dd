"""TableDescribe: API key 10001, v0 to v0."""
# Made by tools/wiregen from messages/table_describe.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import (
    put_compact_array,
    put_compact_string,
    put_compact_strings,
    put_nullable_compact_string,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_iqqqq = struct.Struct(">iqqqq")


class TableDescribeRequest(Struct):
    __slots__ = ("topics",)

    def __init__(
        self,
        topics: list[str] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics


class TableDescribePartition(Struct):
    __slots__ = (
        "partition_index",
        "applied_offset",
        "end_offset",
        "rows",
        "size_bytes",
        "error_message",
    )

    def __init__(
        self,
        partition_index: int = 0,
        applied_offset: int = 0,
        end_offset: int = 0,
        rows: int = 0,
        size_bytes: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.applied_offset = applied_offset
        self.end_offset = end_offset
        self.rows = rows
        self.size_bytes = size_bytes
        self.error_message = error_message


class TableDescribeTopic(Struct):
    __slots__ = (
        "name",
        "error_code",
        "error_message",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        partitions: list[TableDescribePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message
        self.partitions = [] if partitions is EMPTY else partitions


class TableDescribeResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TableDescribeTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_v0(buf: bytes, pos: int) -> tuple[TableDescribeRequest, int]:
    message = new(TableDescribeRequest)
    message.topics, pos = compact_array(buf, pos, compact_string, 1, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: TableDescribeRequest, _inserts: Inserts) -> None:
    put_compact_strings(out, message.topics)
    out.append(0)


def _read_response_table_describe_partition_v0(buf: bytes, pos: int) -> tuple[TableDescribePartition, int]:
    table_describe_partition = new(TableDescribePartition)
    (
        table_describe_partition.partition_index,
        table_describe_partition.applied_offset,
        table_describe_partition.end_offset,
        table_describe_partition.rows,
        table_describe_partition.size_bytes,
    ) = _iqqqq.unpack_from(buf, pos)
    pos += 36
    table_describe_partition.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return table_describe_partition, pos


def _read_response_table_describe_topic_v0(buf: bytes, pos: int) -> tuple[TableDescribeTopic, int]:
    table_describe_topic = new(TableDescribeTopic)
    table_describe_topic.name, pos = compact_string(buf, pos)
    (table_describe_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    table_describe_topic.error_message, pos = nullable_compact_string(buf, pos)
    table_describe_topic.partitions, pos = compact_array(buf, pos, _read_response_table_describe_partition_v0, 38)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return table_describe_topic, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[TableDescribeResponse, int]:
    message = new(TableDescribeResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_table_describe_topic_v0, 6)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_table_describe_partition_v0(
    out: bytearray, table_describe_partition: TableDescribePartition, _inserts: Inserts
) -> None:
    out += _iqqqq.pack(
        table_describe_partition.partition_index,
        table_describe_partition.applied_offset,
        table_describe_partition.end_offset,
        table_describe_partition.rows,
        table_describe_partition.size_bytes,
    )
    put_nullable_compact_string(out, table_describe_partition.error_message)
    out.append(0)


def _write_response_table_describe_topic_v0(
    out: bytearray, table_describe_topic: TableDescribeTopic, inserts: Inserts
) -> None:
    put_compact_string(out, table_describe_topic.name)
    out += _h.pack(table_describe_topic.error_code)
    put_nullable_compact_string(out, table_describe_topic.error_message)
    put_compact_array(out, table_describe_topic.partitions, _write_response_table_describe_partition_v0, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: TableDescribeResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_table_describe_topic_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[TableDescribeRequest] = MessageCodec(
    "TableDescribeRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[TableDescribeResponse] = MessageCodec(
    "TableDescribeResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
