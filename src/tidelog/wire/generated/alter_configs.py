"""AlterConfigs: API key 33, v0 to v2."""
# Made by tools/wiregen from messages/alter_configs.txt; do not edit.
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

_t = struct.Struct(">?")
_b = struct.Struct(">b")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_tx = struct.Struct(">?x")


class AlterableConfig(Struct):
    __slots__ = (
        "name",
        "value",
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class AlterConfigsResource(Struct):
    __slots__ = (
        "resource_type",
        "resource_name",
        "configs",
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs


class AlterConfigsRequest(Struct):
    __slots__ = (
        "resources",
        "validate_only",
    )

    def __init__(
        self,
        resources: list[AlterConfigsResource] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.validate_only = validate_only


class AlterConfigsResourceResponse(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class AlterConfigsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "responses",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses


def _read_request_alterable_config_v0_to_v1(buf: bytes, pos: int) -> tuple[AlterableConfig, int]:
    alterable_config = new(AlterableConfig)
    alterable_config.name, pos = string(buf, pos)
    alterable_config.value, pos = nullable_string(buf, pos)
    return alterable_config, pos


def _read_request_alterable_config_v2(buf: bytes, pos: int) -> tuple[AlterableConfig, int]:
    alterable_config = new(AlterableConfig)
    alterable_config.name, pos = compact_string(buf, pos)
    alterable_config.value, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alterable_config, pos


def _read_request_alter_configs_resource_v0_to_v1(buf: bytes, pos: int) -> tuple[AlterConfigsResource, int]:
    alter_configs_resource = new(AlterConfigsResource)
    (alter_configs_resource.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    alter_configs_resource.resource_name, pos = string(buf, pos)
    alter_configs_resource.configs, pos = array(buf, pos, _read_request_alterable_config_v0_to_v1, 4, 1)
    return alter_configs_resource, pos


def _read_request_alter_configs_resource_v2(buf: bytes, pos: int) -> tuple[AlterConfigsResource, int]:
    alter_configs_resource = new(AlterConfigsResource)
    (alter_configs_resource.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    alter_configs_resource.resource_name, pos = compact_string(buf, pos)
    alter_configs_resource.configs, pos = compact_array(buf, pos, _read_request_alterable_config_v2, 3, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_configs_resource, pos


def _read_request_v0_to_v1(buf: bytes, pos: int) -> tuple[AlterConfigsRequest, int]:
    message = new(AlterConfigsRequest)
    message.resources, pos = array(buf, pos, _read_request_alter_configs_resource_v0_to_v1, 7, 2)
    (message.validate_only,) = _t.unpack_from(buf, pos)
    pos += 1
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[AlterConfigsRequest, int]:
    message = new(AlterConfigsRequest)
    message.resources, pos = compact_array(buf, pos, _read_request_alter_configs_resource_v2, 4, 2)
    (message.validate_only,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_alterable_config_v0_to_v1(
    out: bytearray, alterable_config: AlterableConfig, _inserts: Inserts
) -> None:
    put_string(out, alterable_config.name)
    put_nullable_string(out, alterable_config.value)


def _write_request_alterable_config_v2(out: bytearray, alterable_config: AlterableConfig, _inserts: Inserts) -> None:
    put_compact_string(out, alterable_config.name)
    put_nullable_compact_string(out, alterable_config.value)
    out.append(0)


def _write_request_alter_configs_resource_v0_to_v1(
    out: bytearray, alter_configs_resource: AlterConfigsResource, inserts: Inserts
) -> None:
    out += _b.pack(alter_configs_resource.resource_type)
    put_string(out, alter_configs_resource.resource_name)
    put_array(out, alter_configs_resource.configs, _write_request_alterable_config_v0_to_v1, inserts)


def _write_request_alter_configs_resource_v2(
    out: bytearray, alter_configs_resource: AlterConfigsResource, inserts: Inserts
) -> None:
    out += _b.pack(alter_configs_resource.resource_type)
    put_compact_string(out, alter_configs_resource.resource_name)
    put_compact_array(out, alter_configs_resource.configs, _write_request_alterable_config_v2, inserts)
    out.append(0)


def _write_request_v0_to_v1(out: bytearray, message: AlterConfigsRequest, inserts: Inserts) -> None:
    put_array(out, message.resources, _write_request_alter_configs_resource_v0_to_v1, inserts)
    out += _t.pack(message.validate_only)


def _write_request_v2(out: bytearray, message: AlterConfigsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.resources, _write_request_alter_configs_resource_v2, inserts)
    out += _tx.pack(message.validate_only)


def _read_response_alter_configs_resource_response_v0_to_v1(
    buf: bytes, pos: int
) -> tuple[AlterConfigsResourceResponse, int]:
    alter_configs_resource_response = new(AlterConfigsResourceResponse)
    (alter_configs_resource_response.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    alter_configs_resource_response.error_message, pos = nullable_string(buf, pos)
    (alter_configs_resource_response.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    alter_configs_resource_response.resource_name, pos = string(buf, pos)
    return alter_configs_resource_response, pos


def _read_response_alter_configs_resource_response_v2(
    buf: bytes, pos: int
) -> tuple[AlterConfigsResourceResponse, int]:
    alter_configs_resource_response = new(AlterConfigsResourceResponse)
    (alter_configs_resource_response.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    alter_configs_resource_response.error_message, pos = nullable_compact_string(buf, pos)
    (alter_configs_resource_response.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    alter_configs_resource_response.resource_name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_configs_resource_response, pos


def _read_response_v0_to_v1(buf: bytes, pos: int) -> tuple[AlterConfigsResponse, int]:
    message = new(AlterConfigsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.responses, pos = array(buf, pos, _read_response_alter_configs_resource_response_v0_to_v1, 7)
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[AlterConfigsResponse, int]:
    message = new(AlterConfigsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.responses, pos = compact_array(buf, pos, _read_response_alter_configs_resource_response_v2, 6)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_alter_configs_resource_response_v0_to_v1(
    out: bytearray, alter_configs_resource_response: AlterConfigsResourceResponse, _inserts: Inserts
) -> None:
    out += _h.pack(alter_configs_resource_response.error_code)
    put_nullable_string(out, alter_configs_resource_response.error_message)
    out += _b.pack(alter_configs_resource_response.resource_type)
    put_string(out, alter_configs_resource_response.resource_name)


def _write_response_alter_configs_resource_response_v2(
    out: bytearray, alter_configs_resource_response: AlterConfigsResourceResponse, _inserts: Inserts
) -> None:
    out += _h.pack(alter_configs_resource_response.error_code)
    put_nullable_compact_string(out, alter_configs_resource_response.error_message)
    out += _b.pack(alter_configs_resource_response.resource_type)
    put_compact_string(out, alter_configs_resource_response.resource_name)
    out.append(0)


def _write_response_v0_to_v1(out: bytearray, message: AlterConfigsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.responses, _write_response_alter_configs_resource_response_v0_to_v1, inserts)


def _write_response_v2(out: bytearray, message: AlterConfigsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.responses, _write_response_alter_configs_resource_response_v2, inserts)
    out.append(0)


REQUEST: MessageCodec[AlterConfigsRequest] = MessageCodec(
    "AlterConfigsRequest",
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

RESPONSE: MessageCodec[AlterConfigsResponse] = MessageCodec(
    "AlterConfigsResponse",
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
