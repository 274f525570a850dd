"""SaslAuthenticate: API key 36, v0 to v2."""
# Made by tools/wiregen from messages/sasl_authenticate.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Buffer, Inserts, Struct, new
from tidelog.wire.reading import compact_data, data, nullable_compact_string, nullable_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_data, put_data, put_nullable_compact_string, put_nullable_string

_h = struct.Struct(">h")
_q = struct.Struct(">q")
_qx = struct.Struct(">qx")


class SaslAuthenticateRequest(Struct):
    __slots__ = ("auth_bytes",)

    def __init__(
        self,
        auth_bytes: Buffer = b"",
    ) -> None:
        self.auth_bytes = auth_bytes


class SaslAuthenticateResponse(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "auth_bytes",
        "session_lifetime_ms",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: Buffer = b"",
        session_lifetime_ms: int = 0,  # 1+
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms


def _read_request_v0_to_v1(buf: memoryview, pos: int) -> tuple[SaslAuthenticateRequest, int]:
    message = new(SaslAuthenticateRequest)
    message.auth_bytes, pos = data(buf, pos)
    return message, pos


def _read_request_v2(buf: memoryview, pos: int) -> tuple[SaslAuthenticateRequest, int]:
    message = new(SaslAuthenticateRequest)
    message.auth_bytes, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v1(out: bytearray, message: SaslAuthenticateRequest, _inserts: Inserts) -> None:
    put_data(out, message.auth_bytes)


def _write_request_v2(out: bytearray, message: SaslAuthenticateRequest, _inserts: Inserts) -> None:
    put_compact_data(out, message.auth_bytes)
    out.append(0)


def _read_response_v0(buf: memoryview, pos: int) -> tuple[SaslAuthenticateResponse, int]:
    message = new(SaslAuthenticateResponse)
    message.session_lifetime_ms = 0
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.error_message, pos = nullable_string(buf, pos)
    message.auth_bytes, pos = data(buf, pos)
    return message, pos


def _read_response_v1(buf: memoryview, pos: int) -> tuple[SaslAuthenticateResponse, int]:
    message = new(SaslAuthenticateResponse)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.error_message, pos = nullable_string(buf, pos)
    message.auth_bytes, pos = data(buf, pos)
    (message.session_lifetime_ms,) = _q.unpack_from(buf, pos)
    pos += 8
    return message, pos


def _read_response_v2(buf: memoryview, pos: int) -> tuple[SaslAuthenticateResponse, int]:
    message = new(SaslAuthenticateResponse)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.auth_bytes, pos = compact_data(buf, pos)
    (message.session_lifetime_ms,) = _q.unpack_from(buf, pos)
    pos += 8
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: SaslAuthenticateResponse, _inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_nullable_string(out, message.error_message)
    put_data(out, message.auth_bytes)


def _write_response_v1(out: bytearray, message: SaslAuthenticateResponse, _inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_nullable_string(out, message.error_message)
    put_data(out, message.auth_bytes)
    out += _q.pack(message.session_lifetime_ms)


def _write_response_v2(out: bytearray, message: SaslAuthenticateResponse, _inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_data(out, message.auth_bytes)
    out += _qx.pack(message.session_lifetime_ms)


REQUEST: MessageCodec[SaslAuthenticateRequest] = MessageCodec(
    "SaslAuthenticateRequest",
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
    holds_views=True,
)

RESPONSE: MessageCodec[SaslAuthenticateResponse] = MessageCodec(
    "SaslAuthenticateResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1,
        _read_response_v2,
    ),
    (
        _write_response_v0,
        _write_response_v1,
        _write_response_v2,
    ),
    holds_views=True,
)
