"""Single records: the slow path, for the command line, REST, and tests. Hot paths do not use it.

    length varint | attributes int8 | timestamp delta varlong | offset delta varint
    | key length varint, key | value length varint, value | header count varint
    | per header: key length varint, key (UTF-8), value length varint, value

Varints are zig-zag, like protobuf's sint; a length of -1 is null. A batch being built is a `BatchBuilder`; a stored
one is a `BatchView`.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import NamedTuple, TypeAlias

from tidelog.errors import CorruptBatch, InvalidRecord
from tidelog.model import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TimestampType,
)
from tidelog.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER_SIZE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    BatchView,
    ReadBuffer,
    assemble,
)
from tidelog.records.compression import DEFAULT_LIMIT, Codec, compress, decompress

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

_CONTROL_KEY = Struct(">hh")
_CONTROL_VALUE = Struct(">hi")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
ABORT_MARKER = 0
COMMIT_MARKER = 1


class Record(NamedTuple):
    offset: Offset
    timestamp: TimestampMs
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class ControlRecord(NamedTuple):
    """The end of a transaction."""

    version: int
    type: int
    coordinator_epoch: int

    @property
    def name(self) -> str:
        return {ABORT_MARKER: "abort", COMMIT_MARKER: "commit"}.get(self.type, f"control type {self.type}")


class BatchBuilder:
    """Collects records and builds one batch of them. `size` is an upper bound of the uncompressed batch's size."""

    def __init__(
        self,
        codec: Codec = Codec.NONE,
        *,
        base_offset: Offset = 0,
        leader_epoch: LeaderEpoch = NO_LEADER_EPOCH,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        producer_id: ProducerId = NO_PRODUCER_ID,
        producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
    ) -> None:
        self._codec = codec
        self._base_offset = base_offset
        self._leader_epoch = leader_epoch
        self._attributes = (
            codec
            | timestamp_type << 3
            | (TRANSACTIONAL_BIT if transactional else 0)
            | (CONTROL_BIT if control else 0)
        )
        self._producer = (producer_id, producer_epoch, base_sequence)
        self._records = bytearray()
        self._count = 0
        self._base_timestamp: TimestampMs = 0
        self._max_timestamp: TimestampMs = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        return HEADER_SIZE + len(self._records)

    def append(
        self,
        value: bytes | None,
        *,
        key: bytes | None = None,
        timestamp: TimestampMs,
        headers: Headers = (),
    ) -> None:
        count = self._count
        if count == 0:
            self._base_timestamp = self._max_timestamp = timestamp
        elif timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        record = Record(count, timestamp, key, value, headers)
        encode_record(self._records, record, timestamp - self._base_timestamp, count)
        self._count = count + 1

    def build(self) -> bytearray:
        """The whole batch. The caller owns the buffer; the log writes offsets into it."""
        if not self._count:
            raise InvalidRecord("a batch needs at least one record")
        producer_id, producer_epoch, base_sequence = self._producer
        return assemble(
            compress(self._codec, self._records),
            attributes=self._attributes,
            record_count=self._count,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            base_offset=self._base_offset,
            leader_epoch=self._leader_epoch,
        )


def encode_record(out: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    """Add one record to the payload of a batch."""
    body = bytearray(1)  # attributes, unused
    _put_varint(body, timestamp_delta)
    _put_varint(body, offset_delta)
    _put_bytes(body, record.key)
    _put_bytes(body, record.value)
    _put_varint(body, len(record.headers))
    for name, content in record.headers:
        _put_bytes(body, name.encode())
        _put_bytes(body, content)
    _put_varint(out, len(body))
    out += body


def build_batch(
    records: Iterable[tuple[TimestampMs, bytes | None, bytes | None, Headers]], codec: Codec = Codec.NONE
) -> bytearray:
    """A batch of (timestamp, key, value, headers) without a producer."""
    builder = BatchBuilder(codec)
    for timestamp, key, value, headers in records:
        builder.append(value, key=key, timestamp=timestamp, headers=headers)
    return builder.build()


def recompressed(header: BatchHeader, records: ReadBuffer, codec: Codec, level: int | None = None) -> bytearray:
    """The batch of this header with its decompressed `records` compressed by another codec. The records are not
    decoded."""
    return assemble(
        compress(codec, records, level),
        attributes=header.attributes & ~COMPRESSION_MASK | codec,
        record_count=header.record_count,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
    )


def build_marker(
    *,
    committed: bool,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    coordinator_epoch: int,
    timestamp: TimestampMs,
) -> bytearray:
    """The control batch that ends a transaction."""
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True)
    builder.append(
        _CONTROL_VALUE.pack(0, coordinator_epoch),
        key=_CONTROL_KEY.pack(0, COMMIT_MARKER if committed else ABORT_MARKER),
        timestamp=timestamp,
    )
    return builder.build()


def read_marker(batch: BatchView) -> ControlRecord:
    records = decode(batch)
    if len(records) != 1:
        raise CorruptBatch(f"the control batch at offset {batch.header.base_offset} holds {len(records)} records")
    record = records[0]
    try:
        version, kind = _CONTROL_KEY.unpack_from(record.key or b"")
        _, coordinator_epoch = _CONTROL_VALUE.unpack_from(record.value or b"")
    except StructError:
        raise CorruptBatch(f"the control record at offset {record.offset} is too short") from None
    return ControlRecord(version, kind, coordinator_epoch)


def decode(batch: BatchView, limit: int = DEFAULT_LIMIT) -> list[Record]:
    """Every record of the batch. CorruptBatch if anything is cut off, out of bounds or left over, or if a count is
    wrong."""
    header = batch.header
    data = bytes(decompress(header.codec_id, batch.payload, limit))
    size = len(data)
    if header.record_count > size:  # each record takes several bytes: check before allocating for a false count
        raise CorruptBatch(f"{size} bytes cannot hold {header.record_count} records")
    if header.next_offset > _INT64_MAX:
        raise CorruptBatch(f"the offsets from {header.base_offset} on do not fit in 64 bits")
    append_time = header.max_timestamp if header.timestamp_type else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    records: list[Record] = []
    position, last_delta = 0, -1
    try:
        for _ in range(header.record_count):
            length, position = _varint(data, position)
            end = position + length
            if length < 0 or end > size:
                raise CorruptBatch(f"record length {length} with {size - position} bytes left")
            timestamp_delta, position = _varint(data, position + 1)
            offset_delta, position = _varint(data, position)
            if not last_delta < offset_delta <= header.last_offset_delta:
                raise CorruptBatch(f"offset delta {offset_delta} after {last_delta}")
            last_delta = offset_delta
            key, position = _bytes(data, position, end)
            value, position = _bytes(data, position, end)
            count, position = _varint(data, position)
            headers: Headers = ()
            if count:
                headers, position = _headers(data, position, end, count)
            if position != end:
                raise CorruptBatch(f"a record ends {position - end} bytes past its length")
            timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
            if not _INT64_MIN <= timestamp <= _INT64_MAX:
                raise CorruptBatch(f"timestamp {timestamp} does not fit in 64 bits")
            records.append(Record(base_offset + offset_delta, timestamp, key, value, headers))
    except IndexError:
        raise CorruptBatch("a record is cut off at the end of the batch") from None
    except UnicodeDecodeError as error:
        raise CorruptBatch(f"a header's key is not UTF-8: {error.reason}") from None
    if position != size:
        raise CorruptBatch(f"{size - position} bytes are left over after the last record")
    return records


def _put_varint(out: bytearray, value: int) -> None:
    value = value << 1 if value >= 0 else (-value << 1) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_bytes(out: bytearray, content: bytes | None) -> None:
    if content is None:
        out.append(1)  # the varint of -1
    else:
        _put_varint(out, len(content))
        out += content


def _varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value = byte & 0x7F
    shift = 7
    while True:
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise CorruptBatch("a varint is longer than 10 bytes")
    if value > 0xFFFF_FFFF_FFFF_FFFF:
        raise CorruptBatch("a varint is larger than 64 bits")
    return (value >> 1) ^ -(value & 1), position + 1


def _bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = _varint(data, position)
    if length == -1:
        return None, position
    stop = position + length
    if length < -1 or stop > end:
        raise CorruptBatch(f"a field of length {length} with {end - position} bytes left in its record")
    return data[position:stop], stop


def _headers(data: bytes, position: int, end: int, count: int) -> tuple[Headers, int]:
    if not 0 <= count <= (end - position) // 2:  # a header takes at least two bytes
        raise CorruptBatch(f"{count} headers with {end - position} bytes left in their record")
    headers = []
    for _ in range(count):
        name, position = _bytes(data, position, end)
        if name is None:
            raise CorruptBatch("a header without a key")
        content, position = _bytes(data, position, end)
        headers.append((name.decode(), content))
    return headers, position
