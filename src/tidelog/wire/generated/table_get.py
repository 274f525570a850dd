"""TableGet: API key 10000, v0 to v0."""
# Made by tools/wiregen from messages/table_get.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Buffer, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_data,
    compact_string,
    nullable_compact_data,
    nullable_compact_string,
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    put_compact_array,
    put_compact_data,
    put_compact_string,
    put_nullable_compact_data,
    put_nullable_compact_string,
)

_i = struct.Struct(">i")
_q = struct.Struct(">q")
_ih = struct.Struct(">ih")
_qi = struct.Struct(">qi")
_qq = struct.Struct(">qq")


class TableGetKey(Struct):
    __slots__ = ("key",)

    def __init__(
        self,
        key: Buffer = b"",
    ) -> None:
        self.key = key


class TableGetPartition(Struct):
    __slots__ = (
        "partition_index",
        "keys",
    )

    def __init__(
        self,
        partition_index: int = 0,
        keys: list[TableGetKey] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.keys = [] if keys is EMPTY else keys


class TableGetRequest(Struct):
    __slots__ = (
        "topic",
        "at_least",
        "timeout_ms",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",
        at_least: int = -1,
        timeout_ms: int = 0,
        partitions: list[TableGetPartition] = EMPTY,
    ) -> None:
        self.topic = topic
        self.at_least = at_least
        self.timeout_ms = timeout_ms
        self.partitions = [] if partitions is EMPTY else partitions


class TableGetRow(Struct):
    __slots__ = (
        "offset",
        "timestamp",
        "value",
    )

    def __init__(
        self,
        offset: int = 0,
        timestamp: int = 0,
        value: Buffer | None = b"",
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.value = value


class TableGetPartitionResult(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "applied_offset",
        "rows",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        applied_offset: int = 0,
        rows: list[TableGetRow] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.applied_offset = applied_offset
        self.rows = [] if rows is EMPTY else rows


class TableGetResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "partitions",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        partitions: list[TableGetPartitionResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.partitions = [] if partitions is EMPTY else partitions


def _read_request_table_get_key_v0(buf: memoryview, pos: int) -> tuple[TableGetKey, int]:
    table_get_key = new(TableGetKey)
    table_get_key.key, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return table_get_key, pos


def _read_request_table_get_partition_v0(buf: memoryview, pos: int) -> tuple[TableGetPartition, int]:
    table_get_partition = new(TableGetPartition)
    (table_get_partition.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    table_get_partition.keys, pos = compact_array(buf, pos, _read_request_table_get_key_v0, 2, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return table_get_partition, pos


def _read_request_v0(buf: memoryview, pos: int) -> tuple[TableGetRequest, int]:
    message = new(TableGetRequest)
    message.topic, pos = compact_string(buf, pos)
    message.at_least, message.timeout_ms = _qi.unpack_from(buf, pos)
    pos += 12
    message.partitions, pos = compact_array(buf, pos, _read_request_table_get_partition_v0, 6, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_table_get_key_v0(out: bytearray, table_get_key: TableGetKey, _inserts: Inserts) -> None:
    put_compact_data(out, table_get_key.key)
    out.append(0)


def _write_request_table_get_partition_v0(
    out: bytearray, table_get_partition: TableGetPartition, inserts: Inserts
) -> None:
    out += _i.pack(table_get_partition.partition_index)
    put_compact_array(out, table_get_partition.keys, _write_request_table_get_key_v0, inserts)
    out.append(0)


def _write_request_v0(out: bytearray, message: TableGetRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.topic)
    out += _qi.pack(message.at_least, message.timeout_ms)
    put_compact_array(out, message.partitions, _write_request_table_get_partition_v0, inserts)
    out.append(0)


def _read_response_table_get_row_v0(buf: memoryview, pos: int) -> tuple[TableGetRow, int]:
    table_get_row = new(TableGetRow)
    table_get_row.offset, table_get_row.timestamp = _qq.unpack_from(buf, pos)
    pos += 16
    table_get_row.value, pos = nullable_compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return table_get_row, pos


def _read_response_table_get_partition_result_v0(buf: memoryview, pos: int) -> tuple[TableGetPartitionResult, int]:
    table_get_partition_result = new(TableGetPartitionResult)
    table_get_partition_result.partition_index, table_get_partition_result.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    table_get_partition_result.error_message, pos = nullable_compact_string(buf, pos)
    (table_get_partition_result.applied_offset,) = _q.unpack_from(buf, pos)
    pos += 8
    table_get_partition_result.rows, pos = compact_array(buf, pos, _read_response_table_get_row_v0, 18)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return table_get_partition_result, pos


def _read_response_v0(buf: memoryview, pos: int) -> tuple[TableGetResponse, int]:
    message = new(TableGetResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.partitions, pos = compact_array(buf, pos, _read_response_table_get_partition_result_v0, 17)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_table_get_row_v0(out: bytearray, table_get_row: TableGetRow, _inserts: Inserts) -> None:
    out += _qq.pack(table_get_row.offset, table_get_row.timestamp)
    put_nullable_compact_data(out, table_get_row.value)
    out.append(0)


def _write_response_table_get_partition_result_v0(
    out: bytearray, table_get_partition_result: TableGetPartitionResult, inserts: Inserts
) -> None:
    out += _ih.pack(table_get_partition_result.partition_index, table_get_partition_result.error_code)
    put_nullable_compact_string(out, table_get_partition_result.error_message)
    out += _q.pack(table_get_partition_result.applied_offset)
    put_compact_array(out, table_get_partition_result.rows, _write_response_table_get_row_v0, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: TableGetResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.partitions, _write_response_table_get_partition_result_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[TableGetRequest] = MessageCodec(
    "TableGetRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=True,
)

RESPONSE: MessageCodec[TableGetResponse] = MessageCodec(
    "TableGetResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=True,
)
