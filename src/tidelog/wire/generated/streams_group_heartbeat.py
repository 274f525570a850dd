"""StreamsGroupHeartbeat: API key 88, v0 to v0."""
# Made by tools/wiregen from messages/streams_group_heartbeat.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_numbers,
    compact_string,
    nullable_compact_array,
    nullable_compact_string,
    nullable_struct,
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_compact_strings,
    put_nullable_compact_array,
    put_nullable_compact_string,
    put_nullable_struct,
)

_t = struct.Struct(">?")
_w = struct.Struct(">H")
_b = struct.Struct(">b")
_i = struct.Struct(">i")
_tx = struct.Struct(">?x")
_wx = struct.Struct(">Hx")
_ih = struct.Struct(">ih")
_ii = struct.Struct(">ii")
_iq = struct.Struct(">iq")
_iqx = struct.Struct(">iqx")
_iiii = struct.Struct(">iiii")


class KeyValue(Struct):
    __slots__ = (
        "key",
        "value",
    )

    def __init__(
        self,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key = key
        self.value = value


class TopicInfo(Struct):
    __slots__ = (
        "name",
        "partitions",
        "replication_factor",
        "topic_configs",
    )

    def __init__(
        self,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] = EMPTY,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is EMPTY else topic_configs


class CopartitionGroup(Struct):
    __slots__ = (
        "source_topics",
        "source_topic_regex",
        "repartition_source_topics",
    )

    def __init__(
        self,
        source_topics: list[int] = EMPTY,
        source_topic_regex: list[int] = EMPTY,
        repartition_source_topics: list[int] = EMPTY,
    ) -> None:
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics


class Subtopology(Struct):
    __slots__ = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        source_topic_regex: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY,
        copartition_groups: list[CopartitionGroup] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex = [] if source_topic_regex is EMPTY else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics
        self.copartition_groups = [] if copartition_groups is EMPTY else copartition_groups


class Topology(Struct):
    __slots__ = (
        "epoch",
        "subtopologies",
    )

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] = EMPTY,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is EMPTY else subtopologies


class RequestTaskIds(Struct):
    __slots__ = (
        "subtopology_id",
        "partitions",
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions


class RequestEndpoint(Struct):
    __slots__ = (
        "host",
        "port",
    )

    def __init__(
        self,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


class TaskOffset(Struct):
    __slots__ = (
        "subtopology_id",
        "partition",
        "offset",
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset


class StreamsGroupHeartbeatRequest(Struct):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[RequestTaskIds] | None = None,
        standby_tasks: list[RequestTaskIds] | None = None,
        warmup_tasks: list[RequestTaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: RequestEndpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application


class Status(Struct):
    __slots__ = (
        "status_code",
        "status_detail",
    )

    def __init__(
        self,
        status_code: int = 0,
        status_detail: str = "",
    ) -> None:
        self.status_code = status_code
        self.status_detail = status_detail


class ResponseTaskIds(Struct):
    __slots__ = (
        "subtopology_id",
        "partitions",
    )

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is EMPTY else partitions


class ResponseEndpoint(Struct):
    __slots__ = (
        "host",
        "port",
    )

    def __init__(
        self,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


class TopicPartition(Struct):
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


class EndpointToPartitions(Struct):
    __slots__ = (
        "user_endpoint",
        "active_partitions",
        "standby_partitions",
    )

    def __init__(
        self,
        user_endpoint: ResponseEndpoint | None = None,
        active_partitions: list[TopicPartition] = EMPTY,
        standby_partitions: list[TopicPartition] = EMPTY,
    ) -> None:
        self.user_endpoint = ResponseEndpoint() if user_endpoint is None else user_endpoint
        self.active_partitions = [] if active_partitions is EMPTY else active_partitions
        self.standby_partitions = [] if standby_partitions is EMPTY else standby_partitions


class StreamsGroupHeartbeatResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag",
        "task_offset_interval_ms",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = None,
        active_tasks: list[ResponseTaskIds] | None = None,
        standby_tasks: list[ResponseTaskIds] | None = None,
        warmup_tasks: list[ResponseTaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status = status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint


def _read_request_key_value_v0(buf: bytes, pos: int) -> tuple[KeyValue, int]:
    key_value = new(KeyValue)
    key_value.key, pos = compact_string(buf, pos)
    key_value.value, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return key_value, pos


def _read_request_topic_info_v0(buf: bytes, pos: int) -> tuple[TopicInfo, int]:
    topic_info = new(TopicInfo)
    topic_info.name, pos = compact_string(buf, pos)
    topic_info.partitions, topic_info.replication_factor = _ih.unpack_from(buf, pos)
    pos += 6
    topic_info.topic_configs, pos = compact_array(buf, pos, _read_request_key_value_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_info, pos


def _read_request_copartition_group_v0(buf: bytes, pos: int) -> tuple[CopartitionGroup, int]:
    copartition_group = new(CopartitionGroup)
    copartition_group.source_topics, pos = compact_numbers(buf, pos, "h")
    copartition_group.source_topic_regex, pos = compact_numbers(buf, pos, "h")
    copartition_group.repartition_source_topics, pos = compact_numbers(buf, pos, "h")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return copartition_group, pos


def _read_request_subtopology_v0(buf: bytes, pos: int) -> tuple[Subtopology, int]:
    subtopology = new(Subtopology)
    subtopology.subtopology_id, pos = compact_string(buf, pos)
    subtopology.source_topics, pos = compact_array(buf, pos, compact_string, 1)
    subtopology.source_topic_regex, pos = compact_array(buf, pos, compact_string, 1)
    subtopology.state_changelog_topics, pos = compact_array(buf, pos, _read_request_topic_info_v0, 9)
    subtopology.repartition_sink_topics, pos = compact_array(buf, pos, compact_string, 1)
    subtopology.repartition_source_topics, pos = compact_array(buf, pos, _read_request_topic_info_v0, 9)
    subtopology.copartition_groups, pos = compact_array(buf, pos, _read_request_copartition_group_v0, 4)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return subtopology, pos


def _read_request_topology_v0(buf: bytes, pos: int) -> tuple[Topology, int]:
    topology = new(Topology)
    (topology.epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    topology.subtopologies, pos = compact_array(buf, pos, _read_request_subtopology_v0, 8)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topology, pos


def _read_request_request_task_ids_v0(buf: bytes, pos: int) -> tuple[RequestTaskIds, int]:
    request_task_ids = new(RequestTaskIds)
    request_task_ids.subtopology_id, pos = compact_string(buf, pos)
    request_task_ids.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return request_task_ids, pos


def _read_request_request_endpoint_v0(buf: bytes, pos: int) -> tuple[RequestEndpoint, int]:
    request_endpoint = new(RequestEndpoint)
    request_endpoint.host, pos = compact_string(buf, pos)
    (request_endpoint.port,) = _w.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return request_endpoint, pos


def _read_request_task_offset_v0(buf: bytes, pos: int) -> tuple[TaskOffset, int]:
    task_offset = new(TaskOffset)
    task_offset.subtopology_id, pos = compact_string(buf, pos)
    task_offset.partition, task_offset.offset = _iq.unpack_from(buf, pos)
    pos += 12
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return task_offset, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[StreamsGroupHeartbeatRequest, int]:
    message = new(StreamsGroupHeartbeatRequest)
    message.group_id, pos = compact_string(buf, pos)
    message.member_id, pos = compact_string(buf, pos)
    message.member_epoch, message.endpoint_information_epoch = _ii.unpack_from(buf, pos)
    pos += 8
    message.instance_id, pos = nullable_compact_string(buf, pos)
    message.rack_id, pos = nullable_compact_string(buf, pos)
    (message.rebalance_timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topology, pos = nullable_struct(buf, pos, _read_request_topology_v0)
    message.active_tasks, pos = nullable_compact_array(buf, pos, _read_request_request_task_ids_v0, 3)
    message.standby_tasks, pos = nullable_compact_array(buf, pos, _read_request_request_task_ids_v0, 3)
    message.warmup_tasks, pos = nullable_compact_array(buf, pos, _read_request_request_task_ids_v0, 3)
    message.process_id, pos = nullable_compact_string(buf, pos)
    message.user_endpoint, pos = nullable_struct(buf, pos, _read_request_request_endpoint_v0)
    message.client_tags, pos = nullable_compact_array(buf, pos, _read_request_key_value_v0, 3)
    message.task_offsets, pos = nullable_compact_array(buf, pos, _read_request_task_offset_v0, 14)
    message.task_end_offsets, pos = nullable_compact_array(buf, pos, _read_request_task_offset_v0, 14)
    (message.shutdown_application,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_key_value_v0(out: bytearray, key_value: KeyValue, _inserts: Inserts) -> None:
    put_compact_string(out, key_value.key)
    put_compact_string(out, key_value.value)
    out.append(0)


def _write_request_topic_info_v0(out: bytearray, topic_info: TopicInfo, inserts: Inserts) -> None:
    put_compact_string(out, topic_info.name)
    out += _ih.pack(topic_info.partitions, topic_info.replication_factor)
    put_compact_array(out, topic_info.topic_configs, _write_request_key_value_v0, inserts)
    out.append(0)


def _write_request_copartition_group_v0(
    out: bytearray, copartition_group: CopartitionGroup, _inserts: Inserts
) -> None:
    put_compact_numbers(out, copartition_group.source_topics, "h")
    put_compact_numbers(out, copartition_group.source_topic_regex, "h")
    put_compact_numbers(out, copartition_group.repartition_source_topics, "h")
    out.append(0)


def _write_request_subtopology_v0(out: bytearray, subtopology: Subtopology, inserts: Inserts) -> None:
    put_compact_string(out, subtopology.subtopology_id)
    put_compact_strings(out, subtopology.source_topics)
    put_compact_strings(out, subtopology.source_topic_regex)
    put_compact_array(out, subtopology.state_changelog_topics, _write_request_topic_info_v0, inserts)
    put_compact_strings(out, subtopology.repartition_sink_topics)
    put_compact_array(out, subtopology.repartition_source_topics, _write_request_topic_info_v0, inserts)
    put_compact_array(out, subtopology.copartition_groups, _write_request_copartition_group_v0, inserts)
    out.append(0)


def _write_request_topology_v0(out: bytearray, topology: Topology, inserts: Inserts) -> None:
    out += _i.pack(topology.epoch)
    put_compact_array(out, topology.subtopologies, _write_request_subtopology_v0, inserts)
    out.append(0)


def _write_request_request_task_ids_v0(out: bytearray, request_task_ids: RequestTaskIds, _inserts: Inserts) -> None:
    put_compact_string(out, request_task_ids.subtopology_id)
    put_compact_numbers(out, request_task_ids.partitions, "i")
    out.append(0)


def _write_request_request_endpoint_v0(out: bytearray, request_endpoint: RequestEndpoint, _inserts: Inserts) -> None:
    put_compact_string(out, request_endpoint.host)
    out += _wx.pack(request_endpoint.port)


def _write_request_task_offset_v0(out: bytearray, task_offset: TaskOffset, _inserts: Inserts) -> None:
    put_compact_string(out, task_offset.subtopology_id)
    out += _iqx.pack(task_offset.partition, task_offset.offset)


def _write_request_v0(out: bytearray, message: StreamsGroupHeartbeatRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    put_compact_string(out, message.member_id)
    out += _ii.pack(message.member_epoch, message.endpoint_information_epoch)
    put_nullable_compact_string(out, message.instance_id)
    put_nullable_compact_string(out, message.rack_id)
    out += _i.pack(message.rebalance_timeout_ms)
    put_nullable_struct(out, message.topology, _write_request_topology_v0, inserts)
    put_nullable_compact_array(out, message.active_tasks, _write_request_request_task_ids_v0, inserts)
    put_nullable_compact_array(out, message.standby_tasks, _write_request_request_task_ids_v0, inserts)
    put_nullable_compact_array(out, message.warmup_tasks, _write_request_request_task_ids_v0, inserts)
    put_nullable_compact_string(out, message.process_id)
    put_nullable_struct(out, message.user_endpoint, _write_request_request_endpoint_v0, inserts)
    put_nullable_compact_array(out, message.client_tags, _write_request_key_value_v0, inserts)
    put_nullable_compact_array(out, message.task_offsets, _write_request_task_offset_v0, inserts)
    put_nullable_compact_array(out, message.task_end_offsets, _write_request_task_offset_v0, inserts)
    out += _tx.pack(message.shutdown_application)


def _read_response_status_v0(buf: bytes, pos: int) -> tuple[Status, int]:
    status = new(Status)
    (status.status_code,) = _b.unpack_from(buf, pos)
    pos += 1
    status.status_detail, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return status, pos


def _read_response_response_task_ids_v0(buf: bytes, pos: int) -> tuple[ResponseTaskIds, int]:
    response_task_ids = new(ResponseTaskIds)
    response_task_ids.subtopology_id, pos = compact_string(buf, pos)
    response_task_ids.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_task_ids, pos


def _read_response_response_endpoint_v0(buf: bytes, pos: int) -> tuple[ResponseEndpoint, int]:
    response_endpoint = new(ResponseEndpoint)
    response_endpoint.host, pos = compact_string(buf, pos)
    (response_endpoint.port,) = _w.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_endpoint, pos


def _read_response_topic_partition_v0(buf: bytes, pos: int) -> tuple[TopicPartition, int]:
    topic_partition = new(TopicPartition)
    topic_partition.topic, pos = compact_string(buf, pos)
    topic_partition.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_partition, pos


def _read_response_endpoint_to_partitions_v0(buf: bytes, pos: int) -> tuple[EndpointToPartitions, int]:
    endpoint_to_partitions = new(EndpointToPartitions)
    endpoint_to_partitions.user_endpoint, pos = _read_response_response_endpoint_v0(buf, pos)
    endpoint_to_partitions.active_partitions, pos = compact_array(buf, pos, _read_response_topic_partition_v0, 3)
    endpoint_to_partitions.standby_partitions, pos = compact_array(buf, pos, _read_response_topic_partition_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return endpoint_to_partitions, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[StreamsGroupHeartbeatResponse, int]:
    message = new(StreamsGroupHeartbeatResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.member_id, pos = compact_string(buf, pos)
    (
        message.member_epoch,
        message.heartbeat_interval_ms,
        message.acceptable_recovery_lag,
        message.task_offset_interval_ms,
    ) = _iiii.unpack_from(buf, pos)
    pos += 16
    message.status, pos = nullable_compact_array(buf, pos, _read_response_status_v0, 3)
    message.active_tasks, pos = nullable_compact_array(buf, pos, _read_response_response_task_ids_v0, 3)
    message.standby_tasks, pos = nullable_compact_array(buf, pos, _read_response_response_task_ids_v0, 3)
    message.warmup_tasks, pos = nullable_compact_array(buf, pos, _read_response_response_task_ids_v0, 3)
    (message.endpoint_information_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    message.partitions_by_user_endpoint, pos = nullable_compact_array(
        buf, pos, _read_response_endpoint_to_partitions_v0, 7
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_status_v0(out: bytearray, status: Status, _inserts: Inserts) -> None:
    out += _b.pack(status.status_code)
    put_compact_string(out, status.status_detail)
    out.append(0)


def _write_response_response_task_ids_v0(
    out: bytearray, response_task_ids: ResponseTaskIds, _inserts: Inserts
) -> None:
    put_compact_string(out, response_task_ids.subtopology_id)
    put_compact_numbers(out, response_task_ids.partitions, "i")
    out.append(0)


def _write_response_response_endpoint_v0(
    out: bytearray, response_endpoint: ResponseEndpoint, _inserts: Inserts
) -> None:
    put_compact_string(out, response_endpoint.host)
    out += _wx.pack(response_endpoint.port)


def _write_response_topic_partition_v0(out: bytearray, topic_partition: TopicPartition, _inserts: Inserts) -> None:
    put_compact_string(out, topic_partition.topic)
    put_compact_numbers(out, topic_partition.partitions, "i")
    out.append(0)


def _write_response_endpoint_to_partitions_v0(
    out: bytearray, endpoint_to_partitions: EndpointToPartitions, inserts: Inserts
) -> None:
    _write_response_response_endpoint_v0(out, endpoint_to_partitions.user_endpoint, inserts)
    put_compact_array(out, endpoint_to_partitions.active_partitions, _write_response_topic_partition_v0, inserts)
    put_compact_array(out, endpoint_to_partitions.standby_partitions, _write_response_topic_partition_v0, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: StreamsGroupHeartbeatResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_string(out, message.member_id)
    out += _iiii.pack(
        message.member_epoch,
        message.heartbeat_interval_ms,
        message.acceptable_recovery_lag,
        message.task_offset_interval_ms,
    )
    put_nullable_compact_array(out, message.status, _write_response_status_v0, inserts)
    put_nullable_compact_array(out, message.active_tasks, _write_response_response_task_ids_v0, inserts)
    put_nullable_compact_array(out, message.standby_tasks, _write_response_response_task_ids_v0, inserts)
    put_nullable_compact_array(out, message.warmup_tasks, _write_response_response_task_ids_v0, inserts)
    out += _i.pack(message.endpoint_information_epoch)
    put_nullable_compact_array(
        out, message.partitions_by_user_endpoint, _write_response_endpoint_to_partitions_v0, inserts
    )
    out.append(0)


REQUEST: Codec[StreamsGroupHeartbeatRequest] = Codec(
    "StreamsGroupHeartbeatRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: Codec[StreamsGroupHeartbeatResponse] = Codec(
    "StreamsGroupHeartbeatResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
