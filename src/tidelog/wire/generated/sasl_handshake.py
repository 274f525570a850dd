"""SaslHandshake: API key 17, v0 to v1."""
# Made by tools/wiregen from messages/sasl_handshake.txt; do not edit.

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import array, string
from tidelog.wire.writing import put_string, put_strings

_h = struct.Struct(">h")


class SaslHandshakeRequest(Struct):
    __slots__ = ("mechanism",)

    def __init__(
        self,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism


class SaslHandshakeResponse(Struct):
    __slots__ = (
        "error_code",
        "mechanisms",
    )

    def __init__(
        self,
        error_code: int = 0,
        mechanisms: list[str] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is EMPTY else mechanisms


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[SaslHandshakeRequest, int]:
    message = new(SaslHandshakeRequest)
    message.mechanism, pos = string(buf, pos)
    return message, pos


def _write_request_v0_to_v1(out: bytearray, message: SaslHandshakeRequest, _inserts: Inserts) -> None:
    put_string(out, message.mechanism)


def _read_response_v0_to_v1(buf: bytes, pos: int) -> tuple[SaslHandshakeResponse, int]:
    message = new(SaslHandshakeResponse)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.mechanisms, pos = array(buf, pos, string, 2)
    return message, pos


def _write_response_v0_to_v1(out: bytearray, message: SaslHandshakeResponse, _inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_strings(out, message.mechanisms)


REQUEST: MessageCodec[SaslHandshakeRequest] = MessageCodec(
    "SaslHandshakeRequest",
    0,
    (
        _read_request_v0_to_v1,
        _read_request_v0_to_v1,
    ),
    (
        _write_request_v0_to_v1,
        _write_request_v0_to_v1,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[SaslHandshakeResponse] = MessageCodec(
    "SaslHandshakeResponse",
    0,
    (
        _read_response_v0_to_v1,
        _read_response_v0_to_v1,
    ),
    (
        _write_response_v0_to_v1,
        _write_response_v0_to_v1,
    ),
    holds_views=False,
)
