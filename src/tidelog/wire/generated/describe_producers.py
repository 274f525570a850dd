"""DescribeProducers: API key 61, v0 to v0."""
# Made by tools/wiregen from messages/describe_producers.txt; do not edit.
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
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_compact_string,
)

_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_qiiqiq = struct.Struct(">qiiqiq")
_qiiqiqx = struct.Struct(">qiiqiqx")


class TopicRequest(Struct):
    __slots__ = (
        "name",
        "partition_indexes",
    )

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is EMPTY else partition_indexes


class DescribeProducersRequest(Struct):
    __slots__ = ("topics",)

    def __init__(
        self,
        topics: list[TopicRequest] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics


class ProducerState(Struct):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class PartitionResponse(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "active_producers",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is EMPTY else active_producers


class TopicResponse(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[PartitionResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeProducersResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_topic_request_v0(buf: bytes, pos: int) -> tuple[TopicRequest, int]:
    topic_request = new(TopicRequest)
    topic_request.name, pos = compact_string(buf, pos)
    topic_request.partition_indexes, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_request, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[DescribeProducersRequest, int]:
    message = new(DescribeProducersRequest)
    message.topics, pos = compact_array(buf, pos, _read_request_topic_request_v0, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_topic_request_v0(out: bytearray, topic_request: TopicRequest, _inserts: Inserts) -> None:
    put_compact_string(out, topic_request.name)
    put_compact_numbers(out, topic_request.partition_indexes, "i")
    out.append(0)


def _write_request_v0(out: bytearray, message: DescribeProducersRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.topics, _write_request_topic_request_v0, inserts)
    out.append(0)


def _read_response_producer_state_v0(buf: bytes, pos: int) -> tuple[ProducerState, int]:
    producer_state = new(ProducerState)
    (
        producer_state.producer_id,
        producer_state.producer_epoch,
        producer_state.last_sequence,
        producer_state.last_timestamp,
        producer_state.coordinator_epoch,
        producer_state.current_txn_start_offset,
    ) = _qiiqiq.unpack_from(buf, pos)
    pos += 36
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return producer_state, pos


def _read_response_partition_response_v0(buf: bytes, pos: int) -> tuple[PartitionResponse, int]:
    partition_response = new(PartitionResponse)
    partition_response.partition_index, partition_response.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    partition_response.error_message, pos = nullable_compact_string(buf, pos)
    partition_response.active_producers, pos = compact_array(buf, pos, _read_response_producer_state_v0, 37)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return partition_response, pos


def _read_response_topic_response_v0(buf: bytes, pos: int) -> tuple[TopicResponse, int]:
    topic_response = new(TopicResponse)
    topic_response.name, pos = compact_string(buf, pos)
    topic_response.partitions, pos = compact_array(buf, pos, _read_response_partition_response_v0, 9)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_response, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeProducersResponse, int]:
    message = new(DescribeProducersResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_topic_response_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_producer_state_v0(out: bytearray, producer_state: ProducerState, _inserts: Inserts) -> None:
    out += _qiiqiqx.pack(
        producer_state.producer_id,
        producer_state.producer_epoch,
        producer_state.last_sequence,
        producer_state.last_timestamp,
        producer_state.coordinator_epoch,
        producer_state.current_txn_start_offset,
    )


def _write_response_partition_response_v0(
    out: bytearray, partition_response: PartitionResponse, inserts: Inserts
) -> None:
    out += _ih.pack(partition_response.partition_index, partition_response.error_code)
    put_nullable_compact_string(out, partition_response.error_message)
    put_compact_array(out, partition_response.active_producers, _write_response_producer_state_v0, inserts)
    out.append(0)


def _write_response_topic_response_v0(out: bytearray, topic_response: TopicResponse, inserts: Inserts) -> None:
    put_compact_string(out, topic_response.name)
    put_compact_array(out, topic_response.partitions, _write_response_partition_response_v0, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: DescribeProducersResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_topic_response_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeProducersRequest] = MessageCodec(
    "DescribeProducersRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeProducersResponse] = MessageCodec(
    "DescribeProducersResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
