"""ConsumerGroupDescribe: API key 69, v0 to v1."""
# Made by tools/wiregen from messages/consumer_group_describe.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
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
    put_compact_strings,
    put_nullable_compact_string,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_t = struct.Struct(">?")
_b = struct.Struct(">b")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_tx = struct.Struct(">?x")
_bx = struct.Struct(">bx")
_ii = struct.Struct(">ii")
_ix = struct.Struct(">ix")


class ConsumerGroupDescribeRequest(Struct):
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


class TopicPartitions(Struct):
    __slots__ = (
        "topic_id",
        "topic_name",
        "partitions",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is EMPTY else partitions


class Assignment(Struct):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] = EMPTY,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions


class Member(Struct):
    __slots__ = (
        "member_id",
        "instance_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "assignment",
        "target_assignment",
        "member_type",
    )

    def __init__(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        subscribed_topic_regex: str | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        member_type: int = -1,  # 1+
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = Assignment() if assignment is None else assignment
        self.target_assignment = Assignment() if target_assignment is None else target_assignment
        self.member_type = member_type


class DescribedGroup(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
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
        assignor_name: str = "",
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations


class ConsumerGroupDescribeResponse(Struct):
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


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[ConsumerGroupDescribeRequest, int]:
    message = new(ConsumerGroupDescribeRequest)
    message.group_ids, pos = compact_array(buf, pos, compact_string, 1, 1)
    (message.include_authorized_operations,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v1(out: bytearray, message: ConsumerGroupDescribeRequest, _inserts: Inserts) -> None:
    put_compact_strings(out, message.group_ids)
    out += _tx.pack(message.include_authorized_operations)


def _read_response_topic_partitions_v0_to_v1(buf: bytes, pos: int) -> tuple[TopicPartitions, int]:
    topic_partitions = new(TopicPartitions)
    (topic_partitions.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    topic_partitions.topic_name, pos = compact_string(buf, pos)
    topic_partitions.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_partitions, pos


def _read_response_assignment_v0_to_v1(buf: bytes, pos: int) -> tuple[Assignment, int]:
    assignment = new(Assignment)
    assignment.topic_partitions, pos = compact_array(buf, pos, _read_response_topic_partitions_v0_to_v1, 19)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return assignment, pos


def _read_response_member_v0(buf: bytes, pos: int) -> tuple[Member, int]:
    member = new(Member)
    member.member_type = -1
    member.member_id, pos = compact_string(buf, pos)
    member.instance_id, pos = nullable_compact_string(buf, pos)
    member.rack_id, pos = nullable_compact_string(buf, pos)
    (member.member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    member.client_id, pos = compact_string(buf, pos)
    member.client_host, pos = compact_string(buf, pos)
    member.subscribed_topic_names, pos = compact_array(buf, pos, compact_string, 1)
    member.subscribed_topic_regex, pos = nullable_compact_string(buf, pos)
    member.assignment, pos = _read_response_assignment_v0_to_v1(buf, pos)
    member.target_assignment, pos = _read_response_assignment_v0_to_v1(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return member, pos


def _read_response_member_v1(buf: bytes, pos: int) -> tuple[Member, int]:
    member = new(Member)
    member.member_id, pos = compact_string(buf, pos)
    member.instance_id, pos = nullable_compact_string(buf, pos)
    member.rack_id, pos = nullable_compact_string(buf, pos)
    (member.member_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    member.client_id, pos = compact_string(buf, pos)
    member.client_host, pos = compact_string(buf, pos)
    member.subscribed_topic_names, pos = compact_array(buf, pos, compact_string, 1)
    member.subscribed_topic_regex, pos = nullable_compact_string(buf, pos)
    member.assignment, pos = _read_response_assignment_v0_to_v1(buf, pos)
    member.target_assignment, pos = _read_response_assignment_v0_to_v1(buf, pos)
    (member.member_type,) = _b.unpack_from(buf, pos)
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
    described_group.assignor_name, pos = compact_string(buf, pos)
    described_group.members, pos = compact_array(buf, pos, _read_response_member_v0, 16)
    (described_group.authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_group, pos


def _read_response_described_group_v1(buf: bytes, pos: int) -> tuple[DescribedGroup, int]:
    described_group = new(DescribedGroup)
    (described_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    described_group.error_message, pos = nullable_compact_string(buf, pos)
    described_group.group_id, pos = compact_string(buf, pos)
    described_group.group_state, pos = compact_string(buf, pos)
    described_group.group_epoch, described_group.assignment_epoch = _ii.unpack_from(buf, pos)
    pos += 8
    described_group.assignor_name, pos = compact_string(buf, pos)
    described_group.members, pos = compact_array(buf, pos, _read_response_member_v1, 17)
    (described_group.authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_group, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[ConsumerGroupDescribeResponse, int]:
    message = new(ConsumerGroupDescribeResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_described_group_v0, 20)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[ConsumerGroupDescribeResponse, int]:
    message = new(ConsumerGroupDescribeResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_described_group_v1, 20)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_topic_partitions_v0_to_v1(
    out: bytearray, topic_partitions: TopicPartitions, _inserts: Inserts
) -> None:
    if len(topic_partitions.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _g.pack(topic_partitions.topic_id)
    put_compact_string(out, topic_partitions.topic_name)
    put_compact_numbers(out, topic_partitions.partitions, "i")
    out.append(0)


def _write_response_assignment_v0_to_v1(out: bytearray, assignment: Assignment, inserts: Inserts) -> None:
    put_compact_array(out, assignment.topic_partitions, _write_response_topic_partitions_v0_to_v1, inserts)
    out.append(0)


def _write_response_member_v0(out: bytearray, member: Member, inserts: Inserts) -> None:
    put_compact_string(out, member.member_id)
    put_nullable_compact_string(out, member.instance_id)
    put_nullable_compact_string(out, member.rack_id)
    out += _i.pack(member.member_epoch)
    put_compact_string(out, member.client_id)
    put_compact_string(out, member.client_host)
    put_compact_strings(out, member.subscribed_topic_names)
    put_nullable_compact_string(out, member.subscribed_topic_regex)
    _write_response_assignment_v0_to_v1(out, member.assignment, inserts)
    _write_response_assignment_v0_to_v1(out, member.target_assignment, inserts)
    out.append(0)


def _write_response_member_v1(out: bytearray, member: Member, inserts: Inserts) -> None:
    put_compact_string(out, member.member_id)
    put_nullable_compact_string(out, member.instance_id)
    put_nullable_compact_string(out, member.rack_id)
    out += _i.pack(member.member_epoch)
    put_compact_string(out, member.client_id)
    put_compact_string(out, member.client_host)
    put_compact_strings(out, member.subscribed_topic_names)
    put_nullable_compact_string(out, member.subscribed_topic_regex)
    _write_response_assignment_v0_to_v1(out, member.assignment, inserts)
    _write_response_assignment_v0_to_v1(out, member.target_assignment, inserts)
    out += _bx.pack(member.member_type)


def _write_response_described_group_v0(out: bytearray, described_group: DescribedGroup, inserts: Inserts) -> None:
    out += _h.pack(described_group.error_code)
    put_nullable_compact_string(out, described_group.error_message)
    put_compact_string(out, described_group.group_id)
    put_compact_string(out, described_group.group_state)
    out += _ii.pack(described_group.group_epoch, described_group.assignment_epoch)
    put_compact_string(out, described_group.assignor_name)
    put_compact_array(out, described_group.members, _write_response_member_v0, inserts)
    out += _ix.pack(described_group.authorized_operations)


def _write_response_described_group_v1(out: bytearray, described_group: DescribedGroup, inserts: Inserts) -> None:
    out += _h.pack(described_group.error_code)
    put_nullable_compact_string(out, described_group.error_message)
    put_compact_string(out, described_group.group_id)
    put_compact_string(out, described_group.group_state)
    out += _ii.pack(described_group.group_epoch, described_group.assignment_epoch)
    put_compact_string(out, described_group.assignor_name)
    put_compact_array(out, described_group.members, _write_response_member_v1, inserts)
    out += _ix.pack(described_group.authorized_operations)


def _write_response_v0(out: bytearray, message: ConsumerGroupDescribeResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_described_group_v0, inserts)
    out.append(0)


def _write_response_v1(out: bytearray, message: ConsumerGroupDescribeResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_described_group_v1, inserts)
    out.append(0)


REQUEST: MessageCodec[ConsumerGroupDescribeRequest] = MessageCodec(
    "ConsumerGroupDescribeRequest",
    0,
    (
        _read_request_v0_to_v1,
        _read_request_v0_to_v1,
    ),
    (
        _write_request_v0_to_v1,
        _write_request_v0_to_v1,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[ConsumerGroupDescribeResponse] = MessageCodec(
    "ConsumerGroupDescribeResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1,
    ),
    (
        _write_response_v0,
        _write_response_v1,
    ),
    holds_views=False,
)
