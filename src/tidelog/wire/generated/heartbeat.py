"""Heartbeat: API key 12, v0 to v4."""
# Made by tools/wiregen from messages/heartbeat.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Inserts, Struct, new
from tidelog.wire.reading import compact_string, nullable_compact_string, nullable_string, skip_tagged_fields, string
from tidelog.wire.writing import (
    absent,
    put_compact_string,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_ihx = struct.Struct(">ihx")


class HeartbeatRequest(Struct):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,  # 3+
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


class HeartbeatResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 1+
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def _read_request_v0_to_v2(buf: bytes, pos: int) -> tuple[HeartbeatRequest, int]:
    message = new(HeartbeatRequest)
    message.group_instance_id = None
    message.group_id, pos = string(buf, pos)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    return message, pos


def _read_request_v3(buf: bytes, pos: int) -> tuple[HeartbeatRequest, int]:
    message = new(HeartbeatRequest)
    message.group_id, pos = string(buf, pos)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    message.group_instance_id, pos = nullable_string(buf, pos)
    return message, pos


def _read_request_v4(buf: bytes, pos: int) -> tuple[HeartbeatRequest, int]:
    message = new(HeartbeatRequest)
    message.group_id, pos = compact_string(buf, pos)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = compact_string(buf, pos)
    message.group_instance_id, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v2(out: bytearray, message: HeartbeatRequest, _inserts: Inserts) -> None:
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.group_id)
    out += _i.pack(message.generation_id)
    put_string(out, message.member_id)


def _write_request_v3(out: bytearray, message: HeartbeatRequest, _inserts: Inserts) -> None:
    put_string(out, message.group_id)
    out += _i.pack(message.generation_id)
    put_string(out, message.member_id)
    put_nullable_string(out, message.group_instance_id)


def _write_request_v4(out: bytearray, message: HeartbeatRequest, _inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    out += _i.pack(message.generation_id)
    put_compact_string(out, message.member_id)
    put_nullable_compact_string(out, message.group_instance_id)
    out.append(0)


def _read_response_v0(buf: bytes, pos: int) -> tuple[HeartbeatResponse, int]:
    message = new(HeartbeatResponse)
    message.throttle_time_ms = 0
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return message, pos


def _read_response_v1_to_v3(buf: bytes, pos: int) -> tuple[HeartbeatResponse, int]:
    message = new(HeartbeatResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    return message, pos


def _read_response_v4(buf: bytes, pos: int) -> tuple[HeartbeatResponse, int]:
    message = new(HeartbeatResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: HeartbeatResponse, _inserts: Inserts) -> None:
    out += _h.pack(message.error_code)


def _write_response_v1_to_v3(out: bytearray, message: HeartbeatResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)


def _write_response_v4(out: bytearray, message: HeartbeatResponse, _inserts: Inserts) -> None:
    out += _ihx.pack(message.throttle_time_ms, message.error_code)


REQUEST: MessageCodec[HeartbeatRequest] = MessageCodec(
    "HeartbeatRequest",
    0,
    (
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v3,
        _read_request_v4,
    ),
    (
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v3,
        _write_request_v4,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[HeartbeatResponse] = MessageCodec(
    "HeartbeatResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1_to_v3,
        _read_response_v1_to_v3,
        _read_response_v1_to_v3,
        _read_response_v4,
    ),
    (
        _write_response_v0,
        _write_response_v1_to_v3,
        _write_response_v1_to_v3,
        _write_response_v1_to_v3,
        _write_response_v4,
    ),
    holds_views=False,
)
