"""DeleteGroups: API key 42, v0 to v2."""
# Made by tools/wiregen from messages/delete_groups.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import array, compact_array, compact_string, skip_tagged_fields, string
from tidelog.wire.writing import (
    put_array,
    put_compact_array,
    put_compact_string,
    put_compact_strings,
    put_string,
    put_strings,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_hx = struct.Struct(">hx")


class DeleteGroupsRequest(Struct):
    __slots__ = ("groups_names",)

    def __init__(
        self,
        groups_names: list[str] = EMPTY,
    ) -> None:
        self.groups_names = [] if groups_names is EMPTY else groups_names


class DeletableGroupResult(Struct):
    __slots__ = (
        "group_id",
        "error_code",
    )

    def __init__(
        self,
        group_id: str = "",
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code


class DeleteGroupsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[DeleteGroupsRequest, int]:
    message = new(DeleteGroupsRequest)
    message.groups_names, pos = array(buf, pos, string, 2, 1)
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[DeleteGroupsRequest, int]:
    message = new(DeleteGroupsRequest)
    message.groups_names, pos = compact_array(buf, pos, compact_string, 1, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v1(out: bytearray, message: DeleteGroupsRequest, _inserts: Inserts) -> None:
    put_strings(out, message.groups_names)


def _write_request_v2(out: bytearray, message: DeleteGroupsRequest, _inserts: Inserts) -> None:
    put_compact_strings(out, message.groups_names)
    out.append(0)


def _read_response_deletable_group_result_v0_to_v1(buf: bytes, pos: int) -> tuple[DeletableGroupResult, int]:
    deletable_group_result = new(DeletableGroupResult)
    deletable_group_result.group_id, pos = string(buf, pos)
    (deletable_group_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return deletable_group_result, pos


def _read_response_deletable_group_result_v2(buf: bytes, pos: int) -> tuple[DeletableGroupResult, int]:
    deletable_group_result = new(DeletableGroupResult)
    deletable_group_result.group_id, pos = compact_string(buf, pos)
    (deletable_group_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return deletable_group_result, pos


def _read_response_v0_to_v1(buf: bytes, pos: int) -> tuple[DeleteGroupsResponse, int]:
    message = new(DeleteGroupsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = array(buf, pos, _read_response_deletable_group_result_v0_to_v1, 4)
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[DeleteGroupsResponse, int]:
    message = new(DeleteGroupsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = compact_array(buf, pos, _read_response_deletable_group_result_v2, 4)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_deletable_group_result_v0_to_v1(
    out: bytearray, deletable_group_result: DeletableGroupResult, _inserts: Inserts
) -> None:
    put_string(out, deletable_group_result.group_id)
    out += _h.pack(deletable_group_result.error_code)


def _write_response_deletable_group_result_v2(
    out: bytearray, deletable_group_result: DeletableGroupResult, _inserts: Inserts
) -> None:
    put_compact_string(out, deletable_group_result.group_id)
    out += _hx.pack(deletable_group_result.error_code)


def _write_response_v0_to_v1(out: bytearray, message: DeleteGroupsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.results, _write_response_deletable_group_result_v0_to_v1, inserts)


def _write_response_v2(out: bytearray, message: DeleteGroupsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.results, _write_response_deletable_group_result_v2, inserts)
    out.append(0)


REQUEST: MessageCodec[DeleteGroupsRequest] = MessageCodec(
    "DeleteGroupsRequest",
    0,
    (
        _read_request_v0_to_v1,
        _read_request_v0_to_v1,
        _read_request_v2,
    ),
    (
        _write_request_v0_to_v1,
        _write_request_v0_to_v1,
        _write_request_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DeleteGroupsResponse] = MessageCodec(
    "DeleteGroupsResponse",
    0,
    (
        _read_response_v0_to_v1,
        _read_response_v0_to_v1,
        _read_response_v2,
    ),
    (
        _write_response_v0_to_v1,
        _write_response_v0_to_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
