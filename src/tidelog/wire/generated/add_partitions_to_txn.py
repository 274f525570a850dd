"""AddPartitionsToTxn: API key 24, v0 to v5."""
# Made by tools/wiregen from messages/add_partitions_to_txn.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_numbers,
    compact_string,
    numbers,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    put_array,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_numbers,
    put_string,
)

_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_qh = struct.Struct(">qh")
_ihx = struct.Struct(">ihx")
_qht = struct.Struct(">qh?")


class AddPartitionsToTxnTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AddPartitionsToTxnTransaction(Struct):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "verify_only",
        "topics",
    )

    def __init__(
        self,
        transactional_id: str = "",  # 4+
        producer_id: int = 0,  # 4+
        producer_epoch: int = 0,  # 4+
        verify_only: bool = False,  # 4+
        topics: list[AddPartitionsToTxnTopic] = EMPTY,  # 4+
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is EMPTY else topics


class AddPartitionsToTxnRequest(Struct):
    __slots__ = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
    )

    def __init__(
        self,
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY,  # 4+
        v3_and_below_transactional_id: str = "",  # 0-3
        v3_and_below_producer_id: int = 0,  # 0-3
        v3_and_below_producer_epoch: int = 0,  # 0-3
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY,  # 0-3
    ) -> None:
        self.transactions = [] if transactions is EMPTY else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is EMPTY else v3_and_below_topics


class AddPartitionsToTxnPartitionResult(Struct):
    __slots__ = (
        "partition_index",
        "partition_error_code",
    )

    def __init__(
        self,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnTopicResult(Struct):
    __slots__ = (
        "name",
        "results_by_partition",
    )

    def __init__(
        self,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is EMPTY else results_by_partition


class AddPartitionsToTxnResult(Struct):
    __slots__ = (
        "transactional_id",
        "topic_results",
    )

    def __init__(
        self,
        transactional_id: str = "",  # 4+
        topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY,  # 4+
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is EMPTY else topic_results


class AddPartitionsToTxnResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results_by_transaction",
        "results_by_topic_v3_and_below",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # 4+
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY,  # 4+
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY,  # 0-3
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is EMPTY else results_by_transaction
        self.results_by_topic_v3_and_below = (
            [] if results_by_topic_v3_and_below is EMPTY else results_by_topic_v3_and_below
        )


def _read_request_add_partitions_to_txn_topic_v0_to_v2(buf: bytes, pos: int) -> tuple[AddPartitionsToTxnTopic, int]:
    add_partitions_to_txn_topic = new(AddPartitionsToTxnTopic)
    add_partitions_to_txn_topic.name, pos = string(buf, pos)
    add_partitions_to_txn_topic.partitions, pos = numbers(buf, pos, "i")
    return add_partitions_to_txn_topic, pos


def _read_request_add_partitions_to_txn_topic_v3_to_v5(buf: bytes, pos: int) -> tuple[AddPartitionsToTxnTopic, int]:
    add_partitions_to_txn_topic = new(AddPartitionsToTxnTopic)
    add_partitions_to_txn_topic.name, pos = compact_string(buf, pos)
    add_partitions_to_txn_topic.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return add_partitions_to_txn_topic, pos


def _read_request_add_partitions_to_txn_transaction_v4_to_v5(
    buf: bytes, pos: int
) -> tuple[AddPartitionsToTxnTransaction, int]:
    add_partitions_to_txn_transaction = new(AddPartitionsToTxnTransaction)
    add_partitions_to_txn_transaction.transactional_id, pos = compact_string(buf, pos)
    (
        add_partitions_to_txn_transaction.producer_id,
        add_partitions_to_txn_transaction.producer_epoch,
        add_partitions_to_txn_transaction.verify_only,
    ) = _qht.unpack_from(buf, pos)
    pos += 11
    add_partitions_to_txn_transaction.topics, pos = compact_array(
        buf, pos, _read_request_add_partitions_to_txn_topic_v3_to_v5, 3, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return add_partitions_to_txn_transaction, pos


def _read_request_v0_to_v2(buf: bytes, pos: int) -> tuple[AddPartitionsToTxnRequest, int]:
    message = new(AddPartitionsToTxnRequest)
    message.transactions = []
    message.v3_and_below_transactional_id, pos = string(buf, pos)
    message.v3_and_below_producer_id, message.v3_and_below_producer_epoch = _qh.unpack_from(buf, pos)
    pos += 10
    message.v3_and_below_topics, pos = array(buf, pos, _read_request_add_partitions_to_txn_topic_v0_to_v2, 6, 2)
    return message, pos


def _read_request_v3(buf: bytes, pos: int) -> tuple[AddPartitionsToTxnRequest, int]:
    message = new(AddPartitionsToTxnRequest)
    message.transactions = []
    message.v3_and_below_transactional_id, pos = compact_string(buf, pos)
    message.v3_and_below_producer_id, message.v3_and_below_producer_epoch = _qh.unpack_from(buf, pos)
    pos += 10
    message.v3_and_below_topics, pos = compact_array(
        buf, pos, _read_request_add_partitions_to_txn_topic_v3_to_v5, 3, 2
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v4_to_v5(buf: bytes, pos: int) -> tuple[AddPartitionsToTxnRequest, int]:
    message = new(AddPartitionsToTxnRequest)
    message.v3_and_below_transactional_id = ""
    message.v3_and_below_producer_id = 0
    message.v3_and_below_producer_epoch = 0
    message.v3_and_below_topics = []
    message.transactions, pos = compact_array(
        buf, pos, _read_request_add_partitions_to_txn_transaction_v4_to_v5, 14, 3
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_add_partitions_to_txn_topic_v0_to_v2(
    out: bytearray, add_partitions_to_txn_topic: AddPartitionsToTxnTopic, _inserts: Inserts
) -> None:
    put_string(out, add_partitions_to_txn_topic.name)
    put_numbers(out, add_partitions_to_txn_topic.partitions, "i")


def _write_request_add_partitions_to_txn_topic_v3_to_v5(
    out: bytearray, add_partitions_to_txn_topic: AddPartitionsToTxnTopic, _inserts: Inserts
) -> None:
    put_compact_string(out, add_partitions_to_txn_topic.name)
    put_compact_numbers(out, add_partitions_to_txn_topic.partitions, "i")
    out.append(0)


def _write_request_add_partitions_to_txn_transaction_v4_to_v5(
    out: bytearray, add_partitions_to_txn_transaction: AddPartitionsToTxnTransaction, inserts: Inserts
) -> None:
    put_compact_string(out, add_partitions_to_txn_transaction.transactional_id)
    out += _qht.pack(
        add_partitions_to_txn_transaction.producer_id,
        add_partitions_to_txn_transaction.producer_epoch,
        add_partitions_to_txn_transaction.verify_only,
    )
    put_compact_array(
        out, add_partitions_to_txn_transaction.topics, _write_request_add_partitions_to_txn_topic_v3_to_v5, inserts
    )
    out.append(0)


def _write_request_v0_to_v2(out: bytearray, message: AddPartitionsToTxnRequest, inserts: Inserts) -> None:
    if message.transactions:
        raise absent("transactions")
    put_string(out, message.v3_and_below_transactional_id)
    out += _qh.pack(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch)
    put_array(out, message.v3_and_below_topics, _write_request_add_partitions_to_txn_topic_v0_to_v2, inserts)


def _write_request_v3(out: bytearray, message: AddPartitionsToTxnRequest, inserts: Inserts) -> None:
    if message.transactions:
        raise absent("transactions")
    put_compact_string(out, message.v3_and_below_transactional_id)
    out += _qh.pack(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch)
    put_compact_array(out, message.v3_and_below_topics, _write_request_add_partitions_to_txn_topic_v3_to_v5, inserts)
    out.append(0)


def _write_request_v4_to_v5(out: bytearray, message: AddPartitionsToTxnRequest, inserts: Inserts) -> None:
    if message.v3_and_below_transactional_id:
        raise absent("v3_and_below_transactional_id")
    if message.v3_and_below_producer_id:
        raise absent("v3_and_below_producer_id")
    if message.v3_and_below_producer_epoch:
        raise absent("v3_and_below_producer_epoch")
    if message.v3_and_below_topics:
        raise absent("v3_and_below_topics")
    put_compact_array(out, message.transactions, _write_request_add_partitions_to_txn_transaction_v4_to_v5, inserts)
    out.append(0)


def _read_response_add_partitions_to_txn_partition_result_v0_to_v2(
    buf: bytes, pos: int
) -> tuple[AddPartitionsToTxnPartitionResult, int]:
    add_partitions_to_txn_partition_result = new(AddPartitionsToTxnPartitionResult)
    (
        add_partitions_to_txn_partition_result.partition_index,
        add_partitions_to_txn_partition_result.partition_error_code,
    ) = _ih.unpack_from(buf, pos)
    pos += 6
    return add_partitions_to_txn_partition_result, pos


def _read_response_add_partitions_to_txn_partition_result_v3_to_v5(
    buf: bytes, pos: int
) -> tuple[AddPartitionsToTxnPartitionResult, int]:
    add_partitions_to_txn_partition_result = new(AddPartitionsToTxnPartitionResult)
    (
        add_partitions_to_txn_partition_result.partition_index,
        add_partitions_to_txn_partition_result.partition_error_code,
    ) = _ih.unpack_from(buf, pos)
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return add_partitions_to_txn_partition_result, pos


def _read_response_add_partitions_to_txn_topic_result_v0_to_v2(
    buf: bytes, pos: int
) -> tuple[AddPartitionsToTxnTopicResult, int]:
    add_partitions_to_txn_topic_result = new(AddPartitionsToTxnTopicResult)
    add_partitions_to_txn_topic_result.name, pos = string(buf, pos)
    add_partitions_to_txn_topic_result.results_by_partition, pos = array(
        buf, pos, _read_response_add_partitions_to_txn_partition_result_v0_to_v2, 6
    )
    return add_partitions_to_txn_topic_result, pos


def _read_response_add_partitions_to_txn_topic_result_v3_to_v5(
    buf: bytes, pos: int
) -> tuple[AddPartitionsToTxnTopicResult, int]:
    add_partitions_to_txn_topic_result = new(AddPartitionsToTxnTopicResult)
    add_partitions_to_txn_topic_result.name, pos = compact_string(buf, pos)
    add_partitions_to_txn_topic_result.results_by_partition, pos = compact_array(
        buf, pos, _read_response_add_partitions_to_txn_partition_result_v3_to_v5, 7
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return add_partitions_to_txn_topic_result, pos


def _read_response_add_partitions_to_txn_result_v4_to_v5(
    buf: bytes, pos: int
) -> tuple[AddPartitionsToTxnResult, int]:
    add_partitions_to_txn_result = new(AddPartitionsToTxnResult)
    add_partitions_to_txn_result.transactional_id, pos = compact_string(buf, pos)
    add_partitions_to_txn_result.topic_results, pos = compact_array(
        buf, pos, _read_response_add_partitions_to_txn_topic_result_v3_to_v5, 3
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return add_partitions_to_txn_result, pos


def _read_response_v0_to_v2(buf: bytes, pos: int) -> tuple[AddPartitionsToTxnResponse, int]:
    message = new(AddPartitionsToTxnResponse)
    message.error_code = 0
    message.results_by_transaction = []
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results_by_topic_v3_and_below, pos = array(
        buf, pos, _read_response_add_partitions_to_txn_topic_result_v0_to_v2, 6
    )
    return message, pos


def _read_response_v3(buf: bytes, pos: int) -> tuple[AddPartitionsToTxnResponse, int]:
    message = new(AddPartitionsToTxnResponse)
    message.error_code = 0
    message.results_by_transaction = []
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results_by_topic_v3_and_below, pos = compact_array(
        buf, pos, _read_response_add_partitions_to_txn_topic_result_v3_to_v5, 3
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v4_to_v5(buf: bytes, pos: int) -> tuple[AddPartitionsToTxnResponse, int]:
    message = new(AddPartitionsToTxnResponse)
    message.results_by_topic_v3_and_below = []
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.results_by_transaction, pos = compact_array(
        buf, pos, _read_response_add_partitions_to_txn_result_v4_to_v5, 3
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_add_partitions_to_txn_partition_result_v0_to_v2(
    out: bytearray, add_partitions_to_txn_partition_result: AddPartitionsToTxnPartitionResult, _inserts: Inserts
) -> None:
    out += _ih.pack(
        add_partitions_to_txn_partition_result.partition_index,
        add_partitions_to_txn_partition_result.partition_error_code,
    )


def _write_response_add_partitions_to_txn_partition_result_v3_to_v5(
    out: bytearray, add_partitions_to_txn_partition_result: AddPartitionsToTxnPartitionResult, _inserts: Inserts
) -> None:
    out += _ihx.pack(
        add_partitions_to_txn_partition_result.partition_index,
        add_partitions_to_txn_partition_result.partition_error_code,
    )


def _write_response_add_partitions_to_txn_topic_result_v0_to_v2(
    out: bytearray, add_partitions_to_txn_topic_result: AddPartitionsToTxnTopicResult, inserts: Inserts
) -> None:
    put_string(out, add_partitions_to_txn_topic_result.name)
    put_array(
        out,
        add_partitions_to_txn_topic_result.results_by_partition,
        _write_response_add_partitions_to_txn_partition_result_v0_to_v2,
        inserts,
    )


def _write_response_add_partitions_to_txn_topic_result_v3_to_v5(
    out: bytearray, add_partitions_to_txn_topic_result: AddPartitionsToTxnTopicResult, inserts: Inserts
) -> None:
    put_compact_string(out, add_partitions_to_txn_topic_result.name)
    put_compact_array(
        out,
        add_partitions_to_txn_topic_result.results_by_partition,
        _write_response_add_partitions_to_txn_partition_result_v3_to_v5,
        inserts,
    )
    out.append(0)


def _write_response_add_partitions_to_txn_result_v4_to_v5(
    out: bytearray, add_partitions_to_txn_result: AddPartitionsToTxnResult, inserts: Inserts
) -> None:
    put_compact_string(out, add_partitions_to_txn_result.transactional_id)
    put_compact_array(
        out,
        add_partitions_to_txn_result.topic_results,
        _write_response_add_partitions_to_txn_topic_result_v3_to_v5,
        inserts,
    )
    out.append(0)


def _write_response_v0_to_v2(out: bytearray, message: AddPartitionsToTxnResponse, inserts: Inserts) -> None:
    if message.results_by_transaction:
        raise absent("results_by_transaction")
    out += _i.pack(message.throttle_time_ms)
    put_array(
        out,
        message.results_by_topic_v3_and_below,
        _write_response_add_partitions_to_txn_topic_result_v0_to_v2,
        inserts,
    )


def _write_response_v3(out: bytearray, message: AddPartitionsToTxnResponse, inserts: Inserts) -> None:
    if message.results_by_transaction:
        raise absent("results_by_transaction")
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(
        out,
        message.results_by_topic_v3_and_below,
        _write_response_add_partitions_to_txn_topic_result_v3_to_v5,
        inserts,
    )
    out.append(0)


def _write_response_v4_to_v5(out: bytearray, message: AddPartitionsToTxnResponse, inserts: Inserts) -> None:
    if message.results_by_topic_v3_and_below:
        raise absent("results_by_topic_v3_and_below")
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(
        out, message.results_by_transaction, _write_response_add_partitions_to_txn_result_v4_to_v5, inserts
    )
    out.append(0)


REQUEST: MessageCodec[AddPartitionsToTxnRequest] = MessageCodec(
    "AddPartitionsToTxnRequest",
    0,
    (
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v3,
        _read_request_v4_to_v5,
        _read_request_v4_to_v5,
    ),
    (
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v3,
        _write_request_v4_to_v5,
        _write_request_v4_to_v5,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[AddPartitionsToTxnResponse] = MessageCodec(
    "AddPartitionsToTxnResponse",
    0,
    (
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v3,
        _read_response_v4_to_v5,
        _read_response_v4_to_v5,
    ),
    (
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v3,
        _write_response_v4_to_v5,
        _write_response_v4_to_v5,
    ),
    holds_views=False,
)
