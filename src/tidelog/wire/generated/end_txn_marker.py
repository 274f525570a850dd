"""EndTxnMarker: v0 to v0."""
# Made by tools/wiregen from messages/end_txn_marker.txt; do not edit.

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import Inserts, Struct, new

_i = struct.Struct(">i")


class EndTxnMarker(Struct):
    __slots__ = ("coordinator_epoch",)

    def __init__(
        self,
        coordinator_epoch: int = 0,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch


def _read_v0(buf: bytes, pos: int) -> tuple[EndTxnMarker, int]:
    message = new(EndTxnMarker)
    (message.coordinator_epoch,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _write_v0(out: bytearray, message: EndTxnMarker, _inserts: Inserts) -> None:
    out += _i.pack(message.coordinator_epoch)


DATA: Codec[EndTxnMarker] = Codec(
    "EndTxnMarker",
    0,
    (_read_v0,),
    (_write_v0,),
    holds_views=False,
)
