"""The client for programs without an event loop: the same, run by a thread of its own.

    with tidelog.connect() as client:
        client.produce("orders", "an order", key="customer 7")
        for record in client.consume("orders", follow=False):
            print(record.offset, record.value)

Everything here may be called from any thread, but a stream by one at a time.
"""

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

from tidelog.client.accumulator import Delivered, Identity, Receipt, memory_of
from tidelog.client.admin import ClusterInfo, ConfigEntry, PartitionInfo, TopicInfo
from tidelog.client.asynchronous import AsyncClient
from tidelog.client.batch_sender import BatchSender, Written
from tidelog.client.cluster import Cluster
from tidelog.client.consumer import ConsumedRecord, Member, Source, records_of
from tidelog.client.content import AnyHeaders, Content, Moment
from tidelog.client.errors import ClientClosed
from tidelog.client.fetcher import Fetched
from tidelog.client.group_admin import CommittedOffset, GroupDescription, GroupListing
from tidelog.client.log_dirs import LogPlace, log_places
from tidelog.client.offsets import OffsetAtTime, Start
from tidelog.client.options import (
    DEFAULT_BOOTSTRAP,
    Acks,
    ClientOptions,
    FetchOptions,
    GroupOptions,
    ProducerOptions,
    parse_bootstrap,
)
from tidelog.client.producer import Producer, prepare
from tidelog.client.ranges import RangeReader, RawChunk
from tidelog.client.tables import Freshness, TableInfo, TableValue
from tidelog.client.transaction_admin import ProducerInPartition, TransactionDescription, TransactionListing
from tidelog.client.transactions import OpenTransaction, TransactionalProducer
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.records.batch import ReadBuffer

T = TypeVar("T")

_ROOM_CHECK_S = 1.0  # a thread that waits for room looks up so often, for Ctrl-C and a closed producer


def connect(bootstrap: str = DEFAULT_BOOTSTRAP, options: ClientOptions | None = None) -> "Client":
    """A client of the cluster that one of these addresses (`host:port`, separated by commas) belongs to."""
    return Client(bootstrap, options)


class LoopThread:
    """An event loop in a thread of its own, that other threads have coroutines run in."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="tidelog client", daemon=True)
        self._thread.start()
        self._is_stopped = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. An interrupt of the waiting thread (Ctrl-C) cancels it."""
        if self._is_stopped:
            work.close()
            raise ClientClosed("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise ClientClosed("the client was closed meanwhile") from None
        except BaseException:
            future.cancel()
            raise

    def stop(self, last: Coroutine[Any, Any, None]) -> None:
        """Do this as the last thing, and end. Also from the thread itself, where the garbage collector may run."""
        if self._is_stopped:
            last.close()
            return
        self._is_stopped = True

        async def end() -> None:
            try:
                await last
            finally:
                self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run_loop(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _stop(thread: LoopThread, client: AsyncClient) -> None:
    thread.stop(client.cluster.close())


class BlockingProducer:
    """`with client.producer() as producer: producer.send("orders", b"...")`; the end of the block delivers all."""

    def __init__(self, client: "Client", thread: LoopThread, producer: Producer, cluster: Cluster) -> None:
        self._client = client  # a client that nobody holds any more ends
        self._thread = thread
        self._producer = producer
        self._cluster = cluster

    def send(
        self,
        topic: str,
        value: Content,
        *,
        key: Content = None,
        headers: AnyHeaders = (),
        partition: int | None = None,
        timestamp: Moment | None = None,
    ) -> Receipt:
        """Gather a record; waits only if the buffer is full. `receipt.result()` waits until it is written."""
        record = prepare(topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        while True:
            taken = self._producer.try_send(record)
            if taken is not None:
                return taken[0]
            if self._cluster.cached_topic(topic) is None:
                self._thread.run(self._producer.learn(topic))
            else:
                _, _, encoded_value, encoded_key, _, encoded_headers = record
                size = memory_of(encoded_value, encoded_key, encoded_headers)
                self._producer.accumulator.wait_for_room(size, _ROOM_CHECK_S)

    @property
    def has_failures(self) -> bool:
        """Records were not delivered, and nobody asked for their receipts; `flush` would say so."""
        return self._producer.has_failures

    def flush(self) -> None:
        """Until everything sent so far is delivered. Raises `DeliveryFailed` for records that were not, unless
        somebody asked for their receipts."""
        self._thread.run(self._producer.flush())

    def close(self, *, flush: bool = True) -> None:
        with suppress(ClientClosed):  # then the client has closed it
            self._thread.run(self._producer.close(flush=flush))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self.close(flush=error_type is None)


class BlockingTransactionalProducer(BlockingProducer):
    """`tidelog.client.transactions` for threads: `init`, then `with producer.transaction(): producer.send(...)`."""

    _producer: TransactionalProducer

    def init(self) -> None:
        """Take the transactional id over: whoever had it is fenced, and what they left open is aborted."""
        self._thread.run(self._producer.init())

    def begin(self) -> None:
        self._producer.begin()

    def commit(self) -> None:
        """Deliver everything and commit. Raises `TransactionFailed` if something was not delivered: then abort."""
        self._thread.run(self._producer.commit())

    def abort(self) -> None:
        self._thread.run(self._producer.abort())

    def send_offsets(self, offsets: Mapping[TopicPartition, Offset], group: str | Member) -> None:
        """The next offsets to read become the group's if the transaction commits."""
        self._thread.run(self._producer.send_offsets(offsets, group))

    def hand_over(self) -> OpenTransaction:
        """Deliver everything and say how others can end the transaction. This producer is done with it: close it."""
        return self._thread.run(self._producer.hand_over())

    @contextmanager
    def transaction(self) -> Iterator["BlockingTransactionalProducer"]:
        """`begin` and `commit` around a block; an exception in it, or a failed delivery, aborts."""
        self.begin()
        try:
            yield self
            self.commit()
        except BaseException:
            if self._producer.is_open:
                self.abort()
            raise

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._thread.run(self._producer.__aexit__(error_type))


class BlockingBatchSender:
    """`with client.batch_sender() as sender: sender.send(...); sender.flush()`; see `batch_sender`."""

    def __init__(self, client: "Client", thread: LoopThread, sender: BatchSender) -> None:
        self._client = client  # a client that nobody holds any more ends
        self._thread = thread
        self._sender = sender

    @property
    def identity(self) -> Identity | None:
        return self._sender.identity

    @property
    def transaction(self) -> OpenTransaction | None:
        """What ends the transaction, from anywhere; None: none was begun."""
        return self._sender.transaction

    def next_sequence(self, partition: TopicPartition) -> int:
        return self._sender.next_sequence(partition)

    def send(self, partition: TopicPartition, batches: Sequence[ReadBuffer]) -> None:
        self._thread.run(self._sender.send(partition, list(batches)))

    def flush(self) -> dict[TopicPartition, Written]:
        return self._thread.run(self._sender.flush())

    def close(self) -> None:
        with suppress(ClientClosed):
            self._thread.run(self._sender.close())

    def __enter__(self) -> "BlockingBatchSender":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BlockingStream(Iterator[ConsumedRecord]):
    """An iterator of records. `close` it, or use it as a context; in a group that commits and leaves."""

    def __init__(self, client: "Client", thread: LoopThread, source: Source, limit: int | None) -> None:
        self._client = client  # a client that nobody holds any more ends
        self._thread = thread
        self._source = source
        self._left = limit
        self._records = self._take()

    def __iter__(self) -> "BlockingStream":
        return self

    def __next__(self) -> ConsumedRecord:
        return next(self._records)

    def _take(self) -> Iterator[ConsumedRecord]:
        source = self._source
        while not source.is_done and self._left != 0:
            for fetched in self._thread.run(source.poll()):
                for record in records_of(fetched, source):
                    yield record
                    if self._left is not None:
                        self._left -= 1
                        if self._left == 0:
                            source.consumed(fetched.partition, record.offset + 1)
                            return

    def chunks(self) -> Iterator[list[ConsumedRecord]]:
        """In place of iterating over records: what arrived together, for work that is cheaper in one go.

        A chunk is of one partition, and counts as consumed when the next one is asked for.
        """
        source = self._source
        while not source.is_done and self._left != 0:
            for fetched in self._thread.run(source.poll()):
                partition = fetched.partition
                chunk = [
                    ConsumedRecord(*partition, offset, timestamp, key, value, headers)
                    for offset, timestamp, key, value, headers in islice(fetched.records(), self._left)
                ]
                yield chunk
                if self._left is not None:
                    self._left -= len(chunk)
                    if self._left == 0:
                        source.consumed(partition, chunk[-1].offset + 1)
                        return
                source.consumed(partition, fetched.next_offset)

    def poll(self, timeout_s: float = 0.5) -> list[Fetched]:
        """In place of iterating: batches as they are stored. An empty list: nothing in time, or done."""
        return self._thread.run(self._source.poll(timeout_s))

    @property
    def is_done(self) -> bool:
        return self._source.is_done

    @property
    def member(self) -> Member | None:
        """For `BlockingTransactionalProducer.send_offsets`; None outside of a group."""
        return self._source.member

    def commit(self) -> None:
        """For a group: keep what was consumed. The record in hand is not yet; ask for the next one first."""
        self._thread.run(self._source.commit())

    def close(self) -> None:
        with suppress(ClientClosed):  # then the client has closed it
            self._thread.run(self._source.close())

    def __enter__(self) -> "BlockingStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Client:
    """Made by `tidelog.connect`. Close it, or use it as a context."""

    def __init__(self, bootstrap: str = DEFAULT_BOOTSTRAP, options: ClientOptions | None = None) -> None:
        parse_bootstrap(bootstrap)  # before there is a thread that would have to be stopped
        self._thread = LoopThread()
        self._client = self._thread.run(_made(bootstrap, options))
        self._stop = weakref.finalize(self, _stop, self._thread, self._client)
        try:
            self._thread.run(self._client.cluster.start())
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes what was opened with it too: producers deliver what they have, members leave their groups."""
        try:
            with suppress(ClientClosed):
                self._thread.run(self._client.close())
        finally:
            self._stop()

    # --- producing ------------------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: Content,
        *,
        key: Content = None,
        headers: AnyHeaders = (),
        partition: int | None = None,
        timestamp: Moment | None = None,
    ) -> Delivered:
        """One record, written when this returns. For many, take a `producer`."""
        return self._thread.run(
            self._client.produce(topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        )

    def produce_batches(self, topic: str, partition: int, batches: ReadBuffer, *, acks: Acks = "all") -> Offset:
        """Record batches that are ready (`tidelog.records`), as they are; the offset of the first."""
        return self._thread.run(self._client.produce_batches(TopicPartition(topic, partition), batches, acks=acks))

    def producer(self, options: ProducerOptions | None = None) -> BlockingProducer:
        async def made() -> Producer:
            return self._client.producer(options)

        return BlockingProducer(self, self._thread, self._thread.run(made()), self._client.cluster)

    def transactional_producer(
        self,
        transactional_id: str,
        options: ProducerOptions | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
    ) -> "BlockingTransactionalProducer":
        """Call its `init` first. A transaction that is not ended after its timeout is aborted by the broker."""

        async def made() -> TransactionalProducer:
            return self._client.transactional_producer(
                transactional_id, options, transaction_timeout_ms=transaction_timeout_ms
            )

        return BlockingTransactionalProducer(self, self._thread, self._thread.run(made()), self._client.cluster)

    # --- transactions of others -----------------------------------------------------------------------------------

    def transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        return self._thread.run(
            self._client.transactions.transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
            )
        )

    def transaction(self, transactional_id: str) -> TransactionDescription:
        return self._thread.run(self._client.transactions.describe(transactional_id))

    def end_transaction(self, transaction: OpenTransaction, *, commit: bool) -> None:
        """End a transaction that another producer has opened. Asking again for the same is harmless; asking for the
        other outcome afterwards, or after the producer was fenced, is refused."""
        self._thread.run(self._client.transactions.end(transaction, commit=commit))

    def decide_transactions(self, scope: str, number: int, transactions: Iterable[OpenTransaction]) -> bool:
        """Commit all of these transactions or none, once for each number of the scope. False: the number, or a higher
        one, was decided before, and these transactions are as they were. Asking again is harmless."""
        return self._thread.run(self._client.transactions.decide(scope, number, transactions))

    def decision(self, scope: str) -> int:
        """The highest number of the scope that was decided, or -1."""
        return self._thread.run(self._client.transactions.decision(scope))

    def fence_producer(self, transactional_id: str) -> None:
        """Abort what the id has open, and refuse whatever its producer still sends."""
        self._thread.run(self._client.transactions.fence(transactional_id))

    def producers(self, partitions: Iterable[TopicPartition]) -> list[ProducerInPartition]:
        """The idempotent producers that partitions remember, and where their open transactions began."""
        return self._thread.run(self._client.transactions.producers(partitions))

    def hanging_transactions(self, partitions: Iterable[TopicPartition] | None = None) -> list[ProducerInPartition]:
        """Transactions that are open in a partition, but that no coordinator will end: it does not know them."""
        return self._thread.run(self._client.transactions.hanging(partitions))

    def abort_in(self, producer: ProducerInPartition) -> None:
        """Write an abort marker into one partition, whatever the coordinator says: for what hangs."""
        self._thread.run(self._client.transactions.abort_in(producer))

    # --- tables ---------------------------------------------------------------------------------------------------

    def get(
        self,
        topic: str,
        key: Content,
        *,
        partition: int | None = None,
        at_least: Freshness = "any",
        timeout_ms: int | None = None,
    ) -> TableValue:
        """The last value of a key, from the topic's table (`tidelog.table=true`); see `AsyncClient.get`."""
        return self._thread.run(
            self._client.get(topic, key, partition=partition, at_least=at_least, timeout_ms=timeout_ms)
        )

    def get_many(
        self,
        topic: str,
        keys: Sequence[Content],
        *,
        partition: int | None = None,
        at_least: Freshness = "any",
        timeout_ms: int | None = None,
    ) -> list[TableValue]:
        return self._thread.run(
            self._client.get_many(topic, keys, partition=partition, at_least=at_least, timeout_ms=timeout_ms)
        )

    def table(self, topic: str) -> list[TableInfo]:
        """How far the topic's table is, by partition."""
        return self._thread.run(self._client.table(topic))

    def batch_sender(
        self,
        options: ProducerOptions | None = None,
        *,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
    ) -> "BlockingBatchSender":
        """For batches that the caller encodes: many at once, each written once, or all in a transaction that others
        end."""

        async def made() -> BatchSender:
            wanted = options or ProducerOptions()
            sender = BatchSender(self._client.cluster, wanted, transactional_id, transaction_timeout_ms)
            await sender.start()
            return sender

        return BlockingBatchSender(self, self._thread, self._thread.run(made()))

    # --- consuming ------------------------------------------------------------------------------------------------

    def consume(
        self,
        topics: str | Sequence[str],
        *,
        partitions: Iterable[int] | None = None,
        start: Start | Mapping[TopicPartition, Offset] = "earliest",
        follow: bool = True,
        limit: int | None = None,
        group: str | None = None,
        fetch: FetchOptions | None = None,
        group_options: GroupOptions | None = None,
    ) -> BlockingStream:
        """An iterator of records.

        `start` says where each partition begins: `earliest`, `latest`, an offset, -n for the last n, a datetime; in a
        `group`, only for partitions that it has no offset of. Not `follow`: ends when everything that was there at
        the start has been read. `limit` ends it after so many records.
        """
        source = self._thread.run(
            self._client.open_source(
                topics,
                partitions=partitions,
                start=start,
                follow=follow,
                group=group,
                fetch=fetch,
                group_options=group_options,
            )
        )
        return BlockingStream(self, self._thread, source, limit)

    def read_range(
        self,
        topic: str,
        partition: int,
        start: Offset,
        end: Offset,
        *,
        fetch: FetchOptions | None = None,
        topic_id: bytes | None = None,
    ) -> Iterator[RawChunk]:
        """The batches from `start` to `end` as they are stored, for a decoder of one's own; see `ranges`."""

        async def made() -> RangeReader:
            place = TopicPartition(topic, partition)
            return RangeReader(self._client.cluster, place, start, end, fetch or FetchOptions(), topic_id)

        reader = self._thread.run(made())
        try:
            while (chunk := self._thread.run(reader.next())) is not None:
                yield chunk
        finally:
            with suppress(ClientClosed):
                self._thread.run(reader.close())

    # --- topics and records ---------------------------------------------------------------------------------------

    def topics(self) -> list[TopicInfo]:
        return self._thread.run(self._client.admin.topics())

    def topic(self, name: str) -> TopicInfo:
        return self._thread.run(self._client.admin.topic(name))

    def partitions(self, topic: str) -> list[PartitionInfo]:
        """With first and next offsets."""
        return self._thread.run(self._client.admin.partitions(topic))

    def partition_count(self, topic: str, *, create: bool = False) -> int:
        """`create`: the broker may create the topic, if it is set to do so."""
        return len(self._thread.run(self._client.cluster.topic(topic, create=create)).partitions)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Returns when the topic can be used. Numbers that are not given are the broker's defaults."""
        self._thread.run(
            self._client.admin.create_topic(
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
                validate_only=validate_only,
            )
        )

    def delete_topic(self, name: str) -> None:
        self._thread.run(self._client.admin.delete_topic(name))

    def add_partitions(self, topic: str, total: int) -> None:
        """Grow a topic to `total` partitions. Keys then go to other partitions than before."""
        self._thread.run(self._client.admin.add_partitions(topic, total))

    def topic_configs(self, name: str) -> list[ConfigEntry]:
        return self._thread.run(self._client.admin.topic_configs(name))

    def alter_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs; None takes one back to its default."""
        self._thread.run(self._client.admin.alter_topic_configs(name, changes))

    def group_configs(self, name: str) -> list[ConfigEntry]:
        """Also of a group that is not there yet."""
        return self._thread.run(self._client.admin.group_configs(name))

    def alter_group_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs; None takes one back to its default."""
        self._thread.run(self._client.admin.alter_group_configs(name, changes))

    def offsets(
        self, timestamps: Mapping[TopicPartition, TimestampMs], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAtTime]:
        """The first offset at or after a time; `EARLIEST` and `LATEST` of `tidelog.client` are times too."""
        return self._thread.run(self._client.admin.offsets(timestamps, read_committed=read_committed))

    def delete_records(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Delete what stands before an offset (-1: everything); the first offsets that are left."""
        return self._thread.run(self._client.admin.delete_records(before))

    # --- groups and the cluster -----------------------------------------------------------------------------------

    def groups(self) -> list[GroupListing]:
        return self._thread.run(self._client.groups.groups())

    def group(self, name: str) -> GroupDescription:
        return self._thread.run(self._client.groups.describe(name))

    def delete_group(self, name: str) -> None:
        self._thread.run(self._client.groups.delete(name))

    def committed(
        self, group: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, of these partitions or of all; those without are not in it. `stable` waits
        for transactions that are about to commit some of them."""
        return self._thread.run(self._client.groups.committed(group, partitions, stable=stable))

    def set_committed(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Commit offsets in the group's name. The group must have no members, or not exist yet."""
        self._thread.run(self._client.groups.set_committed(group, offsets))

    def delete_committed(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        self._thread.run(self._client.groups.delete_committed(group, partitions))

    def start_offsets(self, partitions: Iterable[TopicPartition], start: Start) -> dict[TopicPartition, Offset]:
        """The offsets that a `start` of `consume` means for these partitions."""
        return self._thread.run(self._client.start_offsets(partitions, start))

    def log_places(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogPlace]:
        """Where their leaders keep them on disk."""
        return self._thread.run(log_places(self._client.cluster, list(partitions)))

    def cluster_info(self) -> ClusterInfo:
        return self._thread.run(self._client.admin.cluster_info())


async def _made(bootstrap: str, options: ClientOptions | None) -> AsyncClient:
    return AsyncClient(bootstrap, options)
