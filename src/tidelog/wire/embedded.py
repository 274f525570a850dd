"""Data formats that travel inside `bytes` fields of other messages, with their version as an int16 in front.

The group protocols of consumers are such: a broker passes them on unread, but admin tools and our client read them.
"""

from struct import Struct as Layout
from typing import TypeVar

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import Buffer, Struct
from tidelog.wire.protocol_errors import RemoteProtocolError, UnsupportedVersion

M = TypeVar("M", bound=Struct)

_VERSION = Layout(">h")


def encode_embedded(codec: Codec[M], message: M, version: int) -> bytes:
    return _VERSION.pack(version) + codec.encode(message, version)


def decode_embedded(codec: Codec[M], data: Buffer) -> M:
    """The message, at the version it names.

    A version newer than ours is read as our newest, and what follows is passed over: newer versions only append.
    """
    if len(data) < _VERSION.size:
        raise RemoteProtocolError(f"{codec.name}: no version")
    version = _VERSION.unpack_from(data, 0)[0]
    if version < codec.min_version:
        raise UnsupportedVersion(codec.name, version, codec.min_version, codec.max_version)
    if version <= codec.max_version:
        return codec.decode(data, version, _VERSION.size)
    message, _ = codec.decode_prefix(data, codec.max_version, _VERSION.size)
    return message
