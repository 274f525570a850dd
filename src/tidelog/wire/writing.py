"""Functions for the generated writers: each appends to the output.

A value of the wrong type or range raises `struct.error`, `AttributeError` or the like here; `codec` turns these into
`LocalProtocolError`.
"""

from collections.abc import Callable, Iterable, Sequence
from struct import Struct, pack
from typing import TypeAlias, TypeVar

from tidelog.wire.primitives import MAX_STRING_SIZE, Buffer, Inserts
from tidelog.wire.protocol_errors import LocalProtocolError

T = TypeVar("T")
WriteElement: TypeAlias = Callable[[bytearray, T, Inserts], None]

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_FEW = 9  # most arrays of numbers are short: lists of replicas
_PACK_FEW = {code: [Struct(f">{n}{code}").pack for n in range(_FEW)] for code in "bhiq"}


class Unchanging(list[T]):
    """A list of structs that is sent often and never changes: its encoded form is cached. Not for structs that hold
    records."""

    __slots__ = ("_written",)

    def __init__(self, values: Iterable[T]) -> None:
        super().__init__(values)
        self._written: dict[WriteElement[T], bytearray] = {}

    def written(self, write: WriteElement[T]) -> bytearray:
        written = self._written.get(write)
        if written is None:
            written = bytearray()
            inserts: Inserts = []
            for value in self:
                write(written, value, inserts)
            assert not inserts, "records are sent once"
            self._written[write] = written
        return written


class InPieces(Unchanging[T]):
    """A list of structs that is encoded while it grows; only the bytes of encoded structs are kept. Encode its
    message after each `add`, only to encode the new structs, and once more when `is_whole` is set."""

    __slots__ = ("_bytes", "_count", "is_whole")

    def __init__(self) -> None:
        super().__init__(())
        self._bytes = bytearray()
        self._count = 0
        self.is_whole = False

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        return len(self._bytes)

    def add(self, values: Iterable[T]) -> None:
        before = list.__len__(self)
        self.extend(values)
        self._count += list.__len__(self) - before

    def written(self, write: WriteElement[T]) -> bytearray:
        inserts: Inserts = []
        for value in self:
            write(self._bytes, value, inserts)
        assert not inserts, "records are not written in pieces"
        self.clear()
        return self._bytes if self.is_whole else bytearray()


def absent(field: str) -> LocalProtocolError:
    return LocalProtocolError(f"{field} does not exist in this version and is not at its default")


def null_in_this_version(field: str) -> LocalProtocolError:
    return LocalProtocolError(f"{field} may not be null in this version")


def wrong_uuid(field: str) -> LocalProtocolError:
    return LocalProtocolError(f"{field} does not have 16 bytes")


# --- variable lengths -----------------------------------------------------------------------------------------------


def put_uvarint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def put_long_string_size(out: bytearray, size_plus_one: int) -> None:
    if size_plus_one > MAX_STRING_SIZE + 1:
        raise LocalProtocolError(
            f"a string of {size_plus_one - 1} bytes is over the protocol's limit of {MAX_STRING_SIZE}"
        )
    put_uvarint(out, size_plus_one)


# --- strings and bytes ----------------------------------------------------------------------------------------------


def put_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out += b"\xff\xff"
    else:
        put_string(out, value)


def put_string(out: bytearray, value: str) -> None:
    encoded = value.encode()
    out += _INT16.pack(len(encoded))
    out += encoded


def put_nullable_compact_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        put_compact_string(out, value)


def put_compact_string(out: bytearray, value: str) -> None:
    encoded = value.encode()
    size = len(encoded) + 1
    if size < 128:
        out.append(size)
    else:
        put_long_string_size(out, size)
    out += encoded


def put_nullable_data(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        put_data(out, value)


def put_data(out: bytearray, value: Buffer) -> None:
    out += _INT32.pack(len(value))
    out += value


def put_nullable_compact_data(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(0)
    else:
        put_compact_data(out, value)


def put_compact_data(out: bytearray, value: Buffer) -> None:
    put_uvarint(out, len(value) + 1)
    out += value


# --- arrays ---------------------------------------------------------------------------------------------------------


def put_nullable_array(out: bytearray, values: list[T] | None, write: WriteElement[T], inserts: Inserts) -> None:
    if values is None:
        out += b"\xff\xff\xff\xff"
    else:
        put_array(out, values, write, inserts)


def put_array(out: bytearray, values: list[T], write: WriteElement[T], inserts: Inserts) -> None:
    out += _INT32.pack(len(values))
    if isinstance(values, Unchanging):
        out += values.written(write)
        return
    for value in values:
        write(out, value, inserts)


def put_nullable_compact_array(
    out: bytearray, values: list[T] | None, write: WriteElement[T], inserts: Inserts
) -> None:
    if values is None:
        out.append(0)
    else:
        put_compact_array(out, values, write, inserts)


def put_compact_array(out: bytearray, values: list[T], write: WriteElement[T], inserts: Inserts) -> None:
    put_uvarint(out, len(values) + 1)
    if isinstance(values, Unchanging):
        out += values.written(write)
        return
    for value in values:
        write(out, value, inserts)


def put_strings(out: bytearray, values: list[str]) -> None:
    out += _INT32.pack(len(values))
    for value in values:
        put_string(out, value)


def put_nullable_strings(out: bytearray, values: list[str] | None) -> None:
    if values is None:
        out += b"\xff\xff\xff\xff"
    else:
        put_strings(out, values)


def put_compact_strings(out: bytearray, values: list[str]) -> None:
    put_uvarint(out, len(values) + 1)
    for value in values:
        put_compact_string(out, value)


def put_nullable_compact_strings(out: bytearray, values: list[str] | None) -> None:
    if values is None:
        out.append(0)
    else:
        put_compact_strings(out, values)


def packed_numbers(values: Sequence[int], code: str) -> bytes:
    count = len(values)
    return _PACK_FEW[code][count](*values) if count < _FEW else pack(f">{count}{code}", *values)


def put_nullable_numbers(out: bytearray, values: list[int] | None, code: str) -> None:
    if values is None:
        out += b"\xff\xff\xff\xff"
    else:
        put_numbers(out, values, code)


def put_numbers(out: bytearray, values: list[int], code: str) -> None:
    out += _INT32.pack(len(values))
    out += packed_numbers(values, code)


def put_nullable_compact_numbers(out: bytearray, values: list[int] | None, code: str) -> None:
    if values is None:
        out.append(0)
    else:
        put_compact_numbers(out, values, code)


def put_compact_numbers(out: bytearray, values: list[int], code: str) -> None:
    put_uvarint(out, len(values) + 1)
    out += packed_numbers(values, code)


# --- structs and their tagged fields --------------------------------------------------------------------------------


def put_nullable_struct(out: bytearray, value: T | None, write: WriteElement[T], inserts: Inserts) -> None:
    if value is None:
        out.append(255)
    else:
        out.append(1)
        write(out, value, inserts)


def put_tagged_field(out: bytearray, tag: int, value: bytearray) -> None:
    put_uvarint(out, tag)
    put_uvarint(out, len(value))
    out += value
