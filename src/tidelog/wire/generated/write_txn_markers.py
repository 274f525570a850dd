"""WriteTxnMarkers: API key 27, v1 to v2."""
# Made by tools/wiregen from messages/write_txn_markers.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_numbers, compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_numbers, put_compact_string

_i = struct.Struct(">i")
_q = struct.Struct(">q")
_ib = struct.Struct(">ib")
_ih = struct.Struct(">ih")
_ix = struct.Struct(">ix")
_ibx = struct.Struct(">ibx")
_ihx = struct.Struct(">ihx")
_qht = struct.Struct(">qh?")


class WritableTxnMarkerTopic(Struct):
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


class WritableTxnMarker(Struct):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = EMPTY,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,  # 2+
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is EMPTY else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Struct):
    __slots__ = ("markers",)

    def __init__(
        self,
        markers: list[WritableTxnMarker] = EMPTY,
    ) -> None:
        self.markers = [] if markers is EMPTY else markers


class WritableTxnMarkerPartitionResult(Struct):
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


class WritableTxnMarkerTopicResult(Struct):
    __slots__ = (
        "name",
        "partitions",
    )

    def __init__(
        self,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class WritableTxnMarkerResult(Struct):
    __slots__ = (
        "producer_id",
        "topics",
    )

    def __init__(
        self,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = EMPTY,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is EMPTY else topics


class WriteTxnMarkersResponse(Struct):
    __slots__ = ("markers",)

    def __init__(
        self,
        markers: list[WritableTxnMarkerResult] = EMPTY,
    ) -> None:
        self.markers = [] if markers is EMPTY else markers


def _read_request_writable_txn_marker_topic_v1_to_v2(buf: bytes, pos: int) -> tuple[WritableTxnMarkerTopic, int]:
    writable_txn_marker_topic = new(WritableTxnMarkerTopic)
    writable_txn_marker_topic.name, pos = compact_string(buf, pos)
    writable_txn_marker_topic.partition_indexes, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return writable_txn_marker_topic, pos


def _read_request_writable_txn_marker_v1(buf: bytes, pos: int) -> tuple[WritableTxnMarker, int]:
    writable_txn_marker = new(WritableTxnMarker)
    writable_txn_marker.transaction_version = 0
    writable_txn_marker.producer_id, writable_txn_marker.producer_epoch, writable_txn_marker.transaction_result = (
        _qht.unpack_from(buf, pos)
    )
    pos += 11
    writable_txn_marker.topics, pos = compact_array(buf, pos, _read_request_writable_txn_marker_topic_v1_to_v2, 3, 2)
    (writable_txn_marker.coordinator_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return writable_txn_marker, pos


def _read_request_writable_txn_marker_v2(buf: bytes, pos: int) -> tuple[WritableTxnMarker, int]:
    writable_txn_marker = new(WritableTxnMarker)
    writable_txn_marker.producer_id, writable_txn_marker.producer_epoch, writable_txn_marker.transaction_result = (
        _qht.unpack_from(buf, pos)
    )
    pos += 11
    writable_txn_marker.topics, pos = compact_array(buf, pos, _read_request_writable_txn_marker_topic_v1_to_v2, 3, 2)
    writable_txn_marker.coordinator_epoch, writable_txn_marker.transaction_version = _ib.unpack_from(buf, pos)
    pos += 5
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return writable_txn_marker, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[WriteTxnMarkersRequest, int]:
    message = new(WriteTxnMarkersRequest)
    message.markers, pos = compact_array(buf, pos, _read_request_writable_txn_marker_v1, 17, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[WriteTxnMarkersRequest, int]:
    message = new(WriteTxnMarkersRequest)
    message.markers, pos = compact_array(buf, pos, _read_request_writable_txn_marker_v2, 18, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_writable_txn_marker_topic_v1_to_v2(
    out: bytearray, writable_txn_marker_topic: WritableTxnMarkerTopic, _inserts: Inserts
) -> None:
    put_compact_string(out, writable_txn_marker_topic.name)
    put_compact_numbers(out, writable_txn_marker_topic.partition_indexes, "i")
    out.append(0)


def _write_request_writable_txn_marker_v1(
    out: bytearray, writable_txn_marker: WritableTxnMarker, inserts: Inserts
) -> None:
    out += _qht.pack(
        writable_txn_marker.producer_id, writable_txn_marker.producer_epoch, writable_txn_marker.transaction_result
    )
    put_compact_array(out, writable_txn_marker.topics, _write_request_writable_txn_marker_topic_v1_to_v2, inserts)
    out += _ix.pack(writable_txn_marker.coordinator_epoch)


def _write_request_writable_txn_marker_v2(
    out: bytearray, writable_txn_marker: WritableTxnMarker, inserts: Inserts
) -> None:
    out += _qht.pack(
        writable_txn_marker.producer_id, writable_txn_marker.producer_epoch, writable_txn_marker.transaction_result
    )
    put_compact_array(out, writable_txn_marker.topics, _write_request_writable_txn_marker_topic_v1_to_v2, inserts)
    out += _ibx.pack(writable_txn_marker.coordinator_epoch, writable_txn_marker.transaction_version)


def _write_request_v1(out: bytearray, message: WriteTxnMarkersRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.markers, _write_request_writable_txn_marker_v1, inserts)
    out.append(0)


def _write_request_v2(out: bytearray, message: WriteTxnMarkersRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.markers, _write_request_writable_txn_marker_v2, inserts)
    out.append(0)


def _read_response_writable_txn_marker_partition_result_v1_to_v2(
    buf: bytes, pos: int
) -> tuple[WritableTxnMarkerPartitionResult, int]:
    writable_txn_marker_partition_result = new(WritableTxnMarkerPartitionResult)
    writable_txn_marker_partition_result.partition_index, writable_txn_marker_partition_result.error_code = (
        _ih.unpack_from(buf, pos)
    )
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return writable_txn_marker_partition_result, pos


def _read_response_writable_txn_marker_topic_result_v1_to_v2(
    buf: bytes, pos: int
) -> tuple[WritableTxnMarkerTopicResult, int]:
    writable_txn_marker_topic_result = new(WritableTxnMarkerTopicResult)
    writable_txn_marker_topic_result.name, pos = compact_string(buf, pos)
    writable_txn_marker_topic_result.partitions, pos = compact_array(
        buf, pos, _read_response_writable_txn_marker_partition_result_v1_to_v2, 7
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return writable_txn_marker_topic_result, pos


def _read_response_writable_txn_marker_result_v1_to_v2(buf: bytes, pos: int) -> tuple[WritableTxnMarkerResult, int]:
    writable_txn_marker_result = new(WritableTxnMarkerResult)
    (writable_txn_marker_result.producer_id,) = _q.unpack_from(buf, pos)
    pos += 8
    writable_txn_marker_result.topics, pos = compact_array(
        buf, pos, _read_response_writable_txn_marker_topic_result_v1_to_v2, 3
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return writable_txn_marker_result, pos


def _read_response_v1_to_v2(buf: bytes, pos: int) -> tuple[WriteTxnMarkersResponse, int]:
    message = new(WriteTxnMarkersResponse)
    message.markers, pos = compact_array(buf, pos, _read_response_writable_txn_marker_result_v1_to_v2, 10)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_writable_txn_marker_partition_result_v1_to_v2(
    out: bytearray, writable_txn_marker_partition_result: WritableTxnMarkerPartitionResult, _inserts: Inserts
) -> None:
    out += _ihx.pack(
        writable_txn_marker_partition_result.partition_index, writable_txn_marker_partition_result.error_code
    )


def _write_response_writable_txn_marker_topic_result_v1_to_v2(
    out: bytearray, writable_txn_marker_topic_result: WritableTxnMarkerTopicResult, inserts: Inserts
) -> None:
    put_compact_string(out, writable_txn_marker_topic_result.name)
    put_compact_array(
        out,
        writable_txn_marker_topic_result.partitions,
        _write_response_writable_txn_marker_partition_result_v1_to_v2,
        inserts,
    )
    out.append(0)


def _write_response_writable_txn_marker_result_v1_to_v2(
    out: bytearray, writable_txn_marker_result: WritableTxnMarkerResult, inserts: Inserts
) -> None:
    out += _q.pack(writable_txn_marker_result.producer_id)
    put_compact_array(
        out, writable_txn_marker_result.topics, _write_response_writable_txn_marker_topic_result_v1_to_v2, inserts
    )
    out.append(0)


def _write_response_v1_to_v2(out: bytearray, message: WriteTxnMarkersResponse, inserts: Inserts) -> None:
    put_compact_array(out, message.markers, _write_response_writable_txn_marker_result_v1_to_v2, inserts)
    out.append(0)


REQUEST: MessageCodec[WriteTxnMarkersRequest] = MessageCodec(
    "WriteTxnMarkersRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2,
    ),
    (
        _write_request_v1,
        _write_request_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[WriteTxnMarkersResponse] = MessageCodec(
    "WriteTxnMarkersResponse",
    1,
    (
        _read_response_v1_to_v2,
        _read_response_v1_to_v2,
    ),
    (
        _write_response_v1_to_v2,
        _write_response_v1_to_v2,
    ),
    holds_views=False,
)
