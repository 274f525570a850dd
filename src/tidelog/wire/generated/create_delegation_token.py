"""CreateDelegationToken: API key 38, v1 to v3."""
# Made by tools/wiregen from messages/create_delegation_token.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Buffer, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_data,
    compact_string,
    data,
    nullable_compact_string,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    put_array,
    put_compact_array,
    put_compact_data,
    put_compact_string,
    put_data,
    put_nullable_compact_string,
    put_string,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_q = struct.Struct(">q")
_ix = struct.Struct(">ix")
_qx = struct.Struct(">qx")
_qqq = struct.Struct(">qqq")


class CreatableRenewers(Struct):
    __slots__ = (
        "principal_type",
        "principal_name",
    )

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class CreateDelegationTokenRequest(Struct):
    __slots__ = (
        "owner_principal_type",
        "owner_principal_name",
        "renewers",
        "max_lifetime_ms",
    )

    def __init__(
        self,
        owner_principal_type: str | None = "",  # 3+
        owner_principal_name: str | None = "",  # 3+
        renewers: list[CreatableRenewers] = EMPTY,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is EMPTY else renewers
        self.max_lifetime_ms = max_lifetime_ms


class CreateDelegationTokenResponse(Struct):
    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )

    def __init__(
        self,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",  # 3+
        token_requester_principal_name: str = "",  # 3+
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: Buffer = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms


def _read_request_creatable_renewers_v1(buf: bytes, pos: int) -> tuple[CreatableRenewers, int]:
    creatable_renewers = new(CreatableRenewers)
    creatable_renewers.principal_type, pos = string(buf, pos)
    creatable_renewers.principal_name, pos = string(buf, pos)
    return creatable_renewers, pos


def _read_request_creatable_renewers_v2_to_v3(buf: bytes, pos: int) -> tuple[CreatableRenewers, int]:
    creatable_renewers = new(CreatableRenewers)
    creatable_renewers.principal_type, pos = compact_string(buf, pos)
    creatable_renewers.principal_name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return creatable_renewers, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[CreateDelegationTokenRequest, int]:
    message = new(CreateDelegationTokenRequest)
    message.owner_principal_type = ""
    message.owner_principal_name = ""
    message.renewers, pos = array(buf, pos, _read_request_creatable_renewers_v1, 4, 1)
    (message.max_lifetime_ms,) = _q.unpack_from(buf, pos)
    pos += 8
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[CreateDelegationTokenRequest, int]:
    message = new(CreateDelegationTokenRequest)
    message.owner_principal_type = ""
    message.owner_principal_name = ""
    message.renewers, pos = compact_array(buf, pos, _read_request_creatable_renewers_v2_to_v3, 3, 1)
    (message.max_lifetime_ms,) = _q.unpack_from(buf, pos)
    pos += 8
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v3(buf: bytes, pos: int) -> tuple[CreateDelegationTokenRequest, int]:
    message = new(CreateDelegationTokenRequest)
    message.owner_principal_type, pos = nullable_compact_string(buf, pos)
    message.owner_principal_name, pos = nullable_compact_string(buf, pos)
    message.renewers, pos = compact_array(buf, pos, _read_request_creatable_renewers_v2_to_v3, 3, 1)
    (message.max_lifetime_ms,) = _q.unpack_from(buf, pos)
    pos += 8
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_creatable_renewers_v1(
    out: bytearray, creatable_renewers: CreatableRenewers, _inserts: Inserts
) -> None:
    put_string(out, creatable_renewers.principal_type)
    put_string(out, creatable_renewers.principal_name)


def _write_request_creatable_renewers_v2_to_v3(
    out: bytearray, creatable_renewers: CreatableRenewers, _inserts: Inserts
) -> None:
    put_compact_string(out, creatable_renewers.principal_type)
    put_compact_string(out, creatable_renewers.principal_name)
    out.append(0)


def _write_request_v1(out: bytearray, message: CreateDelegationTokenRequest, inserts: Inserts) -> None:
    if message.owner_principal_type:
        raise absent("owner_principal_type")
    if message.owner_principal_name:
        raise absent("owner_principal_name")
    put_array(out, message.renewers, _write_request_creatable_renewers_v1, inserts)
    out += _q.pack(message.max_lifetime_ms)


def _write_request_v2(out: bytearray, message: CreateDelegationTokenRequest, inserts: Inserts) -> None:
    if message.owner_principal_type:
        raise absent("owner_principal_type")
    if message.owner_principal_name:
        raise absent("owner_principal_name")
    put_compact_array(out, message.renewers, _write_request_creatable_renewers_v2_to_v3, inserts)
    out += _qx.pack(message.max_lifetime_ms)


def _write_request_v3(out: bytearray, message: CreateDelegationTokenRequest, inserts: Inserts) -> None:
    put_nullable_compact_string(out, message.owner_principal_type)
    put_nullable_compact_string(out, message.owner_principal_name)
    put_compact_array(out, message.renewers, _write_request_creatable_renewers_v2_to_v3, inserts)
    out += _qx.pack(message.max_lifetime_ms)


def _read_response_v1(buf: memoryview, pos: int) -> tuple[CreateDelegationTokenResponse, int]:
    message = new(CreateDelegationTokenResponse)
    message.token_requester_principal_type = ""
    message.token_requester_principal_name = ""
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.principal_type, pos = string(buf, pos)
    message.principal_name, pos = string(buf, pos)
    message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms = _qqq.unpack_from(buf, pos)
    pos += 24
    message.token_id, pos = string(buf, pos)
    message.hmac, pos = data(buf, pos)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v2(buf: memoryview, pos: int) -> tuple[CreateDelegationTokenResponse, int]:
    message = new(CreateDelegationTokenResponse)
    message.token_requester_principal_type = ""
    message.token_requester_principal_name = ""
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.principal_type, pos = compact_string(buf, pos)
    message.principal_name, pos = compact_string(buf, pos)
    message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms = _qqq.unpack_from(buf, pos)
    pos += 24
    message.token_id, pos = compact_string(buf, pos)
    message.hmac, pos = compact_data(buf, pos)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v3(buf: memoryview, pos: int) -> tuple[CreateDelegationTokenResponse, int]:
    message = new(CreateDelegationTokenResponse)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.principal_type, pos = compact_string(buf, pos)
    message.principal_name, pos = compact_string(buf, pos)
    message.token_requester_principal_type, pos = compact_string(buf, pos)
    message.token_requester_principal_name, pos = compact_string(buf, pos)
    message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms = _qqq.unpack_from(buf, pos)
    pos += 24
    message.token_id, pos = compact_string(buf, pos)
    message.hmac, pos = compact_data(buf, pos)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v1(out: bytearray, message: CreateDelegationTokenResponse, _inserts: Inserts) -> None:
    if message.token_requester_principal_type:
        raise absent("token_requester_principal_type")
    if message.token_requester_principal_name:
        raise absent("token_requester_principal_name")
    out += _h.pack(message.error_code)
    put_string(out, message.principal_type)
    put_string(out, message.principal_name)
    out += _qqq.pack(message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms)
    put_string(out, message.token_id)
    put_data(out, message.hmac)
    out += _i.pack(message.throttle_time_ms)


def _write_response_v2(out: bytearray, message: CreateDelegationTokenResponse, _inserts: Inserts) -> None:
    if message.token_requester_principal_type:
        raise absent("token_requester_principal_type")
    if message.token_requester_principal_name:
        raise absent("token_requester_principal_name")
    out += _h.pack(message.error_code)
    put_compact_string(out, message.principal_type)
    put_compact_string(out, message.principal_name)
    out += _qqq.pack(message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms)
    put_compact_string(out, message.token_id)
    put_compact_data(out, message.hmac)
    out += _ix.pack(message.throttle_time_ms)


def _write_response_v3(out: bytearray, message: CreateDelegationTokenResponse, _inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_compact_string(out, message.principal_type)
    put_compact_string(out, message.principal_name)
    put_compact_string(out, message.token_requester_principal_type)
    put_compact_string(out, message.token_requester_principal_name)
    out += _qqq.pack(message.issue_timestamp_ms, message.expiry_timestamp_ms, message.max_timestamp_ms)
    put_compact_string(out, message.token_id)
    put_compact_data(out, message.hmac)
    out += _ix.pack(message.throttle_time_ms)


REQUEST: MessageCodec[CreateDelegationTokenRequest] = MessageCodec(
    "CreateDelegationTokenRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2,
        _read_request_v3,
    ),
    (
        _write_request_v1,
        _write_request_v2,
        _write_request_v3,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[CreateDelegationTokenResponse] = MessageCodec(
    "CreateDelegationTokenResponse",
    1,
    (
        _read_response_v1,
        _read_response_v2,
        _read_response_v3,
    ),
    (
        _write_response_v1,
        _write_response_v2,
        _write_response_v3,
    ),
    holds_views=True,
)
