"""Sends record batches that are ready made, many at once, each written once and a partition's in order.

For programs that encode whole columns (Spark's tasks). The caller encodes a batch with the sender's `identity` and
the partition's `next_sequence`. Up to five of a partition are on their way at a time, as many as a broker can
tell repeats of. After an error that may pass, everything of the partition is waited for, and what was not written is
sent again, one by one, under the same numbers. Without idempotence only one is on its way, and a try whose fate is
unknown is repeated all the same, as Kafka's producers do it: it may be written twice.

With a transactional id everything that is sent belongs to one transaction, which others end: `transaction` says how.
The batches must have the transactional bit. The cluster must have transactions of version 2, where a partition is
added to a transaction by producing to it.
"""

import asyncio
import time
from collections import deque
from typing import NamedTuple

from tidelog.client.accumulator import Identity
from tidelog.client.cluster import Cluster
from tidelog.client.coordinator import TRANSACTION, Coordinator
from tidelog.client.deadline import Backoff
from tidelog.client.errors import BrokerError, ClientClosed, IncompatibleBroker, check, is_unknown_topic
from tidelog.client.options import ProducerOptions
from tidelog.client.transactions import FEATURE, OpenTransaction
from tidelog.errors import InvalidInput, TidelogError
from tidelog.model import NO_SEQUENCE, Offset, ProducerEpoch, ProducerId, TopicPartition
from tidelog.records.batch import ReadBuffer, read_header
from tidelog.wire.apis import BY_NAME
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

_PRODUCE = BY_NAME["Produce"]
_REMEMBERED_BATCHES = 5  # of each producer and partition, by brokers
_UNKNOWN_TOPIC_GRACE_S = 5.0
_SEQUENCE_MASK = 0x7FFF_FFFF
_TRANSACTIONS_2 = 2


class Written(NamedTuple):
    """Of one partition: how many records, and where the first and the last stand; -1 with acks=0."""

    records: int
    first_offset: Offset
    last_offset: Offset


class _Batch(NamedTuple):
    data: ReadBuffer
    records: int


class _Queue:
    """One partition's batches."""

    def __init__(self) -> None:
        self.waiting: deque[_Batch] = deque()
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
        self._transaction_timeout_ms = transaction_timeout_ms
        self._sequences: dict[TopicPartition, int] = {}
        self._queues: dict[TopicPartition, _Queue] = {}
        self._unsent_bytes = 0
        self._room = asyncio.Condition()
        self._failure: TidelogError | None = None
        self.identity: Identity | None = None
        self.written: dict[TopicPartition, Written] = {}

    async def start(self) -> None:
        """With a transactional id: whoever had it is fenced, and what they left open is aborted."""
        if not self._options.is_idempotent:
            return
        id_ = self._transactional_id
        request = InitProducerIdRequest(transactional_id=id_, transaction_timeout_ms=self._transaction_timeout_ms)
        coordinator = None if id_ is None else Coordinator(self._cluster, id_, kind=TRANSACTION)
        tried = "asking for a producer id" if id_ is None else f"taking over the transactional id {id_!r}"

        async def attempt() -> InitProducerIdResponse:
            response: InitProducerIdResponse = await (coordinator or self._cluster).request("InitProducerId", request)
            (coordinator.check if coordinator else check)(response.error_code, tried)
            return response

        answer = await self._cluster.retrying(attempt)
        self.identity = Identity(ProducerId(answer.producer_id), ProducerEpoch(answer.producer_epoch))
        if id_ is not None and (await self._cluster.connection()).features.get(FEATURE, 0) < _TRANSACTIONS_2:
            raise IncompatibleBroker(f"{tried}: the cluster's {FEATURE} is below {_TRANSACTIONS_2}")

    def next_sequence(self, partition: TopicPartition) -> int:
        """What the next batch of the partition must be numbered with."""
        return NO_SEQUENCE if self.identity is None else self._sequences.get(partition, 0)

    async def send(self, partition: TopicPartition, batches: list[ReadBuffer]) -> None:
        """Hand batches over; waits while too much is on its way. Raises what an earlier one failed with."""
        queue = self._queues.setdefault(partition, _Queue())
        for data in batches:
            batch = _Batch(data, read_header(data).record_count)
            if self.identity is not None:
                self._sequences[partition] = (self.next_sequence(partition) + batch.records) & _SEQUENCE_MASK
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

    async def flush(self) -> dict[TopicPartition, Written]:
        """Until everything is written; raises the first failure."""
        async with self._room:
            await self._room.wait_for(lambda: self._failure is not None or not self._unsent_bytes)
        self._raise_failure()
        return dict(self.written)

    @property
    def transaction(self) -> OpenTransaction | None:
        """What ends the transaction, from anywhere. None: nothing was sent, so none was begun, or there is no
        transactional id."""
        if self._transactional_id is None or self.identity is None or not self._queues:
            return None
        return OpenTransaction(self._transactional_id, *self.identity)

    async def close(self) -> None:
        """A transaction is left open, for others to end, or until its timeout."""
        workers = [queue.worker for queue in self._queues.values() if queue.worker is not None]
        self._failure = self._failure or ClientClosed("the sender is closed")
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # --- one partition ---------------------------------------------------------------------------------------------

    async def _deliver(self, partition: TopicPartition, queue: _Queue) -> None:
        under_way: deque[tuple[_Batch, asyncio.Task[Offset]]] = deque()
        window = _REMEMBERED_BATCHES if self._options.is_idempotent else 1
        try:
            while queue.waiting or under_way:
                while queue.waiting and len(under_way) < window:
                    batch = queue.waiting.popleft()
                    under_way.append((batch, asyncio.create_task(self._produce(partition, batch))))
                batch, task = under_way[0]
                await asyncio.wait([task])
                if task.exception() is None:
                    under_way.popleft()
                    await self._settle(partition, batch, task.result())
                else:
                    await asyncio.wait([task for _, task in under_way])
                    await self._repeat(partition, under_way)
        except TidelogError as error:
            async with self._room:
                self._failure = self._failure or error
                self._room.notify_all()
        finally:
            queue.worker = None
            for _, task in under_way:
                task.cancel()
            await asyncio.gather(*(task for _, task in under_way), return_exceptions=True)

    async def _repeat(
        self, partition: TopicPartition, under_way: "deque[tuple[_Batch, asyncio.Task[Offset]]]"
    ) -> None:
        """All that was under way has come back, the first with an error."""
        began = time.monotonic()
        error = under_way[0][1].exception()
        overtaken = BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"producing to {partition}")
        if isinstance(error, BrokerError) and error.kafka_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            error = overtaken  # by a batch behind it, if the leader moved meanwhile; said again, it is true
        backoff = Backoff(self._cluster.options.retry_backoff_ms, self._cluster.options.retry_backoff_max_ms)
        while under_way:
            batch, task = under_way[0]
            if task.exception() is not None:
                offset: Offset | None = None
                while offset is None:
                    assert isinstance(error, TidelogError)
                    age_s = time.monotonic() - began
                    if not self._is_worth_another_try(error, age_s):
                        raise error
                    self._cluster.forget(partition.topic)
                    await asyncio.sleep(backoff.next_s())
                    try:
                        offset = await self._produce(partition, batch)
                    except TidelogError as again:
                        error = again
            else:
                offset = task.result()
            under_way.popleft()
            await self._settle(partition, batch, offset)
            # Those behind it were refused for the gap that it left: they are tried again whatever they said.
            error = overtaken
            began = time.monotonic()
            backoff.reset()

    def _is_worth_another_try(self, error: TidelogError, age_s: float) -> bool:
        if age_s * 1000 >= self._options.delivery_timeout_ms:
            return False
        if is_unknown_topic(error) and age_s > _UNKNOWN_TOPIC_GRACE_S:
            return False
        return error.retriable

    async def _settle(self, partition: TopicPartition, batch: _Batch, base_offset: Offset) -> None:
        before = self.written.get(partition, Written(0, base_offset, -1))
        last = base_offset + batch.records - 1 if base_offset >= 0 else before.last_offset
        self.written[partition] = Written(before.records + batch.records, before.first_offset, last)
        async with self._room:
            self._unsent_bytes -= len(batch.data)
            self._room.notify_all()

    async def _produce(self, partition: TopicPartition, batch: _Batch) -> Offset:
        cluster, options = self._cluster, self._options
        tried = f"producing {batch.records} record{'s' * (batch.records != 1)} to {partition}"
        leader = await cluster.leader(partition)
        data = PartitionProduceData(index=partition.partition, records=batch.data)
        topic = TopicProduceData(
            name=partition.topic, topic_id=cluster.topic_id(partition.topic), partition_data=[data]
        )
        timeout_ms = cluster.options.request_timeout_ms
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=options.acks_code,
            timeout_ms=timeout_ms,
            topic_data=[topic],
        )
        connection = await cluster.connection(leader)
        if options.acks == 0:
            await connection.send(_PRODUCE, request, timeout_s=timeout_ms / 1000)
            return -1
        response: ProduceResponse = await connection.request(_PRODUCE, request, timeout_s=timeout_ms / 1000)
        if not response.responses or not response.responses[0].partition_responses:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, tried, "the reply does not mention the partition")
        answer = response.responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return -1  # written by an earlier try; the broker does not remember where
        check(answer.error_code, tried, answer.error_message)
        return answer.base_offset
