"""CreateAcls: API key 30, v1 to v3."""
# Made by tools/wiregen from messages/create_acls.txt; do not edit.
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


class AclCreation(Struct):
    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequest(Struct):
    __slots__ = ("creations",)

    def __init__(
        self,
        creations: list[AclCreation] = EMPTY,
    ) -> None:
        self.creations = [] if creations is EMPTY else creations


class AclCreationResult(Struct):
    __slots__ = (
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message


class CreateAclsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results


def _read_request_acl_creation_v1(buf: bytes, pos: int) -> tuple[AclCreation, int]:
    acl_creation = new(AclCreation)
    (acl_creation.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    acl_creation.resource_name, pos = string(buf, pos)
    (acl_creation.resource_pattern_type,) = _b.unpack_from(buf, pos)
    pos += 1
    acl_creation.principal, pos = string(buf, pos)
    acl_creation.host, pos = string(buf, pos)
    acl_creation.operation, acl_creation.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    return acl_creation, pos


def _read_request_acl_creation_v2_to_v3(buf: bytes, pos: int) -> tuple[AclCreation, int]:
    acl_creation = new(AclCreation)
    (acl_creation.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    acl_creation.resource_name, pos = compact_string(buf, pos)
    (acl_creation.resource_pattern_type,) = _b.unpack_from(buf, pos)
    pos += 1
    acl_creation.principal, pos = compact_string(buf, pos)
    acl_creation.host, pos = compact_string(buf, pos)
    acl_creation.operation, acl_creation.permission_type = _bb.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return acl_creation, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[CreateAclsRequest, int]:
    message = new(CreateAclsRequest)
    message.creations, pos = array(buf, pos, _read_request_acl_creation_v1, 10, 1)
    return message, pos


def _read_request_v2_to_v3(buf: bytes, pos: int) -> tuple[CreateAclsRequest, int]:
    message = new(CreateAclsRequest)
    message.creations, pos = compact_array(buf, pos, _read_request_acl_creation_v2_to_v3, 8, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_acl_creation_v1(out: bytearray, acl_creation: AclCreation, _inserts: Inserts) -> None:
    out += _b.pack(acl_creation.resource_type)
    put_string(out, acl_creation.resource_name)
    out += _b.pack(acl_creation.resource_pattern_type)
    put_string(out, acl_creation.principal)
    put_string(out, acl_creation.host)
    out += _bb.pack(acl_creation.operation, acl_creation.permission_type)


def _write_request_acl_creation_v2_to_v3(out: bytearray, acl_creation: AclCreation, _inserts: Inserts) -> None:
    out += _b.pack(acl_creation.resource_type)
    put_compact_string(out, acl_creation.resource_name)
    out += _b.pack(acl_creation.resource_pattern_type)
    put_compact_string(out, acl_creation.principal)
    put_compact_string(out, acl_creation.host)
    out += _bbx.pack(acl_creation.operation, acl_creation.permission_type)


def _write_request_v1(out: bytearray, message: CreateAclsRequest, inserts: Inserts) -> None:
    put_array(out, message.creations, _write_request_acl_creation_v1, inserts)


def _write_request_v2_to_v3(out: bytearray, message: CreateAclsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.creations, _write_request_acl_creation_v2_to_v3, inserts)
    out.append(0)


def _read_response_acl_creation_result_v1(buf: bytes, pos: int) -> tuple[AclCreationResult, int]:
    acl_creation_result = new(AclCreationResult)
    (acl_creation_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    acl_creation_result.error_message, pos = nullable_string(buf, pos)
    return acl_creation_result, pos


def _read_response_acl_creation_result_v2_to_v3(buf: bytes, pos: int) -> tuple[AclCreationResult, int]:
    acl_creation_result = new(AclCreationResult)
    (acl_creation_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    acl_creation_result.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return acl_creation_result, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[CreateAclsResponse, int]:
    message = new(CreateAclsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = array(buf, pos, _read_response_acl_creation_result_v1, 4)
    return message, pos


def _read_response_v2_to_v3(buf: bytes, pos: int) -> tuple[CreateAclsResponse, int]:
    message = new(CreateAclsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = compact_array(buf, pos, _read_response_acl_creation_result_v2_to_v3, 4)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_acl_creation_result_v1(
    out: bytearray, acl_creation_result: AclCreationResult, _inserts: Inserts
) -> None:
    out += _h.pack(acl_creation_result.error_code)
    put_nullable_string(out, acl_creation_result.error_message)


def _write_response_acl_creation_result_v2_to_v3(
    out: bytearray, acl_creation_result: AclCreationResult, _inserts: Inserts
) -> None:
    out += _h.pack(acl_creation_result.error_code)
    put_nullable_compact_string(out, acl_creation_result.error_message)
    out.append(0)


def _write_response_v1(out: bytearray, message: CreateAclsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.results, _write_response_acl_creation_result_v1, inserts)


def _write_response_v2_to_v3(out: bytearray, message: CreateAclsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.results, _write_response_acl_creation_result_v2_to_v3, inserts)
    out.append(0)


REQUEST: MessageCodec[CreateAclsRequest] = MessageCodec(
    "CreateAclsRequest",
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

RESPONSE: MessageCodec[CreateAclsResponse] = MessageCodec(
    "CreateAclsResponse",
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
