"""Copies records to topics, each exactly once, even if the process is killed at any point and the job is restarted.

A journal file records before each step which offsets it will read, and after it that it is done. All batches of a job
have one producer id, stored in the journal, and sequence numbers that are derived from the journal. An unfinished
step is repeated with the same range of offsets: the same records make the same batches with the same sequence
numbers. The broker remembers the last five batches of a producer in each partition and ignores duplicates of them, so
a step sends at most five batches to a partition. A broker forgets a producer after a day
(`producer.id.expiration.ms`): restart an interrupted job before that.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tidelog.client import BrokerError, Client
from tidelog.errors import InvalidInput
from tidelog.model import Offset, ProducerEpoch, ProducerId, TopicPartition
from tidelog.records.batch import read_header
from tidelog.records.columnar import ColumnEncoder
from tidelog.records.compression import Codec
from tidelog.spark.jobs.ranges import Range, read_columns
from tidelog.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("key", "value", "headers", "timestamp", "offset")
_STEP_RECORDS = 20_000
_MAX_BATCHES = 5
_SEQUENCE_MASK = 0x7FFF_FFFF
_FORMAT = 1

Route: TypeAlias = "Callable[[Range, pa.RecordBatch], Mapping[TopicPartition, pa.RecordBatch]]"
"""Maps a batch of a range to target partitions, each with a batch of key, value, headers and timestamp."""


@dataclass
class Journal:
    """The progress of a copy, in a file that is replaced atomically."""

    path: Path
    identity: dict[str, Any]
    """Identifies the copy: the journal of another copy is refused."""
    positions: dict[str, Offset] = field(default_factory=dict)
    """By source `topic/partition`: all records before this offset are copied."""
    intent: dict[str, Any] | None = None
    producer: tuple[int, int] | None = None
    sequences: dict[str, int] = field(default_factory=dict)
    copied: int = 0

    @classmethod
    def open(cls, path: Path, identity: dict[str, Any]) -> "Journal":
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            return cls(path, identity)
        try:
            content = json.loads(path.read_text())
            if content.pop("format") != _FORMAT:
                raise InvalidInput(f"{path} was written by another version of Tidelog; use that, or another file")
            journal = cls(path, **content)
        except (ValueError, TypeError, KeyError):
            raise InvalidInput(f"{path} is not a journal of a copy; delete it to start from the beginning") from None
        if journal.identity != identity:
            raise InvalidInput(f"{path} belongs to another copy ({journal.identity}); delete it or name another file")
        return journal

    @staticmethod
    def peek(path: Path) -> dict[str, Any] | None:
        """The identity of the copy whose journal is at this path; None if there is no journal."""
        if not path.exists():
            return None
        identity = json.loads(path.read_text()).get("identity")
        return identity if isinstance(identity, dict) else None

    def save(self) -> None:
        content = {**asdict(self), "format": _FORMAT}
        del content["path"]
        draft = self.path.with_suffix(".draft")
        with draft.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def position(self, part: Range) -> Offset:
        return max(part.start, self.positions.get(f"{part.topic}/{part.partition}", part.start))


class Copier:
    """Copies records. Not thread-safe, and one copy at a time."""

    def __init__(self, client: Client, journal: Journal, route: Route, *, codec: Codec = Codec.NONE) -> None:
        self._client = client
        self._journal = journal
        self._route = route
        self._codec = codec

    def copy(self, parts: Sequence[Range], at: Callable[[str], None] = lambda _: None) -> Iterator[int]:
        """Copy what is not copied yet; yields the number of records of each step. `at` is called between any two
        effects, for tests that stop there."""
        self._be_known()
        unfinished = self._journal.intent
        if unfinished is not None:
            yield self._step(Range(**unfinished), at)
        for part in parts:
            position = self._journal.position(part)
            while position < part.end:
                step = part._replace(start=position, end=min(part.end, position + _STEP_RECORDS))
                yield self._step(step, at)
                position = self._journal.position(part)

    def _be_known(self) -> None:
        if self._journal.producer is None:
            with self._client.batch_sender() as sender:
                identity = sender.identity
            assert identity is not None  # senders are idempotent by default
            self._journal.producer = (identity.producer_id, identity.epoch)
            self._journal.save()

    def _step(self, step: Range, at: Callable[[str], None]) -> int:
        journal = self._journal
        batches, records = self._encode(step)
        while any(len(made) > _MAX_BATCHES for made in batches.values()):
            assert journal.intent is None  # a stored intent was cut to size before it was stored
            step = step._replace(end=step.start + max(1, step.size // 2))
            batches, records = self._encode(step)
        journal.intent = step._asdict()
        journal.save()
        at("meant")
        for partition, made in batches.items():
            for data, sequence in made:
                self._send(partition, data)
                journal.sequences[f"{partition.topic}/{partition.partition}"] = sequence
                at("sent")
        journal.positions[f"{step.topic}/{step.partition}"] = step.end
        journal.intent = None
        journal.copied += records
        journal.save()
        at("done")
        return records

    def _encode(self, step: Range) -> tuple[dict[TopicPartition, list[tuple[bytearray, int]]], int]:
        """The batches of a step, each with the sequence number after it."""
        import pyarrow as pa

        assert self._journal.producer is not None
        producer_id, epoch = self._journal.producer
        routed: dict[TopicPartition, list[pa.RecordBatch]] = {}
        for columns in read_columns(self._client, step, _COLUMNS):
            for partition, rows in self._route(step, columns).items():
                routed.setdefault(partition, []).append(rows)
        made: dict[TopicPartition, list[tuple[bytearray, int]]] = {}
        count = 0
        for partition, pieces in sorted(routed.items()):
            rows = pa.Table.from_batches(pieces).combine_chunks().to_batches()
            sequence = self._journal.sequences.get(f"{partition.topic}/{partition.partition}", 0)
            for one in rows:
                count += one.num_rows
                encoded = ColumnEncoder(one, now_ms=int(time.time() * 1000)).batches(
                    codec=self._codec,
                    producer_id=ProducerId(producer_id),
                    producer_epoch=ProducerEpoch(epoch),
                    base_sequence=sequence,
                )
                for data in encoded:
                    sequence = (sequence + read_header(data).record_count) & _SEQUENCE_MASK
                    made.setdefault(partition, []).append((data, sequence))
        return made, count

    def _send(self, partition: TopicPartition, data: bytearray) -> None:
        try:
            self._client.produce_batches(partition.topic, partition.partition, data)
        except BrokerError as error:
            if error.kafka_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                raise
