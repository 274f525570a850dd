"""The client for programs with an event loop. `blocking` has the same for all others."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

from tidelog.client.admin.groups import GroupAdmin
from tidelog.client.admin.topics import Admin
from tidelog.client.admin.transactions import TransactionAdmin
from tidelog.client.cluster import Cluster
from tidelog.client.consuming.consumer import Consumer, RecordStream, StreamSource
from tidelog.client.consuming.group import GroupConsumer
from tidelog.client.consuming.offsets import Start, start_offsets
from tidelog.client.content import AnyHeaders, Content, Moment
from tidelog.client.errors import BrokerError
from tidelog.client.options import (
    DEFAULT_BOOTSTRAP,
    Acks,
    ClientOptions,
    FetchOptions,
    GroupOptions,
    ProducerOptions,
    parse_bootstrap,
)
from tidelog.client.producing.accumulator import Delivered
from tidelog.client.producing.produce_requests import EncodedBatch, ProduceRequests
from tidelog.client.producing.producer import Producer
from tidelog.client.producing.transactions import TransactionalProducer
from tidelog.client.tables import Freshness, TableClient, TableInfo, TableValue
from tidelog.errors import InvalidInput
from tidelog.model import Offset, TopicPartition
from tidelog.records.batch import ReadBuffer, iterate
from tidelog.wire.error_codes import ErrorCode


class AsyncClient:
    """`async with AsyncClient("127.0.0.1:9092") as client: ...`

    `admin` has topics, configs, records and the cluster; `groups` has groups and their committed offsets;
    `transactions` has transactions of other producers.
    """

    def __init__(self, bootstrap: str = DEFAULT_BOOTSTRAP, options: ClientOptions | None = None) -> None:
        self.cluster = Cluster(parse_bootstrap(bootstrap), options or ClientOptions())
        self.admin = Admin(self.cluster)
        self.groups = GroupAdmin(self.cluster)
        self.transactions = TransactionAdmin(self.cluster)
        self._tables = TableClient(self.cluster)
        self._producer: Producer | None = None
        self._open: set[Producer | StreamSource] = set()

    async def __aenter__(self) -> "AsyncClient":
        try:
            await self.cluster.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Also closes what was opened with it: producers deliver what they have, members leave their groups."""
        opened, self._open = self._open, set()
        try:
            for part in opened:
                await part.close()
        finally:
            await self.cluster.close()

    # --- producing ------------------------------------------------------------------------------------------------

    def producer(self, options: ProducerOptions | None = None) -> Producer:
        producer = Producer(self.cluster, options or ProducerOptions())
        self._remember(producer)
        return producer

    def transactional_producer(
        self,
        transactional_id: str,
        options: ProducerOptions | None = None,
        *,
        transaction_timeout_ms: int = 60_000,
    ) -> TransactionalProducer:
        """Call its `init` first. The broker aborts a transaction that is still open after the timeout."""
        options = options or ProducerOptions()
        producer = TransactionalProducer(self.cluster, transactional_id, options, transaction_timeout_ms)
        self._remember(producer)
        return producer

    async def produce(
        self,
        topic: str,
        value: Content,
        *,
        key: Content = None,
        headers: AnyHeaders = (),
        partition: int | None = None,
        timestamp: Moment | None = None,
    ) -> Delivered:
        """Write one record, and wait until it is written. Use a `producer` for many records."""
        if self._producer is None:
            self._producer = self.producer(ProducerOptions(linger_ms=0))
        receipt = await self._producer.send(
            topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp
        )
        return await receipt

    async def produce_batches(self, partition: TopicPartition, batches: ReadBuffer, *, acks: Acks = "all") -> Offset:
        """Send encoded record batches (`tidelog.records`) as they are; returns the offset of the first, -1 with
        acks=0.

        Each is sent in a request of its own, since a broker accepts one batch per partition and request: after an
        error, those before it are written. A batch that may have been written is not sent again, because the client
        does not know whether the caller has numbered it.
        """
        requests = ProduceRequests(self.cluster, ProducerOptions(acks=acks, idempotent=False))

        async def produced(batch: EncodedBatch) -> Offset:
            return await self.cluster.retrying(lambda: requests.send_one(batch), repeatable=False)

        offsets = [
            await produced(EncodedBatch(partition, view.header.record_count, view.view))
            for view in list(iterate(batches, verify=False))
        ]
        if not offsets:
            raise InvalidInput("no batch was given")
        return offsets[0]

    # --- tables ---------------------------------------------------------------------------------------------------

    async def get(
        self,
        topic: str,
        key: Content,
        *,
        partition: int | None = None,
        at_least: Freshness = "any",
        timeout_ms: int | None = None,
    ) -> TableValue:
        """The last value of a key, from the topic's table (`tidelog.table=true`), without reading the topic.

        `at_least="end"` waits until the table includes all records that are in the partition now; an offset, all
        records before that. Unless `partition` is given, it is chosen by the key, as producers do.
        """
        (found,) = await self.get_many(topic, [key], partition=partition, at_least=at_least, timeout_ms=timeout_ms)
        return found

    async def get_many(
        self,
        topic: str,
        keys: Sequence[Content],
        *,
        partition: int | None = None,
        at_least: Freshness = "any",
        timeout_ms: int | None = None,
    ) -> list[TableValue]:
        """The last values of many keys, in their order, with one request per broker; see `get`."""
        return await self._tables.get_many(topic, keys, partition=partition, at_least=at_least, timeout_ms=timeout_ms)

    async def table(self, topic: str) -> list[TableInfo]:
        """The progress of the topic's table, for each partition."""
        return await self._tables.describe(topic)

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
    ) -> RecordStream:
        """A stream of records: `async for record in client.consume("orders")`.

        `start` says where to begin in each partition: `earliest`, `latest`, an offset, -n for the last n offsets, or
        a datetime. In a `group` it applies only to partitions without a committed offset. With `follow=False` the
        stream ends after the records that were there at the start. With `limit` it ends after that many records.
        """

        async def opened() -> StreamSource:
            return await self.open_source(
                topics,
                partitions=partitions,
                start=start,
                follow=follow,
                group=group,
                fetch=fetch,
                group_options=group_options,
            )

        return RecordStream(opened, limit)

    async def open_source(
        self,
        topics: str | Sequence[str],
        *,
        partitions: Iterable[int] | None = None,
        start: Start | Mapping[TopicPartition, Offset] = "earliest",
        follow: bool = True,
        group: str | None = None,
        fetch: FetchOptions | None = None,
        group_options: GroupOptions | None = None,
    ) -> StreamSource:
        """The source that `consume` reads from, for callers that want batches as they are stored. Close it."""
        names = [topics] if isinstance(topics, str) else list(topics)
        fetch = fetch or FetchOptions()
        source: StreamSource
        if group is None:
            chosen = await self._chosen(names, partitions)
            source = await Consumer.open(self.cluster, chosen, start, fetch, follow=follow)
        elif partitions is not None or isinstance(start, Mapping):
            raise InvalidInput("a group assigns its partitions itself: give no partitions and no offsets of them")
        else:
            source = GroupConsumer(
                self.cluster,
                group,
                names,
                start=start,
                follow=follow,
                fetch=fetch,
                options=group_options or GroupOptions(),
            )
        self._remember(source)
        return source

    def _remember(self, part: Producer | StreamSource) -> None:
        self._open = {opened for opened in self._open if not opened.is_closed} | {part}

    async def start_offsets(self, partitions: Iterable[TopicPartition], start: Start) -> dict[TopicPartition, Offset]:
        """The offsets of these partitions that a `start` of `consume` means."""
        return await start_offsets(self.cluster, partitions, start)

    async def _chosen(self, names: list[str], partitions: Iterable[int] | None) -> list[TopicPartition]:
        chosen = []
        for name in names:
            known = (await self.cluster.topic(name)).partitions
            for number in known if partitions is None else partitions:
                if number not in known:
                    has = f"the topic has {len(known)} partition{'s' * (len(known) != 1)}"
                    raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"reading {name}-{number}", has)
                chosen.append(TopicPartition(name, number))
        return chosen
