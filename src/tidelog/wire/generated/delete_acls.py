"""DeleteAcls: API key 31, v1 to v3."""
# Made by tools/wiregen from messages/delete_acls.txt; do not edit.
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
    put_array,
    put_compact_array,
    put_compact_string,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
)

_b = struct.Struct(">b")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_bb = struct.Struct(">bb")
_bbx = struct.Struct(">bbx")


class DeleteAclsFilter(Struct):
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsRequest(Struct):
    __slots__ = ("filters",)

    def __init__(
        self,
        filters: list[DeleteAclsFilter] = EMPTY,
    ) -> None:
        self.filters = [] if filters is EMPTY else filters


class DeleteAclsMatchingAcl(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsFilterResult(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "matching_acls",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = [] if matching_acls is EMPTY else matching_acls


class DeleteAclsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "filter_results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is EMPTY else filter_results


def _read_request_delete_acls_filter_v1(buf: bytes, pos: int) -> tuple[DeleteAclsFilter, int]:
    delete_acls_filter = new(DeleteAclsFilter)
    (delete_acls_filter.resource_type_filter,) = _b.unpack_from(buf, pos)
    pos += 1
    delete_acls_filter.resource_name_filter, pos = nullable_string(buf, pos)
    (delete_acls_filter.pattern_type_filter,) = _b.unpack_from(buf, pos)
    pos += 1
    delete_acls_filter.principal_filter, pos = nullable_string(buf, pos)
    delete_acls_filter.host_filter, pos = nullable_string(buf, pos)
    delete_acls_filter.operation, delete_acls_filter.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    return delete_acls_filter, pos


def _read_request_delete_acls_filter_v2_to_v3(buf: bytes, pos: int) -> tuple[DeleteAclsFilter, int]:
    delete_acls_filter = new(DeleteAclsFilter)
    (delete_acls_filter.resource_type_filter,) = _b.unpack_from(buf, pos)
    pos += 1
    delete_acls_filter.resource_name_filter, pos = nullable_compact_string(buf, pos)
    (delete_acls_filter.pattern_type_filter,) = _b.unpack_from(buf, pos)
    pos += 1
    delete_acls_filter.principal_filter, pos = nullable_compact_string(buf, pos)
    delete_acls_filter.host_filter, pos = nullable_compact_string(buf, pos)
    delete_acls_filter.operation, delete_acls_filter.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_acls_filter, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[DeleteAclsRequest, int]:
    message = new(DeleteAclsRequest)
    message.filters, pos = array(buf, pos, _read_request_delete_acls_filter_v1, 10, 1)
    return message, pos


def _read_request_v2_to_v3(buf: bytes, pos: int) -> tuple[DeleteAclsRequest, int]:
    message = new(DeleteAclsRequest)
    message.filters, pos = compact_array(buf, pos, _read_request_delete_acls_filter_v2_to_v3, 8, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_delete_acls_filter_v1(
    out: bytearray, delete_acls_filter: DeleteAclsFilter, _inserts: Inserts
) -> None:
    out += _b.pack(delete_acls_filter.resource_type_filter)
    put_nullable_string(out, delete_acls_filter.resource_name_filter)
    out += _b.pack(delete_acls_filter.pattern_type_filter)
    put_nullable_string(out, delete_acls_filter.principal_filter)
    put_nullable_string(out, delete_acls_filter.host_filter)
    out += _bb.pack(delete_acls_filter.operation, delete_acls_filter.permission_type)


def _write_request_delete_acls_filter_v2_to_v3(
    out: bytearray, delete_acls_filter: DeleteAclsFilter, _inserts: Inserts
) -> None:
    out += _b.pack(delete_acls_filter.resource_type_filter)
    put_nullable_compact_string(out, delete_acls_filter.resource_name_filter)
    out += _b.pack(delete_acls_filter.pattern_type_filter)
    put_nullable_compact_string(out, delete_acls_filter.principal_filter)
    put_nullable_compact_string(out, delete_acls_filter.host_filter)
    out += _bbx.pack(delete_acls_filter.operation, delete_acls_filter.permission_type)


def _write_request_v1(out: bytearray, message: DeleteAclsRequest, inserts: Inserts) -> None:
    put_array(out, message.filters, _write_request_delete_acls_filter_v1, inserts)


def _write_request_v2_to_v3(out: bytearray, message: DeleteAclsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.filters, _write_request_delete_acls_filter_v2_to_v3, inserts)
    out.append(0)


def _read_response_delete_acls_matching_acl_v1(buf: bytes, pos: int) -> tuple[DeleteAclsMatchingAcl, int]:
    delete_acls_matching_acl = new(DeleteAclsMatchingAcl)
    (delete_acls_matching_acl.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    delete_acls_matching_acl.error_message, pos = nullable_string(buf, pos)
    (delete_acls_matching_acl.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    delete_acls_matching_acl.resource_name, pos = string(buf, pos)
    (delete_acls_matching_acl.pattern_type,) = _b.unpack_from(buf, pos)
    pos += 1
    delete_acls_matching_acl.principal, pos = string(buf, pos)
    delete_acls_matching_acl.host, pos = string(buf, pos)
    delete_acls_matching_acl.operation, delete_acls_matching_acl.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    return delete_acls_matching_acl, pos


def _read_response_delete_acls_matching_acl_v2_to_v3(buf: bytes, pos: int) -> tuple[DeleteAclsMatchingAcl, int]:
    delete_acls_matching_acl = new(DeleteAclsMatchingAcl)
    (delete_acls_matching_acl.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    delete_acls_matching_acl.error_message, pos = nullable_compact_string(buf, pos)
    (delete_acls_matching_acl.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    delete_acls_matching_acl.resource_name, pos = compact_string(buf, pos)
    (delete_acls_matching_acl.pattern_type,) = _b.unpack_from(buf, pos)
    pos += 1
    delete_acls_matching_acl.principal, pos = compact_string(buf, pos)
    delete_acls_matching_acl.host, pos = compact_string(buf, pos)
    delete_acls_matching_acl.operation, delete_acls_matching_acl.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_acls_matching_acl, pos


def _read_response_delete_acls_filter_result_v1(buf: bytes, pos: int) -> tuple[DeleteAclsFilterResult, int]:
    delete_acls_filter_result = new(DeleteAclsFilterResult)
    (delete_acls_filter_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    delete_acls_filter_result.error_message, pos = nullable_string(buf, pos)
    delete_acls_filter_result.matching_acls, pos = array(buf, pos, _read_response_delete_acls_matching_acl_v1, 14)
    return delete_acls_filter_result, pos


def _read_response_delete_acls_filter_result_v2_to_v3(buf: bytes, pos: int) -> tuple[DeleteAclsFilterResult, int]:
    delete_acls_filter_result = new(DeleteAclsFilterResult)
    (delete_acls_filter_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    delete_acls_filter_result.error_message, pos = nullable_compact_string(buf, pos)
    delete_acls_filter_result.matching_acls, pos = compact_array(
        buf, pos, _read_response_delete_acls_matching_acl_v2_to_v3, 11
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_acls_filter_result, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[DeleteAclsResponse, int]:
    message = new(DeleteAclsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.filter_results, pos = array(buf, pos, _read_response_delete_acls_filter_result_v1, 8)
    return message, pos


def _read_response_v2_to_v3(buf: bytes, pos: int) -> tuple[DeleteAclsResponse, int]:
    message = new(DeleteAclsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.filter_results, pos = compact_array(buf, pos, _read_response_delete_acls_filter_result_v2_to_v3, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_delete_acls_matching_acl_v1(
    out: bytearray, delete_acls_matching_acl: DeleteAclsMatchingAcl, _inserts: Inserts
) -> None:
    out += _h.pack(delete_acls_matching_acl.error_code)
    put_nullable_string(out, delete_acls_matching_acl.error_message)
    out += _b.pack(delete_acls_matching_acl.resource_type)
    put_string(out, delete_acls_matching_acl.resource_name)
    out += _b.pack(delete_acls_matching_acl.pattern_type)
    put_string(out, delete_acls_matching_acl.principal)
    put_string(out, delete_acls_matching_acl.host)
    out += _bb.pack(delete_acls_matching_acl.operation, delete_acls_matching_acl.permission_type)


def _write_response_delete_acls_matching_acl_v2_to_v3(
    out: bytearray, delete_acls_matching_acl: DeleteAclsMatchingAcl, _inserts: Inserts
) -> None:
    out += _h.pack(delete_acls_matching_acl.error_code)
    put_nullable_compact_string(out, delete_acls_matching_acl.error_message)
    out += _b.pack(delete_acls_matching_acl.resource_type)
    put_compact_string(out, delete_acls_matching_acl.resource_name)
    out += _b.pack(delete_acls_matching_acl.pattern_type)
    put_compact_string(out, delete_acls_matching_acl.principal)
    put_compact_string(out, delete_acls_matching_acl.host)
    out += _bbx.pack(delete_acls_matching_acl.operation, delete_acls_matching_acl.permission_type)


def _write_response_delete_acls_filter_result_v1(
    out: bytearray, delete_acls_filter_result: DeleteAclsFilterResult, inserts: Inserts
) -> None:
    out += _h.pack(delete_acls_filter_result.error_code)
    put_nullable_string(out, delete_acls_filter_result.error_message)
    put_array(out, delete_acls_filter_result.matching_acls, _write_response_delete_acls_matching_acl_v1, inserts)


def _write_response_delete_acls_filter_result_v2_to_v3(
    out: bytearray, delete_acls_filter_result: DeleteAclsFilterResult, inserts: Inserts
) -> None:
    out += _h.pack(delete_acls_filter_result.error_code)
    put_nullable_compact_string(out, delete_acls_filter_result.error_message)
    put_compact_array(
        out, delete_acls_filter_result.matching_acls, _write_response_delete_acls_matching_acl_v2_to_v3, inserts
    )
    out.append(0)


def _write_response_v1(out: bytearray, message: DeleteAclsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.filter_results, _write_response_delete_acls_filter_result_v1, inserts)


def _write_response_v2_to_v3(out: bytearray, message: DeleteAclsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.filter_results, _write_response_delete_acls_filter_result_v2_to_v3, inserts)
    out.append(0)


REQUEST: MessageCodec[DeleteAclsRequest] = MessageCodec(
    "DeleteAclsRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2_to_v3,
        _read_request_v2_to_v3,
    ),
    (
        _write_request_v1,
        _write_request_v2_to_v3,
        _write_request_v2_to_v3,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DeleteAclsResponse] = MessageCodec(
    "DeleteAclsResponse",
    1,
    (
        _read_response_v1,
        _read_response_v2_to_v3,
        _read_response_v2_to_v3,
    ),
    (
        _write_response_v1,
        _write_response_v2_to_v3,
        _write_response_v2_to_v3,
    ),
    holds_views=False,
)
