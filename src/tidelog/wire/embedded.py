"""Data formats inside `bytes` fields of other messages; they begin with their version as an int16.

The metadata of consumer groups is of this kind: a broker passes it on without decoding it, but admin tools and our
client decode it.
"""

from struct import Struct as Layout
from typing import TypeVar

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import Buffer, Struct
from tidelog.wire.protocol_errors import RemoteProtocolError, UnsupportedVersion

M = TypeVar("M", bound=Struct)

_VERSION = Layout(">h")


def encode_embedded(codec: MessageCodec[M], message: M, version: int) -> bytes:
    return _VERSION.pack(version) + codec.encode(message, version)


def decode_embedded(codec: MessageCodec[M], data: Buffer) -> M:
    """The message, decoded at the version with which the data begins.

    A version that is newer than ours is decoded as our newest, and the remaining bytes are ignored: newer versions
    only append fields.
    """
    if len(data) < _VERSION.size:
        raise RemoteProtocolError(f"{codec.name}: too short to have a version")
    version = _VERSION.unpack_from(data, 0)[0]
    if version < codec.min_version:
        raise UnsupportedVersion(codec.name, version, codec.min_version, codec.max_version)
    if version <= codec.max_version:
        return codec.decode(data, version, _VERSION.size)
    message, _ = codec.decode_prefix(data, codec.max_version, _VERSION.size)
    return message
