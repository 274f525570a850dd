"""SyncGroup: API key 14, v0 to v5."""
# Made by tools/wiregen from messages/sync_group.txt; do not edit.
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
    put_data,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_ih = struct.Struct(">ih")


class SyncGroupRequestAssignment(Struct):
    __slots__ = (
        "member_id",
        "assignment",
    )

    def __init__(
        self,
        member_id: str = "",
        assignment: Buffer = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Struct):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,  # 3+
        protocol_type: str | None = None,  # 5+
        protocol_name: str | None = None,  # 5+
        assignments: list[SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is EMPTY else assignments


class SyncGroupResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "protocol_type",
        "protocol_name",
        "assignment",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 1+
        error_code: int = 0,
        protocol_type: str | None = None,  # 5+
        protocol_name: str | None = None,  # 5+
        assignment: Buffer = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment


def _read_request_sync_group_request_assignment_v0_to_v3(
    buf: memoryview, pos: int
) -> tuple[SyncGroupRequestAssignment, int]:
    sync_group_request_assignment = new(SyncGroupRequestAssignment)
    sync_group_request_assignment.member_id, pos = string(buf, pos)
    sync_group_request_assignment.assignment, pos = data(buf, pos)
    return sync_group_request_assignment, pos


def _read_request_sync_group_request_assignment_v4_to_v5(
    buf: memoryview, pos: int
) -> tuple[SyncGroupRequestAssignment, int]:
    sync_group_request_assignment = new(SyncGroupRequestAssignment)
    sync_group_request_assignment.member_id, pos = compact_string(buf, pos)
    sync_group_request_assignment.assignment, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return sync_group_request_assignment, pos


def _read_request_v0_to_v2(buf: memoryview, pos: int) -> tuple[SyncGroupRequest, int]:
    message = new(SyncGroupRequest)
    message.group_instance_id = None
    message.protocol_type = None
    message.protocol_name = None
    message.group_id, pos = string(buf, pos)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    message.assignments, pos = array(buf, pos, _read_request_sync_group_request_assignment_v0_to_v3, 6, 1)
    return message, pos


def _read_request_v3(buf: memoryview, pos: int) -> tuple[SyncGroupRequest, int]:
    message = new(SyncGroupRequest)
    message.protocol_type = None
    message.protocol_name = None
    message.group_id, pos = string(buf, pos)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = string(buf, pos)
    message.group_instance_id, pos = nullable_string(buf, pos)
    message.assignments, pos = array(buf, pos, _read_request_sync_group_request_assignment_v0_to_v3, 6, 1)
    return message, pos


def _read_request_v4(buf: memoryview, pos: int) -> tuple[SyncGroupRequest, int]:
    message = new(SyncGroupRequest)
    message.protocol_type = None
    message.protocol_name = None
    message.group_id, pos = compact_string(buf, pos)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = compact_string(buf, pos)
    message.group_instance_id, pos = nullable_compact_string(buf, pos)
    message.assignments, pos = compact_array(buf, pos, _read_request_sync_group_request_assignment_v4_to_v5, 3, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v5(buf: memoryview, pos: int) -> tuple[SyncGroupRequest, int]:
    message = new(SyncGroupRequest)
    message.group_id, pos = compact_string(buf, pos)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.member_id, pos = compact_string(buf, pos)
    message.group_instance_id, pos = nullable_compact_string(buf, pos)
    message.protocol_type, pos = nullable_compact_string(buf, pos)
    message.protocol_name, pos = nullable_compact_string(buf, pos)
    message.assignments, pos = compact_array(buf, pos, _read_request_sync_group_request_assignment_v4_to_v5, 3, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_sync_group_request_assignment_v0_to_v3(
    out: bytearray, sync_group_request_assignment: SyncGroupRequestAssignment, _inserts: Inserts
) -> None:
    put_string(out, sync_group_request_assignment.member_id)
    put_data(out, sync_group_request_assignment.assignment)


def _write_request_sync_group_request_assignment_v4_to_v5(
    out: bytearray, sync_group_request_assignment: SyncGroupRequestAssignment, _inserts: Inserts
) -> None:
    put_compact_string(out, sync_group_request_assignment.member_id)
    put_compact_data(out, sync_group_request_assignment.assignment)
    out.append(0)


def _write_request_v0_to_v2(out: bytearray, message: SyncGroupRequest, inserts: Inserts) -> None:
    if message.group_instance_id is not None:
        raise absent("group_instance_id")
    put_string(out, message.group_id)
    out += _i.pack(message.generation_id)
    put_string(out, message.member_id)
    put_array(out, message.assignments, _write_request_sync_group_request_assignment_v0_to_v3, inserts)


def _write_request_v3(out: bytearray, message: SyncGroupRequest, inserts: Inserts) -> None:
    put_string(out, message.group_id)
    out += _i.pack(message.generation_id)
    put_string(out, message.member_id)
    put_nullable_string(out, message.group_instance_id)
    put_array(out, message.assignments, _write_request_sync_group_request_assignment_v0_to_v3, inserts)


def _write_request_v4(out: bytearray, message: SyncGroupRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    out += _i.pack(message.generation_id)
    put_compact_string(out, message.member_id)
    put_nullable_compact_string(out, message.group_instance_id)
    put_compact_array(out, message.assignments, _write_request_sync_group_request_assignment_v4_to_v5, inserts)
    out.append(0)


def _write_request_v5(out: bytearray, message: SyncGroupRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    out += _i.pack(message.generation_id)
    put_compact_string(out, message.member_id)
    put_nullable_compact_string(out, message.group_instance_id)
    put_nullable_compact_string(out, message.protocol_type)
    put_nullable_compact_string(out, message.protocol_name)
    put_compact_array(out, message.assignments, _write_request_sync_group_request_assignment_v4_to_v5, inserts)
    out.append(0)


def _read_response_v0(buf: memoryview, pos: int) -> tuple[SyncGroupResponse, int]:
    message = new(SyncGroupResponse)
    message.throttle_time_ms = 0
    message.protocol_type = None
    message.protocol_name = None
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.assignment, pos = data(buf, pos)
    return message, pos


def _read_response_v1_to_v3(buf: memoryview, pos: int) -> tuple[SyncGroupResponse, int]:
    message = new(SyncGroupResponse)
    message.protocol_type = None
    message.protocol_name = None
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.assignment, pos = data(buf, pos)
    return message, pos


def _read_response_v4(buf: memoryview, pos: int) -> tuple[SyncGroupResponse, int]:
    message = new(SyncGroupResponse)
    message.protocol_type = None
    message.protocol_name = None
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.assignment, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v5(buf: memoryview, pos: int) -> tuple[SyncGroupResponse, int]:
    message = new(SyncGroupResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.protocol_type, pos = nullable_compact_string(buf, pos)
    message.protocol_name, pos = nullable_compact_string(buf, pos)
    message.assignment, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: SyncGroupResponse, _inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_data(out, message.assignment)


def _write_response_v1_to_v3(out: bytearray, message: SyncGroupResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_data(out, message.assignment)


def _write_response_v4(out: bytearray, message: SyncGroupResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_data(out, message.assignment)
    out.append(0)


def _write_response_v5(out: bytearray, message: SyncGroupResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.protocol_type)
    put_nullable_compact_string(out, message.protocol_name)
    put_compact_data(out, message.assignment)
    out.append(0)


REQUEST: MessageCodec[SyncGroupRequest] = MessageCodec(
    "SyncGroupRequest",
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
    holds_views=True,
)

RESPONSE: MessageCodec[SyncGroupResponse] = MessageCodec(
    "SyncGroupResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1_to_v3,
        _read_response_v1_to_v3,
        _read_response_v1_to_v3,
        _read_response_v4,
        _read_response_v5,
    ),
    (
        _write_response_v0,
        _write_response_v1_to_v3,
        _write_response_v1_to_v3,
        _write_response_v1_to_v3,
        _write_response_v4,
        _write_response_v5,
    ),
    holds_views=True,
)
