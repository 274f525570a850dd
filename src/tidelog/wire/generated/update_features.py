"""UpdateFeatures: API key 57, v0 to v2."""
# Made by tools/wiregen from messages/update_features.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import absent, put_compact_array, put_compact_string, put_nullable_compact_string

_t = struct.Struct(">?")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_tx = struct.Struct(">?x")
_ht = struct.Struct(">h?")
_hb = struct.Struct(">hb")
_ih = struct.Struct(">ih")
_htx = struct.Struct(">h?x")
_hbx = struct.Struct(">hbx")


class FeatureUpdateKey(Struct):
    __slots__ = (
        "feature",
        "max_version_level",
        "allow_downgrade",
        "upgrade_type",
    )

    def __init__(
        self,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,  # 0
        upgrade_type: int = 1,  # 1+
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type


class UpdateFeaturesRequest(Struct):
    __slots__ = (
        "timeout_ms",
        "feature_updates",
        "validate_only",
    )

    def __init__(
        self,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = EMPTY,
        validate_only: bool = False,  # 1+
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is EMPTY else feature_updates
        self.validate_only = validate_only


class UpdatableFeatureResult(Struct):
    __slots__ = (
        "feature",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        feature: str = "",  # 0-1
        error_code: int = 0,  # 0-1
        error_message: str | None = "",  # 0-1
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message


class UpdateFeaturesResponse(Struct):
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
        results: list[UpdatableFeatureResult] = EMPTY,  # 0-1
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is EMPTY else results


def _read_request_feature_update_key_v0(buf: bytes, pos: int) -> tuple[FeatureUpdateKey, int]:
    feature_update_key = new(FeatureUpdateKey)
    feature_update_key.upgrade_type = 1
    feature_update_key.feature, pos = compact_string(buf, pos)
    feature_update_key.max_version_level, feature_update_key.allow_downgrade = _ht.unpack_from(buf, pos)
    pos += 3
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return feature_update_key, pos


def _read_request_feature_update_key_v1_to_v2(buf: bytes, pos: int) -> tuple[FeatureUpdateKey, int]:
    feature_update_key = new(FeatureUpdateKey)
    feature_update_key.allow_downgrade = False
    feature_update_key.feature, pos = compact_string(buf, pos)
    feature_update_key.max_version_level, feature_update_key.upgrade_type = _hb.unpack_from(buf, pos)
    pos += 3
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return feature_update_key, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[UpdateFeaturesRequest, int]:
    message = new(UpdateFeaturesRequest)
    message.validate_only = False
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.feature_updates, pos = compact_array(buf, pos, _read_request_feature_update_key_v0, 5, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v1_to_v2(buf: bytes, pos: int) -> tuple[UpdateFeaturesRequest, int]:
    message = new(UpdateFeaturesRequest)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.feature_updates, pos = compact_array(buf, pos, _read_request_feature_update_key_v1_to_v2, 5, 1)
    (message.validate_only,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_feature_update_key_v0(
    out: bytearray, feature_update_key: FeatureUpdateKey, _inserts: Inserts
) -> None:
    if feature_update_key.upgrade_type != 1:
        raise absent("upgrade_type")
    put_compact_string(out, feature_update_key.feature)
    out += _htx.pack(feature_update_key.max_version_level, feature_update_key.allow_downgrade)


def _write_request_feature_update_key_v1_to_v2(
    out: bytearray, feature_update_key: FeatureUpdateKey, _inserts: Inserts
) -> None:
    if feature_update_key.allow_downgrade:
        raise absent("allow_downgrade")
    put_compact_string(out, feature_update_key.feature)
    out += _hbx.pack(feature_update_key.max_version_level, feature_update_key.upgrade_type)


def _write_request_v0(out: bytearray, message: UpdateFeaturesRequest, inserts: Inserts) -> None:
    if message.validate_only:
        raise absent("validate_only")
    out += _i.pack(message.timeout_ms)
    put_compact_array(out, message.feature_updates, _write_request_feature_update_key_v0, inserts)
    out.append(0)


def _write_request_v1_to_v2(out: bytearray, message: UpdateFeaturesRequest, inserts: Inserts) -> None:
    out += _i.pack(message.timeout_ms)
    put_compact_array(out, message.feature_updates, _write_request_feature_update_key_v1_to_v2, inserts)
    out += _tx.pack(message.validate_only)


def _read_response_updatable_feature_result_v0_to_v1(buf: bytes, pos: int) -> tuple[UpdatableFeatureResult, int]:
    updatable_feature_result = new(UpdatableFeatureResult)
    updatable_feature_result.feature, pos = compact_string(buf, pos)
    (updatable_feature_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    updatable_feature_result.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return updatable_feature_result, pos


def _read_response_v0_to_v1(buf: bytes, pos: int) -> tuple[UpdateFeaturesResponse, int]:
    message = new(UpdateFeaturesResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.results, pos = compact_array(buf, pos, _read_response_updatable_feature_result_v0_to_v1, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[UpdateFeaturesResponse, int]:
    message = new(UpdateFeaturesResponse)
    message.results = []
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_updatable_feature_result_v0_to_v1(
    out: bytearray, updatable_feature_result: UpdatableFeatureResult, _inserts: Inserts
) -> None:
    put_compact_string(out, updatable_feature_result.feature)
    out += _h.pack(updatable_feature_result.error_code)
    put_nullable_compact_string(out, updatable_feature_result.error_message)
    out.append(0)


def _write_response_v0_to_v1(out: bytearray, message: UpdateFeaturesResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.results, _write_response_updatable_feature_result_v0_to_v1, inserts)
    out.append(0)


def _write_response_v2(out: bytearray, message: UpdateFeaturesResponse, _inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    out.append(0)


REQUEST: MessageCodec[UpdateFeaturesRequest] = MessageCodec(
    "UpdateFeaturesRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1_to_v2,
        _read_request_v1_to_v2,
    ),
    (
        _write_request_v0,
        _write_request_v1_to_v2,
        _write_request_v1_to_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[UpdateFeaturesResponse] = MessageCodec(
    "UpdateFeaturesResponse",
    0,
    (
        _read_response_v0_to_v1,
        _read_response_v0_to_v1,
        _read_response_v2,
    ),
    (
        _write_response_v0_to_v1,
        _write_response_v0_to_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
