"""The client for programs without an event loop: the asynchronous one, run by a thread of its own.

    with tidelog.connect() as client:
        client.produce("orders", "an order", key="customer 7")
        for record in client.consume("orders", follow=False):
            print(record.offset, record.value)

Any thread may call any method, but only one thread at a time may read a stream. Most methods wait for one of the
asynchronous client, whose parameters and documentation they have: `topics = blocking(Admin.topics, of=_admin)`.
"""

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from tidelog.client.admin.groups import GroupAdmin, GroupDescription
from tidelog.client.admin.topics import Admin, PartitionInfo
from tidelog.client.admin.transactions import TransactionAdmin
from tidelog.client.asynchronous import AsyncClient
from tidelog.client.consuming.blocking import BlockingStream
from tidelog.client.consuming.offsets import Start
from tidelog.client.consuming.ranges import RangeReader, RawChunk
from tidelog.client.errors import ClientClosed
from tidelog.client.loop_thread import Blocking, LoopThread, blocking
from tidelog.client.options import (
    DEFAULT_BOOTSTRAP,
    Acks,
    ClientOptions,
    FetchOptions,
    GroupOptions,
    ProducerOptions,
    parse_bootstrap,
)
from tidelog.client.producing.batch_sender import BatchSender
from tidelog.client.producing.blocking import BlockingBatchSender, BlockingProducer, BlockingTransactionalProducer
from tidelog.client.producing.producer import Producer
from tidelog.client.producing.transactions import TransactionalProducer
from tidelog.model import Offset, TopicPartition
from tidelog.records.batch import ReadBuffer


def connect(bootstrap: str = DEFAULT_BOOTSTRAP, options: ClientOptions | None = None) -> "Client":
    """Connect to a cluster, through any of these addresses (`host:port`, separated by commas)."""
    return Client(bootstrap, options)


def _client(client: "Client") -> AsyncClient:
    return client._client


def _admin(client: "Client") -> Admin:
    return client._client.admin


def _groups(client: "Client") -> GroupAdmin:
    return client._client.groups


def _transactions(client: "Client") -> TransactionAdmin:
    return client._client.transactions


def _stop(thread: LoopThread, client: AsyncClient) -> None:
    thread.stop(client.cluster.close())


class Client(Blocking):
    """Made by `tidelog.connect`. Close it, or use it in a `with` statement."""

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
        """Also closes what was opened with it: producers deliver what they have, members leave their groups."""
        try:
            with suppress(ClientClosed):
                self._thread.run(self._client.close())
        finally:
            self._stop()

    # --- producing ------------------------------------------------------------------------------------------------

    produce = blocking(AsyncClient.produce, of=_client)

    def produce_batches(self, topic: str, partition: int, batches: ReadBuffer, *, acks: Acks = "all") -> Offset:
        """Send encoded record batches (`tidelog.records`) as they are; returns the offset of the first."""
        return self._thread.run(self._client.produce_batches(TopicPartition(topic, partition), batches, acks=acks))

    def producer(self, options: ProducerOptions | None = None) -> BlockingProducer:
        """For many records: gathers them into batches."""

        async def made() -> Producer:
            return self._client.producer(options)

        return BlockingProducer(self, self._thread, self._thread.run(made()), self._client.cluster)

    def transactional_producer(
        self,
        transactional_id: str,
        options: ProducerOptions | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
    ) -> BlockingTransactionalProducer:
        """Call its `init` first. The broker aborts a transaction that is still open after the timeout."""

        async def made() -> TransactionalProducer:
            return self._client.transactional_producer(
                transactional_id, options, transaction_timeout_ms=transaction_timeout_ms
            )

        return BlockingTransactionalProducer(self, self._thread, self._thread.run(made()), self._client.cluster)

    def batch_sender(
        self,
        options: ProducerOptions | None = None,
        *,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
    ) -> BlockingBatchSender:
        """For batches that the caller encodes: several in flight at once, each written once. With a transactional id
        all of them are in one transaction, which another client ends."""

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

        `start` says where to begin in each partition: `earliest`, `latest`, an offset, -n for the last n offsets, or
        a datetime. In a `group` it applies only to partitions without a committed offset. With `follow=False` the
        stream ends after the records that were there at the start. With `limit` it ends after that many records.
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
        """The batches from `start` to `end` as they are stored, for callers that decode them; see
        `consuming.ranges`."""

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

    start_offsets = blocking(AsyncClient.start_offsets, of=_client)

    # --- tables ---------------------------------------------------------------------------------------------------

    get = blocking(AsyncClient.get, of=_client)
    get_many = blocking(AsyncClient.get_many, of=_client)
    table = blocking(AsyncClient.table, of=_client)

    # --- topics, records and the cluster --------------------------------------------------------------------------

    topics = blocking(Admin.topics, of=_admin)
    topic = blocking(Admin.topic, of=_admin)
    partition_count = blocking(Admin.partition_count, of=_admin)
    create_topic = blocking(Admin.create_topic, of=_admin)
    delete_topic = blocking(Admin.delete_topic, of=_admin)
    topic_configs = blocking(Admin.topic_configs, of=_admin)
    alter_topic_configs = blocking(Admin.alter_topic_configs, of=_admin)
    group_configs = blocking(Admin.group_configs, of=_admin)
    alter_group_configs = blocking(Admin.alter_group_configs, of=_admin)
    offsets = blocking(Admin.offsets, of=_admin)
    delete_records = blocking(Admin.delete_records, of=_admin)
    log_places = blocking(Admin.log_places, of=_admin)
    locate_records = blocking(Admin.locate_records, of=_admin)
    cluster_info = blocking(Admin.cluster_info, of=_admin)
    memory = blocking(Admin.memory, of=_admin)
    move_leader = blocking(Admin.move_leader, of=_admin)
    drain_broker = blocking(Admin.drain_broker, of=_admin)
    drained_brokers = blocking(Admin.drained_brokers, of=_admin)

    def partitions(self, topic: str) -> list[PartitionInfo]:
        """Every partition of a topic, with its first offset and its end offset."""
        return self._thread.run(self._client.admin.partitions(topic))

    def add_partitions(self, topic: str, total: int) -> None:
        """Grow a topic to `total` partitions. Most keys then go to other partitions than before."""
        self._thread.run(self._client.admin.add_partitions(topic, total))

    # --- groups ---------------------------------------------------------------------------------------------------

    groups = blocking(GroupAdmin.groups, of=_groups)
    committed = blocking(GroupAdmin.committed, of=_groups)
    set_committed = blocking(GroupAdmin.set_committed, of=_groups)
    delete_committed = blocking(GroupAdmin.delete_committed, of=_groups)

    def group(self, name: str) -> GroupDescription:
        """The group's state and its members. A group that does not exist is described as dead."""
        return self._thread.run(self._client.groups.describe(name))

    def delete_group(self, name: str) -> None:
        """Delete a group and its committed offsets. It must have no members."""
        self._thread.run(self._client.groups.delete(name))

    # --- transactions of other producers --------------------------------------------------------------------------

    transactions = blocking(TransactionAdmin.transactions, of=_transactions)
    transaction = blocking(TransactionAdmin.describe, of=_transactions)
    end_transaction = blocking(TransactionAdmin.end, of=_transactions)
    decide_transactions = blocking(TransactionAdmin.decide, of=_transactions)
    decision = blocking(TransactionAdmin.decision, of=_transactions)
    fence_producer = blocking(TransactionAdmin.fence, of=_transactions)
    producers = blocking(TransactionAdmin.producers, of=_transactions)
    hanging_transactions = blocking(TransactionAdmin.hanging, of=_transactions)
    abort_in = blocking(TransactionAdmin.abort_in, of=_transactions)


async def _made(bootstrap: str, options: ClientOptions | None) -> AsyncClient:
    return AsyncClient(bootstrap, options)
