"""DeleteTopics: API key 20, v1 to v6."""
# Made by tools/wiregen from messages/delete_topics.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_string,
    nullable_compact_string,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    null_in_this_version,
    put_array,
    put_compact_array,
    put_compact_string,
    put_compact_strings,
    put_nullable_compact_string,
    put_string,
    put_strings,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_gh = struct.Struct(">16sh")
_gx = struct.Struct(">16sx")
_hx = struct.Struct(">hx")
_ix = struct.Struct(">ix")


class DeleteTopicState(Struct):
    __slots__ = (
        "name",
        "topic_id",
    )

    def __init__(
        self,
        name: str | None = None,  # 6+
        topic_id: bytes = NO_UUID,  # 6+
    ) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Struct):
    __slots__ = (
        "topics",
        "topic_names",
        "timeout_ms",
    )

    def __init__(
        self,
        topics: list[DeleteTopicState] = EMPTY,  # 6+
        topic_names: list[str] = EMPTY,  # 1-5
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.topic_names = [] if topic_names is EMPTY else topic_names
        self.timeout_ms = timeout_ms


class DeletableTopicResult(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        name: str | None = "",
        topic_id: bytes = NO_UUID,  # 6+
        error_code: int = 0,
        error_message: str | None = None,  # 5+
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "responses",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses


def _read_request_delete_topic_state_v6(buf: bytes, pos: int) -> tuple[DeleteTopicState, int]:
    delete_topic_state = new(DeleteTopicState)
    delete_topic_state.name, pos = nullable_compact_string(buf, pos)
    (delete_topic_state.topic_id,) = _g.unpack_from(buf, pos)
    pos += 16
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_topic_state, pos


def _read_request_v1_to_v3(buf: bytes, pos: int) -> tuple[DeleteTopicsRequest, int]:
    message = new(DeleteTopicsRequest)
    message.topics = []
    message.topic_names, pos = array(buf, pos, string, 2, 1)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_request_v4_to_v5(buf: bytes, pos: int) -> tuple[DeleteTopicsRequest, int]:
    message = new(DeleteTopicsRequest)
    message.topics = []
    message.topic_names, pos = compact_array(buf, pos, compact_string, 1, 1)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_request_v6(buf: bytes, pos: int) -> tuple[DeleteTopicsRequest, int]:
    message = new(DeleteTopicsRequest)
    message.topic_names = []
    message.topics, pos = compact_array(buf, pos, _read_request_delete_topic_state_v6, 18, 1)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_delete_topic_state_v6(
    out: bytearray, delete_topic_state: DeleteTopicState, _inserts: Inserts
) -> None:
    put_nullable_compact_string(out, delete_topic_state.name)
    if len(delete_topic_state.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _gx.pack(delete_topic_state.topic_id)


def _write_request_v1_to_v3(out: bytearray, message: DeleteTopicsRequest, _inserts: Inserts) -> None:
    if message.topics:
        raise absent("topics")
    put_strings(out, message.topic_names)
    out += _i.pack(message.timeout_ms)


def _write_request_v4_to_v5(out: bytearray, message: DeleteTopicsRequest, _inserts: Inserts) -> None:
    if message.topics:
        raise absent("topics")
    put_compact_strings(out, message.topic_names)
    out += _ix.pack(message.timeout_ms)


def _write_request_v6(out: bytearray, message: DeleteTopicsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.topics, _write_request_delete_topic_state_v6, inserts)
    out += _ix.pack(message.timeout_ms)


def _read_response_deletable_topic_result_v1_to_v3(buf: bytes, pos: int) -> tuple[DeletableTopicResult, int]:
    deletable_topic_result = new(DeletableTopicResult)
    deletable_topic_result.topic_id = NO_UUID
    deletable_topic_result.error_message = None
    deletable_topic_result.name, pos = string(buf, pos)
    (deletable_topic_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    return deletable_topic_result, pos


def _read_response_deletable_topic_result_v4(buf: bytes, pos: int) -> tuple[DeletableTopicResult, int]:
    deletable_topic_result = new(DeletableTopicResult)
    deletable_topic_result.topic_id = NO_UUID
    deletable_topic_result.error_message = None
    deletable_topic_result.name, pos = compact_string(buf, pos)
    (deletable_topic_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return deletable_topic_result, pos


def _read_response_deletable_topic_result_v5(buf: bytes, pos: int) -> tuple[DeletableTopicResult, int]:
    deletable_topic_result = new(DeletableTopicResult)
    deletable_topic_result.topic_id = NO_UUID
    deletable_topic_result.name, pos = compact_string(buf, pos)
    (deletable_topic_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    deletable_topic_result.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return deletable_topic_result, pos


def _read_response_deletable_topic_result_v6(buf: bytes, pos: int) -> tuple[DeletableTopicResult, int]:
    deletable_topic_result = new(DeletableTopicResult)
    deletable_topic_result.name, pos = nullable_compact_string(buf, pos)
    deletable_topic_result.topic_id, deletable_topic_result.error_code = _gh.unpack_from(buf, pos)
    pos += 18
    deletable_topic_result.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return deletable_topic_result, pos


def _read_response_v1_to_v3(buf: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.responses, pos = array(buf, pos, _read_response_deletable_topic_result_v1_to_v3, 4)
    return message, pos


def _read_response_v4(buf: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.responses, pos = compact_array(buf, pos, _read_response_deletable_topic_result_v4, 4)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v5(buf: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.responses, pos = compact_array(buf, pos, _read_response_deletable_topic_result_v5, 5)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v6(buf: bytes, pos: int) -> tuple[DeleteTopicsResponse, int]:
    message = new(DeleteTopicsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.responses, pos = compact_array(buf, pos, _read_response_deletable_topic_result_v6, 21)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_deletable_topic_result_v1_to_v3(
    out: bytearray, deletable_topic_result: DeletableTopicResult, _inserts: Inserts
) -> None:
    if deletable_topic_result.name is None:
        raise null_in_this_version("name")
    put_string(out, deletable_topic_result.name)
    out += _h.pack(deletable_topic_result.error_code)


def _write_response_deletable_topic_result_v4(
    out: bytearray, deletable_topic_result: DeletableTopicResult, _inserts: Inserts
) -> None:
    if deletable_topic_result.name is None:
        raise null_in_this_version("name")
    put_compact_string(out, deletable_topic_result.name)
    out += _hx.pack(deletable_topic_result.error_code)


def _write_response_deletable_topic_result_v5(
    out: bytearray, deletable_topic_result: DeletableTopicResult, _inserts: Inserts
) -> None:
    if deletable_topic_result.name is None:
        raise null_in_this_version("name")
    put_compact_string(out, deletable_topic_result.name)
    out += _h.pack(deletable_topic_result.error_code)
    put_nullable_compact_string(out, deletable_topic_result.error_message)
    out.append(0)


def _write_response_deletable_topic_result_v6(
    out: bytearray, deletable_topic_result: DeletableTopicResult, _inserts: Inserts
) -> None:
    put_nullable_compact_string(out, deletable_topic_result.name)
    if len(deletable_topic_result.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _gh.pack(deletable_topic_result.topic_id, deletable_topic_result.error_code)
    put_nullable_compact_string(out, deletable_topic_result.error_message)
    out.append(0)


def _write_response_v1_to_v3(out: bytearray, message: DeleteTopicsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.responses, _write_response_deletable_topic_result_v1_to_v3, inserts)


def _write_response_v4(out: bytearray, message: DeleteTopicsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.responses, _write_response_deletable_topic_result_v4, inserts)
    out.append(0)


def _write_response_v5(out: bytearray, message: DeleteTopicsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.responses, _write_response_deletable_topic_result_v5, inserts)
    out.append(0)


def _write_response_v6(out: bytearray, message: DeleteTopicsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.responses, _write_response_deletable_topic_result_v6, inserts)
    out.append(0)


REQUEST: MessageCodec[DeleteTopicsRequest] = MessageCodec(
    "DeleteTopicsRequest",
    1,
    (
        _read_request_v1_to_v3,
        _read_request_v1_to_v3,
        _read_request_v1_to_v3,
        _read_request_v4_to_v5,
        _read_request_v4_to_v5,
        _read_request_v6,
    ),
    (
        _write_request_v1_to_v3,
        _write_request_v1_to_v3,
        _write_request_v1_to_v3,
        _write_request_v4_to_v5,
        _write_request_v4_to_v5,
        _write_request_v6,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[DeleteTopicsResponse] = MessageCodec(
    "DeleteTopicsResponse",
    1,
    (
        _read_response_v1_to_v3,
        _read_response_v1_to_v3,
        _read_response_v1_to_v3,
        _read_response_v4,
        _read_response_v5,
        _read_response_v6,
    ),
    (
        _write_response_v1_to_v3,
        _write_response_v1_to_v3,
        _write_response_v1_to_v3,
        _write_response_v4,
        _write_response_v5,
        _write_response_v6,
    ),
    holds_views=False,
)
