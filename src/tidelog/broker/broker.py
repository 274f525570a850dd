"""`Broker`: the topics, partitions, groups, transactions and producer ids of one broker. Gateways talk to it.

A topic exists when its row is durable. Its logs are created and opened before that, so that a client that sees the
topic can use it, and are removed after the row is removed. Logs that a crash leaves in between belong to an id that
no topic has (`topic_logs.py`). Opening thousands of logs takes a while, so it is done in short steps. The log store
may return a promise of a log; its partition is not available until the promise is kept.
"""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog

from tidelog.broker.admission import Admission
from tidelog.broker.configs import BrokerConfig
from tidelog.broker.coordination.transactions.messages import CommitOffsets, CommitOffsetsReply
from tidelog.broker.ownership import Coordinated, NotLeader, Ownership
from tidelog.broker.partition import DataWait, Partition
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.refused_batches import RefusedBatches
from tidelog.broker.shell import now_ms
from tidelog.broker.tables import Tables
from tidelog.broker.topic_logs import TopicLogs, identity
from tidelog.broker.topics import Topic, Topics, UnknownTopic
from tidelog.broker.writes import Writes
from tidelog.errors import StorageError, TidelogError, fresh
from tidelog.metadata.store import MetadataStore
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, ProducerId, TopicPartition
from tidelog.promise import Promise
from tidelog.records.batch import ReadBuffer
from tidelog.records.crc import crc32c
from tidelog.records.validation import Validator
from tidelog.storage.log import LogStore

if TYPE_CHECKING:
    from tidelog.broker.group_shards import GroupShards
    from tidelog.broker.groups import Groups
    from tidelog.broker.other_brokers import OtherBrokers
    from tidelog.broker.transaction_shards import TransactionShards
    from tidelog.broker.transactions import Transactions

_OPENED_AT_ONCE = 50  # partitions, in about 10 ms
_FIRST_RETRY_S, _LAST_RETRY_S = 1.0, 30.0  # pause between two attempts to open a partition
_RETRY_PAUSE = 4  # times the duration of the last attempt, so that attempts take at most a fifth of the time

log = structlog.get_logger("tidelog.broker")


def _spread(name: TopicPartition) -> float:
    """A partition's share of segment.jitter.ms; always the same for a partition."""
    return crc32c(str(name).encode()) / 2**32


class Unopened:
    """A partition whose log could not be opened, or that another broker leads: the reason, and the time of the next
    attempt."""

    __slots__ = ("_error", "_pause_s", "retry_at")

    def __init__(self, error: TidelogError, now: float) -> None:
        self._pause_s = _FIRST_RETRY_S
        self._note(error, now)

    def failed_again(self, error: TidelogError, now: float) -> None:
        self._pause_s = min(2 * self._pause_s, _LAST_RETRY_S)
        self._note(error, now)

    def is_being_opened(self) -> None:
        """An attempt is in progress: start no other one until it has failed."""
        self.retry_at = math.inf

    @property
    def is_failure(self) -> bool:
        """False if the partition only had another leader, or none."""
        return not isinstance(self._error, NotLeader)

    def error(self) -> TidelogError:
        """The error to raise, a new copy each time."""
        return fresh(self._error)

    def _note(self, error: TidelogError, now: float) -> None:
        self._error = fresh(error)
        if isinstance(error, NotLeader):
            self.retry_at = now  # looking up the leader costs nothing
        else:
            self.retry_at = now + self._pause_s if error.retriable else math.inf


class Broker:
    """Listens to its own topics: creates, configures and removes their logs."""

    def __init__(
        self,
        *,
        cluster_id: str,
        topics: Topics,
        logs: LogStore,
        groups: "Groups | GroupShards",
        transactions: "Transactions | TransactionShards",
        producer_ids: ProducerIds,
        metadata: MetadataStore,
        tables_directory: str,
        ownership: Ownership,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster_id = cluster_id
        self.topics = topics
        self.logs = logs
        self.groups = groups
        self.transactions = transactions
        self.producer_ids = producer_ids
        self.ownership = ownership
        self.admission = Admission()
        self.others: OtherBrokers | None = None
        """The other brokers of a cluster; None: this broker is alone."""
        self.waits: set[DataWait] = set()  # long polls to wake when the broker stops
        self.is_stopping = False
        self._partitions: dict[str, list[Partition | Unopened]] = {}
        self._coming: dict[bytes, list[Partition | Unopened]] = {}  # new partitions of topics, by topic id
        self._clock = clock
        self._retry_at = 0.0
        self._opening: dict[Unopened, asyncio.Future[None]] = {}  # partitions whose logs are promised
        self._topic_logs = TopicLogs(logs, metadata)
        self._validator = Validator()
        self.refused = RefusedBatches()
        self.tables = Tables(self, tables_directory)
        topics.preparation = self
        topics.listen(self)
        topics.listen(self.tables)

    @property
    def writes(self) -> Writes:
        """For changes of configs, which have the same owner as topics."""
        return self.topics.writes

    @property
    def config(self) -> BrokerConfig:
        return self.topics.broker_config

    def stop_waiting(self) -> None:
        """Call this before stopping. Requests that wait for data or for group members are answered with what there
        is, and from now on no request waits. Clients retry, and find the broker after its restart."""
        self.is_stopping = True
        for wait in tuple(self.waits):
            wait.wake()
        self.groups.stop_waiting()
        self.tables.stop_waiting()

    async def open_topics(self) -> None:
        """Open the logs of all topics. Requests for a partition that cannot be opened fail with the reason, and
        trigger another attempt."""
        await self._topic_logs.adopt(self.topics)
        try:  # all exist, except after a crash or a lost directory; created one by one, each takes four syncs
            await self.logs.create([one for topic in self.topics for one in self._new_partitions(topic)], now_ms())
        except StorageError as error:
            log.warning("missing partitions could not be created together; trying one by one", reason=str(error))
        opening = [
            (topic, [self._open_or_say_why(topic, index) for index in range(topic.partitions)])
            for topic in self.topics
        ]
        for topic, partitions in opening:
            self._partitions[topic.name] = [
                await self._opened(topic, index, partition) if isinstance(partition, Promise) else partition
                for index, partition in enumerate(partitions)
            ]
        self.tables.open_topics(self.topics)
        await self._topic_logs.clear(self.topics)

    async def create_missing_logs(self) -> None:
        """Create the logs that topics lack because an earlier controller ended before it had created them."""
        partitions = [one for topic in self.topics for one in identity(topic).partitions(topic.partitions)]
        await self.logs.create(partitions, now_ms())

    async def remove_deleted(self) -> None:
        """Remove the logs of deleted topics that an earlier controller has left."""
        await self._topic_logs.remove_deleted()

    async def auto_create(self, name: str) -> None:
        """Create a topic with the defaults, if that is allowed."""
        if self.others is None or self.ownership.controller().broker_id == self.ownership.node_id:
            await self.topics.auto_create(name, now_ms())
        elif self.topics.may_auto_create(name):
            await self.others.create_topic(name)
        else:
            self.topics.get(name)

    async def close(self) -> None:
        """Close this before the metadata store and the logs."""
        await self.tables.close()
        await self._topic_logs.close()

    def hanging_transactions(self) -> list[tuple[TopicPartition, ProducerId, Offset]]:
        """Transactions that are open in a partition but unknown to the coordinator: only an operator can end them."""
        return [
            (partition.name, producer_id, first_offset)
            for partitions in self._partitions.values()
            for partition in partitions
            if isinstance(partition, Partition)
            for producer_id, first_offset in partition.log.open_transactions().items()
            if not self.transactions.is_known_open(producer_id, partition.name)
        ]

    def batch_refused(self, name: TopicPartition, batch: ReadBuffer | None, error: Exception | None) -> None:
        """A batch could not be appended: see `RefusedBatches`."""
        topic = self.topics.find(name.topic)
        epoch = None
        if topic is not None:
            leader = self.ownership.leader(topic.topic_id, name.partition)
            epoch = LeaderEpoch(leader.epoch) if leader.broker_id == self.ownership.node_id else None
        self.refused.note(name, batch, error, epoch)

    # Called by `topics`, as its preparation and its listener

    async def prepare(self, topic: Topic) -> None:
        """Create and open all new partitions of the topic, or none. Works in steps that do not block the event loop
        for long."""
        new = self._new_partitions(topic)
        await self.logs.create(new, now_ms())
        if self.others is not None:
            await self.others.leaders_assigned(topic)
        coming = self._coming[topic.topic_id] = []
        try:
            opening = []
            for done, partition in enumerate(new, 1):
                opening.append(self._open_if_led(topic, partition.number))
                if done % _OPENED_AT_ONCE == 0:
                    await asyncio.sleep(0)
            coming += [await one if isinstance(one, Promise) else one for one in opening]
        except BaseException:
            self.discard(topic)
            raise

    def discard(self, topic: Topic) -> None:
        self._coming.pop(topic.topic_id, None)
        self.logs.release(self._new_partitions(topic))
        if topic.name not in self._partitions:  # else the logs are empty, and are used when the topic grows later
            self._topic_logs.remove(identity(topic))

    def _new_partitions(self, topic: Topic) -> list[PartitionIdentity]:
        return identity(topic).partitions(topic.partitions, len(self._partitions.get(topic.name, ())))

    def topic_created(self, topic: Topic) -> None:
        self._add_prepared(topic)

    def topic_changed(self, before: Topic, after: Topic) -> None:
        self._add_prepared(after)
        if after.config != before.config:
            self._configure(after)

    def topic_deleted(self, topic: Topic) -> None:
        for partition in self._partitions.pop(topic.name, ()):
            if isinstance(partition, Partition):
                partition.retire()
        self.logs.release(identity(topic).partitions(topic.partitions))
        if self.ownership.controller().broker_id == self.ownership.node_id:
            self._topic_logs.remove(identity(topic))

    def _add_prepared(self, topic: Topic) -> None:
        """Serve the prepared partitions: all of a new topic, or those added to an existing one. If another broker has
        prepared them, they are opened when this one leads them and somebody asks."""
        partitions = self._partitions.setdefault(topic.name, [])
        if len(partitions) == topic.partitions:
            return  # only the config changed; new partitions may still be in preparation
        coming = self._coming.pop(topic.topic_id, None)
        if coming is None:
            unknown = NotLeader(f"the leader of the partition of {topic.name} is not known yet")
            first = len(partitions)
            partitions += [Unopened(unknown, self._clock()) for _ in range(first, topic.partitions)]
            for index in range(first, topic.partitions):
                self._open_led(topic, index)
            return
        partitions += coming
        assert len(partitions) == topic.partitions
        prepared = next((partition for partition in coming if isinstance(partition, Partition)), None)
        if prepared is not None and prepared.config != topic.config:
            self._configure(topic)  # the config changed while they were prepared

    def _configure(self, topic: Topic) -> None:
        for partition in self._partitions[topic.name]:
            if isinstance(partition, Partition):
                partition.configure(topic)
                partition.log.configure(topic.config.log_settings(_spread(partition.name)))

    # Called when leaders change

    def leader_lost(self, topic_id: bytes, index: int) -> None:
        """Another broker leads the partition, or this one at a new epoch: whatever is in memory no longer counts."""
        topic = self.topics.find_id(topic_id)
        partitions = self._partitions.get(topic.name) if topic is not None else None
        if topic is None or partitions is None or index >= len(partitions):
            return  # the topic was deleted
        partition = partitions[index]
        partitions[index] = Unopened(NotLeader(f"{topic.name}-{index} has a new leader"), self._clock())
        self.logs.release([identity(topic).partition(index)])
        if isinstance(partition, Partition):
            partition.retire()

    def leader_gained(self, topic_id: bytes, index: int) -> None:
        """Open the partition before clients ask for it. If its topic is not known yet, that is done when it is."""
        topic = self.topics.find_id(topic_id)
        if topic is not None and index < len(self._partitions.get(topic.name, ())):
            self._open_led(topic, index)

    def _open_led(self, topic: Topic, index: int) -> None:
        """Begin to open a partition, if this broker leads it."""
        unopened = self._partitions[topic.name][index]
        if isinstance(unopened, Partition) or self._clock() < unopened.retry_at:
            return
        try:
            self._begin_to_open(topic, index, unopened)
        except TidelogError as error:
            unopened.failed_again(error, self._clock())

    async def until_opened(self) -> None:
        """Wait for the partitions that are being opened now."""
        while self._opening:
            await asyncio.wait([next(iter(self._opening.values()))])

    # Opening

    def _open(self, topic: Topic, index: int) -> Partition | Promise[Partition]:
        leader_epoch = self.ownership.check_leader(topic.topic_id, index)
        name = TopicPartition(topic.name, index)
        settings = topic.config.log_settings(_spread(name))
        opened = self.logs.open(identity(topic).partition(index), settings, now_ms(), leader_epoch=leader_epoch)
        if isinstance(opened, Promise):
            return opened.then(lambda log: Partition(name, log, topic, self._validator, self.refused, leader_epoch))
        return Partition(name, opened, topic, self._validator, self.refused, leader_epoch)

    def _open_if_led(self, topic: Topic, index: int) -> Partition | Promise[Partition] | Unopened:
        try:
            return self._open(topic, index)
        except NotLeader as error:
            return Unopened(error, self._clock())

    def _open_or_say_why(self, topic: Topic, index: int) -> Partition | Promise[Partition] | Unopened:
        try:
            return self._open_if_led(topic, index)
        except TidelogError as error:
            return self._unavailable(topic, index, error)

    async def _opened(self, topic: Topic, index: int, opening: Promise[Partition]) -> Partition | Unopened:
        try:
            return await opening
        except TidelogError as error:
            return self._unavailable(topic, index, error)

    def _unavailable(self, topic: Topic, index: int, error: TidelogError) -> Unopened:
        log.error("partition is not available", partition=f"{topic.name}-{index}", reason=str(error))
        return Unopened(error, self._clock())

    # Partitions

    def partition(self, topic: str, index: int) -> Partition:
        """The partition. Raises the reason if it is not available."""
        partitions = self._partitions.get(topic)
        if partitions is None or not 0 <= index < len(partitions):
            raise UnknownTopic(f"there is no partition {index} of topic {topic!r:.260}")
        partition = partitions[index]
        if isinstance(partition, Partition):
            if not self.ownership.is_sole:
                self._check_leader(topic, index, partition)
            return partition
        return self._opened_now(topic, index, partition)

    def takes_transactions(self, topic: str, index: int) -> bool:
        """True if the partition may be added to a transaction: it exists and, if this broker is alone, it is
        available. In a cluster its leader says whether it is."""
        if self.ownership.is_sole:
            return self.find(topic, index) is not None
        known = self.topics.find(topic)
        return known is not None and 0 <= index < known.partitions

    def find(self, topic: str | None, index: int) -> Partition | None:
        partitions = self._partitions.get(topic) if topic is not None else None
        if topic is None or partitions is None or not 0 <= index < len(partitions):
            return None
        try:
            return self.partition(topic, index)
        except TidelogError:
            return None

    def _check_leader(self, name: str, index: int, partition: Partition) -> None:
        """A broker that was paused, or has lost the database, may be out of date: it then serves nothing."""
        topic_id = self.topics.get(name).topic_id
        if self.ownership.check_leader(topic_id, index) != partition.leader_epoch:  # opened before it led it again
            self.leader_lost(topic_id, index)
            self.leader_gained(topic_id, index)
            raise NotLeader(f"{name}-{index} is being opened at a new leader epoch")

    def _opened_now(self, topic: str, index: int, unopened: Unopened) -> Partition:
        """Try again to open a partition, because a request needs it: the cause may be gone, for example a lack of
        file descriptors. Attempts are limited per partition by a pause, and over all partitions by the share of time
        they take."""
        began = self._clock()
        if began < unopened.retry_at or began < self._retry_at:
            raise unopened.error()
        known = self.topics.get(topic)
        is_attempt = True
        try:
            partition = self._begin_to_open(known, index, unopened)
        except TidelogError as error:
            is_attempt = not isinstance(error, NotLeader)
            unopened.failed_again(error, began)
            raise unopened.error() from None
        finally:
            if is_attempt:
                now = self._clock()
                self._retry_at = now + _RETRY_PAUSE * (now - began)
        if partition is None:
            raise unopened.error()
        return partition

    def _begin_to_open(self, topic: Topic, index: int, unopened: Unopened) -> Partition | None:
        """The partition; None if opening it takes a while."""
        partition = self._open(topic, index)
        if isinstance(partition, Promise):
            unopened.is_being_opened()
            self._opening[unopened] = asyncio.get_running_loop().create_future()
            partition.when_done(partial(self._opened_late, topic, index, unopened))
            return None
        self._add_opened(topic, index, partition)
        return partition

    def _opened_late(
        self, topic: Topic, index: int, unopened: Unopened, partition: Partition | None, error: Exception | None
    ) -> None:
        self._opening.pop(unopened).set_result(None)
        partitions = self._partitions.get(topic.name, [])
        if index >= len(partitions) or partitions[index] is not unopened:
            return  # the topic was deleted, or the partition has another leader, in the meantime
        if partition is not None:
            self._add_opened(topic, index, partition)
        elif isinstance(error, TidelogError):
            unopened.failed_again(error, self._clock())
        else:
            unopened.failed_again(StorageError(f"cannot open {topic.name}-{index}: {error!r}"), self._clock())

    def _add_opened(self, opened: Topic, index: int, partition: Partition) -> None:
        topic = self.topics.get(opened.name)
        unopened = self._partitions[topic.name][index]
        self._partitions[topic.name][index] = partition
        if topic.config != opened.config:
            self._configure(topic)
        if isinstance(unopened, Unopened) and unopened.is_failure:
            log.info("partition is available again", partition=str(partition.name))
        self.tables.partition_opened(topic)

    def partitions_of(self, topic: str) -> "Sequence[Partition | Unopened]":
        return self._partitions.get(topic, [])

    def needed_from(self, partition: TopicPartition) -> Offset | None:
        """The committed offset of the group that retention waits for; 0 if it has not committed yet. None: retention
        waits for no group."""
        topic = self.topics.find(partition.topic)
        group = topic.config.retention_wait_for_group if topic is not None else ""
        if not group:
            return None
        is_here = self.ownership.coordinator(Coordinated.GROUP, group).broker_id == self.ownership.node_id
        if is_here or self.others is None:
            return self.groups.committed(group, *partition) or 0
        return self.others.committed(group, partition) or 0

    def commit_in_transaction(self, question: CommitOffsets) -> CommitOffsetsReply | Promise[CommitOffsetsReply]:
        """Add offsets of a group, which its coordinator has just checked, to a transaction."""
        if self.others is not None:
            return self.others.commit_in_transaction(question)
        reply: CommitOffsetsReply | Promise[CommitOffsetsReply] = self.transactions.ask(question)
        return reply

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.topics.find_id(topic_id)
        return None if topic is None else topic.name
