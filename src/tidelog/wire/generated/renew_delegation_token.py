"""RenewDelegationToken: API key 39, v1 to v2."""
# Made by tools/wiregen from messages/renew_delegation_token.txt; do not edit.

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Buffer, Inserts, Struct, new
from tidelog.wire.reading import compact_data, data, skip_tagged_fields
from tidelog.wire.writing import put_compact_data, put_data

_q = struct.Struct(">q")
_qx = struct.Struct(">qx")
_hqi = struct.Struct(">hqi")
_hqix = struct.Struct(">hqix")


class RenewDelegationTokenRequest(Struct):
    __slots__ = (
        "hmac",
        "renew_period_ms",
    )

    def __init__(
        self,
        hmac: Buffer = b"",
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms


class RenewDelegationTokenResponse(Struct):
    __slots__ = (
        "error_code",
        "expiry_timestamp_ms",
        "throttle_time_ms",
    )

    def __init__(
        self,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms


def _read_request_v1(buf: memoryview, pos: int) -> tuple[RenewDelegationTokenRequest, int]:
    message = new(RenewDelegationTokenRequest)
    message.hmac, pos = data(buf, pos)
    (message.renew_period_ms,) = _q.unpack_from(buf, pos)
    pos += 8
    return message, pos


def _read_request_v2(buf: memoryview, pos: int) -> tuple[RenewDelegationTokenRequest, int]:
    message = new(RenewDelegationTokenRequest)
    message.hmac, pos = compact_data(buf, pos)
    (message.renew_period_ms,) = _q.unpack_from(buf, pos)
    pos += 8
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v1(out: bytearray, message: RenewDelegationTokenRequest, _inserts: Inserts) -> None:
    put_data(out, message.hmac)
    out += _q.pack(message.renew_period_ms)


def _write_request_v2(out: bytearray, message: RenewDelegationTokenRequest, _inserts: Inserts) -> None:
    put_compact_data(out, message.hmac)
    out += _qx.pack(message.renew_period_ms)


def _read_response_v1(buf: bytes, pos: int) -> tuple[RenewDelegationTokenResponse, int]:
    message = new(RenewDelegationTokenResponse)
    message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms = _hqi.unpack_from(buf, pos)
    pos += 14
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[RenewDelegationTokenResponse, int]:
    message = new(RenewDelegationTokenResponse)
    message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms = _hqi.unpack_from(buf, pos)
    pos += 14
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v1(out: bytearray, message: RenewDelegationTokenResponse, _inserts: Inserts) -> None:
    out += _hqi.pack(message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms)


def _write_response_v2(out: bytearray, message: RenewDelegationTokenResponse, _inserts: Inserts) -> None:
    out += _hqix.pack(message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms)


REQUEST: MessageCodec[RenewDelegationTokenRequest] = MessageCodec(
    "RenewDelegationTokenRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2,
    ),
    (
        _write_request_v1,
        _write_request_v2,
    ),
    holds_views=True,
)

RESPONSE: MessageCodec[RenewDelegationTokenResponse] = MessageCodec(
    "RenewDelegationTokenResponse",
    1,
    (
        _read_response_v1,
        _read_response_v2,
    ),
    (
        _write_response_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
