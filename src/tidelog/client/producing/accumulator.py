"""Gathers records into batches per partition, in order and within a memory limit. No I/O and no clock.

    open      takes records; at most one batch per partition
    queued    full, or older than linger, or flushed; first in, first out per partition
    taken     in flight; its partition is busy, so that later batches cannot overtake a retry
    settled   delivered or failed; its memory is free again

Any thread may append; the event loop's thread takes and settles. Everything takes amortized constant time per batch,
whatever the number of partitions.
"""

import asyncio
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future
from threading import Condition
from typing import NamedTuple

from tidelog.client.producing.identity import Identity
from tidelog.client.producing.produce_requests import Placed
from tidelog.errors import fresh
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.records.batch import CRC_START, HEADER, TRANSACTIONAL_BIT, read_header
from tidelog.records.compression import Codec
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder, Headers

_RECORD_OVERHEAD = 100  # what a receipt and the list entries around a small record take


class Delivered(NamedTuple):
    """Where a record was written. With acks=0 the broker does not say: the offset is -1."""

    topic: str
    partition: int
    offset: Offset
    timestamp: TimestampMs


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
        self._outcome: Future[Placed] = Future()
        self._outcome.set_running_or_notify_cancel()  # cancelling one wait for it must not cancel it for the others

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
        """The bytes to send; compressed once, however often they are sent."""
        if self._builder is not None:
            self._encoded, self._builder = self._builder.build(), None
        return self._encoded

    def number(self, identity: Identity, base_sequence: int, *, transactional: bool = False) -> None:
        """Write identity and sequence into the batch, once, before the first try: retries must carry the same."""
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
    def outcome(self) -> "Future[Placed]":
        return self._outcome

    def delivered(self, placed: Placed) -> None:
        self._encoded = bytearray()
        self._outcome.set_result(placed)

    def failed(self, error: BaseException) -> None:
        self._builder, self._encoded = None, bytearray()
        self._outcome.set_exception(error)


class Receipt:
    """The outcome of one record: `await` it, or call `result()` from another thread, to learn where it was written.

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
        """Wait for the outcome. Blocks the calling thread; do not call it in an event loop."""
        self._batch.error_was_seen = True
        outcome = self._batch.outcome
        error = outcome.exception(timeout_s)
        if error is not None:
            raise fresh(error)  # the batch keeps it, for the receipts of its other records
        return self._delivered(outcome.result())

    def __await__(self) -> Generator[None, None, Delivered]:
        if self._batch.outcome.done():
            return self.result()
        self._batch.error_was_seen = True
        placed = yield from asyncio.wrap_future(self._batch.outcome).__await__()
        return self._delivered(placed)

    def _delivered(self, placed: Placed) -> Delivered:
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
        """The receipt, and whether the sender must be woken; None if there is no room now.

        A record larger than the whole buffer is accepted when the buffer is empty: the broker decides on its size.
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
        """Block until a record of this size (`memory_of`) fits; False if that took longer than the timeout."""

        def fits() -> bool:
            return self._used_bytes == 0 or self._used_bytes + size <= self._buffer_bytes

        with self._lock:
            return self._lock.wait_for(fits, timeout_s)

    def seal_all(self) -> None:
        """Queue all open batches: a flush."""
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
        """When `take` will have more without further appends; None: never."""
        with self._lock:
            if self._ready:
                return 0.0
            for batch in self._open.values():
                return max(0.0, batch.started_at + self._linger_s - now)
            return None

    def put_back(self, batch: Batch) -> None:
        """Queue a batch again, before all others of its partition, which stays busy until `resume`."""
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
