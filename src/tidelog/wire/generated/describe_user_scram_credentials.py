"""DescribeUserScramCredentials: API key 50, v0 to v0."""
# Made by tools/wiregen from messages/describe_user_scram_credentials.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_string,
    nullable_compact_array,
    nullable_compact_string,
    skip_tagged_fields,
)
from tidelog.wire.writing import (
    put_compact_array,
    put_compact_string,
    put_nullable_compact_array,
    put_nullable_compact_string,
)

_h = struct.Struct(">h")
_bi = struct.Struct(">bi")
_ih = struct.Struct(">ih")
_bix = struct.Struct(">bix")


class UserName(Struct):
    __slots__ = ("name",)

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


class DescribeUserScramCredentialsRequest(Struct):
    __slots__ = ("users",)

    def __init__(
        self,
        users: list[UserName] | None = EMPTY,
    ) -> None:
        self.users = [] if users is EMPTY else users


class CredentialInfo(Struct):
    __slots__ = (
        "mechanism",
        "iterations",
    )

    def __init__(
        self,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class DescribeUserScramCredentialsResult(Struct):
    __slots__ = (
        "user",
        "error_code",
        "error_message",
        "credential_infos",
    )

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] = EMPTY,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = [] if credential_infos is EMPTY else credential_infos


class DescribeUserScramCredentialsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results


def _read_request_user_name_v0(buf: bytes, pos: int) -> tuple[UserName, int]:
    user_name = new(UserName)
    user_name.name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return user_name, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[DescribeUserScramCredentialsRequest, int]:
    message = new(DescribeUserScramCredentialsRequest)
    message.users, pos = nullable_compact_array(buf, pos, _read_request_user_name_v0, 2, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_user_name_v0(out: bytearray, user_name: UserName, _inserts: Inserts) -> None:
    put_compact_string(out, user_name.name)
    out.append(0)


def _write_request_v0(out: bytearray, message: DescribeUserScramCredentialsRequest, inserts: Inserts) -> None:
    put_nullable_compact_array(out, message.users, _write_request_user_name_v0, inserts)
    out.append(0)


def _read_response_credential_info_v0(buf: bytes, pos: int) -> tuple[CredentialInfo, int]:
    credential_info = new(CredentialInfo)
    credential_info.mechanism, credential_info.iterations = _bi.unpack_from(buf, pos)
    pos += 5
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return credential_info, pos


def _read_response_describe_user_scram_credentials_result_v0(
    buf: bytes, pos: int
) -> tuple[DescribeUserScramCredentialsResult, int]:
    describe_user_scram_credentials_result = new(DescribeUserScramCredentialsResult)
    describe_user_scram_credentials_result.user, pos = compact_string(buf, pos)
    (describe_user_scram_credentials_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    describe_user_scram_credentials_result.error_message, pos = nullable_compact_string(buf, pos)
    describe_user_scram_credentials_result.credential_infos, pos = compact_array(
        buf, pos, _read_response_credential_info_v0, 6
    )
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return describe_user_scram_credentials_result, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DescribeUserScramCredentialsResponse, int]:
    message = new(DescribeUserScramCredentialsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.results, pos = compact_array(buf, pos, _read_response_describe_user_scram_credentials_result_v0, 6)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_credential_info_v0(out: bytearray, credential_info: CredentialInfo, _inserts: Inserts) -> None:
    out += _bix.pack(credential_info.mechanism, credential_info.iterations)


def _write_response_describe_user_scram_credentials_result_v0(
    out: bytearray, describe_user_scram_credentials_result: DescribeUserScramCredentialsResult, inserts: Inserts
) -> None:
    put_compact_string(out, describe_user_scram_credentials_result.user)
    out += _h.pack(describe_user_scram_credentials_result.error_code)
    put_nullable_compact_string(out, describe_user_scram_credentials_result.error_message)
    put_compact_array(
        out, describe_user_scram_credentials_result.credential_infos, _write_response_credential_info_v0, inserts
    )
    out.append(0)


def _write_response_v0(out: bytearray, message: DescribeUserScramCredentialsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.results, _write_response_describe_user_scram_credentials_result_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[DescribeUserScramCredentialsRequest] = MessageCodec(
    "DescribeUserScramCredentialsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[DescribeUserScramCredentialsResponse] = MessageCodec(
    "DescribeUserScramCredentialsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
