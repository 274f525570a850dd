"""ApiVersions: API key 18, v0 to v4."""
# Made by tools/wiregen from messages/api_versions.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_string,
    skip_tagged_fields,
    tag_count,
    tagged_field,
    wrong_tagged_size,
)
from tidelog.wire.writing import put_array, put_compact_array, put_compact_string, put_tagged_field

_t = struct.Struct(">?")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_q = struct.Struct(">q")
_hh = struct.Struct(">hh")
_hhh = struct.Struct(">hhh")
_hhx = struct.Struct(">hhx")
_hhhx = struct.Struct(">hhhx")


class ApiVersionsRequest(Struct):
    __slots__ = (
        "client_software_name",
        "client_software_version",
    )

    def __init__(
        self,
        client_software_name: str = "",  # 3+
        client_software_version: str = "",  # 3+
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version


class ApiVersion(Struct):
    __slots__ = (
        "api_key",
        "min_version",
        "max_version",
    )

    def __init__(
        self,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Struct):
    __slots__ = (
        "name",
        "min_version",
        "max_version",
    )

    def __init__(
        self,
        name: str = "",  # 3+
        min_version: int = 0,  # 3+
        max_version: int = 0,  # 3+
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Struct):
    __slots__ = (
        "name",
        "max_version_level",
        "min_version_level",
    )

    def __init__(
        self,
        name: str = "",  # 3+
        max_version_level: int = 0,  # 3+
        min_version_level: int = 0,  # 3+
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Struct):
    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )

    def __init__(
        self,
        error_code: int = 0,
        api_keys: list[ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,  # 1+
        supported_features: list[SupportedFeatureKey] = EMPTY,  # 3+
        finalized_features_epoch: int = -1,  # 3+
        finalized_features: list[FinalizedFeatureKey] = EMPTY,  # 3+
        zk_migration_ready: bool = False,  # 3+
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready = zk_migration_ready


def _read_request_v0_to_v2(_buf: bytes, pos: int) -> tuple[ApiVersionsRequest, int]:
    message = new(ApiVersionsRequest)
    message.client_software_name = ""
    message.client_software_version = ""
    return message, pos


def _read_request_v3_to_v4(buf: bytes, pos: int) -> tuple[ApiVersionsRequest, int]:
    message = new(ApiVersionsRequest)
    message.client_software_name, pos = compact_string(buf, pos)
    message.client_software_version, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0_to_v2(_out: bytearray, _message: ApiVersionsRequest, _inserts: Inserts) -> None:
    pass


def _write_request_v3_to_v4(out: bytearray, message: ApiVersionsRequest, _inserts: Inserts) -> None:
    put_compact_string(out, message.client_software_name)
    put_compact_string(out, message.client_software_version)
    out.append(0)


def _read_response_api_version_v0_to_v2(buf: bytes, pos: int) -> tuple[ApiVersion, int]:
    api_version = new(ApiVersion)
    api_version.api_key, api_version.min_version, api_version.max_version = _hhh.unpack_from(buf, pos)
    pos += 6
    return api_version, pos


def _read_response_api_version_v3_to_v4(buf: bytes, pos: int) -> tuple[ApiVersion, int]:
    api_version = new(ApiVersion)
    api_version.api_key, api_version.min_version, api_version.max_version = _hhh.unpack_from(buf, pos)
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return api_version, pos


def _read_response_supported_feature_key_v3_to_v4(buf: bytes, pos: int) -> tuple[SupportedFeatureKey, int]:
    supported_feature_key = new(SupportedFeatureKey)
    supported_feature_key.name, pos = compact_string(buf, pos)
    supported_feature_key.min_version, supported_feature_key.max_version = _hh.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return supported_feature_key, pos


def _read_response_finalized_feature_key_v3_to_v4(buf: bytes, pos: int) -> tuple[FinalizedFeatureKey, int]:
    finalized_feature_key = new(FinalizedFeatureKey)
    finalized_feature_key.name, pos = compact_string(buf, pos)
    finalized_feature_key.max_version_level, finalized_feature_key.min_version_level = _hh.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return finalized_feature_key, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[ApiVersionsResponse, int]:
    message = new(ApiVersionsResponse)
    message.throttle_time_ms = 0
    message.supported_features = []
    message.finalized_features_epoch = -1
    message.finalized_features = []
    message.zk_migration_ready = False
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.api_keys, pos = array(buf, pos, _read_response_api_version_v0_to_v2, 6)
    return message, pos


def _read_response_v1_to_v2(buf: bytes, pos: int) -> tuple[ApiVersionsResponse, int]:
    message = new(ApiVersionsResponse)
    message.supported_features = []
    message.finalized_features_epoch = -1
    message.finalized_features = []
    message.zk_migration_ready = False
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.api_keys, pos = array(buf, pos, _read_response_api_version_v0_to_v2, 6)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v3_to_v4(buf: bytes, pos: int) -> tuple[ApiVersionsResponse, int]:
    message = new(ApiVersionsResponse)
    message.supported_features = []
    message.finalized_features_epoch = -1
    message.finalized_features = []
    message.zk_migration_ready = False
    (message.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    message.api_keys, pos = compact_array(buf, pos, _read_response_api_version_v3_to_v4, 7)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                message.supported_features, pos = compact_array(
                    buf, pos, _read_response_supported_feature_key_v3_to_v4, 6
                )
            elif tag == 1:
                (message.finalized_features_epoch,) = _q.unpack_from(buf, pos)
                pos += 8
            elif tag == 2:
                message.finalized_features, pos = compact_array(
                    buf, pos, _read_response_finalized_feature_key_v3_to_v4, 6
                )
            elif tag == 3:
                (message.zk_migration_ready,) = _t.unpack_from(buf, pos)
                pos += 1
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return message, pos


def _write_response_api_version_v0_to_v2(out: bytearray, api_version: ApiVersion, _inserts: Inserts) -> None:
    out += _hhh.pack(api_version.api_key, api_version.min_version, api_version.max_version)


def _write_response_api_version_v3_to_v4(out: bytearray, api_version: ApiVersion, _inserts: Inserts) -> None:
    out += _hhhx.pack(api_version.api_key, api_version.min_version, api_version.max_version)


def _write_response_supported_feature_key_v3_to_v4(
    out: bytearray, supported_feature_key: SupportedFeatureKey, _inserts: Inserts
) -> None:
    put_compact_string(out, supported_feature_key.name)
    out += _hhx.pack(supported_feature_key.min_version, supported_feature_key.max_version)


def _write_response_finalized_feature_key_v3_to_v4(
    out: bytearray, finalized_feature_key: FinalizedFeatureKey, _inserts: Inserts
) -> None:
    put_compact_string(out, finalized_feature_key.name)
    out += _hhx.pack(finalized_feature_key.max_version_level, finalized_feature_key.min_version_level)


def _write_response_v0(out: bytearray, message: ApiVersionsResponse, inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_array(out, message.api_keys, _write_response_api_version_v0_to_v2, inserts)


def _write_response_v1_to_v2(out: bytearray, message: ApiVersionsResponse, inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_array(out, message.api_keys, _write_response_api_version_v0_to_v2, inserts)
    out += _i.pack(message.throttle_time_ms)


def _write_response_v3_to_v4(out: bytearray, message: ApiVersionsResponse, inserts: Inserts) -> None:
    out += _h.pack(message.error_code)
    put_compact_array(out, message.api_keys, _write_response_api_version_v3_to_v4, inserts)
    out += _i.pack(message.throttle_time_ms)
    if (
        message.supported_features
        or message.finalized_features_epoch != -1
        or message.finalized_features
        or message.zk_migration_ready
    ):
        out.append(
            bool(message.supported_features)
            + (message.finalized_features_epoch != -1)
            + bool(message.finalized_features)
            + bool(message.zk_migration_ready)
        )
        if message.supported_features:
            tagged = bytearray()
            put_compact_array(
                tagged, message.supported_features, _write_response_supported_feature_key_v3_to_v4, inserts
            )
            put_tagged_field(out, 0, tagged)
        if message.finalized_features_epoch != -1:
            tagged_2 = bytearray()
            tagged_2 += _q.pack(message.finalized_features_epoch)
            put_tagged_field(out, 1, tagged_2)
        if message.finalized_features:
            tagged_3 = bytearray()
            put_compact_array(
                tagged_3, message.finalized_features, _write_response_finalized_feature_key_v3_to_v4, inserts
            )
            put_tagged_field(out, 2, tagged_3)
        if message.zk_migration_ready:
            tagged_4 = bytearray()
            tagged_4 += _t.pack(message.zk_migration_ready)
            put_tagged_field(out, 3, tagged_4)
    else:
        out.append(0)


REQUEST: MessageCodec[ApiVersionsRequest] = MessageCodec(
    "ApiVersionsRequest",
    0,
    (
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v0_to_v2,
        _read_request_v3_to_v4,
        _read_request_v3_to_v4,
    ),
    (
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v0_to_v2,
        _write_request_v3_to_v4,
        _write_request_v3_to_v4,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[ApiVersionsResponse] = MessageCodec(
    "ApiVersionsResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1_to_v2,
        _read_response_v1_to_v2,
        _read_response_v3_to_v4,
        _read_response_v3_to_v4,
    ),
    (
        _write_response_v0,
        _write_response_v1_to_v2,
        _write_response_v1_to_v2,
        _write_response_v3_to_v4,
        _write_response_v3_to_v4,
    ),
    holds_views=False,
)
