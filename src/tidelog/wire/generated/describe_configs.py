"""DescribeConfigs: API key 32, v1 to v4."""
# Made by tools/wiregen from messages/describe_configs.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_string,
    nullable_array,
    nullable_compact_array,
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
    put_nullable_compact_strings,
    put_nullable_string,
    put_nullable_strings,
    put_string,
)

_t = struct.Struct(">?")
_b = struct.Struct(">b")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_tt = struct.Struct(">??")
_bx = struct.Struct(">bx")
_ttx = struct.Struct(">??x")
_tbt = struct.Struct(">?b?")


class DescribeConfigsResource(Struct):
    __slots__ = (
        "resource_type",
        "resource_name",
        "configuration_keys",
    )

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = [] if configuration_keys is EMPTY else configuration_keys


class DescribeConfigsRequest(Struct):
    __slots__ = (
        "resources",
        "include_synonyms",
        "include_documentation",
    )

    def __init__(
        self,
        resources: list[DescribeConfigsResource] = EMPTY,
        include_synonyms: bool = False,
        include_documentation: bool = False,  # 3+
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation


class DescribeConfigsSynonym(Struct):
    __slots__ = (
        "name",
        "value",
        "source",
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Struct):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = EMPTY,
        config_type: int = 0,  # 3+
        documentation: str | None = "",  # 3+
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is EMPTY else synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "configs",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is EMPTY else configs


class DescribeConfigsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results


def _read_request_describe_configs_resource_v1_to_v3(buf: bytes, pos: int) -> tuple[DescribeConfigsResource, int]:
    describe_configs_resource = new(DescribeConfigsResource)
    (describe_configs_resource.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_configs_resource.resource_name, pos = string(buf, pos)
    describe_configs_resource.configuration_keys, pos = nullable_array(buf, pos, string, 2, 1)
    return describe_configs_resource, pos


def _read_request_describe_configs_resource_v4(buf: bytes, pos: int) -> tuple[DescribeConfigsResource, int]:
    describe_configs_resource = new(DescribeConfigsResource)
    (describe_configs_resource.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_configs_resource.resource_name, pos = compact_string(buf, pos)
    describe_configs_resource.configuration_keys, pos = nullable_compact_array(buf, pos, compact_string, 1, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_configs_resource, pos


def _read_request_v1_to_v2(buf: bytes, pos: int) -> tuple[DescribeConfigsRequest, int]:
    message = new(DescribeConfigsRequest)
    message.include_documentation = False
    message.resources, pos = array(buf, pos, _read_request_describe_configs_resource_v1_to_v3, 7, 2)
    (message.include_synonyms,) = _t.unpack_from(buf, pos)
    pos += 1
    return message, pos


def _read_request_v3(buf: bytes, pos: int) -> tuple[DescribeConfigsRequest, int]:
    message = new(DescribeConfigsRequest)
    message.resources, pos = array(buf, pos, _read_request_describe_configs_resource_v1_to_v3, 7, 2)
    message.include_synonyms, message.include_documentation = _tt.unpack_from(buf, pos)
    pos += 2
    return message, pos


def _read_request_v4(buf: bytes, pos: int) -> tuple[DescribeConfigsRequest, int]:
    message = new(DescribeConfigsRequest)
    message.resources, pos = compact_array(buf, pos, _read_request_describe_configs_resource_v4, 4, 2)
    message.include_synonyms, message.include_documentation = _tt.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_describe_configs_resource_v1_to_v3(
    out: bytearray, describe_configs_resource: DescribeConfigsResource, _inserts: Inserts
) -> None:
    out += _b.pack(describe_configs_resource.resource_type)
    put_string(out, describe_configs_resource.resource_name)
    put_nullable_strings(out, describe_configs_resource.configuration_keys)


def _write_request_describe_configs_resource_v4(
    out: bytearray, describe_configs_resource: DescribeConfigsResource, _inserts: Inserts
) -> None:
    out += _b.pack(describe_configs_resource.resource_type)
    put_compact_string(out, describe_configs_resource.resource_name)
    put_nullable_compact_strings(out, describe_configs_resource.configuration_keys)
    out.append(0)


def _write_request_v1_to_v2(out: bytearray, message: DescribeConfigsRequest, inserts: Inserts) -> None:
    if message.include_documentation:
        raise absent("include_documentation")
    put_array(out, message.resources, _write_request_describe_configs_resource_v1_to_v3, inserts)
    out += _t.pack(message.include_synonyms)


def _write_request_v3(out: bytearray, message: DescribeConfigsRequest, inserts: Inserts) -> None:
    put_array(out, message.resources, _write_request_describe_configs_resource_v1_to_v3, inserts)
    out += _tt.pack(message.include_synonyms, message.include_documentation)


def _write_request_v4(out: bytearray, message: DescribeConfigsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.resources, _write_request_describe_configs_resource_v4, inserts)
    out += _ttx.pack(message.include_synonyms, message.include_documentation)


def _read_response_describe_configs_synonym_v1_to_v3(buf: bytes, pos: int) -> tuple[DescribeConfigsSynonym, int]:
    describe_configs_synonym = new(DescribeConfigsSynonym)
    describe_configs_synonym.name, pos = string(buf, pos)
    describe_configs_synonym.value, pos = nullable_string(buf, pos)
    (describe_configs_synonym.source,) = _b.unpack_from(buf, pos)
    pos += 1
    return describe_configs_synonym, pos


def _read_response_describe_configs_synonym_v4(buf: bytes, pos: int) -> tuple[DescribeConfigsSynonym, int]:
    describe_configs_synonym = new(DescribeConfigsSynonym)
    describe_configs_synonym.name, pos = compact_string(buf, pos)
    describe_configs_synonym.value, pos = nullable_compact_string(buf, pos)
    (describe_configs_synonym.source,) = _b.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_configs_synonym, pos


def _read_response_describe_configs_resource_result_v1_to_v2(
    buf: bytes, pos: int
) -> tuple[DescribeConfigsResourceResult, int]:
    describe_configs_resource_result = new(DescribeConfigsResourceResult)
    describe_configs_resource_result.config_type = 0
    describe_configs_resource_result.documentation = ""
    describe_configs_resource_result.name, pos = string(buf, pos)
    describe_configs_resource_result.value, pos = nullable_string(buf, pos)
    (
        describe_configs_resource_result.read_only,
        describe_configs_resource_result.config_source,
        describe_configs_resource_result.is_sensitive,
    ) = _tbt.unpack_from(buf, pos)
    pos += 3
    describe_configs_resource_result.synonyms, pos = array(
        buf, pos, _read_response_describe_configs_synonym_v1_to_v3, 5
    )
    return describe_configs_resource_result, pos


def _read_response_describe_configs_resource_result_v3(
    buf: bytes, pos: int
) -> tuple[DescribeConfigsResourceResult, int]:
    describe_configs_resource_result = new(DescribeConfigsResourceResult)
    describe_configs_resource_result.name, pos = string(buf, pos)
    describe_configs_resource_result.value, pos = nullable_string(buf, pos)
    (
        describe_configs_resource_result.read_only,
        describe_configs_resource_result.config_source,
        describe_configs_resource_result.is_sensitive,
    ) = _tbt.unpack_from(buf, pos)
    pos += 3
    describe_configs_resource_result.synonyms, pos = array(
        buf, pos, _read_response_describe_configs_synonym_v1_to_v3, 5
    )
    (describe_configs_resource_result.config_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_configs_resource_result.documentation, pos = nullable_string(buf, pos)
    return describe_configs_resource_result, pos


def _read_response_describe_configs_resource_result_v4(
    buf: bytes, pos: int
) -> tuple[DescribeConfigsResourceResult, int]:
    describe_configs_resource_result = new(DescribeConfigsResourceResult)
    describe_configs_resource_result.name, pos = compact_string(buf, pos)
    describe_configs_resource_result.value, pos = nullable_compact_string(buf, pos)
    (
        describe_configs_resource_result.read_only,
        describe_configs_resource_result.config_source,
        describe_configs_resource_result.is_sensitive,
    ) = _tbt.unpack_from(buf, pos)
    pos += 3
    describe_configs_resource_result.synonyms, pos = compact_array(
        buf, pos, _read_response_describe_configs_synonym_v4, 4
    )
    (describe_configs_resource_result.config_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_configs_resource_result.documentation, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_configs_resource_result, pos


def _read_response_describe_configs_result_v1_to_v2(buf: bytes, pos: int) -> tuple[DescribeConfigsResult, int]:
    describe_configs_result = new(DescribeConfigsResult)
    (describe_configs_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_configs_result.error_message, pos = nullable_string(buf, pos)
    (describe_configs_result.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_configs_result.resource_name, pos = string(buf, pos)
    describe_configs_result.configs, pos = array(
        buf, pos, _read_response_describe_configs_resource_result_v1_to_v2, 11
    )
    return describe_configs_result, pos


def _read_response_describe_configs_result_v3(buf: bytes, pos: int) -> tuple[DescribeConfigsResult, int]:
    describe_configs_result = new(DescribeConfigsResult)
    (describe_configs_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_configs_result.error_message, pos = nullable_string(buf, pos)
    (describe_configs_result.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_configs_result.resource_name, pos = string(buf, pos)
    describe_configs_result.configs, pos = array(buf, pos, _read_response_describe_configs_resource_result_v3, 14)
    return describe_configs_result, pos


def _read_response_describe_configs_result_v4(buf: bytes, pos: int) -> tuple[DescribeConfigsResult, int]:
    describe_configs_result = new(DescribeConfigsResult)
    (describe_configs_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_configs_result.error_message, pos = nullable_compact_string(buf, pos)
    (describe_configs_result.resource_type,) = _b.unpack_from(buf, pos)
    pos += 1
    describe_configs_result.resource_name, pos = compact_string(buf, pos)
    describe_configs_result.configs, pos = compact_array(
        buf, pos, _read_response_describe_configs_resource_result_v4, 9
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_configs_result, pos


def _read_response_v1_to_v2(buf: bytes, pos: int) -> tuple[DescribeConfigsResponse, int]:
    message = new(DescribeConfigsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = array(buf, pos, _read_response_describe_configs_result_v1_to_v2, 11)
    return message, pos


def _read_response_v3(buf: bytes, pos: int) -> tuple[DescribeConfigsResponse, int]:
    message = new(DescribeConfigsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = array(buf, pos, _read_response_describe_configs_result_v3, 11)
    return message, pos


def _read_response_v4(buf: bytes, pos: int) -> tuple[DescribeConfigsResponse, int]:
    message = new(DescribeConfigsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = compact_array(buf, pos, _read_response_describe_configs_result_v4, 7)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_describe_configs_synonym_v1_to_v3(
    out: bytearray, describe_configs_synonym: DescribeConfigsSynonym, _inserts: Inserts
) -> None:
    put_string(out, describe_configs_synonym.name)
    put_nullable_string(out, describe_configs_synonym.value)
    out += _b.pack(describe_configs_synonym.source)


def _write_response_describe_configs_synonym_v4(
    out: bytearray, describe_configs_synonym: DescribeConfigsSynonym, _inserts: Inserts
) -> None:
    put_compact_string(out, describe_configs_synonym.name)
    put_nullable_compact_string(out, describe_configs_synonym.value)
    out += _bx.pack(describe_configs_synonym.source)


def _write_response_describe_configs_resource_result_v1_to_v2(
    out: bytearray, describe_configs_resource_result: DescribeConfigsResourceResult, inserts: Inserts
) -> None:
    put_string(out, describe_configs_resource_result.name)
    put_nullable_string(out, describe_configs_resource_result.value)
    out += _tbt.pack(
        describe_configs_resource_result.read_only,
        describe_configs_resource_result.config_source,
        describe_configs_resource_result.is_sensitive,
    )
    put_array(
        out, describe_configs_resource_result.synonyms, _write_response_describe_configs_synonym_v1_to_v3, inserts
    )


def _write_response_describe_configs_resource_result_v3(
    out: bytearray, describe_configs_resource_result: DescribeConfigsResourceResult, inserts: Inserts
) -> None:
    put_string(out, describe_configs_resource_result.name)
    put_nullable_string(out, describe_configs_resource_result.value)
    out += _tbt.pack(
        describe_configs_resource_result.read_only,
        describe_configs_resource_result.config_source,
        describe_configs_resource_result.is_sensitive,
    )
    put_array(
        out, describe_configs_resource_result.synonyms, _write_response_describe_configs_synonym_v1_to_v3, inserts
    )
    out += _b.pack(describe_configs_resource_result.config_type)
    put_nullable_string(out, describe_configs_resource_result.documentation)


def _write_response_describe_configs_resource_result_v4(
    out: bytearray, describe_configs_resource_result: DescribeConfigsResourceResult, inserts: Inserts
) -> None:
    put_compact_string(out, describe_configs_resource_result.name)
    put_nullable_compact_string(out, describe_configs_resource_result.value)
    out += _tbt.pack(
        describe_configs_resource_result.read_only,
        describe_configs_resource_result.config_source,
        describe_configs_resource_result.is_sensitive,
    )
    put_compact_array(
        out, describe_configs_resource_result.synonyms, _write_response_describe_configs_synonym_v4, inserts
    )
    out += _b.pack(describe_configs_resource_result.config_type)
    put_nullable_compact_string(out, describe_configs_resource_result.documentation)
    out.append(0)


def _write_response_describe_configs_result_v1_to_v2(
    out: bytearray, describe_configs_result: DescribeConfigsResult, inserts: Inserts
) -> None:
    out += _h.pack(describe_configs_result.error_code)
    put_nullable_string(out, describe_configs_result.error_message)
    out += _b.pack(describe_configs_result.resource_type)
    put_string(out, describe_configs_result.resource_name)
    put_array(
        out, describe_configs_result.configs, _write_response_describe_configs_resource_result_v1_to_v2, inserts
    )


def _write_response_describe_configs_result_v3(
    out: bytearray, describe_configs_result: DescribeConfigsResult, inserts: Inserts
) -> None:
    out += _h.pack(describe_configs_result.error_code)
    put_nullable_string(out, describe_configs_result.error_message)
    out += _b.pack(describe_configs_result.resource_type)
    put_string(out, describe_configs_result.resource_name)
    put_array(out, describe_configs_result.configs, _write_response_describe_configs_resource_result_v3, inserts)


def _write_response_describe_configs_result_v4(
    out: bytearray, describe_configs_result: DescribeConfigsResult, inserts: Inserts
) -> None:
    out += _h.pack(describe_configs_result.error_code)
    put_nullable_compact_string(out, describe_configs_result.error_message)
    out += _b.pack(describe_configs_result.resource_type)
    put_compact_string(out, describe_configs_result.resource_name)
    put_compact_array(
        out, describe_configs_result.configs, _write_response_describe_configs_resource_result_v4, inserts
    )
    out.append(0)


def _write_response_v1_to_v2(out: bytearray, message: DescribeConfigsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.results, _write_response_describe_configs_result_v1_to_v2, inserts)


def _write_response_v3(out: bytearray, message: DescribeConfigsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.results, _write_response_describe_configs_result_v3, inserts)


def _write_response_v4(out: bytearray, message: DescribeConfigsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.results, _write_response_describe_configs_result_v4, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeConfigsRequest] = MessageCodec(
    "DescribeConfigsRequest",
    1,
    (
        _read_request_v1_to_v2,
        _read_request_v1_to_v2,
        _read_request_v3,
        _read_request_v4,
    ),
    (
        _write_request_v1_to_v2,
        _write_request_v1_to_v2,
        _write_request_v3,
        _write_request_v4,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeConfigsResponse] = MessageCodec(
    "DescribeConfigsResponse",
    1,
    (
        _read_response_v1_to_v2,
        _read_response_v1_to_v2,
        _read_response_v3,
        _read_response_v4,
    ),
    (
        _write_response_v1_to_v2,
        _write_response_v1_to_v2,
        _write_response_v3,
        _write_response_v4,
    ),
    holds_views=False,
)
