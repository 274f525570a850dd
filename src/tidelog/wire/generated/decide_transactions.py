"""DecideTransactions: API key 10002, v0 to v0."""
# Made by tools/wiregen from messages/decide_transactions.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_string

_q = struct.Struct(">q")
_qh = struct.Struct(">qh")
_iht = struct.Struct(">ih?")
_qhx = struct.Struct(">qhx")
_ihtx = struct.Struct(">ih?x")


class DecidedTransaction(Struct):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


class DecideTransactionsRequest(Struct):
    __slots__ = (
        "scope",
        "number",
        "transactions",
    )

    def __init__(
        self,
        scope: str = "",
        number: int = 0,
        transactions: list[DecidedTransaction] = EMPTY,
    ) -> None:
        self.scope = scope
        self.number = number
        self.transactions = [] if transactions is EMPTY else transactions


class DecideTransactionsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "is_new",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_new: bool = False,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.is_new = is_new


def _read_request_decided_transaction_v0(buf: bytes, pos: int) -> tuple[DecidedTransaction, int]:
    decided_transaction = new(DecidedTransaction)
    decided_transaction.transactional_id, pos = compact_string(buf, pos)
    decided_transaction.producer_id, decided_transaction.producer_epoch = _qh.unpack_from(buf, pos)
    pos += 10
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return decided_transaction, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[DecideTransactionsRequest, int]:
    message = new(DecideTransactionsRequest)
    message.scope, pos = compact_string(buf, pos)
    (message.number,) = _q.unpack_from(buf, pos)
    pos += 8
    message.transactions, pos = compact_array(buf, pos, _read_request_decided_transaction_v0, 12, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_decided_transaction_v0(
    out: bytearray, decided_transaction: DecidedTransaction, _inserts: Inserts
) -> None:
    put_compact_string(out, decided_transaction.transactional_id)
    out += _qhx.pack(decided_transaction.producer_id, decided_transaction.producer_epoch)


def _write_request_v0(out: bytearray, message: DecideTransactionsRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.scope)
    out += _q.pack(message.number)
    put_compact_array(out, message.transactions, _write_request_decided_transaction_v0, inserts)
    out.append(0)


def _read_response_v0(buf: bytes, pos: int) -> tuple[DecideTransactionsResponse, int]:
    message = new(DecideTransactionsResponse)
    message.throttle_time_ms, message.error_code, message.is_new = _iht.unpack_from(buf, pos)
    pos += 7
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: DecideTransactionsResponse, _inserts: Inserts) -> None:
    out += _ihtx.pack(message.throttle_time_ms, message.error_code, message.is_new)


REQUEST: MessageCodec[DecideTransactionsRequest] = MessageCodec(
    "DecideTransactionsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[DecideTransactionsResponse] = MessageCodec(
    "DecideTransactionsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
