"""One transactional id: its producer, its transaction that is open or being ended, and its rows.

    state            next states
    Empty            Ongoing: partitions or a group's offsets were added
    Ongoing          PrepareCommit, PrepareAbort: the end is decided
    PrepareCommit    CompleteCommit: all markers are durable
    PrepareAbort     CompleteAbort: the same
    Complete...      Ongoing; Empty: a producer sent InitProducerId

Epochs: a producer that sends InitProducerId gets the next epoch, so that its predecessor is fenced. With transactions
of version 2 each end uses the next epoch too, and the markers already have it: a late batch of the old transaction
cannot become part of the new one. The highest epoch is never given to a producer; instead it gets a new producer id.
"""

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from tidelog.broker.coordination.ledger import Ledger
from tidelog.broker.coordination.timers import Timer
from tidelog.broker.coordination.transactions.messages import NO_EPOCH, NO_ID
from tidelog.metadata.rows import OffsetRow, TransactionOffsetRow, TransactionRow
from tidelog.metadata.store import Change, Delete, Put
from tidelog.model import ProducerEpoch, ProducerId, TopicPartition

HIGHEST_EPOCH = 0x7FFF
LAST_EPOCH = HIGHEST_EPOCH - 1  # the last one that a producer gets; the highest one is for fencing it
NOT_STARTED = -1
ENTRY_BYTES = 500  # about what a partition, group or offset of a transaction takes in memory
ROW: Hashable = "transaction"  # in the ledger
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


class EndedGroup(NamedTuple):
    """A group whose offsets were in the transaction: those of these topics; None: it is not known which."""

    group: str
    topics: tuple[str, ...] | None


class Ending(NamedTuple):
    """The markers to write when the decision is durable, and the groups whose coordinators have to hear of it. The
    shell calls `completed` with it when the markers are durable and the coordinators have answered."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    committed: bool
    partitions: tuple[TopicPartition, ...]
    groups: tuple[EndedGroup, ...] = ()


@dataclass(slots=True, eq=False)
class Transaction:
    transactional_id: str
    producer_id: int
    ledger: Ledger  # marks the rows to store
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH  # the previous epoch, if a producer that has it may still repeat its last request
    previous_producer_id: int = NO_ID
    next_producer_id: int = NO_ID  # set if this end has used up the epochs
    timeout_ms: int = 0
    state: State = State.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    durable_partitions: set[TopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    offsets: dict[tuple[str, str, int], OffsetRow] = field(default_factory=dict)
    started_ms: int = NOT_STARTED  # by the wall clock, like `updated_ms`: what is stored and shown
    began_ms: int = NOT_STARTED  # by the clock of the deadlines
    updated_ms: int = 0
    ending: Ending | None = None
    is_ending_asked: bool = False  # `ending` was given to the shell
    is_stuck: bool = False  # markers cannot be written now
    timer: Timer | None = None
    counted: int = 0  # `entries` that the coordinator has counted for it
    decided_with: tuple["Transaction", ...] = ()
    """The transactions, including this one, that one decision ended: their changes are stored together until the
    decision is durable."""

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= LAST_EPOCH

    @property
    def entries(self) -> int:
        """The number of its partitions, groups and offsets; long names and metadata count as several."""
        entries = len(self.partitions)
        if self.groups:
            entries += sum(1 + len(group) // ENTRY_BYTES for group in self.groups)
        if self.offsets:
            entries += sum(1 + (len(row.group) + len(row.metadata)) // ENTRY_BYTES for row in self.offsets.values())
        return entries

    def touch(self, wall_ms: int) -> None:
        """Mark the row to be stored in its current state."""
        self.updated_ms = wall_ms
        self._store(ROW, Put(self.row()))

    def _store(self, row: Hashable, change: Change) -> None:
        self.ledger.put(self.transactional_id, row, change)

    def add(self, partitions: Iterable[TopicPartition], groups: Iterable[str], *, now_ms: int, wall_ms: int) -> None:
        if self.state is not State.ONGOING:
            self.state = State.ONGOING
            self.started_ms, self.began_ms = wall_ms, now_ms
        self.partitions.update(dict.fromkeys(partitions))
        self.groups.update(groups)
        self.touch(wall_ms)

    def add_offsets(self, rows: Iterable[OffsetRow]) -> None:
        for row in rows:
            key = (row.group, row.topic, row.partition)
            self.offsets[key] = row
            stored = TransactionOffsetRow(
                self.transactional_id, *key, row.offset, row.leader_epoch, row.metadata, row.committed_ms
            )
            self._store(key, Put(stored))

    def forget_offsets(self, topics: frozenset[str]) -> None:
        """The topics were deleted: drop their offsets."""
        for key in [key for key in self.offsets if key[1] in topics]:
            del self.offsets[key]
            self._store(key, Delete(TransactionOffsetRow, (self.transactional_id, *key)))

    def prepare(self, *, committed: bool, wall_ms: int) -> None:
        """The end is decided. The write that makes this durable also commits or drops the offsets."""
        self.state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        self.ending = Ending(
            self.transactional_id,
            ProducerId(self.producer_id),
            ProducerEpoch(self.epoch),
            committed,
            tuple(self.partitions),
            tuple(EndedGroup(group, self._topics_of(group)) for group in self.groups) if self.groups else (),
        )
        self.is_ending_asked = self.is_stuck = False
        for key in self.offsets:
            self.ledger.withdraw(self.transactional_id, key)
        if self.offsets:
            self._store(_CLEAR, Delete(TransactionOffsetRow, (self.transactional_id,)))
            if committed:
                for key, row in self.offsets.items():
                    self._store(("commit", key), Put(row))
        self.touch(wall_ms)

    def _topics_of(self, group: str) -> tuple[str, ...]:
        return tuple({topic for of, topic, _ in self.offsets if of == group})

    def complete(self, wall_ms: int) -> None:
        self.state = State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
        self.ending = None
        self.partitions.clear()
        self.durable_partitions.clear()
        self.groups.clear()
        self.offsets.clear()
        self.started_ms = self.began_ms = NOT_STARTED
        if self.next_producer_id != NO_ID:
            self.rotate(self.next_producer_id)
        self.touch(wall_ms)

    def rotate(self, producer_id: int) -> None:
        """Change to a new producer id, beginning at epoch 0."""
        self.previous_producer_id = self.producer_id
        self.producer_id = producer_id
        self.next_producer_id = NO_ID
        self.last_epoch = self.epoch
        self.epoch = 0

    @property
    def told(self) -> tuple[int, int]:
        """Producer id and epoch for the client's next transaction."""
        return (self.producer_id, self.epoch) if self.next_producer_id == NO_ID else (self.next_producer_id, 0)

    def row_written(self, change: Change) -> None:
        """A state of the row is durable."""
        row = change.row if isinstance(change, Put) else None
        if self.state is State.ONGOING and isinstance(row, TransactionRow) and row.state == State.ONGOING:
            self.durable_partitions.update(_partitions_of(row.partitions))

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
    def restored(cls, row: TransactionRow, offsets: Iterable[TransactionOffsetRow], ledger: Ledger) -> "Transaction":
        transaction = cls(
            transactional_id=row.transactional_id,
            producer_id=row.producer_id,
            ledger=ledger,
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
                tuple(EndedGroup(group, None) for group in transaction.groups),
            )
        return transaction


@lru_cache(1024)  # most transactions of a producer have the same partitions
def _text_of(partitions: tuple[TopicPartition, ...]) -> str:
    """{"topic": [0, 1]}"""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return json.dumps(by_topic, separators=(",", ":")) if by_topic else "{}"


@lru_cache(1024)
def _partitions_of(text: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for topic, numbers in json.loads(text).items() for number in numbers)
