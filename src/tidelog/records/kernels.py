"""The numba kernels of `columnar`: loops over bytes that are not trusted.

The rules for every kernel:

- Each byte of a record is read once, and each varint, length and count is checked before it is used, so that no bytes
  can make a kernel read or write outside its arrays, not even bytes that change while it runs (a mapped file).
- Output arrays are large enough for all that the checked input can produce; the caller owns them.
- No Python objects and no GIL. A refusal is a status, which `columnar` turns into an error; `REFUSALS` has the texts.

Compiled code is kept in numba's cache: `__pycache__` beside this file, or the user's cache folder if the former is
not writable. If neither is, the code is compiled in each process.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from tidelog.records.batch import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_AT,
    HEADER_SIZE,
    HIGHEST_CODEC,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    MIN_LENGTH,
    RECORD_COUNT_AT,
    TIMESTAMP_TYPE_BIT,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Typed: TypeAlias = (
    Any  # a number inside a kernel, or numba's description of it at compile time: numba infers the type
)
_Function = TypeVar("_Function", bound=Callable[..., Any])

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_MAX_MS, _MIN_MS = INT64_MAX // 1000, -(INT64_MAX // 1000)  # the timestamps that microseconds can hold

OK = 0
TRUNCATED, BAD_MAGIC, BAD_LENGTH, BAD_COUNT, BAD_CODEC, OFFSET_OVERFLOW = 1, 2, 3, 4, 5, 6
BAD_VARINT, BAD_RECORD_LENGTH, BAD_OFFSET_DELTA, BAD_FIELD, BAD_HEADERS, BAD_RECORD_END, LEFT_OVER = range(7, 14)
TIMESTAMP_OVERFLOW, BAD_UTF8, CHANGED, RECORD_TOO_LARGE, HEADER_WITHOUT_KEY = range(14, 19)

REFUSALS = {
    TRUNCATED: "truncated batch",
    BAD_MAGIC: "only record batches of magic 2 are supported",
    BAD_LENGTH: "the batch length is below the minimum",
    BAD_COUNT: "the record count does not fit the last offset delta or the size",
    BAD_CODEC: "unknown compression codec",
    OFFSET_OVERFLOW: "the offsets do not fit in 64 bits",
    BAD_VARINT: "a varint is cut off or larger than 64 bits",
    BAD_RECORD_LENGTH: "a record is longer than what is left of its batch",
    BAD_OFFSET_DELTA: "an offset delta is out of order or beyond the last",
    BAD_FIELD: "a field is longer than what is left of its record",
    BAD_HEADERS: "a record has more headers than it can hold",
    BAD_RECORD_END: "a record's fields do not end where its length says",
    LEFT_OVER: "bytes are left over after the last record",
    TIMESTAMP_OVERFLOW: "a timestamp does not fit in 64 bits",
    BAD_UTF8: "a header's key is not UTF-8",
    CHANGED: "the buffer was changed while it was read",
    RECORD_TOO_LARGE: "the record is larger than a batch may be",
    HEADER_WITHOUT_KEY: "the record has a header without a key",
}

# One row for each batch of a chunk. `position` is the position of the batch, `start` and `end` bound its records. For
# a batch that is not `wanted` (a control batch, or one below the range) only header and CRC are checked.
PLAN = np.dtype(
    [
        ("position", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("base_offset", np.int64),
        ("last_offset_delta", np.int64),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("count", np.int64),
        ("crc", np.uint32),
        ("attributes", np.uint16),
        ("wanted", np.bool_),
    ],
    align=True,
)


class BinaryOut(NamedTuple):
    """An Arrow binary column to fill: one offset more than rows, or no offsets if the column is not wanted."""

    offsets: Array
    data: Array
    validity: Array  # all ones on entry; the kernel clears the bit of a null


class ColumnsOut(NamedTuple):
    """The output of `decode_records`; a column that is not wanted has arrays of size 0."""

    key: BinaryOut
    value: BinaryOut
    offset: Array
    timestamp_us: Array
    timestamp_type: Array
    header_offsets: Array
    header_lists: Array  # validity of the lists: null for a record without headers
    header_key: BinaryOut
    header_value: BinaryOut


class Decoded(NamedTuple):
    """The result of `decode_records`; if it refuses a batch, `batch` is the index of that batch in the plan."""

    rows: int
    headers: int
    header_key_bytes: int
    header_value_bytes: int
    batch: int
    status: int


class BinaryIn(NamedTuple):
    """An Arrow binary column to read; a length of -1 is null."""

    starts: Array
    lengths: Array
    data: Array


class ColumnsIn(NamedTuple):
    key: BinaryIn
    value: BinaryIn
    timestamp_ms: Array
    header_starts: Array
    header_counts: Array
    header_key: BinaryIn
    header_value: BinaryIn


def _compiled(function: _Function, *, forceinline: bool = False) -> _Function:
    try:
        return cast("_Function", numba.njit(nogil=True, cache=True, forceinline=forceinline)(function))
    except RuntimeError:  # no folder for the cache is writable: compile in each process
        return cast("_Function", numba.njit(nogil=True, forceinline=forceinline)(function))


def is_compiled(kernel: object) -> bool:
    """True if the kernel is in the cache, or if there can be no cache."""
    try:
        kept = kernel._cache  # type: ignore[attr-defined]  # numba has no other way to ask
        return kept.cache_path is None or bool(kept._cache_file._load_index())
    except (AttributeError, OSError):
        return False


def kernel(function: _Function) -> _Function:
    return _compiled(function)


def inlined(function: _Function) -> _Function:
    """For code that runs several times for each record. LLVM by itself does not inline all of it, which halves the
    speed."""
    return _compiled(function, forceinline=True)


def _memcpy(_: Typed, target: Typed, target_at: Typed, source: Typed, source_at: Typed, size: Typed) -> Typed:  # noqa: ARG001
    def generate(context: Typed, builder: Typed, signature: Typed, arguments: Sequence[Typed]) -> Typed:
        target, target_at, source, source_at, size = arguments
        to = context.make_array(signature.args[0])(context, builder, target)
        of = context.make_array(signature.args[2])(context, builder, source)
        cgutils.raw_memcpy(builder, builder.gep(to.data, [target_at]), builder.gep(of.data, [source_at]), size, 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


# `memcpy` between byte arrays: seven times as fast as the code that numba generates for an assignment of slices.
copy_bytes = cast("Callable[[Array, int, Array, int, int], None]", intrinsic(_memcpy))


@inlined
def big_endian(data: Array, position: int, size: int) -> Typed:
    value = np.int64(np.int8(data[position]))
    for i in range(1, size):
        value = value << 8 | np.int64(data[position + i])
    return value


@kernel
def walk(
    source: Array,
    position: int,
    start_offset: int,
    end_offset: int,
    include_control: bool,
    max_rows: int,
    max_bytes: int,
    plan: Array,
) -> tuple[int, int, int]:
    """Plan the next chunk: batches from `position` on until one more would exceed `max_rows` or `max_bytes`, or the
    plan is full. Returns the number of batches, the position after them (or that of the refused batch), and the
    status."""
    batches = rows = size = 0
    while position < source.size and batches < plan.size:
        available = source.size - position
        if available < HEADER_SIZE:
            return batches, position, TRUNCATED
        if np.int8(source[position + MAGIC_AT]) != MAGIC:
            return batches, position, BAD_MAGIC
        length = big_endian(source, position + LENGTH_AT, 4)
        if length < MIN_LENGTH:
            return batches, position, BAD_LENGTH
        if length + LENGTH_END > available:
            return batches, position, TRUNCATED
        base_offset = big_endian(source, position, 8)
        attributes = big_endian(source, position + ATTRIBUTES_AT, 2)
        last_offset_delta = big_endian(source, position + LAST_OFFSET_DELTA_AT, 4)
        count = big_endian(source, position + RECORD_COUNT_AT, 4)
        if last_offset_delta < 0 or not 0 <= count <= last_offset_delta + 1:
            return batches, position, BAD_COUNT
        if attributes & COMPRESSION_MASK > HIGHEST_CODEC:
            return batches, position, BAD_CODEC
        if base_offset > INT64_MAX - 1 - last_offset_delta:
            return batches, position, OFFSET_OVERFLOW
        if base_offset >= end_offset:
            return batches, source.size, OK
        wanted = base_offset + last_offset_delta >= start_offset and (include_control or not attributes & CONTROL_BIT)
        if wanted:
            payload = length - MIN_LENGTH
            if rows + size > 0 and (rows + count > max_rows or size + payload > max_bytes):
                break
            rows += count
            size += payload
        batch = plan[batches]
        batch.position = position
        batch.start = position + HEADER_SIZE
        position += length + LENGTH_END
        batch.end = position
        batch.base_offset = base_offset
        batch.last_offset_delta = last_offset_delta
        batch.base_timestamp = big_endian(source, batch.position + BASE_TIMESTAMP_AT, 8)
        batch.max_timestamp = big_endian(source, batch.position + MAX_TIMESTAMP_AT, 8)
        batch.count = count
        batch.crc = np.uint32(big_endian(source, batch.position + CRC_AT, 4))
        batch.attributes = np.uint16(attributes)
        batch.wanted = wanted
        batches += 1
    return batches, position, OK


@inlined
def read_varint(data: Array, position: int, end: int) -> tuple[Typed, Typed]:
    """The zig-zag varint at `position` and the position after it, or -1 if it is not whole before `end`. There is no
    return inside the loop, because that would make numba's code three times as slow."""
    if position >= end:
        return np.int64(0), np.int64(-1)
    byte = np.uint64(data[position])
    position += 1
    value = byte & np.uint64(0x7F)
    shift = np.uint64(7)
    while byte >= np.uint64(0x80):
        if position >= end or shift > np.uint64(63):
            return np.int64(0), np.int64(-1)
        byte = np.uint64(data[position])
        if shift == np.uint64(63) and byte & np.uint64(0x7F) > np.uint64(1):
            return np.int64(0), np.int64(-1)
        position += 1
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
    return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), np.int64(position)


@kernel
def _is_utf8(data: Array, position: int, end: int) -> bool:
    """As strict as Python: no surrogates, nothing overlong, nothing above U+10FFFF."""
    while position < end:
        lead = data[position]
        if lead < 0x80:
            position += 1
            continue
        low, high = 0x80, 0xBF  # the bounds of the second byte
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:
                high = 0x9F
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        else:
            return False
        if position + more >= end or not low <= data[position + 1] <= high:
            return False
        for i in range(2, more + 1):
            if not 0x80 <= data[position + i] <= 0xBF:
                return False
        position += more + 1
    return True


@inlined
def _put(column: BinaryOut, row: int, used: int, source: Array, position: int, length: int) -> int:
    """Write one field (-1: null) as `row` of a column whose data has `used` bytes; returns the bytes used now."""
    if length < 0:
        column.validity[row >> 3] &= np.uint8(~(1 << (row & 7)))
    else:
        copy_bytes(column.data, used, source, position, length)
        used += length
    column.offsets[row + 1] = used
    return used


@inlined
def _has_room(column: BinaryOut, row: int, used: int, length: int) -> bool:
    return row + 1 < column.offsets.size and used + length <= column.data.size


@inlined
def _refused(batch: int, status: int) -> Decoded:
    return Decoded(0, 0, 0, 0, batch, status)


@kernel
def decode_records(source: Array, plan: Array, start_offset: int, end_offset: int, out: ColumnsOut) -> Decoded:
    """Every record of the planned batches within the range of offsets, as columns.

    `out` must have room for each batch's records: as many rows as the counts say, as many bytes as the batches have.
    Only the arrays for single headers are sized by the counts of an earlier run, and checked while they are filled.
    """
    row = key_used = value_used = headers = header_key_used = header_value_used = 0
    want_key, want_value, want_offset = out.key.offsets.size > 0, out.value.offsets.size > 0, out.offset.size > 0
    want_timestamp, want_type = out.timestamp_us.size > 0, out.timestamp_type.size > 0
    want_headers = out.header_offsets.size > 0
    for index in range(plan.size):
        batch = plan[index]
        if not batch.wanted:
            continue
        position, end, last_offset_delta = batch.start, batch.end, batch.last_offset_delta
        base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
        timestamp_type = np.int32(batch.attributes & TIMESTAMP_TYPE_BIT != 0)
        timestamp = batch.max_timestamp
        last_delta = -1
        for _ in range(batch.count):
            length, position = read_varint(source, position, end)
            if position < 0:
                return _refused(index, BAD_VARINT)
            if length < 0 or length > end - position:
                return _refused(index, BAD_RECORD_LENGTH)
            record_end = position + length
            timestamp_delta, position = read_varint(source, position + 1, record_end)
            if position < 0:
                return _refused(index, BAD_VARINT)
            offset_delta, position = read_varint(source, position, record_end)
            if position < 0:
                return _refused(index, BAD_VARINT)
            if offset_delta <= last_delta or offset_delta > last_offset_delta:
                return _refused(index, BAD_OFFSET_DELTA)
            last_delta = offset_delta
            key_length, key_at = read_varint(source, position, record_end)
            if key_at < 0:
                return _refused(index, BAD_VARINT)
            if key_length < -1 or key_length > record_end - key_at:
                return _refused(index, BAD_FIELD)
            value_length, value_at = read_varint(source, key_at + max(key_length, 0), record_end)
            if value_at < 0:
                return _refused(index, BAD_VARINT)
            if value_length < -1 or value_length > record_end - value_at:
                return _refused(index, BAD_FIELD)
            header_count, position = read_varint(source, value_at + max(value_length, 0), record_end)
            if position < 0:
                return _refused(index, BAD_VARINT)
            offset = base_offset + offset_delta
            keep = start_offset <= offset < end_offset
            if header_count:
                if header_count < 0 or header_count > (record_end - position) >> 1:
                    return _refused(index, BAD_HEADERS)
                for _ in range(header_count):
                    name_length, name_at = read_varint(source, position, record_end)
                    if name_at < 0:
                        return _refused(index, BAD_VARINT)
                    if name_length < 0 or name_length > record_end - name_at:
                        return _refused(index, BAD_FIELD)
                    if not _is_utf8(source, name_at, name_at + name_length):
                        return _refused(index, BAD_UTF8)
                    content_length, content_at = read_varint(source, name_at + name_length, record_end)
                    if content_at < 0:
                        return _refused(index, BAD_VARINT)
                    if content_length < -1 or content_length > record_end - content_at:
                        return _refused(index, BAD_FIELD)
                    position = content_at + max(content_length, 0)
                    if not keep:
                        continue
                    if want_headers:
                        if not (
                            _has_room(out.header_key, headers, header_key_used, name_length)
                            and _has_room(out.header_value, headers, header_value_used, content_length)
                        ):
                            return _refused(index, CHANGED)
                        _put(out.header_key, headers, header_key_used, source, name_at, name_length)
                        _put(out.header_value, headers, header_value_used, source, content_at, content_length)
                    headers += 1
                    header_key_used += name_length
                    header_value_used += max(content_length, 0)
            if position != record_end:
                return _refused(index, BAD_RECORD_END)
            if not timestamp_type:
                timestamp = base_timestamp + timestamp_delta
                if (base_timestamp ^ timestamp) & (timestamp_delta ^ timestamp) < 0:
                    return _refused(index, TIMESTAMP_OVERFLOW)
            if not keep:
                continue
            if want_offset:
                out.offset[row] = offset
            if want_timestamp:
                out.timestamp_us[row] = min(max(timestamp, _MIN_MS), _MAX_MS) * 1000
            if want_type:
                out.timestamp_type[row] = timestamp_type
            if want_key:
                key_used = _put(out.key, row, key_used, source, key_at, key_length)
            if want_value:
                value_used = _put(out.value, row, value_used, source, value_at, value_length)
            if want_headers:
                out.header_offsets[row + 1] = headers
                if not header_count:
                    out.header_lists[row >> 3] &= np.uint8(~(1 << (row & 7)))
            row += 1
        if position != end:
            return _refused(index, LEFT_OVER)
    return Decoded(row, headers, header_key_used, header_value_used, -1, OK)


@inlined
def varint_size(value: int) -> int:
    bits = np.uint64(value << 1 ^ value >> 63)
    size = 1
    while bits > np.uint64(0x7F):
        bits >>= np.uint64(7)
        size += 1
    return size


@inlined
def put_varint(out: Array, position: int, value: int) -> int:
    bits = np.uint64(value << 1 ^ value >> 63)
    while bits > np.uint64(0x7F):
        out[position] = np.uint8(bits & np.uint64(0x7F) | np.uint64(0x80))
        bits >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(bits)
    return position + 1


@inlined
def _put_field(out: Array, position: int, data: Array, start: int, length: int) -> Typed:
    position = put_varint(out, position, length)
    if length > 0:
        copy_bytes(out, position, data, start, length)
        position += length
    return position


@kernel
def encode_records(
    columns: ColumnsIn, rows: Array, first: int, max_records: int, out: Array
) -> tuple[int, int, int, int]:
    """Write the records of one batch into `out`: `rows[first:]`, up to `max_records` or until `out` is full. Returns
    how many there are, their size, their largest timestamp, and the status. `rows` must be rows of the columns."""
    # Unpack the tuples once: numba counts references at each access, which would cost more than all the rest.
    timestamps, header_starts, header_counts = columns.timestamp_ms, columns.header_starts, columns.header_counts
    key_starts, key_lengths, key_data = columns.key
    value_starts, value_lengths, value_data = columns.value
    name_starts, name_lengths, name_data = columns.header_key
    content_starts, content_lengths, content_data = columns.header_value
    used = count = 0
    base_timestamp = max_timestamp = timestamps[rows[first]]
    for index in range(first, min(rows.size, first + max_records)):
        row = rows[index]
        timestamp, key_length, value_length = timestamps[row], key_lengths[row], value_lengths[row]
        header_start, header_count = header_starts[row], header_counts[row]
        size = 1 + varint_size(timestamp - base_timestamp) + varint_size(count) + varint_size(header_count)
        size += varint_size(key_length) + max(key_length, 0) + varint_size(value_length) + max(value_length, 0)
        for header in range(header_start, header_start + header_count):
            name_length, content_length = name_lengths[header], content_lengths[header]
            if name_length < 0:
                return count, used, max_timestamp, HEADER_WITHOUT_KEY
            size += varint_size(name_length) + name_length
            size += varint_size(content_length) + max(content_length, 0)
        if used + varint_size(size) + size > out.size:
            if count == 0:
                return count, used, max_timestamp, RECORD_TOO_LARGE
            break
        used = put_varint(out, used, size)
        out[used] = 0  # attributes, unused
        used = put_varint(out, used + 1, timestamp - base_timestamp)
        used = put_varint(out, used, count)
        used = _put_field(out, used, key_data, key_starts[row], key_length)
        used = _put_field(out, used, value_data, value_starts[row], value_length)
        used = put_varint(out, used, header_count)
        for header in range(header_start, header_start + header_count):
            used = _put_field(out, used, name_data, name_starts[header], name_lengths[header])
            used = _put_field(out, used, content_data, content_starts[header], content_lengths[header])
        max_timestamp = max(max_timestamp, timestamp)
        count += 1
    return count, used, max_timestamp, OK


_WORD = np.uint64(0xFFFF_FFFF)
_MURMUR = np.uint64(0x5BD1_E995)


@inlined
def _murmur2(data: Array, start: int, length: int) -> Typed:
    """The Java client's hash of a key, as an unsigned number; 64-bit arithmetic cut to 32 bits at each product."""
    value = np.uint64(0x9747_B28C) ^ np.uint64(length)
    end = start + length
    while end - start >= 4:
        word = (
            np.uint64(data[start])
            | np.uint64(data[start + 1]) << np.uint64(8)
            | np.uint64(data[start + 2]) << np.uint64(16)
            | np.uint64(data[start + 3]) << np.uint64(24)
        )
        word = word * _MURMUR & _WORD
        word ^= word >> np.uint64(24)
        value = (value * _MURMUR & _WORD) ^ (word * _MURMUR & _WORD)
        start += 4
    if start < end:
        for i in range(start, end):
            value ^= np.uint64(data[i]) << np.uint64(8 * (i - start))
        value = value * _MURMUR & _WORD
    value ^= value >> np.uint64(13)
    value = value * _MURMUR & _WORD
    return value ^ value >> np.uint64(15)


@kernel
def murmur2_partitions(keys: BinaryIn, partition_count: int, out: Array) -> None:
    for row in range(out.size):
        if keys.lengths[row] < 0:
            out[row] = -1
        else:
            positive = _murmur2(keys.data, keys.starts[row], keys.lengths[row]) & np.uint64(0x7FFF_FFFF)
            out[row] = positive % np.uint64(partition_count)
