"""Checks the records of a produced batch: every consumer must be able to read them, and the topic must accept them.

A record that is acknowledged but cannot be read stops every consumer of the partition for good. So the broker
examines a batch before it accepts it, as far as the cost allows (docs/adr/0015 has the figures):

    level    uncompressed batch                       compressed batch
    header   nothing                                  its frame (`frames`): whole, and large enough for its records
    auto     every record, if the walk is in C and    its frame; every record, as long as the credit pays for it
             the records are not very many; otherwise
             as long as the credit pays for it
    full     every record                             every record

The credit (`_Credit`) limits the cost of examining to a tenth of the cost of accepting the batches, plus 0.2 % of a
core: a broker under little load examines all of them. A topic's demands on single records (keys, and timestamps that
are not too old) are always checked.
"""

import time
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from tidelog.errors import CorruptBatch, InvalidRecord, InvalidTimestamp, RefusedRecords
from tidelog.model import TimestampMs
from tidelog.records.batch import HEADER_SIZE, MIN_RECORD_SIZE, BatchHeader, BatchView, ReadBuffer
from tidelog.records.compression import DEFAULT_LIMIT, Codec, Expander
from tidelog.records.frames import frame_bound, read_frame
from tidelog.records.record import decode
from tidelog.records.walk import IN_WORDS, IS_COMPILED, MAX_TIMESTAMP, MIN_TIMESTAMP, NO_TIMESTAMP, Flaw, Named, walk

MOST_NAMED = 1000  # records that one error names
# So many records of a batch, plus one for so many bytes, can be walked in C for a tenth of the cost of the batch.
FREE_RECORDS, FREE_RECORD_BYTES = 180, 60


class Level(StrEnum):
    AUTO = "auto"
    HEADER = "header"
    FULL = "full"


class Demands(NamedTuple):
    """What a topic demands of single records. Records without a timestamp (-1) are never too old or too new."""

    keys: bool = False
    oldest: TimestampMs = MIN_TIMESTAMP
    newest: TimestampMs = MAX_TIMESTAMP

    def error(self, where: str, refused: int, named: Named) -> RefusedRecords:
        records = [(index, self._reason(timestamp)) for index, timestamp in named]
        many = f"{refused} record{'s' * (refused != 1)} of the batch"
        if any(timestamp is not None for _, timestamp in named):
            first = next(reason for (_, reason), (_, at) in zip(records, named, strict=True) if at is not None)
            return InvalidTimestamp(f"{where}: {many} cannot be accepted; {first}", records)
        return InvalidRecord(f"{where} is compacted: {many} without a key", records)

    def _reason(self, timestamp: TimestampMs | None) -> str:
        if timestamp is None:
            return "a record of a compacted topic needs a key"
        return f"timestamp {timestamp} is not between {self.oldest} and {self.newest}"


class Examined(NamedTuple):
    max_timestamp: TimestampMs
    """The max timestamp that the header should have: computed as Kafka does, or the header's own if that is right
    too."""
    records: ReadBuffer
    """The decompressed records; valid until the next batch is examined."""


class Validator:
    """Examines batches one after the other, in one thread: it reuses the memory into which it decompresses. A broker
    has one for all its partitions, because they share the credit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._expander = Expander()
        self._credit = _Credit(clock)

    def is_framed_only(self, batch: ReadBuffer, codec_id: int, count: int, level: Level) -> bool:
        """A shortcut for a compressed batch without demands: True if its frame is valid and nothing else needs to be
        checked. Otherwise call `examine`."""
        bound = frame_bound(codec_id, batch, HEADER_SIZE)
        return (
            count * MIN_RECORD_SIZE <= bound
            and level is not Level.FULL
            and (level is Level.HEADER or not self._credit.earn(len(batch)))
        )

    def examine(
        self, batch: memoryview, header: BatchHeader, level: Level, demands: Demands, where: str, *, must: bool
    ) -> Examined | None:
        """Check the records of a whole batch, as far as `level` says; with `must`, all of them. Returns None if they
        were not checked. Raises InvalidRecord or InvalidTimestamp if a record is not acceptable, and
        UnsupportedCompression if the codec is unknown. The CRC is not checked here: if it is wrong, it is the cause
        of any other error."""
        codec_id, count = header.codec_id, header.record_count
        data: ReadBuffer = batch[HEADER_SIZE:]
        must = must or level is Level.FULL
        size = len(batch)
        if codec_id:
            content, most = read_frame(codec_id, batch[HEADER_SIZE:])
            if count * MIN_RECORD_SIZE > (most if content is None else content):
                raise InvalidRecord(f"{most if content is None else content} bytes cannot hold {count} records")
            limit = DEFAULT_LIMIT
            if not must:
                if level is Level.HEADER:
                    return None
                if not self._credit.earn(size) or _is_too_much(count):
                    return None
                limit = min(limit, _MOST_BYTES[Codec(codec_id)])
            try:
                expanded = self._expander.expand(
                    codec_id, batch[HEADER_SIZE:], content=content, most=most, limit=limit
                )
            except CorruptBatch as error:
                raise InvalidRecord(str(error)) from None
            if not must:
                self._credit.spend(codec_id, limit if expanded is None else len(expanded), count)
            if expanded is None:
                if not must:
                    return None
                name = Codec(codec_id).name.lower()
                raise InvalidRecord(f"the {name} data of the batch is damaged, or holds more than {limit} bytes")
            data = expanded
        elif not must:
            if level is Level.HEADER:
                return None
            if not IS_COMPILED or count > FREE_RECORDS + size // FREE_RECORD_BYTES:
                if not self._credit.earn(size) or _is_too_much(count):
                    return None
                self._credit.spend(codec_id, size, count)
        is_fixed = bool(header.timestamp_type)
        base_timestamp = header.max_timestamp if is_fixed else header.base_timestamp
        keys, oldest, newest = demands
        flaw, index, max_timestamp, refused, named = walk(
            data, 0, count, base_timestamp, is_fixed, keys, oldest, newest, MOST_NAMED
        )
        if flaw:
            raise InvalidRecord(f"record {index} of the {count} of the batch: {IN_WORDS[Flaw(flaw)]}")
        if refused:
            raise demands.error(where, refused, named or [])
        stands = max_timestamp == header.max_timestamp
        return Examined(max_timestamp if stands else max(max_timestamp, NO_TIMESTAMP), data)

    def check_stored(self, batch: BatchView) -> None:
        """InvalidInput if not every consumer can read this batch of a log. Its CRC must have been checked before."""
        header = batch.header
        if header.record_count == header.last_offset_delta + 1:
            self.examine(batch.view, header, Level.FULL, Demands(), "", must=True)
        else:  # compaction removed records from it
            decode(batch)


_EARNED_NS, _EARNED_NS_PER_BYTE = 100, 0.05
_EARNED_NS_PER_SECOND = 2_000_000  # 0.2 % of a core
_MOST_CREDIT_NS = 20_000_000
_RECORD_NS = 5.0 if IS_COMPILED else 1_000.0
_CODEC_NS = {Codec.NONE: 1_000, Codec.GZIP: 15_000, Codec.SNAPPY: 8_000, Codec.LZ4: 12_000, Codec.ZSTD: 22_000}
_CODEC_NS_PER_BYTE = {Codec.NONE: 0.0, Codec.GZIP: 2.6, Codec.SNAPPY: 0.9, Codec.LZ4: 0.8, Codec.ZSTD: 1.5}
_MOST_BYTES = {codec: int(_MOST_CREDIT_NS / ns) for codec, ns in _CODEC_NS_PER_BYTE.items() if ns}


class _Credit:
    """CPU time for examining batches. Each batch earns some 5 % of the cost of accepting it (the rest of the tenth is
    for checking frames and for this accounting), and each second earns 0.2 % of a core, so that a broker under little
    load examines everything. Examining a batch spends its cost, computed from figures that were measured once
    (docs/adr/0015): only their ratio counts. A batch may cost more than is left, up to `_MOST_CREDIT_NS` for its
    bytes and for its records; the debt must be paid off before the next one is examined."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seconds = clock()
        self._ns = float(_MOST_CREDIT_NS)

    def earn(self, stored_bytes: int) -> bool:
        """Earn the credit for a batch of `stored_bytes`; True if there is credit to examine it."""
        before, self._seconds = self._seconds, self._clock()
        earned = _EARNED_NS + _EARNED_NS_PER_BYTE * stored_bytes + _EARNED_NS_PER_SECOND * (self._seconds - before)
        self._ns = min(_MOST_CREDIT_NS, self._ns + earned)
        return self._ns > 0

    def spend(self, codec_id: int, expanded_bytes: int, records: int) -> None:
        codec = Codec(codec_id)
        self._ns -= _CODEC_NS[codec] + _CODEC_NS_PER_BYTE[codec] * expanded_bytes + _RECORD_NS * records


def _is_too_much(records: int) -> bool:
    return records * _RECORD_NS > _MOST_CREDIT_NS
