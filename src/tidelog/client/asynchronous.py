"""The client for programs with an event loop of their own. `blocking` has the same for all others."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

from tidelog.client.accumulator import Delivered
from tidelog.client.admin import Admin
from tidelog.client.cluster import Cluster
from tidelog.client.consumer import Consumer, RecordStream, Source
from tidelog.client.content import AnyHeaders, Content, Moment
from tidelog.client.errors import BrokerError, check
from tidelog.client.group import GroupConsumer
from tidelog.client.group_admin import GroupAdmin
from tidelog.client.offsets import Start, start_offsets
from tidelog.client.options import (
    DEFAULT_BOOTSTRAP,
    Acks,
    ClientOptions,
    FetchOptions,
    GroupOptions,
    ProducerOptions,
    parse_bootstrap,
)
from tidelog.client.producer import Producer
from tidelog.client.tables import Freshness, TableClient, TableInfo, TableValue
from tidelog.client.transaction_admin import TransactionAdmin
from tidelog.client.transactions import TransactionalProducer
from tidelog.errors import InvalidInput
from tidelog.model import Offset, TopicPartition
from tidelog.records.batch import ReadBuffer
from tidelog.wire.apis import BY_NAME
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

_PRODUCE = BY_NAME["Produce"]


class AsyncClient:
    """`async with AsyncClient("127.0.0.1:9092") as client: ...`

    `admin` has topics, configs, records and the cluster; `groups` has groups and what they committed;
    `transactions` has transactions of others.
    """

    def __init__(self, bootstrap: str = DEFAULT_BOOTSTRAP, options: ClientOptions | None = None) -> None:
        self.cluster = Cluster(parse_bootstrap(bootstrap), options or ClientOptions())
        self.admin = Admin(self.cluster)
        self.groups = GroupAdmin(self.cluster)
        self.transactions = TransactionAdmin(self.cluster)
        self._tables = TableClient(self.cluster)
        self._producer: Producer | None = None
        self._open: set[Producer | Source] = set()

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
        """Closes what was opened with it too: producers deliver what they have, members leave their groups."""
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
        """Call its `init` first. A transaction that is not ended after its timeout is aborted by the broker."""
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
        """One record, written when this returns. For many, take a `producer`."""
        if self._producer is None:
            self._producer = self.producer(ProducerOptions(linger_ms=0))
        receipt = await self._producer.send(
            topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp
        )
        return await receipt

    async def produce_batches(self, partition: TopicPartition, batches: ReadBuffer, *, acks: Acks = "all") -> Offset:
        """Record batches that are ready (`tidelog.records`), as they are; the offset of the first, -1 with acks=0.

        Not tried again if it may have been written: it is not known here whether the caller has numbered them.
        """
        options = ProducerOptions(acks=acks, idempotent=False)
        data = PartitionProduceData(index=partition.partition, records=batches)
        timeout_ms = self.cluster.options.request_timeout_ms

        async def attempt() -> Offset:
            leader = await self.cluster.leader(partition)
            topic = TopicProduceData(
                name=partition.topic, topic_id=self.cluster.topic_id(partition.topic), partition_data=[data]
            )
            request = ProduceRequest(acks=options.acks_code, timeout_ms=timeout_ms, topic_data=[topic])
            if acks == 0:
                connection = await self.cluster.connection(leader)
                await connection.send(_PRODUCE, request, timeout_s=timeout_ms / 1000)
                return -1
            response: ProduceResponse = await self.cluster.request("Produce", request, node=leader)
            answer = response.responses[0].partition_responses[0]
            check(answer.error_code, f"producing to {partition}", answer.error_message)
            return answer.base_offset

        return await self.cluster.retrying(attempt, repeatable=False)

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

        `at_least="end"` waits until the table knows everything that is in the partition now, an offset until it knows
        everything before that. The partition is the one where the key's records go, unless it is given.
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
        """The same for many keys, with one request to each broker; in the order of the keys."""
        return await self._tables.get_many(topic, keys, partition=partition, at_least=at_least, timeout_ms=timeout_ms)

    async def table(self, topic: str) -> list[TableInfo]:
        """How far the topic's table is, by partition."""
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
        """Records as they come: `async for record in client.consume("orders")`.

        `start` says where each partition begins; in a `group`, only for partitions that it has no offset of. Not
        `follow`: ends when everything that was there at the start has been read.
        """

        async def opened() -> Source:
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
    ) -> Source:
        """What `consume` reads from: for those who want batches as they are stored. Close it."""
        names = [topics] if isinstance(topics, str) else list(topics)
        fetch = fetch or FetchOptions()
        source: Source
        if group is None:
            chosen = await self._chosen(names, partitions)
            source = await Consumer.open(self.cluster, chosen, start, fetch, follow=follow)
        elif partitions is not None or isinstance(start, Mapping):
            raise InvalidInput(
                "a group shares its partitions out by itself: give no partitions and no offsets of them"
            )
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

    def _remember(self, part: Producer | Source) -> None:
        self._open = {opened for opened in self._open if not opened.is_closed} | {part}

    async def start_offsets(self, partitions: Iterable[TopicPartition], start: Start) -> dict[TopicPartition, Offset]:
        """The offsets that a `start` of `consume` means for these partitions."""
        return await start_offsets(self.cluster, partitions, start)

    async def _chosen(self, names: list[str], partitions: Iterable[int] | None) -> list[TopicPartition]:
        chosen = []
        for name in names:
            known = (await self.cluster.topic(name)).partitions
            for number in known if partitions is None else partitions:
                if number not in known:
                    has = f"the topic has {len(known)}"
                    raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"reading {name}-{number}", has)
                chosen.append(TopicPartition(name, number))
        return chosen
