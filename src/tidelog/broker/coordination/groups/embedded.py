"""The messages of consumers inside the classic protocol: subscription and assignment of a member.

The coordinator does not need them to run a group. It reads them to know the topics of a group (for deletion and
expiry of offsets) and to move members between the classic and the consumer protocol.

    subscription   version:i16  topics:[string]  user_data:bytes?  v1+ owned:[(string, [i32])]
                   v2+ generation:i32  v3+ rack:string?
    assignment     version:i16  partitions:[(string, [i32])]  user_data:bytes?

Strings have an i16 length, arrays and bytes an i32; -1 is null. A later version only adds fields at the end.
"""

import struct
from typing import NamedTuple

from tidelog.broker.coordination.groups.errors import GroupError

PROTOCOL_TYPE = "consumer"
MOST_ITEMS = 100_000  # of all arrays together: reading them must not block the event loop
_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")


class MalformedConsumerMetadata(GroupError):
    """Bytes that are not a consumer's message. Other kinds of clients may use their own format."""


class Subscription(NamedTuple):
    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    generation: int = -1
    rack: str | None = None


class Assignment(NamedTuple):
    partitions: tuple[tuple[str, tuple[int, ...]], ...]
    user_data: bytes = b""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._room = MOST_ITEMS

    def i16(self) -> int:
        return int(_I16.unpack(self._take(2))[0])

    def i32(self) -> int:
        return int(_I32.unpack(self._take(4))[0])

    def string(self) -> str | None:
        size = self.i16()
        try:
            return None if size < 0 else self._take(size).decode()
        except UnicodeDecodeError as error:
            raise MalformedConsumerMetadata(str(error)) from None

    def data(self) -> bytes:
        size = self.i32()
        return b"" if size < 0 else self._take(size)

    def topics(self) -> tuple[str, ...]:
        return tuple(self.string() or "" for _ in range(self._count(2)))

    def partitions(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple(
            (self.string() or "", tuple(self.i32() for _ in range(self._count(4)))) for _ in range(self._count(6))
        )

    def _count(self, least_bytes_each: int) -> int:
        items = self.i32()
        if items * least_bytes_each > len(self._data) - self._at:
            raise MalformedConsumerMetadata(f"an array claims {items} items in {len(self._data)} bytes")
        items = max(items, 0)
        self._room -= items
        if self._room < 0:
            raise MalformedConsumerMetadata(f"more than {MOST_ITEMS} topics and partitions")
        return items

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise MalformedConsumerMetadata(f"the message ends at byte {len(self._data)}, not {end}")
        taken = self._data[self._at : end]
        self._at = end
        return taken


def read_subscription(data: bytes) -> Subscription:
    reader = _Reader(data)
    version = reader.i16()
    topics = reader.topics()
    reader.data()
    owned = reader.partitions() if version >= 1 else ()
    generation = reader.i32() if version >= 2 else -1
    rack = reader.string() if version >= 3 else None
    return Subscription(topics, owned, generation, rack)


def read_assignment(data: bytes) -> Assignment:
    """Empty bytes are an empty assignment: a member gets them if the leader did not assign anything to it."""
    if not data:
        return Assignment(())
    reader = _Reader(data)
    reader.i16()
    return Assignment(reader.partitions(), reader.data())


def write_assignment(partitions: tuple[tuple[str, tuple[int, ...]], ...]) -> bytes:
    """Version 0, without user data."""
    return b"".join((_I16.pack(0), _partitions(partitions), _I32.pack(-1)))


def _string(text: str) -> bytes:
    data = text.encode()
    return _I16.pack(len(data)) + data


def _partitions(topics: tuple[tuple[str, tuple[int, ...]], ...]) -> bytes:
    parts = [_I32.pack(len(topics))]
    for topic, partitions in topics:
        parts += (_string(topic), _I32.pack(len(partitions)), struct.pack(f">{len(partitions)}i", *partitions))
    return b"".join(parts)
