"""ListGroups: API key 16, v0 to v5."""
# Made by tools/wiregen from messages/list_groups.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import array, compact_array, compact_string, skip_tagged_fields, string
from tidelog.wire.writing import (
    absent,
    put_array,
    put_compact_array,
    put_compact_string,
    put_compact_strings,
    put_string,
)

_h = struct.Struct(">h")
_ih = struct.Struct(">ih")


class ListGroupsRequest(Struct):
    __slots__ = (
        "states_filter",
        "types_filter",
    )

    def __init__(
        self,
        states_filter: list[str] = EMPTY,  # 4+
        types_filter: list[str] = EMPTY,  # 5+
    ) -> None:
        self.states_filter = [] if states_filter is EMPTY else states_filter
        self.types_filter = [] if types_filter is EMPTY else types_filter


class ListedGroup(Struct):
    __slots__ = (
        "group_id",
        "protocol_type",
        "group_state",
        "group_type",
    )

    def __init__(
        self,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",  # 4+
        group_type: str = "",  # 5+
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "groups",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 1+
        error_code: int = 0,
        groups: list[ListedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is EMPTY else groups


def _read_request_v0_to_v2(_buf: bytes, pos: int) -> tuple[ListGroupsRequest, int]:
    message = new(ListGroupsRequest)
    message.states_filter = []
    message.types_filter = []
    return message, pos


def _read_request_v3(buf: bytes, pos: int) -> tuple[ListGroupsRequest, int]:
    message = new(ListGroupsRequest)
    message.states_filter = []
    message.types_filter = []
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v4(buf: bytes, pos: int) -> tuple[ListGroupsRequest, int]:
    message = new(ListGroupsRequest)
    message.types_filter = []
    message.states_filter, pos = compact_array(buf, pos, compact_string, 1, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v5(buf: bytes, pos: int) -> tuple[ListGroupsRequest, int]:
    message = new(ListGroupsRequest)
    message.states_filter, pos = compact_array(buf, pos, compact_string, 1, 1)
    message.types_filter, pos = compact_array(buf, pos, compact_string, 1, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v2(_out: bytearray, message: ListGroupsRequest, _inserts: Inserts) -> None:
    if message.states_filter:
        raise absent("states_filter")
    if message.types_filter:
        raise absent("types_filter")


def _write_request_v3(out: bytearray, message: ListGroupsRequest, _inserts: Inserts) -> None:
    if message.states_filter:
        raise absent("states_filter")
    if message.types_filter:
        raise absent("types_filter")
    out.append(0)


def _write_request_v4(out: bytearray, message: ListGroupsRequest, _inserts: Inserts) -> None:
    if message.types_filter:
        raise absent("types_filter")
    put_compact_strings(out, message.states_filter)
    out.append(0)


def _write_request_v5(out: bytearray, message: ListGroupsRequest, _inserts: Inserts) -> None:
    put_compact_strings(out, message.states_filter)
    put_compact_strings(out, message.types_filter)
    out.append(0)


def _read_response_listed_group_v0_to_v2(buf: bytes, pos: int) -> tuple[ListedGroup, int]:
    listed_group = new(ListedGroup)
    listed_group.group_state = ""
    listed_group.group_type = ""
    listed_group.group_id, pos = string(buf, pos)
    listed_group.protocol_type, pos = string(buf, pos)
    return listed_group, pos


def _read_response_listed_group_v3(buf: bytes, pos: int) -> tuple[ListedGroup, int]:
    listed_group = new(ListedGroup)
    listed_group.group_state = ""
    listed_group.group_type = ""
    listed_group.group_id, pos = compact_string(buf, pos)
    listed_group.protocol_type, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return listed_group, pos


def _read_response_listed_group_v4(buf: bytes, pos: int) -> tuple[ListedGroup, int]:
    listed_group = new(ListedGroup)
    listed_group.group_type = ""
    listed_group.group_id, pos = compact_string(buf, pos)
    listed_group.protocol_type, pos = compact_string(buf, pos)
    listed_group.group_state, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return listed_group, pos


def _read_response_listed_group_v5(buf: bytes, pos: int) -> tuple[ListedGroup, int]:
    listed_group = new(ListedGroup)
    listed_group.group_id, pos = compact_string(buf, pos)
    listed_group.protocol_type, pos = compact_string(buf, pos)
    listed_group.group_state, pos = compact_string(buf, pos)
    listed_group.group_type, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return listed_group, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.throttle_time_ms = 0
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.groups, pos = array(buf, pos, _read_response_listed_group_v0_to_v2, 4)
    return message, pos


def _read_response_v1_to_v2(buf: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.groups, pos = array(buf, pos, _read_response_listed_group_v0_to_v2, 4)
    return message, pos


def _read_response_v3(buf: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.groups, pos = compact_array(buf, pos, _read_response_listed_group_v3, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v4(buf: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.groups, pos = compact_array(buf, pos, _read_response_listed_group_v4, 4)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v5(buf: bytes, pos: int) -> tuple[ListGroupsResponse, int]:
    message = new(ListGroupsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.groups, pos = compact_array(buf, pos, _read_response_listed_group_v5, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_listed_group_v0_to_v2(out: bytearray, listed_group: ListedGroup, _inserts: Inserts) -> None:
    put_string(out, listed_group.group_id)
    put_string(out, listed_group.protocol_type)


def _write_response_listed_group_v3(out: bytearray, listed_group: ListedGroup, _inserts: Inserts) -> None:
    put_compact_string(out, listed_group.group_id)
    put_compact_string(out, listed_group.protocol_type)
    out.append(0)


def _write_response_listed_group_v4(out: bytearray, listed_group: ListedGroup, _inserts: Inserts) -> None:
    put_compact_string(out, listed_group.group_id)
    put_compact_string(out, listed_group.protocol_type)
    put_compact_string(out, listed_group.group_state)
    out.append(0)


def _write_response_listed_group_v5(out: bytearray, listed_group: ListedGroup, _inserts: Inserts) -> None:
    put_compact_string(out, listed_group.group_id)
    put_compact_string(out, listed_group.protocol_type)
    put_compact_string(out, listed_group.group_state)
    put_compact_string(out, listed_group.group_type)
    out.append(0)


def _write_response_v0(out: bytearray, message: ListGroupsResponse, inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_array(out, message.groups, _write_response_listed_group_v0_to_v2, inserts)


def _write_response_v1_to_v2(out: bytearray, message: ListGroupsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_array(out, message.groups, _write_response_listed_group_v0_to_v2, inserts)


def _write_response_v3(out: bytearray, message: ListGroupsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.groups, _write_response_listed_group_v3, inserts)
    out.append(0)


def _write_response_v4(out: bytearray, message: ListGroupsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.groups, _write_response_listed_group_v4, inserts)
    out.append(0)


def _write_response_v5(out: bytearray, message: ListGroupsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.groups, _write_response_listed_group_v5, inserts)
    out.append(0)


REQUEST: MessageCodec[ListGroupsRequest] = MessageCodec(
    "ListGroupsRequest",
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

RESPONSE: MessageCodec[ListGroupsResponse] = MessageCodec(
    "ListGroupsResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1_to_v2,
        _read_response_v1_to_v2,
        _read_response_v3,
        _read_response_v4,
        _read_response_v5,
    ),
    (
        _write_response_v0,
        _write_response_v1_to_v2,
        _write_response_v1_to_v2,
        _write_response_v3,
        _write_response_v4,
        _write_response_v5,
    ),
    holds_views=False,
)
