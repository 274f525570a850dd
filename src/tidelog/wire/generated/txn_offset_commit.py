"""TxnOffsetCommit: API key 28, v0 to v5."""
# Made by tools/wiregen from messages/txn_offset_commit.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_string,
    nullable_compact_string,
    nullable_string,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    put_array,
    put_compact_array,
    put_compact_string,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
)

_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_iq = struct.Struct(">iq")
_qh = struct.Struct(">qh")
_ihx = struct.Struct(">ihx")
_iqi = struct.Struct(">iqi")
_qhi = struct.Struct(">qhi")


class TxnOffsetCommitRequestPartition(Struct):
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
        committed_leader_epoch: int = -1,  # 2+
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class TxnOffsetCommitRequestTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class TxnOffsetCommitRequest(Struct):
    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )

    def __init__(
        self,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,  # 3+
        member_id: str = "",  # 3+
        group_instance_id: str | None = None,  # 3+
        topics: list[TxnOffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is EMPTY else topics


class TxnOffsetCommitResponsePartition(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class TxnOffsetCommitResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_txn_offset_commit_request_partition_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitRequestPartition, int]:
    txn_offset_commit_request_partition = new(TxnOffsetCommitRequestPartition)
    txn_offset_commit_request_partition.committed_leader_epoch = -1
    txn_offset_commit_request_partition.partition_index, txn_offset_commit_request_partition.committed_offset = (
        _iq.unpack_from(buf, pos)
    )
    pos += 12
    txn_offset_commit_request_partition.committed_metadata, pos = nullable_string(buf, pos)
    return txn_offset_commit_request_partition, pos


def _read_request_txn_offset_commit_request_partition_v2(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitRequestPartition, int]:
    txn_offset_commit_request_partition = new(TxnOffsetCommitRequestPartition)
    (
        txn_offset_commit_request_partition.partition_index,
        txn_offset_commit_request_partition.committed_offset,
        txn_offset_commit_request_partition.committed_leader_epoch,
    ) = _iqi.unpack_from(buf, pos)
    pos += 16
    txn_offset_commit_request_partition.committed_metadata, pos = nullable_string(buf, pos)
    return txn_offset_commit_request_partition, pos


def _read_request_txn_offset_commit_request_partition_v3_to_v5(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitRequestPartition, int]:
    txn_offset_commit_request_partition = new(TxnOffsetCommitRequestPartition)
    (
        txn_offset_commit_request_partition.partition_index,
        txn_offset_commit_request_partition.committed_offset,
        txn_offset_commit_request_partition.committed_leader_epoch,
    ) = _iqi.unpack_from(buf, pos)
    pos += 16
    txn_offset_commit_request_partition.committed_metadata, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return txn_offset_commit_request_partition, pos


def _read_request_txn_offset_commit_request_topic_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitRequestTopic, int]:
    txn_offset_commit_request_topic = new(TxnOffsetCommitRequestTopic)
    txn_offset_commit_request_topic.name, pos = string(buf, pos)
    txn_offset_commit_request_topic.partitions, pos = array(
        buf, pos, _read_request_txn_offset_commit_request_partition_v0_to_v1, 14, 1
    )
    return txn_offset_commit_request_topic, pos


def _read_request_txn_offset_commit_request_topic_v2(buf: bytes, pos: int) -> tuple[TxnOffsetCommitRequestTopic, int]:
    txn_offset_commit_request_topic = new(TxnOffsetCommitRequestTopic)
    txn_offset_commit_request_topic.name, pos = string(buf, pos)
    txn_offset_commit_request_topic.partitions, pos = array(
        buf, pos, _read_request_txn_offset_commit_request_partition_v2, 18, 1
    )
    return txn_offset_commit_request_topic, pos


def _read_request_txn_offset_commit_request_topic_v3_to_v5(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitRequestTopic, int]:
    txn_offset_commit_request_topic = new(TxnOffsetCommitRequestTopic)
    txn_offset_commit_request_topic.name, pos = compact_string(buf, pos)
    txn_offset_commit_request_topic.partitions, pos = compact_array(
        buf, pos, _read_request_txn_offset_commit_request_partition_v3_to_v5, 18, 1
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return txn_offset_commit_request_topic, pos


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[TxnOffsetCommitRequest, int]:
    message = new(TxnOffsetCommitRequest)
    message.generation_id = -1
    message.member_id = ""
    message.group_instance_id = None
    message.transactional_id, pos = string(buf, pos)
    message.group_id, pos = string(buf, pos)
    message.producer_id, message.producer_epoch = _qh.unpack_from(buf, pos)
    pos += 10
    message.topics, pos = array(buf, pos, _read_request_txn_offset_commit_request_topic_v0_to_v1, 6, 2)
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[TxnOffsetCommitRequest, int]:
    message = new(TxnOffsetCommitRequest)
    message.generation_id = -1
    message.member_id = ""
    message.group_instance_id = None
    message.transactional_id, pos = string(buf, pos)
    message.group_id, pos = string(buf, pos)
    message.producer_id, message.producer_epoch = _qh.unpack_from(buf, pos)
    pos += 10
    message.topics, pos = array(buf, pos, _read_request_txn_offset_commit_request_topic_v2, 6, 2)
    return message, pos


def _read_request_v3_to_v5(buf: bytes, pos: int) -> tuple[TxnOffsetCommitRequest, int]:
    message = new(TxnOffsetCommitRequest)
    message.transactional_id, pos = compact_string(buf, pos)
    message.group_id, pos = compact_string(buf, pos)
    message.producer_id, message.producer_epoch, message.generation_id = _qhi.unpack_from(buf, pos)
    pos += 14
    message.member_id, pos = compact_string(buf, pos)
    message.group_instance_id, pos = nullable_compact_string(buf, pos)
    message.topics, pos = compact_array(buf, pos, _read_request_txn_offset_commit_request_topic_v3_to_v5, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_txn_offset_commit_request_partition_v0_to_v1(
    out: bytearray, txn_offset_commit_request_partition: TxnOffsetCommitRequestPartition, _inserts: Inserts
) -> None:
    out += _iq.pack(
        txn_offset_commit_request_partition.partition_index, txn_offset_commit_request_partition.committed_offset
    )
    put_nullable_string(out, txn_offset_commit_request_partition.committed_metadata)


def _write_request_txn_offset_commit_request_partition_v2(
    out: bytearray, txn_offset_commit_request_partition: TxnOffsetCommitRequestPartition, _inserts: Inserts
) -> None:
    out += _iqi.pack(
        txn_offset_commit_request_partition.partition_index,
        txn_offset_commit_request_partition.committed_offset,
        txn_offset_commit_request_partition.committed_leader_epoch,
    )
    put_nullable_string(out, txn_offset_commit_request_partition.committed_metadata)


def _write_request_txn_offset_commit_request_partition_v3_to_v5(
    out: bytearray, txn_offset_commit_request_partition: TxnOffsetCommitRequestPartition, _inserts: Inserts
) -> None:
    out += _iqi.pack(
        txn_offset_commit_request_partition.partition_index,
        txn_offset_commit_request_partition.committed_offset,
        txn_offset_commit_request_partition.committed_leader_epoch,
    )
    put_nullable_compact_string(out, txn_offset_commit_request_partition.committed_metadata)
    out.append(0)


def _write_request_txn_offset_commit_request_topic_v0_to_v1(
    out: bytearray, txn_offset_commit_request_topic: TxnOffsetCommitRequestTopic, inserts: Inserts
) -> None:
    put_string(out, txn_offset_commit_request_topic.name)
    put_array(
        out,
        txn_offset_commit_request_topic.partitions,
        _write_request_txn_offset_commit_request_partition_v0_to_v1,
        inserts,
    )


def _write_request_txn_offset_commit_request_topic_v2(
    out: bytearray, txn_offset_commit_request_topic: TxnOffsetCommitRequestTopic, inserts: Inserts
) -> None:
    put_string(out, txn_offset_commit_request_topic.name)
    put_array(
        out,
        txn_offset_commit_request_topic.partitions,
        _write_request_txn_offset_commit_request_partition_v2,
        inserts,
    )


def _write_request_txn_offset_commit_request_topic_v3_to_v5(
    out: bytearray, txn_offset_commit_request_topic: TxnOffsetCommitRequestTopic, inserts: Inserts
) -> None:
    put_compact_string(out, txn_offset_commit_request_topic.name)
    put_compact_array(
        out,
        txn_offset_commit_request_topic.partitions,
        _write_request_txn_offset_commit_request_partition_v3_to_v5,
        inserts,
    )
    out.append(0)


def _write_request_v0_to_v1(out: bytearray, message: TxnOffsetCommitRequest, inserts: Inserts) -> None:
    if message.generation_id != -1:
        raise absent("generation_id")
    if message.member_id:
        raise absent("member_id")
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.transactional_id)
    put_string(out, message.group_id)
    out += _qh.pack(message.producer_id, message.producer_epoch)
    put_array(out, message.topics, _write_request_txn_offset_commit_request_topic_v0_to_v1, inserts)


def _write_request_v2(out: bytearray, message: TxnOffsetCommitRequest, inserts: Inserts) -> None:
    if message.generation_id != -1:
        raise absent("generation_id")
    if message.member_id:
        raise absent("member_id")
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.transactional_id)
    put_string(out, message.group_id)
    out += _qh.pack(message.producer_id, message.producer_epoch)
    put_array(out, message.topics, _write_request_txn_offset_commit_request_topic_v2, inserts)


def _write_request_v3_to_v5(out: bytearray, message: TxnOffsetCommitRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.transactional_id)
    put_compact_string(out, message.group_id)
    out += _qhi.pack(message.producer_id, message.producer_epoch, message.generation_id)
    put_compact_string(out, message.member_id)
    put_nullable_compact_string(out, message.group_instance_id)
    put_compact_array(out, message.topics, _write_request_txn_offset_commit_request_topic_v3_to_v5, inserts)
    out.append(0)


def _read_response_txn_offset_commit_response_partition_v0_to_v2(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitResponsePartition, int]:
    txn_offset_commit_response_partition = new(TxnOffsetCommitResponsePartition)
    txn_offset_commit_response_partition.partition_index, txn_offset_commit_response_partition.error_code = (
        _ih.unpack_from(buf, pos)
    )
    pos += 6
    return txn_offset_commit_response_partition, pos


def _read_response_txn_offset_commit_response_partition_v3_to_v5(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitResponsePartition, int]:
    txn_offset_commit_response_partition = new(TxnOffsetCommitResponsePartition)
    txn_offset_commit_response_partition.partition_index, txn_offset_commit_response_partition.error_code = (
        _ih.unpack_from(buf, pos)
    )
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return txn_offset_commit_response_partition, pos


def _read_response_txn_offset_commit_response_topic_v0_to_v2(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitResponseTopic, int]:
    txn_offset_commit_response_topic = new(TxnOffsetCommitResponseTopic)
    txn_offset_commit_response_topic.name, pos = string(buf, pos)
    txn_offset_commit_response_topic.partitions, pos = array(
        buf, pos, _read_response_txn_offset_commit_response_partition_v0_to_v2, 6
    )
    return txn_offset_commit_response_topic, pos


def _read_response_txn_offset_commit_response_topic_v3_to_v5(
    buf: bytes, pos: int
) -> tuple[TxnOffsetCommitResponseTopic, int]:
    txn_offset_commit_response_topic = new(TxnOffsetCommitResponseTopic)
    txn_offset_commit_response_topic.name, pos = compact_string(buf, pos)
    txn_offset_commit_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_txn_offset_commit_response_partition_v3_to_v5, 7
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return txn_offset_commit_response_topic, pos


def _read_response_v0_to_v2(buf: bytes, pos: int) -> tuple[TxnOffsetCommitResponse, int]:
    message = new(TxnOffsetCommitResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_txn_offset_commit_response_topic_v0_to_v2, 6)
    return message, pos


def _read_response_v3_to_v5(buf: bytes, pos: int) -> tuple[TxnOffsetCommitResponse, int]:
    message = new(TxnOffsetCommitResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_txn_offset_commit_response_topic_v3_to_v5, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_txn_offset_commit_response_partition_v0_to_v2(
    out: bytearray, txn_offset_commit_response_partition: TxnOffsetCommitResponsePartition, _inserts: Inserts
) -> None:
    out += _ih.pack(
        txn_offset_commit_response_partition.partition_index, txn_offset_commit_response_partition.error_code
    )


def _write_response_txn_offset_commit_response_partition_v3_to_v5(
    out: bytearray, txn_offset_commit_response_partition: TxnOffsetCommitResponsePartition, _inserts: Inserts
) -> None:
    out += _ihx.pack(
        txn_offset_commit_response_partition.partition_index, txn_offset_commit_response_partition.error_code
    )


def _write_response_txn_offset_commit_response_topic_v0_to_v2(
    out: bytearray, txn_offset_commit_response_topic: TxnOffsetCommitResponseTopic, inserts: Inserts
) -> None:
    put_string(out, txn_offset_commit_response_topic.name)
    put_array(
        out,
        txn_offset_commit_response_topic.partitions,
        _write_response_txn_offset_commit_response_partition_v0_to_v2,
        inserts,
    )


def _write_response_txn_offset_commit_response_topic_v3_to_v5(
    out: bytearray, txn_offset_commit_response_topic: TxnOffsetCommitResponseTopic, inserts: Inserts
) -> None:
    put_compact_string(out, txn_offset_commit_response_topic.name)
    put_compact_array(
        out,
        txn_offset_commit_response_topic.partitions,
        _write_response_txn_offset_commit_response_partition_v3_to_v5,
        inserts,
    )
    out.append(0)


def _write_response_v0_to_v2(out: bytearray, message: TxnOffsetCommitResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_txn_offset_commit_response_topic_v0_to_v2, inserts)


def _write_response_v3_to_v5(out: bytearray, message: TxnOffsetCommitResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_txn_offset_commit_response_topic_v3_to_v5, inserts)
    out.append(0)


REQUEST: MessageCodec[TxnOffsetCommitRequest] = MessageCodec(
    "TxnOffsetCommitRequest",
    0,
    (
        _read_request_v0_to_v1,
        _read_request_v0_to_v1,
        _read_request_v2,
        _read_request_v3_to_v5,
        _read_request_v3_to_v5,
        _read_request_v3_to_v5,
    ),
    (
        _write_request_v0_to_v1,
        _write_request_v0_to_v1,
        _write_request_v2,
        _write_request_v3_to_v5,
        _write_request_v3_to_v5,
        _write_request_v3_to_v5,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[TxnOffsetCommitResponse] = MessageCodec(
    "TxnOffsetCommitResponse",
    0,
    (
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v0_to_v2,
        _read_response_v3_to_v5,
        _read_response_v3_to_v5,
        _read_response_v3_to_v5,
    ),
    (
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v0_to_v2,
        _write_response_v3_to_v5,
        _write_response_v3_to_v5,
        _write_response_v3_to_v5,
    ),
    holds_views=False,
)
