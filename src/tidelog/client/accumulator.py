"""Records on their way: gathered into batches per partition, in order, within bounds. No I/O and no clock.

    open      one batch per partition that still takes records
    queued    full, or waited long enough, or flushed; first in, first out per partition
    taken     on its way to the broker; the partition is busy, so that a retry cannot be overtaken
    settled   delivered or failed; its memory is given back

Any thread may append; the event loop's takes and settles. Everything is amortized constant time per batch, whatever
the number of partitions.
"""

import asyncio
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future
from threading import Condition
from typing import NamedTuple

from tidelog.model import NO_TIMESTAMP, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition
from tidelog.records.batch import CRC_START, HEADER, TRANSACTIONAL_BIT, read_header
from tidelog.records.compression import Codec
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder, Headers

_RECORD_OVERHEAD = 100  # what a receipt and the list entries around a small record take


class Delivered(NamedTuple):
    """Where a record stands. With acks=0 nobody knows: the offset is -1."""

    topic: str
    partition: int
    offset: Offset
    timestamp: TimestampMs


class Identity(NamedTuple):
    """Under which an idempotent producer numbers its batches."""

    producer_id: ProducerId
    epoch: ProducerEpoch


class _Placed(NamedTuple):
    base_offset: Offset
    append_time: TimestampMs


class Batch:
    """Records of one partition that are delivered or fail together."""

    __slots__ = (
        "_builder",
        "_encoded",
        "_outcome",
        "count",
        "error_was_seen",
        "identity",
        "may_be_written",
        "partition",
        "reserved",
        "started_at",
    )

    def __init__(self, partition: TopicPartition, codec: Codec, now: float) -> None:
        self.partition = partition
        self.started_at = now
        self.count = 0
        self.reserved = 0  # bytes of the accumulator's memory
        self.identity: Identity | None = None
        self.may_be_written = False  # a try ended without an answer
        self.error_was_seen = False
        self._builder: BatchBuilder | None = BatchBuilder(codec)
        self._encoded = bytearray()
        self._outcome: Future[_Placed] = Future()
        self._outcome.set_running_or_notify_cancel()  # who gives up waiting does not cancel it for the others

    def append(self, value: bytes | None, key: bytes | None, timestamp: TimestampMs, headers: Headers) -> "Receipt":
        assert self._builder is not None, "a batch that is on its way takes no more records"
        self._builder.append(value, key=key, timestamp=timestamp, headers=headers)
        receipt = Receipt(self, self.count, timestamp)
        self.count += 1
        return receipt

    @property
    def size(self) -> int:
        return self._builder.size if self._builder is not None else len(self._encoded)

    def encoded(self) -> bytearray:
        """The bytes to send; compressed once, however often it is tried."""
        if self._builder is not None:
            self._encoded, self._builder = self._builder.build(), None
        return self._encoded

    def number(self, identity: Identity, base_sequence: int, *, transactional: bool = False) -> None:
        """Written once, before the first try: a retry must carry the same numbers."""
        batch = self.encoded()
        header = read_header(batch)
        header = header._replace(
            attributes=header.attributes | (TRANSACTIONAL_BIT if transactional else 0),
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=base_sequence,
        )
        HEADER.pack_into(batch, 0, *header)
        HEADER.pack_into(batch, 0, *header._replace(crc=crc32c(memoryview(batch)[CRC_START:])))
        self.identity = identity

    @property
    def outcome(self) -> "Future[_Placed]":
        return self._outcome

    def delivered(self, base_offset: Offset, append_time: TimestampMs = NO_TIMESTAMP) -> None:
        self._encoded = bytearray()
        self._outcome.set_result(_Placed(base_offset, append_time))

    def failed(self, error: BaseException) -> None:
        self._builder, self._encoded = None, bytearray()
        self._outcome.set_exception(error)


class Receipt:
    """For one record: awaited, or asked with `result()` from another thread, it says where the record stands.

    Raises the error of a record that was not delivered.
    """

    __slots__ = ("_batch", "_index", "_timestamp")

    def __init__(self, batch: Batch, index: int, timestamp: TimestampMs) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp

    @property
    def topic(self) -> str:
        return self._batch.partition.topic

    @property
    def partition(self) -> int:
        return self._batch.partition.partition

    def done(self) -> bool:
        return self._batch.outcome.done()

    def result(self, timeout_s: float | None = None) -> Delivered:
        """Blocks; not for the thread of the event loop."""
        self._batch.error_was_seen = True
        return self._delivered(self._batch.outcome.result(timeout_s))

    def __await__(self) -> Generator[None, None, Delivered]:
        if self._batch.outcome.done():
            return self.result()
        self._batch.error_was_seen = True
        placed = yield from asyncio.wrap_future(self._batch.outcome).__await__()
        return self._delivered(placed)

    def _delivered(self, placed: _Placed) -> Delivered:
        offset = placed.base_offset + self._index if placed.base_offset >= 0 else -1
        timestamp = self._timestamp if placed.append_time < 0 else placed.append_time
        return Delivered(self.topic, self.partition, offset, timestamp)


def memory_of(value: bytes | None, key: bytes | None, headers: Headers) -> int:
    size = _RECORD_OVERHEAD + (len(value) if value else 0) + (len(key) if key else 0)
    for name, content in headers:
        size += len(name) + (len(content) if content else 0)
    return size


class Accumulator:
    def __init__(self, *, codec: Codec, batch_bytes: int, buffer_bytes: int, linger_s: float) -> None:
        self._codec = codec
        self._batch_bytes = batch_bytes
        self._buffer_bytes = buffer_bytes
        self._linger_s = linger_s
        self._open: dict[TopicPartition, Batch] = {}  # in the order they were started: the first is due first
        self._queues: dict[TopicPartition, deque[Batch]] = {}
        self._ready: dict[TopicPartition, None] = {}  # queued and not busy, in order of arrival
        self._busy: set[TopicPartition] = set()
        self._unsettled: dict[Batch, None] = {}
        self._used_bytes = 0
        self._lock = Condition()  # notified when memory is given back

    def append(
        self,
        partition: TopicPartition,
        value: bytes | None,
        key: bytes | None,
        timestamp: TimestampMs,
        headers: Headers,
        now: float,
    ) -> tuple[Receipt, bool] | None:
        """The receipt, and whether there is something new for the sender to look at; None: there is no room now.

        A record larger than the whole buffer is let in when the buffer is empty: the broker judges its size.
        """
        size = memory_of(value, key, headers)
        with self._lock:
            if self._used_bytes + size > self._buffer_bytes and self._used_bytes:
                return None
            batch = self._open.get(partition)
            news = False
            if batch is not None and batch.size + size > self._batch_bytes:
                self._seal(partition)
                batch = None
            if batch is None:
                news = True
                batch = self._open[partition] = Batch(partition, self._codec, now)
                self._unsettled[batch] = None
            receipt = batch.append(value, key, timestamp, headers)
            batch.reserved += size
            self._used_bytes += size
            if batch.size >= self._batch_bytes:
                self._seal(partition)
                news = True
            return receipt, news

    def has_open(self, partition: TopicPartition) -> bool:
        return partition in self._open

    def wait_for_room(self, size: int, timeout_s: float) -> bool:
        """For threads that block: until a record of `memory_of` this size fits; whether it was in time."""

        def fits() -> bool:
            return self._used_bytes == 0 or self._used_bytes + size <= self._buffer_bytes

        with self._lock:
            return self._lock.wait_for(fits, timeout_s)

    def seal_all(self) -> None:
        """What is gathered need not wait for more: a flush."""
        with self._lock:
            for partition in list(self._open):
                self._seal(partition)

    def unsettled(self) -> list[Batch]:
        with self._lock:
            return list(self._unsettled)

    def take(self, now: float) -> list[Batch]:
        """The batches to send now, one per partition; their partitions are busy until `settle` or `resume`."""
        with self._lock:
            while self._open:
                partition, batch = next(iter(self._open.items()))
                if now - batch.started_at < self._linger_s:
                    break
                self._seal(partition)
            taken = []
            for partition in self._ready:
                self._busy.add(partition)
                taken.append(self._queues[partition].popleft())
            self._ready.clear()
            return taken

    def due_in_s(self, now: float) -> float | None:
        """How long until `take` has more, if nothing else happens; None: for ever."""
        with self._lock:
            if self._ready:
                return 0.0
            for batch in self._open.values():
                return max(0.0, batch.started_at + self._linger_s - now)
            return None

    def put_back(self, batch: Batch) -> None:
        """To be tried again, before all others of its partition; which stays busy until `resume`."""
        with self._lock:
            self._queues[batch.partition].appendleft(batch)

    def resume(self, partition: TopicPartition) -> None:
        with self._lock:
            self._free(partition)

    def settle(self, batch: Batch) -> None:
        """The batch is delivered or failed."""
        with self._lock:
            self._used_bytes -= batch.reserved
            del self._unsettled[batch]
            self._free(batch.partition)
            self._lock.notify_all()

    def _seal(self, partition: TopicPartition) -> None:
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = deque()
        queue.append(self._open.pop(partition))
        if partition not in self._busy:
            self._ready[partition] = None

    def _free(self, partition: TopicPartition) -> None:
        self._busy.discard(partition)
        if self._queues[partition]:
            self._ready[partition] = None
        else:
            del self._queues[partition]
