"""The v2 record batch as bytes: its layout, its header, its checks, and the two fields a broker may write.

    offset  size  field
         0     8  base offset             outside the CRC: set by the log
         8     4  batch length            bytes after this field
        12     4  partition leader epoch  outside the CRC: set by the log
        16     1  magic                   2
        17     4  crc                     CRC32C of everything from 21 on
        21     2  attributes              compression 0-2, timestamp type 3, transactional 4, control 5,
                                          delete horizon 6
        23     4  last offset delta
        27     8  base timestamp
        35     8  max timestamp
        43     8  producer id
        51     2  producer epoch
        53     4  base sequence
        57     4  record count
        61     -  records, compressed as one block unless the codec is none

Positions in this module are positions in the caller's buffer. Nothing here copies a batch and nothing looks at a
single record: that is `record` (slow, Python objects) and `columnar` (fast, Arrow).
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

from tidelog.errors import CorruptBatch, InvalidRecord, RecordTooLarge
from tidelog.model import (
    NO_LEADER_EPOCH,
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TimestampType,
)
from tidelog.records.crc import crc32c

ReadBuffer: TypeAlias = bytes | bytearray | memoryview
WriteBuffer: TypeAlias = bytearray | memoryview

MAGIC = 2
HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LENGTH_END = 12  # the batch length counts the bytes after this position
CRC_START = 21  # the CRC covers the bytes from here on
MIN_LENGTH = HEADER_SIZE - LENGTH_END

_PLACE = Struct(">qii")  # base offset, length, leader epoch
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")
_CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 17, 21, 35

COMPRESSION_MASK = 0b111
TIMESTAMP_TYPE_BIT = 1 << 3
TRANSACTIONAL_BIT = 1 << 4
CONTROL_BIT = 1 << 5
DELETE_HORIZON_BIT = 1 << 6
KNOWN_ATTRIBUTES = 0b111_1111
HIGHEST_CODEC = 4
_new_header = tuple.__new__  # `_make` without the count of the fields, which the struct guarantees
_UNUSUAL_ATTRIBUTES = ~(COMPRESSION_MASK | TIMESTAMP_TYPE_BIT)


class BatchHeader(NamedTuple):
    """The 61 header bytes as they stand; derived numbers are properties."""

    base_offset: Offset
    length: int
    leader_epoch: LeaderEpoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: TimestampMs
    max_timestamp: TimestampMs
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.length + LENGTH_END

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec_id(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def last_sequence(self) -> int:
        """Sequence numbers wrap from 2**31 - 1 to 0."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF


class BatchView(NamedTuple):
    """One batch inside a larger buffer: its header and its bytes, neither copied."""

    position: int
    header: BatchHeader
    view: memoryview

    @property
    def payload(self) -> memoryview:
        """The records as stored, compressed if the codec says so."""
        return self.view[HEADER_SIZE:]


def read_header(buffer: ReadBuffer, position: int = 0) -> BatchHeader:
    """The header at `position`, refused if it cannot be one or if the batch is not whole in the buffer."""
    available = len(buffer) - position
    if available < HEADER_SIZE:
        raise CorruptBatch(f"truncated batch: {available} bytes at position {position}, a header has {HEADER_SIZE}")
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    if header.magic != MAGIC:
        raise CorruptBatch(
            f"magic {header.magic} at position {position}, only record batches of magic 2 are supported"
        )
    if header.length < MIN_LENGTH:
        raise CorruptBatch(
            f"batch length {header.length} at position {position} is below the minimum of {MIN_LENGTH}"
        )
    if header.length + LENGTH_END > available:
        raise CorruptBatch(
            f"truncated batch: {available} of {header.length + LENGTH_END} bytes at position {position}"
        )
    return header


def check_integrity(buffer: memoryview, position: int, header: BatchHeader) -> None:
    """CRC and the numbers that every stored batch satisfies, also one that compaction has thinned out."""
    end = position + header.length + LENGTH_END
    actual = crc32c(buffer[position + CRC_START : end])
    if actual != header.crc:
        raise CorruptBatch(f"CRC mismatch at position {position}: stored {header.crc:#010x}, computed {actual:#010x}")
    if header.last_offset_delta < 0 or not 0 <= header.record_count <= header.last_offset_delta + 1:
        raise CorruptBatch(
            f"{header.record_count} records with last offset delta {header.last_offset_delta} at position {position}"
        )
    if header.attributes & COMPRESSION_MASK > HIGHEST_CODEC:
        raise CorruptBatch(f"unknown compression codec {header.codec_id} at position {position}")


def check_produced(header: BatchHeader) -> None:
    """What a batch that enters the log must satisfy beyond integrity: as a producer, not a compactor, makes it."""
    if header.record_count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"the batch claims {header.record_count} records but its last offset delta is {header.last_offset_delta}"
        )
    if header.record_count < 1:
        raise InvalidRecord("the batch holds no records")
    if header.attributes & ~KNOWN_ATTRIBUTES:
        raise InvalidRecord(f"unknown attribute bits in {header.attributes:#06x}")
    if header.attributes & DELETE_HORIZON_BIT:
        raise InvalidRecord("only compaction gives a batch a delete horizon")
    if header.producer_id >= 0:
        if header.producer_epoch < 0:
            raise InvalidRecord(f"producer id {header.producer_id} without a producer epoch")
        if header.base_sequence < 0 and not header.attributes & CONTROL_BIT:
            raise InvalidRecord(f"producer id {header.producer_id} without a sequence number")
    elif header.attributes & TRANSACTIONAL_BIT:
        raise InvalidRecord("a transactional batch without a producer id")


def assemble(
    payload: ReadBuffer,
    *,
    attributes: int,
    record_count: int,
    base_timestamp: TimestampMs,
    max_timestamp: TimestampMs,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    base_sequence: int,
    base_offset: Offset = 0,
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH,
) -> bytearray:
    """A whole batch of records that are already encoded, and compressed as `attributes` say. It is the caller's."""
    length = MIN_LENGTH + len(payload)
    if length > 0x7FFF_FFFF:
        raise RecordTooLarge(f"a batch of {length} bytes is over the format's limit of 2 GiB")
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        length,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        record_count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    batch += payload
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CRC_START:]))
    return batch


def read_produced(buffer: memoryview, position: int) -> BatchHeader:
    """`read_header`, `check_integrity` and `check_produced` in one: the hot path accepts what is plainly right and
    leaves it to those three to say what is wrong, or to accept what is rare."""
    available = len(buffer) - position
    if available >= HEADER_SIZE:
        fields = HEADER.unpack_from(buffer, position)
        _, length, _, magic, crc, attributes, last_delta, _, _, producer_id, producer_epoch, sequence, count = fields
        if (
            magic == MAGIC
            and MIN_LENGTH <= length <= available - LENGTH_END
            and crc32c(buffer[position + CRC_START : position + LENGTH_END + length]) == crc
            and count == last_delta + 1 > 0
            and attributes & _UNUSUAL_ATTRIBUTES == 0
            and attributes & COMPRESSION_MASK <= HIGHEST_CODEC
            and (producer_id < 0 or (producer_epoch >= 0 and sequence >= 0))
        ):
            return _new_header(BatchHeader, fields)
    header = read_header(buffer, position)
    check_integrity(buffer, position, header)
    check_produced(header)
    return header


def iterate(buffer: ReadBuffer, *, verify: bool = True) -> Iterator[BatchView]:
    """The batches that stand one after another in `buffer`; raises CorruptBatch at the first that is not whole."""
    view = memoryview(buffer)
    position = 0
    while position < len(view):
        header = read_header(view, position)
        if verify:
            check_integrity(view, position, header)
        end = position + header.size
        yield BatchView(position, header, view[position:end])
        position = end


def place(buffer: WriteBuffer, position: int, header: BatchHeader, base_offset: Offset, epoch: LeaderEpoch) -> None:
    """Write the two fields outside the CRC in place: where the batch stands in the log and who put it there."""
    _PLACE.pack_into(buffer, position, base_offset, header.length, epoch)


def stamp_append_time(buffer: WriteBuffer, position: int, header: BatchHeader, now_ms: TimestampMs) -> BatchHeader:
    """Turn the batch into one with LogAppendTime in place, without touching its records: readers of such a batch
    take the max timestamp for every record. The CRC is computed anew."""
    attributes = header.attributes | TIMESTAMP_TYPE_BIT
    _ATTRIBUTES.pack_into(buffer, position + _ATTRIBUTES_AT, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, now_ms)
    crc = crc32c(memoryview(buffer)[position + CRC_START : position + header.size])
    _CRC.pack_into(buffer, position + _CRC_AT, crc)
    return header._replace(attributes=attributes, max_timestamp=now_ms, crc=crc)
