"""DescribeCluster: API key 60, v0 to v2."""
# Made by tools/wiregen from messages/describe_cluster.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import absent, put_compact_array, put_compact_string, put_nullable_compact_string

_t = struct.Struct(">?")
_b = struct.Struct(">b")
_i = struct.Struct(">i")
_tb = struct.Struct(">?b")
_tx = struct.Struct(">?x")
_ih = struct.Struct(">ih")
_ix = struct.Struct(">ix")
_tbt = struct.Struct(">?b?")
_tbx = struct.Struct(">?bx")
_tbtx = struct.Struct(">?b?x")


class DescribeClusterRequest(Struct):
    __slots__ = (
        "include_cluster_authorized_operations",
        "endpoint_type",
        "include_fenced_brokers",
    )

    def __init__(
        self,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,  # 1+
        include_fenced_brokers: bool = False,  # 2+
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers


class DescribeClusterBroker(Struct):
    __slots__ = (
        "broker_id",
        "host",
        "port",
        "rack",
        "is_fenced",
    )

    def __init__(
        self,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,  # 2+
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


class DescribeClusterResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,  # 1+
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations = cluster_authorized_operations


def _read_request_v0(buf: bytes, pos: int) -> tuple[DescribeClusterRequest, int]:
    message = new(DescribeClusterRequest)
    message.endpoint_type = 1
    message.include_fenced_brokers = False
    (message.include_cluster_authorized_operations,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[DescribeClusterRequest, int]:
    message = new(DescribeClusterRequest)
    message.include_fenced_brokers = False
    message.include_cluster_authorized_operations, message.endpoint_type = _tb.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[DescribeClusterRequest, int]:
    message = new(DescribeClusterRequest)
    message.include_cluster_authorized_operations, message.endpoint_type, message.include_fenced_brokers = (
        _tbt.unpack_from(buf, pos)
    )
    pos += 3
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: DescribeClusterRequest, _inserts: Inserts) -> None:
    if message.endpoint_type != 1:
        raise absent("endpoint_type")
    if message.include_fenced_brokers:
        raise absent("include_fenced_brokers")
    out += _tx.pack(message.include_cluster_authorized_operations)


def _write_request_v1(out: bytearray, message: DescribeClusterRequest, _inserts: Inserts) -> None:
    if message.include_fenced_brokers:
        raise absent("include_fenced_brokers")
    out += _tbx.pack(message.include_cluster_authorized_operations, message.endpoint_type)


def _write_request_v2(out: bytearray, message: DescribeClusterRequest, _inserts: Inserts) -> None:
    out += _tbtx.pack(
        message.include_cluster_authorized_operations, message.endpoint_type, message.include_fenced_brokers
    )


def _read_response_describe_cluster_broker_v0_to_v1(buf: bytes, pos: int) -> tuple[DescribeClusterBroker, int]:
    describe_cluster_broker = new(DescribeClusterBroker)
    describe_cluster_broker.is_fenced = False
    (describe_cluster_broker.broker_id,) = _i.unpack_from(buf, pos)
    pos += 4
    describe_cluster_broker.host, pos = compact_string(buf, pos)
    (describe_cluster_broker.port,) = _i.unpack_from(buf, pos)
    pos += 4
    describe_cluster_broker.rack, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_cluster_broker, pos


def _read_response_describe_cluster_broker_v2(buf: bytes, pos: int) -> tuple[DescribeClusterBroker, int]:
    describe_cluster_broker = new(DescribeClusterBroker)
    (describe_cluster_broker.broker_id,) = _i.unpack_from(buf, pos)
    pos += 4
    describe_cluster_broker.host, pos = compact_string(buf, pos)
    (describe_cluster_broker.port,) = _i.unpack_from(buf, pos)
    pos += 4
    describe_cluster_broker.rack, pos = nullable_compact_string(buf, pos)
    (describe_cluster_broker.is_fenced,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_cluster_broker, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeClusterResponse, int]:
    message = new(DescribeClusterResponse)
    message.endpoint_type = 1
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.cluster_id, pos = compact_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = compact_array(buf, pos, _read_response_describe_cluster_broker_v0_to_v1, 11)
    (message.cluster_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[DescribeClusterResponse, int]:
    message = new(DescribeClusterResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    (message.endpoint_type,) = _b.unpack_from(buf, pos)
    pos += 1
    message.cluster_id, pos = compact_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = compact_array(buf, pos, _read_response_describe_cluster_broker_v0_to_v1, 11)
    (message.cluster_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[DescribeClusterResponse, int]:
    message = new(DescribeClusterResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    (message.endpoint_type,) = _b.unpack_from(buf, pos)
    pos += 1
    message.cluster_id, pos = compact_string(buf, pos)
    (message.controller_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.brokers, pos = compact_array(buf, pos, _read_response_describe_cluster_broker_v2, 12)
    (message.cluster_authorized_operations,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_describe_cluster_broker_v0_to_v1(
    out: bytearray, describe_cluster_broker: DescribeClusterBroker, _inserts: Inserts
) -> None:
    if describe_cluster_broker.is_fenced:
        raise absent("is_fenced")
    out += _i.pack(describe_cluster_broker.broker_id)
    put_compact_string(out, describe_cluster_broker.host)
    out += _i.pack(describe_cluster_broker.port)
    put_nullable_compact_string(out, describe_cluster_broker.rack)
    out.append(0)


def _write_response_describe_cluster_broker_v2(
    out: bytearray, describe_cluster_broker: DescribeClusterBroker, _inserts: Inserts
) -> None:
    out += _i.pack(describe_cluster_broker.broker_id)
    put_compact_string(out, describe_cluster_broker.host)
    out += _i.pack(describe_cluster_broker.port)
    put_nullable_compact_string(out, describe_cluster_broker.rack)
    out += _tx.pack(describe_cluster_broker.is_fenced)


def _write_response_v0(out: bytearray, message: DescribeClusterResponse, inserts: Inserts) -> None:
    if message.endpoint_type != 1:
        raise absent("endpoint_type")
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_compact_array(out, message.brokers, _write_response_describe_cluster_broker_v0_to_v1, inserts)
    out += _ix.pack(message.cluster_authorized_operations)


def _write_response_v1(out: bytearray, message: DescribeClusterResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    out += _b.pack(message.endpoint_type)
    put_compact_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_compact_array(out, message.brokers, _write_response_describe_cluster_broker_v0_to_v1, inserts)
    out += _ix.pack(message.cluster_authorized_operations)


def _write_response_v2(out: bytearray, message: DescribeClusterResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    out += _b.pack(message.endpoint_type)
    put_compact_string(out, message.cluster_id)
    out += _i.pack(message.controller_id)
    put_compact_array(out, message.brokers, _write_response_describe_cluster_broker_v2, inserts)
    out += _ix.pack(message.cluster_authorized_operations)


REQUEST: MessageCodec[DescribeClusterRequest] = MessageCodec(
    "DescribeClusterRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1,
        _read_request_v2,
    ),
    (
        _write_request_v0,
        _write_request_v1,
        _write_request_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeClusterResponse] = MessageCodec(
    "DescribeClusterResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1,
        _read_response_v2,
    ),
    (
        _write_response_v0,
        _write_response_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
