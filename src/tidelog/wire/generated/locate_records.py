"""LocateRecords: API key 10006, v0 to v0."""
# Made by tools/wiregen from messages/locate_records.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_string, put_nullable_compact_string, wrong_uuid

_ih = struct.Struct(">ih")
_qq = struct.Struct(">qq")
_qqq = struct.Struct(">qqq")
_qqx = struct.Struct(">qqx")
_qqqx = struct.Struct(">qqqx")
_giqqb = struct.Struct(">16siqqb")
_giqqbx = struct.Struct(">16siqqbx")


class LocateRecordsRequest(Struct):
    __slots__ = (
        "topic",
        "topic_id",
        "partition_index",
        "start_offset",
        "end_offset",
        "isolation_level",
    )

    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = NO_UUID,
        partition_index: int = 0,
        start_offset: int = 0,
        end_offset: int = 0,
        isolation_level: int = 0,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.isolation_level = isolation_level


class LocatedPiece(Struct):
    __slots__ = (
        "base_offset",
        "last_offset",
        "object_key",
        "position",
        "size",
    )

    def __init__(
        self,
        base_offset: int = 0,
        last_offset: int = 0,
        object_key: str = "",
        position: int = 0,
        size: int = 0,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.object_key = object_key
        self.position = position
        self.size = size


class LocatedAbortedTransaction(Struct):
    __slots__ = (
        "producer_id",
        "first_offset",
        "last_offset",
    )

    def __init__(
        self,
        producer_id: int = 0,
        first_offset: int = 0,
        last_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset


class LocateRecordsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "end_offset",
        "tail_offset",
        "pieces",
        "aborted_transactions",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        end_offset: int = 0,
        tail_offset: int = 0,
        pieces: list[LocatedPiece] = EMPTY,
        aborted_transactions: list[LocatedAbortedTransaction] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.end_offset = end_offset
        self.tail_offset = tail_offset
        self.pieces = [] if pieces is EMPTY else pieces
        self.aborted_transactions = [] if aborted_transactions is EMPTY else aborted_transactions


def _read_request_v0(buf: bytes, pos: int) -> tuple[LocateRecordsRequest, int]:
    message = new(LocateRecordsRequest)
    message.topic, pos = compact_string(buf, pos)
    message.topic_id, message.partition_index, message.start_offset, message.end_offset, message.isolation_level = (
        _giqqb.unpack_from(buf, pos)
    )
    pos += 37
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: LocateRecordsRequest, _inserts: Inserts) -> None:
    put_compact_string(out, message.topic)
    if len(message.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _giqqbx.pack(
        message.topic_id, message.partition_index, message.start_offset, message.end_offset, message.isolation_level
    )


def _read_response_located_piece_v0(buf: bytes, pos: int) -> tuple[LocatedPiece, int]:
    located_piece = new(LocatedPiece)
    located_piece.base_offset, located_piece.last_offset = _qq.unpack_from(buf, pos)
    pos += 16
    located_piece.object_key, pos = compact_string(buf, pos)
    located_piece.position, located_piece.size = _qq.unpack_from(buf, pos)
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return located_piece, pos


def _read_response_located_aborted_transaction_v0(buf: bytes, pos: int) -> tuple[LocatedAbortedTransaction, int]:
    located_aborted_transaction = new(LocatedAbortedTransaction)
    (
        located_aborted_transaction.producer_id,
        located_aborted_transaction.first_offset,
        located_aborted_transaction.last_offset,
    ) = _qqq.unpack_from(buf, pos)
    pos += 24
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return located_aborted_transaction, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[LocateRecordsResponse, int]:
    message = new(LocateRecordsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.end_offset, message.tail_offset = _qq.unpack_from(buf, pos)
    pos += 16
    message.pieces, pos = compact_array(buf, pos, _read_response_located_piece_v0, 34)
    message.aborted_transactions, pos = compact_array(buf, pos, _read_response_located_aborted_transaction_v0, 25)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_located_piece_v0(out: bytearray, located_piece: LocatedPiece, _inserts: Inserts) -> None:
    out += _qq.pack(located_piece.base_offset, located_piece.last_offset)
    put_compact_string(out, located_piece.object_key)
    out += _qqx.pack(located_piece.position, located_piece.size)


def _write_response_located_aborted_transaction_v0(
    out: bytearray, located_aborted_transaction: LocatedAbortedTransaction, _inserts: Inserts
) -> None:
    out += _qqqx.pack(
        located_aborted_transaction.producer_id,
        located_aborted_transaction.first_offset,
        located_aborted_transaction.last_offset,
    )


def _write_response_v0(out: bytearray, message: LocateRecordsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    out += _qq.pack(message.end_offset, message.tail_offset)
    put_compact_array(out, message.pieces, _write_response_located_piece_v0, inserts)
    put_compact_array(out, message.aborted_transactions, _write_response_located_aborted_transaction_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[LocateRecordsRequest] = MessageCodec(
    "LocateRecordsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[LocateRecordsResponse] = MessageCodec(
    "LocateRecordsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
