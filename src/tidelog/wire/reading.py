"""Functions for the generated readers. Every reader takes a buffer and a position: `(buf, pos) -> (value, next pos)`.

Generated readers and these functions rely on each other's rules:

- A position never moves backwards, and every element of an array takes at least one byte.
- A read of a fixed size past the end raises `IndexError` or `struct.error` by itself.
- A slice past the end is short and moves the position past the end; then the next read fails, or the check in `codec`
  that the last position is the end of the buffer. Nothing larger than the buffer is ever allocated.
- An array's count is compared with the number of remaining bytes before the first element is read.
- The number of entries is bounded, too: a request of a few megabytes could hold millions of empty ones, each of which
  takes a hundred times its bytes as an object. An array of a request with more than one element takes the cost of its
  elements from `BUDGET` before the first is read; the cost of an array of one is part of what contains it
  (docs/adr/0016).
- A length or count of -1 (0 in compact form) is null, and, as in Kafka, so is any other negative value.

`codec` turns those errors into `RemoteProtocolError`. Strings and arrays are in compact form in flexible versions.
"""

import threading
from collections.abc import Callable
from struct import Struct, unpack_from
from typing import Any, TypeAlias, TypeVar

from tidelog.wire.primitives import MAX_STRING_SIZE
from tidelog.wire.protocol_errors import RemoteProtocolError, TooManyEntries

T = TypeVar("T")
Source: TypeAlias = bytes | memoryview
ReadElement: TypeAlias = Callable[[Any, int], tuple[T, int]]

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_NUMBER_SIZES = {"b": 1, "h": 2, "i": 4, "q": 8}
_FEW = 9  # most arrays of numbers are short: lists of replicas
_UNPACK_FEW = {code: [Struct(f">{n}{code}").unpack_from for n in range(_FEW)] for code in _NUMBER_SIZES}


UNBOUNDED = 1 << 62
MOST_TAGGED_FIELDS = 1000


class Budget(threading.local):
    """How many more entries the request may have that this thread is reading."""

    left = UNBOUNDED


BUDGET = Budget()


def spend(entries: int) -> None:
    """Called before an array is read; `entries` is its count times the least cost of an element."""
    left = BUDGET.left = BUDGET.left - entries
    if left < 0:
        raise TooManyEntries


def null_refused(what: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"{what} may not be null")


def too_many(count: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"an array claims {count} elements, more than the message has bytes for")


def _wrong_string_size(size: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"a string claims {size} bytes, more than the protocol's {MAX_STRING_SIZE}")


# --- variable lengths -----------------------------------------------------------------------------------------------


def long_uvarint(buf: Source, pos: int, first: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits; its first byte, which is above 127, was read already."""
    byte = buf[pos]
    if byte < 128:
        return first & 127 | byte << 7, pos + 1
    value = first & 127 | (byte & 127) << 7
    for shift in (14, 21, 28):
        pos += 1
        byte = buf[pos]
        value |= (byte & 127) << shift
        if byte < 128 and value <= 0xFFFFFFFF:
            return value, pos + 1
    raise RemoteProtocolError("a varint is longer than 32 bits")


def long_string_size(buf: Source, pos: int, first: int) -> tuple[int, int]:
    """The size plus one of a compact string whose first byte is not in 1 to 127. Raises if it is null or too long."""
    size, pos = long_uvarint(buf, pos, first) if first else (0, pos)
    if size == 0:
        raise null_refused("a string")
    if size > MAX_STRING_SIZE + 1:
        raise _wrong_string_size(size - 1)
    return size, pos


def long_size(buf: Source, pos: int, first: int) -> tuple[int, int]:
    """The size or count plus one of compact bytes or a compact array whose first byte is not in 1 to 127."""
    if first:
        byte = buf[pos]
        if 0 < byte < 128:
            return first & 127 | byte << 7, pos + 1
    size, pos = long_uvarint(buf, pos, first) if first else (0, pos)
    if size == 0:
        raise null_refused("an array or bytes")
    return size, pos


# --- strings --------------------------------------------------------------------------------------------------------


def nullable_string(buf: Source, pos: int) -> tuple[str | None, int]:
    (size,) = _INT16.unpack_from(buf, pos)
    pos += 2
    if size < 0:
        return None, pos
    end = pos + size
    return str(buf[pos:end], "utf-8"), end


def string(buf: Source, pos: int) -> tuple[str, int]:
    (size,) = _INT16.unpack_from(buf, pos)
    if size < 0:
        raise null_refused("a string")
    pos += 2
    end = pos + size
    return str(buf[pos:end], "utf-8"), end


def nullable_compact_string(buf: Source, pos: int) -> tuple[str | None, int]:
    if buf[pos] == 0:
        return None, pos + 1
    return compact_string(buf, pos)


def compact_string(buf: Source, pos: int) -> tuple[str, int]:
    size = buf[pos]
    pos += 1
    if not 0 < size < 128:
        size, pos = long_string_size(buf, pos, size)
    end = pos + size - 1
    return str(buf[pos:end], "utf-8"), end


# --- bytes: views of the buffer -------------------------------------------------------------------------------------


def nullable_data(buf: memoryview, pos: int) -> tuple[memoryview | None, int]:
    (size,) = _INT32.unpack_from(buf, pos)
    pos += 4
    if size < 0:
        return None, pos
    end = pos + size
    return buf[pos:end], end


def data(buf: memoryview, pos: int) -> tuple[memoryview, int]:
    value, pos = nullable_data(buf, pos)
    if value is None:
        raise null_refused("bytes")
    return value, pos


def nullable_compact_data(buf: memoryview, pos: int) -> tuple[memoryview | None, int]:
    if buf[pos] == 0:
        return None, pos + 1
    return compact_data(buf, pos)


def compact_data(buf: memoryview, pos: int) -> tuple[memoryview, int]:
    size = buf[pos]
    pos += 1
    if not 0 < size < 128:
        size, pos = long_size(buf, pos, size)
    end = pos + size - 1
    return buf[pos:end], end


# --- arrays ---------------------------------------------------------------------------------------------------------


def _elements(
    buf: Source, pos: int, count: int, read: ReadElement[T], smallest: int, cost: int
) -> tuple[list[T], int]:
    """`smallest` is the least number of bytes of an element; the claimed count is checked against it. `cost` is what
    an element takes from the budget; 0 in responses, which have no budget."""
    if count * smallest > len(buf) - pos:
        raise too_many(count)
    if cost and count > 1:
        spend(count * cost)
    elements: list[T] = []
    for _ in range(count):
        element, pos = read(buf, pos)
        elements.append(element)
    return elements, pos


def nullable_array(
    buf: Source, pos: int, read: ReadElement[T], smallest: int, cost: int = 0
) -> tuple[list[T] | None, int]:
    (count,) = _INT32.unpack_from(buf, pos)
    return (None, pos + 4) if count < 0 else _elements(buf, pos + 4, count, read, smallest, cost)


def array(buf: Source, pos: int, read: ReadElement[T], smallest: int, cost: int = 0) -> tuple[list[T], int]:
    (count,) = _INT32.unpack_from(buf, pos)
    if count < 0:
        raise null_refused("an array")
    return _elements(buf, pos + 4, count, read, smallest, cost)


def nullable_compact_array(
    buf: Source, pos: int, read: ReadElement[T], smallest: int, cost: int = 0
) -> tuple[list[T] | None, int]:
    return (None, pos + 1) if buf[pos] == 0 else compact_array(buf, pos, read, smallest, cost)


def compact_array(buf: Source, pos: int, read: ReadElement[T], smallest: int, cost: int = 0) -> tuple[list[T], int]:
    count = buf[pos]
    pos += 1
    if not 0 < count < 128:
        count, pos = long_size(buf, pos, count)
    return _elements(buf, pos, count - 1, read, smallest, cost)


def some_numbers(buf: Source, pos: int, count: int, code: str) -> tuple[list[int], int]:
    """`count` integers with this `struct` code."""
    end = pos + count * _NUMBER_SIZES[code]
    if end > len(buf):
        raise too_many(count)
    if count < _FEW:
        return list(_UNPACK_FEW[code][count](buf, pos)), end
    spend(count)
    return list(unpack_from(f">{count}{code}", buf, pos)), end


def nullable_numbers(buf: Source, pos: int, code: str) -> tuple[list[int] | None, int]:
    (count,) = _INT32.unpack_from(buf, pos)
    return (None, pos + 4) if count < 0 else some_numbers(buf, pos + 4, count, code)


def numbers(buf: Source, pos: int, code: str) -> tuple[list[int], int]:
    (count,) = _INT32.unpack_from(buf, pos)
    if count < 0:
        raise null_refused("an array")
    return some_numbers(buf, pos + 4, count, code)


def nullable_compact_numbers(buf: Source, pos: int, code: str) -> tuple[list[int] | None, int]:
    return (None, pos + 1) if buf[pos] == 0 else compact_numbers(buf, pos, code)


def compact_numbers(buf: Source, pos: int, code: str) -> tuple[list[int], int]:
    count = buf[pos]
    pos += 1
    if not 0 < count < 128:
        count, pos = long_size(buf, pos, count)
    return some_numbers(buf, pos, count - 1, code)


# --- structs and their tagged fields --------------------------------------------------------------------------------


def nullable_struct(buf: Source, pos: int, read: ReadElement[T]) -> tuple[T | None, int]:
    """A struct after a byte that is negative for null."""
    return (None, pos + 1) if buf[pos] > 127 else read(buf, pos + 1)


def uvarint(buf: Source, pos: int) -> tuple[int, int]:
    value = buf[pos]
    return (value, pos + 1) if value < 128 else long_uvarint(buf, pos + 1, value)


def tag_count(buf: Source, pos: int) -> tuple[int, int]:
    """The number of tagged fields that follow."""
    count, pos = uvarint(buf, pos)
    if count > MOST_TAGGED_FIELDS:
        raise RemoteProtocolError(
            f"a struct claims {count} tagged fields; no message has more than {MOST_TAGGED_FIELDS}"
        )
    spend(count)
    return count, pos


def tagged_field(buf: Source, pos: int) -> tuple[int, int, int]:
    """The head of a tagged field: its tag, and the start and end of its value."""
    tag, pos = uvarint(buf, pos)
    size, pos = uvarint(buf, pos)
    if size > len(buf) - pos:
        raise RemoteProtocolError(f"tagged field {tag} claims {size} bytes, more than the message has")
    return tag, pos, pos + size


def skip_tagged_fields(buf: Source, pos: int) -> int:
    """Skip a section of tagged fields in which no tag is known."""
    count, pos = tag_count(buf, pos)
    for _ in range(count):
        _, _, pos = tagged_field(buf, pos)
    return pos


def wrong_tagged_size(tag: int) -> RemoteProtocolError:
    return RemoteProtocolError(f"the size of tagged field {tag} does not match its value")
