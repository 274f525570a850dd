"""What compaction does to record batches: which records it removes, which stay, and how the rest is written.

A pass has two steps. `KeyMap.add` reads the part of a log that was never compacted and records the last offset of
each key; `KeyMap.thin` reads the log from its start and returns what is left of it. Offsets and order never change: a
batch keeps its base offset, its last offset and its producer's numbers, whatever is removed from it.

A record stays if the map has no later record with the same key. In addition:

    no key                    removed: a compacted topic takes none, but may not always have been compacted
    no value (a tombstone)    when a pass first keeps it, its batch gets a delete horizon, now + delete.retention.ms:
                              attribute bit 6, with the horizon in the base timestamp, as in Kafka. It is removed by
                              the first pass after the horizon.
    of an aborted transaction removed
    a transaction's marker    gets a delete horizon in the first pass that finds no batch of the transaction, and is
                              removed by the first pass after the horizon
    the newest of a producer  the batch stays, without records if necessary: it has the sequence number from which the
                              producer will continue
    the last of the log       the batch stays in the same way: a consumer that reads to the log's end must get there
    from `end_offset` on      stays as it is: the map does not know the records that follow

A batch that loses all its records is removed as a whole. A batch that loses none is copied, byte for byte.

The map is bounded. When it is full, `add` says so, the pass ends before the first record that did not fit, and the
next pass continues from there. There are two implementations: numba kernels on a table of 128-bit keyed hashes
(`compaction_columnar`, extra `columnar`), and the plain one below, for installations without the extra.
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tidelog.errors import CorruptBatch, MissingExtra
from tidelog.model import NO_TIMESTAMP, Offset, ProducerEpoch, ProducerId, TimestampMs
from tidelog.records.batch import (
    COMPRESSION_MASK,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MIN_LENGTH,
    BatchHeader,
    BatchView,
    ReadBuffer,
    check_integrity,
    reassemble,
)
from tidelog.records.compression import Codec, compress
from tidelog.records.loading import compile_ahead, load
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, Record, decode, encode_record, read_marker

NEVER = 2**63 - 1
_ENTRY_BYTES = 160  # per entry of the plain map, without the key: a dict entry, a bytes object and a number


class Aborted(Protocol):
    """A transaction that was aborted: its first offset, and the offset of its marker."""

    @property
    def producer_id(self) -> ProducerId: ...
    @property
    def first_offset(self) -> Offset: ...
    @property
    def last_offset(self) -> Offset: ...


class AbortedRanges:
    """Which batches belong to aborted transactions. The transactions of one producer do not overlap."""

    def __init__(self, aborted: Iterable[Aborted] = ()) -> None:
        self._ends: dict[ProducerId, list[Offset]] = {}
        self._starts: dict[ProducerId, list[Offset]] = {}
        for one in sorted(aborted, key=lambda one: one.last_offset):
            self._ends.setdefault(one.producer_id, []).append(one.last_offset)
            self._starts.setdefault(one.producer_id, []).append(one.first_offset)

    def __bool__(self) -> bool:
        return bool(self._ends)

    def has(self, header: BatchHeader) -> bool:
        """True if this is a batch of an aborted transaction, or its marker."""
        if not header.is_transactional:
            return False
        ends = self._ends.get(header.producer_id, ())
        number = bisect_left(ends, header.base_offset)
        return number < len(ends) and self._starts[header.producer_id][number] <= header.base_offset


class Newest(NamedTuple):
    """The newest batch that the log remembers of a producer; the offset is None if that is a marker."""

    epoch: ProducerEpoch
    last_offset: Offset | None


class Mark(NamedTuple):
    """Consecutive batches of a `Thinned`, for its index: place, last offset and timestamp of the first, and the
    largest timestamp of the others with the last offset of its batch."""

    position: int
    size: int
    last_offset: Offset
    max_timestamp: TimestampMs
    others_max_timestamp: TimestampMs
    others_last_offset: Offset


class Thinned(NamedTuple):
    data: ReadBuffer
    marks: list[Mark]
    consumed: int
    """How many bytes of the input were whole batches."""
    records_read: int
    records_kept: int
    changed: bool
    """False if `data` is the same as the input."""


class Added(NamedTuple):
    consumed: int
    full: bool
    records: int


@dataclass
class Rules:
    """The parameters of a pass, and what it finds out about transactions between the log's start and `end_offset`."""

    now_ms: TimestampMs
    delete_retention_ms: int
    start_offset: Offset = 0
    """Where the map begins: everything before it was compacted by an earlier pass."""
    end_offset: Offset = NEVER
    """Where the map ends. `add` lowers it when the map is full."""
    producers: Mapping[ProducerId, Newest] = field(default_factory=dict)
    aborted: AbortedRanges = field(default_factory=AbortedRanges)
    """All aborted transactions that have batches before `end_offset`; no transaction is open there."""
    log_end_offset: Offset = NEVER
    void_aborts: set[Offset] = field(default_factory=set)
    """The markers of aborted transactions of which the pass found no batch: readers no longer need them."""
    next_horizon_ms: TimestampMs = NEVER
    """When the first tombstone or marker that this pass kept can be removed."""
    _unfinished: set[ProducerId] = field(default_factory=set)

    @property
    def new_horizon_ms(self) -> TimestampMs:
        return min(self.now_ms + self.delete_retention_ms, NEVER)

    def saw_batch_of_transaction(self, producer_id: ProducerId) -> None:
        self._unfinished.add(producer_id)

    def saw_marker(self, batch: BatchView) -> bool:
        """True if no batch of the marker's transaction is left."""
        header = batch.header
        found_batches = header.producer_id in self._unfinished
        self._unfinished.discard(header.producer_id)
        if header.record_count and read_marker(batch).type not in (ABORT_MARKER, COMMIT_MARKER):
            return False
        if not found_batches and self.aborted.has(header):
            self.void_aborts.add(header.base_offset)
        return not found_batches

    def is_newest(self, header: BatchHeader) -> bool:
        """True if the batch is the newest of the log or of its producer: then it stays, even without records."""
        if header.next_offset == self.log_end_offset:
            return True
        newest = self.producers.get(header.producer_id)
        if newest is None or header.producer_id < 0:
            return False
        if newest.last_offset is None:
            return header.is_control and header.producer_epoch == newest.epoch
        return header.last_offset == newest.last_offset

    def kept_until(self, horizon_ms: TimestampMs) -> None:
        self.next_horizon_ms = min(self.next_horizon_ms, horizon_ms)


class KeyMap(Protocol):
    """The last offsets of the keys of one pass. Both calls take whole batches as stored in a segment. An incomplete
    batch at the end is left for the next call. CorruptBatch if the batches are damaged."""

    def add(self, chunk: memoryview, rules: Rules) -> Added:
        """Record the keys between `rules.start_offset` and `rules.end_offset`."""

    def thin(self, chunk: memoryview, rules: Rules, mark_every: int) -> Thinned:
        """What is left of the chunk; its data is valid until the next call."""

    def __len__(self) -> int: ...


def open_key_map(memory_bytes: int, load_factor: float, most_records: int) -> KeyMap:
    """A map of at most `memory_bytes`, for at most `most_records` records; uses the kernels if they are installed."""
    try:
        kernels = load("compaction_columnar")
    except MissingExtra:
        return PlainKeyMap(memory_bytes)
    key_map: KeyMap = kernels.HashedKeyMap(memory_bytes, load_factor, most_records)
    return key_map


def load_kernels(given_up: threading.Event) -> bool:
    """Load the kernels, which takes a second or, the first time on a machine, ten. Blocks: do not call it on the
    event loop. Returns soon after `given_up` is set. False if the kernels are not installed."""
    try:
        if not compile_ahead(given_up):
            return True
    except MissingExtra:
        return False
    load("compaction_columnar").warm_up()
    return True


def whole_batches(chunk: memoryview) -> Iterable[BatchView]:
    """The whole batches in `chunk`, each checked; ends before a batch that is incomplete."""
    position, size = 0, len(chunk)
    while position + HEADER_SIZE <= size:
        header = BatchHeader._make(HEADER.unpack_from(chunk, position))
        if header.magic != MAGIC or header.length < MIN_LENGTH:
            raise CorruptBatch(f"invalid batch header at position {position}")
        end = position + header.length + LENGTH_END
        if end > size:
            return
        check_integrity(chunk, position, header)
        yield BatchView(position, header, chunk[position:end])
        position = end


class PlainKeyMap:
    """Works record by record, with the keys themselves in a dict. At most a few hundred thousand records a second."""

    def __init__(self, memory_bytes: int) -> None:
        self._free_bytes = memory_bytes
        self._offsets: dict[bytes, Offset] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, chunk: memoryview, rules: Rules) -> Added:
        consumed = count = 0
        for batch in whole_batches(chunk):
            consumed = batch.position + batch.header.size
            header = batch.header
            if header.is_control or rules.aborted.has(header):
                continue
            for record in decode(batch):
                count += 1
                if record.key is None or not rules.start_offset <= record.offset < rules.end_offset:
                    continue
                if record.key not in self._offsets:
                    self._free_bytes -= len(record.key) + _ENTRY_BYTES
                    if self._free_bytes < 0 and self._offsets:
                        rules.end_offset = record.offset
                        return Added(consumed, True, count)
                self._offsets[record.key] = record.offset
        return Added(consumed, False, count)

    def thin(self, chunk: memoryview, rules: Rules, mark_every: int) -> Thinned:  # noqa: ARG002
        data = bytearray()
        marks: list[Mark] = []
        consumed = read = kept = 0
        changed = False
        for batch in whole_batches(chunk):
            consumed = batch.position + batch.header.size
            after, left = self._thinned(batch, rules)
            read += batch.header.record_count
            kept += left
            if after is not batch.view:
                changed = True
            if after is not None:
                header = BatchHeader._make(HEADER.unpack_from(after))
                marks.append(Mark(len(data), len(after), header.last_offset, header.max_timestamp, NO_TIMESTAMP, 0))
                data += after
        return Thinned(data, marks, consumed, read, kept, changed)

    def _thinned(self, batch: BatchView, rules: Rules) -> tuple[ReadBuffer | None, int]:
        """What is left of the batch (the batch itself if nothing was removed), and how many records."""
        header = batch.header
        before = header.record_count
        if header.base_offset >= rules.end_offset:
            return batch.view, before
        horizon = header.base_timestamp if header.has_delete_horizon else None
        is_due = horizon is not None and horizon <= rules.now_ms
        is_newest = rules.is_newest(header)
        ages = header.last_offset < rules.end_offset
        records: list[Record] = []
        if header.is_control:
            is_void = rules.saw_marker(batch)
            if not (is_void and (is_due or before == 0)):
                records = decode(batch)
            needs_horizon = is_void
        else:
            if header.is_transactional:
                rules.saw_batch_of_transaction(header.producer_id)
            if not rules.aborted.has(header):
                records = [record for record in decode(batch) if self._stays(record, rules, is_due)]
            needs_horizon = any(record.value is None for record in records)
        if not records and not is_newest:
            return None, 0
        if needs_horizon and records:
            if horizon is None and ages:
                horizon = rules.new_horizon_ms
            elif len(records) == before:
                rules.kept_until(horizon if horizon is not None else NEVER)
                return batch.view, before
            rules.kept_until(horizon if horizon is not None else NEVER)
        elif len(records) == before:
            return batch.view, before
        return _rewritten(header, records, horizon), len(records)

    def _stays(self, record: Record, rules: Rules, is_due: bool) -> bool:
        if record.offset >= rules.end_offset:
            return True
        if record.key is None or self._offsets.get(record.key, -1) > record.offset:
            return False
        return record.value is not None or not is_due


def _rewritten(header: BatchHeader, records: list[Record], horizon: TimestampMs | None) -> bytearray:
    base_timestamp, attributes = header.base_timestamp, header.attributes
    if horizon is not None:
        base_timestamp, attributes = horizon, attributes | DELETE_HORIZON_BIT
    max_timestamp = header.max_timestamp
    if not records:  # nothing to compress, and no record with a timestamp
        max_timestamp, attributes = NO_TIMESTAMP, attributes & ~COMPRESSION_MASK
    elif not header.timestamp_type:
        max_timestamp = max(record.timestamp for record in records)
    payload = bytearray()
    for record in records:
        encode_record(payload, record, record.timestamp - base_timestamp, record.offset - header.base_offset)
    after = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(records),
    )
    return reassemble(after, compress(Codec(after.codec_id), payload))
