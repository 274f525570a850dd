"""The walk over the records of one batch: checks that every record can be read, and that the topic accepts it.

`walk` is the function of the C module `_walk` if that was built (`hatch_build.py`), otherwise `walk_in_python`, which
is the specification: both give the same results for the same bytes, which a property test checks. C needs a few
nanoseconds for a record, Python more than a microsecond; `IS_COMPILED` says which one is used.

The walk is stricter than the readers `record.decode` and `columnar`, which must also read batches after compaction:

- offset deltas are 0, 1, 2, ...: a producer's batch has no holes;
- a varint has at most 5 bytes and 32 bits, a timestamp delta at most 10 and 64, as Kafka's clients read them.
"""

from enum import IntEnum
from typing import Final, Protocol, TypeAlias

from tidelog.model import TimestampMs
from tidelog.records.batch import ReadBuffer

NO_TIMESTAMP: Final = -1  # the timestamp of a record without a time; no bound applies to it
MIN_TIMESTAMP: Final = -(2**63)
MAX_TIMESTAMP: Final = 2**63 - 1
_FEW_BYTES: Final = 4096  # per record


class Flaw(IntEnum):
    """What is wrong with a record. The numbers are those of `_walk.c`."""

    NONE = 0
    CUT_OFF = 1
    BAD_VARINT = 2
    BAD_LENGTH = 3
    SHORT_RECORD = 4
    BAD_OFFSET_DELTA = 5
    BAD_TIMESTAMP = 6
    BAD_FIELD = 7
    BAD_HEADER_COUNT = 8
    BAD_HEADER_KEY = 9
    NOT_UTF8 = 10
    LONG_RECORD = 11
    LEFT_OVER = 12


IN_WORDS: Final = {
    Flaw.CUT_OFF: "the data ends before the record does",
    Flaw.BAD_VARINT: "a varint is longer than its type allows",
    Flaw.BAD_LENGTH: "its length is negative or goes beyond the end of the data",
    Flaw.SHORT_RECORD: "its fields go beyond its length",
    Flaw.BAD_OFFSET_DELTA: "its offset delta is not its number in the batch",
    Flaw.BAD_TIMESTAMP: "its timestamp does not fit in 64 bits",
    Flaw.BAD_FIELD: "the length of a field is below -1 or goes beyond the end of the record",
    Flaw.BAD_HEADER_COUNT: "its number of headers is negative or does not fit in the record",
    Flaw.BAD_HEADER_KEY: "the key of a header is null or goes beyond the end of the record",
    Flaw.NOT_UTF8: "the key of a header is not UTF-8",
    Flaw.LONG_RECORD: "its fields end before its length does",
    Flaw.LEFT_OVER: "bytes are left over after the last record",
}


Named: TypeAlias = list[tuple[int, TimestampMs | None]]
"""Records that do not meet the demands: the number of each record, and its timestamp if that is the reason; None if
it lacks a key."""

Walked: TypeAlias = tuple[int, int, TimestampMs, int, Named | None]
"""The `Flaw` and the number of the record that has it. Without a flaw: the largest timestamp, how many records do not
meet the demands, and the first of them."""


class Walk(Protocol):
    def __call__(
        self,
        data: ReadBuffer,
        start: int,
        count: int,
        base_timestamp: TimestampMs,
        is_fixed: bool,
        keys: bool,
        oldest: TimestampMs,
        newest: TimestampMs,
        most_named: int,
        /,
    ) -> Walked:
        """Check the `count` records that fill `data` from `start` on. `is_fixed`: all have `base_timestamp`, whatever
        their deltas. Demands: a key if `keys`, and a timestamp from `oldest` to `newest`."""


def walk_in_python(
    data: ReadBuffer,
    start: int,
    count: int,
    base_timestamp: TimestampMs,
    is_fixed: bool,
    keys: bool,
    oldest: TimestampMs,
    newest: TimestampMs,
    most_named: int,
    /,
) -> Walked:
    data = memoryview(data)[start:]
    size = len(data)
    if size <= _FEW_BYTES * count:
        data = bytes(data)  # indexing bytes is faster, which pays for the copy unless the records are large
    max_timestamp, refused = MIN_TIMESTAMP, 0
    named: Named | None = None
    position = 0
    for index in range(count):
        try:
            end, delta, is_keyless = _plain_record(data, position, size, index)
        except (_RareError, IndexError):
            try:
                end, delta, is_keyless = _record(data, position, size, index)
            except _FlawError as error:
                return error.flaw, index, 0, 0, named
        position = end
        timestamp = base_timestamp if is_fixed else base_timestamp + delta
        if not MIN_TIMESTAMP <= timestamp <= MAX_TIMESTAMP:
            return Flaw.BAD_TIMESTAMP, index, 0, 0, named
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        lacks_key = keys and is_keyless
        if lacks_key or (not oldest <= timestamp <= newest and timestamp != NO_TIMESTAMP):
            refused += 1
            if refused <= most_named:
                named = named if named is not None else []
                named.append((index, None if lacks_key else timestamp))
    if position != size:
        return Flaw.LEFT_OVER, max(count, 0), 0, 0, named
    return Flaw.NONE, max(count, 0), max_timestamp, refused, named


class _FlawError(Exception):
    def __init__(self, flaw: Flaw) -> None:
        self.flaw = flaw


class _RareError(Exception):
    """The record does not have the usual form, but may be valid."""


def _plain_record(data: ReadBuffer, position: int, size: int, index: int) -> tuple[int, int, bool]:
    """The end of the record, its timestamp delta, and True if it has no key: for records of the usual form, without
    headers and with short varints. IndexError or `_RareError` for all others."""
    length = data[position]
    position += 1
    if length > 0x7F:
        length = length & 0x7F | data[position] << 7
        position += 1
        if length > 0x3FFF:
            raise _RareError
    end = position + (length >> 1)
    delta = data[position + 1]
    position += 2
    if delta > 0x7F:
        delta = delta & 0x7F | data[position] << 7
        position += 1
        if delta > 0x3FFF:
            raise _RareError
    offset_delta = data[position]
    position += 1
    if offset_delta > 0x7F:
        offset_delta = offset_delta & 0x7F | data[position] << 7
        position += 1
    key = data[position]
    position += 1
    is_keyless = key == 1
    if not is_keyless:
        if key & 0x81:
            raise _RareError
        position += key >> 1
    value = data[position]
    position += 1
    if value > 0x7F:
        value = value & 0x7F | data[position] << 7
        position += 1
        if value > 0x3FFF:
            raise _RareError
    if value != 1:
        if value & 1:
            raise _RareError
        position += value >> 1
    if (
        length & 1
        or offset_delta != index << 1
        or offset_delta > 0x3FFF
        or data[position]
        or position + 1 != end
        or end > size
    ):
        raise _RareError
    return end, (delta >> 1) ^ -(delta & 1), is_keyless


def _record(data: ReadBuffer, position: int, size: int, index: int) -> tuple[int, int, bool]:
    """The same for any record. Raises `_FlawError` if it is not valid."""
    length, position = _varint(data, position, size, Flaw.CUT_OFF)
    if length < 0 or length > size - position:
        raise _FlawError(Flaw.BAD_LENGTH)
    end = position + length
    if position >= end:
        raise _FlawError(Flaw.SHORT_RECORD)
    delta, position = _varint(data, position + 1, end, Flaw.SHORT_RECORD, most_bytes=10, last_byte=0x01)
    offset_delta, position = _varint(data, position, end, Flaw.SHORT_RECORD)
    if offset_delta != index:
        raise _FlawError(Flaw.BAD_OFFSET_DELTA)
    is_keyless, position = _field(data, position, end)
    _, position = _field(data, position, end)
    headers, position = _varint(data, position, end, Flaw.SHORT_RECORD)
    if not 0 <= headers <= (end - position) // 2:  # a header has at least two bytes
        raise _FlawError(Flaw.BAD_HEADER_COUNT)
    for _ in range(headers):
        length, position = _varint(data, position, end, Flaw.SHORT_RECORD)
        if not 0 <= length <= end - position:
            raise _FlawError(Flaw.BAD_HEADER_KEY)
        try:
            str(data[position : position + length], "utf-8")
        except UnicodeDecodeError:
            raise _FlawError(Flaw.NOT_UTF8) from None
        _, position = _field(data, position + length, end)
    if position != end:
        raise _FlawError(Flaw.LONG_RECORD)
    return end, delta, is_keyless


def _field(data: ReadBuffer, position: int, end: int) -> tuple[bool, int]:
    """True if the field is null, and the position of its end."""
    length, position = _varint(data, position, end, Flaw.SHORT_RECORD)
    if length == -1:
        return True, position
    if not 0 <= length <= end - position:
        raise _FlawError(Flaw.BAD_FIELD)
    return False, position + length


def _varint(
    data: ReadBuffer, position: int, end: int, cut_off: Flaw, *, most_bytes: int = 5, last_byte: int = 0x0F
) -> tuple[int, int]:
    value = 0
    for number in range(most_bytes):
        if position >= end:
            raise _FlawError(cut_off)
        byte = data[position]
        position += 1
        if number == most_bytes - 1 and byte > last_byte:
            raise _FlawError(Flaw.BAD_VARINT)
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1), position


walk: Walk
try:
    from tidelog.records import _walk

    walk, IS_COMPILED = _walk.walk, True
except ImportError:
    walk, IS_COMPILED = walk_in_python, False
