"""The numba kernels of compaction. The rules in `kernels` apply to these too.

The map of keys is one array of 64-bit words, three for each slot: 128 bits of the key's hash, and the key's last
offset + 1 (0: the slot is free). Collisions are resolved by linear probing. The hash is SipHash-1-3 with 128 bits and
a random secret that lives as long as the map: a producer cannot choose keys that collide, because that takes the
secret, and by chance it happens in one of 10^20 passes over a billion keys. So the keys themselves need not be
stored.

Parsing, hashing and look-up are separate loops, so that the processor overlaps the cache misses of the look-ups.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tidelog.records.batch import (
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    COMPRESSION_MASK,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    HIGHEST_CODEC,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    MIN_LENGTH,
    PRODUCER_ID_AT,
    RECORD_COUNT_AT,
    TIMESTAMP_TYPE_BIT,
)
from tidelog.records.kernels import (
    BAD_CODEC,
    BAD_COUNT,
    BAD_FIELD,
    BAD_HEADERS,
    BAD_LENGTH,
    BAD_MAGIC,
    BAD_OFFSET_DELTA,
    BAD_RECORD_END,
    BAD_RECORD_LENGTH,
    BAD_VARINT,
    INT64_MAX,
    INT64_MIN,
    LEFT_OVER,
    OFFSET_OVERFLOW,
    OK,
    TIMESTAMP_OVERFLOW,
    Array,
    Typed,
    big_endian,
    copy_bytes,
    inlined,
    kernel,
    put_varint,
    read_varint,
    varint_size,
)

# One row for each batch of a chunk. `start` and `end` bound its records, in the chunk or in the buffer into which
# they were decompressed. `first_record` is the index of its first record in the arrays of `Records`.
BATCH = np.dtype(
    [
        ("position", np.int64),
        ("size", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("base_offset", np.int64),
        ("last_offset", np.int64),
        ("base_timestamp", np.int64),
        ("max_timestamp", np.int64),
        ("producer_id", np.int64),
        ("count", np.int64),
        ("first_record", np.int64),
        ("crc", np.uint32),
        ("attributes", np.uint16),
        ("mode", np.uint8),
        ("is_newest", np.bool_),
    ],
    align=True,
)
# What to do with a batch, decided before its records are read.
BY_RECORD, COPY, EMPTY, AGE = 0, 1, 2, 3  # AGE: all records stay, but the batch gets a delete horizon

# What was written for a batch.
PIECE = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("last_offset", np.int64),
        ("max_timestamp", np.int64),
        ("codec", np.int64),  # of a rewritten batch, whose records are not compressed yet; -1: a copy
    ],
    align=True,
)

HAS_KEY, HAS_VALUE = 1, 2
GROWTH = 16  # the most bytes that a record grows when its timestamp delta is written for another base timestamp
_SLOT = 3
_AHEAD = 16  # records


class Records(NamedTuple):
    """The records of some batches: positions of the record, its body, what follows its timestamp, its end."""

    start: Array
    body: Array
    rest: Array
    end: Array
    timestamp: Array
    offset: Array
    flags: Array
    hash_low: Array
    hash_high: Array
    last_offset: Array  # of the key, by `find_last`


RECORD_TYPES = (*6 * (np.int64,), np.uint8, *2 * (np.uint64,), np.int64)


def _load(_: Typed, source: Typed, at: Typed) -> Typed:  # noqa: ARG001
    def generate(context: Typed, builder: Typed, signature: Typed, arguments: Sequence[Typed]) -> Typed:
        source, at = arguments
        of = context.make_array(signature.args[0])(context, builder, source)
        word = ir.IntType(64)
        pointer = builder.bitcast(builder.gep(of.data, [at]), word.as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(source, types.int64), generate


# Eight bytes of an array as a number, in native byte order: hashes are compared only on the same machine.
_word = cast("Callable[[Array, int], Typed]", intrinsic(_load))


def _fetch_ahead(_: Typed, table: Typed, at: Typed) -> Typed:  # noqa: ARG001
    def generate(context: Typed, builder: Typed, signature: Typed, arguments: Sequence[Typed]) -> Typed:
        table, at = arguments
        of = context.make_array(signature.args[0])(context, builder, table)
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        pointer = builder.bitcast(builder.gep(of.data, [at]), byte)
        builder.call(fetch, [pointer, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(table, types.int64), generate


# Prefetch a part of an array that is needed soon: a cache miss takes as long as all other work for a record.
_fetch = cast("Callable[[Array, int], None]", intrinsic(_fetch_ahead))


@kernel
def survey(source: Array, batches: Array) -> tuple[int, int, int]:
    """The headers of whole batches from the start of `source` on, as many as `batches` has room for. Returns their
    number, the position after them (or that of the refused batch), and the status."""
    number = position = 0
    while number < batches.size and source.size - position >= HEADER_SIZE:
        if np.int8(source[position + MAGIC_AT]) != MAGIC:
            return number, position, BAD_MAGIC
        length = big_endian(source, position + LENGTH_AT, 4)
        if length < MIN_LENGTH:
            return number, position, BAD_LENGTH
        if length + LENGTH_END > source.size - position:
            break
        base_offset = big_endian(source, position, 8)
        attributes = big_endian(source, position + ATTRIBUTES_AT, 2)
        last_offset_delta = big_endian(source, position + LAST_OFFSET_DELTA_AT, 4)
        count = big_endian(source, position + RECORD_COUNT_AT, 4)
        if last_offset_delta < 0 or not 0 <= count <= last_offset_delta + 1:
            return number, position, BAD_COUNT
        if attributes & COMPRESSION_MASK > HIGHEST_CODEC:
            return number, position, BAD_CODEC
        if base_offset < 0 or base_offset > INT64_MAX - 1 - last_offset_delta:
            return number, position, OFFSET_OVERFLOW
        batch = batches[number]
        batch.position = position
        batch.size = length + LENGTH_END
        batch.start = position + HEADER_SIZE
        batch.end = position + length + LENGTH_END
        batch.base_offset = base_offset
        batch.last_offset = base_offset + last_offset_delta
        batch.base_timestamp = big_endian(source, position + BASE_TIMESTAMP_AT, 8)
        batch.max_timestamp = big_endian(source, position + MAX_TIMESTAMP_AT, 8)
        batch.producer_id = big_endian(source, position + PRODUCER_ID_AT, 8)
        batch.count = count
        batch.first_record = 0
        batch.crc = np.uint32(big_endian(source, position + CRC_AT, 4))
        batch.attributes = np.uint16(attributes)
        batch.mode = BY_RECORD
        batch.is_newest = False
        position += length + LENGTH_END
        number += 1
    return number, position, OK


@inlined
def _rotated(value: Typed, bits: int) -> Typed:
    return value << np.uint64(bits) | value >> np.uint64(64 - bits)


@inlined
def _round(a: Typed, b: Typed, c: Typed, d: Typed) -> tuple[Typed, Typed, Typed, Typed]:
    a += b
    c += d
    b = _rotated(b, 13) ^ a
    d = _rotated(d, 16) ^ c
    a = _rotated(a, 32)
    c += b
    a += d
    b = _rotated(b, 17) ^ c
    d = _rotated(d, 21) ^ a
    return a, b, _rotated(c, 32), d


@inlined
def siphash(source: Array, start: int, length: int, key_low: Typed, key_high: Typed) -> tuple[Typed, Typed]:
    """The 128-bit SipHash-1-3 of a range of bytes."""
    a = np.uint64(0x736F6D6570736575) ^ key_low
    b = np.uint64(0x646F72616E646F6D) ^ key_high ^ np.uint64(0xEE)
    c = np.uint64(0x6C7967656E657261) ^ key_low
    d = np.uint64(0x7465646279746573) ^ key_high
    at, words = start, length >> 3
    for _ in range(words):
        word = _word(source, at)
        d ^= word
        a, b, c, d = _round(a, b, c, d)
        a ^= word
        at += 8
    last = np.uint64(length & 0xFF) << np.uint64(56)
    left = length & 7
    if left:
        if length >= 8:
            last |= _word(source, at + left - 8) >> np.uint64(8 * (8 - left))
        else:
            for i in range(left):
                last |= np.uint64(source[at + i]) << np.uint64(8 * i)
    d ^= last
    a, b, c, d = _round(a, b, c, d)
    a ^= last
    c ^= np.uint64(0xEE)
    for _ in range(3):
        a, b, c, d = _round(a, b, c, d)
    low = a ^ b ^ c ^ d
    b ^= np.uint64(0xDD)
    for _ in range(3):
        a, b, c, d = _round(a, b, c, d)
    return low, a ^ b ^ c ^ d


@kernel
def examine(
    chunk: Array, expanded: Array, batches: Array, key_low: Typed, key_high: Typed, out: Records
) -> tuple[int, int]:
    """Parse every record of the batches marked BY_RECORD or AGE. `out` has room for their record counts, which were
    checked against their sizes. Returns the index of a bad batch, and the status."""
    starts, bodies, rests, ends, timestamps = out.start, out.body, out.rest, out.end, out.timestamp
    offsets, flags, lows, highs = out.offset, out.flags, out.hash_low, out.hash_high
    row = 0
    for index in range(batches.size):
        batch = batches[index]
        batch.first_record = row
        if batch.mode != BY_RECORD and batch.mode != AGE:
            continue
        source = expanded if batch.attributes & COMPRESSION_MASK else chunk
        position, end, base_offset = batch.start, batch.end, batch.base_offset
        base_timestamp, last_offset = batch.base_timestamp, batch.last_offset
        last = base_offset - 1
        for _ in range(batch.count):
            starts[row] = position
            length, position = read_varint(source, position, end)
            if position < 0:
                return index, BAD_VARINT
            if length < 1 or length > end - position:
                return index, BAD_RECORD_LENGTH
            record_end = position + length
            bodies[row] = position
            delta, position = read_varint(source, position + 1, record_end)
            if position < 0:
                return index, BAD_VARINT
            rests[row] = position
            timestamp = base_timestamp + delta
            if (delta > 0 and timestamp < base_timestamp) or (delta < 0 and timestamp > base_timestamp):
                return index, TIMESTAMP_OVERFLOW
            timestamps[row] = timestamp
            offset_delta, position = read_varint(source, position, record_end)
            if position < 0:
                return index, BAD_VARINT
            if offset_delta < 0 or offset_delta > last_offset - base_offset or base_offset + offset_delta <= last:
                return index, BAD_OFFSET_DELTA
            last = base_offset + offset_delta
            offsets[row] = last
            key_length, key_at = read_varint(source, position, record_end)
            if key_at < 0:
                return index, BAD_VARINT
            if key_length < -1 or key_length > record_end - key_at:
                return index, BAD_FIELD
            value_length, value_at = read_varint(source, key_at + max(key_length, 0), record_end)
            if value_at < 0:
                return index, BAD_VARINT
            if value_length < -1 or value_length > record_end - value_at:
                return index, BAD_FIELD
            header_count, position = read_varint(source, value_at + max(value_length, 0), record_end)
            if position < 0:
                return index, BAD_VARINT
            if header_count == 0 and position != record_end:
                return index, BAD_RECORD_END
            if header_count < 0 or header_count > (record_end - position) >> 1:
                return index, BAD_HEADERS  # only the count is checked: headers are copied, not decoded
            flag = HAS_VALUE if value_length >= 0 else 0
            lows[row] = 0
            if key_length >= 0:
                flag |= HAS_KEY
                lows[row], highs[row] = siphash(source, key_at, key_length, key_low, key_high)
            flags[row] = flag
            ends[row] = position = record_end
            row += 1
        if position != end:
            return index, LEFT_OVER
    return 0, OK


@inlined
def _home(low: Typed, slots: int) -> Typed:
    return np.int64((low & np.uint64(0xFFFF_FFFF)) * np.uint64(slots) >> np.uint64(32))


@kernel
def remember(
    table: Array, used: int, limit: int, records: Records, count: int, start_offset: int, end_offset: int
) -> tuple[int, int]:
    """Put the last offsets of keys into the table. Returns how many slots are used, and the offset of the first
    record for which there was no slot (or -1)."""
    offsets, flags, lows, highs = records.offset, records.flags, records.hash_low, records.hash_high
    slots = table.size // _SLOT
    for row in range(count):
        if row + _AHEAD < count:
            _fetch(table, _home(lows[row + _AHEAD], slots) * _SLOT)
        offset = offsets[row]
        if not flags[row] & HAS_KEY or offset < start_offset or offset >= end_offset:
            continue
        low, high = lows[row], highs[row]
        slot = _home(low, slots)
        while True:
            at = slot * _SLOT
            if table[at + 2] == 0:
                if used >= limit:
                    return used, offset
                used += 1
                table[at], table[at + 1], table[at + 2] = low, high, np.uint64(offset + 1)
                break
            if table[at] == low and table[at + 1] == high:
                table[at + 2] = np.uint64(offset + 1)
                break
            slot += 1
            if slot == slots:
                slot = 0
    return used, -1


@kernel
def find_last(table: Array, records: Records, count: int) -> None:
    """Set for each record the last offset of its key in the table, or -1. The table must have free slots."""
    flags, lows, highs, last_offset = records.flags, records.hash_low, records.hash_high, records.last_offset
    slots = table.size // _SLOT
    for row in range(count):
        if row + _AHEAD < count:
            _fetch(table, _home(lows[row + _AHEAD], slots) * _SLOT)
        found = np.int64(-1)
        if flags[row] & HAS_KEY:
            low, high = lows[row], highs[row]
            slot = _home(low, slots)
            while table[slot * _SLOT + 2] != 0:
                at = slot * _SLOT
                if table[at] == low and table[at + 1] == high:
                    found = np.int64(table[at + 2]) - 1
                    break
                slot += 1
                if slot == slots:
                    slot = 0
        last_offset[row] = found


@inlined
def _put_big_endian(out: Array, position: int, value: Typed, size: int) -> None:
    for i in range(size):
        out[position + i] = np.uint8(value >> (8 * (size - 1 - i)) & 0xFF)


class Written(NamedTuple):
    pieces: int
    used: int
    records_kept: int
    changed: bool
    next_horizon: int
    status: int


@kernel
def write_thinned(
    chunk: Array,
    expanded: Array,
    batches: Array,
    records: Records,
    end_offset: int,
    now_ms: int,
    new_horizon: int,
    out: Array,
    pieces: Array,
) -> Written:
    """Write what is left of the batches into `out`: copies, and rewritten batches that still need their CRC and, if
    they have a codec, compression. `out` has room for every batch with its records decompressed and grown."""
    starts, bodies, rests, ends, timestamps = (
        records.start,
        records.body,
        records.rest,
        records.end,
        records.timestamp,
    )
    offsets, flags, last_offset = records.offset, records.flags, records.last_offset
    number = used = total_kept = 0
    changed = False
    next_horizon = INT64_MAX
    for index in range(batches.size):
        batch = batches[index]
        mode, count, first = batch.mode, batch.count, batch.first_record
        horizon, has_horizon = batch.base_timestamp, batch.attributes & DELETE_HORIZON_BIT != 0
        kept = tombstones = 0
        max_timestamp = np.int64(-1)
        if mode == BY_RECORD:
            is_due = has_horizon and horizon <= now_ms
            max_timestamp = np.int64(INT64_MIN)
            for row in range(first, first + count):
                if offsets[row] < end_offset:
                    has_value = flags[row] & HAS_VALUE
                    if last_offset[row] > offsets[row] or not flags[row] & HAS_KEY or (is_due and not has_value):
                        flags[row] = 0  # marks the record as removed
                        continue
                    if not has_value:
                        tombstones += 1
                flags[row] |= HAS_KEY
                kept += 1
                max_timestamp = max(max_timestamp, timestamps[row])
        elif mode == COPY:
            kept = count
        elif mode == AGE:
            kept, tombstones = count, 1
            for row in range(first, first + count):
                flags[row] |= HAS_KEY
                max_timestamp = max(max_timestamp, timestamps[row])
        if kept == 0 and not (mode == COPY and batch.last_offset >= end_offset) and not batch.is_newest:
            changed = True
            continue
        gets_horizon = tombstones > 0 and not has_horizon and batch.last_offset < end_offset
        if gets_horizon:
            horizon, has_horizon = new_horizon, True
        if tombstones > 0 and has_horizon:
            next_horizon = min(next_horizon, horizon)
        total_kept += kept
        piece = pieces[number]
        number += 1
        piece.start = used
        piece.last_offset = batch.last_offset
        if kept == count and not gets_horizon:
            copy_bytes(out, used, chunk, batch.position, batch.size)
            used += batch.size
            piece.end, piece.max_timestamp, piece.codec = used, batch.max_timestamp, -1
            continue
        changed = True
        begin = used
        attributes = np.int64(batch.attributes)
        copy_bytes(out, used, chunk, batch.position, HEADER_SIZE)
        used += HEADER_SIZE
        source = expanded if attributes & COMPRESSION_MASK else chunk
        if kept == 0:
            max_timestamp = np.int64(-1)
            attributes &= ~COMPRESSION_MASK
        elif attributes & TIMESTAMP_TYPE_BIT:
            max_timestamp = batch.max_timestamp
        if gets_horizon:
            attributes |= DELETE_HORIZON_BIT
            _put_big_endian(out, begin + BASE_TIMESTAMP_AT, np.int64(horizon), 8)
            for row in range(first, first + count):
                if flags[row]:
                    delta = timestamps[row] - horizon
                    if (horizon > 0 and delta > timestamps[row]) or (horizon < 0 and delta < timestamps[row]):
                        return Written(0, 0, 0, False, index, TIMESTAMP_OVERFLOW)
                    rest = ends[row] - rests[row]
                    used = put_varint(out, used, 1 + varint_size(delta) + rest)
                    out[used] = source[bodies[row]]
                    used = put_varint(out, used + 1, delta)
                    copy_bytes(out, used, source, rests[row], rest)
                    used += rest
        elif kept > 0:
            row, stop = first, first + count
            while row < stop:  # consecutive records that stay are copied together
                if flags[row]:
                    start = starts[row]
                    while row < stop and flags[row]:
                        row += 1
                    size = ends[row - 1] - start
                    copy_bytes(out, used, source, start, size)
                    used += size
                else:
                    row += 1
        _put_big_endian(out, begin + LENGTH_AT, np.int64(used - begin - LENGTH_END), 4)
        _put_big_endian(out, begin + ATTRIBUTES_AT, attributes, 2)
        _put_big_endian(out, begin + MAX_TIMESTAMP_AT, max_timestamp, 8)
        _put_big_endian(out, begin + RECORD_COUNT_AT, np.int64(kept), 4)
        piece.end, piece.max_timestamp, piece.codec = used, max_timestamp, attributes & COMPRESSION_MASK
    return Written(number, used, total_kept, changed, next_horizon, OK)


@kernel
def find_marks(pieces: Array, every: int, out: Array) -> int:
    """Write one row of `out` (a `Mark`) for each run of pieces of about `every` bytes; returns the number of rows."""
    number = 0
    index = 0
    while index < pieces.size:
        first = pieces[index]
        start = first.start
        most, most_offset = np.int64(-1), np.int64(0)
        end = first.end
        index += 1
        while index < pieces.size and pieces[index].start - start <= every:
            piece = pieces[index]
            if piece.max_timestamp > most:
                most, most_offset = piece.max_timestamp, piece.last_offset
            end = piece.end
            index += 1
        out[number, 0] = start
        out[number, 1] = end - start
        out[number, 2] = first.last_offset
        out[number, 3] = first.max_timestamp
        out[number, 4] = most
        out[number, 5] = most_offset
        number += 1
    return number
