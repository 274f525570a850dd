"""DrainBrokers: API key 10005, v0 to v0."""
# Made by tools/wiregen from messages/drain_brokers.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_numbers, nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_numbers, put_nullable_compact_string

_it = struct.Struct(">i?")
_ih = struct.Struct(">ih")
_itx = struct.Struct(">i?x")


class DrainableBroker(Struct):
    __slots__ = (
        "broker_id",
        "is_drained",
    )

    def __init__(
        self,
        broker_id: int = 0,
        is_drained: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.is_drained = is_drained


class DrainBrokersRequest(Struct):
    __slots__ = ("brokers",)

    def __init__(
        self,
        brokers: list[DrainableBroker] = EMPTY,
    ) -> None:
        self.brokers = [] if brokers is EMPTY else brokers


class DrainBrokersResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "drained",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        drained: list[int] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.drained = [] if drained is EMPTY else drained


def _read_request_drainable_broker_v0(buf: bytes, pos: int) -> tuple[DrainableBroker, int]:
    drainable_broker = new(DrainableBroker)
    drainable_broker.broker_id, drainable_broker.is_drained = _it.unpack_from(buf, pos)
    pos += 5
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return drainable_broker, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[DrainBrokersRequest, int]:
    message = new(DrainBrokersRequest)
    message.brokers, pos = compact_array(buf, pos, _read_request_drainable_broker_v0, 6, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_drainable_broker_v0(out: bytearray, drainable_broker: DrainableBroker, _inserts: Inserts) -> None:
    out += _itx.pack(drainable_broker.broker_id, drainable_broker.is_drained)


def _write_request_v0(out: bytearray, message: DrainBrokersRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.brokers, _write_request_drainable_broker_v0, inserts)
    out.append(0)


def _read_response_v0(buf: bytes, pos: int) -> tuple[DrainBrokersResponse, int]:
    message = new(DrainBrokersResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.drained, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: DrainBrokersResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_numbers(out, message.drained, "i")
    out.append(0)


REQUEST: MessageCodec[DrainBrokersRequest] = MessageCodec(
    "DrainBrokersRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[DrainBrokersResponse] = MessageCodec(
    "DrainBrokersResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
