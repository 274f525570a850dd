"""One transactional id: its producer, the transaction it has open or is ending, and the rows of that.

    state            goes to
    Empty            Ongoing: partitions or a group's offsets were added
    Ongoing          PrepareCommit, PrepareAbort: the end is decided
    PrepareCommit    CompleteCommit: all markers are durable
    PrepareAbort     CompleteAbort: the same
    Complete...      Ongoing; Empty: a producer introduced itself

Epochs: a producer that introduces itself gets the next epoch, so that its predecessor is fenced. With transactions of
version 2 each end takes the next epoch too, and the markers already carry it: what a client sent late for the old
transaction cannot slip into the new one. The last epoch but one is the last that a producer gets; then it gets a new
producer id.
"""

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from tidelog.broker.coordination.timers import Timer
from tidelog.broker.coordination.transactions.messages import NO_EPOCH, NO_ID
from tidelog.metadata.rows import OffsetRow, TransactionOffsetRow, TransactionRow
from tidelog.metadata.store import Change, Delete, Put
from tidelog.model import ProducerEpoch, ProducerId, TopicPartition

HIGHEST_EPOCH = 0x7FFF
LAST_EPOCH = HIGHEST_EPOCH - 1  # that a producer gets; the highest one is for fencing it
NOT_STARTED = -1
_ROW: Hashable = "transaction"
_CLEAR: Hashable = "offsets"


class State(StrEnum):
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
COMPLETE = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


class Ending(NamedTuple):
    """Markers to write, now that the decision is durable. Told to the coordinator again when they are durable."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    committed: bool
    partitions: tuple[TopicPartition, ...]


@dataclass(slots=True, eq=False)
class Transaction:
    transactional_id: str
    producer_id: int
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH  # the one before, if whoever has it may still ask for what it was told
    previous_producer_id: int = NO_ID
    next_producer_id: int = NO_ID  # when this end has used up the epochs
    timeout_ms: int = 0
    state: State = State.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    durable_partitions: set[TopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    offsets: dict[tuple[str, str, int], OffsetRow] = field(default_factory=dict)
    started_ms: int = NOT_STARTED
    updated_ms: int = 0
    ending: Ending | None = None
    is_ending_asked: bool = False  # the shell knows of `ending`
    is_stuck: bool = False  # markers cannot be written now
    timer: Timer | None = None
    decided_with: tuple["Transaction", ...] = ()
    """Itself and others, whose ends are one decision: until that is durable their changes are stored together."""
    unwritten: dict[Hashable, Change] = field(default_factory=dict)
    """Changes in which memory is ahead of the store; they go with every outcome until one of them is written."""

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= LAST_EPOCH

    def touch(self, now_ms: int) -> None:
        """The row is to be stored as it is now."""
        self.updated_ms = now_ms
        self.unwritten[_ROW] = Put(self.row())

    def add(self, partitions: Iterable[TopicPartition], groups: Iterable[str], now_ms: int) -> None:
        if self.state is not State.ONGOING:
            self.state = State.ONGOING
            self.started_ms = now_ms
        self.partitions.update(dict.fromkeys(partitions))
        self.groups.update(groups)
        self.touch(now_ms)

    def add_offsets(self, rows: Iterable[OffsetRow]) -> None:
        for row in rows:
            key = (row.group, row.topic, row.partition)
            self.offsets[key] = row
            stored = TransactionOffsetRow(
                self.transactional_id, *key, row.offset, row.leader_epoch, row.metadata, row.committed_ms
            )
            self.unwritten[key] = Put(stored)

    def forget_offsets(self, topics: frozenset[str]) -> None:
        """The topics are gone."""
        for key in [key for key in self.offsets if key[1] in topics]:
            del self.offsets[key]
            self.unwritten[key] = Delete(TransactionOffsetRow, (self.transactional_id, *key))

    def prepare(self, *, committed: bool, now_ms: int) -> None:
        """The end is decided. The offsets are committed, or dropped, with the very write that makes this durable."""
        self.state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        self.ending = Ending(
            self.transactional_id,
            ProducerId(self.producer_id),
            ProducerEpoch(self.epoch),
            committed,
            tuple(self.partitions),
        )
        self.is_ending_asked = self.is_stuck = False
        for key in self.offsets:
            self.unwritten.pop(key, None)
        if self.offsets:
            self.unwritten[_CLEAR] = Delete(TransactionOffsetRow, (self.transactional_id,))
            if committed:
                for key, row in self.offsets.items():
                    self.unwritten["commit", key] = Put(row)
        self.touch(now_ms)

    def complete(self, now_ms: int) -> None:
        self.state = State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
        self.ending = None
        self.partitions.clear()
        self.durable_partitions.clear()
        self.groups.clear()
        self.offsets.clear()
        self.started_ms = NOT_STARTED
        if self.next_producer_id != NO_ID:
            self.rotate(self.next_producer_id)
        self.touch(now_ms)

    def rotate(self, producer_id: int) -> None:
        """A new producer id, with all its epochs."""
        self.previous_producer_id = self.producer_id
        self.producer_id = producer_id
        self.next_producer_id = NO_ID
        self.last_epoch = self.epoch
        self.epoch = 0

    @property
    def told(self) -> tuple[int, int]:
        """Producer id and epoch for the client's next transaction."""
        return (self.producer_id, self.epoch) if self.next_producer_id == NO_ID else (self.next_producer_id, 0)

    def written(self, stamps: Iterable[tuple[Hashable, Change]]) -> bool:
        """These changes are durable. Whether the row as it is now is among them."""
        for key, change in stamps:
            if self.unwritten.get(key) is change:
                del self.unwritten[key]
            if key == _ROW and self.state is State.ONGOING:
                row = change.row if isinstance(change, Put) else None
                if isinstance(row, TransactionRow) and row.state == State.ONGOING:
                    self.durable_partitions.update(_partitions_of(row.partitions))
        return _ROW not in self.unwritten

    def row(self) -> TransactionRow:
        return TransactionRow(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            epoch=self.epoch,
            last_epoch=self.last_epoch,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            timeout_ms=self.timeout_ms,
            state=self.state,
            partitions=_text_of(tuple(self.partitions)),
            groups=json.dumps(sorted(self.groups)) if self.groups else "[]",
            started_ms=self.started_ms,
            updated_ms=self.updated_ms,
        )

    @classmethod
    def restored(cls, row: TransactionRow, offsets: Iterable[TransactionOffsetRow]) -> "Transaction":
        transaction = cls(
            transactional_id=row.transactional_id,
            producer_id=row.producer_id,
            epoch=row.epoch,
            last_epoch=row.last_epoch,
            previous_producer_id=row.previous_producer_id,
            next_producer_id=row.next_producer_id,
            timeout_ms=row.timeout_ms,
            state=State(row.state),
            partitions=dict.fromkeys(_partitions_of(row.partitions)),
            groups=set(json.loads(row.groups)),
            started_ms=row.started_ms,
            updated_ms=row.updated_ms,
        )
        transaction.durable_partitions = set(transaction.partitions)
        for each in offsets:
            transaction.offsets[each.group, each.topic, each.partition] = OffsetRow(
                each.group,
                each.topic,
                each.partition,
                each.offset,
                each.leader_epoch,
                each.metadata,
                each.committed_ms,
            )
        if transaction.state in PREPARED:
            transaction.ending = Ending(
                row.transactional_id,
                ProducerId(row.producer_id),
                ProducerEpoch(row.epoch),
                transaction.state is State.PREPARE_COMMIT,
                tuple(transaction.partitions),
            )
        return transaction


@lru_cache(1024)  # most transactions of a producer are about the same partitions
def _text_of(partitions: tuple[TopicPartition, ...]) -> str:
    """{"topic": [0, 1]}"""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return json.dumps(by_topic, separators=(",", ":")) if by_topic else "{}"


@lru_cache(1024)
def _partitions_of(text: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for topic, numbers in json.loads(text).items() for number in numbers)
