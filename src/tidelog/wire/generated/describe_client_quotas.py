"""DescribeClientQuotas: API key 48, v0 to v1."""
# Made by tools/wiregen from messages/describe_client_quotas.txt; do not edit.
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
    put_array,
    put_compact_array,
    put_compact_string,
    put_nullable_array,
    put_nullable_compact_array,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
)

_t = struct.Struct(">?")
_b = struct.Struct(">b")
_d = struct.Struct(">d")
_tx = struct.Struct(">?x")
_dx = struct.Struct(">dx")
_ih = struct.Struct(">ih")


class ComponentData(Struct):
    __slots__ = (
        "entity_type",
        "match_type",
        "match",
    )

    def __init__(
        self,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequest(Struct):
    __slots__ = (
        "components",
        "strict",
    )

    def __init__(
        self,
        components: list[ComponentData] = EMPTY,
        strict: bool = False,
    ) -> None:
        self.components = [] if components is EMPTY else components
        self.strict = strict


class EntityData(Struct):
    __slots__ = (
        "entity_type",
        "entity_name",
    )

    def __init__(
        self,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ValueData(Struct):
    __slots__ = (
        "key",
        "value",
    )

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key = key
        self.value = value


class EntryData(Struct):
    __slots__ = (
        "entity",
        "values",
    )

    def __init__(
        self,
        entity: list[EntityData] = EMPTY,
        values: list[ValueData] = EMPTY,
    ) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.values = [] if values is EMPTY else values


class DescribeClientQuotasResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "entries",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is EMPTY else entries


def _read_request_component_data_v0(buf: bytes, pos: int) -> tuple[ComponentData, int]:
    component_data = new(ComponentData)
    component_data.entity_type, pos = string(buf, pos)
    (component_data.match_type,) = _b.unpack_from(buf, pos)
    pos += 1
    component_data.match, pos = nullable_string(buf, pos)
    return component_data, pos


def _read_request_component_data_v1(buf: bytes, pos: int) -> tuple[ComponentData, int]:
    component_data = new(ComponentData)
    component_data.entity_type, pos = compact_string(buf, pos)
    (component_data.match_type,) = _b.unpack_from(buf, pos)
    pos += 1
    component_data.match, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return component_data, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[DescribeClientQuotasRequest, int]:
    message = new(DescribeClientQuotasRequest)
    message.components, pos = array(buf, pos, _read_request_component_data_v0, 5, 1)
    (message.strict,) = _t.unpack_from(buf, pos)
    pos += 1
    return message, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[DescribeClientQuotasRequest, int]:
    message = new(DescribeClientQuotasRequest)
    message.components, pos = compact_array(buf, pos, _read_request_component_data_v1, 4, 1)
    (message.strict,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_component_data_v0(out: bytearray, component_data: ComponentData, _inserts: Inserts) -> None:
    put_string(out, component_data.entity_type)
    out += _b.pack(component_data.match_type)
    put_nullable_string(out, component_data.match)


def _write_request_component_data_v1(out: bytearray, component_data: ComponentData, _inserts: Inserts) -> None:
    put_compact_string(out, component_data.entity_type)
    out += _b.pack(component_data.match_type)
    put_nullable_compact_string(out, component_data.match)
    out.append(0)


def _write_request_v0(out: bytearray, message: DescribeClientQuotasRequest, inserts: Inserts) -> None:
    put_array(out, message.components, _write_request_component_data_v0, inserts)
    out += _t.pack(message.strict)


def _write_request_v1(out: bytearray, message: DescribeClientQuotasRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.components, _write_request_component_data_v1, inserts)
    out += _tx.pack(message.strict)


def _read_response_entity_data_v0(buf: bytes, pos: int) -> tuple[EntityData, int]:
    entity_data = new(EntityData)
    entity_data.entity_type, pos = string(buf, pos)
    entity_data.entity_name, pos = nullable_string(buf, pos)
    return entity_data, pos


def _read_response_entity_data_v1(buf: bytes, pos: int) -> tuple[EntityData, int]:
    entity_data = new(EntityData)
    entity_data.entity_type, pos = compact_string(buf, pos)
    entity_data.entity_name, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return entity_data, pos


def _read_response_value_data_v0(buf: bytes, pos: int) -> tuple[ValueData, int]:
    value_data = new(ValueData)
    value_data.key, pos = string(buf, pos)
    (value_data.value,) = _d.unpack_from(buf, pos)
    pos += 8
    return value_data, pos


def _read_response_value_data_v1(buf: bytes, pos: int) -> tuple[ValueData, int]:
    value_data = new(ValueData)
    value_data.key, pos = compact_string(buf, pos)
    (value_data.value,) = _d.unpack_from(buf, pos)
    pos += 8
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return value_data, pos


def _read_response_entry_data_v0(buf: bytes, pos: int) -> tuple[EntryData, int]:
    entry_data = new(EntryData)
    entry_data.entity, pos = array(buf, pos, _read_response_entity_data_v0, 4)
    entry_data.values, pos = array(buf, pos, _read_response_value_data_v0, 10)
    return entry_data, pos


def _read_response_entry_data_v1(buf: bytes, pos: int) -> tuple[EntryData, int]:
    entry_data = new(EntryData)
    entry_data.entity, pos = compact_array(buf, pos, _read_response_entity_data_v1, 3)
    entry_data.values, pos = compact_array(buf, pos, _read_response_value_data_v1, 10)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return entry_data, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeClientQuotasResponse, int]:
    message = new(DescribeClientQuotasResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_string(buf, pos)
    message.entries, pos = nullable_array(buf, pos, _read_response_entry_data_v0, 8)
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[DescribeClientQuotasResponse, int]:
    message = new(DescribeClientQuotasResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.entries, pos = nullable_compact_array(buf, pos, _read_response_entry_data_v1, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_entity_data_v0(out: bytearray, entity_data: EntityData, _inserts: Inserts) -> None:
    put_string(out, entity_data.entity_type)
    put_nullable_string(out, entity_data.entity_name)


def _write_response_entity_data_v1(out: bytearray, entity_data: EntityData, _inserts: Inserts) -> None:
    put_compact_string(out, entity_data.entity_type)
    put_nullable_compact_string(out, entity_data.entity_name)
    out.append(0)


def _write_response_value_data_v0(out: bytearray, value_data: ValueData, _inserts: Inserts) -> None:
    put_string(out, value_data.key)
    out += _d.pack(value_data.value)


def _write_response_value_data_v1(out: bytearray, value_data: ValueData, _inserts: Inserts) -> None:
    put_compact_string(out, value_data.key)
    out += _dx.pack(value_data.value)


def _write_response_entry_data_v0(out: bytearray, entry_data: EntryData, inserts: Inserts) -> None:
    put_array(out, entry_data.entity, _write_response_entity_data_v0, inserts)
    put_array(out, entry_data.values, _write_response_value_data_v0, inserts)


def _write_response_entry_data_v1(out: bytearray, entry_data: EntryData, inserts: Inserts) -> None:
    put_compact_array(out, entry_data.entity, _write_response_entity_data_v1, inserts)
    put_compact_array(out, entry_data.values, _write_response_value_data_v1, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: DescribeClientQuotasResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_string(out, message.error_message)
    put_nullable_array(out, message.entries, _write_response_entry_data_v0, inserts)


def _write_response_v1(out: bytearray, message: DescribeClientQuotasResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_nullable_compact_array(out, message.entries, _write_response_entry_data_v1, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeClientQuotasRequest] = MessageCodec(
    "DescribeClientQuotasRequest",
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

RESPONSE: MessageCodec[DescribeClientQuotasResponse] = MessageCodec(
    "DescribeClientQuotasResponse",
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
