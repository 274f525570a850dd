"""PushTelemetry: API key 72, v0 to v0."""
# Made by tools/wiregen from messages/push_telemetry.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import NO_UUID, Buffer, Inserts, Struct, new
from tidelog.wire.reading import compact_data, skip_tagged_fields
from tidelog.wire.writing import put_compact_data, wrong_uuid

_ih = struct.Struct(">ih")
_ihx = struct.Struct(">ihx")
_gitb = struct.Struct(">16si?b")


class PushTelemetryRequest(Struct):
    __slots__ = (
        "client_instance_id",
        "subscription_id",
        "terminating",
        "compression_type",
        "metrics",
    )

    def __init__(
        self,
        client_instance_id: bytes = NO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: Buffer = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics


class PushTelemetryResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def _read_request_v0(buf: memoryview, pos: int) -> tuple[PushTelemetryRequest, int]:
    message = new(PushTelemetryRequest)
    message.client_instance_id, message.subscription_id, message.terminating, message.compression_type = (
        _gitb.unpack_from(buf, pos)
    )
    pos += 22
    message.metrics, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: PushTelemetryRequest, _inserts: Inserts) -> None:
    if len(message.client_instance_id) != 16:
        raise wrong_uuid("client_instance_id")
    out += _gitb.pack(
        message.client_instance_id, message.subscription_id, message.terminating, message.compression_type
    )
    put_compact_data(out, message.metrics)
    out.append(0)


def _read_response_v0(buf: bytes, pos: int) -> tuple[PushTelemetryResponse, int]:
    message = new(PushTelemetryResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: PushTelemetryResponse, _inserts: Inserts) -> None:
    out += _ihx.pack(message.throttle_time_ms, message.error_code)


REQUEST: Codec[PushTelemetryRequest] = Codec(
    "PushTelemetryRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=True,
)

RESPONSE: Codec[PushTelemetryResponse] = Codec(
    "PushTelemetryResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
