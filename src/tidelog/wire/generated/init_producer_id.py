"""InitProducerId: API key 22, v0 to v6."""
# Made by tools/wiregen from messages/init_producer_id.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Inserts, Struct, new
from tidelog.wire.reading import nullable_compact_string, nullable_string, skip_tagged_fields
from tidelog.wire.writing import absent, put_nullable_compact_string, put_nullable_string

_i = struct.Struct(">i")
_ix = struct.Struct(">ix")
_iqh = struct.Struct(">iqh")
_ihqh = struct.Struct(">ihqh")
_iqhx = struct.Struct(">iqhx")
_ihqhx = struct.Struct(">ihqhx")
_iqhtt = struct.Struct(">iqh??")
_ihqhqh = struct.Struct(">ihqhqh")
_iqhttx = struct.Struct(">iqh??x")
_ihqhqhx = struct.Struct(">ihqhqhx")


class InitProducerIdRequest(Struct):
    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )

    def __init__(
        self,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,  # 3+
        producer_epoch: int = -1,  # 3+
        enable2_pc: bool = False,  # 6+
        keep_prepared_txn: bool = False,  # 6+
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn


class InitProducerIdResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,  # 6+
        ongoing_txn_producer_epoch: int = -1,  # 6+
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[InitProducerIdRequest, int]:
    message = new(InitProducerIdRequest)
    message.producer_id = -1
    message.producer_epoch = -1
    message.enable2_pc = False
    message.keep_prepared_txn = False
    message.transactional_id, pos = nullable_string(buf, pos)
    (message.transaction_timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[InitProducerIdRequest, int]:
    message = new(InitProducerIdRequest)
    message.producer_id = -1
    message.producer_epoch = -1
    message.enable2_pc = False
    message.keep_prepared_txn = False
    message.transactional_id, pos = nullable_compact_string(buf, pos)
    (message.transaction_timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v3_to_v5(buf: bytes, pos: int) -> tuple[InitProducerIdRequest, int]:
    message = new(InitProducerIdRequest)
    message.enable2_pc = False
    message.keep_prepared_txn = False
    message.transactional_id, pos = nullable_compact_string(buf, pos)
    message.transaction_timeout_ms, message.producer_id, message.producer_epoch = _iqh.unpack_from(buf, pos)
    pos += 14
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v6(buf: bytes, pos: int) -> tuple[InitProducerIdRequest, int]:
    message = new(InitProducerIdRequest)
    message.transactional_id, pos = nullable_compact_string(buf, pos)
    (
        message.transaction_timeout_ms,
        message.producer_id,
        message.producer_epoch,
        message.enable2_pc,
        message.keep_prepared_txn,
    ) = _iqhtt.unpack_from(buf, pos)
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v1(out: bytearray, message: InitProducerIdRequest, _inserts: Inserts) -> None:
    if message.producer_id != -1:
        raise absent("producer_id")
    if message.producer_epoch != -1:
        raise absent("producer_epoch")
    if message.enable2_pc:
        raise absent("enable2_pc")
    if message.keep_prepared_txn:
        raise absent("keep_prepared_txn")
    put_nullable_string(out, message.transactional_id)
    out += _i.pack(message.transaction_timeout_ms)


def _write_request_v2(out: bytearray, message: InitProducerIdRequest, _inserts: Inserts) -> None:
    if message.producer_id != -1:
        raise absent("producer_id")
    if message.producer_epoch != -1:
        raise absent("producer_epoch")
    if message.enable2_pc:
        raise absent("enable2_pc")
    if message.keep_prepared_txn:
        raise absent("keep_prepared_txn")
    put_nullable_compact_string(out, message.transactional_id)
    out += _ix.pack(message.transaction_timeout_ms)


def _write_request_v3_to_v5(out: bytearray, message: InitProducerIdRequest, _inserts: Inserts) -> None:
    if message.enable2_pc:
        raise absent("enable2_pc")
    if message.keep_prepared_txn:
        raise absent("keep_prepared_txn")
    put_nullable_compact_string(out, message.transactional_id)
    out += _iqhx.pack(message.transaction_timeout_ms, message.producer_id, message.producer_epoch)


def _write_request_v6(out: bytearray, message: InitProducerIdRequest, _inserts: Inserts) -> None:
    put_nullable_compact_string(out, message.transactional_id)
    out += _iqhttx.pack(
        message.transaction_timeout_ms,
        message.producer_id,
        message.producer_epoch,
        message.enable2_pc,
        message.keep_prepared_txn,
    )


def _read_response_v0_to_v1(buf: bytes, pos: int) -> tuple[InitProducerIdResponse, int]:
    message = new(InitProducerIdResponse)
    message.ongoing_txn_producer_id = -1
    message.ongoing_txn_producer_epoch = -1
    message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch = _ihqh.unpack_from(
        buf, pos
    )
    pos += 16
    return message, pos


def _read_response_v2_to_v5(buf: bytes, pos: int) -> tuple[InitProducerIdResponse, int]:
    message = new(InitProducerIdResponse)
    message.ongoing_txn_producer_id = -1
    message.ongoing_txn_producer_epoch = -1
    message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch = _ihqh.unpack_from(
        buf, pos
    )
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v6(buf: bytes, pos: int) -> tuple[InitProducerIdResponse, int]:
    message = new(InitProducerIdResponse)
    (
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
        message.ongoing_txn_producer_id,
        message.ongoing_txn_producer_epoch,
    ) = _ihqhqh.unpack_from(buf, pos)
    pos += 26
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0_to_v1(out: bytearray, message: InitProducerIdResponse, _inserts: Inserts) -> None:
    if message.ongoing_txn_producer_id != -1:
        raise absent("ongoing_txn_producer_id")
    if message.ongoing_txn_producer_epoch != -1:
        raise absent("ongoing_txn_producer_epoch")
    out += _ihqh.pack(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch)


def _write_response_v2_to_v5(out: bytearray, message: InitProducerIdResponse, _inserts: Inserts) -> None:
    if message.ongoing_txn_producer_id != -1:
        raise absent("ongoing_txn_producer_id")
    if message.ongoing_txn_producer_epoch != -1:
        raise absent("ongoing_txn_producer_epoch")
    out += _ihqhx.pack(message.throttle_time_ms, message.error_code, message.producer_id, message.producer_epoch)


def _write_response_v6(out: bytearray, message: InitProducerIdResponse, _inserts: Inserts) -> None:
    out += _ihqhqhx.pack(
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
        message.ongoing_txn_producer_id,
        message.ongoing_txn_producer_epoch,
    )


REQUEST: MessageCodec[InitProducerIdRequest] = MessageCodec(
    "InitProducerIdRequest",
    0,
    (
        _read_request_v0_to_v1,
        _read_request_v0_to_v1,
        _read_request_v2,
        _read_request_v3_to_v5,
        _read_request_v3_to_v5,
        _read_request_v3_to_v5,
        _read_request_v6,
    ),
    (
        _write_request_v0_to_v1,
        _write_request_v0_to_v1,
        _write_request_v2,
        _write_request_v3_to_v5,
        _write_request_v3_to_v5,
        _write_request_v3_to_v5,
        _write_request_v6,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[InitProducerIdResponse] = MessageCodec(
    "InitProducerIdResponse",
    0,
    (
        _read_response_v0_to_v1,
        _read_response_v0_to_v1,
        _read_response_v2_to_v5,
        _read_response_v2_to_v5,
        _read_response_v2_to_v5,
        _read_response_v2_to_v5,
        _read_response_v6,
    ),
    (
        _write_response_v0_to_v1,
        _write_response_v0_to_v1,
        _write_response_v2_to_v5,
        _write_response_v2_to_v5,
        _write_response_v2_to_v5,
        _write_response_v2_to_v5,
        _write_response_v6,
    ),
    holds_views=False,
)
