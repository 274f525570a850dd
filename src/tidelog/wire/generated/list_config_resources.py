"""ListConfigResources: API key 74, v0 to v1."""
# Made by tools/wiregen from messages/list_config_resources.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_numbers, compact_string, skip_tagged_fields
from tidelog.wire.writing import absent, put_compact_array, put_compact_numbers, put_compact_string

_b = struct.Struct(">b")
_bx = struct.Struct(">bx")
_ih = struct.Struct(">ih")


class ListConfigResourcesRequest(Struct):
    __slots__ = ("resource_types",)

    def __init__(
        self,
        resource_types: list[int] = EMPTY,  # 1+
    ) -> None:
        self.resource_types = [] if resource_types is EMPTY else resource_types


class ConfigResource(Struct):
    __slots__ = (
        "resource_name",
        "resource_type",
    )

    def __init__(
        self,
        resource_name: str = "",
        resource_type: int = 16,  # 1+
    ) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type


class ListConfigResourcesResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "config_resources",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is EMPTY else config_resources


def _read_request_v0(buf: bytes, pos: int) -> tuple[ListConfigResourcesRequest, int]:
    message = new(ListConfigResourcesRequest)
    message.resource_types = []
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[ListConfigResourcesRequest, int]:
    message = new(ListConfigResourcesRequest)
    message.resource_types, pos = compact_numbers(buf, pos, "b")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: ListConfigResourcesRequest, _inserts: Inserts) -> None:
    if message.resource_types:
        raise absent("resource_types")
    out.append(0)


def _write_request_v1(out: bytearray, message: ListConfigResourcesRequest, _inserts: Inserts) -> None:
    put_compact_numbers(out, message.resource_types, "b")
    out.append(0)


def _read_response_config_resource_v0(buf: bytes, pos: int) -> tuple[ConfigResource, int]:
    config_resource = new(ConfigResource)
    config_resource.resource_type = 16
    config_resource.resource_name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return config_resource, pos


def _read_response_config_resource_v1(buf: bytes, pos: int) -> tuple[ConfigResource, int]:
    config_resource = new(ConfigResource)
    config_resource.resource_name, pos = compact_string(buf, pos)
    (config_resource.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return config_resource, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[ListConfigResourcesResponse, int]:
    message = new(ListConfigResourcesResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.config_resources, pos = compact_array(buf, pos, _read_response_config_resource_v0, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[ListConfigResourcesResponse, int]:
    message = new(ListConfigResourcesResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.config_resources, pos = compact_array(buf, pos, _read_response_config_resource_v1, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_config_resource_v0(out: bytearray, config_resource: ConfigResource, _inserts: Inserts) -> None:
    put_compact_string(out, config_resource.resource_name)
    out.append(0)


def _write_response_config_resource_v1(out: bytearray, config_resource: ConfigResource, _inserts: Inserts) -> None:
    put_compact_string(out, config_resource.resource_name)
    out += _bx.pack(config_resource.resource_type)


def _write_response_v0(out: bytearray, message: ListConfigResourcesResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.config_resources, _write_response_config_resource_v0, inserts)
    out.append(0)


def _write_response_v1(out: bytearray, message: ListConfigResourcesResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.config_resources, _write_response_config_resource_v1, inserts)
    out.append(0)


REQUEST: MessageCodec[ListConfigResourcesRequest] = MessageCodec(
    "ListConfigResourcesRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1,
    ),
    (
        _write_request_v0,
        _write_request_v1,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[ListConfigResourcesResponse] = MessageCodec(
    "ListConfigResourcesResponse",
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
