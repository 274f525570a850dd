"""DescribeDelegationToken: API key 41, v1 to v3."""
# Made by tools/wiregen from messages/describe_delegation_token.txt; do not edit.
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
    nullable_array,
    nullable_compact_array,
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
    put_nullable_array,
    put_nullable_compact_array,
    put_string,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_ix = struct.Struct(">ix")
_qqq = struct.Struct(">qqq")


class DescribeDelegationTokenOwner(Struct):
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


class DescribeDelegationTokenRequest(Struct):
    __slots__ = ("owners",)

    def __init__(
        self,
        owners: list[DescribeDelegationTokenOwner] | None = EMPTY,
    ) -> None:
        self.owners = [] if owners is EMPTY else owners


class DescribedDelegationTokenRenewer(Struct):
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


class DescribedDelegationToken(Struct):
    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",  # 3+
        token_requester_principal_name: str = "",  # 3+
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: Buffer = b"",
        renewers: list[DescribedDelegationTokenRenewer] = EMPTY,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = [] if renewers is EMPTY else renewers


class DescribeDelegationTokenResponse(Struct):
    __slots__ = (
        "error_code",
        "tokens",
        "throttle_time_ms",
    )

    def __init__(
        self,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = EMPTY,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is EMPTY else tokens
        self.throttle_time_ms = throttle_time_ms


def _read_request_describe_delegation_token_owner_v1(
    buf: bytes, pos: int
) -> tuple[DescribeDelegationTokenOwner, int]:
    describe_delegation_token_owner = new(DescribeDelegationTokenOwner)
    describe_delegation_token_owner.principal_type, pos = string(buf, pos)
    describe_delegation_token_owner.principal_name, pos = string(buf, pos)
    return describe_delegation_token_owner, pos


def _read_request_describe_delegation_token_owner_v2_to_v3(
    buf: bytes, pos: int
) -> tuple[DescribeDelegationTokenOwner, int]:
    describe_delegation_token_owner = new(DescribeDelegationTokenOwner)
    describe_delegation_token_owner.principal_type, pos = compact_string(buf, pos)
    describe_delegation_token_owner.principal_name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_delegation_token_owner, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[DescribeDelegationTokenRequest, int]:
    message = new(DescribeDelegationTokenRequest)
    message.owners, pos = nullable_array(buf, pos, _read_request_describe_delegation_token_owner_v1, 4, 1)
    return message, pos


def _read_request_v2_to_v3(buf: bytes, pos: int) -> tuple[DescribeDelegationTokenRequest, int]:
    message = new(DescribeDelegationTokenRequest)
    message.owners, pos = nullable_compact_array(
        buf, pos, _read_request_describe_delegation_token_owner_v2_to_v3, 3, 1
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_describe_delegation_token_owner_v1(
    out: bytearray, describe_delegation_token_owner: DescribeDelegationTokenOwner, _inserts: Inserts
) -> None:
    put_string(out, describe_delegation_token_owner.principal_type)
    put_string(out, describe_delegation_token_owner.principal_name)


def _write_request_describe_delegation_token_owner_v2_to_v3(
    out: bytearray, describe_delegation_token_owner: DescribeDelegationTokenOwner, _inserts: Inserts
) -> None:
    put_compact_string(out, describe_delegation_token_owner.principal_type)
    put_compact_string(out, describe_delegation_token_owner.principal_name)
    out.append(0)


def _write_request_v1(out: bytearray, message: DescribeDelegationTokenRequest, inserts: Inserts) -> None:
    put_nullable_array(out, message.owners, _write_request_describe_delegation_token_owner_v1, inserts)


def _write_request_v2_to_v3(out: bytearray, message: DescribeDelegationTokenRequest, inserts: Inserts) -> None:
    put_nullable_compact_array(out, message.owners, _write_request_describe_delegation_token_owner_v2_to_v3, inserts)
    out.append(0)


def _read_response_described_delegation_token_renewer_v1(
    buf: memoryview, pos: int
) -> tuple[DescribedDelegationTokenRenewer, int]:
    described_delegation_token_renewer = new(DescribedDelegationTokenRenewer)
    described_delegation_token_renewer.principal_type, pos = string(buf, pos)
    described_delegation_token_renewer.principal_name, pos = string(buf, pos)
    return described_delegation_token_renewer, pos


def _read_response_described_delegation_token_renewer_v2_to_v3(
    buf: memoryview, pos: int
) -> tuple[DescribedDelegationTokenRenewer, int]:
    described_delegation_token_renewer = new(DescribedDelegationTokenRenewer)
    described_delegation_token_renewer.principal_type, pos = compact_string(buf, pos)
    described_delegation_token_renewer.principal_name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_delegation_token_renewer, pos


def _read_response_described_delegation_token_v1(buf: memoryview, pos: int) -> tuple[DescribedDelegationToken, int]:
    described_delegation_token = new(DescribedDelegationToken)
    described_delegation_token.token_requester_principal_type = ""
    described_delegation_token.token_requester_principal_name = ""
    described_delegation_token.principal_type, pos = string(buf, pos)
    described_delegation_token.principal_name, pos = string(buf, pos)
    (
        described_delegation_token.issue_timestamp,
        described_delegation_token.expiry_timestamp,
        described_delegation_token.max_timestamp,
    ) = _qqq.unpack_from(buf, pos)
    pos += 24
    described_delegation_token.token_id, pos = string(buf, pos)
    described_delegation_token.hmac, pos = data(buf, pos)
    described_delegation_token.renewers, pos = array(
        buf, pos, _read_response_described_delegation_token_renewer_v1, 4
    )
    return described_delegation_token, pos


def _read_response_described_delegation_token_v2(buf: memoryview, pos: int) -> tuple[DescribedDelegationToken, int]:
    described_delegation_token = new(DescribedDelegationToken)
    described_delegation_token.token_requester_principal_type = ""
    described_delegation_token.token_requester_principal_name = ""
    described_delegation_token.principal_type, pos = compact_string(buf, pos)
    described_delegation_token.principal_name, pos = compact_string(buf, pos)
    (
        described_delegation_token.issue_timestamp,
        described_delegation_token.expiry_timestamp,
        described_delegation_token.max_timestamp,
    ) = _qqq.unpack_from(buf, pos)
    pos += 24
    described_delegation_token.token_id, pos = compact_string(buf, pos)
    described_delegation_token.hmac, pos = compact_data(buf, pos)
    described_delegation_token.renewers, pos = compact_array(
        buf, pos, _read_response_described_delegation_token_renewer_v2_to_v3, 3
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_delegation_token, pos


def _read_response_described_delegation_token_v3(buf: memoryview, pos: int) -> tuple[DescribedDelegationToken, int]:
    described_delegation_token = new(DescribedDelegationToken)
    described_delegation_token.principal_type, pos = compact_string(buf, pos)
    described_delegation_token.principal_name, pos = compact_string(buf, pos)
    described_delegation_token.token_requester_principal_type, pos = compact_string(buf, pos)
    described_delegation_token.token_requester_principal_name, pos = compact_string(buf, pos)
    (
        described_delegation_token.issue_timestamp,
        described_delegation_token.expiry_timestamp,
        described_delegation_token.max_timestamp,
    ) = _qqq.unpack_from(buf, pos)
    pos += 24
    described_delegation_token.token_id, pos = compact_string(buf, pos)
    described_delegation_token.hmac, pos = compact_data(buf, pos)
    described_delegation_token.renewers, pos = compact_array(
        buf, pos, _read_response_described_delegation_token_renewer_v2_to_v3, 3
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return described_delegation_token, pos


def _read_response_v1(buf: memoryview, pos: int) -> tuple[DescribeDelegationTokenResponse, int]:
    message = new(DescribeDelegationTokenResponse)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.tokens, pos = array(buf, pos, _read_response_described_delegation_token_v1, 38)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v2(buf: memoryview, pos: int) -> tuple[DescribeDelegationTokenResponse, int]:
    message = new(DescribeDelegationTokenResponse)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.tokens, pos = compact_array(buf, pos, _read_response_described_delegation_token_v2, 30)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v3(buf: memoryview, pos: int) -> tuple[DescribeDelegationTokenResponse, int]:
    message = new(DescribeDelegationTokenResponse)
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.tokens, pos = compact_array(buf, pos, _read_response_described_delegation_token_v3, 32)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_described_delegation_token_renewer_v1(
    out: bytearray, described_delegation_token_renewer: DescribedDelegationTokenRenewer, _inserts: Inserts
) -> None:
    put_string(out, described_delegation_token_renewer.principal_type)
    put_string(out, described_delegation_token_renewer.principal_name)


def _write_response_described_delegation_token_renewer_v2_to_v3(
    out: bytearray, described_delegation_token_renewer: DescribedDelegationTokenRenewer, _inserts: Inserts
) -> None:
    put_compact_string(out, described_delegation_token_renewer.principal_type)
    put_compact_string(out, described_delegation_token_renewer.principal_name)
    out.append(0)


def _write_response_described_delegation_token_v1(
    out: bytearray, described_delegation_token: DescribedDelegationToken, inserts: Inserts
) -> None:
    if described_delegation_token.token_requester_principal_type:
        raise absent("token_requester_principal_type")
    if described_delegation_token.token_requester_principal_name:
        raise absent("token_requester_principal_name")
    put_string(out, described_delegation_token.principal_type)
    put_string(out, described_delegation_token.principal_name)
    out += _qqq.pack(
        described_delegation_token.issue_timestamp,
        described_delegation_token.expiry_timestamp,
        described_delegation_token.max_timestamp,
    )
    put_string(out, described_delegation_token.token_id)
    put_data(out, described_delegation_token.hmac)
    put_array(
        out, described_delegation_token.renewers, _write_response_described_delegation_token_renewer_v1, inserts
    )


def _write_response_described_delegation_token_v2(
    out: bytearray, described_delegation_token: DescribedDelegationToken, inserts: Inserts
) -> None:
    if described_delegation_token.token_requester_principal_type:
        raise absent("token_requester_principal_type")
    if described_delegation_token.token_requester_principal_name:
        raise absent("token_requester_principal_name")
    put_compact_string(out, described_delegation_token.principal_type)
    put_compact_string(out, described_delegation_token.principal_name)
    out += _qqq.pack(
        described_delegation_token.issue_timestamp,
        described_delegation_token.expiry_timestamp,
        described_delegation_token.max_timestamp,
    )
    put_compact_string(out, described_delegation_token.token_id)
    put_compact_data(out, described_delegation_token.hmac)
    put_compact_array(
        out, described_delegation_token.renewers, _write_response_described_delegation_token_renewer_v2_to_v3, inserts
    )
    out.append(0)


def _write_response_described_delegation_token_v3(
    out: bytearray, described_delegation_token: DescribedDelegationToken, inserts: Inserts
) -> None:
    put_compact_string(out, described_delegation_token.principal_type)
    put_compact_string(out, described_delegation_token.principal_name)
    put_compact_string(out, described_delegation_token.token_requester_principal_type)
    put_compact_string(out, described_delegation_token.token_requester_principal_name)
    out += _qqq.pack(
        described_delegation_token.issue_timestamp,
        described_delegation_token.expiry_timestamp,
        described_delegation_token.max_timestamp,
    )
    put_compact_string(out, described_delegation_token.token_id)
    put_compact_data(out, described_delegation_token.hmac)
    put_compact_array(
        out, described_delegation_token.renewers, _write_response_described_delegation_token_renewer_v2_to_v3, inserts
    )
    out.append(0)


def _write_response_v1(out: bytearray, message: DescribeDelegationTokenResponse, inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_array(out, message.tokens, _write_response_described_delegation_token_v1, inserts)
    out += _i.pack(message.throttle_time_ms)


def _write_response_v2(out: bytearray, message: DescribeDelegationTokenResponse, inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_compact_array(out, message.tokens, _write_response_described_delegation_token_v2, inserts)
    out += _ix.pack(message.throttle_time_ms)


def _write_response_v3(out: bytearray, message: DescribeDelegationTokenResponse, inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_compact_array(out, message.tokens, _write_response_described_delegation_token_v3, inserts)
    out += _ix.pack(message.throttle_time_ms)


REQUEST: MessageCodec[DescribeDelegationTokenRequest] = MessageCodec(
    "DescribeDelegationTokenRequest",
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

RESPONSE: MessageCodec[DescribeDelegationTokenResponse] = MessageCodec(
    "DescribeDelegationTokenResponse",
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
