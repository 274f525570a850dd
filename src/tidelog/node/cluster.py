"""A broker in a cluster: what it does when it gains and loses partitions, shards and the controller's office.

The controller owns topics and configs. It writes with a fence, the epoch of its lease, so nothing that an earlier
controller still writes takes effect. A broker that becomes the controller first learns what the earlier ones have
written; until that is done it answers as if it were not. The other brokers follow the controller's changes of topics
and configs, once a second or as soon as somebody asks for a topic that they do not know. Groups and transactions
belong to shards, whose leases all brokers share (`shard_loading`).
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import structlog

from tidelog.broker.awaited_groups import AwaitedGroups
from tidelog.broker.broker import Broker
from tidelog.broker.configs import TOPIC, BrokerConfig
from tidelog.broker.coordination.groups.environment import GroupBounds
from tidelog.broker.coordination.transactions.coordinator import TransactionBounds
from tidelog.broker.coordination.transactions.messages import CommitOffsets, CommitOffsetsReply
from tidelog.broker.group_shards import GroupShards
from tidelog.broker.membership.broker_ids import automatic_broker_id
from tidelog.broker.membership.member import Member
from tidelog.broker.membership.ownership import ClusterOwnership, Owned
from tidelog.broker.membership.pulse import Timing
from tidelog.broker.ownership import NOBODY
from tidelog.broker.peers import Peers
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.remote_offsets import EndNotices, OffsetRequests
from tidelog.broker.remote_transactions import Markers, Verification
from tidelog.broker.tables import TABLES
from tidelog.broker.topics import Topic, Topics
from tidelog.broker.transaction_shards import TransactionShards
from tidelog.broker.writes import Writes
from tidelog.errors import StorageError, TidelogError
from tidelog.metadata.opening import open_registry, open_store
from tidelog.metadata.registry import CONTROLLER
from tidelog.metadata.rows import ConfigRow
from tidelog.metadata.store import Delete, Fence, MetadataStore, News, Put
from tidelog.node.coordinators import group_config, transaction_config
from tidelog.node.parts import close_logs, cluster_id
from tidelog.node.shard_loading import Cooperation, ShardLoading
from tidelog.promise import Promise
from tidelog.settings import AUTO, ClusterSettings, NodeSettings
from tidelog.storage.engines import claim_cluster_storage, cluster_tables, open_cluster_store
from tidelog.storage.trouble import Trouble
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from tidelog.wire.primitives import Struct

_RETRY_S = 0.5
_PATIENCE_S = 5.0
_ANNOUNCE_S = 1.0
_FORWARD_S = 60.0
_AWAITED_EVERY = 5  # looks for changes
INTER_BROKER_LISTENER = "PLAINTEXT"
"""The first listener of each broker."""
NO_FENCE = Fence(CONTROLLER, 0)
"""Of nobody: epochs begin at 1. Whatever is written with it is refused."""

NO_TOPICS = MetadataRequest([], False)
"""Tells another broker to look at what has changed."""

log = structlog.get_logger("tidelog.cluster")

T = TypeVar("T")


class ClusterNode:
    """Builds a broker of a cluster, in the steps in which a node starts. While the database cannot be reached, each
    step waits for it."""

    def __init__(self, cluster: ClusterSettings, settings: NodeSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self.node_id = settings.node_id

    async def open(self, started: AsyncExitStack) -> ClusterOwnership:
        """Connect to the database and the object store; find an id if none is set."""
        cluster, settings = self._cluster, self._settings
        self._metadata = await open_store(cluster.metadata)
        started.push_async_callback(self._metadata.close)
        timing = Timing(cluster.heartbeat_ms / 1000, cluster.fence_after_ms / 1000, cluster.dead_after_ms / 1000)
        registry = await open_registry(cluster.metadata, cluster_tables(), dead_after_s=timing.dead_after)
        started.push_async_callback(registry.close)
        if self.node_id == AUTO:
            self.node_id = await _when_reachable(lambda: automatic_broker_id(self._metadata, registry))
        self._cluster_id = await _when_reachable(lambda: cluster_id(self._metadata))
        await _when_reachable(lambda: claim_cluster_storage(cluster, self._cluster_id))
        ownership = self._ownership = ClusterOwnership(self.node_id)
        self._logs = await open_cluster_store(
            cluster, settings.storage, self.node_id, lambda: ownership.controller().broker_id == self.node_id
        )
        started.push_async_callback(close_logs, self._logs)
        self._member = Member(registry, ownership, timing=timing)
        return ownership

    async def start(self, config: BrokerConfig, started: AsyncExitStack) -> Broker:
        """The broker, which owns nothing yet."""
        metadata, ownership = self._metadata, self._ownership
        topics = Topics(metadata, config)
        producer_ids = ProducerIds(metadata)
        peers = Peers(ownership, INTER_BROKER_LISTENER)
        groups = GroupShards(GroupBounds(group_config(config)), topics.writes, config)
        transactions = TransactionShards(TransactionBounds(transaction_config(config)))
        topics.listen(groups)
        topics.listen(transactions)
        broker = Broker(
            cluster_id=self._cluster_id,
            topics=topics,
            logs=self._logs,
            groups=groups,
            transactions=transactions,
            producer_ids=producer_ids,
            metadata=metadata,
            tables_directory=f"{self._settings.data_dir}/broker-{self.node_id}/{TABLES}",
            ownership=ownership,
        )
        started.push_async_callback(broker.close)
        self._duties = ClusterDuties(
            broker,
            self._member,
            metadata,
            groups,
            transactions,
            peers,
            follow_every_s=self._cluster.heartbeat_ms / 1000,
        )
        started.push_async_callback(self._duties.close)
        await _when_reachable(self._duties.follow)
        return broker

    async def join(self, started: AsyncExitStack) -> None:
        """Become a member of the cluster, and do the work that the controller assigns. Before the node stops, hand it
        over. Returns when there is a controller, and all coordinators: clients that ask earlier might wait for
        minutes before they ask again."""
        self._duties.start()
        self._member.start()
        started.push_async_callback(self._member.stop, self._cluster.hand_over_ms / 1000)
        await self._duties.until_everything_has_an_owner()


async def _when_reachable(work: Callable[[], Awaitable[T]]) -> T:
    trouble = Trouble(
        log,
        bad="the broker waits for the cluster's database or object store",
        good="the cluster's database and object store can be reached",
    )
    while True:
        try:
            result = await work()
        except StorageError as error:
            if not error.retriable:
                raise
            trouble.failed(work, error)
            await asyncio.sleep(_RETRY_S)
        else:
            trouble.worked(work)
            return result


class ClusterDuties:
    """Listens to the member's ownership, and is its broker's `OtherBrokers`. Belongs to the running event loop."""

    def __init__(
        self,
        broker: Broker,
        member: Member,
        metadata: MetadataStore,
        groups: GroupShards,
        transactions: TransactionShards,
        peers: Peers,
        *,
        follow_every_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._member = member
        self._metadata = metadata
        self._groups = groups
        self._peers = peers
        self._follow_every_s = follow_every_s
        self._clock = clock
        self._is_in_office = False  # this broker is the controller, and knows everything
        self._taking_office: asyncio.Task[None] | None = None
        self._version = -1  # of the followed changes
        self._following = asyncio.Lock()
        self._refreshing = asyncio.Lock()
        self._next_refresh: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[None]] = []
        self._hurrying: set[asyncio.Task[Any]] = set()
        ownership = member.ownership
        self._markers = Markers(peers, broker.topics, ownership)
        self._notices = EndNotices(peers, ownership, groups.transaction_ended)
        self._offset_requests = OffsetRequests(peers, ownership, transactions)
        cooperation = Cooperation(ownership, self._markers, self._notices)
        self._shards = ShardLoading(
            broker, groups, transactions, metadata, broker.producer_ids, cooperation, self.follow
        )
        self._awaited = AwaitedGroups(peers, ownership, broker.topics)
        self.verification = Verification(peers, member.ownership, broker.find)
        self.drain = member.drain
        self.committed = self._awaited.committed
        broker.others = self
        member.on_assigned = self._hurry
        broker.config.is_other_broker = self._is_other_broker
        broker.topics.brokers = lambda: member.ownership.members
        broker.topics.assign = self._assign
        broker.topics.announce = self._announce
        self._write_as(NO_FENCE)
        member.listen(self)

    def start(self) -> None:
        self._background = [
            asyncio.create_task(self._keep_following(), name="following the controller"),
            asyncio.create_task(self._keep_asking(), name="offsets that retention waits for"),
        ]

    async def close(self) -> None:
        self._leave_office()
        tasks = [
            *self._background,
            *self._hurrying,
            *([self._next_refresh] if self._next_refresh is not None else []),
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._shards.close()
        await self._notices.close()
        await self._markers.close()
        await self._peers.close()

    async def until_everything_has_an_owner(self) -> None:
        ownership = self._member.ownership

        def is_so() -> bool:
            has_controller = self._is_in_office or ownership.controller().broker_id not in (NOBODY, ownership.node_id)
            return has_controller and ownership.has_coordinators() and self._shards.is_done

        await self._patiently(is_so)

    # What this broker owns

    def lost(self, things: Owned) -> None:
        if CONTROLLER in things.leases:
            self._leave_office()
        self._shards.lost(things.leases)
        for topic_id, number in things.partitions:
            self._broker.leader_lost(topic_id, number)

    def gained(self, things: Owned) -> None:
        epoch = things.leases.get(CONTROLLER)
        if epoch is not None:
            self._taking_office = asyncio.create_task(self._take_office(Fence(CONTROLLER, epoch)))
        self._shards.gained(things.leases)
        for topic_id, number in things.partitions:
            self._broker.leader_gained(topic_id, number)

    # The controller's office

    async def _take_office(self, fence: Fence) -> None:
        trouble = Trouble(
            log, bad="the controller cannot load the cluster's state", good="the controller has loaded the state"
        )
        while True:
            try:
                async with self._following:
                    await self._follow()
                    await self._broker.create_missing_logs()
                    self._write_as(fence)
                    self._is_in_office = True
                log.info("this broker is the controller", epoch=fence.epoch)
                await self._broker.remove_deleted()
                break
            except Exception as error:  # whatever it is: nobody else does it while this broker has the office
                trouble.failed(self, error)
                if self._is_in_office:
                    break
                await asyncio.sleep(_RETRY_S)
        trouble.worked(self)

    def _leave_office(self) -> None:
        if self._taking_office is not None:
            self._taking_office.cancel()
            self._taking_office = None
        self._write_as(NO_FENCE)
        if self._is_in_office:
            self._is_in_office = False
            log.info("this broker is no longer the controller")

    def _write_as(self, fence: Fence) -> None:
        """Write topics and configs with this fence."""
        self._broker.topics.writes = self._groups.configs.writes = Writes(self._metadata, fence)

    # Following the controller

    async def _keep_following(self) -> None:
        trouble = Trouble(
            log, bad="changes of topics cannot be followed at the moment", good="changes of topics are followed again"
        )
        while True:
            try:
                await self.follow()
                for topic_id, number in list(self._member.ownership.mine.partitions):
                    self._broker.leader_gained(topic_id, number)  # if an earlier attempt to open it has failed
                trouble.worked(self)
            except Exception as error:  # whatever it is, it is tried again
                trouble.failed(self, error)
            await asyncio.sleep(self._follow_every_s)

    async def _keep_asking(self) -> None:
        """A task of its own: a coordinator that does not answer must not keep this broker from following."""
        trouble = Trouble(
            log,
            bad="the offsets that retention waits for cannot be looked up at the moment",
            good="the offsets that retention waits for are looked up again",
        )
        while True:
            try:
                await self._awaited.look()
                trouble.worked(self)
            except Exception as error:  # whatever it is, it is tried again
                trouble.failed(self, error)
            await asyncio.sleep(_AWAITED_EVERY * self._follow_every_s)

    async def follow(self) -> None:
        """Apply what the controller has changed; it knows its own changes."""
        async with self._following:
            if not self._is_in_office:
                await self._follow()

    async def refresh(self) -> None:
        """Learn what was changed before this call. Calls that wait at the same time share the work."""
        if self._next_refresh is None:
            self._next_refresh = asyncio.create_task(self._refresh())
        await asyncio.shield(self._next_refresh)

    async def _refresh(self) -> None:
        async with self._refreshing:
            self._next_refresh = None  # who comes from now on needs another one
            with contextlib.suppress(TidelogError):  # then the answer is as old as the last beat
                await self._member.look()
                await self.follow()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANNOUNCE_S):
                await self._broker.until_opened()

    async def _follow(self) -> None:
        news = await self._metadata.changes_since(self._version)
        if news.changes is None:
            await self._broker.topics.reload()
        else:
            self._broker.topics.follow(news.changes)
        if news.changes is None or _has_configs(news):
            rows = await self._metadata.load(ConfigRow)
            self._broker.config.reload(rows)
            self._groups.configs.reload(rows)
        self._version = news.version

    # Transactions

    def commit_in_transaction(self, question: CommitOffsets) -> Promise[CommitOffsetsReply]:
        return self._groups.commit_in_transaction(question, self._offset_requests.ask)

    # Topics

    async def forward(self, api: str, version: int, message: Struct, *, to: int | None = None) -> Any:  # noqa: ANN401
        if to is not None:
            return await self._peers.ask(to, api, message, at_most=version)
        controller = self._member.ownership.controller().broker_id
        reply = await self._peers.ask(
            controller, api, message, at_most=version, lane="forwarded", timeout_s=_FORWARD_S
        )
        await self.refresh()
        return reply

    def _is_other_broker(self, resource: str) -> bool:
        return resource in map(str, self._member.ownership.members)

    def move_leaders(self, leaders: Mapping[tuple[bytes, int], int]) -> None:
        self._member.move({partition: broker_id for partition, broker_id in leaders.items()})  # noqa: C416

    def _assign(self, topic: Topic, leaders: Mapping[int, int]) -> None:
        self._member.move({(topic.topic_id, number): broker_id for number, broker_id in leaders.items()})

    async def leaders_assigned(self, topic: Topic) -> None:
        self._member.hurry()
        ownership = self._member.ownership

        def have_leaders() -> bool:
            return all(
                ownership.leader(topic.topic_id, number).broker_id != NOBODY for number in range(topic.partitions)
            )

        await self._patiently(have_leaders)

    def _hurry(self, brokers: set[int]) -> None:
        """Let brokers look at once what they have got: at their next beat they would do so anyway."""
        for broker_id in brokers:
            task = asyncio.create_task(self._peers.ask(broker_id, "Metadata", NO_TOPICS))
            self._hurrying.add(task)
            task.add_done_callback(self._hurried)

    def _hurried(self, task: "asyncio.Task[Any]") -> None:
        self._hurrying.discard(task)
        if not task.cancelled():
            task.exception()  # it does not matter

    async def _announce(self, topic: Topic) -> None:
        """Let all brokers learn of a new topic: they look when they are asked for a topic that they do not know."""
        ownership = self._member.ownership
        others = [each.broker_id for each in ownership.brokers(INTER_BROKER_LISTENER)]
        request = MetadataRequest([MetadataRequestTopic(name=topic.name)], False)
        asking = [
            asyncio.create_task(self._peers.ask(broker_id, "Metadata", request))
            for broker_id in others
            if broker_id != ownership.node_id
        ]
        if asking:
            _, late = await asyncio.wait(asking, timeout=_ANNOUNCE_S)
            for each in late:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    async def create_topic(self, name: str) -> None:
        ownership = self._broker.ownership
        request = CreateTopicsRequest([CreatableTopic(name, -1, -1)], int(_PATIENCE_S * 1000))
        reply = await self._peers.ask(ownership.controller().broker_id, "CreateTopics", request)
        code = reply.topics[0].error_code
        if code not in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
            refusal = TidelogError(reply.topics[0].error_message or f"the controller refused to create {name}")
            refusal.kafka_code = code  # type: ignore[misc]
            raise refusal
        await self.refresh()

    async def _patiently(self, is_so: Callable[[], bool]) -> None:
        deadline = self._clock() + _PATIENCE_S
        while not is_so() and self._clock() < deadline:
            await asyncio.sleep(0.02)


def _has_configs(news: News) -> bool:
    """Of brokers or groups. Those of topics come with the topics."""
    for change in news.changes or ():
        if isinstance(change, Put) and isinstance(change.row, ConfigRow) and change.row.kind != TOPIC:
            return True
        if isinstance(change, Delete) and change.table is ConfigRow and change.key[0] != TOPIC:
            return True
    return False
