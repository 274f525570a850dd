"""LeaveGroup: API key 13, v0 to v5."""
# Made by tools/wiregen from messages/leave_group.txt; do not edit.
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

_h = struct.Struct(">h")
_hx = struct.Struct(">hx")
_ih = struct.Struct(">ih")


class MemberIdentity(Struct):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "reason",
    )

    def __init__(
        self,
        member_id: str = "",  # 3+
        group_instance_id: str | None = None,  # 3+
        reason: str | None = None,  # 5+
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Struct):
    __slots__ = (
        "group_id",
        "member_id",
        "members",
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",  # 0-2
        members: list[MemberIdentity] = EMPTY,  # 3+
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is EMPTY else members


class MemberResponse(Struct):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "error_code",
    )

    def __init__(
        self,
        member_id: str = "",  # 3+
        group_instance_id: str | None = "",  # 3+
        error_code: int = 0,  # 3+
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "members",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 1+
        error_code: int = 0,
        members: list[MemberResponse] = EMPTY,  # 3+
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is EMPTY else members


def _read_request_member_identity_v3(buf: bytes, pos: int) -> tuple[MemberIdentity, int]:
    member_identity = new(MemberIdentity)
    member_identity.reason = None
    member_identity.member_id, pos = string(buf, pos)
    member_identity.group_instance_id, pos = nullable_string(buf, pos)
    return member_identity, pos


def _read_request_member_identity_v4(buf: bytes, pos: int) -> tuple[MemberIdentity, int]:
    member_identity = new(MemberIdentity)
    member_identity.reason = None
    member_identity.member_id, pos = compact_string(buf, pos)
    member_identity.group_instance_id, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return member_identity, pos


def _read_request_member_identity_v5(buf: bytes, pos: int) -> tuple[MemberIdentity, int]:
    member_identity = new(MemberIdentity)
    member_identity.member_id, pos = compact_string(buf, pos)
    member_identity.group_instance_id, pos = nullable_compact_string(buf, pos)
    member_identity.reason, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return member_identity, pos


def _read_request_v0_to_v2(buf: bytes, pos: int) -> tuple[LeaveGroupRequest, int]:
    message = new(LeaveGroupRequest)
    message.members = []
    message.group_id, pos = string(buf, pos)
    message.member_id, pos = string(buf, pos)
    return message, pos


def _read_request_v3(buf: bytes, pos: int) -> tuple[LeaveGroupRequest, int]:
    message = new(LeaveGroupRequest)
    message.member_id = ""
    message.group_id, pos = string(buf, pos)
    message.members, pos = array(buf, pos, _read_request_member_identity_v3, 4, 1)
    return message, pos


def _read_request_v4(buf: bytes, pos: int) -> tuple[LeaveGroupRequest, int]:
    message = new(LeaveGroupRequest)
    message.member_id = ""
    message.group_id, pos = compact_string(buf, pos)
    message.members, pos = compact_array(buf, pos, _read_request_member_identity_v4, 3, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v5(buf: bytes, pos: int) -> tuple[LeaveGroupRequest, int]:
    message = new(LeaveGroupRequest)
    message.member_id = ""
    message.group_id, pos = compact_string(buf, pos)
    message.members, pos = compact_array(buf, pos, _read_request_member_identity_v5, 4, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_member_identity_v3(out: bytearray, member_identity: MemberIdentity, _inserts: Inserts) -> None:
    put_string(out, member_identity.member_id)
    put_nullable_string(out, member_identity.group_instance_id)


def _write_request_member_identity_v4(out: bytearray, member_identity: MemberIdentity, _inserts: Inserts) -> None:
    put_compact_string(out, member_identity.member_id)
    put_nullable_compact_string(out, member_identity.group_instance_id)
    out.append(0)


def _write_request_member_identity_v5(out: bytearray, member_identity: MemberIdentity, _inserts: Inserts) -> None:
    put_compact_string(out, member_identity.member_id)
    put_nullable_compact_string(out, member_identity.group_instance_id)
    put_nullable_compact_string(out, member_identity.reason)
    out.append(0)


def _write_request_v0_to_v2(out: bytearray, message: LeaveGroupRequest, _inserts: Inserts) -> None:
    if message.members:
        raise absent("members")
    put_string(out, message.group_id)
    put_string(out, message.member_id)


def _write_request_v3(out: bytearray, message: LeaveGroupRequest, inserts: Inserts) -> None:
    if message.member_id:
        raise absent("member_id")
    put_string(out, message.group_id)
    put_array(out, message.members, _write_request_member_identity_v3, inserts)


def _write_request_v4(out: bytearray, message: LeaveGroupRequest, inserts: Inserts) -> None:
    if message.member_id:
        raise absent("member_id")
    put_compact_string(out, message.group_id)
    put_compact_array(out, message.members, _write_request_member_identity_v4, inserts)
    out.append(0)


def _write_request_v5(out: bytearray, message: LeaveGroupRequest, inserts: Inserts) -> None:
    if message.member_id:
        raise absent("member_id")
    put_compact_string(out, message.group_id)
    put_compact_array(out, message.members, _write_request_member_identity_v5, inserts)
    out.append(0)


def _read_response_member_response_v3(buf: bytes, pos: int) -> tuple[MemberResponse, int]:
    member_response = new(MemberResponse)
    member_response.member_id, pos = string(buf, pos)
    member_response.group_instance_id, pos = nullable_string(buf, pos)
    (member_response.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return member_response, pos


def _read_response_member_response_v4_to_v5(buf: bytes, pos: int) -> tuple[MemberResponse, int]:
    member_response = new(MemberResponse)
    member_response.member_id, pos = compact_string(buf, pos)
    member_response.group_instance_id, pos = nullable_compact_string(buf, pos)
    (member_response.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return member_response, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
    message = new(LeaveGroupResponse)
    message.throttle_time_ms = 0
    message.members = []
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return message, pos


def _read_response_v1_to_v2(buf: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
    message = new(LeaveGroupResponse)
    message.members = []
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    return message, pos


def _read_response_v3(buf: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
    message = new(LeaveGroupResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.members, pos = array(buf, pos, _read_response_member_response_v3, 6)
    return message, pos


def _read_response_v4_to_v5(buf: bytes, pos: int) -> tuple[LeaveGroupResponse, int]:
    message = new(LeaveGroupResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.members, pos = compact_array(buf, pos, _read_response_member_response_v4_to_v5, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_member_response_v3(out: bytearray, member_response: MemberResponse, _inserts: Inserts) -> None:
    put_string(out, member_response.member_id)
    put_nullable_string(out, member_response.group_instance_id)
    out += _h.pack(member_response.error_code)


def _write_response_member_response_v4_to_v5(
    out: bytearray, member_response: MemberResponse, _inserts: Inserts
) -> None:
    put_compact_string(out, member_response.member_id)
    put_nullable_compact_string(out, member_response.group_instance_id)
    out += _hx.pack(member_response.error_code)


def _write_response_v0(out: bytearray, message: LeaveGroupResponse, _inserts: Inserts) -> None:
    if message.members:
        raise absent("members")
    out += _h.pack(message.error_code)


def _write_response_v1_to_v2(out: bytearray, message: LeaveGroupResponse, _inserts: Inserts) -> None:
    if message.members:
        raise absent("members")
    out += _ih.pack(message.throttle_time_ms, message.error_code)


def _write_response_v3(out: bytearray, message: LeaveGroupResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_array(out, message.members, _write_response_member_response_v3, inserts)


def _write_response_v4_to_v5(out: bytearray, message: LeaveGroupResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.members, _write_response_member_response_v4_to_v5, inserts)
    out.append(0)


REQUEST: MessageCodec[LeaveGroupRequest] = MessageCodec(
    "LeaveGroupRequest",
    0,
    (
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v3,
        _read_request_v4,
        _read_request_v5,
    ),
    (
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v3,
        _write_request_v4,
        _write_request_v5,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[LeaveGroupResponse] = MessageCodec(
    "LeaveGroupResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1_to_v2,
        _read_response_v1_to_v2,
        _read_response_v3,
        _read_response_v4_to_v5,
        _read_response_v4_to_v5,
    ),
    (
        _write_response_v0,
        _write_response_v1_to_v2,
        _write_response_v1_to_v2,
        _write_response_v3,
        _write_response_v4_to_v5,
        _write_response_v4_to_v5,
    ),
    holds_views=False,
)
