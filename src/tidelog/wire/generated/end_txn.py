"""EndTxn: API key 26, v0 to v5."""
# Made by tools/wiregen from messages/end_txn.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Inserts, Struct, new
from tidelog.wire.reading import compact_string, skip_tagged_fields, string
from tidelog.wire.writing import put_compact_string, put_string

_ih = struct.Struct(">ih")
_ihx = struct.Struct(">ihx")
_qht = struct.Struct(">qh?")
_ihqh = struct.Struct(">ihqh")
_qhtx = struct.Struct(">qh?x")
_ihqhx = struct.Struct(">ihqhx")


class EndTxnRequest(Struct):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "committed",
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed


class EndTxnResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,  # 5+
        producer_epoch: int = -1,  # 5+
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


def _read_request_v0_to_v2(buf: bytes, pos: int) -> tuple[EndTxnRequest, int]:
    message = new(EndTxnRequest)
    message.transactional_id, pos = string(buf, pos)
    message.producer_id, message.producer_epoch, message.committed = _qht.unpack_from(buf, pos)
    pos += 11
    return message, pos


def _read_request_v3_to_v5(buf: bytes, pos: int) -> tuple[EndTxnRequest, int]:
    message = new(EndTxnRequest)
    message.transactional_id, pos = compact_string(buf, pos)
    message.producer_id, message.producer_epoch, message.committed = _qht.unpack_from(buf, pos)
    pos += 11
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v2(out: bytearray, message: EndTxnRequest, _inserts: Inserts) -> None:
    put_string(out, message.transactional_id)
    out += _qht.pack(message.producer_id, message.producer_epoch, message.committed)


def _write_request_v3_to_v5(out: bytearray, message: EndTxnRequest, _inserts: Inserts) -> None:
    put_compact_string(out, message.transactional_id)
    out += _qhtx.pack(message.producer_id, message.producer_epoch, message.committed)


def _read_response_v0_to_v2(buf: bytes, pos: int) -> tuple[EndTxnResponse, int]:
    message = new(EndTxnResponse)
    message.producer_id = -1
    message.producer_epoch = -1
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    return message, pos


def _read_response_v3_to_v4(buf: bytes, pos: int) -> tuple[EndTxnResponse, int]:
    message = new(EndTxnResponse)
    message.producer_id = -1
    message.producer_epoch = -1
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v5(buf: bytes, pos: int) -> tuple[EndTxnResponse, int]:
    message = new(EndTxnResponse)
    message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch = _ihqh.unpack_from(
        buf, pos
    )
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0_to_v2(out: bytearray, message: EndTxnResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)


def _write_response_v3_to_v4(out: bytearray, message: EndTxnResponse, _inserts: Inserts) -> None:
    out += _ihx.pack(message.throttle_time_ms, message.error_code)


def _write_response_v5(out: bytearray, message: EndTxnResponse, _inserts: Inserts) -> None:
    out += _ihqhx.pack(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch)


REQUEST: MessageCodec[EndTxnRequest] = MessageCodec(
    "EndTxnRequest",
    0,
    (
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v3_to_v5,
        _read_request_v3_to_v5,
        _read_request_v3_to_v5,
    ),
    (
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v3_to_v5,
        _write_request_v3_to_v5,
        _write_request_v3_to_v5,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[EndTxnResponse] = MessageCodec(
    "EndTxnResponse",
    0,
    (
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v3_to_v4,
        _read_response_v3_to_v4,
        _read_response_v5,
    ),
    (
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v3_to_v4,
        _write_response_v3_to_v4,
        _write_response_v5,
    ),
    holds_views=False,
)
