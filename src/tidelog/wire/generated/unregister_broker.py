"""UnregisterBroker: API key 64, v0 to v0."""
# Made by tools/wiregen from messages/unregister_broker.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Inserts, Struct, new
from tidelog.wire.reading import nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import put_nullable_compact_string

_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_ix = struct.Struct(">ix")


class UnregisterBrokerRequest(Struct):
    __slots__ = ("broker_id",)

    def __init__(
        self,
        broker_id: int = 0,
    ) -> None:
        self.broker_id = broker_id


class UnregisterBrokerResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message


def _read_request_v0(buf: bytes, pos: int) -> tuple[UnregisterBrokerRequest, int]:
    message = new(UnregisterBrokerRequest)
    (message.broker_id,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: UnregisterBrokerRequest, _inserts: Inserts) -> None:
    out += _ix.pack(message.broker_id)


def _read_response_v0(buf: bytes, pos: int) -> tuple[UnregisterBrokerResponse, int]:
    message = new(UnregisterBrokerResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: UnregisterBrokerResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    out.append(0)


REQUEST: MessageCodec[UnregisterBrokerRequest] = MessageCodec(
    "UnregisterBrokerRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[UnregisterBrokerResponse] = MessageCodec(
    "UnregisterBrokerResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
