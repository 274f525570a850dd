"""FindCoordinator: API key 10, v0 to v6."""
# Made by tools/wiregen from messages/find_coordinator.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_string,
    nullable_compact_string,
    nullable_string,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    put_compact_array,
    put_compact_string,
    put_compact_strings,
    put_nullable_compact_string,
    put_nullable_string,
    put_string,
)

_b = struct.Struct(">b")
_i = struct.Struct(">i")
_bx = struct.Struct(">bx")
_hi = struct.Struct(">hi")
_ih = struct.Struct(">ih")
_ix = struct.Struct(">ix")


class FindCoordinatorRequest(Struct):
    __slots__ = (
        "key",
        "key_type",
        "coordinator_keys",
    )

    def __init__(
        self,
        key: str = "",  # 0-3
        key_type: int = 0,  # 1+
        coordinator_keys: list[str] = EMPTY,  # 4+
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is EMPTY else coordinator_keys


class Coordinator(Struct):
    __slots__ = (
        "key",
        "node_id",
        "host",
        "port",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        key: str = "",  # 4+
        node_id: int = 0,  # 4+
        host: str = "",  # 4+
        port: int = 0,  # 4+
        error_code: int = 0,  # 4+
        error_message: str | None = "",  # 4+
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "node_id",
        "host",
        "port",
        "coordinators",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,  # 1+
        error_code: int = 0,  # 0-3
        error_message: str | None = "",  # 1-3
        node_id: int = 0,  # 0-3
        host: str = "",  # 0-3
        port: int = 0,  # 0-3
        coordinators: list[Coordinator] = EMPTY,  # 4+
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is EMPTY else coordinators


def _read_request_v0(buf: bytes, pos: int) -> tuple[FindCoordinatorRequest, int]:
    message = new(FindCoordinatorRequest)
    message.key_type = 0
    message.coordinator_keys = []
    message.key, pos = string(buf, pos)
    return message, pos


def _read_request_v1_to_v2(buf: bytes, pos: int) -> tuple[FindCoordinatorRequest, int]:
    message = new(FindCoordinatorRequest)
    message.coordinator_keys = []
    message.key, pos = string(buf, pos)
    (message.key_type,) = _b.unpack_from(buf, pos)
    pos += 1
    return message, pos


def _read_request_v3(buf: bytes, pos: int) -> tuple[FindCoordinatorRequest, int]:
    message = new(FindCoordinatorRequest)
    message.coordinator_keys = []
    message.key, pos = compact_string(buf, pos)
    (message.key_type,) = _b.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v4_to_v6(buf: bytes, pos: int) -> tuple[FindCoordinatorRequest, int]:
    message = new(FindCoordinatorRequest)
    message.key = ""
    (message.key_type,) = _b.unpack_from(buf, pos)
    pos += 1
    message.coordinator_keys, pos = compact_array(buf, pos, compact_string, 1, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: FindCoordinatorRequest, _inserts: Inserts) -> None:
    if message.key_type:
        raise absent("key_type")
    if message.coordinator_keys:
        raise absent("coordinator_keys")
    put_string(out, message.key)


def _write_request_v1_to_v2(out: bytearray, message: FindCoordinatorRequest, _inserts: Inserts) -> None:
    if message.coordinator_keys:
        raise absent("coordinator_keys")
    put_string(out, message.key)
    out += _b.pack(message.key_type)


def _write_request_v3(out: bytearray, message: FindCoordinatorRequest, _inserts: Inserts) -> None:
    if message.coordinator_keys:
        raise absent("coordinator_keys")
    put_compact_string(out, message.key)
    out += _bx.pack(message.key_type)


def _write_request_v4_to_v6(out: bytearray, message: FindCoordinatorRequest, _inserts: Inserts) -> None:
    if message.key:
        raise absent("key")
    out += _b.pack(message.key_type)
    put_compact_strings(out, message.coordinator_keys)
    out.append(0)


def _read_response_coordinator_v4_to_v6(buf: bytes, pos: int) -> tuple[Coordinator, int]:
    coordinator = new(Coordinator)
    coordinator.key, pos = compact_string(buf, pos)
    (coordinator.node_id,) = _i.unpack_from(buf, pos)
    pos += 4
    coordinator.host, pos = compact_string(buf, pos)
    coordinator.port, coordinator.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    coordinator.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return coordinator, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
    message = new(FindCoordinatorResponse)
    message.throttle_time_ms = 0
    message.error_message = ""
    message.coordinators = []
    message.error_code, message.node_id = _hi.unpack_from(buf, pos)
    pos += 6
    message.host, pos = string(buf, pos)
    (message.port,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v1_to_v2(buf: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
    message = new(FindCoordinatorResponse)
    message.coordinators = []
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_string(buf, pos)
    (message.node_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.host, pos = string(buf, pos)
    (message.port,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v3(buf: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
    message = new(FindCoordinatorResponse)
    message.coordinators = []
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    (message.node_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.host, pos = compact_string(buf, pos)
    (message.port,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v4_to_v6(buf: bytes, pos: int) -> tuple[FindCoordinatorResponse, int]:
    message = new(FindCoordinatorResponse)
    message.error_code = 0
    message.error_message = ""
    message.node_id = 0
    message.host = ""
    message.port = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.coordinators, pos = compact_array(buf, pos, _read_response_coordinator_v4_to_v6, 14)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_coordinator_v4_to_v6(out: bytearray, coordinator: Coordinator, _inserts: Inserts) -> None:
    put_compact_string(out, coordinator.key)
    out += _i.pack(coordinator.node_id)
    put_compact_string(out, coordinator.host)
    out += _ih.pack(coordinator.port, coordinator.error_code)
    put_nullable_compact_string(out, coordinator.error_message)
    out.append(0)


def _write_response_v0(out: bytearray, message: FindCoordinatorResponse, _inserts: Inserts) -> None:
    if message.coordinators:
        raise absent("coordinators")
    out += _hi.pack(message.error_code, message.node_id)
    put_string(out, message.host)
    out += _i.pack(message.port)


def _write_response_v1_to_v2(out: bytearray, message: FindCoordinatorResponse, _inserts: Inserts) -> None:
    if message.coordinators:
        raise absent("coordinators")
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_string(out, message.error_message)
    out += _i.pack(message.node_id)
    put_string(out, message.host)
    out += _i.pack(message.port)


def _write_response_v3(out: bytearray, message: FindCoordinatorResponse, _inserts: Inserts) -> None:
    if message.coordinators:
        raise absent("coordinators")
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    out += _i.pack(message.node_id)
    put_compact_string(out, message.host)
    out += _ix.pack(message.port)


def _write_response_v4_to_v6(out: bytearray, message: FindCoordinatorResponse, inserts: Inserts) -> None:
    if message.error_code:
        raise absent("error_code")
    if message.node_id:
        raise absent("node_id")
    if message.host:
        raise absent("host")
    if message.port:
        raise absent("port")
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.coordinators, _write_response_coordinator_v4_to_v6, inserts)
    out.append(0)


REQUEST: MessageCodec[FindCoordinatorRequest] = MessageCodec(
    "FindCoordinatorRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1_to_v2,
        _read_request_v1_to_v2,
        _read_request_v3,
        _read_request_v4_to_v6,
        _read_request_v4_to_v6,
        _read_request_v4_to_v6,
    ),
    (
        _write_request_v0,
        _write_request_v1_to_v2,
        _write_request_v1_to_v2,
        _write_request_v3,
        _write_request_v4_to_v6,
        _write_request_v4_to_v6,
        _write_request_v4_to_v6,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[FindCoordinatorResponse] = MessageCodec(
    "FindCoordinatorResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1_to_v2,
        _read_response_v1_to_v2,
        _read_response_v3,
        _read_response_v4_to_v6,
        _read_response_v4_to_v6,
        _read_response_v4_to_v6,
    ),
    (
        _write_response_v0,
        _write_response_v1_to_v2,
        _write_response_v1_to_v2,
        _write_response_v3,
        _write_response_v4_to_v6,
        _write_response_v4_to_v6,
        _write_response_v4_to_v6,
    ),
    holds_views=False,
)
