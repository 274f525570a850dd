"""One broker: its topics, the partitions it serves, groups, transactions and producer ids. What gateways talk to.

Topics are rows first: a topic exists when its row is durable. Its logs are opened after that, and removed after the
row is. So after a crash in between they are made, or are leftovers that the next topic of that name does away with.
Thousands of logs take a while: they are opened in short steps before the topic is known to anybody.
"""

import asyncio

import structlog

from tidelog.broker.configs import BrokerConfig
from tidelog.broker.groups import Groups
from tidelog.broker.partition import FetchWait, Partition
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.shell import now_ms
from tidelog.broker.tables import Tables
from tidelog.broker.topics import Topic, Topics, UnknownTopic
from tidelog.broker.transactions import Transactions
from tidelog.errors import TidelogError
from tidelog.metadata.store import MetadataStore
from tidelog.model import Offset, ProducerId, TopicPartition
from tidelog.records.crc import crc32c
from tidelog.storage.local.store import LocalStore

_OPENED_AT_ONCE = 50  # partitions, in some 10 ms

log = structlog.get_logger("tidelog.broker")


def _spread(name: TopicPartition) -> float:
    """A partition's share of segment.jitter.ms, the same every time."""
    return crc32c(str(name).encode()) / 2**32


class Broker:
    """Listens to its own topics: their logs come, change and go with them."""

    def __init__(
        self,
        *,
        cluster_id: str,
        topics: Topics,
        logs: LocalStore,
        groups: Groups,
        transactions: Transactions,
        producer_ids: ProducerIds,
        metadata: MetadataStore,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = topics
        self.logs = logs
        self.groups = groups
        self.transactions = transactions
        self.producer_ids = producer_ids
        self.metadata = metadata
        self.fetches: set[FetchWait] = set()  # those that wait for data
        self.is_stopping = False
        self._partitions: dict[str, list[Partition | TidelogError]] = {}
        self._coming: dict[str, list[Partition | TidelogError]] = {}  # of topics that are being created or grow
        self.tables = Tables(self, logs.directory)
        topics.prepare = self._prepare
        topics.listen(self)
        topics.listen(self.tables)

    @property
    def node_id(self) -> int:
        return self.topics.broker_config.node_id

    @property
    def config(self) -> BrokerConfig:
        return self.topics.broker_config

    def stop_waiting(self) -> None:
        """Before the end: whoever waits for data or for others is answered with what there is, and from now on nobody
        waits. Clients ask again, and find the broker that comes next."""
        self.is_stopping = True
        for fetch in self.fetches:
            fetch.wake()
        self.groups.stop_waiting()
        self.tables.stop_waiting()

    def open_topics(self) -> None:
        """Open the logs of every topic there is. A partition that cannot be opened answers with its error."""
        self.logs.make_now(
            (TopicPartition(topic.name, index) for topic in self.topics for index in range(topic.partitions)),
            now_ms(),
        )
        for topic in self.topics:
            self._open(topic)
        self.tables.open_topics(self.topics)
        for partition in self.topics.unknown(self.logs.partitions()):
            log.warning("data without a topic is left alone", partition=str(partition))

    def hanging_transactions(self) -> list[tuple[TopicPartition, ProducerId, Offset]]:
        """Open in a partition, but unknown to the coordinator: nobody will end them but an operator."""
        return [
            (partition.name, producer_id, first_offset)
            for partitions in self._partitions.values()
            for partition in partitions
            if isinstance(partition, Partition)
            for producer_id, first_offset in partition.log.open_transactions().items()
            if not self.transactions.coordinator.is_known_open(producer_id, partition.name)
        ]

    async def _prepare(self, topic: Topic) -> None:
        """Make and open the partitions that are new, without holding up others for long."""
        first = len(self._partitions.get(topic.name, ()))
        if first == 0 and self.logs.has_topic(topic.name):  # an earlier one, whose deletion a crash cut short
            log.warning("removing what a deleted topic left", topic=topic.name)
            self.logs.delete_topic(topic.name)
        await self.logs.make(
            [TopicPartition(topic.name, index) for index in range(first, topic.partitions)], now_ms()
        )
        coming: list[Partition | TidelogError] = []
        for index in range(first, topic.partitions):
            coming.append(self._opened(topic, index))
            if index % _OPENED_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._coming[topic.name] = coming

    def topic_created(self, topic: Topic) -> None:
        self._open(topic)

    def topic_changed(self, before: Topic, after: Topic) -> None:
        self._open(after)
        if after.config != before.config:
            self._configure(after)

    def topic_deleted(self, topic: Topic) -> None:
        for partition in self._partitions.pop(topic.name, ()):
            if isinstance(partition, Partition):
                partition.retire()
        try:
            self.logs.delete_topic(topic.name)
        except TidelogError as error:
            log.error("could not delete", topic=topic.name, reason=str(error))

    def _open(self, topic: Topic) -> None:
        """What is not open yet: all of a new topic, the added partitions of one that grew."""
        partitions = self._partitions.setdefault(topic.name, [])
        coming = self._coming.pop(topic.name, [])
        partitions += coming
        for index in range(len(partitions), topic.partitions):
            partitions.append(self._opened(topic, index))
        if any(partition.config != topic.config for partition in coming[:1] if isinstance(partition, Partition)):
            self._configure(topic)  # it was another while they were prepared

    def _configure(self, topic: Topic) -> None:
        for partition in self._partitions[topic.name]:
            if isinstance(partition, Partition):
                partition.configure(topic)
                partition.log.configure(topic.config.log_settings(_spread(partition.name)))

    def _opened(self, topic: Topic, index: int) -> Partition | TidelogError:
        name = TopicPartition(topic.name, index)
        try:
            opened = self.logs.open(name, topic.config.log_settings(_spread(name)), now_ms())
        except TidelogError as error:
            log.error("partition is not available", partition=str(name), reason=str(error))
            return error
        for line in opened.recovery.lines():
            log.warning("recovered", partition=str(name), what=line)
        return Partition(name, opened, topic)

    def partition(self, topic: str, index: int) -> Partition:
        """A partition to work with, or the reason why not."""
        partitions = self._partitions.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            raise UnknownTopic(f"there is no partition {index} of topic {topic!r}")
        partition = partitions[index]
        if isinstance(partition, Partition):
            return partition
        raise partition

    def needed_from(self, partition: TopicPartition) -> Offset | None:
        """From here on a group needs the records that retention waits for; None: retention waits for nobody. A group
        that has not committed yet needs them all."""
        topic = self.topics.find(partition.topic)
        group = topic.config.retention_wait_for_group if topic is not None else ""
        if not group:
            return None
        return self.groups.coordinator.committed(group, *partition) or 0

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.topics.find_id(topic_id)
        return None if topic is None else topic.name

    def find(self, topic: str | None, index: int) -> Partition | None:
        partitions = self._partitions.get(topic) if topic is not None else None
        if partitions is None or not 0 <= index < len(partitions):
            return None
        partition = partitions[index]
        return partition if isinstance(partition, Partition) else None

    def partitions_of(self, topic: str) -> "list[Partition | TidelogError]":
        return self._partitions.get(topic, [])
