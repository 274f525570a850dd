"""JoinGroup: API key 11, v0 to v9."""
# Made by tools/wiregen from messages/join_group.txt; do not edit.
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
    null_in_this_version,
    put_array,
    put_compact_array,
    put_compact_data,
    put_compact_string,
    put_data,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
)

_t = struct.Struct(">?")
_i = struct.Struct(">i")
_hi = struct.Struct(">hi")
_ii = struct.Struct(">ii")
_ihi = struct.Struct(">ihi")


class JoinGroupRequestProtocol(Struct):
    __slots__ = (
        "name",
        "metadata",
    )

    def __init__(
        self,
        name: str = "",
        metadata: Buffer = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequest(Struct):
    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )

    def __init__(
        self,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,  # 1+
        member_id: str = "",
        group_instance_id: str | None = None,  # 5+
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,  # 8+
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is EMPTY else protocols
        self.reason = reason


class JoinGroupResponseMember(Struct):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "metadata",
    )

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,  # 5+
        metadata: Buffer = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 2+
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,  # 7+
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,  # 9+
        member_id: str = "",
        members: list[JoinGroupResponseMember] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is EMPTY else members


def _read_request_join_group_request_protocol_v0_to_v5(
    buf: memoryview, pos: int
) -> tuple[JoinGroupRequestProtocol, int]:
    join_group_request_protocol = new(JoinGroupRequestProtocol)
    join_group_request_protocol.name, pos = string(buf, pos)
    join_group_request_protocol.metadata, pos = data(buf, pos)
    return join_group_request_protocol, pos


def _read_request_join_group_request_protocol_v6_to_v9(
    buf: memoryview, pos: int
) -> tuple[JoinGroupRequestProtocol, int]:
    join_group_request_protocol = new(JoinGroupRequestProtocol)
    join_group_request_protocol.name, pos = compact_string(buf, pos)
    join_group_request_protocol.metadata, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return join_group_request_protocol, pos


def _read_request_v0(buf: memoryview, pos: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.rebalance_timeout_ms = -1
    message.group_instance_id = None
    message.reason = None
    message.group_id, pos = string(buf, pos)
    (message.session_timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    message.protocol_type, pos = string(buf, pos)
    message.protocols, pos = array(buf, pos, _read_request_join_group_request_protocol_v0_to_v5, 6, 1)
    return message, pos


def _read_request_v1_to_v4(buf: memoryview, pos: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.group_instance_id = None
    message.reason = None
    message.group_id, pos = string(buf, pos)
    message.session_timeout_ms, message.rebalance_timeout_ms = _ii.unpack_from(buf, pos)
    pos += 8
    message.member_id, pos = string(buf, pos)
    message.protocol_type, pos = string(buf, pos)
    message.protocols, pos = array(buf, pos, _read_request_join_group_request_protocol_v0_to_v5, 6, 1)
    return message, pos


def _read_request_v5(buf: memoryview, pos: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.reason = None
    message.group_id, pos = string(buf, pos)
    message.session_timeout_ms, message.rebalance_timeout_ms = _ii.unpack_from(buf, pos)
    pos += 8
    message.member_id, pos = string(buf, pos)
    message.group_instance_id, pos = nullable_string(buf, pos)
    message.protocol_type, pos = string(buf, pos)
    message.protocols, pos = array(buf, pos, _read_request_join_group_request_protocol_v0_to_v5, 6, 1)
    return message, pos


def _read_request_v6_to_v7(buf: memoryview, pos: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.reason = None
    message.group_id, pos = compact_string(buf, pos)
    message.session_timeout_ms, message.rebalance_timeout_ms = _ii.unpack_from(buf, pos)
    pos += 8
    message.member_id, pos = compact_string(buf, pos)
    message.group_instance_id, pos = nullable_compact_string(buf, pos)
    message.protocol_type, pos = compact_string(buf, pos)
    message.protocols, pos = compact_array(buf, pos, _read_request_join_group_request_protocol_v6_to_v9, 3, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v8_to_v9(buf: memoryview, pos: int) -> tuple[JoinGroupRequest, int]:
    message = new(JoinGroupRequest)
    message.group_id, pos = compact_string(buf, pos)
    message.session_timeout_ms, message.rebalance_timeout_ms = _ii.unpack_from(buf, pos)
    pos += 8
    message.member_id, pos = compact_string(buf, pos)
    message.group_instance_id, pos = nullable_compact_string(buf, pos)
    message.protocol_type, pos = compact_string(buf, pos)
    message.protocols, pos = compact_array(buf, pos, _read_request_join_group_request_protocol_v6_to_v9, 3, 1)
    message.reason, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_join_group_request_protocol_v0_to_v5(
    out: bytearray, join_group_request_protocol: JoinGroupRequestProtocol, _inserts: Inserts
) -> None:
    put_string(out, join_group_request_protocol.name)
    put_data(out, join_group_request_protocol.metadata)


def _write_request_join_group_request_protocol_v6_to_v9(
    out: bytearray, join_group_request_protocol: JoinGroupRequestProtocol, _inserts: Inserts
) -> None:
    put_compact_string(out, join_group_request_protocol.name)
    put_compact_data(out, join_group_request_protocol.metadata)
    out.append(0)


def _write_request_v0(out: bytearray, message: JoinGroupRequest, inserts: Inserts) -> None:
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.group_id)
    out += _i.pack(message.session_timeout_ms)
    put_string(out, message.member_id)
    put_string(out, message.protocol_type)
    put_array(out, message.protocols, _write_request_join_group_request_protocol_v0_to_v5, inserts)


def _write_request_v1_to_v4(out: bytearray, message: JoinGroupRequest, inserts: Inserts) -> None:
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.group_id)
    out += _ii.pack(message.session_timeout_ms, message.rebalance_timeout_ms)
    put_string(out, message.member_id)
    put_string(out, message.protocol_type)
    put_array(out, message.protocols, _write_request_join_group_request_protocol_v0_to_v5, inserts)


def _write_request_v5(out: bytearray, message: JoinGroupRequest, inserts: Inserts) -> None:
    put_string(out, message.group_id)
    out += _ii.pack(message.session_timeout_ms, message.rebalance_timeout_ms)
    put_string(out, message.member_id)
    put_nullable_string(out, message.group_instance_id)
    put_string(out, message.protocol_type)
    put_array(out, message.protocols, _write_request_join_group_request_protocol_v0_to_v5, inserts)


def _write_request_v6_to_v7(out: bytearray, message: JoinGroupRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    out += _ii.pack(message.session_timeout_ms, message.rebalance_timeout_ms)
    put_compact_string(out, message.member_id)
    put_nullable_compact_string(out, message.group_instance_id)
    put_compact_string(out, message.protocol_type)
    put_compact_array(out, message.protocols, _write_request_join_group_request_protocol_v6_to_v9, inserts)
    out.append(0)


def _write_request_v8_to_v9(out: bytearray, message: JoinGroupRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    out += _ii.pack(message.session_timeout_ms, message.rebalance_timeout_ms)
    put_compact_string(out, message.member_id)
    put_nullable_compact_string(out, message.group_instance_id)
    put_compact_string(out, message.protocol_type)
    put_compact_array(out, message.protocols, _write_request_join_group_request_protocol_v6_to_v9, inserts)
    put_nullable_compact_string(out, message.reason)
    out.append(0)


def _read_response_join_group_response_member_v0_to_v4(
    buf: memoryview, pos: int
) -> tuple[JoinGroupResponseMember, int]:
    join_group_response_member = new(JoinGroupResponseMember)
    join_group_response_member.group_instance_id = None
    join_group_response_member.member_id, pos = string(buf, pos)
    join_group_response_member.metadata, pos = data(buf, pos)
    return join_group_response_member, pos


def _read_response_join_group_response_member_v5(buf: memoryview, pos: int) -> tuple[JoinGroupResponseMember, int]:
    join_group_response_member = new(JoinGroupResponseMember)
    join_group_response_member.member_id, pos = string(buf, pos)
    join_group_response_member.group_instance_id, pos = nullable_string(buf, pos)
    join_group_response_member.metadata, pos = data(buf, pos)
    return join_group_response_member, pos


def _read_response_join_group_response_member_v6_to_v9(
    buf: memoryview, pos: int
) -> tuple[JoinGroupResponseMember, int]:
    join_group_response_member = new(JoinGroupResponseMember)
    join_group_response_member.member_id, pos = compact_string(buf, pos)
    join_group_response_member.group_instance_id, pos = nullable_compact_string(buf, pos)
    join_group_response_member.metadata, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return join_group_response_member, pos


def _read_response_v0_to_v1(buf: memoryview, pos: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.throttle_time_ms = 0
    message.protocol_type = None
    message.skip_assignment = False
    message.error_code, message.generation_id = _hi.unpack_from(buf, pos)
    pos += 6
    message.protocol_name, pos = string(buf, pos)
    message.leader, pos = string(buf, pos)
    message.member_id, pos = string(buf, pos)
    message.members, pos = array(buf, pos, _read_response_join_group_response_member_v0_to_v4, 6)
    return message, pos


def _read_response_v2_to_v4(buf: memoryview, pos: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.protocol_type = None
    message.skip_assignment = False
    message.throttle_time_ms, message.error_code, message.generation_id = _ihi.unpack_from(buf, pos)
    pos += 10
    message.protocol_name, pos = string(buf, pos)
    message.leader, pos = string(buf, pos)
    message.member_id, pos = string(buf, pos)
    message.members, pos = array(buf, pos, _read_response_join_group_response_member_v0_to_v4, 6)
    return message, pos


def _read_response_v5(buf: memoryview, pos: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.protocol_type = None
    message.skip_assignment = False
    message.throttle_time_ms, message.error_code, message.generation_id = _ihi.unpack_from(buf, pos)
    pos += 10
    message.protocol_name, pos = string(buf, pos)
    message.leader, pos = string(buf, pos)
    message.member_id, pos = string(buf, pos)
    message.members, pos = array(buf, pos, _read_response_join_group_response_member_v5, 8)
    return message, pos


def _read_response_v6(buf: memoryview, pos: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.protocol_type = None
    message.skip_assignment = False
    message.throttle_time_ms, message.error_code, message.generation_id = _ihi.unpack_from(buf, pos)
    pos += 10
    message.protocol_name, pos = compact_string(buf, pos)
    message.leader, pos = compact_string(buf, pos)
    message.member_id, pos = compact_string(buf, pos)
    message.members, pos = compact_array(buf, pos, _read_response_join_group_response_member_v6_to_v9, 4)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v7_to_v8(buf: memoryview, pos: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.skip_assignment = False
    message.throttle_time_ms, message.error_code, message.generation_id = _ihi.unpack_from(buf, pos)
    pos += 10
    message.protocol_type, pos = nullable_compact_string(buf, pos)
    message.protocol_name, pos = nullable_compact_string(buf, pos)
    message.leader, pos = compact_string(buf, pos)
    message.member_id, pos = compact_string(buf, pos)
    message.members, pos = compact_array(buf, pos, _read_response_join_group_response_member_v6_to_v9, 4)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v9(buf: memoryview, pos: int) -> tuple[JoinGroupResponse, int]:
    message = new(JoinGroupResponse)
    message.throttle_time_ms, message.error_code, message.generation_id = _ihi.unpack_from(buf, pos)
    pos += 10
    message.protocol_type, pos = nullable_compact_string(buf, pos)
    message.protocol_name, pos = nullable_compact_string(buf, pos)
    message.leader, pos = compact_string(buf, pos)
    (message.skip_assignment,) = _t.unpack_from(buf, pos)
    pos += 1
    message.member_id, pos = compact_string(buf, pos)
    message.members, pos = compact_array(buf, pos, _read_response_join_group_response_member_v6_to_v9, 4)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_join_group_response_member_v0_to_v4(
    out: bytearray, join_group_response_member: JoinGroupResponseMember, _inserts: Inserts
) -> None:
    put_string(out, join_group_response_member.member_id)
    put_data(out, join_group_response_member.metadata)


def _write_response_join_group_response_member_v5(
    out: bytearray, join_group_response_member: JoinGroupResponseMember, _inserts: Inserts
) -> None:
    put_string(out, join_group_response_member.member_id)
    put_nullable_string(out, join_group_response_member.group_instance_id)
    put_data(out, join_group_response_member.metadata)


def _write_response_join_group_response_member_v6_to_v9(
    out: bytearray, join_group_response_member: JoinGroupResponseMember, _inserts: Inserts
) -> None:
    put_compact_string(out, join_group_response_member.member_id)
    put_nullable_compact_string(out, join_group_response_member.group_instance_id)
    put_compact_data(out, join_group_response_member.metadata)
    out.append(0)


def _write_response_v0_to_v1(out: bytearray, message: JoinGroupResponse, inserts: Inserts) -> None:
    if message.skip_assignment:
        raise absent("skip_assignment")
    if message.protocol_name is None:
        raise null_in_this_version("protocol_name")
    out += _hi.pack(message.error_code, message.generation_id)
    put_string(out, message.protocol_name)
    put_string(out, message.leader)
    put_string(out, message.member_id)
    put_array(out, message.members, _write_response_join_group_response_member_v0_to_v4, inserts)


def _write_response_v2_to_v4(out: bytearray, message: JoinGroupResponse, inserts: Inserts) -> None:
    if message.skip_assignment:
        raise absent("skip_assignment")
    if message.protocol_name is None:
        raise null_in_this_version("protocol_name")
    out += _ihi.pack(message.throttle_time_ms, message.error_code, message.generation_id)
    put_string(out, message.protocol_name)
    put_string(out, message.leader)
    put_string(out, message.member_id)
    put_array(out, message.members, _write_response_join_group_response_member_v0_to_v4, inserts)


def _write_response_v5(out: bytearray, message: JoinGroupResponse, inserts: Inserts) -> None:
    if message.skip_assignment:
        raise absent("skip_assignment")
    if message.protocol_name is None:
        raise null_in_this_version("protocol_name")
    out += _ihi.pack(message.throttle_time_ms, message.error_code, message.generation_id)
    put_string(out, message.protocol_name)
    put_string(out, message.leader)
    put_string(out, message.member_id)
    put_array(out, message.members, _write_response_join_group_response_member_v5, inserts)


def _write_response_v6(out: bytearray, message: JoinGroupResponse, inserts: Inserts) -> None:
    if message.skip_assignment:
        raise absent("skip_assignment")
    if message.protocol_name is None:
        raise null_in_this_version("protocol_name")
    out += _ihi.pack(message.throttle_time_ms, message.error_code, message.generation_id)
    put_compact_string(out, message.protocol_name)
    put_compact_string(out, message.leader)
    put_compact_string(out, message.member_id)
    put_compact_array(out, message.members, _write_response_join_group_response_member_v6_to_v9, inserts)
    out.append(0)


def _write_response_v7_to_v8(out: bytearray, message: JoinGroupResponse, inserts: Inserts) -> None:
    if message.skip_assignment:
        raise absent("skip_assignment")
    out += _ihi.pack(message.throttle_time_ms, message.error_code, message.generation_id)
    put_nullable_compact_string(out, message.protocol_type)
    put_nullable_compact_string(out, message.protocol_name)
    put_compact_string(out, message.leader)
    put_compact_string(out, message.member_id)
    put_compact_array(out, message.members, _write_response_join_group_response_member_v6_to_v9, inserts)
    out.append(0)


def _write_response_v9(out: bytearray, message: JoinGroupResponse, inserts: Inserts) -> None:
    out += _ihi.pack(message.throttle_time_ms, message.error_code, message.generation_id)
    put_nullable_compact_string(out, message.protocol_type)
    put_nullable_compact_string(out, message.protocol_name)
    put_compact_string(out, message.leader)
    out += _t.pack(message.skip_assignment)
    put_compact_string(out, message.member_id)
    put_compact_array(out, message.members, _write_response_join_group_response_member_v6_to_v9, inserts)
    out.append(0)


REQUEST: MessageCodec[JoinGroupRequest] = MessageCodec(
    "JoinGroupRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1_to_v4,
        _read_request_v1_to_v4,
        _read_request_v1_to_v4,
        _read_request_v1_to_v4,
        _read_request_v5,
        _read_request_v6_to_v7,
        _read_request_v6_to_v7,
        _read_request_v8_to_v9,
        _read_request_v8_to_v9,
    ),
    (
        _write_request_v0,
        _write_request_v1_to_v4,
        _write_request_v1_to_v4,
        _write_request_v1_to_v4,
        _write_request_v1_to_v4,
        _write_request_v5,
        _write_request_v6_to_v7,
        _write_request_v6_to_v7,
        _write_request_v8_to_v9,
        _write_request_v8_to_v9,
    ),
    holds_views=True,
)

RESPONSE: MessageCodec[JoinGroupResponse] = MessageCodec(
    "JoinGroupResponse",
    0,
    (
        _read_response_v0_to_v1,
        _read_response_v0_to_v1,
        _read_response_v2_to_v4,
        _read_response_v2_to_v4,
        _read_response_v2_to_v4,
        _read_response_v5,
        _read_response_v6,
        _read_response_v7_to_v8,
        _read_response_v7_to_v8,
        _read_response_v9,
    ),
    (
        _write_response_v0_to_v1,
        _write_response_v0_to_v1,
        _write_response_v2_to_v4,
        _write_response_v2_to_v4,
        _write_response_v2_to_v4,
        _write_response_v5,
        _write_response_v6,
        _write_response_v7_to_v8,
        _write_response_v7_to_v8,
        _write_response_v9,
    ),
    holds_views=True,
)
