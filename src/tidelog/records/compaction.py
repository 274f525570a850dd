"""What compaction does to record batches: which records go, which stay, and how a thinned batch is written.

A pass has two steps. `KeyMap.add` reads the part of a log that was never compacted and remembers the last offset
of each key; `KeyMap.thin` reads the log from its start and gives back what is left of it. Offsets and order never
change: a batch keeps its base offset, its last offset and its producer's numbers, whatever is taken out of it.

A record stays if no later record that the map knows has its key. On top of that:

    no key                    goes: a compacted topic takes none, but may have been an ordinary one
    no value (a tombstone)    when a pass first keeps it, its batch gets a delete horizon, now + delete.retention.ms:
                              attribute bit 6, with the horizon in the base timestamp, as in Kafka. It goes in the
                              first pass after that.
    of an aborted transaction goes
    a transaction's marker    gets a delete horizon in the first pass that finds no batch of the transaction, and goes
                              after it
    the newest of a producer  the batch stays, without records if need be: it carries the sequence number that the
                              producer will go on from
    the last of the log       the batch stays in the same way: whoever reads up to the log's end must get there
    from `end_offset` on      stays as it is: the map does not know what comes later

A batch of which nothing is left goes as a whole. One of which everything is left is copied, byte for byte.

The map is bounded. When it is full `add` says so, the pass ends before the first record that did not fit, and another
pass goes on from there. Two implementations hold to this: numba kernels on a table of 128-bit keyed hashes
(`compaction_columnar`, extra `columnar`), and the plain one below, for an installation without the extra.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple, Protocol

from tidelog.errors import CorruptBatch, MissingExtra
from tidelog.model import NO_TIMESTAMP, Offset, ProducerEpoch, ProducerId, TimestampMs
from tidelog.records.batch import (
    COMPRESSION_MASK,
    CRC_START,
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
)
from tidelog.records.compression import Codec, compress
from tidelog.records.crc import crc32c
from tidelog.records.loading import compile_ahead, load
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, Record, decode, encode_record, read_marker

NEVER = 2**63 - 1
_CRC = Struct(">I")
_CRC_AT = 17
_ENTRY_BYTES = 160  # of the plain map, beside the key: a dict entry, a bytes object and a number


class Aborted(Protocol):
    """A transaction that was aborted: its first offset, and the offset of its marker."""

    @property
    def producer_id(self) -> ProducerId: ...
    @property
    def first_offset(self) -> Offset: ...
    @property
    def last_offset(self) -> Offset: ...


class AbortedRanges:
    """Which batches belong to aborted transactions. Those of one producer follow each other."""

    def __init__(self, aborted: Iterable[Aborted] = ()) -> None:
        self._ends: dict[ProducerId, list[Offset]] = {}
        self._starts: dict[ProducerId, list[Offset]] = {}
        for one in sorted(aborted, key=lambda one: one.last_offset):
            self._ends.setdefault(one.producer_id, []).append(one.last_offset)
            self._starts.setdefault(one.producer_id, []).append(one.first_offset)

    def __bool__(self) -> bool:
        return bool(self._ends)

    def has(self, header: BatchHeader) -> bool:
        """Whether it is a batch of such a transaction, or its marker."""
        if not header.is_transactional:
            return False
        ends = self._ends.get(header.producer_id, ())
        number = bisect_left(ends, header.base_offset)
        return number < len(ends) and self._starts[header.producer_id][number] <= header.base_offset


class Newest(NamedTuple):
    """The newest batch of a producer that the log remembers; no offset if that is a marker."""

    epoch: ProducerEpoch
    last_offset: Offset | None


class Mark(NamedTuple):
    """Some batches of a `Thinned`, one behind another, for its index: the first one's place, last offset and
    timestamp, and the largest timestamp of the others with the last offset of its batch."""

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
    """False if `data` is what was read."""


class Added(NamedTuple):
    consumed: int
    full: bool
    records: int


@dataclass
class Rules:
    """What a pass goes by, and what it learns of transactions on the way from the log's start to `end_offset`."""

    now_ms: TimestampMs
    delete_retention_ms: int
    start_offset: Offset = 0
    """Where the map begins: nothing before it was never compacted."""
    end_offset: Offset = NEVER
    """Where the map ends. `add` lowers it when the map is full."""
    producers: Mapping[ProducerId, Newest] = field(default_factory=dict)
    aborted: AbortedRanges = field(default_factory=AbortedRanges)
    """All aborted transactions that have batches before `end_offset`; none is undecided there."""
    log_end_offset: Offset = NEVER
    void_aborts: set[Offset] = field(default_factory=set)
    """The markers of aborted transactions of which the pass found no batch: nobody needs to know of them any more."""
    next_horizon_ms: TimestampMs = NEVER
    """When the first tombstone or marker that this pass kept can go."""
    _unfinished: set[ProducerId] = field(default_factory=set)

    @property
    def new_horizon_ms(self) -> TimestampMs:
        return min(self.now_ms + self.delete_retention_ms, NEVER)

    def saw_batch_of_transaction(self, producer_id: ProducerId) -> None:
        self._unfinished.add(producer_id)

    def saw_marker(self, batch: BatchView) -> bool:
        """Whether the marker has nothing left to mark."""
        header = batch.header
        found_batches = header.producer_id in self._unfinished
        self._unfinished.discard(header.producer_id)
        if header.record_count and read_marker(batch).type not in (ABORT_MARKER, COMMIT_MARKER):
            return False
        if not found_batches and self.aborted.has(header):
            self.void_aborts.add(header.base_offset)
        return not found_batches

    def is_newest(self, header: BatchHeader) -> bool:
        """Of the log or of its producer: the batch stays, whatever becomes of its records."""
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
    """The last offsets of the keys of one pass. Both calls take whole batches as they stand in a segment, with the
    beginning of another at the end, which is left for the next call. CorruptBatch if they are damaged."""

    def add(self, chunk: memoryview, rules: Rules) -> Added:
        """Remember the keys between `rules.start_offset` and `rules.end_offset`."""

    def thin(self, chunk: memoryview, rules: Rules, mark_every: int) -> Thinned:
        """What is left of the chunk; its data is good until the next call."""

    def __len__(self) -> int: ...


def open_key_map(memory_bytes: int, load_factor: float, most_records: int) -> KeyMap:
    """A map within so many bytes, for at most so many records; by kernels, if they are installed."""
    try:
        kernels = load("compaction_columnar")
    except MissingExtra:
        return PlainKeyMap(memory_bytes)
    key_map: KeyMap = kernels.HashedKeyMap(memory_bytes, load_factor, most_records)
    return key_map


_all_have_keys: Callable[[memoryview], bool] | None = None


def load_kernels(given_up: threading.Event) -> bool:
    """Get ready to run at full speed, which takes a second or, the first time on a machine, ten: not for the event
    loop, and over soon when `given_up` is set. False if the kernels are not installed."""
    global _all_have_keys
    try:
        if not compile_ahead(given_up):
            return True
    except MissingExtra:
        return False
    kernels = load("compaction_columnar")
    kernels.warm_up()
    _all_have_keys = kernels.all_have_keys
    return True


def all_have_keys(batches: memoryview) -> bool:
    """Whether every record of these whole batches has a key: by kernels as soon as they are loaded."""
    if _all_have_keys is not None:
        return _all_have_keys(batches)
    return all(record.key is not None for batch in whole_batches(batches) for record in decode(batch))


def reassembled(header: BatchHeader, payload: ReadBuffer) -> bytearray:
    """A batch with this header around other records; length and CRC are computed."""
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(batch, 0, *header._replace(length=MIN_LENGTH + len(payload)))
    batch += payload
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CRC_START:]))
    return batch


def seal_crc(batch: memoryview) -> None:
    """Set the CRC of a whole batch in place."""
    _CRC.pack_into(batch, _CRC_AT, crc32c(batch[CRC_START:]))


def whole_batches(chunk: memoryview) -> Iterable[BatchView]:
    """Each checked; ends before a batch that is not whole in `chunk`."""
    position, size = 0, len(chunk)
    while position + HEADER_SIZE <= size:
        header = BatchHeader._make(HEADER.unpack_from(chunk, position))
        if header.magic != MAGIC or header.length < MIN_LENGTH:
            raise CorruptBatch(f"what should be a batch header is none, in the batch at position {position}")
        end = position + header.length + LENGTH_END
        if end > size:
            return
        check_integrity(chunk, position, header)
        yield BatchView(position, header, chunk[position:end])
        position = end


class PlainKeyMap:
    """Record by record, with the keys themselves in a dict. A few hundred thousand records a second at most."""

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
        """What is left of the batch (itself, if that is all of it) and how many records."""
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
    if not records:  # nothing to compress, and no record that has a time
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
    return reassembled(after, compress(Codec(after.codec_id), payload))
