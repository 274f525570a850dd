"""DefaultPrincipalData: v0 to v0."""
# Made by tools/wiregen from messages/default_principal_data.txt; do not edit.
# ruff: noqa: A002, RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import Inserts, Struct, new
from tidelog.wire.reading import compact_string, skip_tagged_fields
from tidelog.wire.writing import put_compact_string

_t = struct.Struct(">?")
_tx = struct.Struct(">?x")


class DefaultPrincipalData(Struct):
    __slots__ = (
        "type",
        "name",
        "token_authenticated",
    )

    def __init__(
        self,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
    ) -> None:
        self.type = type
        self.name = name
        self.token_authenticated = token_authenticated


def _read_v0(buf: bytes, pos: int) -> tuple[DefaultPrincipalData, int]:
    message = new(DefaultPrincipalData)
    message.type, pos = compact_string(buf, pos)
    message.name, pos = compact_string(buf, pos)
    (message.token_authenticated,) = _t.unpack_from(buf, pos)
    pos += 1
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_v0(out: bytearray, message: DefaultPrincipalData, _inserts: Inserts) -> None:
    put_compact_string(out, message.type)
    put_compact_string(out, message.name)
    out += _tx.pack(message.token_authenticated)


DATA: Codec[DefaultPrincipalData] = Codec(
    "DefaultPrincipalData",
    0,
    (_read_v0,),
    (_write_v0,),
    holds_views=False,
)
