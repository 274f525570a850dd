"""ListTransactions: API key 66, v0 to v2."""
# Made by tools/wiregen from messages/list_transactions.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_numbers,
    compact_string,
    nullable_compact_string,
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    absent,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_compact_strings,
    put_nullable_compact_string,
)

_q = struct.Struct(">q")
_ih = struct.Struct(">ih")
_qx = struct.Struct(">qx")


class ListTransactionsRequest(Struct):
    __slots__ = (
        "state_filters",
        "producer_id_filters",
        "duration_filter",
        "transactional_id_pattern",
    )

    def __init__(
        self,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,  # 1+
        transactional_id_pattern: str | None = None,  # 2+
    ) -> None:
        self.state_filters = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern


class TransactionState(Struct):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "transaction_state",
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "unknown_state_filters",
        "transaction_states",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states


def _read_request_v0(buf: bytes, pos: int) -> tuple[ListTransactionsRequest, int]:
    message = new(ListTransactionsRequest)
    message.duration_filter = -1
    message.transactional_id_pattern = None
    message.state_filters, pos = compact_array(buf, pos, compact_string, 1, 1)
    message.producer_id_filters, pos = compact_numbers(buf, pos, "q")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[ListTransactionsRequest, int]:
    message = new(ListTransactionsRequest)
    message.transactional_id_pattern = None
    message.state_filters, pos = compact_array(buf, pos, compact_string, 1, 1)
    message.producer_id_filters, pos = compact_numbers(buf, pos, "q")
    (message.duration_filter,) = _q.unpack_from(buf, pos)
    pos += 8
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[ListTransactionsRequest, int]:
    message = new(ListTransactionsRequest)
    message.state_filters, pos = compact_array(buf, pos, compact_string, 1, 1)
    message.producer_id_filters, pos = compact_numbers(buf, pos, "q")
    (message.duration_filter,) = _q.unpack_from(buf, pos)
    pos += 8
    message.transactional_id_pattern, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: ListTransactionsRequest, _inserts: Inserts) -> None:
    if message.duration_filter != -1:
        raise absent("duration_filter")
    if message.transactional_id_pattern is not None:
        raise absent("transactional_id_pattern")
    put_compact_strings(out, message.state_filters)
    put_compact_numbers(out, message.producer_id_filters, "q")
    out.append(0)


def _write_request_v1(out: bytearray, message: ListTransactionsRequest, _inserts: Inserts) -> None:
    if message.transactional_id_pattern is not None:
        raise absent("transactional_id_pattern")
    put_compact_strings(out, message.state_filters)
    put_compact_numbers(out, message.producer_id_filters, "q")
    out += _qx.pack(message.duration_filter)


def _write_request_v2(out: bytearray, message: ListTransactionsRequest, _inserts: Inserts) -> None:
    put_compact_strings(out, message.state_filters)
    put_compact_numbers(out, message.producer_id_filters, "q")
    out += _q.pack(message.duration_filter)
    put_nullable_compact_string(out, message.transactional_id_pattern)
    out.append(0)


def _read_response_transaction_state_v0_to_v2(buf: bytes, pos: int) -> tuple[TransactionState, int]:
    transaction_state = new(TransactionState)
    transaction_state.transactional_id, pos = compact_string(buf, pos)
    (transaction_state.producer_id,) = _q.unpack_from(buf, pos)
    pos += 8
    transaction_state.transaction_state, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return transaction_state, pos


def _read_response_v0_to_v2(buf: bytes, pos: int) -> tuple[ListTransactionsResponse, int]:
    message = new(ListTransactionsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.unknown_state_filters, pos = compact_array(buf, pos, compact_string, 1)
    message.transaction_states, pos = compact_array(buf, pos, _read_response_transaction_state_v0_to_v2, 11)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_transaction_state_v0_to_v2(
    out: bytearray, transaction_state: TransactionState, _inserts: Inserts
) -> None:
    put_compact_string(out, transaction_state.transactional_id)
    out += _q.pack(transaction_state.producer_id)
    put_compact_string(out, transaction_state.transaction_state)
    out.append(0)


def _write_response_v0_to_v2(out: bytearray, message: ListTransactionsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_strings(out, message.unknown_state_filters)
    put_compact_array(out, message.transaction_states, _write_response_transaction_state_v0_to_v2, inserts)
    out.append(0)


REQUEST: MessageCodec[ListTransactionsRequest] = MessageCodec(
    "ListTransactionsRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1,
        _read_request_v2,
    ),
    (
        _write_request_v0,
        _write_request_v1,
        _write_request_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[ListTransactionsResponse] = MessageCodec(
    "ListTransactionsResponse",
    0,
    (
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
    ),
    (
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
    ),
    holds_views=False,
)
