"""DeleteShareGroupOffsets: API key 92, v0 to v0."""
# Made by tools/wiregen from messages/delete_share_group_offsets.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import compact_array, compact_string, nullable_compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_array, put_compact_string, put_nullable_compact_string, wrong_uuid

_gh = struct.Struct(">16sh")
_ih = struct.Struct(">ih")


class DeleteShareGroupOffsetsRequestTopic(Struct):
    __slots__ = ("topic_name",)

    def __init__(
        self,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name


class DeleteShareGroupOffsetsRequest(Struct):
    __slots__ = (
        "group_id",
        "topics",
    )

    def __init__(
        self,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics


class DeleteShareGroupOffsetsResponseTopic(Struct):
    __slots__ = (
        "topic_name",
        "topic_id",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = NO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteShareGroupOffsetsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses


def _read_request_delete_share_group_offsets_request_topic_v0(
    buf: bytes, pos: int
) -> tuple[DeleteShareGroupOffsetsRequestTopic, int]:
    delete_share_group_offsets_request_topic = new(DeleteShareGroupOffsetsRequestTopic)
    delete_share_group_offsets_request_topic.topic_name, pos = compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_share_group_offsets_request_topic, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[DeleteShareGroupOffsetsRequest, int]:
    message = new(DeleteShareGroupOffsetsRequest)
    message.group_id, pos = compact_string(buf, pos)
    message.topics, pos = compact_array(buf, pos, _read_request_delete_share_group_offsets_request_topic_v0, 2)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_delete_share_group_offsets_request_topic_v0(
    out: bytearray, delete_share_group_offsets_request_topic: DeleteShareGroupOffsetsRequestTopic, _inserts: Inserts
) -> None:
    put_compact_string(out, delete_share_group_offsets_request_topic.topic_name)
    out.append(0)


def _write_request_v0(out: bytearray, message: DeleteShareGroupOffsetsRequest, inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    put_compact_array(out, message.topics, _write_request_delete_share_group_offsets_request_topic_v0, inserts)
    out.append(0)


def _read_response_delete_share_group_offsets_response_topic_v0(
    buf: bytes, pos: int
) -> tuple[DeleteShareGroupOffsetsResponseTopic, int]:
    delete_share_group_offsets_response_topic = new(DeleteShareGroupOffsetsResponseTopic)
    delete_share_group_offsets_response_topic.topic_name, pos = compact_string(buf, pos)
    delete_share_group_offsets_response_topic.topic_id, delete_share_group_offsets_response_topic.error_code = (
        _gh.unpack_from(buf, pos)
    )
    pos += 18
    delete_share_group_offsets_response_topic.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return delete_share_group_offsets_response_topic, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[DeleteShareGroupOffsetsResponse, int]:
    message = new(DeleteShareGroupOffsetsResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.error_message, pos = nullable_compact_string(buf, pos)
    message.responses, pos = compact_array(buf, pos, _read_response_delete_share_group_offsets_response_topic_v0, 21)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_delete_share_group_offsets_response_topic_v0(
    out: bytearray, delete_share_group_offsets_response_topic: DeleteShareGroupOffsetsResponseTopic, _inserts: Inserts
) -> None:
    put_compact_string(out, delete_share_group_offsets_response_topic.topic_name)
    if len(delete_share_group_offsets_response_topic.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _gh.pack(
        delete_share_group_offsets_response_topic.topic_id, delete_share_group_offsets_response_topic.error_code
    )
    put_nullable_compact_string(out, delete_share_group_offsets_response_topic.error_message)
    out.append(0)


def _write_response_v0(out: bytearray, message: DeleteShareGroupOffsetsResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_nullable_compact_string(out, message.error_message)
    put_compact_array(out, message.responses, _write_response_delete_share_group_offsets_response_topic_v0, inserts)
    out.append(0)


REQUEST: Codec[DeleteShareGroupOffsetsRequest] = Codec(
    "DeleteShareGroupOffsetsRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: Codec[DeleteShareGroupOffsetsResponse] = Codec(
    "DeleteShareGroupOffsetsResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
