"""DescribeTransactions: API key 65, v0 to v0."""
# Made by tools/wiregen from messages/describe_transactions.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_numbers, compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_numbers, put_compact_string, put_compact_strings

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_iqqh = struct.Struct(">iqqh")


class DescribeTransactionsRequest(Struct):
    __slots__ = ("transactional_ids",)

    def __init__(
        self,
        transactional_ids: list[str] = EMPTY,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is EMPTY else transactional_ids


class TopicData(Struct):
    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class TransactionState(Struct):
    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )

    def __init__(
        self,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is EMPTY else topics


class DescribeTransactionsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "transaction_states",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states


def _read_request_v0(buf: bytes, pos: int) -> tuple[DescribeTransactionsRequest, int]:
    message = new(DescribeTransactionsRequest)
    message.transactional_ids, pos = compact_array(buf, pos, compact_string, 1, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: DescribeTransactionsRequest, _inserts: Inserts) -> None:
    put_compact_strings(out, message.transactional_ids)
    out.append(0)


def _read_response_topic_data_v0(buf: bytes, pos: int) -> tuple[TopicData, int]:
    topic_data = new(TopicData)
    topic_data.topic, pos = compact_string(buf, pos)
    topic_data.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_data, pos


def _read_response_transaction_state_v0(buf: bytes, pos: int) -> tuple[TransactionState, int]:
    transaction_state = new(TransactionState)
    (transaction_state.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    transaction_state.transactional_id, pos = compact_string(buf, pos)
    transaction_state.transaction_state, pos = compact_string(buf, pos)
    (
        transaction_state.transaction_timeout_ms,
        transaction_state.transaction_start_time_ms,
        transaction_state.producer_id,
        transaction_state.producer_epoch,
    ) = _iqqh.unpack_from(buf, pos)
    pos += 22
    transaction_state.topics, pos = compact_array(buf, pos, _read_response_topic_data_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return transaction_state, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeTransactionsResponse, int]:
    message = new(DescribeTransactionsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.transaction_states, pos = compact_array(buf, pos, _read_response_transaction_state_v0, 28)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_topic_data_v0(out: bytearray, topic_data: TopicData, _inserts: Inserts) -> None:
    put_compact_string(out, topic_data.topic)
    put_compact_numbers(out, topic_data.partitions, "i")
    out.append(0)


def _write_response_transaction_state_v0(
    out: bytearray, transaction_state: TransactionState, inserts: Inserts
) -> None:
    out += _h.pack(transaction_state.error_code)
    put_compact_string(out, transaction_state.transactional_id)
    put_compact_string(out, transaction_state.transaction_state)
    out += _iqqh.pack(
        transaction_state.transaction_timeout_ms,
        transaction_state.transaction_start_time_ms,
        transaction_state.producer_id,
        transaction_state.producer_epoch,
    )
    put_compact_array(out, transaction_state.topics, _write_response_topic_data_v0, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: DescribeTransactionsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.transaction_states, _write_response_transaction_state_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeTransactionsRequest] = MessageCodec(
    "DescribeTransactionsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeTransactionsResponse] = MessageCodec(
    "DescribeTransactionsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
