"""Writing to topics: tasks encode rows as record batches and write them; the driver commits or aborts.

A task encodes columns with the kernels of `records.columnar` and sends the batches with sequence numbers, so that a
retry of a request writes nothing twice. Spark may run a task again from the start, or a micro-batch after a restart;
then its rows are written again. That is delivery at least once. For delivery exactly once, the task writes in a
transaction and leaves it open: `exactly_once`.

A task only writes, and reports what it wrote where (`TaskWritten`). The driver decides whether a batch counts, in
`commit` and `abort`; Spark runs each of them in a process of its own.
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

from tidelog.client.producing.batch_sender import WrittenRecords
from tidelog.client.producing.identity import Identity
from tidelog.errors import InvalidInput, RecordTooLarge, TidelogError
from tidelog.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition, is_topic_name
from tidelog.spark import exactly_once
from tidelog.spark.clients import connect_patiently, shared_client
from tidelog.spark.exactly_once import NumberedBatch
from tidelog.spark.options import WriteSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from tidelog.client.blocking import Client
    from tidelog.client.producing.blocking import BlockingBatchSender
    from tidelog.client.producing.transactions import OpenTransaction
    from tidelog.records.columnar import Array, ColumnEncoder

_WRITTEN = ("key", "value", "topic", "partition", "headers")
_OF_THE_SOURCE = ("offset", "timestamp", "timestampType")  # columns of rows that were read from a topic; not written
_ROWS_AT_ONCE = 131_072
_BYTES_AT_ONCE = 16 << 20


def check_columns(schema: StructType, settings: WriteSettings) -> tuple[str, ...]:
    """The columns to write. Raises InvalidInput with all problems."""
    problems = []
    if "value" not in schema.names:
        problems.append("there is no column value; name one, as in SELECT to_json(struct(*)) AS value")
    if settings.topic is None and "topic" not in schema.names:
        problems.append("no topic is named: set the option topic, or add a column topic")
    if settings.topic is not None and not is_topic_name(settings.topic):
        problems.append(f"{settings.topic!r} is not a topic name: up to 249 letters, digits, '.', '_' and '-'")
    for column in schema.fields:
        problem = _problem_of(column.name, column.dataType)
        if problem:
            problems.append(problem)
    if len(set(schema.names)) < len(schema.names):
        problems.append(f"two columns have the same name: {', '.join(schema.names)}")
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
            return f"the column {name} cannot be written; topics have {', '.join(_WRITTEN)}"
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
    """What a task wrote, by partition: number of records, first and last offset."""

    partitions: dict[TopicPartition, WrittenRecords] = field(default_factory=dict)
    batch: NumberedBatch | None = None
    """The batch of the task. None: the task had no rows, or delivery is at least once."""
    transaction: "OpenTransaction | None" = None
    """The transaction with the rows. None with a batch: the batch was decided before, and nothing was written."""

    @property
    def records(self) -> int:
        return sum(done.records for done in self.partitions.values())


class TidelogWriter(DataSourceArrowWriter):
    def __init__(self, settings: WriteSettings, columns: tuple[str, ...]) -> None:
        self._settings = settings
        self._columns = columns
        self._batch = exactly_once.of_job(settings.job) if settings.delivery == "exactly-once" else None

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskWritten:
        return write_rows(self._settings, self._columns, iterator, self._batch)

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        commit(self._settings, messages)

    def abort(self, messages: "list[WriterCommitMessage | None]") -> None:
        abort(self._settings, messages, self._batch)


class TidelogStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, settings: WriteSettings, columns: tuple[str, ...]) -> None:
        self._settings = settings
        self._columns = columns

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskWritten:
        batch = exactly_once.of_this_task() if self._settings.delivery == "exactly-once" else None
        return write_rows(self._settings, self._columns, iterator, batch)

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: ARG002, N803
        commit(self._settings, messages)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: ARG002, N803
        abort(self._settings, messages)


# --- the driver ----------------------------------------------------------------------------------------------------


def commit(settings: WriteSettings, messages: "Sequence[WriterCommitMessage | None]") -> None:
    """All tasks have succeeded: commit what they wrote."""
    batch, transactions, were_decided = _reported(messages)
    if batch is None:
        return
    with connect_patiently(settings.bootstrap, settings.client) as client:
        if were_decided:
            exactly_once.abort(client, transactions)
        else:
            exactly_once.decide(client, batch, transactions)
        exactly_once.abort_leftovers(client, batch)


def abort(
    settings: WriteSettings, messages: "Sequence[WriterCommitMessage | None]", known: NumberedBatch | None = None
) -> None:
    """A task has failed for good, or `commit` has. If no task has reported a batch and none is `known`, transactions
    of killed tasks stay open until the batch is written again or they time out."""
    batch, transactions, _ = _reported(messages)
    batch = batch or known
    if batch is None:
        return
    silent = [partition for partition, message in enumerate(messages) if message is None]
    with connect_patiently(settings.bootstrap, settings.client) as client:
        exactly_once.abort(client, transactions)
        exactly_once.fence(client, batch, silent)
        exactly_once.abort_leftovers(client, batch)


def _reported(
    messages: "Sequence[WriterCommitMessage | None]",
) -> "tuple[NumberedBatch | None, list[OpenTransaction], bool]":
    """The batch, its open transactions, and whether a task found that the batch was decided before."""
    done = [message for message in messages if isinstance(message, TaskWritten) and message.batch is not None]
    transactions = [message.transaction for message in done if message.transaction is not None]
    return (done[0].batch if done else None), transactions, len(transactions) < len(done)


# --- a task --------------------------------------------------------------------------------------------------------


def write_rows(
    settings: WriteSettings,
    columns: tuple[str, ...],
    rows: "Iterator[pa.RecordBatch]",
    batch: NumberedBatch | None = None,
) -> TaskWritten:
    """Write all rows of a task; with a `batch`, in a transaction that is left open."""
    first = next((some for some in rows if some.num_rows), None)
    if first is None:
        return TaskWritten()
    client = shared_client(settings.bootstrap, settings.client)
    if batch is None:
        with client.batch_sender(settings.producer) as sender:
            return TaskWritten(_write_all(settings, client, sender, _gathered(first, rows, columns)))
    id_ = batch.transactional_id(exactly_once.partition_of_this_task())
    sender = client.batch_sender(
        settings.producer, transactional_id=id_, transaction_timeout_ms=settings.transaction_timeout_ms
    )
    try:
        with sender:
            exactly_once.reached("introduced")
            if exactly_once.is_decided(client, batch):
                for _ in rows:  # Spark requires that all rows are consumed
                    pass
                return TaskWritten(batch=batch)
            written = _write_all(settings, client, sender, _gathered(first, rows, columns))
    except BaseException:
        if sender.transaction is not None:
            exactly_once.abort(client, [sender.transaction])
        raise
    exactly_once.reached("flushed")
    return TaskWritten(written, batch, sender.transaction)


def _write_all(
    settings: WriteSettings, client: "Client", sender: "BlockingBatchSender", chunks: "Iterator[pa.RecordBatch]"
) -> dict[TopicPartition, WrittenRecords]:
    writing = _Writing(settings, client, sender)
    for chunk in chunks:
        writing.add(chunk)
        exactly_once.reached("sent")
    return sender.flush()


def _gathered(
    first: "pa.RecordBatch", rows: "Iterator[pa.RecordBatch]", columns: tuple[str, ...]
) -> "Iterator[pa.RecordBatch]":
    """Join Spark's chunks of ten thousand rows: larger chunks make larger batches if there are many partitions."""
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
    """Encodes and sends the rows of one task."""

    def __init__(self, settings: WriteSettings, client: "Client", sender: "BlockingBatchSender") -> None:
        self._settings = settings
        self._client = client
        self._sender = sender
        self._partition_counts: dict[str, int] = {}
        self._next_free: dict[str, int] = {}  # by topic, the next partition for records without a key

    def add(self, chunk: "pa.RecordBatch") -> None:
        import numpy as np

        from tidelog.records.columnar import ColumnEncoder

        if not chunk.num_rows:
            return
        encoder = ColumnEncoder(chunk, now_ms=time.time_ns() // 1_000_000)
        for topic, rows in self._by_topic(chunk):
            partitions = self._places(topic, chunk, rows)
            counts = np.bincount(partitions)
            if len(counts) <= np.iinfo(np.int16).max:
                partitions = partitions.astype(np.int16)  # for which numpy uses radix sort
            order = np.argsort(partitions, kind="stable")
            numbers = np.flatnonzero(counts).tolist()
            bounds = [0, *np.cumsum(counts[numbers]).tolist()]
            for number, start, end in zip(numbers, bounds, bounds[1:], strict=False):
                chosen = order[start:end]
                self._send(TopicPartition(topic, number), encoder, chosen if rows is None else rows[chosen])

    def _by_topic(self, chunk: "pa.RecordBatch") -> "Iterator[tuple[str, Array | None]]":
        """The topics with the numbers of their rows; None: all rows."""
        import numpy as np

        if self._settings.topic is not None:
            yield self._settings.topic, None
            return
        column = chunk.column("topic")
        if column.null_count:
            raise InvalidInput("the topic of a row is null; give every row a topic, or set the option topic")
        encoded = column.dictionary_encode()
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        for number, topic in enumerate(encoded.dictionary.to_pylist()):
            if not is_topic_name(topic):
                raise InvalidInput(f"the topic of a row, {topic!r}, is not a topic name")
            yield topic, None if len(encoded.dictionary) == 1 else np.flatnonzero(numbers == number)

    def _places(self, topic: str, chunk: "pa.RecordBatch", rows: "Array | None") -> "Array":
        """The partition of each row: the column partition, else by the key's hash as in the Java client, else any."""
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
                raise InvalidInput(f"the partition of a row is {wrong}, but {topic} has partitions 0 to {count - 1}")
            places = np.where(named, numbers, places)
        free = np.flatnonzero(places < 0)
        if free.size:
            places[free] = self._spread(topic, count, free.size, chunk)
        return places

    def _spread(self, topic: str, partitions: int, rows: int, chunk: "pa.RecordBatch") -> "Array":
        """Partitions for rows without a key: about one batch to one partition, then to the next."""
        import numpy as np

        row_bytes = max(1, chunk.nbytes // chunk.num_rows)
        run = max(1, self._settings.producer.batch_bytes // row_bytes)
        run = min(run, -(-rows // partitions)) if rows > partitions * 1024 else run
        begin = self._next_free.get(topic)
        if begin is None:
            begin = random.randrange(partitions)  # noqa: S311  (so that tasks begin at different partitions)
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
                transactional=self._settings.delivery == "exactly-once",
            )
            for batch in batches:
                self._sender.send(partition, [batch])
        except RecordTooLarge as error:
            limit = f"kafka.batch.size ({producer.batch_bytes})"
            raise RecordTooLarge(
                f"{error}: writing to {partition}; raise {limit} and the topic's max.message.bytes"
            ) from None
        except TidelogError as error:
            error.add_note(f"while writing to {partition}")
            raise
