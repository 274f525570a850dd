"""TransactionEnded: API key 10008, v0 to v0."""
# Made by tools/wiregen from messages/transaction_ended.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import compact_string, nullable_compact_array, skip_tagged_fields
from tidelog.wire.writing import put_compact_string, put_nullable_compact_strings

_ih = struct.Struct(">ih")
_ihx = struct.Struct(">ihx")


class TransactionEndedRequest(Struct):
    __slots__ = (
        "group_id",
        "transactional_id",
        "topics",
    )

    def __init__(
        self,
        group_id: str = "",
        transactional_id: str = "",
        topics: list[str] | None = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.transactional_id = transactional_id
        self.topics = [] if topics is EMPTY else topics


class TransactionEndedResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def _read_request_v0(buf: bytes, pos: int) -> tuple[TransactionEndedRequest, int]:
    message = new(TransactionEndedRequest)
    message.group_id, pos = compact_string(buf, pos)
    message.transactional_id, pos = compact_string(buf, pos)
    message.topics, pos = nullable_compact_array(buf, pos, compact_string, 1, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_v0(out: bytearray, message: TransactionEndedRequest, _inserts: Inserts) -> None:
    put_compact_string(out, message.group_id)
    put_compact_string(out, message.transactional_id)
    put_nullable_compact_strings(out, message.topics)
    out.append(0)


def _read_response_v0(buf: bytes, pos: int) -> tuple[TransactionEndedResponse, int]:
    message = new(TransactionEndedResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_v0(out: bytearray, message: TransactionEndedResponse, _inserts: Inserts) -> None:
    out += _ihx.pack(message.throttle_time_ms, message.error_code)


REQUEST: MessageCodec[TransactionEndedRequest] = MessageCodec(
    "TransactionEndedRequest",
    0,
    (_read_request_v0,),
    (_write_request_v0,),
    holds_views=False,
)

RESPONSE: MessageCodec[TransactionEndedResponse] = MessageCodec(
    "TransactionEndedResponse",
    0,
    (_read_response_v0,),
    (_write_response_v0,),
    holds_views=False,
)
