"""ShareAcknowledge: API key 79, v1 to v2."""
# Made by tools/wiregen from messages/share_acknowledge.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
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
    put_nullable_compact_string,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_i = struct.Struct(">i")
_it = struct.Struct(">i?")
_ih = struct.Struct(">ih")
_ii = struct.Struct(">ii")
_qq = struct.Struct(">qq")
_iix = struct.Struct(">iix")


class AcknowledgementBatch(Struct):
    __slots__ = (
        "first_offset",
        "last_offset",
        "acknowledge_types",
    )

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = EMPTY,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is EMPTY else acknowledge_types


class AcknowledgePartition(Struct):
    __slots__ = (
        "partition_index",
        "acknowledgement_batches",
    )

    def __init__(
        self,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is EMPTY else acknowledgement_batches


class AcknowledgeTopic(Struct):
    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,
        partitions: list[AcknowledgePartition] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ShareAcknowledgeRequest(Struct):
    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "is_renew_ack",
        "topics",
    )

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,  # 2+
        topics: list[AcknowledgeTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY else topics


class LeaderIdAndEpoch(Struct):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionData(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "current_leader",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader


class ShareAcknowledgeTopicResponse(Struct):
    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Struct):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ShareAcknowledgeResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,  # 2+
        responses: list[ShareAcknowledgeTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints


def _read_request_acknowledgement_batch_v1_to_v2(buf: bytes, pos: int) -> tuple[AcknowledgementBatch, int]:
    acknowledgement_batch = new(AcknowledgementBatch)
    acknowledgement_batch.first_offset, acknowledgement_batch.last_offset = _qq.unpack_from(buf, pos)
    pos += 16
    acknowledgement_batch.acknowledge_types, pos = compact_numbers(buf, pos, "b")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return acknowledgement_batch, pos


def _read_request_acknowledge_partition_v1_to_v2(buf: bytes, pos: int) -> tuple[AcknowledgePartition, int]:
    acknowledge_partition = new(AcknowledgePartition)
    (acknowledge_partition.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    acknowledge_partition.acknowledgement_batches, pos = compact_array(
        buf, pos, _read_request_acknowledgement_batch_v1_to_v2, 18
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return acknowledge_partition, pos


def _read_request_acknowledge_topic_v1_to_v2(buf: bytes, pos: int) -> tuple[AcknowledgeTopic, int]:
    acknowledge_topic = new(AcknowledgeTopic)
    (acknowledge_topic.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    acknowledge_topic.partitions, pos = compact_array(buf, pos, _read_request_acknowledge_partition_v1_to_v2, 6)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return acknowledge_topic, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[ShareAcknowledgeRequest, int]:
    message = new(ShareAcknowledgeRequest)
    message.is_renew_ack = False
    message.group_id, pos = nullable_compact_string(buf, pos)
    message.member_id, pos = nullable_compact_string(buf, pos)
    (message.share_session_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_request_acknowledge_topic_v1_to_v2, 18)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[ShareAcknowledgeRequest, int]:
    message = new(ShareAcknowledgeRequest)
    message.group_id, pos = nullable_compact_string(buf, pos)
    message.member_id, pos = nullable_compact_string(buf, pos)
    message.share_session_epoch, message.is_renew_ack = _it.unpack_from(buf, pos)
    pos += 5
    message.topics, pos = compact_array(buf, pos, _read_request_acknowledge_topic_v1_to_v2, 18)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_acknowledgement_batch_v1_to_v2(
    out: bytearray, acknowledgement_batch: AcknowledgementBatch, _inserts: Inserts
) -> None:
    out += _qq.pack(acknowledgement_batch.first_offset, acknowledgement_batch.last_offset)
    put_compact_numbers(out, acknowledgement_batch.acknowledge_types, "b")
    out.append(0)


def _write_request_acknowledge_partition_v1_to_v2(
    out: bytearray, acknowledge_partition: AcknowledgePartition, inserts: Inserts
) -> None:
    out += _i.pack(acknowledge_partition.partition_index)
    put_compact_array(
        out, acknowledge_partition.acknowledgement_batches, _write_request_acknowledgement_batch_v1_to_v2, inserts
    )
    out.append(0)


def _write_request_acknowledge_topic_v1_to_v2(
    out: bytearray, acknowledge_topic: AcknowledgeTopic, inserts: Inserts
) -> None:
    if len(acknowledge_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(acknowledge_topic.topic_id)
    put_compact_array(out, acknowledge_topic.partitions, _write_request_acknowledge_partition_v1_to_v2, inserts)
    out.append(0)


def _write_request_v1(out: bytearray, message: ShareAcknowledgeRequest, inserts: Inserts) -> None:
    if message.is_renew_ack:
        raise absent("is_renew_ack")
    put_nullable_compact_string(out, message.group_id)
    put_nullable_compact_string(out, message.member_id)
    out += _i.pack(message.share_session_epoch)
    put_compact_array(out, message.topics, _write_request_acknowledge_topic_v1_to_v2, inserts)
    out.append(0)


def _write_request_v2(out: bytearray, message: ShareAcknowledgeRequest, inserts: Inserts) -> None:
    put_nullable_compact_string(out, message.group_id)
    put_nullable_compact_string(out, message.member_id)
    out += _it.pack(message.share_session_epoch, message.is_renew_ack)
    put_compact_array(out, message.topics, _write_request_acknowledge_topic_v1_to_v2, inserts)
    out.append(0)


def _read_response_leader_id_and_epoch_v1_to_v2(buf: bytes, pos: int) -> tuple[LeaderIdAndEpoch, int]:
    leader_id_and_epoch = new(LeaderIdAndEpoch)
    leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch = _ii.unpack_from(buf, pos)
    pos += 8
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return leader_id_and_epoch, pos


def _read_response_partition_data_v1_to_v2(buf: bytes, pos: int) -> tuple[PartitionData, int]:
    partition_data = new(PartitionData)
    partition_data.partition_index, partition_data.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    partition_data.error_message, pos = nullable_compact_string(buf, pos)
    partition_data.current_leader, pos = _read_response_leader_id_and_epoch_v1_to_v2(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return partition_data, pos


def _read_response_share_acknowledge_topic_response_v1_to_v2(
    buf: bytes, pos: int
) -> tuple[ShareAcknowledgeTopicResponse, int]:
    share_acknowledge_topic_response = new(ShareAcknowledgeTopicResponse)
    (share_acknowledge_topic_response.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    share_acknowledge_topic_response.partitions, pos = compact_array(
        buf, pos, _read_response_partition_data_v1_to_v2, 17
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return share_acknowledge_topic_response, pos


def _read_response_node_endpoint_v1_to_v2(buf: bytes, pos: int) -> tuple[NodeEndpoint, int]:
    node_endpoint = new(NodeEndpoint)
    (node_endpoint.node_id,) = _i.unpack_from(buf, pos)
    pos += 4
    node_endpoint.host, pos = compact_string(buf, pos)
    (node_endpoint.port,) = _i.unpack_from(buf, pos)
    pos += 4
    node_endpoint.rack, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return node_endpoint, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[ShareAcknowledgeResponse, int]:
    message = new(ShareAcknowledgeResponse)
    message.acquisition_lock_timeout_ms = 0
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.responses, pos = compact_array(buf, pos, _read_response_share_acknowledge_topic_response_v1_to_v2, 18)
    message.node_endpoints, pos = compact_array(buf, pos, _read_response_node_endpoint_v1_to_v2, 11)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[ShareAcknowledgeResponse, int]:
    message = new(ShareAcknowledgeResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    (message.acquisition_lock_timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.responses, pos = compact_array(buf, pos, _read_response_share_acknowledge_topic_response_v1_to_v2, 18)
    message.node_endpoints, pos = compact_array(buf, pos, _read_response_node_endpoint_v1_to_v2, 11)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_leader_id_and_epoch_v1_to_v2(
    out: bytearray, leader_id_and_epoch: LeaderIdAndEpoch, _inserts: Inserts
) -> None:
    out += _iix.pack(leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch)


def _write_response_partition_data_v1_to_v2(out: bytearray, partition_data: PartitionData, inserts: Inserts) -> None:
    out += _ih.pack(partition_data.partition_index, partition_data.error_code)
    put_nullable_compact_string(out, partition_data.error_message)
    _write_response_leader_id_and_epoch_v1_to_v2(out, partition_data.current_leader, inserts)
    out.append(0)


def _write_response_share_acknowledge_topic_response_v1_to_v2(
    out: bytearray, share_acknowledge_topic_response: ShareAcknowledgeTopicResponse, inserts: Inserts
) -> None:
    if len(share_acknowledge_topic_response.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(share_acknowledge_topic_response.topic_id)
    put_compact_array(
        out, share_acknowledge_topic_response.partitions, _write_response_partition_data_v1_to_v2, inserts
    )
    out.append(0)


def _write_response_node_endpoint_v1_to_v2(out: bytearray, node_endpoint: NodeEndpoint, _inserts: Inserts) -> None:
    out += _i.pack(node_endpoint.node_id)
    put_compact_string(out, node_endpoint.host)
    out += _i.pack(node_endpoint.port)
    put_nullable_compact_string(out, node_endpoint.rack)
    out.append(0)


def _write_response_v1(out: bytearray, message: ShareAcknowledgeResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.responses, _write_response_share_acknowledge_topic_response_v1_to_v2, inserts)
    put_compact_array(out, message.node_endpoints, _write_response_node_endpoint_v1_to_v2, inserts)
    out.append(0)


def _write_response_v2(out: bytearray, message: ShareAcknowledgeResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    out += _i.pack(message.acquisition_lock_timeout_ms)
    put_compact_array(out, message.responses, _write_response_share_acknowledge_topic_response_v1_to_v2, inserts)
    put_compact_array(out, message.node_endpoints, _write_response_node_endpoint_v1_to_v2, inserts)
    out.append(0)


REQUEST: Codec[ShareAcknowledgeRequest] = Codec(
    "ShareAcknowledgeRequest",
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

RESPONSE: Codec[ShareAcknowledgeResponse] = Codec(
    "ShareAcknowledgeResponse",
    1,
    (
        _read_response_v1,
        _read_response_v2,
    ),
    (
        _write_response_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
