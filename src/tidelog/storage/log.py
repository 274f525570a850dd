"""`PartitionLog`: what the broker asks of a partition's storage, whichever engine is behind it.

Offsets are promised in the order of the `append` calls. Everything but waiting is synchronous and belongs to one
thread, the event loop's; what takes long happens behind `Appended` or in a slice's `read`.
"""

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tidelog.model import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs
from tidelog.promise import Listener
from tidelog.records.batch import ReadBuffer, WriteBuffer
from tidelog.settings import LogSettings


class TimestampOffset(NamedTuple):
    timestamp: TimestampMs
    offset: Offset
    leader_epoch: LeaderEpoch


class Appended(Protocol):
    """An append under way. Await it for the promise that was asked for; the numbers are valid after that."""

    base_offset: Offset
    last_offset: Offset
    append_time_ms: TimestampMs
    duplicate: bool

    @property
    def done(self) -> bool:
        """There is nothing to wait for."""

    def __await__(self) -> Generator[Any, None, "Appended"]: ...

    def when_done(self, call: Listener[None]) -> None:
        """The same for those who have no task to wait in; not called within this call."""


class FileRange(Protocol):
    """A byte range of an open file. It stays readable whatever happens to the log meanwhile."""

    position: int
    size: int

    def read(self, position: int | None = None, most: int | None = None) -> bytes:
        """All of it; or from a position of the file on, and no more than `most` bytes."""

    def fileno(self) -> int:
        """For sendfile."""


class ReadResult(NamedTuple):
    """Whole batches from the one that holds the offset asked for, in memory or in a file; empty at the log's end."""

    parts: list[ReadBuffer | FileRange]
    size: int

    def read(self) -> bytes:
        return b"".join(
            part if isinstance(part, bytes | bytearray | memoryview) else part.read() for part in self.parts
        )


class AbortedTransaction(NamedTuple):
    """A transaction whose records, from the first one up to its marker, do not count."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    """Of the marker."""
    last_stable_offset: Offset
    """As it was when the marker was written."""


class ActiveProducer(NamedTuple):
    """An idempotent producer that the log remembers."""

    producer_id: ProducerId
    epoch: ProducerEpoch
    last_sequence: int
    last_timestamp: TimestampMs
    transaction_start: Offset = -1
    """The first offset of its open transaction, if it has one."""
    coordinator_epoch: int = -1
    """Of the last marker."""


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
    @property
    @abstractmethod
    def start_offset(self) -> Offset:
        """The first offset that can be read."""

    @property
    @abstractmethod
    def end_offset(self) -> Offset:
        """The offset that the next record will get."""

    @property
    @abstractmethod
    def last_stable_offset(self) -> Offset:
        """No record before it belongs to an open transaction."""

    @property
    @abstractmethod
    def durable_offset(self) -> Offset:
        """Everything before it survives a power loss."""

    @abstractmethod
    def append(
        self,
        batches: WriteBuffer,
        *,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
        durable: bool,
        stamp: bool = False,
    ) -> Appended:
        """Append the batches that stand in `batches`; their offsets are written into it and the log keeps it: the
        caller must not change it afterwards. `durable` asks for the promise that the flush policy gives to acks=all;
        `stamp` makes `now_ms` the timestamp of every record. Raises, with nothing appended, what is wrong with the
        batches or the storage. A repetition by an idempotent producer is answered with the offsets of the first."""

    @abstractmethod
    def read(
        self, offset: Offset, max_bytes: int, *, up_to: Offset | None = None, at_least_one: bool = True
    ) -> ReadResult:
        """At most `max_bytes` of whole batches, none with an offset from `up_to` on; with `at_least_one` the first
        batch comes whole however large it is. OffsetOutOfRange outside start_offset..end_offset."""

    @abstractmethod
    def read_committed(
        self, offset: Offset, max_bytes: int, *, at_least_one: bool = True
    ) -> tuple[ReadResult, list[AbortedTransaction]]:
        """As `read`, up to the last stable offset, with the aborted transactions that may have records in it."""

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
    ) -> Appended:
        """Append the marker that ends the producer's open transaction. If none is open (any more) nothing is
        appended, and what is awaited is that the log is durable up to here: to end a transaction twice is harmless.
        InvalidProducerEpoch if a newer epoch of the producer is known."""

    @abstractmethod
    def open_transactions(self) -> dict[ProducerId, Offset]:
        """The first offsets of the transactions that have not ended, by producer."""

    @abstractmethod
    def offset_for_time(self, timestamp: TimestampMs) -> TimestampOffset | None:
        """The first record whose timestamp is not before `timestamp`."""

    @abstractmethod
    def max_timestamp(self) -> TimestampOffset | None:
        """The first record with the largest timestamp of the log."""

    @abstractmethod
    def delete_before(self, offset: Offset) -> Offset:
        """Move the start of the log up, durably; the new start."""

    @abstractmethod
    def truncate(self, offset: Offset) -> Offset:
        """Cut the log so that no offset from `offset` on is left, durably; the new end (a batch goes whole)."""

    @abstractmethod
    def configure(self, settings: LogSettings) -> None:
        """How the log is kept from now on."""

    @abstractmethod
    def active_producers(self) -> list[ActiveProducer]: ...

    @abstractmethod
    def stats(self) -> LogStats: ...
