"""A producer: gathers records into batches (`accumulator`); each is written once, or its error is reported.

One batch per partition is in flight at a time. That keeps the order of a partition when batches are sent again, and
the sequence numbers simple: a number is used up only by a batch that was written, or may have been. If it may have
been, the next number is not known, so the producer takes a new identity.
"""

import asyncio
import random
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Self, TypeAlias

from tidelog.client.cluster import Cluster, TopicMetadata
from tidelog.client.content import AnyHeaders, Content, Moment, as_bytes, as_headers, as_timestamp
from tidelog.client.deadline import Backoff
from tidelog.client.errors import (
    BrokerError,
    ClientClosed,
    ConnectionLost,
    DeliveryFailed,
    RequestTimedOut,
)
from tidelog.client.options import ProducerOptions
from tidelog.client.producing.accumulator import Accumulator, Batch, Receipt
from tidelog.client.producing.identity import Identity, new_identity, sequence_after
from tidelog.client.producing.partitioner import Sticky, partition_of_key
from tidelog.client.producing.produce_requests import EncodedBatch, Placed, ProduceRequests
from tidelog.errors import TidelogError
from tidelog.model import TopicPartition
from tidelog.records.record import Headers
from tidelog.wire.error_codes import ErrorCode

Prepared: TypeAlias = tuple[str, int | None, bytes | None, bytes | None, int, Headers]
"""A record with everything checked and encoded: topic, partition, value, key, timestamp, headers."""

_FAILURES_KEPT = 10_000  # batches; enough to say how much was lost
_IDENTITY_LOST = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
)


class Producer:
    """Made by `AsyncClient.producer`. `send` and `flush` are for the event loop; `try_send` for any thread."""

    def __init__(self, cluster: Cluster, options: ProducerOptions, transactional_id: str | None = None) -> None:
        self._cluster = cluster
        self._transactional_id = transactional_id
        self._requests = ProduceRequests(cluster, options, transactional_id)
        self._options = options
        self._accumulator = Accumulator(
            codec=options.compression,
            batch_bytes=options.batch_bytes,
            buffer_bytes=options.buffer_bytes,
            linger_s=options.linger_ms / 1000,
        )
        self._sticky = Sticky(random.Random())  # noqa: S311
        self._identity: Identity | None = None
        self._identity_lock = asyncio.Lock()
        self._sequences: dict[TopicPartition, tuple[Identity, int]] = {}
        self._backoffs: dict[TopicPartition, Backoff] = {}
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._wake = asyncio.Event()
        self._is_woken = False
        self._room = asyncio.Event()
        self._deliveries: set[asyncio.Task[None]] = set()
        self._unseen_failures: deque[Batch] = deque(maxlen=_FAILURES_KEPT)
        self.is_closed = False
        self._sender = asyncio.create_task(self._send_until_closed(), name="tidelog producer")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        await self.close(flush=error_type is None)

    # --- taking records in ----------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: Content,
        *,
        key: Content = None,
        headers: AnyHeaders = (),
        partition: int | None = None,
        timestamp: Moment | None = None,
    ) -> Receipt:
        """Add a record to the next batch; waits only if the buffer is full. Awaiting the receipt waits until the
        record is written."""
        record = prepare(topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        while True:
            self._room.clear()
            taken = self.try_send(record)
            if taken is not None:
                receipt, news = taken
                if news:
                    await asyncio.sleep(0)  # let the sender run, even if the caller never waits for anything
                return receipt
            if self._cluster.cached_topic(topic) is None:
                await self.learn(topic)
            else:
                await self._room.wait()

    def try_send(self, record: Prepared) -> tuple[Receipt, bool] | None:
        """As `send`, from any thread. None: there is no room, or `learn` must look the topic up first."""
        topic_name, number, value, key, timestamp, headers = record
        if self.is_closed:
            raise ClientClosed("the producer is closed")
        topic = self._cluster.cached_topic(topic_name)
        if topic is None:
            return None
        partition = self._partition(topic, number, key)
        taken = self._accumulator.append(partition, value, key, timestamp, headers, time.monotonic())
        if taken is not None and taken[1]:
            self._notify()
        return taken

    async def learn(self, topic: str) -> None:
        """Look up the topic's partitions; the broker may create the topic, if it is configured to."""
        await self._cluster.topic(topic, create=True)

    @property
    def accumulator(self) -> Accumulator:
        return self._accumulator

    def _partition(self, topic: TopicMetadata, number: int | None, key: bytes | None) -> TopicPartition:
        name = topic.name
        if number is not None:
            if number not in topic.partitions:
                has = f"the topic has {len(topic.partitions)} partition{'s' * (len(topic.partitions) != 1)}"
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"producing to {name}-{number}", has)
            return TopicPartition(name, number)
        if key is not None:
            return TopicPartition(name, partition_of_key(key, len(topic.partitions)))
        current = self._sticky.current(name)
        if current is None or not self._accumulator.has_open(TopicPartition(name, current)):
            current = self._sticky.move_on(name, topic.led or list(topic.partitions))
        return TopicPartition(name, current)

    def _notify(self) -> None:
        """Wake the sender. The flag saves a wake-up across threads for every batch but the first."""
        if threading.get_ident() == self._loop_thread:
            self._wake.set()
        elif not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._wake.set)

    @property
    def has_failures(self) -> bool:
        """True if records were not delivered and nobody asked for their receipts; `flush` raises their error."""
        return bool(self._unseen_failures)

    async def flush(self) -> None:
        """Wait until everything sent so far is delivered or has failed. Raises `DeliveryFailed` for records that were
        not delivered, unless somebody asked for their receipts."""
        self._accumulator.seal_all()
        self._notify()
        outcomes = [asyncio.wrap_future(batch.outcome) for batch in self._accumulator.unsettled()]
        await asyncio.gather(*outcomes, return_exceptions=True)
        failures = [batch for batch in self._unseen_failures if not batch.error_was_seen]
        self._unseen_failures.clear()
        if failures:
            first = failures[0].outcome.exception()
            assert first is not None
            raise DeliveryFailed(sum(batch.count for batch in failures), first)

    async def close(self, *, flush: bool = True) -> None:
        """`flush=False` drops records that are not in flight yet."""
        if self.is_closed:
            return
        try:
            if flush:
                await self.flush()
        finally:
            self.is_closed = True
            for task in (self._sender, *self._deliveries):
                task.cancel()
            await asyncio.gather(self._sender, *self._deliveries, return_exceptions=True)
            for batch in self._accumulator.unsettled():
                batch.failed(ClientClosed("the producer was closed before the record was delivered"))

    # --- sending --------------------------------------------------------------------------------------------------

    async def _send_until_closed(self) -> None:
        while True:
            self._wake.clear()
            self._is_woken = False  # before `take`: an append after it wakes us again
            now = time.monotonic()
            batches = self._accumulator.take(now)
            if batches:
                delivery = asyncio.create_task(self._deliver(batches))
                self._deliveries.add(delivery)
                delivery.add_done_callback(self._deliveries.discard)
            try:
                async with asyncio.timeout(self._accumulator.due_in_s(now)):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _deliver(self, batches: list[Batch]) -> None:
        try:
            await self._try(batches)
        except Exception as error:
            for batch in batches:  # a bug of ours must not leave callers waiting for ever
                if not batch.outcome.done():
                    self._give_up(batch, error)
            raise

    async def _try(self, batches: list[Batch]) -> None:
        by_leader: dict[int, list[Batch]] = {}
        for batch in batches:
            try:
                if self._options.is_idempotent and batch.identity is None:
                    self._number(batch, await self._own_identity())
                by_leader.setdefault(await self._cluster.leader(batch.partition), []).append(batch)
            except TidelogError as error:
                self._failed(batch, error)
        requests = [(node, part) for node, group in by_leader.items() for part in self._split(group)]
        await asyncio.gather(*(self._send(node, part) for node, part in requests))

    def _split(self, batches: list[Batch]) -> Iterable[list[Batch]]:
        part: list[Batch] = []
        size = 0
        for batch in batches:
            if part and size + batch.size > self._options.request_bytes:
                yield part
                part, size = [], 0
            part.append(batch)
            size += batch.size
        yield part

    async def _send(self, node: int, batches: list[Batch]) -> None:
        encoded = [EncodedBatch(batch.partition, batch.count, batch.encoded()) for batch in batches]
        for batch, outcome in zip(batches, await self._requests.send(node, encoded), strict=True):
            if isinstance(outcome, Placed):
                self._delivered(batch, outcome)
            else:
                self._failed(batch, outcome)

    def _delivered(self, batch: Batch, placed: Placed) -> None:
        self._backoffs.pop(batch.partition, None)
        if batch.identity is not None:
            identity, sequence = self._sequences[batch.partition]
            if identity == batch.identity:
                self._sequences[batch.partition] = identity, sequence_after(sequence, batch.count)
        batch.delivered(placed)
        self._settled(batch)

    def _failed(self, batch: Batch, error: TidelogError) -> None:
        """A try has failed: try again later, or give the batch up."""
        age_s = time.monotonic() - batch.started_at
        if isinstance(error, ConnectionLost | RequestTimedOut):
            batch.may_be_written = True
        if self._is_worth_another_try(batch, error, age_s):
            self._cluster.forget(batch.partition.topic)
            backoff = self._backoffs.get(batch.partition)
            if backoff is None:
                options = self._cluster.options
                backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
                self._backoffs[batch.partition] = backoff
            self._accumulator.put_back(batch)
            self._loop.call_later(backoff.next_s(), self._resume, batch.partition)
            return
        if batch.identity is not None and (batch.may_be_written or is_identity_lost(error)):
            self._doubt_identity()
        self._give_up(batch, error)

    def _give_up(self, batch: Batch, error: Exception) -> None:
        self._backoffs.pop(batch.partition, None)
        batch.failed(error)
        if not batch.error_was_seen:
            self._unseen_failures.append(batch)
        self._settled(batch)

    def _is_worth_another_try(self, batch: Batch, error: TidelogError, age_s: float) -> bool:
        if self.is_closed or self._requests.is_overdue(age_s):
            return False
        if is_identity_lost(error) and batch.identity is not None and not batch.may_be_written:
            # The broker no longer knows the producer, and the batch is not written: it may be sent under a new
            # identity.
            if self._identity == batch.identity:
                self._identity = None
            batch.identity = None
            return True
        return self._requests.may_pass(error, age_s)

    def _resume(self, partition: TopicPartition) -> None:
        self._accumulator.resume(partition)
        self._wake.set()

    def _settled(self, batch: Batch) -> None:
        self._accumulator.settle(batch)
        self._room.set()
        self._wake.set()

    # --- idempotence ----------------------------------------------------------------------------------------------

    async def _own_identity(self) -> Identity:
        async with self._identity_lock:
            if self._identity is None:
                self._identity = await new_identity(self._cluster)
            return self._identity

    def _doubt_identity(self) -> None:
        self._identity = None

    def _number(self, batch: Batch, identity: Identity) -> None:
        known, sequence = self._sequences.get(batch.partition, (identity, 0))
        if known != identity:
            sequence = 0
        self._sequences[batch.partition] = identity, sequence
        batch.number(identity, sequence, transactional=self._transactional_id is not None)


def prepare(
    topic: str,
    value: Content,
    *,
    key: Content = None,
    headers: AnyHeaders = (),
    partition: int | None = None,
    timestamp: Moment | None = None,
) -> Prepared:
    return (
        topic,
        partition,
        as_bytes(value),
        as_bytes(key),
        as_timestamp(timestamp),
        as_headers(headers) if headers else (),
    )


def is_identity_lost(error: TidelogError) -> bool:
    return isinstance(error, BrokerError) and error.kafka_code in _IDENTITY_LOST
