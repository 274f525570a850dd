"""DescribeDecision: API key 10003, v0 to v0."""
# Made by tools/wiregen from messages/describe_decision.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Inserts, Struct, new
from tidelog.wire.reading import compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_string

_ihq = struct.Struct(">ihq")
_ihqx = struct.Struct(">ihqx")


class DescribeDecisionRequest(Struct):
    __slots__ = ("scope",)

    def __init__(
        self,
        scope: str = "",
    ) -> None:
        self.scope = scope


class DescribeDecisionResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "number",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        number: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.number = number


def _read_request_v0(buf: bytes, pos: int) -> tuple[DescribeDecisionRequest, int]:
    message = new(DescribeDecisionRequest)
    message.scope, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: DescribeDecisionRequest, _inserts: Inserts) -> None:
    put_compact_string(out, message.scope)
    out.append(0)


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeDecisionResponse, int]:
    message = new(DescribeDecisionResponse)
    message.throttle_time_ms, message.error_code, message.number = _ihq.unpack_from(buf, pos)
    pos += 14
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: DescribeDecisionResponse, _inserts: Inserts) -> None:
    out += _ihqx.pack(message.throttle_time_ms, message.error_code, message.number)


REQUEST: MessageCodec[DescribeDecisionRequest] = MessageCodec(
    "DescribeDecisionRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeDecisionResponse] = MessageCodec(
    "DescribeDecisionResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
