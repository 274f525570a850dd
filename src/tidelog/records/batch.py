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

Positions in this module are positions in the caller's buffer. Nothing here copies a batch or decodes single records:
for that there are `record` (slow, Python objects) and `columnar` (fast, Arrow).
"""

from collections.abc import Iterator
from struct import Struct, calcsize
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
# The positions of the fields in a batch. Code that reads or writes a single field uses these; for several fields at
# once use `header_struct`.
BASE_OFFSET_AT, LENGTH_AT, LEADER_EPOCH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT = 0, 8, 12, 16, 17, 21
LAST_OFFSET_DELTA_AT, BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT = 23, 27, 35
PRODUCER_ID_AT, PRODUCER_EPOCH_AT, BASE_SEQUENCE_AT, RECORD_COUNT_AT = 43, 51, 53, 57
LENGTH_END = LEADER_EPOCH_AT  # the batch length counts the bytes after this position
CRC_START = ATTRIBUTES_AT  # the CRC covers the bytes from here on
MIN_LENGTH = HEADER_SIZE - LENGTH_END
MIN_RECORD_SIZE = 7  # one byte each for length, attributes, two deltas, two field lengths and the header count

_LENGTH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")

COMPRESSION_MASK = 0b111
TIMESTAMP_TYPE_BIT = 1 << 3
TRANSACTIONAL_BIT = 1 << 4
CONTROL_BIT = 1 << 5
DELETE_HORIZON_BIT = 1 << 6
KNOWN_ATTRIBUTES = 0b111_1111
HIGHEST_CODEC = 4
_new_header = tuple.__new__  # as `_make`, but does not check the number of fields, which the struct guarantees
_UNUSUAL_ATTRIBUTES = ~(COMPRESSION_MASK | TIMESTAMP_TYPE_BIT)


class BatchHeader(NamedTuple):
    """The fields of the 61 header bytes; derived numbers are properties."""

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


def header_struct(*fields: str) -> Struct:
    """A struct that unpacks only these fields of `BatchHeader`, in its order, at the start of a batch."""
    unknown = set(fields) - set(BatchHeader._fields)
    assert not unknown, f"no fields of a header: {unknown}"
    codes = zip(BatchHeader._fields, HEADER.format.removeprefix(">"), strict=True)
    parts = [code if name in fields else f"{calcsize('>' + code)}x" for name, code in codes]
    while parts[-1].endswith("x"):
        parts.pop()
    return Struct(">" + "".join(parts))


_PLACE = header_struct("base_offset", "length", "leader_epoch")


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
    """The header at `position`. CorruptBatch if it is not a header, or if the buffer does not hold the whole
    batch."""
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


def check_crc(buffer: memoryview, position: int, header: BatchHeader) -> None:
    actual = crc32c(buffer[position + CRC_START : position + header.length + LENGTH_END])
    if actual != header.crc:
        raise CorruptBatch(f"CRC mismatch at position {position}: stored {header.crc:#010x}, computed {actual:#010x}")


def check_integrity(buffer: memoryview, position: int, header: BatchHeader) -> None:
    """Check the CRC and the conditions that every stored batch meets, also one from which compaction removed
    records."""
    check_crc(buffer, position, header)
    _check_numbers(position, header)


def _check_numbers(position: int, header: BatchHeader) -> None:
    if header.last_offset_delta < 0 or not 0 <= header.record_count <= header.last_offset_delta + 1:
        raise CorruptBatch(
            f"{header.record_count} records with last offset delta {header.last_offset_delta} at position {position}"
        )
    if header.attributes & COMPRESSION_MASK > HIGHEST_CODEC:
        raise CorruptBatch(f"unknown compression codec {header.codec_id} at position {position}")


def check_produced(header: BatchHeader) -> None:
    """Check the further conditions for a batch that is appended to the log: it must be as a producer makes it, not as
    compaction does."""
    if header.record_count != header.last_offset_delta + 1:
        raise InvalidRecord(
            f"the batch claims {header.record_count} records but its last offset delta is {header.last_offset_delta}"
        )
    if header.record_count < 1:
        raise InvalidRecord("the batch holds no records")
    if not header.codec_id and header.record_count * MIN_RECORD_SIZE > header.length - MIN_LENGTH:
        raise InvalidRecord(f"{header.length - MIN_LENGTH} bytes cannot hold {header.record_count} records")
    if header.attributes & ~KNOWN_ATTRIBUTES:
        raise InvalidRecord(f"unknown attribute bits in {header.attributes:#06x}")
    if header.attributes & DELETE_HORIZON_BIT:
        raise InvalidRecord("the batch has a delete horizon, which only compaction may set")
    if header.producer_id >= 0:
        if header.producer_epoch < 0:
            raise InvalidRecord(f"the batch has producer id {header.producer_id} without a producer epoch")
        if header.base_sequence < 0 and not header.attributes & CONTROL_BIT:
            raise InvalidRecord(f"the batch has producer id {header.producer_id} without a sequence number")
    elif header.attributes & TRANSACTIONAL_BIT:
        raise InvalidRecord("the batch is transactional, but has no producer id")


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
    """A whole batch of records that are already encoded, and compressed as `attributes` say. The caller owns it."""
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
    set_crc(memoryview(batch))
    return batch


def reassemble(header: BatchHeader, payload: ReadBuffer) -> bytearray:
    """A batch with this header and other records; length and CRC are computed again."""
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(batch, 0, *header._replace(length=MIN_LENGTH + len(payload)))
    batch += payload
    set_crc(memoryview(batch))
    return batch


def set_crc(batch: memoryview) -> None:
    """Set the CRC of a whole batch in place."""
    _CRC.pack_into(batch, CRC_AT, crc32c(batch[CRC_START:]))


def read_produced(buffer: memoryview, position: int) -> BatchHeader:
    """`read_header`, `check_crc`, `check_produced` and the rest of `check_integrity` in one. The fast path accepts
    batches of the usual form; for all others those functions are called, which accept the batch or raise the
    error."""
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
            and (attributes & COMPRESSION_MASK or count * MIN_RECORD_SIZE <= length - MIN_LENGTH)
            and (producer_id < 0 or (producer_epoch >= 0 and sequence >= 0))
        ):
            return _new_header(BatchHeader, fields)
    header = read_header(buffer, position)
    check_crc(buffer, position, header)
    check_produced(header)  # before `_check_numbers`: if the CRC is correct, the producer sent these numbers
    _check_numbers(position, header)
    return header


def iterate(buffer: ReadBuffer, *, verify: bool = True) -> Iterator[BatchView]:
    """The consecutive batches in `buffer`; raises CorruptBatch at the first that is not whole."""
    view = memoryview(buffer)
    position = 0
    while position < len(view):
        header = read_header(view, position)
        if verify:
            check_integrity(view, position, header)
        end = position + header.size
        yield BatchView(position, header, view[position:end])
        position = end


def size_at(buffer: ReadBuffer, position: int) -> int:
    """The size of the batch at `position` according to its length field, unchecked: it may be any number."""
    size: int = _LENGTH.unpack_from(buffer, position + LENGTH_AT)[0]
    return size + LENGTH_END


def whole_prefix(records: memoryview) -> tuple[memoryview, int]:
    """The records without an incomplete batch at the end, and the position of the last whole batch; -1: none."""
    end, last = 0, -1
    while end + LENGTH_END <= len(records):
        size: int = _LENGTH.unpack_from(records, end + LENGTH_AT)[0] + LENGTH_END
        if size < LENGTH_END:
            return records, end  # not a valid length: decoding the batch will raise the error
        if end + size > len(records):
            break
        last = end
        end += size
    return records[:end], last


def place(buffer: WriteBuffer, position: int, header: BatchHeader, base_offset: Offset, epoch: LeaderEpoch) -> None:
    """Write the two fields outside the CRC in place: the base offset and the leader epoch."""
    _PLACE.pack_into(buffer, position, base_offset, header.length, epoch)


def set_max_timestamp(
    buffer: WriteBuffer, position: int, header: BatchHeader, max_timestamp: TimestampMs
) -> BatchHeader:
    """Correct the max timestamp in place. The CRC is computed again, so check it first."""
    _MAX_TIMESTAMP.pack_into(buffer, position + MAX_TIMESTAMP_AT, max_timestamp)
    crc = crc32c(memoryview(buffer)[position + CRC_START : position + header.size])
    _CRC.pack_into(buffer, position + CRC_AT, crc)
    return header._replace(max_timestamp=max_timestamp, crc=crc)


def stamp_append_time(buffer: WriteBuffer, position: int, header: BatchHeader, now_ms: TimestampMs) -> BatchHeader:
    """Turn the batch into one with LogAppendTime in place, without touching its records: readers of such a batch
    take the max timestamp for every record. The CRC is computed again."""
    attributes = header.attributes | TIMESTAMP_TYPE_BIT
    _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_AT, attributes)
    return set_max_timestamp(buffer, position, header._replace(attributes=attributes), now_ms)
