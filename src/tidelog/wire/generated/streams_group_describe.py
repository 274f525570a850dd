"""StreamsGroupDescribe: API key 89, v0 to v0."""
# Made by tools/wiregen from messages/streams_group_describe.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
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
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_tx = struct.Struct(">?x")
_wx = struct.Struct(">Hx")
_ih = struct.Struct(">ih")
_ii = struct.Struct(">ii")
_iq = struct.Struct(">iq")
_ix = struct.Struct(">ix")
_iqx = struct.Struct(">iqx")


class StreamsGroupDescribeRequest(Struct):
    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )

    def __init__(
        self,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations = include_authorized_operations


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


class Subtopology(Struct):
    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is EMPTY else source_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.state_changelog_topics = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_source_topics = [] if repartition_source_topics is EMPTY else repartition_source_topics


class Topology(Struct):
    __slots__ = (
        "epoch",
        "subtopologies",
    )

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


class Endpoint(Struct):
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


class TaskIds(Struct):
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


class Assignment(Struct):
    __slots__ = (
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
    )

    def __init__(
        self,
        active_tasks: list[TaskIds] = EMPTY,
        standby_tasks: list[TaskIds] = EMPTY,
        warmup_tasks: list[TaskIds] = EMPTY,
    ) -> None:
        self.active_tasks = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is EMPTY else warmup_tasks


class Member(Struct):
    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )

    def __init__(
        self,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = EMPTY,
        task_offsets: list[TaskOffset] = EMPTY,
        task_end_offsets: list[TaskOffset] = EMPTY,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is EMPTY else client_tags
        self.task_offsets = [] if task_offsets is EMPTY else task_offsets
        self.task_end_offsets = [] if task_end_offsets is EMPTY else task_end_offsets
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.is_classic = is_classic


class DescribedGroup(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations


class StreamsGroupDescribeResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups


def _read_request_v0(buf: bytes, pos: int) -> tuple[StreamsGroupDescribeRequest, int]:
    message = new(StreamsGroupDescribeRequest)
    message.group_ids, pos = compact_array(buf, pos, compact_string, 1, 1)
    (message.include_authorized_operations,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: StreamsGroupDescribeRequest, _inserts: Inserts) -> None:
    put_compact_strings(out, message.group_ids)
    out += _tx.pack(message.include_authorized_operations)


def _read_response_key_value_v0(buf: bytes, pos: int) -> tuple[KeyValue, int]:
    key_value = new(KeyValue)
    key_value.key, pos = compact_string(buf, pos)
    key_value.value, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return key_value, pos


def _read_response_topic_info_v0(buf: bytes, pos: int) -> tuple[TopicInfo, int]:
    topic_info = new(TopicInfo)
    topic_info.name, pos = compact_string(buf, pos)
    topic_info.partitions, topic_info.replication_factor = _ih.unpack_from(buf, pos)
    pos += 6
    topic_info.topic_configs, pos = compact_array(buf, pos, _read_response_key_value_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_info, pos


def _read_response_subtopology_v0(buf: bytes, pos: int) -> tuple[Subtopology, int]:
    subtopology = new(Subtopology)
    subtopology.subtopology_id, pos = compact_string(buf, pos)
    subtopology.source_topics, pos = compact_array(buf, pos, compact_string, 1)
    subtopology.repartition_sink_topics, pos = compact_array(buf, pos, compact_string, 1)
    subtopology.state_changelog_topics, pos = compact_array(buf, pos, _read_response_topic_info_v0, 9)
    subtopology.repartition_source_topics, pos = compact_array(buf, pos, _read_response_topic_info_v0, 9)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return subtopology, pos


def _read_response_topology_v0(buf: bytes, pos: int) -> tuple[Topology, int]:
    topology = new(Topology)
    (topology.epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    topology.subtopologies, pos = nullable_compact_array(buf, pos, _read_response_subtopology_v0, 6)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topology, pos


def _read_response_endpoint_v0(buf: bytes, pos: int) -> tuple[Endpoint, int]:
    endpoint = new(Endpoint)
    endpoint.host, pos = compact_string(buf, pos)
    (endpoint.port,) = _w.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return endpoint, pos


def _read_response_task_offset_v0(buf: bytes, pos: int) -> tuple[TaskOffset, int]:
    task_offset = new(TaskOffset)
    task_offset.subtopology_id, pos = compact_string(buf, pos)
    task_offset.partition, task_offset.offset = _iq.unpack_from(buf, pos)
    pos += 12
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return task_offset, pos


def _read_response_task_ids_v0(buf: bytes, pos: int) -> tuple[TaskIds, int]:
    task_ids = new(TaskIds)
    task_ids.subtopology_id, pos = compact_string(buf, pos)
    task_ids.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return task_ids, pos


def _read_response_assignment_v0(buf: bytes, pos: int) -> tuple[Assignment, int]:
    assignment = new(Assignment)
    assignment.active_tasks, pos = compact_array(buf, pos, _read_response_task_ids_v0, 3)
    assignment.standby_tasks, pos = compact_array(buf, pos, _read_response_task_ids_v0, 3)
    assignment.warmup_tasks, pos = compact_array(buf, pos, _read_response_task_ids_v0, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return assignment, pos


def _read_response_member_v0(buf: bytes, pos: int) -> tuple[Member, int]:
    member = new(Member)
    member.member_id, pos = compact_string(buf, pos)
    (member.member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    member.instance_id, pos = nullable_compact_string(buf, pos)
    member.rack_id, pos = nullable_compact_string(buf, pos)
    member.client_id, pos = compact_string(buf, pos)
    member.client_host, pos = compact_string(buf, pos)
    (member.topology_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    member.process_id, pos = compact_string(buf, pos)
    member.user_endpoint, pos = nullable_struct(buf, pos, _read_response_endpoint_v0)
    member.client_tags, pos = compact_array(buf, pos, _read_response_key_value_v0, 3)
    member.task_offsets, pos = compact_array(buf, pos, _read_response_task_offset_v0, 14)
    member.task_end_offsets, pos = compact_array(buf, pos, _read_response_task_offset_v0, 14)
    member.assignment, pos = _read_response_assignment_v0(buf, pos)
    member.target_assignment, pos = _read_response_assignment_v0(buf, pos)
    (member.is_classic,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return member, pos


def _read_response_described_group_v0(buf: bytes, pos: int) -> tuple[DescribedGroup, int]:
    described_group = new(DescribedGroup)
    (described_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    described_group.error_message, pos = nullable_compact_string(buf, pos)
    described_group.group_id, pos = compact_string(buf, pos)
    described_group.group_state, pos = compact_string(buf, pos)
    described_group.group_epoch, described_group.assignment_epoch = _ii.unpack_from(buf, pos)
    pos += 8
    described_group.topology, pos = nullable_struct(buf, pos, _read_response_topology_v0)
    described_group.members, pos = compact_array(buf, pos, _read_response_member_v0, 28)
    (described_group.authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_group, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[StreamsGroupDescribeResponse, int]:
    message = new(StreamsGroupDescribeResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_described_group_v0, 20)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_key_value_v0(out: bytearray, key_value: KeyValue, _inserts: Inserts) -> None:
    put_compact_string(out, key_value.key)
    put_compact_string(out, key_value.value)
    out.append(0)


def _write_response_topic_info_v0(out: bytearray, topic_info: TopicInfo, inserts: Inserts) -> None:
    put_compact_string(out, topic_info.name)
    out += _ih.pack(topic_info.partitions, topic_info.replication_factor)
    put_compact_array(out, topic_info.topic_configs, _write_response_key_value_v0, inserts)
    out.append(0)


def _write_response_subtopology_v0(out: bytearray, subtopology: Subtopology, inserts: Inserts) -> None:
    put_compact_string(out, subtopology.subtopology_id)
    put_compact_strings(out, subtopology.source_topics)
    put_compact_strings(out, subtopology.repartition_sink_topics)
    put_compact_array(out, subtopology.state_changelog_topics, _write_response_topic_info_v0, inserts)
    put_compact_array(out, subtopology.repartition_source_topics, _write_response_topic_info_v0, inserts)
    out.append(0)


def _write_response_topology_v0(out: bytearray, topology: Topology, inserts: Inserts) -> None:
    out += _i.pack(topology.epoch)
    put_nullable_compact_array(out, topology.subtopologies, _write_response_subtopology_v0, inserts)
    out.append(0)


def _write_response_endpoint_v0(out: bytearray, endpoint: Endpoint, _inserts: Inserts) -> None:
    put_compact_string(out, endpoint.host)
    out += _wx.pack(endpoint.port)


def _write_response_task_offset_v0(out: bytearray, task_offset: TaskOffset, _inserts: Inserts) -> None:
    put_compact_string(out, task_offset.subtopology_id)
    out += _iqx.pack(task_offset.partition, task_offset.offset)


def _write_response_task_ids_v0(out: bytearray, task_ids: TaskIds, _inserts: Inserts) -> None:
    put_compact_string(out, task_ids.subtopology_id)
    put_compact_numbers(out, task_ids.partitions, "i")
    out.append(0)


def _write_response_assignment_v0(out: bytearray, assignment: Assignment, inserts: Inserts) -> None:
    put_compact_array(out, assignment.active_tasks, _write_response_task_ids_v0, inserts)
    put_compact_array(out, assignment.standby_tasks, _write_response_task_ids_v0, inserts)
    put_compact_array(out, assignment.warmup_tasks, _write_response_task_ids_v0, inserts)
    out.append(0)


def _write_response_member_v0(out: bytearray, member: Member, inserts: Inserts) -> None:
    put_compact_string(out, member.member_id)
    out += _i.pack(member.member_epoch)
    put_nullable_compact_string(out, member.instance_id)
    put_nullable_compact_string(out, member.rack_id)
    put_compact_string(out, member.client_id)
    put_compact_string(out, member.client_host)
    out += _i.pack(member.topology_epoch)
    put_compact_string(out, member.process_id)
    put_nullable_struct(out, member.user_endpoint, _write_response_endpoint_v0, inserts)
    put_compact_array(out, member.client_tags, _write_response_key_value_v0, inserts)
    put_compact_array(out, member.task_offsets, _write_response_task_offset_v0, inserts)
    put_compact_array(out, member.task_end_offsets, _write_response_task_offset_v0, inserts)
    _write_response_assignment_v0(out, member.assignment, inserts)
    _write_response_assignment_v0(out, member.target_assignment, inserts)
    out += _tx.pack(member.is_classic)


def _write_response_described_group_v0(out: bytearray, described_group: DescribedGroup, inserts: Inserts) -> None:
    out += _h.pack(described_group.error_code)
    put_nullable_compact_string(out, described_group.error_message)
    put_compact_string(out, described_group.group_id)
    put_compact_string(out, described_group.group_state)
    out += _ii.pack(described_group.group_epoch, described_group.assignment_epoch)
    put_nullable_struct(out, described_group.topology, _write_response_topology_v0, inserts)
    put_compact_array(out, described_group.members, _write_response_member_v0, inserts)
    out += _ix.pack(described_group.authorized_operations)


def _write_response_v0(out: bytearray, message: StreamsGroupDescribeResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_described_group_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[StreamsGroupDescribeRequest] = MessageCodec(
    "StreamsGroupDescribeRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[StreamsGroupDescribeResponse] = MessageCodec(
    "StreamsGroupDescribeResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
