"""Reading in a task: turns one range of one partition into Arrow batches, in Spark's Python workers.

Record batches are read as they are stored: from the log's files or objects if the driver found that they can be read,
else from the broker. The kernels of `records.columnar` decode them. Python code runs once per chunk of megabytes.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tidelog.client import BrokerError, Client
from tidelog.client.errors import is_unknown_topic
from tidelog.client.options import FetchOptions
from tidelog.errors import CorruptBatch, TidelogError
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.records.batch import HEADER_SIZE, ReadBuffer, iterate
from tidelog.records.record import decode
from tidelog.spark.clients import shared_client
from tidelog.spark.columns import CORRUPT
from tidelog.spark.offsets import DataLoss, OffsetRange, data_loss, earliest
from tidelog.spark.options import ReadSettings
from tidelog.spark.values import Decoder, decoder_for
from tidelog.storage.direct import LogLeader
from tidelog.storage.log import AbortedTransaction, Located, StoredPiece
from tidelog.wire.error_codes import ErrorCode

_FROM_RECORDS = ("key", "value", "headers", "offset", "timestamp", "timestampType")
_MAX_ROWS = 32_768
_FEW_ROWS = 5_000
_KERNELS = "tidelog.records.kernels"
_MAX_MS = (2**63 - 1) // 1000


def read_range(settings: ReadSettings, schema: StructType, part: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The records of the range with the columns of the schema."""
    return _RangeRead(settings, schema, part).batches()


class _RangeRead:
    def __init__(self, settings: ReadSettings, schema: StructType, part: OffsetRange) -> None:
        self._settings = settings
        self._part = part
        self._client = shared_client(settings.bootstrap, settings.client)
        self._schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        wanted = {name: name for name in schema.names if name in _FROM_RECORDS}
        if CORRUPT in schema.names:
            wanted["value"] = "value"
        self._columns = list(wanted) or ["offset"]  # at least one column is needed to count the rows
        self._key: Decoder | None = decoder_for(schema, "key", settings)
        self._value: Decoder | None = decoder_for(schema, "value", settings)
        self._constants: dict[str, pa.Array] = {}
        self._position: Offset = part.start

    def batches(self) -> Iterator[pa.RecordBatch]:
        part = self._part
        if part.direct is not None:
            committed = self._settings.fetch.read_committed
            leader = _Leader(self._client, part)
            for stretch in part.direct.read(part.start, part.end, leader, committed=committed):
                try:
                    decoded = list(self._decode(stretch.records))
                except CorruptBatch:
                    break  # read the rest from the broker, which has the records or reports the damage
                yield from decoded
                self._position = stretch.end
        while self._position < part.end:
            try:
                yield from self._from_broker()
            except TidelogError as error:
                if not self._get_over(error):
                    return

    def _from_broker(self) -> Iterator[pa.RecordBatch]:
        part, settings = self._part, self._settings
        chunks = self._client.read_range(
            part.topic, part.partition, self._position, part.end, fetch=settings.fetch, topic_id=part.topic_id
        )
        for chunk in chunks:
            if chunk.next_offset == chunk.from_offset and chunk.readable_end < part.end:
                raise DataLoss(
                    f"{part.topic}-{part.partition} ends at offset {chunk.readable_end}, "
                    f"but the query reads up to {part.end}"
                )
            yield from self._decode(chunk.committed())
            self._position = part.end if chunk.next_offset == chunk.from_offset else chunk.next_offset

    def _get_over(self, error: TidelogError) -> bool:
        """After an error that means lost data: raises it, or returns whether there is more to read."""
        part = self._part
        gone = is_unknown_topic(error) or isinstance(error, DataLoss)
        moved = isinstance(error, BrokerError) and error.kafka_code == ErrorCode.OFFSET_OUT_OF_RANGE
        if not gone and not moved:
            raise error
        if self._settings.fail_on_data_loss:
            raise data_loss(str(error)) from error
        if gone:
            return False
        first = earliest(self._client, [TopicPartition(part.topic, part.partition)])
        position = max(self._position, *first.values(), 0) if first else part.end
        if position == self._position:
            return False  # beyond the end of the log
        self._position = position
        return True

    def _decode(self, records: ReadBuffer) -> Iterator[pa.RecordBatch]:
        part = self._part
        if part.size <= _FEW_ROWS and _KERNELS not in sys.modules:
            yield from self._decode_few(records)
            return
        from tidelog.records.columnar import decode_columns

        decoded = decode_columns(
            records,
            columns=self._columns,
            start_offset=self._position,  # the first batch may still hold deleted records
            end_offset=part.end,
            verify_crc=self._settings.fetch.check_crcs,
            max_rows=_MAX_ROWS,
        )
        for batch in decoded:
            if batch.num_rows:
                yield self._shaped(batch)

    def _decode_few(self, records: ReadBuffer) -> Iterator[pa.RecordBatch]:
        """One by one: for few records this is faster than loading the kernels."""
        found = [
            (record, batch.header.timestamp_type)
            for batch in iterate(records, verify=self._settings.fetch.check_crcs)
            if not batch.header.is_control
            for record in decode(batch)
            if self._position <= record.offset < self._part.end
        ]
        if not found:
            return
        columns: dict[str, tuple[list[Any], pa.DataType]] = {
            "key": ([record.key for record, _ in found], pa.binary()),
            "value": ([record.value for record, _ in found], pa.binary()),
            "offset": ([record.offset for record, _ in found], pa.int64()),
            "timestamp": ([_microseconds(record.timestamp) for record, _ in found], pa.timestamp("us", tz="UTC")),
            "timestampType": ([int(kind) for _, kind in found], pa.int32()),
        }
        if "headers" in self._columns:
            headers = [
                [{"key": name, "value": content} for name, content in record.headers] or None for record, _ in found
            ]
            columns["headers"] = headers, self._schema.field("headers").type
        arrays = [pa.array(*columns[name]) for name in self._columns]
        yield self._shaped(pa.RecordBatch.from_arrays(arrays, names=self._columns))

    def _shaped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns: dict[str, pa.Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self._key is not None:
            columns["key"], _ = self._key(columns["key"])
        if self._value is not None:
            columns["value"], columns[CORRUPT] = self._value(columns["value"])
        rows = batch.num_rows
        arrays = [columns[name] if name in columns else self._constant(name, rows) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _constant(self, name: str, rows: int) -> pa.Array:
        known = self._constants.get(name)
        if known is None or len(known) < rows:
            kind = self._schema.field(name).type
            content = {"topic": self._part.topic, "partition": self._part.partition}.get(name)
            size = max(rows, 1024)
            known = pa.nulls(size, kind) if content is None else pa.repeat(pa.scalar(content, kind), size)
            self._constants[name] = known
        return known.slice(0, rows)


class _Leader(LogLeader):
    """What cannot be answered is told when the broker is asked for the records."""

    def __init__(self, client: Client, part: OffsetRange) -> None:
        self._client = client
        self._part = part

    def first_batch(self, offset: Offset) -> bytes | None:
        part = self._part
        fetch = FetchOptions(max_wait_ms=0, partition_max_bytes=1, out_of_range="error")
        try:
            chunks = self._client.read_range(
                part.topic, part.partition, offset, offset + 1, fetch=fetch, topic_id=part.topic_id
            )
            return next((bytes(chunk.records[:HEADER_SIZE]) for chunk in chunks), None)
        except TidelogError:
            return None

    def locate(self, start: Offset, end: Offset, *, committed: bool) -> Located | None:
        part = self._part
        try:
            found = self._client.locate_records(
                TopicPartition(part.topic, part.partition),
                start,
                end,
                topic_id=part.topic_id,
                read_committed=committed,
            )
        except TidelogError:
            return None
        return Located(
            [StoredPiece(*piece) for piece in found.pieces],
            found.end_offset,
            found.tail_offset,
            [AbortedTransaction(*one, last_stable_offset=-1) for one in found.aborted],
        )


def _microseconds(timestamp: TimestampMs) -> int:
    """Clamped to the range of timestamps, as in the kernels."""
    return min(max(timestamp, -_MAX_MS), _MAX_MS) * 1000
