"""Writing to topics: rows in, record batches out, by the tasks; what becomes of them, by the driver.

A task encodes columns into batches by the kernels of `records.columnar` and sends them, numbered, so that nothing
that it sends is written twice. Spark may run a task again from the start, and a micro-batch after a restart: then its
rows are written again. That is delivery at least once.

A task only writes, and reports what it wrote where (`TaskWritten`). Whether a batch counts is decided by the driver,
in `commit` and `abort`: there is nothing to decide yet, and this is where a transaction would end.
"""

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from tidelog.client.accumulator import Identity
from tidelog.client.batch_sender import Written
from tidelog.errors import InvalidInput, RecordTooLarge, TidelogError
from tidelog.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition, is_topic_name
from tidelog.spark.options import WriteSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tidelog.client.blocking import BlockingBatchSender, Client
    from tidelog.records.columnar import Array, ColumnEncoder

_WRITTEN = ("key", "value", "topic", "partition", "headers")
_OF_THE_SOURCE = ("offset", "timestamp", "timestampType")  # of rows that were read from a topic; not written
_ROWS_AT_ONCE = 131_072
_BYTES_AT_ONCE = 16 << 20


def check_columns(schema: StructType, settings: WriteSettings) -> tuple[str, ...]:
    """The columns that are written; an error says what is wrong with the others."""
    problems = []
    if "value" not in schema.names:
        problems.append("there is no column value; name one, as in SELECT to_json(struct(*)) AS value")
    if settings.topic is None and "topic" not in schema.names:
        problems.append("no topic is named: set the option topic, or have a column topic")
    if settings.topic is not None and not is_topic_name(settings.topic):
        problems.append(f"{settings.topic!r} is not a topic name: up to 249 letters, digits, '.', '_' and '-'")
    for column in schema.fields:
        problem = _problem_of(column.name, column.dataType)
        if problem:
            problems.append(problem)
    if len(set(schema.names)) < len(schema.names):
        problems.append(f"a column is there twice: {', '.join(schema.names)}")
    if problems:
        raise InvalidInput("; ".join(problems))
    kept = [*_WRITTEN, "timestamp"] if settings.keep_timestamp else _WRITTEN
    return tuple(name for name in schema.names if name in kept)


def _problem_of(name: str, kind: DataType) -> str | None:
    said = f"the column {name} is {kind.simpleString()}"
    match name:
        case "key" | "value" if not isinstance(kind, StringType | BinaryType):
            return f"{said}, it must be string or binary; convert it with CAST or to_json"
        case "topic" if not isinstance(kind, StringType):
            return f"{said}, it must be string"
        case "partition" if not isinstance(kind, IntegerType):
            return f"{said}, it must be int"
        case "headers" if not _is_headers(kind):
            return f"{said}, it must be array<struct<key: string, value: binary>>"
        case "timestamp" if not isinstance(kind, TimestampType):
            return f"{said}, it must be timestamp"
        case _ if name not in (*_WRITTEN, *_OF_THE_SOURCE):
            return f"there is no place for the column {name}; topics take {', '.join(_WRITTEN)}"
    return None


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    parts = kind.elementType
    return (
        parts.names == ["key", "value"]
        and isinstance(parts["key"].dataType, StringType)
        and isinstance(parts["value"].dataType, BinaryType | StringType)
    )


@dataclass
class TaskWritten(WriterCommitMessage):
    """By partition: how many records, first and last offset."""

    partitions: dict[TopicPartition, Written] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return sum(done.records for done in self.partitions.values())


class TidelogWriter(DataSourceArrowWriter):
    def __init__(self, settings: WriteSettings, columns: tuple[str, ...]) -> None:
        self._settings = settings
        self._columns = columns

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskWritten:
        return write_rows(self._settings, self._columns, iterator)


class TidelogStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, settings: WriteSettings, columns: tuple[str, ...]) -> None:
        self._settings = settings
        self._columns = columns

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskWritten:
        return write_rows(self._settings, self._columns, iterator)


def write_rows(settings: WriteSettings, columns: tuple[str, ...], rows: "Iterator[pa.RecordBatch]") -> TaskWritten:
    """All of a task's rows, written when this returns."""
    from tidelog.spark.reading import shared_client

    first = next(rows, None)
    if first is None:
        return TaskWritten()
    client = shared_client(settings.bootstrap, settings.client)
    with client.batch_sender(settings.producer) as sender:
        writing = _Writing(settings, client, sender)
        for chunk in _gathered(first, rows, columns):
            writing.add(chunk)
        written = sender.flush()
    return TaskWritten(dict(written))


def _gathered(
    first: "pa.RecordBatch", rows: "Iterator[pa.RecordBatch]", columns: tuple[str, ...]
) -> "Iterator[pa.RecordBatch]":
    """Spark hands over ten thousand rows at a time; more of them fill batches better when partitions are many."""
    gathered: list[pa.RecordBatch] = []
    count = size = 0
    batch: pa.RecordBatch | None = first
    while batch is not None:
        gathered.append(batch.select(list(columns)))
        count += batch.num_rows
        size += batch.nbytes
        batch = next(rows, None)
        if batch is None or count >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield _joined(gathered)
            gathered, count, size = [], 0, 0


def _joined(batches: "list[pa.RecordBatch]") -> "pa.RecordBatch":
    import pyarrow as pa

    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class _Writing:
    """One task's work."""

    def __init__(self, settings: WriteSettings, client: "Client", sender: "BlockingBatchSender") -> None:
        self._settings = settings
        self._client = client
        self._sender = sender
        self._partition_counts: dict[str, int] = {}
        self._next_free: dict[str, int] = {}  # where records without a key go next

    def add(self, chunk: "pa.RecordBatch") -> None:
        import numpy as np

        from tidelog.records.columnar import ColumnEncoder

        if not chunk.num_rows:
            return
        encoder = ColumnEncoder(chunk, now_ms=time.time_ns() // 1_000_000)
        for topic, rows in self._by_topic(chunk):
            partitions = self._places(topic, chunk, rows)
            order = np.argsort(partitions, kind="stable")
            numbers, starts = np.unique(partitions[order], return_index=True)
            bounds = [*starts.tolist(), len(order)]
            for number, start, end in zip(numbers.tolist(), bounds, bounds[1:], strict=False):
                chosen = order[start:end]
                self._send(TopicPartition(topic, number), encoder, chosen if rows is None else rows[chosen])

    def _by_topic(self, chunk: "pa.RecordBatch") -> "Iterator[tuple[str, Array | None]]":
        """With the rows of each; None: all of them."""
        import numpy as np

        if self._settings.topic is not None:
            yield self._settings.topic, None
            return
        column = chunk.column("topic")
        if column.null_count:
            raise InvalidInput("a row's topic is null; give every row one, or set the option topic")
        encoded = column.dictionary_encode()
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        for number, topic in enumerate(encoded.dictionary.to_pylist()):
            if not is_topic_name(topic):
                raise InvalidInput(f"{topic!r}, a row's topic, is not a topic name")
            yield topic, None if len(encoded.dictionary) == 1 else np.flatnonzero(numbers == number)

    def _places(self, topic: str, chunk: "pa.RecordBatch", rows: "Array | None") -> "Array":
        """The partition of each row: the one that it names, else by its key as the Java client does, else any."""
        import numpy as np

        from tidelog.records.columnar import murmur2_partitions

        count = self._count(topic)
        names = chunk.schema.names
        size = chunk.num_rows if rows is None else len(rows)

        def taken(name: str) -> "pa.Array":
            column = chunk.column(name)
            return column if rows is None else column.take(rows)

        places = np.full(size, -1, np.int32)
        if "key" in names:
            places = murmur2_partitions(taken("key"), count)
        if "partition" in names:
            told = taken("partition")
            numbers = told.fill_null(-1).to_numpy(zero_copy_only=False)
            named = ~told.is_null().to_numpy(zero_copy_only=False)
            if named.any() and not (numbers[named].min() >= 0 and numbers[named].max() < count):
                wrong = numbers[named][(numbers[named] < 0) | (numbers[named] >= count)][0]
                raise InvalidInput(f"a row's partition is {wrong}, but {topic} has {count}, from 0 on")
            places = np.where(named, numbers, places)
        free = np.flatnonzero(places < 0)
        if free.size:
            places[free] = self._spread(topic, count, free.size, chunk)
        return places

    def _spread(self, topic: str, partitions: int, rows: int, chunk: "pa.RecordBatch") -> "Array":
        """Rows without a key, a batch's worth to one partition and then to the next."""
        import numpy as np

        row_bytes = max(1, chunk.nbytes // chunk.num_rows)
        run = max(1, self._settings.producer.batch_bytes // row_bytes)
        run = min(run, -(-rows // partitions)) if rows > partitions * 1024 else run
        begin = self._next_free.get(topic)
        if begin is None:
            begin = random.randrange(partitions)  # noqa: S311  (tasks begin at different ones)
        runs = np.arange(rows) // run
        self._next_free[topic] = (begin + int(runs[-1]) + 1) % partitions
        spread: Array = ((begin + runs) % partitions).astype(np.int32)
        return spread

    def _count(self, topic: str) -> int:
        count = self._partition_counts.get(topic)
        if count is None:
            count = self._partition_counts[topic] = self._client.partition_count(topic, create=True)
        return count

    def _send(self, partition: TopicPartition, encoder: "ColumnEncoder", rows: "Array") -> None:
        producer = self._settings.producer
        identity = self._sender.identity or Identity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        try:
            batches = encoder.batches(
                rows,
                codec=producer.compression,
                max_bytes=producer.batch_bytes,
                base_sequence=self._sender.next_sequence(partition),
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
            )
            for batch in batches:
                self._sender.send(partition, [batch])
        except RecordTooLarge as error:
            limit = f"kafka.batch.size ({producer.batch_bytes})"
            raise RecordTooLarge(f"{error}: writing to {partition}; raise {limit} and the topic's limit") from None
        except TidelogError as error:
            error.add_note(f"while writing to {partition}")
            raise
