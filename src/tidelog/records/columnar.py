"""Record batches to Arrow columns and back: the fast path to many records (extra `columnar`).

Reading: `decode_columns` takes batches as stored in a segment or sent in a fetch reply and returns Arrow batches of
bounded size. Writing: `ColumnEncoder` takes Arrow columns and returns batches that are ready to send;
`murmur2_partitions` returns the partitions to which the Java client would send them. The columns are those of Spark's
Kafka source:

    key            binary
    value          binary
    headers        list<struct<key: string, value: binary>>   null if the record has none
    offset         int64
    timestamp      timestamp[us, UTC]                         clamped to what microseconds can hold
    timestampType  int32                                      0 CreateTime, 1 LogAppendTime

All records of a batch with LogAppendTime have the batch's max timestamp. The kernels check everything they read, and
accept and refuse exactly the same bytes as the slow path (`batch.iterate`, `record.decode`). Python code runs once
for each batch, to call the native CRC and decompression, and never for a record.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias, cast

from tidelog.errors import CorruptBatch, InvalidInput, InvalidRecord, InvalidTimestamp, MissingExtra, RecordTooLarge
from tidelog.model import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
)
from tidelog.records.batch import (
    COMPRESSION_MASK,
    CRC_START,
    HEADER_SIZE,
    MIN_RECORD_SIZE,
    TRANSACTIONAL_BIT,
    ReadBuffer,
    assemble,
)
from tidelog.records.compression import DEFAULT_LIMIT, Codec, compress, decompress
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder

try:
    import numpy as np
    import pyarrow as pa

    from tidelog.records import kernels
except ImportError as error:
    raise MissingExtra('Arrow columns need an extra: run pip install "tidelog[columnar]"') from error

Array: TypeAlias = kernels.Array

_BINARY = pa.large_binary()
_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_INT32_MAX = 2**31 - 1
_SEQUENCE_MASK = 0x7FFF_FFFF

COLUMN_TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.field("element", _HEADER)),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
}
COLUMNS = tuple(COLUMN_TYPES)
DEFAULT_MAX_ROWS = 65_536
DEFAULT_MAX_BYTES = 32 << 20
DEFAULT_BATCH_BYTES = 1_000_000  # below 1 MiB, the default of max.message.bytes


def schema(columns: Sequence[str] = COLUMNS) -> pa.Schema:
    """The schema that `decode_columns` returns for these columns, in this order; every field is nullable, as in
    Spark."""
    if not columns or not set(columns) <= set(COLUMNS) or len(set(columns)) < len(columns):
        raise InvalidInput(f"columns must be some of {', '.join(COLUMNS)}, once each; not {list(columns)}")
    return pa.schema([(name, COLUMN_TYPES[name]) for name in columns])


def decode_columns(
    buffer: ReadBuffer,
    *,
    columns: Sequence[str] = COLUMNS,
    start_offset: Offset | None = None,
    end_offset: Offset | None = None,
    include_control: bool = False,
    verify_crc: bool = True,
    limit: int = DEFAULT_LIMIT,
    max_rows: int = DEFAULT_MAX_ROWS,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The records of the consecutive batches in `buffer` (bytes, memoryview, mmap) as Arrow batches.

    Records from `start_offset` on and below `end_offset` are kept. A log's offsets increase, so reading ends at the
    first batch at or beyond `end_offset`; the bytes after it are not read. Control batches are left out unless
    requested, but their CRC is checked too.

    An Arrow batch has one to `max_rows` rows and ends at a record batch's end, except that a record batch with more
    rows is cut into several. It holds records of at most `max_bytes` bytes, or of one record batch if that has more.
    `limit` bounds the decompressed size of one record batch. CorruptBatch is raised at the bad batch or up to an
    Arrow batch before it; the Arrow batches returned until then are good. The results hold no reference to `buffer`.
    """
    fields = schema(columns)
    if max_rows < 1 or max_bytes < 1:
        raise InvalidInput(f"an Arrow batch of {max_rows} rows and {max_bytes} bytes cannot hold a record")
    lowest = kernels.INT64_MIN if start_offset is None else start_offset
    highest = kernels.INT64_MAX if end_offset is None else end_offset
    return _decode(
        memoryview(buffer).cast("B"),
        fields,
        (lowest, highest),
        include_control,
        verify_crc,
        min(limit, _INT32_MAX),  # Arrow's binary columns count their bytes in 32 bits
        max_rows,
        min(max_bytes, _INT32_MAX),
    )


def latest_rows(
    buffer: ReadBuffer, start_offset: Offset
) -> tuple[list[bytes], list[bytes | None], list[Offset], list[TimestampMs]]:
    """Keys, values, offsets and timestamps (ms) of the last record of each key; records without a key are left
    out."""
    chunks = list(decode_columns(buffer, columns=("key", "value", "offset", "timestamp"), start_offset=start_offset))
    if not chunks:
        return [], [], [], []
    table = pa.Table.from_batches(chunks)
    keys = table["key"].to_pylist()
    last = dict(zip(keys, range(len(keys)), strict=True))
    last.pop(None, None)
    rows = table.select(["value", "offset", "timestamp"]).take(pa.array(last.values(), pa.int64()))
    timestamps = rows["timestamp"].cast(pa.int64()).to_numpy() // 1000
    return list(last), rows["value"].to_pylist(), rows["offset"].to_pylist(), timestamps.tolist()


def warm_up() -> None:
    """Run each kernel for reading once, so that none has to be compiled while a caller waits."""
    builder = BatchBuilder()
    builder.append(b"value", key=b"key", timestamp=0)
    latest_rows(builder.build(), 0)


def is_compiled() -> bool:
    """True if the kernels are compiled already, so that `warm_up` does not take seconds."""
    return kernels.is_compiled(kernels.decode_records)


def _decode(
    view: memoryview,
    fields: pa.Schema,
    offsets: tuple[Offset, Offset],
    include_control: bool,
    verify_crc: bool,
    limit: int,
    max_rows: int,
    max_bytes: int,
) -> Iterator[pa.RecordBatch]:
    source = _readonly(view, np.uint8)
    table = np.empty(min(max_rows, source.size // HEADER_SIZE + 1), kernels.PLAN)
    position = 0
    while position < source.size:
        batches, position, status = kernels.walk(
            source, position, *offsets, include_control, max_rows, max_bytes, table
        )
        plan = table[:batches]
        if verify_crc:
            _check_crc(view, plan)
        for records, piece in _expand(view, source, plan[plan["wanted"]], limit, max_bytes):
            chunk = _to_arrow(records, piece, offsets, fields)
            for start in range(0, chunk.num_rows, max_rows):
                yield chunk.slice(start, max_rows)
        if status:
            raise _corrupt(status, position)


def _corrupt(status: int, position: int) -> CorruptBatch:
    return CorruptBatch(f"{kernels.REFUSALS[status]}, in the batch at position {position}")


def _check_crc(view: memoryview, plan: Array) -> None:
    starts, ends, stored = (plan["position"] + CRC_START).tolist(), plan["end"].tolist(), plan["crc"].tolist()
    for start, end, expected in zip(starts, ends, stored, strict=True):
        actual = crc32c(view[start:end])
        if actual != expected:
            raise CorruptBatch(
                f"CRC mismatch at position {start - CRC_START}: stored {expected:#010x}, computed {actual:#010x}"
            )


def _expand(
    view: memoryview, source: Array, plan: Array, limit: int, max_bytes: int
) -> Iterator[tuple[Array, Array]]:
    """The planned batches decompressed: pieces of at most `max_bytes` with the plan of each. Batches that are not
    compressed are not copied, unless they are mixed with compressed ones."""
    codecs = plan["attributes"] & COMPRESSION_MASK
    if not codecs.any():
        if (plan["end"] - plan["start"]).max(initial=0) > limit:
            raise CorruptBatch(f"a batch has more than the limit of {limit} bytes")
        yield source, plan
        return
    parts: list[ReadBuffer] = []
    size = first = 0
    spans = zip(codecs.tolist(), plan["start"].tolist(), plan["end"].tolist(), strict=True)
    for index, (codec, start, end) in enumerate(spans):
        part = decompress(codec, view[start:end], limit)
        if parts and size + len(part) > max_bytes:
            yield _join(parts, plan[first:index])
            parts, size, first = [], 0, index
        parts.append(part)
        size += len(part)
    yield _join(parts, plan[first:])


def _join(parts: list[ReadBuffer], plan: Array) -> tuple[Array, Array]:
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    plan["end"] = np.cumsum(sizes)
    plan["start"] = plan["end"] - sizes
    return _readonly(b"".join(parts), np.uint8), plan


def _to_arrow(source: Array, plan: Array, offsets: tuple[Offset, Offset], fields: pa.Schema) -> pa.RecordBatch:
    sizes = plan["end"] - plan["start"]
    # Check before anything is allocated: a count must not be larger than the number of records the bytes can hold.
    false_counts = np.flatnonzero(plan["count"] > sizes // MIN_RECORD_SIZE)
    if false_counts.size:
        raise _corrupt(kernels.BAD_COUNT, plan["position"][false_counts[0]])
    rows, size = int(plan["count"].sum()), int(sizes.sum())
    out = _columns_out(fields.names, rows, size)
    found = _run(source, plan, offsets, out)

    def build(name: str) -> pa.Array:
        match name:
            case "key":
                return _binary_array(pa.binary(), found.rows, out.key)
            case "value":
                return _binary_array(pa.binary(), found.rows, out.value)
            case "headers":
                return _decode_headers(source, plan, offsets, found, rows)
            case "offset":
                numbers = out.offset
            case "timestamp":
                numbers = out.timestamp_us
            case _:
                numbers = out.timestamp_type
        return pa.Array.from_buffers(COLUMN_TYPES[name], found.rows, [None, _arrow_buffer(numbers, found.rows)])

    return pa.RecordBatch.from_arrays([build(name) for name in fields.names], schema=fields)


def _decode_headers(
    source: Array, plan: Array, offsets: tuple[Offset, Offset], found: kernels.Decoded, rows: int
) -> pa.Array:
    """Headers are rare: if there are any, a second run fills arrays of the size that the first run counted."""
    kind = COLUMN_TYPES["headers"]
    if not found.headers:
        return pa.nulls(found.rows, kind)
    out = _columns_out((), 0, 0)._replace(
        header_offsets=np.zeros(rows + 1, np.int32),
        header_lists=_all_valid(rows),
        header_key=_binary_out(found.headers, found.header_key_bytes),
        header_value=_binary_out(found.headers, found.header_value_bytes),
    )
    if _run(source, plan, offsets, out) != found:
        raise _corrupt(kernels.CHANGED, int(plan["position"][0]))
    keys = _binary_array(pa.string(), found.headers, out.header_key)
    values = _binary_array(pa.binary(), found.headers, out.header_value)
    structs = pa.StructArray.from_arrays([keys, values], fields=list(_HEADER))
    lists = [_validity_buffer(out.header_lists, found.rows), _arrow_buffer(out.header_offsets, found.rows + 1)]
    return pa.Array.from_buffers(kind, found.rows, lists, children=[structs])


def _run(source: Array, plan: Array, offsets: tuple[Offset, Offset], out: kernels.ColumnsOut) -> kernels.Decoded:
    found = kernels.decode_records(source, plan, *offsets, out)
    if found.status:
        raise _corrupt(found.status, int(plan["position"][found.batch]))
    return found


def _columns_out(wanted: Sequence[str], rows: int, size: int) -> kernels.ColumnsOut:
    """Arrays for the wanted columns except the headers."""

    def numbers(name: str, dtype: type[np.generic]) -> Array:
        return _room(rows if name in wanted else 0, dtype)

    unwanted = _binary_out(-1, 0)
    return kernels.ColumnsOut(
        key=_binary_out(rows, size) if "key" in wanted else unwanted,
        value=_binary_out(rows, size) if "value" in wanted else unwanted,
        offset=numbers("offset", np.int64),
        timestamp_us=numbers("timestamp", np.int64),
        timestamp_type=numbers("timestampType", np.int32),
        header_offsets=_room(0, np.int32),
        header_lists=_all_valid(0),
        header_key=unwanted,
        header_value=unwanted,
    )


def _binary_out(rows: int, size: int) -> kernels.BinaryOut:
    offsets = _room(rows + 1, np.int32)
    offsets[:1] = 0
    return kernels.BinaryOut(offsets, _room(size, np.uint8), _all_valid(max(rows, 0)))


def _room(items: int, dtype: type[np.generic]) -> Array:
    """An uninitialised array from Arrow's memory pool, which reuses the pages of one chunk for the next. `malloc`
    would return them to the system, and faulting them in again can halve the speed."""
    return np.frombuffer(pa.allocate_buffer(items * np.dtype(dtype).itemsize), dtype)


def _all_valid(rows: int) -> Array:
    return np.full((rows + 7) // 8, 0xFF, np.uint8)


def _binary_array(kind: pa.DataType, rows: int, column: kernels.BinaryOut) -> pa.Array:
    return pa.Array.from_buffers(
        kind,
        rows,
        [
            _validity_buffer(column.validity, rows),
            _arrow_buffer(column.offsets, rows + 1),
            _arrow_buffer(column.data, int(column.offsets[rows])),
        ],
    )


def _validity_buffer(validity: Array, rows: int) -> pa.Buffer | None:
    used = validity[: (rows + 7) // 8]
    return None if (used == 0xFF).all() else _arrow_buffer(validity, used.size)


def _arrow_buffer(array: Array, used: int) -> pa.Buffer:
    """The first `used` items. Arrays are sized for the worst case; if one is mostly empty, its items are copied so
    that it is freed."""
    part = array[:used]
    return pa.py_buffer(part if 2 * used >= array.size else part.copy())


def _readonly(buffer: ReadBuffer | pa.Buffer, dtype: type[np.generic]) -> Array:
    """A read-only array, even of a writable buffer: so each kernel is compiled for one type only."""
    array = np.frombuffer(buffer, dtype)
    array.flags.writeable = False
    return array


class ColumnEncoder:
    """Prepares Arrow columns to be encoded as record batches: any selection of rows, any number of times.

    Uses the columns named key, value (binary or string), headers (list<struct<key, value>>) and timestamp (a
    timestamp, or int64 milliseconds), all optional, and ignores others. A row without a timestamp gets `now_ms`.
    """

    def __init__(self, columns: pa.RecordBatch, *, now_ms: TimestampMs) -> None:
        self._row_count: int = columns.num_rows
        counts, starts, header_keys, header_values = self._headers(columns)
        self._columns = kernels.ColumnsIn(
            key=self._binary(columns, "key"),
            value=self._binary(columns, "value"),
            timestamp_ms=self._timestamps(columns, now_ms),
            header_starts=starts,
            header_counts=counts,
            header_key=header_keys,
            header_value=header_values,
        )

    def batches(
        self,
        rows: Array | None = None,
        *,
        codec: Codec = Codec.NONE,
        max_bytes: int = DEFAULT_BATCH_BYTES,
        max_records: int = _INT32_MAX,
        producer_id: ProducerId = NO_PRODUCER_ID,
        producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
    ) -> Iterator[bytearray]:
        """These rows in this order (default: all rows) as whole batches with CRC, ready to be sent or appended.

        A batch has at most `max_records` records and, before compression, at most `max_bytes` bytes; if a single
        record does not fit, raises RecordTooLarge. Sequence numbers continue from batch to batch, and wrap to 0 after
        2**31 - 1.
        """
        if max_records < 1 or max_bytes <= HEADER_SIZE:
            raise InvalidInput(f"a batch of {max_records} records and {max_bytes} bytes cannot hold a record")
        chosen = np.arange(self._row_count) if rows is None else np.array(rows, np.int64)
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < self._row_count):
            raise InvalidInput(f"rows must be 0 to {self._row_count - 1}")
        attributes = codec | (TRANSACTIONAL_BIT if transactional else 0)
        return self._encode(chosen, attributes, max_bytes, max_records, producer_id, producer_epoch, base_sequence)

    def _encode(
        self,
        rows: Array,
        attributes: int,
        max_bytes: int,
        max_records: int,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        sequence: int,
    ) -> Iterator[bytearray]:
        codec = Codec(attributes & COMPRESSION_MASK)
        scratch = np.empty(max_bytes - HEADER_SIZE, np.uint8)
        records = memoryview(scratch)  # type: ignore[arg-type]
        first = 0
        while first < rows.size:
            count, size, max_timestamp, status = kernels.encode_records(
                self._columns, rows, first, max_records, scratch
            )
            if status:
                problem = f"row {rows[first + count]}: {kernels.REFUSALS[status]}"
                raise (RecordTooLarge if status == kernels.RECORD_TOO_LARGE else InvalidRecord)(problem)
            yield assemble(
                compress(codec, records[:size]),
                attributes=attributes,
                record_count=count,
                base_timestamp=int(self._columns.timestamp_ms[rows[first]]),
                max_timestamp=max_timestamp,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=sequence,
            )
            first += count
            if sequence >= 0:
                sequence = (sequence + count) & _SEQUENCE_MASK

    def _binary(self, columns: pa.RecordBatch, name: str) -> kernels.BinaryIn:
        if name in columns.schema.names:
            return _binary_in(columns.column(name))
        return _binary_in(pa.nulls(self._row_count, _BINARY))

    def _timestamps(self, columns: pa.RecordBatch, now_ms: TimestampMs) -> Array:
        if "timestamp" not in columns.schema.names:
            return np.full(self._row_count, now_ms, np.int64)
        column = columns.column("timestamp")
        units_per_ms = 1
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
            units_per_ms = 1000
        elif not pa.types.is_int64(column.type):
            raise InvalidInput(f"the timestamp column must be a timestamp or int64, not {column.type}")
        numbers = column.cast(pa.int64()).fill_null(now_ms * units_per_ms).to_numpy(zero_copy_only=False)
        milliseconds = np.floor_divide(numbers, units_per_ms)
        if milliseconds.size and int(milliseconds.max()) - int(milliseconds.min()) > kernels.INT64_MAX:
            raise InvalidTimestamp("the timestamps are further apart than 64 bits can hold")
        return cast("Array", milliseconds)

    def _headers(self, columns: pa.RecordBatch) -> tuple[Array, Array, kernels.BinaryIn, kernels.BinaryIn]:
        if "headers" not in columns.schema.names or columns.column("headers").null_count == self._row_count:
            nothing = _binary_in(pa.nulls(0, _BINARY))
            return np.zeros(self._row_count, np.int64), np.zeros(self._row_count, np.int64), nothing, nothing
        column = columns.column("headers")
        kind = column.type
        if not (
            pa.types.is_list(kind)
            and pa.types.is_struct(kind.value_type)
            and [field.name for field in kind.value_type] == ["key", "value"]
        ):
            raise InvalidInput(f"the headers column must be list<struct<key, value>>, not {kind}")
        offsets = column.offsets.to_numpy().astype(np.int64)
        counts = np.diff(offsets)
        if column.null_count:
            counts[column.is_null().to_numpy(zero_copy_only=False)] = 0
        keys, values = column.values.flatten()
        return counts, offsets[:-1], _binary_in(keys), _binary_in(values)


def murmur2_partitions(keys: pa.Array, partition_count: int) -> Array:
    """The partition to which the Java client sends each key, as int32; -1 for a null key, which may go to any."""
    if partition_count < 1:
        raise InvalidInput(f"there are no partitions to choose from: {partition_count}")
    partitions = np.empty(len(keys), np.int32)
    kernels.murmur2_partitions(_binary_in(keys), partition_count, partitions)
    return partitions


def _binary_in(column: pa.Array) -> kernels.BinaryIn:
    column = column.cast(_BINARY)
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = _readonly(offsets_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    lengths = np.diff(offsets)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return kernels.BinaryIn(offsets[:-1], lengths, _readonly(data_buffer or b"", np.uint8))
