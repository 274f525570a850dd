"""DescribeQuorum: API key 55, v0 to v2."""
# Made by tools/wiregen from messages/describe_quorum.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import (
    absent,
    put_compact_array,
    put_compact_string,
    put_nullable_compact_string,
    wrong_uuid,
)

_w = struct.Struct(">H")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_wx = struct.Struct(">Hx")
_ih = struct.Struct(">ih")
_iq = struct.Struct(">iq")
_ix = struct.Struct(">ix")
_iiq = struct.Struct(">iiq")
_iqx = struct.Struct(">iqx")
_iqqq = struct.Struct(">iqqq")
_igqqq = struct.Struct(">i16sqqq")
_ihiiq = struct.Struct(">ihiiq")
_iqqqx = struct.Struct(">iqqqx")
_igqqqx = struct.Struct(">i16sqqqx")


class RequestPartitionData(Struct):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


class RequestTopicData(Struct):
    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[RequestPartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class DescribeQuorumRequest(Struct):
    __slots__ = ("topics",)

    def __init__(
        self,
        topics: list[RequestTopicData] = EMPTY,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics


class ReplicaState(Struct):
    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )

    def __init__(
        self,
        replica_id: int = 0,
        replica_directory_id: bytes = NO_UUID,  # 2+
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,  # 1+
        last_caught_up_timestamp: int = -1,  # 1+
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


class ResponsePartitionData(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",  # 2+
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = EMPTY,
        observers: list[ReplicaState] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = [] if current_voters is EMPTY else current_voters
        self.observers = [] if observers is EMPTY else observers


class ResponseTopicData(Struct):
    __slots__ = (
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[ResponsePartitionData] = EMPTY,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class Listener(Struct):
    __slots__ = (
        "name",
        "host",
        "port",
    )

    def __init__(
        self,
        name: str = "",  # 2+
        host: str = "",  # 2+
        port: int = 0,  # 2+
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


class Node(Struct):
    __slots__ = (
        "node_id",
        "listeners",
    )

    def __init__(
        self,
        node_id: int = 0,  # 2+
        listeners: list[Listener] = EMPTY,  # 2+
    ) -> None:
        self.node_id = node_id
        self.listeners = [] if listeners is EMPTY else listeners


class DescribeQuorumResponse(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "topics",
        "nodes",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",  # 2+
        topics: list[ResponseTopicData] = EMPTY,
        nodes: list[Node] = EMPTY,  # 2+
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is EMPTY else topics
        self.nodes = [] if nodes is EMPTY else nodes


def _read_request_request_partition_data_v0_to_v2(buf: bytes, pos: int) -> tuple[RequestPartitionData, int]:
    request_partition_data = new(RequestPartitionData)
    (request_partition_data.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return request_partition_data, pos


def _read_request_request_topic_data_v0_to_v2(buf: bytes, pos: int) -> tuple[RequestTopicData, int]:
    request_topic_data = new(RequestTopicData)
    request_topic_data.topic_name, pos = compact_string(buf, pos)
    request_topic_data.partitions, pos = compact_array(buf, pos, _read_request_request_partition_data_v0_to_v2, 5, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return request_topic_data, pos


def _read_request_v0_to_v2(buf: bytes, pos: int) -> tuple[DescribeQuorumRequest, int]:
    message = new(DescribeQuorumRequest)
    message.topics, pos = compact_array(buf, pos, _read_request_request_topic_data_v0_to_v2, 3, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_request_partition_data_v0_to_v2(
    out: bytearray, request_partition_data: RequestPartitionData, _inserts: Inserts
) -> None:
    out += _ix.pack(request_partition_data.partition_index)


def _write_request_request_topic_data_v0_to_v2(
    out: bytearray, request_topic_data: RequestTopicData, inserts: Inserts
) -> None:
    put_compact_string(out, request_topic_data.topic_name)
    put_compact_array(out, request_topic_data.partitions, _write_request_request_partition_data_v0_to_v2, inserts)
    out.append(0)


def _write_request_v0_to_v2(out: bytearray, message: DescribeQuorumRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.topics, _write_request_request_topic_data_v0_to_v2, inserts)
    out.append(0)


def _read_response_replica_state_v0(buf: bytes, pos: int) -> tuple[ReplicaState, int]:
    replica_state = new(ReplicaState)
    replica_state.replica_directory_id = NO_UUID
    replica_state.last_fetch_timestamp = -1
    replica_state.last_caught_up_timestamp = -1
    replica_state.replica_id, replica_state.log_end_offset = _iq.unpack_from(buf, pos)
    pos += 12
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return replica_state, pos


def _read_response_replica_state_v1(buf: bytes, pos: int) -> tuple[ReplicaState, int]:
    replica_state = new(ReplicaState)
    replica_state.replica_directory_id = NO_UUID
    (
        replica_state.replica_id,
        replica_state.log_end_offset,
        replica_state.last_fetch_timestamp,
        replica_state.last_caught_up_timestamp,
    ) = _iqqq.unpack_from(buf, pos)
    pos += 28
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return replica_state, pos


def _read_response_replica_state_v2(buf: bytes, pos: int) -> tuple[ReplicaState, int]:
    replica_state = new(ReplicaState)
    (
        replica_state.replica_id,
        replica_state.replica_directory_id,
        replica_state.log_end_offset,
        replica_state.last_fetch_timestamp,
        replica_state.last_caught_up_timestamp,
    ) = _igqqq.unpack_from(buf, pos)
    pos += 44
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return replica_state, pos


def _read_response_response_partition_data_v0(buf: bytes, pos: int) -> tuple[ResponsePartitionData, int]:
    response_partition_data = new(ResponsePartitionData)
    response_partition_data.error_message = ""
    (
        response_partition_data.partition_index,
        response_partition_data.error_code,
        response_partition_data.leader_id,
        response_partition_data.leader_epoch,
        response_partition_data.high_watermark,
    ) = _ihiiq.unpack_from(buf, pos)
    pos += 22
    response_partition_data.current_voters, pos = compact_array(buf, pos, _read_response_replica_state_v0, 13)
    response_partition_data.observers, pos = compact_array(buf, pos, _read_response_replica_state_v0, 13)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_partition_data, pos


def _read_response_response_partition_data_v1(buf: bytes, pos: int) -> tuple[ResponsePartitionData, int]:
    response_partition_data = new(ResponsePartitionData)
    response_partition_data.error_message = ""
    (
        response_partition_data.partition_index,
        response_partition_data.error_code,
        response_partition_data.leader_id,
        response_partition_data.leader_epoch,
        response_partition_data.high_watermark,
    ) = _ihiiq.unpack_from(buf, pos)
    pos += 22
    response_partition_data.current_voters, pos = compact_array(buf, pos, _read_response_replica_state_v1, 29)
    response_partition_data.observers, pos = compact_array(buf, pos, _read_response_replica_state_v1, 29)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_partition_data, pos


def _read_response_response_partition_data_v2(buf: bytes, pos: int) -> tuple[ResponsePartitionData, int]:
    response_partition_data = new(ResponsePartitionData)
    response_partition_data.partition_index, response_partition_data.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    response_partition_data.error_message, pos = nullable_compact_string(buf, pos)
    (
        response_partition_data.leader_id,
        response_partition_data.leader_epoch,
        response_partition_data.high_watermark,
    ) = _iiq.unpack_from(buf, pos)
    pos += 16
    response_partition_data.current_voters, pos = compact_array(buf, pos, _read_response_replica_state_v2, 45)
    response_partition_data.observers, pos = compact_array(buf, pos, _read_response_replica_state_v2, 45)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_partition_data, pos


def _read_response_response_topic_data_v0(buf: bytes, pos: int) -> tuple[ResponseTopicData, int]:
    response_topic_data = new(ResponseTopicData)
    response_topic_data.topic_name, pos = compact_string(buf, pos)
    response_topic_data.partitions, pos = compact_array(buf, pos, _read_response_response_partition_data_v0, 25)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_topic_data, pos


def _read_response_response_topic_data_v1(buf: bytes, pos: int) -> tuple[ResponseTopicData, int]:
    response_topic_data = new(ResponseTopicData)
    response_topic_data.topic_name, pos = compact_string(buf, pos)
    response_topic_data.partitions, pos = compact_array(buf, pos, _read_response_response_partition_data_v1, 25)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_topic_data, pos


def _read_response_response_topic_data_v2(buf: bytes, pos: int) -> tuple[ResponseTopicData, int]:
    response_topic_data = new(ResponseTopicData)
    response_topic_data.topic_name, pos = compact_string(buf, pos)
    response_topic_data.partitions, pos = compact_array(buf, pos, _read_response_response_partition_data_v2, 26)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_topic_data, pos


def _read_response_listener_v2(buf: bytes, pos: int) -> tuple[Listener, int]:
    listener = new(Listener)
    listener.name, pos = compact_string(buf, pos)
    listener.host, pos = compact_string(buf, pos)
    (listener.port,) = _w.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return listener, pos


def _read_response_node_v2(buf: bytes, pos: int) -> tuple[Node, int]:
    node = new(Node)
    (node.node_id,) = _i.unpack_from(buf, pos)
    pos += 4
    node.listeners, pos = compact_array(buf, pos, _read_response_listener_v2, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return node, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeQuorumResponse, int]:
    message = new(DescribeQuorumResponse)
    message.error_message = ""
    message.nodes = []
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.topics, pos = compact_array(buf, pos, _read_response_response_topic_data_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[DescribeQuorumResponse, int]:
    message = new(DescribeQuorumResponse)
    message.error_message = ""
    message.nodes = []
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.topics, pos = compact_array(buf, pos, _read_response_response_topic_data_v1, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[DescribeQuorumResponse, int]:
    message = new(DescribeQuorumResponse)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.topics, pos = compact_array(buf, pos, _read_response_response_topic_data_v2, 3)
    message.nodes, pos = compact_array(buf, pos, _read_response_node_v2, 6)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_replica_state_v0(out: bytearray, replica_state: ReplicaState, _inserts: Inserts) -> None:
    if replica_state.replica_directory_id != NO_UUID:
        raise absent("replica_directory_id")
    out += _iqx.pack(replica_state.replica_id, replica_state.log_end_offset)


def _write_response_replica_state_v1(out: bytearray, replica_state: ReplicaState, _inserts: Inserts) -> None:
    if replica_state.replica_directory_id != NO_UUID:
        raise absent("replica_directory_id")
    out += _iqqqx.pack(
        replica_state.replica_id,
        replica_state.log_end_offset,
        replica_state.last_fetch_timestamp,
        replica_state.last_caught_up_timestamp,
    )


def _write_response_replica_state_v2(out: bytearray, replica_state: ReplicaState, _inserts: Inserts) -> None:
    if len(replica_state.replica_directory_id) != 16:
        raise wrong_uuid("replica_directory_id")
    out += _igqqqx.pack(
        replica_state.replica_id,
        replica_state.replica_directory_id,
        replica_state.log_end_offset,
        replica_state.last_fetch_timestamp,
        replica_state.last_caught_up_timestamp,
    )


def _write_response_response_partition_data_v0(
    out: bytearray, response_partition_data: ResponsePartitionData, inserts: Inserts
) -> None:
    out += _ihiiq.pack(
        response_partition_data.partition_index,
        response_partition_data.error_code,
        response_partition_data.leader_id,
        response_partition_data.leader_epoch,
        response_partition_data.high_watermark,
    )
    put_compact_array(out, response_partition_data.current_voters, _write_response_replica_state_v0, inserts)
    put_compact_array(out, response_partition_data.observers, _write_response_replica_state_v0, inserts)
    out.append(0)


def _write_response_response_partition_data_v1(
    out: bytearray, response_partition_data: ResponsePartitionData, inserts: Inserts
) -> None:
    out += _ihiiq.pack(
        response_partition_data.partition_index,
        response_partition_data.error_code,
        response_partition_data.leader_id,
        response_partition_data.leader_epoch,
        response_partition_data.high_watermark,
    )
    put_compact_array(out, response_partition_data.current_voters, _write_response_replica_state_v1, inserts)
    put_compact_array(out, response_partition_data.observers, _write_response_replica_state_v1, inserts)
    out.append(0)


def _write_response_response_partition_data_v2(
    out: bytearray, response_partition_data: ResponsePartitionData, inserts: Inserts
) -> None:
    out += _ih.pack(response_partition_data.partition_index, response_partition_data.error_code)
    put_nullable_compact_string(out, response_partition_data.error_message)
    out += _iiq.pack(
        response_partition_data.leader_id,
        response_partition_data.leader_epoch,
        response_partition_data.high_watermark,
    )
    put_compact_array(out, response_partition_data.current_voters, _write_response_replica_state_v2, inserts)
    put_compact_array(out, response_partition_data.observers, _write_response_replica_state_v2, inserts)
    out.append(0)


def _write_response_response_topic_data_v0(
    out: bytearray, response_topic_data: ResponseTopicData, inserts: Inserts
) -> None:
    put_compact_string(out, response_topic_data.topic_name)
    put_compact_array(out, response_topic_data.partitions, _write_response_response_partition_data_v0, inserts)
    out.append(0)


def _write_response_response_topic_data_v1(
    out: bytearray, response_topic_data: ResponseTopicData, inserts: Inserts
) -> None:
    put_compact_string(out, response_topic_data.topic_name)
    put_compact_array(out, response_topic_data.partitions, _write_response_response_partition_data_v1, inserts)
    out.append(0)


def _write_response_response_topic_data_v2(
    out: bytearray, response_topic_data: ResponseTopicData, inserts: Inserts
) -> None:
    put_compact_string(out, response_topic_data.topic_name)
    put_compact_array(out, response_topic_data.partitions, _write_response_response_partition_data_v2, inserts)
    out.append(0)


def _write_response_listener_v2(out: bytearray, listener: Listener, _inserts: Inserts) -> None:
    put_compact_string(out, listener.name)
    put_compact_string(out, listener.host)
    out += _wx.pack(listener.port)


def _write_response_node_v2(out: bytearray, node: Node, inserts: Inserts) -> None:
    out += _i.pack(node.node_id)
    put_compact_array(out, node.listeners, _write_response_listener_v2, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: DescribeQuorumResponse, inserts: Inserts) -> None:
    if message.nodes:
        raise absent("nodes")
    out += _h.pack(message.error_code)
    put_compact_array(out, message.topics, _write_response_response_topic_data_v0, inserts)
    out.append(0)


def _write_response_v1(out: bytearray, message: DescribeQuorumResponse, inserts: Inserts) -> None:
    if message.nodes:
        raise absent("nodes")
    out += _h.pack(message.error_code)
    put_compact_array(out, message.topics, _write_response_response_topic_data_v1, inserts)
    out.append(0)


def _write_response_v2(out: bytearray, message: DescribeQuorumResponse, inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.topics, _write_response_response_topic_data_v2, inserts)
    put_compact_array(out, message.nodes, _write_response_node_v2, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeQuorumRequest] = MessageCodec(
    "DescribeQuorumRequest",
    0,
    (
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
    ),
    (
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeQuorumResponse] = MessageCodec(
    "DescribeQuorumResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1,
        _read_response_v2,
    ),
    (
        _write_response_v0,
        _write_response_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
