"""DescribeMemory: API key 10004, v0 to v0."""
# Made by tools/wiregen from messages/describe_memory.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_string

_qq = struct.Struct(">qq")
_iqq = struct.Struct(">iqq")
_qqx = struct.Struct(">qqx")


class DescribeMemoryRequest(Struct):
    __slots__ = ()


class DescribeMemoryPart(Struct):
    __slots__ = (
        "name",
        "setting",
        "limit_bytes",
        "used_bytes",
    )

    def __init__(
        self,
        name: str = "",
        setting: str = "",
        limit_bytes: int = 0,
        used_bytes: int = 0,
    ) -> None:
        self.name = name
        self.setting = setting
        self.limit_bytes = limit_bytes
        self.used_bytes = used_bytes


class DescribeMemoryResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "budget_bytes",
        "resident_bytes",
        "parts",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        budget_bytes: int = 0,
        resident_bytes: int = 0,
        parts: list[DescribeMemoryPart] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.budget_bytes = budget_bytes
        self.resident_bytes = resident_bytes
        self.parts = [] if parts is EMPTY else parts


def _read_request_v0(buf: bytes, pos: int) -> tuple[DescribeMemoryRequest, int]:
    message = new(DescribeMemoryRequest)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, _message: DescribeMemoryRequest, _inserts: Inserts) -> None:
    out.append(0)


def _read_response_describe_memory_part_v0(buf: bytes, pos: int) -> tuple[DescribeMemoryPart, int]:
    describe_memory_part = new(DescribeMemoryPart)
    describe_memory_part.name, pos = compact_string(buf, pos)
    describe_memory_part.setting, pos = compact_string(buf, pos)
    describe_memory_part.limit_bytes, describe_memory_part.used_bytes = _qq.unpack_from(buf, pos)
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_memory_part, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeMemoryResponse, int]:
    message = new(DescribeMemoryResponse)
    message.throttle_time_ms, message.budget_bytes, message.resident_bytes = _iqq.unpack_from(buf, pos)
    pos += 20
    message.parts, pos = compact_array(buf, pos, _read_response_describe_memory_part_v0, 19)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_describe_memory_part_v0(
    out: bytearray, describe_memory_part: DescribeMemoryPart, _inserts: Inserts
) -> None:
    put_compact_string(out, describe_memory_part.name)
    put_compact_string(out, describe_memory_part.setting)
    out += _qqx.pack(describe_memory_part.limit_bytes, describe_memory_part.used_bytes)


def _write_response_v0(out: bytearray, message: DescribeMemoryResponse, inserts: Inserts) -> None:
    out += _iqq.pack(message.throttle_time_ms, message.budget_bytes, message.resident_bytes)
    put_compact_array(out, message.parts, _write_response_describe_memory_part_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeMemoryRequest] = MessageCodec(
    "DescribeMemoryRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeMemoryResponse] = MessageCodec(
    "DescribeMemoryResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
