"""AlterClientQuotas: API key 49, v0 to v1."""
# Made by tools/wiregen from messages/alter_client_quotas.txt; do not edit.
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
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_tx = struct.Struct(">?x")
_dt = struct.Struct(">d?")
_dtx = struct.Struct(">d?x")


class RequestEntityData(Struct):
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


class OpData(Struct):
    __slots__ = (
        "key",
        "value",
        "remove",
    )

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class RequestEntryData(Struct):
    __slots__ = (
        "entity",
        "ops",
    )

    def __init__(
        self,
        entity: list[RequestEntityData] = EMPTY,
        ops: list[OpData] = EMPTY,
    ) -> None:
        self.entity = [] if entity is EMPTY else entity
        self.ops = [] if ops is EMPTY else ops


class AlterClientQuotasRequest(Struct):
    __slots__ = (
        "entries",
        "validate_only",
    )

    def __init__(
        self,
        entries: list[RequestEntryData] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.entries = [] if entries is EMPTY else entries
        self.validate_only = validate_only


class ResponseEntityData(Struct):
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


class ResponseEntryData(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "entity",
    )

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[ResponseEntityData] = EMPTY,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is EMPTY else entity


class AlterClientQuotasResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "entries",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        entries: list[ResponseEntryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is EMPTY else entries


def _read_request_request_entity_data_v0(buf: bytes, pos: int) -> tuple[RequestEntityData, int]:
    request_entity_data = new(RequestEntityData)
    request_entity_data.entity_type, pos = string(buf, pos)
    request_entity_data.entity_name, pos = nullable_string(buf, pos)
    return request_entity_data, pos


def _read_request_request_entity_data_v1(buf: bytes, pos: int) -> tuple[RequestEntityData, int]:
    request_entity_data = new(RequestEntityData)
    request_entity_data.entity_type, pos = compact_string(buf, pos)
    request_entity_data.entity_name, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return request_entity_data, pos


def _read_request_op_data_v0(buf: bytes, pos: int) -> tuple[OpData, int]:
    op_data = new(OpData)
    op_data.key, pos = string(buf, pos)
    op_data.value, op_data.remove = _dt.unpack_from(buf, pos)
    pos += 9
    return op_data, pos


def _read_request_op_data_v1(buf: bytes, pos: int) -> tuple[OpData, int]:
    op_data = new(OpData)
    op_data.key, pos = compact_string(buf, pos)
    op_data.value, op_data.remove = _dt.unpack_from(buf, pos)
    pos += 9
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return op_data, pos


def _read_request_request_entry_data_v0(buf: bytes, pos: int) -> tuple[RequestEntryData, int]:
    request_entry_data = new(RequestEntryData)
    request_entry_data.entity, pos = array(buf, pos, _read_request_request_entity_data_v0, 4, 1)
    request_entry_data.ops, pos = array(buf, pos, _read_request_op_data_v0, 11, 1)
    return request_entry_data, pos


def _read_request_request_entry_data_v1(buf: bytes, pos: int) -> tuple[RequestEntryData, int]:
    request_entry_data = new(RequestEntryData)
    request_entry_data.entity, pos = compact_array(buf, pos, _read_request_request_entity_data_v1, 3, 1)
    request_entry_data.ops, pos = compact_array(buf, pos, _read_request_op_data_v1, 11, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return request_entry_data, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[AlterClientQuotasRequest, int]:
    message = new(AlterClientQuotasRequest)
    message.entries, pos = array(buf, pos, _read_request_request_entry_data_v0, 8, 3)
    (message.validate_only,) = _t.unpack_from(buf, pos)
    pos += 1
    return message, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[AlterClientQuotasRequest, int]:
    message = new(AlterClientQuotasRequest)
    message.entries, pos = compact_array(buf, pos, _read_request_request_entry_data_v1, 3, 3)
    (message.validate_only,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_request_entity_data_v0(
    out: bytearray, request_entity_data: RequestEntityData, _inserts: Inserts
) -> None:
    put_string(out, request_entity_data.entity_type)
    put_nullable_string(out, request_entity_data.entity_name)


def _write_request_request_entity_data_v1(
    out: bytearray, request_entity_data: RequestEntityData, _inserts: Inserts
) -> None:
    put_compact_string(out, request_entity_data.entity_type)
    put_nullable_compact_string(out, request_entity_data.entity_name)
    out.append(0)


def _write_request_op_data_v0(out: bytearray, op_data: OpData, _inserts: Inserts) -> None:
    put_string(out, op_data.key)
    out += _dt.pack(op_data.value, op_data.remove)


def _write_request_op_data_v1(out: bytearray, op_data: OpData, _inserts: Inserts) -> None:
    put_compact_string(out, op_data.key)
    out += _dtx.pack(op_data.value, op_data.remove)


def _write_request_request_entry_data_v0(
    out: bytearray, request_entry_data: RequestEntryData, inserts: Inserts
) -> None:
    put_array(out, request_entry_data.entity, _write_request_request_entity_data_v0, inserts)
    put_array(out, request_entry_data.ops, _write_request_op_data_v0, inserts)


def _write_request_request_entry_data_v1(
    out: bytearray, request_entry_data: RequestEntryData, inserts: Inserts
) -> None:
    put_compact_array(out, request_entry_data.entity, _write_request_request_entity_data_v1, inserts)
    put_compact_array(out, request_entry_data.ops, _write_request_op_data_v1, inserts)
    out.append(0)


def _write_request_v0(out: bytearray, message: AlterClientQuotasRequest, inserts: Inserts) -> None:
    put_array(out, message.entries, _write_request_request_entry_data_v0, inserts)
    out += _t.pack(message.validate_only)


def _write_request_v1(out: bytearray, message: AlterClientQuotasRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.entries, _write_request_request_entry_data_v1, inserts)
    out += _tx.pack(message.validate_only)


def _read_response_response_entity_data_v0(buf: bytes, pos: int) -> tuple[ResponseEntityData, int]:
    response_entity_data = new(ResponseEntityData)
    response_entity_data.entity_type, pos = string(buf, pos)
    response_entity_data.entity_name, pos = nullable_string(buf, pos)
    return response_entity_data, pos


def _read_response_response_entity_data_v1(buf: bytes, pos: int) -> tuple[ResponseEntityData, int]:
    response_entity_data = new(ResponseEntityData)
    response_entity_data.entity_type, pos = compact_string(buf, pos)
    response_entity_data.entity_name, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_entity_data, pos


def _read_response_response_entry_data_v0(buf: bytes, pos: int) -> tuple[ResponseEntryData, int]:
    response_entry_data = new(ResponseEntryData)
    (response_entry_data.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    response_entry_data.error_message, pos = nullable_string(buf, pos)
    response_entry_data.entity, pos = array(buf, pos, _read_response_response_entity_data_v0, 4)
    return response_entry_data, pos


def _read_response_response_entry_data_v1(buf: bytes, pos: int) -> tuple[ResponseEntryData, int]:
    response_entry_data = new(ResponseEntryData)
    (response_entry_data.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    response_entry_data.error_message, pos = nullable_compact_string(buf, pos)
    response_entry_data.entity, pos = compact_array(buf, pos, _read_response_response_entity_data_v1, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return response_entry_data, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[AlterClientQuotasResponse, int]:
    message = new(AlterClientQuotasResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.entries, pos = array(buf, pos, _read_response_response_entry_data_v0, 8)
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[AlterClientQuotasResponse, int]:
    message = new(AlterClientQuotasResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.entries, pos = compact_array(buf, pos, _read_response_response_entry_data_v1, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_response_entity_data_v0(
    out: bytearray, response_entity_data: ResponseEntityData, _inserts: Inserts
) -> None:
    put_string(out, response_entity_data.entity_type)
    put_nullable_string(out, response_entity_data.entity_name)


def _write_response_response_entity_data_v1(
    out: bytearray, response_entity_data: ResponseEntityData, _inserts: Inserts
) -> None:
    put_compact_string(out, response_entity_data.entity_type)
    put_nullable_compact_string(out, response_entity_data.entity_name)
    out.append(0)


def _write_response_response_entry_data_v0(
    out: bytearray, response_entry_data: ResponseEntryData, inserts: Inserts
) -> None:
    out += _h.pack(response_entry_data.error_code)
    put_nullable_string(out, response_entry_data.error_message)
    put_array(out, response_entry_data.entity, _write_response_response_entity_data_v0, inserts)


def _write_response_response_entry_data_v1(
    out: bytearray, response_entry_data: ResponseEntryData, inserts: Inserts
) -> None:
    out += _h.pack(response_entry_data.error_code)
    put_nullable_compact_string(out, response_entry_data.error_message)
    put_compact_array(out, response_entry_data.entity, _write_response_response_entity_data_v1, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: AlterClientQuotasResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.entries, _write_response_response_entry_data_v0, inserts)


def _write_response_v1(out: bytearray, message: AlterClientQuotasResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.entries, _write_response_response_entry_data_v1, inserts)
    out.append(0)


REQUEST: MessageCodec[AlterClientQuotasRequest] = MessageCodec(
    "AlterClientQuotasRequest",
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

RESPONSE: MessageCodec[AlterClientQuotasResponse] = MessageCodec(
    "AlterClientQuotasResponse",
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
