"""DescribeGroups: API key 15, v0 to v6."""
# Made by tools/wiregen from messages/describe_groups.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Buffer, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_data,
    compact_string,
    data,
    nullable_compact_string,
    nullable_string,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    put_array,
    put_compact_array,
    put_compact_data,
    put_compact_string,
    put_compact_strings,
    put_data,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
    put_strings,
)

_t = struct.Struct(">?")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_tx = struct.Struct(">?x")
_ix = struct.Struct(">ix")


class DescribeGroupsRequest(Struct):
    __slots__ = (
        "groups",
        "include_authorized_operations",
    )

    def __init__(
        self,
        groups: list[str] = EMPTY,
        include_authorized_operations: bool = False,  # 3+
    ) -> None:
        self.groups = [] if groups is EMPTY else groups
        self.include_authorized_operations = include_authorized_operations


class DescribedGroupMember(Struct):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "member_metadata",
        "member_assignment",
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,  # 4+
        client_id: str = "",
        client_host: str = "",
        member_metadata: Buffer = b"",
        member_assignment: Buffer = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribedGroup(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,  # 6+
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,  # 3+
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is EMPTY else members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 1+
        groups: list[DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is EMPTY else groups


def _read_request_v0_to_v2(buf: bytes, pos: int) -> tuple[DescribeGroupsRequest, int]:
    message = new(DescribeGroupsRequest)
    message.include_authorized_operations = False
    message.groups, pos = array(buf, pos, string, 2, 1)
    return message, pos


def _read_request_v3_to_v4(buf: bytes, pos: int) -> tuple[DescribeGroupsRequest, int]:
    message = new(DescribeGroupsRequest)
    message.groups, pos = array(buf, pos, string, 2, 1)
    (message.include_authorized_operations,) = _t.unpack_from(buf, pos)
    pos += 1
    return message, pos


def _read_request_v5_to_v6(buf: bytes, pos: int) -> tuple[DescribeGroupsRequest, int]:
    message = new(DescribeGroupsRequest)
    message.groups, pos = compact_array(buf, pos, compact_string, 1, 1)
    (message.include_authorized_operations,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v2(out: bytearray, message: DescribeGroupsRequest, _inserts: Inserts) -> None:
    if message.include_authorized_operations:
        raise absent("include_authorized_operations")
    put_strings(out, message.groups)


def _write_request_v3_to_v4(out: bytearray, message: DescribeGroupsRequest, _inserts: Inserts) -> None:
    put_strings(out, message.groups)
    out += _t.pack(message.include_authorized_operations)


def _write_request_v5_to_v6(out: bytearray, message: DescribeGroupsRequest, _inserts: Inserts) -> None:
    put_compact_strings(out, message.groups)
    out += _tx.pack(message.include_authorized_operations)


def _read_response_described_group_member_v0_to_v3(buf: memoryview, pos: int) -> tuple[DescribedGroupMember, int]:
    described_group_member = new(DescribedGroupMember)
    described_group_member.group_instance_id = None
    described_group_member.member_id, pos = string(buf, pos)
    described_group_member.client_id, pos = string(buf, pos)
    described_group_member.client_host, pos = string(buf, pos)
    described_group_member.member_metadata, pos = data(buf, pos)
    described_group_member.member_assignment, pos = data(buf, pos)
    return described_group_member, pos


def _read_response_described_group_member_v4(buf: memoryview, pos: int) -> tuple[DescribedGroupMember, int]:
    described_group_member = new(DescribedGroupMember)
    described_group_member.member_id, pos = string(buf, pos)
    described_group_member.group_instance_id, pos = nullable_string(buf, pos)
    described_group_member.client_id, pos = string(buf, pos)
    described_group_member.client_host, pos = string(buf, pos)
    described_group_member.member_metadata, pos = data(buf, pos)
    described_group_member.member_assignment, pos = data(buf, pos)
    return described_group_member, pos


def _read_response_described_group_member_v5_to_v6(buf: memoryview, pos: int) -> tuple[DescribedGroupMember, int]:
    described_group_member = new(DescribedGroupMember)
    described_group_member.member_id, pos = compact_string(buf, pos)
    described_group_member.group_instance_id, pos = nullable_compact_string(buf, pos)
    described_group_member.client_id, pos = compact_string(buf, pos)
    described_group_member.client_host, pos = compact_string(buf, pos)
    described_group_member.member_metadata, pos = compact_data(buf, pos)
    described_group_member.member_assignment, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_group_member, pos


def _read_response_described_group_v0_to_v2(buf: memoryview, pos: int) -> tuple[DescribedGroup, int]:
    described_group = new(DescribedGroup)
    described_group.error_message = None
    described_group.authorized_operations = -2147483648
    (described_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    described_group.group_id, pos = string(buf, pos)
    described_group.group_state, pos = string(buf, pos)
    described_group.protocol_type, pos = string(buf, pos)
    described_group.protocol_data, pos = string(buf, pos)
    described_group.members, pos = array(buf, pos, _read_response_described_group_member_v0_to_v3, 14)
    return described_group, pos


def _read_response_described_group_v3(buf: memoryview, pos: int) -> tuple[DescribedGroup, int]:
    described_group = new(DescribedGroup)
    described_group.error_message = None
    (described_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    described_group.group_id, pos = string(buf, pos)
    described_group.group_state, pos = string(buf, pos)
    described_group.protocol_type, pos = string(buf, pos)
    described_group.protocol_data, pos = string(buf, pos)
    described_group.members, pos = array(buf, pos, _read_response_described_group_member_v0_to_v3, 14)
    (described_group.authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    return described_group, pos


def _read_response_described_group_v4(buf: memoryview, pos: int) -> tuple[DescribedGroup, int]:
    described_group = new(DescribedGroup)
    described_group.error_message = None
    (described_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    described_group.group_id, pos = string(buf, pos)
    described_group.group_state, pos = string(buf, pos)
    described_group.protocol_type, pos = string(buf, pos)
    described_group.protocol_data, pos = string(buf, pos)
    described_group.members, pos = array(buf, pos, _read_response_described_group_member_v4, 16)
    (described_group.authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    return described_group, pos


def _read_response_described_group_v5(buf: memoryview, pos: int) -> tuple[DescribedGroup, int]:
    described_group = new(DescribedGroup)
    described_group.error_message = None
    (described_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    described_group.group_id, pos = compact_string(buf, pos)
    described_group.group_state, pos = compact_string(buf, pos)
    described_group.protocol_type, pos = compact_string(buf, pos)
    described_group.protocol_data, pos = compact_string(buf, pos)
    described_group.members, pos = compact_array(buf, pos, _read_response_described_group_member_v5_to_v6, 7)
    (described_group.authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_group, pos


def _read_response_described_group_v6(buf: memoryview, pos: int) -> tuple[DescribedGroup, int]:
    described_group = new(DescribedGroup)
    (described_group.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    described_group.error_message, pos = nullable_compact_string(buf, pos)
    described_group.group_id, pos = compact_string(buf, pos)
    described_group.group_state, pos = compact_string(buf, pos)
    described_group.protocol_type, pos = compact_string(buf, pos)
    described_group.protocol_data, pos = compact_string(buf, pos)
    described_group.members, pos = compact_array(buf, pos, _read_response_described_group_member_v5_to_v6, 7)
    (described_group.authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_group, pos


def _read_response_v0(buf: memoryview, pos: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    message.throttle_time_ms = 0
    message.groups, pos = array(buf, pos, _read_response_described_group_v0_to_v2, 14)
    return message, pos


def _read_response_v1_to_v2(buf: memoryview, pos: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = array(buf, pos, _read_response_described_group_v0_to_v2, 14)
    return message, pos


def _read_response_v3(buf: memoryview, pos: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = array(buf, pos, _read_response_described_group_v3, 18)
    return message, pos


def _read_response_v4(buf: memoryview, pos: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = array(buf, pos, _read_response_described_group_v4, 18)
    return message, pos


def _read_response_v5(buf: memoryview, pos: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_described_group_v5, 12)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v6(buf: memoryview, pos: int) -> tuple[DescribeGroupsResponse, int]:
    message = new(DescribeGroupsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.groups, pos = compact_array(buf, pos, _read_response_described_group_v6, 13)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_described_group_member_v0_to_v3(
    out: bytearray, described_group_member: DescribedGroupMember, _inserts: Inserts
) -> None:
    put_string(out, described_group_member.member_id)
    put_string(out, described_group_member.client_id)
    put_string(out, described_group_member.client_host)
    put_data(out, described_group_member.member_metadata)
    put_data(out, described_group_member.member_assignment)


def _write_response_described_group_member_v4(
    out: bytearray, described_group_member: DescribedGroupMember, _inserts: Inserts
) -> None:
    put_string(out, described_group_member.member_id)
    put_nullable_string(out, described_group_member.group_instance_id)
    put_string(out, described_group_member.client_id)
    put_string(out, described_group_member.client_host)
    put_data(out, described_group_member.member_metadata)
    put_data(out, described_group_member.member_assignment)


def _write_response_described_group_member_v5_to_v6(
    out: bytearray, described_group_member: DescribedGroupMember, _inserts: Inserts
) -> None:
    put_compact_string(out, described_group_member.member_id)
    put_nullable_compact_string(out, described_group_member.group_instance_id)
    put_compact_string(out, described_group_member.client_id)
    put_compact_string(out, described_group_member.client_host)
    put_compact_data(out, described_group_member.member_metadata)
    put_compact_data(out, described_group_member.member_assignment)
    out.append(0)


def _write_response_described_group_v0_to_v2(
    out: bytearray, described_group: DescribedGroup, inserts: Inserts
) -> None:
    if described_group.error_message is not None:
        raise absent("error_message")
    if described_group.authorized_operations != -2147483648:
        raise absent("authorized_operations")
    out += _h.pack(described_group.error_code)
    put_string(out, described_group.group_id)
    put_string(out, described_group.group_state)
    put_string(out, described_group.protocol_type)
    put_string(out, described_group.protocol_data)
    put_array(out, described_group.members, _write_response_described_group_member_v0_to_v3, inserts)


def _write_response_described_group_v3(out: bytearray, described_group: DescribedGroup, inserts: Inserts) -> None:
    if described_group.error_message is not None:
        raise absent("error_message")
    out += _h.pack(described_group.error_code)
    put_string(out, described_group.group_id)
    put_string(out, described_group.group_state)
    put_string(out, described_group.protocol_type)
    put_string(out, described_group.protocol_data)
    put_array(out, described_group.members, _write_response_described_group_member_v0_to_v3, inserts)
    out += _i.pack(described_group.authorized_operations)


def _write_response_described_group_v4(out: bytearray, described_group: DescribedGroup, inserts: Inserts) -> None:
    if described_group.error_message is not None:
        raise absent("error_message")
    out += _h.pack(described_group.error_code)
    put_string(out, described_group.group_id)
    put_string(out, described_group.group_state)
    put_string(out, described_group.protocol_type)
    put_string(out, described_group.protocol_data)
    put_array(out, described_group.members, _write_response_described_group_member_v4, inserts)
    out += _i.pack(described_group.authorized_operations)


def _write_response_described_group_v5(out: bytearray, described_group: DescribedGroup, inserts: Inserts) -> None:
    if described_group.error_message is not None:
        raise absent("error_message")
    out += _h.pack(described_group.error_code)
    put_compact_string(out, described_group.group_id)
    put_compact_string(out, described_group.group_state)
    put_compact_string(out, described_group.protocol_type)
    put_compact_string(out, described_group.protocol_data)
    put_compact_array(out, described_group.members, _write_response_described_group_member_v5_to_v6, inserts)
    out += _ix.pack(described_group.authorized_operations)


def _write_response_described_group_v6(out: bytearray, described_group: DescribedGroup, inserts: Inserts) -> None:
    out += _h.pack(described_group.error_code)
    put_nullable_compact_string(out, described_group.error_message)
    put_compact_string(out, described_group.group_id)
    put_compact_string(out, described_group.group_state)
    put_compact_string(out, described_group.protocol_type)
    put_compact_string(out, described_group.protocol_data)
    put_compact_array(out, described_group.members, _write_response_described_group_member_v5_to_v6, inserts)
    out += _ix.pack(described_group.authorized_operations)


def _write_response_v0(out: bytearray, message: DescribeGroupsResponse, inserts: Inserts) -> None:
    put_array(out, message.groups, _write_response_described_group_v0_to_v2, inserts)


def _write_response_v1_to_v2(out: bytearray, message: DescribeGroupsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.groups, _write_response_described_group_v0_to_v2, inserts)


def _write_response_v3(out: bytearray, message: DescribeGroupsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.groups, _write_response_described_group_v3, inserts)


def _write_response_v4(out: bytearray, message: DescribeGroupsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.groups, _write_response_described_group_v4, inserts)


def _write_response_v5(out: bytearray, message: DescribeGroupsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_described_group_v5, inserts)
    out.append(0)


def _write_response_v6(out: bytearray, message: DescribeGroupsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.groups, _write_response_described_group_v6, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeGroupsRequest] = MessageCodec(
    "DescribeGroupsRequest",
    0,
    (
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v3_to_v4,
        _read_request_v3_to_v4,
        _read_request_v5_to_v6,
        _read_request_v5_to_v6,
    ),
    (
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v3_to_v4,
        _write_request_v3_to_v4,
        _write_request_v5_to_v6,
        _write_request_v5_to_v6,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeGroupsResponse] = MessageCodec(
    "DescribeGroupsResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1_to_v2,
        _read_response_v1_to_v2,
        _read_response_v3,
        _read_response_v4,
        _read_response_v5,
        _read_response_v6,
    ),
    (
        _write_response_v0,
        _write_response_v1_to_v2,
        _write_response_v1_to_v2,
        _write_response_v3,
        _write_response_v4,
        _write_response_v5,
        _write_response_v6,
    ),
    holds_views=True,
)
