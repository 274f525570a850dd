"""AlterUserScramCredentials: API key 51, v0 to v0."""
# Made by tools/wiregen from messages/alter_user_scram_credentials.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Buffer, Inserts, Struct, new
from tidelog.wire.reading import (
    compact_array,
    compact_data,
    compact_string,
    nullable_compact_string,
    skip_tagged_fields,
)
from tidelog.wire.writing import put_compact_array, put_compact_data, put_compact_string, put_nullable_compact_string

_b = struct.Struct(">b")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_bi = struct.Struct(">bi")
_bx = struct.Struct(">bx")


class ScramCredentialDeletion(Struct):
    __slots__ = (
        "name",
        "mechanism",
    )

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(Struct):
    __slots__ = (
        "name",
        "mechanism",
        "iterations",
        "salt",
        "salted_password",
    )

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: Buffer = b"",
        salted_password: Buffer = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequest(Struct):
    __slots__ = (
        "deletions",
        "upsertions",
    )

    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] = EMPTY,
        upsertions: list[ScramCredentialUpsertion] = EMPTY,
    ) -> None:
        self.deletions = [] if deletions is EMPTY else deletions
        self.upsertions = [] if upsertions is EMPTY else upsertions


class AlterUserScramCredentialsResult(Struct):
    __slots__ = (
        "user",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


class AlterUserScramCredentialsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results


def _read_request_scram_credential_deletion_v0(buf: memoryview, pos: int) -> tuple[ScramCredentialDeletion, int]:
    scram_credential_deletion = new(ScramCredentialDeletion)
    scram_credential_deletion.name, pos = compact_string(buf, pos)
    (scram_credential_deletion.mechanism,) = _b.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return scram_credential_deletion, pos


def _read_request_scram_credential_upsertion_v0(buf: memoryview, pos: int) -> tuple[ScramCredentialUpsertion, int]:
    scram_credential_upsertion = new(ScramCredentialUpsertion)
    scram_credential_upsertion.name, pos = compact_string(buf, pos)
    scram_credential_upsertion.mechanism, scram_credential_upsertion.iterations = _bi.unpack_from(buf, pos)
    pos += 5
    scram_credential_upsertion.salt, pos = compact_data(buf, pos)
    scram_credential_upsertion.salted_password, pos = compact_data(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return scram_credential_upsertion, pos


def _read_request_v0(buf: memoryview, pos: int) -> tuple[AlterUserScramCredentialsRequest, int]:
    message = new(AlterUserScramCredentialsRequest)
    message.deletions, pos = compact_array(buf, pos, _read_request_scram_credential_deletion_v0, 3, 1)
    message.upsertions, pos = compact_array(buf, pos, _read_request_scram_credential_upsertion_v0, 9, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_scram_credential_deletion_v0(
    out: bytearray, scram_credential_deletion: ScramCredentialDeletion, _inserts: Inserts
) -> None:
    put_compact_string(out, scram_credential_deletion.name)
    out += _bx.pack(scram_credential_deletion.mechanism)


def _write_request_scram_credential_upsertion_v0(
    out: bytearray, scram_credential_upsertion: ScramCredentialUpsertion, _inserts: Inserts
) -> None:
    put_compact_string(out, scram_credential_upsertion.name)
    out += _bi.pack(scram_credential_upsertion.mechanism, scram_credential_upsertion.iterations)
    put_compact_data(out, scram_credential_upsertion.salt)
    put_compact_data(out, scram_credential_upsertion.salted_password)
    out.append(0)


def _write_request_v0(out: bytearray, message: AlterUserScramCredentialsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.deletions, _write_request_scram_credential_deletion_v0, inserts)
    put_compact_array(out, message.upsertions, _write_request_scram_credential_upsertion_v0, inserts)
    out.append(0)


def _read_response_alter_user_scram_credentials_result_v0(
    buf: bytes, pos: int
) -> tuple[AlterUserScramCredentialsResult, int]:
    alter_user_scram_credentials_result = new(AlterUserScramCredentialsResult)
    alter_user_scram_credentials_result.user, pos = compact_string(buf, pos)
    (alter_user_scram_credentials_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    alter_user_scram_credentials_result.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return alter_user_scram_credentials_result, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[AlterUserScramCredentialsResponse, int]:
    message = new(AlterUserScramCredentialsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.results, pos = compact_array(buf, pos, _read_response_alter_user_scram_credentials_result_v0, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_alter_user_scram_credentials_result_v0(
    out: bytearray, alter_user_scram_credentials_result: AlterUserScramCredentialsResult, _inserts: Inserts
) -> None:
    put_compact_string(out, alter_user_scram_credentials_result.user)
    out += _h.pack(alter_user_scram_credentials_result.error_code)
    put_nullable_compact_string(out, alter_user_scram_credentials_result.error_message)
    out.append(0)


def _write_response_v0(out: bytearray, message: AlterUserScramCredentialsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.results, _write_response_alter_user_scram_credentials_result_v0, inserts)
    out.append(0)


REQUEST: MessageCodec[AlterUserScramCredentialsRequest] = MessageCodec(
    "AlterUserScramCredentialsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=True,
)

RESPONSE: MessageCodec[AlterUserScramCredentialsResponse] = MessageCodec(
    "AlterUserScramCredentialsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
