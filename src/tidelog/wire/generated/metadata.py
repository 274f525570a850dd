"""Metadata: API key 3, v0 to v13."""
# Made by tools/wiregen from messages/metadata.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_numbers,
    compact_string,
    nullable_array,
    nullable_compact_array,
    nullable_compact_string,
    nullable_string,
    numbers,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    null_in_this_version,
    put_array,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_array,
    put_nullable_compact_array,
    put_nullable_compact_string,
    put_nullable_string,
    put_numbers,
    put_string,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_t = struct.Struct(">?")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_gt = struct.Struct(">16s?")
_tt = struct.Struct(">??")
_hx = struct.Struct(">hx")
_ix = struct.Struct(">ix")
_ttt = struct.Struct(">???")
_ttx = struct.Struct(">??x")
_hii = struct.Struct(">hii")
_tttx = struct.Struct(">???x")
_hiii = struct.Struct(">hiii")


class MetadataRequestTopic(Struct):
    __slots__ = (
        "topic_id",
        "name",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,  # 10+
        name: str | None = "",
    ) -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Struct):
    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )

    def __init__(
        self,
        topics: list[MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,  # 4+
        include_cluster_authorized_operations: bool = False,  # 8-10
        include_topic_authorized_operations: bool = False,  # 8+
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


class MetadataResponseBroker(Struct):
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
        rack: str | None = None,  # 1+
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class MetadataResponsePartition(Struct):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
    )

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,  # 7+
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        offline_replicas: list[int] = EMPTY,  # 5+
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes = [] if isr_nodes is EMPTY else isr_nodes
        self.offline_replicas = [] if offline_replicas is EMPTY else offline_replicas


class MetadataResponseTopic(Struct):
    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = NO_UUID,  # 10+
        is_internal: bool = False,  # 1+
        partitions: list[MetadataResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,  # 8+
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 3+
        brokers: list[MetadataResponseBroker] = EMPTY,
        cluster_id: str | None = None,  # 2+
        controller_id: int = -1,  # 1+
        topics: list[MetadataResponseTopic] = EMPTY,
        cluster_authorized_operations: int = -2147483648,  # 8-10
        error_code: int = 0,  # 13+
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is EMPTY else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code


def _read_request_metadata_request_topic_v0_to_v8(buf: bytes, pos: int) -> tuple[MetadataRequestTopic, int]:
    metadata_request_topic = new(MetadataRequestTopic)
    metadata_request_topic.topic_id = NO_UUID
    metadata_request_topic.name, pos = string(buf, pos)
    return metadata_request_topic, pos


def _read_request_metadata_request_topic_v9(buf: bytes, pos: int) -> tuple[MetadataRequestTopic, int]:
    metadata_request_topic = new(MetadataRequestTopic)
    metadata_request_topic.topic_id = NO_UUID
    metadata_request_topic.name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return metadata_request_topic, pos


def _read_request_metadata_request_topic_v10_to_v13(buf: bytes, pos: int) -> tuple[MetadataRequestTopic, int]:
    metadata_request_topic = new(MetadataRequestTopic)
    (metadata_request_topic.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    metadata_request_topic.name, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return metadata_request_topic, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.allow_auto_topic_creation = True
    message.include_cluster_authorized_operations = False
    message.include_topic_authorized_operations = False
    message.topics, pos = array(buf, pos, _read_request_metadata_request_topic_v0_to_v8, 2, 1)
    return message, pos


def _read_request_v1_to_v3(buf: bytes, pos: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.allow_auto_topic_creation = True
    message.include_cluster_authorized_operations = False
    message.include_topic_authorized_operations = False
    message.topics, pos = nullable_array(buf, pos, _read_request_metadata_request_topic_v0_to_v8, 2, 1)
    return message, pos


def _read_request_v4_to_v7(buf: bytes, pos: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.include_cluster_authorized_operations = False
    message.include_topic_authorized_operations = False
    message.topics, pos = nullable_array(buf, pos, _read_request_metadata_request_topic_v0_to_v8, 2, 1)
    (message.allow_auto_topic_creation,) = _t.unpack_from(buf, pos)
    pos += 1
    return message, pos


def _read_request_v8(buf: bytes, pos: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.topics, pos = nullable_array(buf, pos, _read_request_metadata_request_topic_v0_to_v8, 2, 1)
    (
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    ) = _ttt.unpack_from(buf, pos)
    pos += 3
    return message, pos


def _read_request_v9(buf: bytes, pos: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.topics, pos = nullable_compact_array(buf, pos, _read_request_metadata_request_topic_v9, 2, 1)
    (
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    ) = _ttt.unpack_from(buf, pos)
    pos += 3
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v10(buf: bytes, pos: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.topics, pos = nullable_compact_array(buf, pos, _read_request_metadata_request_topic_v10_to_v13, 18, 1)
    (
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    ) = _ttt.unpack_from(buf, pos)
    pos += 3
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v11_to_v13(buf: bytes, pos: int) -> tuple[MetadataRequest, int]:
    message = new(MetadataRequest)
    message.include_cluster_authorized_operations = False
    message.topics, pos = nullable_compact_array(buf, pos, _read_request_metadata_request_topic_v10_to_v13, 18, 1)
    message.allow_auto_topic_creation, message.include_topic_authorized_operations = _tt.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_metadata_request_topic_v0_to_v8(
    out: bytearray, metadata_request_topic: MetadataRequestTopic, _inserts: Inserts
) -> None:
    if metadata_request_topic.name is None:
        raise null_in_this_version("name")
    put_string(out, metadata_request_topic.name)


def _write_request_metadata_request_topic_v9(
    out: bytearray, metadata_request_topic: MetadataRequestTopic, _inserts: Inserts
) -> None:
    if metadata_request_topic.name is None:
        raise null_in_this_version("name")
    put_compact_string(out, metadata_request_topic.name)
    out.append(0)


def _write_request_metadata_request_topic_v10_to_v13(
    out: bytearray, metadata_request_topic: MetadataRequestTopic, _inserts: Inserts
) -> None:
    if len(metadata_request_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(metadata_request_topic.topic_id)
    put_nullable_compact_string(out, metadata_request_topic.name)
    out.append(0)


def _write_request_v0(out: bytearray, message: MetadataRequest, inserts: Inserts) -> None:
    if not message.allow_auto_topic_creation:
        raise absent("allow_auto_topic_creation")
    if message.include_cluster_authorized_operations:
        raise absent("include_cluster_authorized_operations")
    if message.include_topic_authorized_operations:
        raise absent("include_topic_authorized_operations")
    if message.topics is None:
        raise null_in_this_version("topics")
    put_array(out, message.topics, _write_request_metadata_request_topic_v0_to_v8, inserts)


def _write_request_v1_to_v3(out: bytearray, message: MetadataRequest, inserts: Inserts) -> None:
    if not message.allow_auto_topic_creation:
        raise absent("allow_auto_topic_creation")
    if message.include_cluster_authorized_operations:
        raise absent("include_cluster_authorized_operations")
    if message.include_topic_authorized_operations:
        raise absent("include_topic_authorized_operations")
    put_nullable_array(out, message.topics, _write_request_metadata_request_topic_v0_to_v8, inserts)


def _write_request_v4_to_v7(out: bytearray, message: MetadataRequest, inserts: Inserts) -> None:
    if message.include_cluster_authorized_operations:
        raise absent("include_cluster_authorized_operations")
    if message.include_topic_authorized_operations:
        raise absent("include_topic_authorized_operations")
    put_nullable_array(out, message.topics, _write_request_metadata_request_topic_v0_to_v8, inserts)
    out += _t.pack(message.allow_auto_topic_creation)


def _write_request_v8(out: bytearray, message: MetadataRequest, inserts: Inserts) -> None:
    put_nullable_array(out, message.topics, _write_request_metadata_request_topic_v0_to_v8, inserts)
    out += _ttt.pack(
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    )


def _write_request_v9(out: bytearray, message: MetadataRequest, inserts: Inserts) -> None:
    put_nullable_compact_array(out, message.topics, _write_request_metadata_request_topic_v9, inserts)
    out += _tttx.pack(
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    )


def _write_request_v10(out: bytearray, message: MetadataRequest, inserts: Inserts) -> None:
    put_nullable_compact_array(out, message.topics, _write_request_metadata_request_topic_v10_to_v13, inserts)
    out += _tttx.pack(
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    )


def _write_request_v11_to_v13(out: bytearray, message: MetadataRequest, inserts: Inserts) -> None:
    if message.include_cluster_authorized_operations:
        raise absent("include_cluster_authorized_operations")
    put_nullable_compact_array(out, message.topics, _write_request_metadata_request_topic_v10_to_v13, inserts)
    out += _ttx.pack(message.allow_auto_topic_creation, message.include_topic_authorized_operations)


def _read_response_metadata_response_broker_v0(buf: bytes, pos: int) -> tuple[MetadataResponseBroker, int]:
    metadata_response_broker = new(MetadataResponseBroker)
    metadata_response_broker.rack = None
    (metadata_response_broker.node_id,) = _i.unpack_from(buf, pos)
    pos += 4
    metadata_response_broker.host, pos = string(buf, pos)
    (metadata_response_broker.port,) = _i.unpack_from(buf, pos)
    pos += 4
    return metadata_response_broker, pos


def _read_response_metadata_response_broker_v1_to_v8(buf: bytes, pos: int) -> tuple[MetadataResponseBroker, int]:
    metadata_response_broker = new(MetadataResponseBroker)
    (metadata_response_broker.node_id,) = _i.unpack_from(buf, pos)
    pos += 4
    metadata_response_broker.host, pos = string(buf, pos)
    (metadata_response_broker.port,) = _i.unpack_from(buf, pos)
    pos += 4
    metadata_response_broker.rack, pos = nullable_string(buf, pos)
    return metadata_response_broker, pos


def _read_response_metadata_response_broker_v9_to_v13(buf: bytes, pos: int) -> tuple[MetadataResponseBroker, int]:
    metadata_response_broker = new(MetadataResponseBroker)
    (metadata_response_broker.node_id,) = _i.unpack_from(buf, pos)
    pos += 4
    metadata_response_broker.host, pos = compact_string(buf, pos)
    (metadata_response_broker.port,) = _i.unpack_from(buf, pos)
    pos += 4
    metadata_response_broker.rack, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return metadata_response_broker, pos


def _read_response_metadata_response_partition_v0_to_v4(
    buf: bytes, pos: int
) -> tuple[MetadataResponsePartition, int]:
    metadata_response_partition = new(MetadataResponsePartition)
    metadata_response_partition.leader_epoch = -1
    metadata_response_partition.offline_replicas = []
    (
        metadata_response_partition.error_code,
        metadata_response_partition.partition_index,
        metadata_response_partition.leader_id,
    ) = _hii.unpack_from(buf, pos)
    pos += 10
    metadata_response_partition.replica_nodes, pos = numbers(buf, pos, "i")
    metadata_response_partition.isr_nodes, pos = numbers(buf, pos, "i")
    return metadata_response_partition, pos


def _read_response_metadata_response_partition_v5_to_v6(
    buf: bytes, pos: int
) -> tuple[MetadataResponsePartition, int]:
    metadata_response_partition = new(MetadataResponsePartition)
    metadata_response_partition.leader_epoch = -1
    (
        metadata_response_partition.error_code,
        metadata_response_partition.partition_index,
        metadata_response_partition.leader_id,
    ) = _hii.unpack_from(buf, pos)
    pos += 10
    metadata_response_partition.replica_nodes, pos = numbers(buf, pos, "i")
    metadata_response_partition.isr_nodes, pos = numbers(buf, pos, "i")
    metadata_response_partition.offline_replicas, pos = numbers(buf, pos, "i")
    return metadata_response_partition, pos


def _read_response_metadata_response_partition_v7_to_v8(
    buf: bytes, pos: int
) -> tuple[MetadataResponsePartition, int]:
    metadata_response_partition = new(MetadataResponsePartition)
    (
        metadata_response_partition.error_code,
        metadata_response_partition.partition_index,
        metadata_response_partition.leader_id,
        metadata_response_partition.leader_epoch,
    ) = _hiii.unpack_from(buf, pos)
    pos += 14
    metadata_response_partition.replica_nodes, pos = numbers(buf, pos, "i")
    metadata_response_partition.isr_nodes, pos = numbers(buf, pos, "i")
    metadata_response_partition.offline_replicas, pos = numbers(buf, pos, "i")
    return metadata_response_partition, pos


def _read_response_metadata_response_partition_v9_to_v13(
    buf: bytes, pos: int
) -> tuple[MetadataResponsePartition, int]:
    metadata_response_partition = new(MetadataResponsePartition)
    (
        metadata_response_partition.error_code,
        metadata_response_partition.partition_index,
        metadata_response_partition.leader_id,
        metadata_response_partition.leader_epoch,
    ) = _hiii.unpack_from(buf, pos)
    pos += 14
    metadata_response_partition.replica_nodes, pos = compact_numbers(buf, pos, "i")
    metadata_response_partition.isr_nodes, pos = compact_numbers(buf, pos, "i")
    metadata_response_partition.offline_replicas, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return metadata_response_partition, pos


def _read_response_metadata_response_topic_v0(buf: bytes, pos: int) -> tuple[MetadataResponseTopic, int]:
    metadata_response_topic = new(MetadataResponseTopic)
    metadata_response_topic.topic_id = NO_UUID
    metadata_response_topic.is_internal = False
    metadata_response_topic.topic_authorized_operations = -2147483648
    (metadata_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    metadata_response_topic.name, pos = string(buf, pos)
    metadata_response_topic.partitions, pos = array(buf, pos, _read_response_metadata_response_partition_v0_to_v4, 18)
    return metadata_response_topic, pos


def _read_response_metadata_response_topic_v1_to_v4(buf: bytes, pos: int) -> tuple[MetadataResponseTopic, int]:
    metadata_response_topic = new(MetadataResponseTopic)
    metadata_response_topic.topic_id = NO_UUID
    metadata_response_topic.topic_authorized_operations = -2147483648
    (metadata_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    metadata_response_topic.name, pos = string(buf, pos)
    (metadata_response_topic.is_internal,) = _t.unpack_from(buf, pos)
    pos += 1
    metadata_response_topic.partitions, pos = array(buf, pos, _read_response_metadata_response_partition_v0_to_v4, 18)
    return metadata_response_topic, pos


def _read_response_metadata_response_topic_v5_to_v6(buf: bytes, pos: int) -> tuple[MetadataResponseTopic, int]:
    metadata_response_topic = new(MetadataResponseTopic)
    metadata_response_topic.topic_id = NO_UUID
    metadata_response_topic.topic_authorized_operations = -2147483648
    (metadata_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    metadata_response_topic.name, pos = string(buf, pos)
    (metadata_response_topic.is_internal,) = _t.unpack_from(buf, pos)
    pos += 1
    metadata_response_topic.partitions, pos = array(buf, pos, _read_response_metadata_response_partition_v5_to_v6, 22)
    return metadata_response_topic, pos


def _read_response_metadata_response_topic_v7(buf: bytes, pos: int) -> tuple[MetadataResponseTopic, int]:
    metadata_response_topic = new(MetadataResponseTopic)
    metadata_response_topic.topic_id = NO_UUID
    metadata_response_topic.topic_authorized_operations = -2147483648
    (metadata_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    metadata_response_topic.name, pos = string(buf, pos)
    (metadata_response_topic.is_internal,) = _t.unpack_from(buf, pos)
    pos += 1
    metadata_response_topic.partitions, pos = array(buf, pos, _read_response_metadata_response_partition_v7_to_v8, 26)
    return metadata_response_topic, pos


def _read_response_metadata_response_topic_v8(buf: bytes, pos: int) -> tuple[MetadataResponseTopic, int]:
    metadata_response_topic = new(MetadataResponseTopic)
    metadata_response_topic.topic_id = NO_UUID
    (metadata_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    metadata_response_topic.name, pos = string(buf, pos)
    (metadata_response_topic.is_internal,) = _t.unpack_from(buf, pos)
    pos += 1
    metadata_response_topic.partitions, pos = array(buf, pos, _read_response_metadata_response_partition_v7_to_v8, 26)
    (metadata_response_topic.topic_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    return metadata_response_topic, pos


def _read_response_metadata_response_topic_v9(buf: bytes, pos: int) -> tuple[MetadataResponseTopic, int]:
    metadata_response_topic = new(MetadataResponseTopic)
    metadata_response_topic.topic_id = NO_UUID
    (metadata_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    metadata_response_topic.name, pos = compact_string(buf, pos)
    (metadata_response_topic.is_internal,) = _t.unpack_from(buf, pos)
    pos += 1
    metadata_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_metadata_response_partition_v9_to_v13, 18
    )
    (metadata_response_topic.topic_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return metadata_response_topic, pos


def _read_response_metadata_response_topic_v10_to_v11(buf: bytes, pos: int) -> tuple[MetadataResponseTopic, int]:
    metadata_response_topic = new(MetadataResponseTopic)
    (metadata_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    metadata_response_topic.name, pos = compact_string(buf, pos)
    metadata_response_topic.topic_id, metadata_response_topic.is_internal = _gt.unpack_from(buf, pos)
    pos += 17
    metadata_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_metadata_response_partition_v9_to_v13, 18
    )
    (metadata_response_topic.topic_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return metadata_response_topic, pos


def _read_response_metadata_response_topic_v12_to_v13(buf: bytes, pos: int) -> tuple[MetadataResponseTopic, int]:
    metadata_response_topic = new(MetadataResponseTopic)
    (metadata_response_topic.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    metadata_response_topic.name, pos = nullable_compact_string(buf, pos)
    metadata_response_topic.topic_id, metadata_response_topic.is_internal = _gt.unpack_from(buf, pos)
    pos += 17
    metadata_response_topic.partitions, pos = compact_array(
        buf, pos, _read_response_metadata_response_partition_v9_to_v13, 18
    )
    (metadata_response_topic.topic_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return metadata_response_topic, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.throttle_time_ms = 0
    message.cluster_id = None
    message.controller_id = -1
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.brokers, pos = array(buf, pos, _read_response_metadata_response_broker_v0, 10)
    message.topics, pos = array(buf, pos, _read_response_metadata_response_topic_v0, 8)
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.throttle_time_ms = 0
    message.cluster_id = None
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.brokers, pos = array(buf, pos, _read_response_metadata_response_broker_v1_to_v8, 12)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_metadata_response_topic_v1_to_v4, 9)
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.throttle_time_ms = 0
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.brokers, pos = array(buf, pos, _read_response_metadata_response_broker_v1_to_v8, 12)
    message.cluster_id, pos = nullable_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_metadata_response_topic_v1_to_v4, 9)
    return message, pos


def _read_response_v3_to_v4(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = array(buf, pos, _read_response_metadata_response_broker_v1_to_v8, 12)
    message.cluster_id, pos = nullable_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_metadata_response_topic_v1_to_v4, 9)
    return message, pos


def _read_response_v5_to_v6(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = array(buf, pos, _read_response_metadata_response_broker_v1_to_v8, 12)
    message.cluster_id, pos = nullable_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_metadata_response_topic_v5_to_v6, 9)
    return message, pos


def _read_response_v7(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = array(buf, pos, _read_response_metadata_response_broker_v1_to_v8, 12)
    message.cluster_id, pos = nullable_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_metadata_response_topic_v7, 9)
    return message, pos


def _read_response_v8(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = array(buf, pos, _read_response_metadata_response_broker_v1_to_v8, 12)
    message.cluster_id, pos = nullable_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_metadata_response_topic_v8, 13)
    (message.cluster_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v9(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = compact_array(buf, pos, _read_response_metadata_response_broker_v9_to_v13, 11)
    message.cluster_id, pos = nullable_compact_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_metadata_response_topic_v9, 10)
    (message.cluster_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v10(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = compact_array(buf, pos, _read_response_metadata_response_broker_v9_to_v13, 11)
    message.cluster_id, pos = nullable_compact_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_metadata_response_topic_v10_to_v11, 26)
    (message.cluster_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v11(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = compact_array(buf, pos, _read_response_metadata_response_broker_v9_to_v13, 11)
    message.cluster_id, pos = nullable_compact_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_metadata_response_topic_v10_to_v11, 26)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v12(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = compact_array(buf, pos, _read_response_metadata_response_broker_v9_to_v13, 11)
    message.cluster_id, pos = nullable_compact_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_metadata_response_topic_v12_to_v13, 26)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v13(buf: bytes, pos: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = compact_array(buf, pos, _read_response_metadata_response_broker_v9_to_v13, 11)
    message.cluster_id, pos = nullable_compact_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_metadata_response_topic_v12_to_v13, 26)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_metadata_response_broker_v0(
    out: bytearray, metadata_response_broker: MetadataResponseBroker, _inserts: Inserts
) -> None:
    out += _i.pack(metadata_response_broker.node_id)
    put_string(out, metadata_response_broker.host)
    out += _i.pack(metadata_response_broker.port)


def _write_response_metadata_response_broker_v1_to_v8(
    out: bytearray, metadata_response_broker: MetadataResponseBroker, _inserts: Inserts
) -> None:
    out += _i.pack(metadata_response_broker.node_id)
    put_string(out, metadata_response_broker.host)
    out += _i.pack(metadata_response_broker.port)
    put_nullable_string(out, metadata_response_broker.rack)


def _write_response_metadata_response_broker_v9_to_v13(
    out: bytearray, metadata_response_broker: MetadataResponseBroker, _inserts: Inserts
) -> None:
    out += _i.pack(metadata_response_broker.node_id)
    put_compact_string(out, metadata_response_broker.host)
    out += _i.pack(metadata_response_broker.port)
    put_nullable_compact_string(out, metadata_response_broker.rack)
    out.append(0)


def _write_response_metadata_response_partition_v0_to_v4(
    out: bytearray, metadata_response_partition: MetadataResponsePartition, _inserts: Inserts
) -> None:
    out += _hii.pack(
        metadata_response_partition.error_code,
        metadata_response_partition.partition_index,
        metadata_response_partition.leader_id,
    )
    put_numbers(out, metadata_response_partition.replica_nodes, "i")
    put_numbers(out, metadata_response_partition.isr_nodes, "i")


def _write_response_metadata_response_partition_v5_to_v6(
    out: bytearray, metadata_response_partition: MetadataResponsePartition, _inserts: Inserts
) -> None:
    out += _hii.pack(
        metadata_response_partition.error_code,
        metadata_response_partition.partition_index,
        metadata_response_partition.leader_id,
    )
    put_numbers(out, metadata_response_partition.replica_nodes, "i")
    put_numbers(out, metadata_response_partition.isr_nodes, "i")
    put_numbers(out, metadata_response_partition.offline_replicas, "i")


def _write_response_metadata_response_partition_v7_to_v8(
    out: bytearray, metadata_response_partition: MetadataResponsePartition, _inserts: Inserts
) -> None:
    out += _hiii.pack(
        metadata_response_partition.error_code,
        metadata_response_partition.partition_index,
        metadata_response_partition.leader_id,
        metadata_response_partition.leader_epoch,
    )
    put_numbers(out, metadata_response_partition.replica_nodes, "i")
    put_numbers(out, metadata_response_partition.isr_nodes, "i")
    put_numbers(out, metadata_response_partition.offline_replicas, "i")


def _write_response_metadata_response_partition_v9_to_v13(
    out: bytearray, metadata_response_partition: MetadataResponsePartition, _inserts: Inserts
) -> None:
    out += _hiii.pack(
        metadata_response_partition.error_code,
        metadata_response_partition.partition_index,
        metadata_response_partition.leader_id,
        metadata_response_partition.leader_epoch,
    )
    put_compact_numbers(out, metadata_response_partition.replica_nodes, "i")
    put_compact_numbers(out, metadata_response_partition.isr_nodes, "i")
    put_compact_numbers(out, metadata_response_partition.offline_replicas, "i")
    out.append(0)


def _write_response_metadata_response_topic_v0(
    out: bytearray, metadata_response_topic: MetadataResponseTopic, inserts: Inserts
) -> None:
    if metadata_response_topic.topic_authorized_operations != -2147483648:
        raise absent("topic_authorized_operations")
    if metadata_response_topic.name is None:
        raise null_in_this_version("name")
    out += _h.pack(metadata_response_topic.error_code)
    put_string(out, metadata_response_topic.name)
    put_array(out, metadata_response_topic.partitions, _write_response_metadata_response_partition_v0_to_v4, inserts)


def _write_response_metadata_response_topic_v1_to_v4(
    out: bytearray, metadata_response_topic: MetadataResponseTopic, inserts: Inserts
) -> None:
    if metadata_response_topic.topic_authorized_operations != -2147483648:
        raise absent("topic_authorized_operations")
    if metadata_response_topic.name is None:
        raise null_in_this_version("name")
    out += _h.pack(metadata_response_topic.error_code)
    put_string(out, metadata_response_topic.name)
    out += _t.pack(metadata_response_topic.is_internal)
    put_array(out, metadata_response_topic.partitions, _write_response_metadata_response_partition_v0_to_v4, inserts)


def _write_response_metadata_response_topic_v5_to_v6(
    out: bytearray, metadata_response_topic: MetadataResponseTopic, inserts: Inserts
) -> None:
    if metadata_response_topic.topic_authorized_operations != -2147483648:
        raise absent("topic_authorized_operations")
    if metadata_response_topic.name is None:
        raise null_in_this_version("name")
    out += _h.pack(metadata_response_topic.error_code)
    put_string(out, metadata_response_topic.name)
    out += _t.pack(metadata_response_topic.is_internal)
    put_array(out, metadata_response_topic.partitions, _write_response_metadata_response_partition_v5_to_v6, inserts)


def _write_response_metadata_response_topic_v7(
    out: bytearray, metadata_response_topic: MetadataResponseTopic, inserts: Inserts
) -> None:
    if metadata_response_topic.topic_authorized_operations != -2147483648:
        raise absent("topic_authorized_operations")
    if metadata_response_topic.name is None:
        raise null_in_this_version("name")
    out += _h.pack(metadata_response_topic.error_code)
    put_string(out, metadata_response_topic.name)
    out += _t.pack(metadata_response_topic.is_internal)
    put_array(out, metadata_response_topic.partitions, _write_response_metadata_response_partition_v7_to_v8, inserts)


def _write_response_metadata_response_topic_v8(
    out: bytearray, metadata_response_topic: MetadataResponseTopic, inserts: Inserts
) -> None:
    if metadata_response_topic.name is None:
        raise null_in_this_version("name")
    out += _h.pack(metadata_response_topic.error_code)
    put_string(out, metadata_response_topic.name)
    out += _t.pack(metadata_response_topic.is_internal)
    put_array(out, metadata_response_topic.partitions, _write_response_metadata_response_partition_v7_to_v8, inserts)
    out += _i.pack(metadata_response_topic.topic_authorized_operations)


def _write_response_metadata_response_topic_v9(
    out: bytearray, metadata_response_topic: MetadataResponseTopic, inserts: Inserts
) -> None:
    if metadata_response_topic.name is None:
        raise null_in_this_version("name")
    out += _h.pack(metadata_response_topic.error_code)
    put_compact_string(out, metadata_response_topic.name)
    out += _t.pack(metadata_response_topic.is_internal)
    put_compact_array(
        out, metadata_response_topic.partitions, _write_response_metadata_response_partition_v9_to_v13, inserts
    )
    out += _ix.pack(metadata_response_topic.topic_authorized_operations)


def _write_response_metadata_response_topic_v10_to_v11(
    out: bytearray, metadata_response_topic: MetadataResponseTopic, inserts: Inserts
) -> None:
    if metadata_response_topic.name is None:
        raise null_in_this_version("name")
    out += _h.pack(metadata_response_topic.error_code)
    put_compact_string(out, metadata_response_topic.name)
    if len(metadata_response_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _gt.pack(metadata_response_topic.topic_id, metadata_response_topic.is_internal)
    put_compact_array(
        out, metadata_response_topic.partitions, _write_response_metadata_response_partition_v9_to_v13, inserts
    )
    out += _ix.pack(metadata_response_topic.topic_authorized_operations)


def _write_response_metadata_response_topic_v12_to_v13(
    out: bytearray, metadata_response_topic: MetadataResponseTopic, inserts: Inserts
) -> None:
    out += _h.pack(metadata_response_topic.error_code)
    put_nullable_compact_string(out, metadata_response_topic.name)
    if len(metadata_response_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _gt.pack(metadata_response_topic.topic_id, metadata_response_topic.is_internal)
    put_compact_array(
        out, metadata_response_topic.partitions, _write_response_metadata_response_partition_v9_to_v13, inserts
    )
    out += _ix.pack(metadata_response_topic.topic_authorized_operations)


def _write_response_v0(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    put_array(out, message.brokers, _write_response_metadata_response_broker_v0, inserts)
    put_array(out, message.topics, _write_response_metadata_response_topic_v0, inserts)


def _write_response_v1(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    put_array(out, message.brokers, _write_response_metadata_response_broker_v1_to_v8, inserts)
    out += _i.pack(message.controller_id)
    put_array(out, message.topics, _write_response_metadata_response_topic_v1_to_v4, inserts)


def _write_response_v2(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    put_array(out, message.brokers, _write_response_metadata_response_broker_v1_to_v8, inserts)
    put_nullable_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_array(out, message.topics, _write_response_metadata_response_topic_v1_to_v4, inserts)


def _write_response_v3_to_v4(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.brokers, _write_response_metadata_response_broker_v1_to_v8, inserts)
    put_nullable_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_array(out, message.topics, _write_response_metadata_response_topic_v1_to_v4, inserts)


def _write_response_v5_to_v6(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.brokers, _write_response_metadata_response_broker_v1_to_v8, inserts)
    put_nullable_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_array(out, message.topics, _write_response_metadata_response_topic_v5_to_v6, inserts)


def _write_response_v7(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.brokers, _write_response_metadata_response_broker_v1_to_v8, inserts)
    put_nullable_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_array(out, message.topics, _write_response_metadata_response_topic_v7, inserts)


def _write_response_v8(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.brokers, _write_response_metadata_response_broker_v1_to_v8, inserts)
    put_nullable_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_array(out, message.topics, _write_response_metadata_response_topic_v8, inserts)
    out += _i.pack(message.cluster_authorized_operations)


def _write_response_v9(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.brokers, _write_response_metadata_response_broker_v9_to_v13, inserts)
    put_nullable_compact_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_compact_array(out, message.topics, _write_response_metadata_response_topic_v9, inserts)
    out += _ix.pack(message.cluster_authorized_operations)


def _write_response_v10(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.brokers, _write_response_metadata_response_broker_v9_to_v13, inserts)
    put_nullable_compact_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_compact_array(out, message.topics, _write_response_metadata_response_topic_v10_to_v11, inserts)
    out += _ix.pack(message.cluster_authorized_operations)


def _write_response_v11(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.brokers, _write_response_metadata_response_broker_v9_to_v13, inserts)
    put_nullable_compact_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_compact_array(out, message.topics, _write_response_metadata_response_topic_v10_to_v11, inserts)
    out.append(0)


def _write_response_v12(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.brokers, _write_response_metadata_response_broker_v9_to_v13, inserts)
    put_nullable_compact_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_compact_array(out, message.topics, _write_response_metadata_response_topic_v12_to_v13, inserts)
    out.append(0)


def _write_response_v13(out: bytearray, message: MetadataResponse, inserts: Inserts) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise absent("cluster_authorized_operations")
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.brokers, _write_response_metadata_response_broker_v9_to_v13, inserts)
    put_nullable_compact_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_compact_array(out, message.topics, _write_response_metadata_response_topic_v12_to_v13, inserts)
    out += _hx.pack(message.error_code)


REQUEST: MessageCodec[MetadataRequest] = MessageCodec(
    "MetadataRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1_to_v3,
        _read_request_v1_to_v3,
        _read_request_v1_to_v3,
        _read_request_v4_to_v7,
        _read_request_v4_to_v7,
        _read_request_v4_to_v7,
        _read_request_v4_to_v7,
        _read_request_v8,
        _read_request_v9,
        _read_request_v10,
        _read_request_v11_to_v13,
        _read_request_v11_to_v13,
        _read_request_v11_to_v13,
    ),
    (
        _write_request_v0,
        _write_request_v1_to_v3,
        _write_request_v1_to_v3,
        _write_request_v1_to_v3,
        _write_request_v4_to_v7,
        _write_request_v4_to_v7,
        _write_request_v4_to_v7,
        _write_request_v4_to_v7,
        _write_request_v8,
        _write_request_v9,
        _write_request_v10,
        _write_request_v11_to_v13,
        _write_request_v11_to_v13,
        _write_request_v11_to_v13,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[MetadataResponse] = MessageCodec(
    "MetadataResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1,
        _read_response_v2,
        _read_response_v3_to_v4,
        _read_response_v3_to_v4,
        _read_response_v5_to_v6,
        _read_response_v5_to_v6,
        _read_response_v7,
        _read_response_v8,
        _read_response_v9,
        _read_response_v10,
        _read_response_v11,
        _read_response_v12,
        _read_response_v13,
    ),
    (
        _write_response_v0,
        _write_response_v1,
        _write_response_v2,
        _write_response_v3_to_v4,
        _write_response_v3_to_v4,
        _write_response_v5_to_v6,
        _write_response_v5_to_v6,
        _write_response_v7,
        _write_response_v8,
        _write_response_v9,
        _write_response_v10,
        _write_response_v11,
        _write_response_v12,
        _write_response_v13,
    ),
    holds_views=False,
)
