"""StoreTransactionOffsets: API key 10007, v0 to v0."""
# Made by tools/wiregen from messages/store_transaction_offsets.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_string

_tq = struct.Struct(">?q")
_ih = struct.Struct(">ih")
_qh = struct.Struct(">qh")
_ihx = struct.Struct(">ihx")
_iqi = struct.Struct(">iqi")


class StoredOffsetsPartition(Struct):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = 0,
        committed_metadata: str = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class StoredOffsetsTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[StoredOffsetsPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class StoreTransactionOffsetsRequest(Struct):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "group_id",
        "adds_group",
        "committed_ms",
        "topics",
    )

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
        adds_group: bool = False,
        committed_ms: int = 0,
        topics: list[StoredOffsetsTopic] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id
        self.adds_group = adds_group
        self.committed_ms = committed_ms
        self.topics = [] if topics is EMPTY else topics


class StoreTransactionOffsetsResponse(Struct):
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


def _read_request_stored_offsets_partition_v0(buf: bytes, pos: int) -> tuple[StoredOffsetsPartition, int]:
    stored_offsets_partition = new(StoredOffsetsPartition)
    (
        stored_offsets_partition.partition_index,
        stored_offsets_partition.committed_offset,
        stored_offsets_partition.committed_leader_epoch,
    ) = _iqi.unpack_from(buf, pos)
    pos += 16
    stored_offsets_partition.committed_metadata, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return stored_offsets_partition, pos


def _read_request_stored_offsets_topic_v0(buf: bytes, pos: int) -> tuple[StoredOffsetsTopic, int]:
    stored_offsets_topic = new(StoredOffsetsTopic)
    stored_offsets_topic.name, pos = compact_string(buf, pos)
    stored_offsets_topic.partitions, pos = compact_array(buf, pos, _read_request_stored_offsets_partition_v0, 18, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return stored_offsets_topic, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[StoreTransactionOffsetsRequest, int]:
    message = new(StoreTransactionOffsetsRequest)
    message.transactional_id, pos = compact_string(buf, pos)
    message.producer_id, message.producer_epoch = _qh.unpack_from(buf, pos)
    pos += 10
    message.group_id, pos = compact_string(buf, pos)
    message.adds_group, message.committed_ms = _tq.unpack_from(buf, pos)
    pos += 9
    message.topics, pos = compact_array(buf, pos, _read_request_stored_offsets_topic_v0, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_stored_offsets_partition_v0(
    out: bytearray, stored_offsets_partition: StoredOffsetsPartition, _inserts: Inserts
) -> None:
    out += _iqi.pack(
        stored_offsets_partition.partition_index,
        stored_offsets_partition.committed_offset,
        stored_offsets_partition.committed_leader_epoch,
    )
    put_compact_string(out, stored_offsets_partition.committed_metadata)
    out.append(0)


def _write_request_stored_offsets_topic_v0(
    out: bytearray, stored_offsets_topic: StoredOffsetsTopic, inserts: Inserts
) -> None:
    put_compact_string(out, stored_offsets_topic.name)
    put_compact_array(out, stored_offsets_topic.partitions, _write_request_stored_offsets_partition_v0, inserts)
    out.append(0)


def _write_request_v0(out: bytearray, message: StoreTransactionOffsetsRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.transactional_id)
    out += _qh.pack(message.producer_id, message.producer_epoch)
    put_compact_string(out, message.group_id)
    out += _tq.pack(message.adds_group, message.committed_ms)
    put_compact_array(out, message.topics, _write_request_stored_offsets_topic_v0, inserts)
    out.append(0)


def _read_response_v0(buf: bytes, pos: int) -> tuple[StoreTransactionOffsetsResponse, int]:
    message = new(StoreTransactionOffsetsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: StoreTransactionOffsetsResponse, _inserts: Inserts) -> None:
    out += _ihx.pack(message.throttle_time_ms, message.error_code)


REQUEST: MessageCodec[StoreTransactionOffsetsRequest] = MessageCodec(
    "StoreTransactionOffsetsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[StoreTransactionOffsetsResponse] = MessageCodec(
    "StoreTransactionOffsetsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
