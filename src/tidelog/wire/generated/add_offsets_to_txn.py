"""AddOffsetsToTxn: API key 25, v0 to v4."""
# Made by tools/wiregen from messages/add_offsets_to_txn.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Inserts, Struct, new
from tidelog.wire.reading import compact_string, skip_tagged_fields, string
from tidelog.wire.writing import put_compact_string, put_string

_ih = struct.Struct(">ih")
_qh = struct.Struct(">qh")
_ihx = struct.Struct(">ihx")


class AddOffsetsToTxnRequest(Struct):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "group_id",
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id


class AddOffsetsToTxnResponse(Struct):
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


def _read_request_v0_to_v2(buf: bytes, pos: int) -> tuple[AddOffsetsToTxnRequest, int]:
    message = new(AddOffsetsToTxnRequest)
    message.transactional_id, pos = string(buf, pos)
    message.producer_id, message.producer_epoch = _qh.unpack_from(buf, pos)
    pos += 10
    message.group_id, pos = string(buf, pos)
    return message, pos


def _read_request_v3_to_v4(buf: bytes, pos: int) -> tuple[AddOffsetsToTxnRequest, int]:
    message = new(AddOffsetsToTxnRequest)
    message.transactional_id, pos = compact_string(buf, pos)
    message.producer_id, message.producer_epoch = _qh.unpack_from(buf, pos)
    pos += 10
    message.group_id, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v2(out: bytearray, message: AddOffsetsToTxnRequest, _inserts: Inserts) -> None:
    put_string(out, message.transactional_id)
    out += _qh.pack(message.producer_id, message.producer_epoch)
    put_string(out, message.group_id)


def _write_request_v3_to_v4(out: bytearray, message: AddOffsetsToTxnRequest, _inserts: Inserts) -> None:
    put_compact_string(out, message.transactional_id)
    out += _qh.pack(message.producer_id, message.producer_epoch)
    put_compact_string(out, message.group_id)
    out.append(0)


def _read_response_v0_to_v2(buf: bytes, pos: int) -> tuple[AddOffsetsToTxnResponse, int]:
    message = new(AddOffsetsToTxnResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    return message, pos


def _read_response_v3_to_v4(buf: bytes, pos: int) -> tuple[AddOffsetsToTxnResponse, int]:
    message = new(AddOffsetsToTxnResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0_to_v2(out: bytearray, message: AddOffsetsToTxnResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)


def _write_response_v3_to_v4(out: bytearray, message: AddOffsetsToTxnResponse, _inserts: Inserts) -> None:
    out += _ihx.pack(message.throttle_time_ms, message.error_code)


REQUEST: MessageCodec[AddOffsetsToTxnRequest] = MessageCodec(
    "AddOffsetsToTxnRequest",
    0,
    (
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v3_to_v4,
        _read_request_v3_to_v4,
    ),
    (
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v3_to_v4,
        _write_request_v3_to_v4,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[AddOffsetsToTxnResponse] = MessageCodec(
    "AddOffsetsToTxnResponse",
    0,
    (
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v3_to_v4,
        _read_response_v3_to_v4,
    ),
    (
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v3_to_v4,
        _write_response_v3_to_v4,
    ),
    holds_views=False,
)
