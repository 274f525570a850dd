"""Sends record batches that the caller has encoded: several at once, each written once, in order per partition.

For programs that encode whole columns (Spark's tasks). The caller encodes a batch with the sender's `identity` and
the partition's `next_sequence`. Up to five batches of a partition are in flight, as many as a broker remembers to
recognise repeats. After a retriable error the sender waits for all batches of the partition, and sends those that
were not written again, one by one, under the same numbers. Without idempotence only one is in flight, and a batch of
unknown fate is sent again all the same, as Kafka's producers do: it may be written twice.

With a transactional id everything that is sent belongs to one transaction, which another client ends (`transaction`).
The batches must have the transactional bit. The cluster must have version 2 of transactions, where a partition is
added to a transaction by producing to it.
"""

import asyncio
import time
from collections import deque
from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.coordinator import TRANSACTION, Coordinator
from tidelog.client.deadline import Backoff
from tidelog.client.errors import BrokerError, ClientClosed, IncompatibleBroker
from tidelog.client.options import ProducerOptions
from tidelog.client.producing.identity import Identity, new_identity, sequence_after, take_over
from tidelog.client.producing.produce_requests import EncodedBatch, ProduceRequests
from tidelog.client.producing.transactions import FEATURE, VERSION_2, OpenTransaction, has_version_2
from tidelog.errors import InvalidInput, TidelogError, fresh
from tidelog.model import NO_SEQUENCE, Offset, TopicPartition
from tidelog.records.batch import ReadBuffer, read_header
from tidelog.wire.error_codes import ErrorCode

_REMEMBERED_BATCHES = 5  # of each producer and partition, by brokers


class WrittenRecords(NamedTuple):
    """The records written to one partition: their number, the first and the last offset; -1 with acks=0."""

    records: int
    first_offset: Offset
    last_offset: Offset


class _Queue:
    """One partition's batches."""

    def __init__(self) -> None:
        self.waiting: deque[EncodedBatch] = deque()
        self.worker: asyncio.Task[None] | None = None


class BatchSender:
    """Made by `Client.batch_sender`. All methods are for the event loop."""

    def __init__(
        self,
        cluster: Cluster,
        options: ProducerOptions,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
    ) -> None:
        if transactional_id is not None and not (transactional_id and options.is_idempotent):
            raise InvalidInput("a transaction needs a transactional id, acks='all' and idempotence")
        self._cluster = cluster
        self._options = options
        self._transactional_id = transactional_id
        self._requests = ProduceRequests(cluster, options, transactional_id)
        self._transaction_timeout_ms = transaction_timeout_ms
        self._sequences: dict[TopicPartition, int] = {}
        self._queues: dict[TopicPartition, _Queue] = {}
        self._unsent_bytes = 0
        self._room = asyncio.Condition()
        self._failure: TidelogError | None = None
        self.identity: Identity | None = None
        self.written: dict[TopicPartition, WrittenRecords] = {}

    async def start(self) -> None:
        """With a transactional id: fence its last producer, and abort the transaction that it left open."""
        if not self._options.is_idempotent:
            return
        id_ = self._transactional_id
        if id_ is None:
            self.identity = await self._cluster.retrying(lambda: new_identity(self._cluster))
            return
        coordinator = Coordinator(self._cluster, id_, kind=TRANSACTION)
        self.identity = await take_over(self._cluster, coordinator, id_, timeout_ms=self._transaction_timeout_ms)
        if not await has_version_2(self._cluster):
            raise IncompatibleBroker(
                f"taking over the transactional id {id_!r}: the cluster's {FEATURE} is below {VERSION_2}"
            )

    def next_sequence(self, partition: TopicPartition) -> int:
        """The base sequence that the next batch of the partition must have."""
        return NO_SEQUENCE if self.identity is None else self._sequences.get(partition, 0)

    async def send(self, partition: TopicPartition, batches: list[ReadBuffer]) -> None:
        """Send encoded batches; waits if too much is in flight. Raises the error of an earlier batch."""
        queue = self._queues.setdefault(partition, _Queue())
        for data in batches:
            header = read_header(data)
            if header.size != len(data):
                raise InvalidInput(
                    f"{len(data)} bytes, but the batch in them has {header.size}: hand over one by one"
                )
            batch = EncodedBatch(partition, header.record_count, data)
            if self.identity is not None:
                self._sequences[partition] = sequence_after(self.next_sequence(partition), batch.records)
            await self._wait_for_room(len(data))
            self._raise_failure()
            self._unsent_bytes += len(data)
            queue.waiting.append(batch)
            if queue.worker is None:
                queue.worker = asyncio.create_task(self._deliver(partition, queue))

    async def _wait_for_room(self, size: int) -> None:
        most = max(self._options.buffer_bytes - size, 0)
        async with self._room:
            await self._room.wait_for(lambda: self._failure is not None or self._unsent_bytes <= most)

    async def flush(self) -> dict[TopicPartition, WrittenRecords]:
        """Wait until everything is written; raises the first error."""
        async with self._room:
            await self._room.wait_for(lambda: self._failure is not None or not self._unsent_bytes)
        self._raise_failure()
        return dict(self.written)

    @property
    def transaction(self) -> OpenTransaction | None:
        """What any client needs to end the transaction; None without a transactional id, or if nothing was sent."""
        if self._transactional_id is None or self.identity is None or not self._queues:
            return None
        return OpenTransaction(self._transactional_id, *self.identity)

    async def close(self) -> None:
        """A transaction is left open, for another client to end, or until its timeout."""
        workers = [queue.worker for queue in self._queues.values() if queue.worker is not None]
        self._failure = self._failure or ClientClosed("the sender is closed")
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise fresh(self._failure)

    # --- one partition ---------------------------------------------------------------------------------------------

    async def _deliver(self, partition: TopicPartition, queue: _Queue) -> None:
        under_way: deque[tuple[EncodedBatch, asyncio.Task[Offset]]] = deque()
        window = _REMEMBERED_BATCHES if self._options.is_idempotent else 1
        try:
            while queue.waiting or under_way:
                while queue.waiting and len(under_way) < window:
                    batch = queue.waiting.popleft()
                    under_way.append((batch, asyncio.create_task(self._requests.send_one(batch))))
                batch, task = under_way[0]
                await asyncio.wait([task])
                if task.exception() is None:
                    under_way.popleft()
                    await self._settle(batch, task.result())
                else:
                    await asyncio.wait([task for _, task in under_way])
                    await self._repeat(partition, under_way)
        except TidelogError as error:
            async with self._room:
                self._failure = self._failure or fresh(error)
                self._room.notify_all()
        finally:
            queue.worker = None
            for _, task in under_way:
                task.cancel()
            await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)

    async def _repeat(
        self, partition: TopicPartition, under_way: "deque[tuple[EncodedBatch, asyncio.Task[Offset]]]"
    ) -> None:
        """All that was in flight has an outcome, and the first an error: send again what was not written."""
        began = time.monotonic()
        error = under_way[0][1].exception()
        overtaken = BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"producing to {partition}")
        if isinstance(error, BrokerError) and error.kafka_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            error = overtaken  # a later batch overtook it while the leader moved; if it is said again, it is true
        backoff = Backoff(self._cluster.options.retry_backoff_ms, self._cluster.options.retry_backoff_max_ms)
        while under_way:
            batch, task = under_way[0]
            if task.exception() is not None:
                offset: Offset | None = None
                while offset is None:
                    assert isinstance(error, TidelogError)
                    age_s = time.monotonic() - began
                    if not self._requests.may_pass(error, age_s):
                        raise error
                    self._cluster.forget(partition.topic)
                    await asyncio.sleep(backoff.next_s())
                    try:
                        offset = await self._requests.send_one(batch)
                    except TidelogError as again:
                        error = again
            else:
                offset = task.result()
            under_way.popleft()
            await self._settle(batch, offset)
            # Those behind it were refused because of the gap that it left: try them again, whatever their error.
            error = overtaken
            began = time.monotonic()
            backoff.reset()

    async def _settle(self, batch: EncodedBatch, base_offset: Offset) -> None:
        before = self.written.get(batch.partition, WrittenRecords(0, base_offset, -1))
        last = base_offset + batch.records - 1 if base_offset >= 0 else before.last_offset
        self.written[batch.partition] = WrittenRecords(before.records + batch.records, before.first_offset, last)
        async with self._room:
            self._unsent_bytes -= len(batch.data)
            self._room.notify_all()
