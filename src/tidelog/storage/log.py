"""`PartitionLog`: the interface between the broker and the storage of one partition, for every engine; and
`LogStore`, which has the logs of all partitions.

A call that may take long returns its result or a `Promise` of it: an append that waits for its sync or its commit, a
read of data that is not in memory. The offsets of an append are known only when its promise is kept, because only
then are they final. Offsets are assigned in the order of the `append` calls. All other calls are synchronous. All
calls are made from one thread, that of the event loop. A storage failure is raised, or fails the promise, as a
StorageError, which concerns this partition alone.

If the promise of an append fails, the batches may have been appended all the same (a commit whose reply was lost). An
idempotent producer finds out by sending them again.
"""

from abc import abstractmethod
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tidelog.errors import TidelogError
from tidelog.model import (
    FIRST_LEADER_EPOCH,
    LeaderEpoch,
    Offset,
    PartitionIdentity,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TopicIdentity,
    TopicPartition,
)
from tidelog.promise import Promise
from tidelog.records.batch import ReadBuffer, WriteBuffer
from tidelog.settings import CleanerSettings, LogSettings


class TimestampOffset(NamedTuple):
    timestamp: TimestampMs
    offset: Offset
    leader_epoch: LeaderEpoch


class Appended(NamedTuple):
    """The place of appended batches in the log. They are as durable as the caller requested."""

    base_offset: Offset
    last_offset: Offset
    append_time_ms: TimestampMs
    duplicate: bool = False
    """Nothing was appended: an idempotent producer sent the batch again, or there was no transaction to end."""


class FileRange(Protocol):
    """A byte range of an open file. It stays readable whatever happens to the log meanwhile."""

    position: int
    size: int

    def read(self, position: int | None = None, most: int | None = None) -> bytes:
        """The whole range; or from `position` in the file to its end, but no more than `most` bytes."""

    def fileno(self) -> int:
        """For sendfile."""


class AbortedTransaction(NamedTuple):
    """A transaction whose records, from its first one up to its marker, must be ignored."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    """The offset of the marker."""
    last_stable_offset: Offset
    """The last stable offset when the marker was written."""


class ReadResult(NamedTuple):
    """Whole batches from the one that holds the requested offset, in memory or in a file; empty at the log's end."""

    parts: Sequence[ReadBuffer | FileRange]
    size: int
    aborted: Sequence[AbortedTransaction] = ()
    """For readers of committed records: the aborted transactions that may have records in `parts`."""

    def read(self) -> bytes:
        return b"".join(
            part if isinstance(part, bytes | bytearray | memoryview) else part.read() for part in self.parts
        )


NOTHING = ReadResult((), 0)


class StoredPiece(NamedTuple):
    """Whole batches of a log, from `base_offset` to `last_offset`, in a byte range of an object that never changes.
    Compaction may have left fewer records than offsets."""

    base_offset: Offset
    last_offset: Offset
    key: str
    position: int
    size: int


class Located(NamedTuple):
    """Where the records of a range of offsets are, for programs that read them without the broker."""

    pieces: Sequence[StoredPiece]
    """In order. Where they leave a gap, compaction has removed everything."""
    end_offset: Offset
    """The pieces hold all records of the range before this offset, which is the end of a batch. It is before the end
    of the range if that needs more pieces than one answer has, or if the log is shorter; it is the start of the range
    if nothing can be told."""
    tail_offset: Offset
    """The broker has everything from this offset on in memory, up to the end of the log."""
    aborted: Sequence[AbortedTransaction]
    """For readers of committed records: the aborted transactions that have, or had, records in the range before
    `end_offset`."""


class ActiveProducer(NamedTuple):
    """An idempotent producer that the log remembers."""

    producer_id: ProducerId
    epoch: ProducerEpoch
    last_sequence: int
    last_timestamp: TimestampMs
    transaction_start: Offset = -1
    """The first offset of its open transaction; -1 if none is open."""
    coordinator_epoch: int = -1
    """The coordinator epoch in its last marker."""


@dataclass(frozen=True, slots=True)
class LogStats:
    start_offset: Offset
    end_offset: Offset
    durable_offset: Offset
    segments: int
    size_bytes: int
    producers: int
    fault: str | None


class PartitionLog(Protocol):
    on_progress: Callable[[int], None] | None
    """Called when the offsets that readers may see have moved, with the number of bytes added before `end_offset`; 0
    if only the last stable offset or the start moved. Called in the middle of the operation that moved them: the
    callback must not raise, and may ask the log for its offsets only."""

    @property
    @abstractmethod
    def start_offset(self) -> Offset:
        """The first offset that can be read."""

    @property
    @abstractmethod
    def end_offset(self) -> Offset:
        """Readers may see every record before this offset."""

    @property
    @abstractmethod
    def last_stable_offset(self) -> Offset:
        """No record before this offset belongs to an open transaction."""

    @abstractmethod
    def append(
        self,
        batches: WriteBuffer,
        *,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
        durable: bool,
        stamp: bool = False,
    ) -> Appended | Promise[Appended]:
        """Append the batches in the buffer `batches`. Their offsets are written into the buffer and the log keeps it:
        the caller must not change it afterwards. `durable` asks for the promise that the flush policy gives to
        acks=all; `stamp` makes `now_ms` the timestamp of every record. If the batches are invalid or the storage
        fails, raises an error and appends nothing. A batch that an idempotent producer repeats is answered with the
        offsets of the first one; a batch of such a producer must be alone in the buffer."""

    @abstractmethod
    def read(
        self, offset: Offset, max_bytes: int, *, committed: bool = False, at_least_one: bool = True
    ) -> ReadResult | Promise[ReadResult]:
        """At most `max_bytes` of whole batches; with `at_least_one` the first batch is returned whatever its size.
        Raises OffsetOutOfRange outside start_offset..end_offset. `committed`: read up to the last stable offset, and
        return the aborted transactions too."""

    @abstractmethod
    def end_transaction(
        self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        *,
        committed: bool,
        coordinator_epoch: int,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
    ) -> Appended | Promise[Appended]:
        """Append the marker that ends the producer's open transaction. If none is open, or it has ended already,
        nothing is appended and the promise is that the log is durable up to its end: ending a transaction twice is
        harmless. Raises InvalidProducerEpoch if a newer epoch of the producer is known."""

    @abstractmethod
    def open_transactions(self) -> dict[ProducerId, Offset]:
        """The first offsets of the transactions that have not ended, by producer."""

    @abstractmethod
    def is_in_transaction(self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool:
        """True if the next batch of the producer, at this epoch, would continue an open transaction: appends and
        markers that are not kept yet count too."""

    @abstractmethod
    def epochs(self) -> Sequence[tuple[LeaderEpoch, Offset]]:
        """The leader epochs of the log, each with its first offset, in order; the last one is the current epoch.
        Empty if the log has only ever had one."""

    @abstractmethod
    def offset_for_time(self, timestamp: TimestampMs) -> TimestampOffset | Promise[TimestampOffset | None] | None:
        """The first record whose timestamp is at or after `timestamp`."""

    @abstractmethod
    def max_timestamp(self) -> TimestampOffset | Promise[TimestampOffset | None] | None:
        """The first record with the largest timestamp of the log."""

    @abstractmethod
    def locate(self, start: Offset, end: Offset, *, committed: bool) -> Located | None:
        """Where the records from `start` up to, not including, `end` are stored; `committed`: only up to the last
        stable offset, with the aborted transactions. The size of the answer is bounded: ask again from its
        `end_offset` on. None: the engine stores records in places that only this machine can read. Raises
        OffsetOutOfRange outside start_offset..end_offset."""

    @abstractmethod
    def delete_before(self, offset: Offset) -> Promise[Offset]:
        """Move the start of the log up to `offset`. The promise is kept when the new start is durable; until then the
        old start counts. If this fails, nothing has changed."""

    @abstractmethod
    def configure(self, settings: LogSettings) -> None:
        """Use these settings from now on."""

    @abstractmethod
    def knows_producer(self, producer_id: ProducerId) -> bool:
        """Whether the log remembers the producer, so that it notices gaps in its sequence numbers."""

    @abstractmethod
    def active_producers(self) -> list[ActiveProducer]: ...

    @abstractmethod
    def stats(self) -> LogStats: ...


class Place(NamedTuple):
    """Where a store keeps its logs, and how much space there is; -1: unknown."""

    name: str
    """The name that operators and programs use, such as the path of a directory."""
    total_bytes: int = -1
    usable_bytes: int = -1


class Stray(NamedTuple):
    """Data of a topic that is not among the known ones."""

    place: str
    """Where the data is, in words for an operator."""
    topic: TopicIdentity | None
    """None: the data does not name its topic."""
    is_unused: bool
    """True if nothing was ever written to the topic."""


class MemoryUse(NamedTuple):
    """A part of a store's memory. `setting` is the name of the setting that bounds it."""

    name: str
    setting: str
    limit_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class UpkeepPolicy:
    """How the logs of a store are maintained, in addition to their own settings. The callables are called again each
    time, because configs change while the broker runs."""

    interval_ms: Callable[[], int]
    """Time between two runs of retention."""
    keep_from: Callable[[TopicPartition], Offset | None]
    """Retention must not delete records from this offset on; None: no such limit."""
    cleaner: Callable[[], CleanerSettings]
    cleaner_threads: int
    """Number of compaction threads; 0: no log is compacted."""


class LogStore(Protocol):
    """The logs of all partitions. Each log belongs to a topic id, so a topic never sees the records of an earlier
    topic of the same name. The store is used only from the thread of the event loop and does not block it for long. A
    failure of one partition is raised as a StorageError and concerns that partition alone."""

    @abstractmethod
    async def create(self, partitions: Sequence[PartitionIdentity], now_ms: TimestampMs) -> None:
        """Create the logs of new partitions, durably, so that `open` finds them: either all of them, or none and a
        StorageError. Existing logs are left as they are."""

    @abstractmethod
    def open(
        self,
        partition: PartitionIdentity,
        settings: LogSettings,
        now_ms: TimestampMs,
        *,
        leader_epoch: LeaderEpoch = FIRST_LEADER_EPOCH,
    ) -> PartitionLog | Promise[PartitionLog]:
        """The partition's log, or a promise of it if opening takes long; created if it does not exist. Until the log
        is released, every call returns the same object. `leader_epoch` is the epoch at which this broker leads the
        partition: an engine that many brokers share refuses writes of any other leader or epoch. Release a log before
        it is opened at another epoch. Raises a StorageError, or fails the promise with one: the error's `retriable`
        says whether trying again may help."""

    @abstractmethod
    def release(self, partitions: Iterable[PartitionIdentity]) -> None:
        """Close the logs of these partitions, also those that are still being opened. Callers must not use them any
        more, and data that is not durable yet may be lost. The stored data stays."""

    @abstractmethod
    async def delete(self, topic: TopicIdentity) -> None:
        """Remove all data of a topic whose logs are released; does nothing if there is none. After a StorageError
        some or all of the data is still there, and the call may be repeated."""

    @abstractmethod
    async def adopt(self, topics: Iterable[TopicIdentity]) -> int:
        """Assign to these topics the logs that an earlier version stored under the topic's name alone: all of them,
        durably, or a StorageError. Called again after a crash, it continues where it stopped. Returns the number of
        topics. Call it once in the life of a store, before the first log is opened; the caller records that it
        did."""

    @abstractmethod
    async def strays(self, known: Container[bytes]) -> list[Stray]:
        """The data of topics whose ids are not in `known`."""

    @abstractmethod
    def start_upkeep(self, policy: UpkeepPolicy) -> None:
        """From now on maintain the logs in the background: retention and compaction. If that fails for one log, the
        failure is reported once and the other logs are maintained all the same."""

    @abstractmethod
    async def stop_upkeep(self) -> None:
        """Does nothing if upkeep was not started. Logs are consistent at every step, so there is nothing to wait
        for."""

    @abstractmethod
    def place(self) -> Place:
        """Where the logs are stored; all of them are in one place."""

    @property
    @abstractmethod
    def memory(self) -> list[MemoryUse]:
        """Everything that grows with the data, each part with a bound. The first is that of the newest batches."""

    @property
    @abstractmethod
    def max_descriptors(self) -> int:
        """The largest number of file descriptors that the store keeps open."""

    @abstractmethod
    async def close(self) -> dict[TopicPartition, TidelogError]:
        """Stop the upkeep, make every log durable and close it. Returns the failures, by partition."""
