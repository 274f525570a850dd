"""DescribeAcls: API key 29, v1 to v3."""
# Made by tools/wiregen from messages/describe_acls.txt; do not edit.
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
_bb = struct.Struct(">bb")
_ih = struct.Struct(">ih")
_bbx = struct.Struct(">bbx")


class DescribeAclsRequest(Struct):
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


class AclDescription(Struct):
    __slots__ = (
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DescribeAclsResource(Struct):
    __slots__ = (
        "resource_type",
        "resource_name",
        "pattern_type",
        "acls",
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is EMPTY else acls


class DescribeAclsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "resources",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is EMPTY else resources


def _read_request_v1(buf: bytes, pos: int) -> tuple[DescribeAclsRequest, int]:
    message = new(DescribeAclsRequest)
    (message.resource_type_filter,) = _b.unpack_from(buf, pos)
    pos += 1
    message.resource_name_filter, pos = nullable_string(buf, pos)
    (message.pattern_type_filter,) = _b.unpack_from(buf, pos)
    pos += 1
    message.principal_filter, pos = nullable_string(buf, pos)
    message.host_filter, pos = nullable_string(buf, pos)
    message.operation, message.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    return message, pos


def _read_request_v2_to_v3(buf: bytes, pos: int) -> tuple[DescribeAclsRequest, int]:
    message = new(DescribeAclsRequest)
    (message.resource_type_filter,) = _b.unpack_from(buf, pos)
    pos += 1
    message.resource_name_filter, pos = nullable_compact_string(buf, pos)
    (message.pattern_type_filter,) = _b.unpack_from(buf, pos)
    pos += 1
    message.principal_filter, pos = nullable_compact_string(buf, pos)
    message.host_filter, pos = nullable_compact_string(buf, pos)
    message.operation, message.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v1(out: bytearray, message: DescribeAclsRequest, _inserts: Inserts) -> None:
    out += _b.pack(message.resource_type_filter)
    put_nullable_string(out, message.resource_name_filter)
    out += _b.pack(message.pattern_type_filter)
    put_nullable_string(out, message.principal_filter)
    put_nullable_string(out, message.host_filter)
    out += _bb.pack(message.operation, message.permission_type)


def _write_request_v2_to_v3(out: bytearray, message: DescribeAclsRequest, _inserts: Inserts) -> None:
    out += _b.pack(message.resource_type_filter)
    put_nullable_compact_string(out, message.resource_name_filter)
    out += _b.pack(message.pattern_type_filter)
    put_nullable_compact_string(out, message.principal_filter)
    put_nullable_compact_string(out, message.host_filter)
    out += _bbx.pack(message.operation, message.permission_type)


def _read_response_acl_description_v1(buf: bytes, pos: int) -> tuple[AclDescription, int]:
    acl_description = new(AclDescription)
    acl_description.principal, pos = string(buf, pos)
    acl_description.host, pos = string(buf, pos)
    acl_description.operation, acl_description.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    return acl_description, pos


def _read_response_acl_description_v2_to_v3(buf: bytes, pos: int) -> tuple[AclDescription, int]:
    acl_description = new(AclDescription)
    acl_description.principal, pos = compact_string(buf, pos)
    acl_description.host, pos = compact_string(buf, pos)
    acl_description.operation, acl_description.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return acl_description, pos


def _read_response_describe_acls_resource_v1(buf: bytes, pos: int) -> tuple[DescribeAclsResource, int]:
    describe_acls_resource = new(DescribeAclsResource)
    (describe_acls_resource.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_acls_resource.resource_name, pos = string(buf, pos)
    (describe_acls_resource.pattern_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_acls_resource.acls, pos = array(buf, pos, _read_response_acl_description_v1, 6)
    return describe_acls_resource, pos


def _read_response_describe_acls_resource_v2_to_v3(buf: bytes, pos: int) -> tuple[DescribeAclsResource, int]:
    describe_acls_resource = new(DescribeAclsResource)
    (describe_acls_resource.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_acls_resource.resource_name, pos = compact_string(buf, pos)
    (describe_acls_resource.pattern_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_acls_resource.acls, pos = compact_array(buf, pos, _read_response_acl_description_v2_to_v3, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_acls_resource, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[DescribeAclsResponse, int]:
    message = new(DescribeAclsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_string(buf, pos)
    message.resources, pos = array(buf, pos, _read_response_describe_acls_resource_v1, 8)
    return message, pos


def _read_response_v2_to_v3(buf: bytes, pos: int) -> tuple[DescribeAclsResponse, int]:
    message = new(DescribeAclsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.resources, pos = compact_array(buf, pos, _read_response_describe_acls_resource_v2_to_v3, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_acl_description_v1(out: bytearray, acl_description: AclDescription, _inserts: Inserts) -> None:
    put_string(out, acl_description.principal)
    put_string(out, acl_description.host)
    out += _bb.pack(acl_description.operation, acl_description.permission_type)


def _write_response_acl_description_v2_to_v3(
    out: bytearray, acl_description: AclDescription, _inserts: Inserts
) -> None:
    put_compact_string(out, acl_description.principal)
    put_compact_string(out, acl_description.host)
    out += _bbx.pack(acl_description.operation, acl_description.permission_type)


def _write_response_describe_acls_resource_v1(
    out: bytearray, describe_acls_resource: DescribeAclsResource, inserts: Inserts
) -> None:
    out += _b.pack(describe_acls_resource.resource_type)
    put_string(out, describe_acls_resource.resource_name)
    out += _b.pack(describe_acls_resource.pattern_type)
    put_array(out, describe_acls_resource.acls, _write_response_acl_description_v1, inserts)


def _write_response_describe_acls_resource_v2_to_v3(
    out: bytearray, describe_acls_resource: DescribeAclsResource, inserts: Inserts
) -> None:
    out += _b.pack(describe_acls_resource.resource_type)
    put_compact_string(out, describe_acls_resource.resource_name)
    out += _b.pack(describe_acls_resource.pattern_type)
    put_compact_array(out, describe_acls_resource.acls, _write_response_acl_description_v2_to_v3, inserts)
    out.append(0)


def _write_response_v1(out: bytearray, message: DescribeAclsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_string(out, message.error_message)
    put_array(out, message.resources, _write_response_describe_acls_resource_v1, inserts)


def _write_response_v2_to_v3(out: bytearray, message: DescribeAclsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.resources, _write_response_describe_acls_resource_v2_to_v3, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeAclsRequest] = MessageCodec(
    "DescribeAclsRequest",
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

RESPONSE: MessageCodec[DescribeAclsResponse] = MessageCodec(
    "DescribeAclsResponse",
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
