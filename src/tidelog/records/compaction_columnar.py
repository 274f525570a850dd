"""Compaction with kernels (extra `columnar`). The contract is in `compaction`. Python makes at most a few calls for
each batch (CRC, codecs) and none for a record."""

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tidelog.errors import CorruptBatch, MissingExtra
from tidelog.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    MIN_RECORD_SIZE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    BatchView,
    ReadBuffer,
    reassemble,
    set_crc,
)
from tidelog.records.compaction import Added, Mark, Rules, Thinned
from tidelog.records.compression import DEFAULT_LIMIT, Codec, compress, decompress
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder

try:
    import numpy as np

    from tidelog.records import compaction_kernels as kernels
    from tidelog.records.kernels import BAD_COUNT, REFUSALS, Array
    from tidelog.records.kernels import is_compiled as is_in_cache
except ImportError as error:
    raise MissingExtra('fast compaction needs an extra: run pip install "tidelog[columnar]"') from error

SLOT_BYTES = 24
_FEWEST_SLOTS = 64
_EXPANDED_BYTES = 32 << 20  # limit of decompressed records in memory at a time; a single batch may have more
_INT64 = np.dtype(np.int64)


class _Window(NamedTuple):
    """Batches that are processed together, and the decompressed records of those that were compressed."""

    batches: Array
    expanded: Array


class HashedKeyMap:
    """Keys by their 128-bit hashes, in a table of a fixed size."""

    def __init__(self, memory_bytes: int, load_factor: float, most_records: int) -> None:
        slots = max(_FEWEST_SLOTS, min(memory_bytes // SLOT_BYTES, 2 * most_records))
        self._table = np.frombuffer(_zeros(slots * SLOT_BYTES), np.uint64)
        self._used = 0
        self._limit = max(1, min(int(slots * load_factor), slots - 1))
        self._key = np.frombuffer(os.urandom(16), np.uint64)
        # Reused from chunk to chunk: allocating new memory would cost more than the work that is done in it.
        self._room = _records(0)
        self._out = np.empty(0, np.uint8)

    def __len__(self) -> int:
        return self._used

    def add(self, chunk: memoryview, rules: Rules) -> Added:
        source = _readonly(chunk)
        batches, consumed = _surveyed(chunk, source)
        batches["mode"][batches["attributes"] & CONTROL_BIT != 0] = kernels.COPY
        batches["mode"][batches["last_offset"] < rules.start_offset] = kernels.COPY
        if rules.aborted:
            for row in np.flatnonzero(batches["attributes"] & TRANSACTIONAL_BIT).tolist():
                header = BatchHeader._make(HEADER.unpack_from(chunk, int(batches["position"][row])))
                if rules.aborted.has(header):
                    batches["mode"][row] = kernels.COPY
        count = 0
        for window in _windows(chunk, batches):
            records, size = self._examined(source, window)
            count += size
            self._used, first_left = kernels.remember(
                self._table, self._used, self._limit, records, size, rules.start_offset, rules.end_offset
            )
            if first_left >= 0:
                rules.end_offset = first_left
                return Added(consumed, True, count)
        return Added(consumed, False, count)

    def thin(self, chunk: memoryview, rules: Rules, mark_every: int) -> Thinned:
        source = _readonly(chunk)
        batches, consumed = _surveyed(chunk, source)
        _judge(chunk, batches, rules)
        data: list[ReadBuffer] = []
        found: list[Array] = []
        size = kept = 0
        changed = False
        for window in _windows(chunk, batches):
            records, count = self._examined(source, window)
            kernels.find_last(self._table, records, count)
            rows = window.batches
            out = self._output(int(rows["size"].sum()) + window.expanded.size + kernels.GROWTH * count, window)
            pieces = np.empty(rows.size, kernels.PIECE)
            written = kernels.write_thinned(
                source,
                window.expanded,
                rows,
                records,
                rules.end_offset,
                rules.now_ms,
                rules.new_horizon_ms,
                out,
                pieces,
            )
            if written.status:
                raise _corrupt(written.status, int(rows["position"][written.next_horizon]))
            pieces = pieces[: written.pieces]
            parts = _sealed(out.data, pieces, written.used)
            pieces["start"] += size
            pieces["end"] += size
            size += sum(map(len, parts))
            data += parts
            found.append(pieces)
            kept += written.records_kept
            changed = changed or written.changed
            rules.kept_until(written.next_horizon)
        joined: ReadBuffer = data[0] if len(data) == 1 else b"".join(data)
        marks = _marks(np.concatenate(found) if found else np.empty(0, kernels.PIECE), mark_every)
        return Thinned(joined, marks, consumed, int(batches["count"].sum()), kept, changed)

    def _output(self, size: int, window: _Window) -> Array:
        """The buffer for what is left of a window. A window without decompressed records is the only one of its chunk
        and gets a buffer that is reused: its content is valid until the next chunk."""
        if window.expanded.size:
            return np.empty(size, np.uint8)
        if size > self._out.size:
            self._out = np.empty(size + size // 2, np.uint8)
        return self._out

    def _examined(self, source: Array, window: _Window) -> tuple[kernels.Records, int]:
        batches = window.batches
        looked_at = (batches["mode"] == kernels.BY_RECORD) | (batches["mode"] == kernels.AGE)
        false_counts = looked_at & (batches["count"] > (batches["end"] - batches["start"]) // MIN_RECORD_SIZE)
        if false_counts.any():
            raise _corrupt(BAD_COUNT, int(batches["position"][false_counts][0]))
        count = int(batches["count"][looked_at].sum())
        if count > self._room.offset.size:
            self._room = _records(count + count // 2)
        records = kernels.Records._make(column[:count] for column in self._room)
        index, status = kernels.examine(source, window.expanded, batches, self._key[0], self._key[1], records)
        if status:
            raise _corrupt(status, int(batches["position"][index]))
        return records, count


def _records(count: int) -> kernels.Records:
    return kernels.Records._make(np.empty(count, dtype) for dtype in kernels.RECORD_TYPES)


def _zeros(size: int) -> mmap.mmap:
    """Memory for random access: in huge pages if available, which avoids most page faults and TLB misses."""
    memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def warm_up() -> None:
    """Run every kernel once, so that none has to be compiled while a caller waits."""
    builder = BatchBuilder(Codec.ZSTD)
    builder.append(None, key=b"key", timestamp=0)
    batch = memoryview(bytes(builder.build()))
    key_map = HashedKeyMap(0, 1, 1)
    key_map.add(batch, Rules(0, 0))
    key_map.thin(batch, Rules(0, 0), 1)


def is_compiled() -> bool:
    """True if the kernels are compiled already, so that `warm_up` does not take seconds."""
    return is_in_cache(kernels.find_marks)  # the last that `warm_up` compiles


def _corrupt(status: int, position: int) -> CorruptBatch:
    return CorruptBatch(f"{REFUSALS[status]}, in the batch at position {position}")


def _readonly(buffer: ReadBuffer) -> Array:
    array = np.frombuffer(buffer, np.uint8)
    array.flags.writeable = False
    return array


def _surveyed(chunk: memoryview, source: Array) -> tuple[Array, int]:
    """The whole batches of the chunk, their CRCs checked, and the position after them."""
    table = np.empty(source.size // HEADER_SIZE + 1, kernels.BATCH)
    number, position, status = kernels.survey(source, table)
    if status:
        raise _corrupt(status, position)
    batches = table[:number]
    starts = batches["position"].tolist()
    for start, size, stored in zip(starts, batches["size"].tolist(), batches["crc"].tolist(), strict=True):
        actual = crc32c(chunk[start + CRC_START : start + size])
        if actual != stored:
            raise CorruptBatch(f"CRC mismatch at position {start}: stored {stored:#010x}, computed {actual:#010x}")
    return batches, position


def _judge(chunk: memoryview, batches: Array, rules: Rules) -> None:
    """Set the fate of batches that does not depend on their records. Only batches of transactions, and those that may
    be the newest of their producer, are checked in Python."""
    attributes, mode = batches["attributes"], batches["mode"]
    mode[batches["base_offset"] >= rules.end_offset] = kernels.COPY
    special = attributes & (CONTROL_BIT | TRANSACTIONAL_BIT) != 0
    newest = [one.last_offset for one in rules.producers.values() if one.last_offset is not None]
    newest.append(rules.log_end_offset - 1)
    candidates = special | np.isin(batches["last_offset"], newest)
    for row in np.flatnonzero(candidates).tolist():
        position, size = int(batches["position"][row]), int(batches["size"][row])
        header = BatchHeader._make(HEADER.unpack_from(chunk, position))
        if header.base_offset >= rules.end_offset:
            continue
        batches["is_newest"][row] = rules.is_newest(header)
        if header.is_control:
            is_void = rules.saw_marker(BatchView(position, header, chunk[position : position + size]))
            mode[row] = _fate_of_marker(header, rules, is_void=is_void)
        elif header.is_transactional:
            rules.saw_batch_of_transaction(header.producer_id)
            if rules.aborted.has(header):
                mode[row] = kernels.EMPTY


def _fate_of_marker(header: BatchHeader, rules: Rules, *, is_void: bool) -> int:
    if not is_void:
        return kernels.COPY
    if header.record_count == 0:
        return kernels.EMPTY
    if header.attributes & DELETE_HORIZON_BIT:
        return kernels.EMPTY if header.base_timestamp <= rules.now_ms else kernels.AGE
    return kernels.AGE


def _windows(chunk: memoryview, batches: Array) -> Iterator[_Window]:
    """All batches in windows. Compressed records are decompressed if the batch is processed record by record."""
    looked_at = (batches["mode"] == kernels.BY_RECORD) | (batches["mode"] == kernels.AGE)
    compressed = (batches["attributes"] & COMPRESSION_MASK != 0) & looked_at & (batches["count"] > 0)
    first = size = 0
    parts: list[ReadBuffer] = []
    for row in np.flatnonzero(compressed).tolist():
        start, end = int(batches["start"][row]), int(batches["end"][row])
        part = decompress(int(batches["attributes"][row]) & COMPRESSION_MASK, chunk[start:end], DEFAULT_LIMIT)
        if parts and size + len(part) > _EXPANDED_BYTES:
            yield _Window(batches[first:row], _readonly(b"".join(parts)))
            parts, size, first = [], 0, row
        batches["start"][row], batches["end"][row] = size, size + len(part)
        parts.append(part)
        size += len(part)
    if first < batches.size:
        yield _Window(batches[first:], _readonly(b"".join(parts)))


def _sealed(out: memoryview, pieces: Array, used: int) -> list[ReadBuffer]:
    """The written batches with their CRCs, compressed as before; updates their places in `pieces`."""
    codecs = pieces["codec"]
    rewritten = np.flatnonzero(codecs >= 0)
    starts, ends = pieces["start"].tolist(), pieces["end"].tolist()
    if not (codecs > 0).any():
        for row in rewritten.tolist():
            set_crc(out[starts[row] : ends[row]])
        return [out[:used]]
    parts: list[ReadBuffer] = []
    sizes = pieces["end"] - pieces["start"]
    for row, (start, end, codec) in enumerate(zip(starts, ends, codecs.tolist(), strict=True)):
        part: ReadBuffer = out[start:end]
        if codec > 0:
            header = BatchHeader._make(HEADER.unpack_from(part))
            part = reassemble(header, compress(Codec(codec), part[HEADER_SIZE:]))
            sizes[row] = len(part)
        elif codec == 0:
            set_crc(out[start:end])
        parts.append(part)
    pieces["end"] = np.cumsum(sizes)
    pieces["start"] = pieces["end"] - sizes
    return parts


def _marks(pieces: Array, every: int) -> list[Mark]:
    out = np.empty((pieces.size, 6), _INT64)
    number = kernels.find_marks(pieces, every, out)
    return [Mark(*row) for row in out[:number].tolist()]
