"""The end of every object that Tidelog writes: a footer, and 16 bytes by which to find and check it.

    footer         what the object holds; its layout is that of the object's kind
    length (4)     of the footer
    version (2)    of the object's format
    kind (6)       which format it is
    crc (4)        CRC32C of the footer and of the 12 bytes after it

Numbers are big-endian. A reader that knows the size of an object fetches its last 64 KiB, which nearly always holds
the whole footer: one request. Nothing in an object is believed before the CRC of its footer is checked.
"""

from struct import Struct
from typing import NamedTuple

from tidelog.errors import CorruptLog, MetadataTooNew
from tidelog.records.batch import ReadBuffer
from tidelog.records.crc import crc32c
from tidelog.storage.shared.objects import ObjectStore

TAIL_SIZE = 64 << 10
MOST_BYTES = 64 << 20
"""No footer is larger: a damaged length must not make a reader fetch or keep more."""
_END = Struct(">IH6s")
_CRC = Struct(">I")
END_SIZE = _END.size + _CRC.size


class Kind(NamedTuple):
    name: bytes
    """Six bytes that no other kind of object has."""
    version: int
    """The newest version of the format, which this Tidelog writes."""


class Footer(NamedTuple):
    content: memoryview
    version: int
    position: int
    """Where it begins, which is the end of the data."""


def seal(kind: Kind, footer: bytes) -> bytes:
    """The last bytes of an object with this footer."""
    assert len(footer) <= MOST_BYTES, "the object holds too much"
    sealed = footer + _END.pack(len(footer), kind.version, kind.name)
    return sealed + _CRC.pack(crc32c(sealed))


def kind_of(tail: ReadBuffer) -> bytes:
    """What the last bytes of an object, at least END_SIZE, call its kind. It may be anything."""
    name: bytes = _END.unpack_from(tail, len(tail) - END_SIZE)[2]
    return name


def needed(tail: ReadBuffer, kind: Kind, size: int, key: str) -> int:
    """How many bytes at the end of an object of `size` bytes hold its whole footer, according to its last bytes
    `tail`, of which there must be at least END_SIZE (or as many as the object has). CorruptLog: not such an
    object."""
    if len(tail) < END_SIZE or size < END_SIZE:
        raise _damaged(f"{size} bytes are too few for an object of this kind", key, 0)
    length, version, name = _END.unpack_from(tail, len(tail) - END_SIZE)
    if name != kind.name:
        raise _damaged("the object has no footer of its kind at its end", key, size - END_SIZE)
    if length > min(size - END_SIZE, MOST_BYTES):
        raise _damaged(f"the footer claims {length} bytes of {size}", key, size - END_SIZE)
    if not version:
        raise _damaged("the footer has version 0", key, size - END_SIZE)
    return int(length) + END_SIZE


def unseal(tail: ReadBuffer, kind: Kind, size: int, key: str) -> Footer:
    """The footer of an object of `size` bytes, whose last `needed` bytes or more are given."""
    length = needed(tail, kind, size, key)
    assert len(tail) >= length, "the caller asks how much is needed"
    sealed = memoryview(tail)[len(tail) - length :]
    if _CRC.unpack_from(sealed, length - _CRC.size)[0] != crc32c(sealed[: -_CRC.size]):
        raise _damaged("the CRC of the footer does not match", key, size - length)
    _, version, _ = _END.unpack_from(sealed, length - END_SIZE)
    if version > kind.version:
        raise MetadataTooNew(
            f"{key} has version {version} of its format, this Tidelog reads up to {kind.version}; upgrade it"
        )
    return Footer(sealed[:-END_SIZE], version, size - length)


async def load(objects: ObjectStore, key: str, size: int, kind: Kind, likely: int = TAIL_SIZE) -> Footer:
    """Fetch the footer of an object: one request, two if it is larger than `likely`. Raises also what `read` does."""
    first = min(size, likely)
    [tail] = await objects.read(key, [(size - first, first)])
    length = needed(tail, kind, size, key)
    if length > first:
        [tail] = await objects.read(key, [(size - length, length)])
    return unseal(tail, kind, size, key)


def _damaged(reason: str, key: str, position: int) -> CorruptLog:
    return CorruptLog(reason, file=key, position=position, offset=-1)
