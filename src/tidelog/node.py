"""The composition root: settings in, a running broker out. The only place that builds long-lived objects.

Wiring is the list in `start`; stopping is that list backwards.
"""

import asyncio
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import AsyncExitStack

import structlog

from tidelog.broker.broker import Broker
from tidelog.broker.configs import BrokerConfig
from tidelog.broker.coordination.groups import GroupConfig, GroupCoordinator
from tidelog.broker.coordination.groups import Topic as GroupTopic
from tidelog.broker.coordination.transactions import TransactionConfig, TransactionCoordinator
from tidelog.broker.group_configs import GroupConfigs
from tidelog.broker.groups import Groups
from tidelog.broker.producer_ids import NEXT_PRODUCER_ID, ProducerIds
from tidelog.broker.shell import now_ms
from tidelog.broker.topics import Topic, Topics
from tidelog.broker.transactions import Transactions
from tidelog.errors import StorageUnavailable
from tidelog.gateways.kafka.connection import Limits
from tidelog.gateways.kafka.context import Context
from tidelog.gateways.kafka.fetch_sessions import FetchSessions
from tidelog.gateways.kafka.server import KafkaServer
from tidelog.metadata.rows import (
    ClusterRow,
    ConfigRow,
    DecisionRow,
    GroupMemberRow,
    GroupRow,
    OffsetRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.metadata.sqlite import METADATA_FILE, SqliteStore
from tidelog.metadata.store import MetadataStore, Put
from tidelog.settings import Listener, NodeSettings
from tidelog.storage.local.cleaner import Cleaner
from tidelog.storage.local.store import LocalStore

CLUSTER_ID = "cluster.id"
# As in the settings that Kafka ships for a single node: nobody else is about to join.
DEFAULTS = {"group.initial.rebalance.delay.ms": "0"}

log = structlog.get_logger("tidelog")


class Node:
    """A broker that runs in the current event loop, from `start` to `stop`."""

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self.listeners: list[Listener] = []
        self._config = BrokerConfig({**DEFAULTS, **settings.kafka}, node_id=settings.node_id)

    async def start(self) -> None:
        """If anything of it fails, what was started before is stopped again."""
        async with AsyncExitStack() as started:
            await self._start(started)
            self._started = started.pop_all()

    async def stop(self) -> None:
        """Answer what was asked, make everything durable, let go."""
        await self._started.aclose()

    async def _start(self, started: AsyncExitStack) -> None:
        settings, config = self.settings, self._config
        logs = LocalStore(settings.data_dir, settings.storage)
        started.push_async_callback(_close_logs, logs)
        metadata = await SqliteStore.open(f"{settings.data_dir}/{METADATA_FILE}")
        started.push_async_callback(metadata.close)
        config_rows = await metadata.load(ConfigRow)
        config.load(config_rows)
        cluster = {row.name: row.value for row in await metadata.load(ClusterRow)}
        topics = Topics(metadata, config)
        await topics.load()
        producer_ids = ProducerIds(metadata, int(cluster.get(NEXT_PRODUCER_ID, "0")))
        coordinator = _transaction_coordinator(config, producer_ids)
        restored = coordinator.restore(
            await metadata.load(TransactionRow),
            await metadata.load(TransactionOffsetRow),
            await metadata.load(DecisionRow),
            now_ms(),
        )
        groups = await _restored_groups(config, config_rows, topics, metadata, coordinator)
        started.push_async_callback(groups.close)
        transactions = Transactions(coordinator, metadata, producer_ids, groups.coordinator)
        topics.listen(transactions)
        started.push_async_callback(transactions.close)
        self.broker = Broker(
            cluster_id=cluster.get(CLUSTER_ID) or await _new_cluster_id(metadata),
            topics=topics,
            logs=logs,
            groups=groups,
            transactions=transactions,
            producer_ids=producer_ids,
            metadata=metadata,
        )
        started.push_async_callback(self.broker.tables.close)
        self.broker.open_topics()
        for partition, producer_id, offset in self.broker.hanging_transactions():
            log.warning(
                "a transaction hangs: find it with `tidelog txn list --hanging` and end it with `tidelog txn abort`",
                partition=str(partition),
                producer_id=producer_id,
                first_offset=offset,
            )
        transactions.begin(self.broker.partition, restored)
        server = self.server = KafkaServer(self._limits())
        config.on_change.append(lambda: server.limit(self._limits()))
        started.push_async_callback(server.close, settings.shutdown_grace_ms / 1000)
        started.callback(self.broker.stop_waiting)
        sessions = FetchSessions(self.broker.topic_name, config.number("max.incremental.fetch.session.cache.slots"))
        for listener in settings.listeners:
            self.listeners.append(await self._listen(server, listener, sessions))
        if config.flag("log.cleaner.enable"):
            threads = config.number("log.cleaner.threads")
            cleaner = Cleaner(logs.files, logs.logs, config.cleaner_settings, threads=threads)
            started.push_async_callback(cleaner.close)
        upkeep = asyncio.create_task(self._keep_up(logs))
        started.callback(upkeep.cancel)

    async def _listen(self, server: KafkaServer, listener: Listener, sessions: FetchSessions) -> Listener:
        context = Context(
            self.broker,
            sessions,
            self._config.number("fetch.max.bytes"),
            listener.advertised_host or listener.host,
            listener.advertised_port,
        )
        try:
            host, port = await server.listen(listener.host, listener.port, context)
        except OSError as error:
            raise StorageUnavailable(
                f"cannot listen on {listener}: {error.strerror or error}; is another broker running there?"
            ) from error
        if not context.advertised_port:
            context.advertised_port = port
        return Listener(host, port, context.advertised_host, context.advertised_port)

    def _limits(self) -> Limits:
        config, settings = self._config, self.settings
        return Limits(
            max_frame_bytes=config.number("socket.request.max.bytes"),
            max_pending_bytes=settings.max_pending_bytes,
            max_total_bytes=settings.max_total_pending_bytes,
            max_connections=config.number("max.connections"),
            max_connections_per_address=config.number("max.connections.per.ip"),
            idle_seconds=config.number("connections.max.idle.ms") / 1000,
        )

    async def _keep_up(self, logs: LocalStore) -> None:
        while True:
            await asyncio.sleep(self._config.number("log.retention.check.interval.ms") / 1000)
            for partition, error in (await logs.upkeep_in_steps(now_ms(), self.broker.needed_from)).items():
                log.error("upkeep failed", partition=str(partition), reason=str(error))


async def _close_logs(logs: LocalStore) -> None:
    for partition, error in (await logs.close()).items():
        log.error("could not be closed cleanly", partition=str(partition), reason=str(error))


async def _new_cluster_id(metadata: MetadataStore) -> str:
    cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    await metadata.write([Put(ClusterRow(CLUSTER_ID, cluster_id))])
    return cluster_id


def _transaction_coordinator(config: BrokerConfig, producer_ids: ProducerIds) -> TransactionCoordinator:
    return TransactionCoordinator(
        TransactionConfig(
            transaction_max_timeout_ms=config.number("transaction.max.timeout.ms"),
            transactional_id_expiration_ms=config.number("transactional.id.expiration.ms"),
            transaction_remove_expired_transaction_cleanup_interval_ms=config.number(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
        ),
        producer_ids.take,
    )


async def _restored_groups(
    config: BrokerConfig,
    config_rows: Sequence[ConfigRow],
    topics: Topics,
    metadata: MetadataStore,
    transactions: TransactionCoordinator,
) -> Groups:
    coordinator = GroupCoordinator(
        GroupConfig(
            group_min_session_timeout_ms=config.number("group.min.session.timeout.ms"),
            group_max_session_timeout_ms=config.number("group.max.session.timeout.ms"),
            group_initial_rebalance_delay_ms=config.number("group.initial.rebalance.delay.ms"),
            group_max_size=config.number("group.max.size"),
            group_consumer_session_timeout_ms=config.number("group.consumer.session.timeout.ms"),
            group_consumer_heartbeat_interval_ms=config.number("group.consumer.heartbeat.interval.ms"),
            group_consumer_migration_policy=str(config.value("group.consumer.migration.policy")),
            group_consumer_max_size=config.number("group.consumer.max.size"),
            offset_metadata_max_bytes=config.number("offset.metadata.max.bytes"),
            offsets_retention_minutes=config.number("offsets.retention.minutes"),
            offsets_retention_check_interval_ms=config.number("offsets.retention.check.interval.ms"),
        ),
        _TopicsOfGroups(topics),
        lambda: str(uuid.uuid4()),
        transactions.is_unstable,
    )
    configs = GroupConfigs(metadata, config, coordinator.configure)
    configs.load(config_rows)  # before the members: their sessions begin anew
    coordinator.restore(
        await metadata.load(GroupRow),
        await metadata.load(GroupMemberRow),
        await metadata.load(OffsetRow),
        now_ms(),
    )
    groups = Groups(coordinator, metadata, configs)
    topics.listen(groups)
    return groups


class _TopicsOfGroups:
    """The topics as the groups see them."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def by_name(self, name: str) -> GroupTopic | None:
        return _as_seen(self._topics.find(name))

    def by_id(self, topic_id: bytes) -> GroupTopic | None:
        return _as_seen(self._topics.find_id(topic_id))

    def names(self) -> list[str]:
        return [topic.name for topic in self._topics]


def _as_seen(topic: Topic | None) -> GroupTopic | None:
    return None if topic is None else GroupTopic(topic.name, topic.topic_id, topic.partitions)
