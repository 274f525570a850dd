"""GetTelemetrySubscriptions: API key 71, v0 to v0."""
# Made by tools/wiregen from messages/get_telemetry_subscriptions.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_numbers, compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_numbers, put_compact_strings, wrong_uuid

_g = struct.Struct(">16s")
_gx = struct.Struct(">16sx")
_iit = struct.Struct(">ii?")
_ihgi = struct.Struct(">ih16si")


class GetTelemetrySubscriptionsRequest(Struct):
    __slots__ = ("client_instance_id",)

    def __init__(
        self,
        client_instance_id: bytes = NO_UUID,
    ) -> None:
        self.client_instance_id = client_instance_id


class GetTelemetrySubscriptionsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = NO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = EMPTY,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = [] if accepted_compression_types is EMPTY else accepted_compression_types
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is EMPTY else requested_metrics


def _read_request_v0(buf: bytes, pos: int) -> tuple[GetTelemetrySubscriptionsRequest, int]:
    message = new(GetTelemetrySubscriptionsRequest)
    (message.client_instance_id,) = _g.unpack_from(buf, pos)
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: GetTelemetrySubscriptionsRequest, _inserts: Inserts) -> None:
    if len(message.client_instance_id) != 16:
        raise wrong_uuid("client_instance_id")
    out += _gx.pack(message.client_instance_id)


def _read_response_v0(buf: bytes, pos: int) -> tuple[GetTelemetrySubscriptionsResponse, int]:
    message = new(GetTelemetrySubscriptionsResponse)
    message.throttle_time_ms, message.error_code, message.client_instance_id, message.subscription_id = (
        _ihgi.unpack_from(buf, pos)
    )
    pos += 26
    message.accepted_compression_types, pos = compact_numbers(buf, pos, "b")
    message.push_interval_ms, message.telemetry_max_bytes, message.delta_temporality = _iit.unpack_from(buf, pos)
    pos += 9
    message.requested_metrics, pos = compact_array(buf, pos, compact_string, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: GetTelemetrySubscriptionsResponse, _inserts: Inserts) -> None:
    if len(message.client_instance_id) != 16:
        raise wrong_uuid("client_instance_id")
    out += _ihgi.pack(
        message.throttle_time_ms, message.error_code, message.client_instance_id, message.subscription_id
    )
    put_compact_numbers(out, message.accepted_compression_types, "b")
    out += _iit.pack(message.push_interval_ms, message.telemetry_max_bytes, message.delta_temporality)
    put_compact_strings(out, message.requested_metrics)
    out.append(0)


REQUEST: Codec[GetTelemetrySubscriptionsRequest] = Codec(
    "GetTelemetrySubscriptionsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: Codec[GetTelemetrySubscriptionsResponse] = Codec(
    "GetTelemetrySubscriptionsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
