"""The composition root: settings in, a running broker out. The only place that builds long-lived objects.

`start` builds the parts in order; `stop` stops them in reverse order.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import cached_property

import structlog

from tidelog.broker.broker import Broker
from tidelog.broker.configs import BrokerConfig
from tidelog.broker.memory import MemoryPart, Returned, check_budget
from tidelog.broker.ownership import Ownership, SoleOwnership
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.sessions import Endpoint
from tidelog.broker.tables import TABLES
from tidelog.broker.topics import Topics
from tidelog.errors import StorageUnavailable
from tidelog.gateways.kafka.acceptor import descriptor_limit, reserved_descriptors
from tidelog.gateways.kafka.connection import Limits
from tidelog.gateways.kafka.context import Context
from tidelog.gateways.kafka.fetch_sessions import PARTITION_BYTES, FetchSessions
from tidelog.gateways.kafka.server import KafkaServer
from tidelog.metadata.opening import open_store
from tidelog.metadata.rows import (
    ConfigRow,
)
from tidelog.node.coordinators import restored_coordinators
from tidelog.node.parts import close_logs, cluster_id
from tidelog.settings import ListenerSettings, NodeSettings
from tidelog.storage.engines import open_log_store
from tidelog.storage.log import UpkeepPolicy
from tidelog.storage.trouble import Trouble

_GIVE_BACK_SECONDS = 10.0
# As in the settings that Kafka ships for a single node: a new group need not wait for more members.
DEFAULTS = {"group.initial.rebalance.delay.ms": "0"}

log = structlog.get_logger("tidelog")


class Node:
    """A broker that runs in the current event loop, from `start` to `stop`."""

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self.listeners: list[ListenerSettings] = []
        self.ownership: Ownership = SoleOwnership(settings.node_id)
        self._config = _config(settings, settings.node_id)

    async def start(self) -> None:
        """If a part fails to start, the parts that were started before it are stopped again."""
        async with AsyncExitStack() as started:
            await self._start(started)
            self._started = started.pop_all()

    async def stop(self) -> None:
        """Answer pending requests, make everything durable, and release all files and sockets."""
        await self._started.aclose()

    async def _start(self, started: AsyncExitStack) -> None:
        if self.settings.cluster is None:
            await self._start_alone(started)
            await self._bind(started)
        else:
            from tidelog.node.cluster import ClusterNode  # only brokers of a cluster have its libraries

            cluster = ClusterNode(self.settings.cluster, self.settings)
            self.ownership = await cluster.open(started)
            self._config = _config(self.settings, cluster.node_id)
            self.broker = await cluster.start(self._config, started)
            await self._bind(started)
            await cluster.join(started)
        self.server.accept()

    async def _start_alone(self, started: AsyncExitStack) -> None:
        """Build a broker that owns everything."""
        settings, config = self.settings, self._config
        logs = open_log_store(settings.data_dir, settings.storage)
        started.push_async_callback(close_logs, logs)
        metadata = await open_store(settings.data_dir)
        started.push_async_callback(metadata.close)
        config.load(await metadata.load(ConfigRow))
        topics = Topics(metadata, config)
        await topics.load()
        producer_ids = ProducerIds(metadata)
        coordinators = await restored_coordinators(config, topics, metadata, producer_ids, self.ownership)
        groups, transactions, restored = coordinators
        started.push_async_callback(coordinators.close)
        topics.listen(groups)
        topics.listen(transactions)
        self.broker = Broker(
            cluster_id=await cluster_id(metadata),
            topics=topics,
            logs=logs,
            groups=groups,
            transactions=transactions,
            producer_ids=producer_ids,
            metadata=metadata,
            tables_directory=f"{settings.data_dir}/{TABLES}",
            ownership=self.ownership,
        )
        started.push_async_callback(self.broker.close)
        await self.broker.open_topics()
        for partition, producer_id, offset in self.broker.hanging_transactions():
            log.warning(
                "a transaction hangs: find it with `tidelog txn list --hanging`, abort it with `tidelog txn abort`",
                partition=str(partition),
                producer_id=producer_id,
                first_offset=offset,
            )
        transactions.begin(self.broker.partition, restored)

    async def _bind(self, started: AsyncExitStack) -> None:
        """Bind the listeners, and maintain the logs from now on."""
        settings, config, logs = self.settings, self._config, self.broker.logs
        server = self.server = KafkaServer(self._limits(), self.broker)
        config.on_change.append(lambda: server.limit(self._limits()))
        started.push_async_callback(server.close, settings.shutdown_grace_ms / 1000)
        started.callback(self.broker.stop_waiting)
        sessions = FetchSessions(
            self.broker.topic_name,
            config.number("max.incremental.fetch.session.cache.slots"),
            config.number("tidelog.max.fetch.session.partitions"),
        )
        memory = _Memory(settings, config, self.broker, server, sessions)
        check_budget(memory.budget_bytes, memory.parts())
        for listener in settings.listeners:
            self.listeners.append(await self._listen(server, listener, sessions, memory))
        config.show(_as_kafka_shows(logs.place().name, self.listeners))
        logs.start_upkeep(_upkeep_policy(config, self.broker))
        started.push_async_callback(logs.stop_upkeep)
        giving_back = asyncio.create_task(_give_memory_back())
        started.callback(giving_back.cancel)

    async def _listen(
        self, server: KafkaServer, listener: ListenerSettings, sessions: FetchSessions, memory: "_Memory"
    ) -> ListenerSettings:
        def context(port: int) -> Context:
            endpoint = Endpoint(name, listener.advertised_host or listener.host, listener.advertised_port or port)
            self.ownership.advertise(endpoint)
            return Context(self.broker, sessions, self._config.number("fetch.max.bytes"), endpoint, memory)

        name = _listener_name(len(self.listeners))
        try:
            host, port = await server.listen(listener.host, listener.port, context)
        except OSError as error:
            raise StorageUnavailable(
                f"cannot listen on {listener}: {error.strerror or error}; is another broker using this address?"
            ) from error
        return ListenerSettings(
            host, port, listener.advertised_host or listener.host, listener.advertised_port or port
        )

    @cached_property
    def _affordable_connections(self) -> int:
        """How many connections the limit of open files allows, after the segments and a reserve."""
        limit = descriptor_limit()
        if limit is None:
            return self._config.number("max.connections")
        return max(16, limit - self.broker.logs.max_descriptors - reserved_descriptors(limit))

    def _limits(self) -> Limits:
        config, settings = self._config, self.settings
        return Limits(
            max_frame_bytes=config.number("socket.request.max.bytes"),
            max_entries=max(
                config.number("tidelog.max.request.entries"), 3 * config.number("tidelog.max.partitions")
            ),
            max_pending_bytes=settings.max_pending_bytes,
            max_total_bytes=settings.max_total_pending_bytes,
            max_total_reply_bytes=settings.max_total_reply_bytes,
            max_connections=min(config.number("max.connections"), self._affordable_connections),
            max_connections_per_address=config.number("max.connections.per.ip"),
            idle_seconds=config.number("connections.max.idle.ms") / 1000,
        )


def _config(settings: NodeSettings, node_id: int) -> BrokerConfig:
    return BrokerConfig({**DEFAULTS, **settings.kafka}, node_id=node_id)


def _upkeep_policy(config: BrokerConfig, broker: Broker) -> UpkeepPolicy:
    return UpkeepPolicy(
        interval_ms=lambda: config.number("log.retention.check.interval.ms"),
        keep_from=broker.needed_from,
        cleaner=config.cleaner_settings,
        cleaner_threads=config.number("log.cleaner.threads") if config.flag("log.cleaner.enable") else 0,
    )


def _listener_name(index: int) -> str:
    """Listeners have no names in Tidelog's settings, but Kafka's configs and clients need one."""
    return "PLAINTEXT" if index == 0 else f"PLAINTEXT_{index + 1}"


def _as_kafka_shows(place: str, listeners: Sequence[ListenerSettings]) -> dict[str, str]:
    """The data directory and the listeners, as Kafka's broker configs."""
    names = [_listener_name(index) for index in range(len(listeners))]
    named = list(zip(names, listeners, strict=True))
    return {
        "log.dir": place,
        "log.dirs": place,
        "listeners": ",".join(f"{name}://{listener}" for name, listener in named),
        "advertised.listeners": ",".join(f"{name}://{listener.advertised}" for name, listener in named),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
    }


async def _give_memory_back() -> None:
    returned = Returned()
    trouble = Trouble(
        log, bad="freed memory is not returned to the system", good="freed memory is returned to the system again"
    )
    while True:
        await asyncio.sleep(_GIVE_BACK_SECONDS)
        try:
            if returned.is_due:
                await asyncio.to_thread(returned.give_back)
            trouble.worked(returned)
        except Exception as error:  # for example: no thread can be started; it is tried again later
            trouble.failed(returned, error)


class _Memory:
    """The parts of the memory budget, and how much each uses now."""

    def __init__(
        self,
        settings: NodeSettings,
        config: BrokerConfig,
        broker: Broker,
        server: KafkaServer,
        sessions: FetchSessions,
    ) -> None:
        self.budget_bytes = settings.memory_budget_bytes
        self._settings = settings
        self._config = config
        self._broker = broker
        self._server = server
        self._sessions = sessions

    def parts(self) -> list[MemoryPart]:
        settings, server, sessions = self._settings, self._server, self._sessions
        return [
            MemoryPart("requests", "max-total-pending-bytes", settings.max_total_pending_bytes, server.held_bytes),
            MemoryPart("replies", "max-total-reply-bytes", settings.max_total_reply_bytes, server.reply_bytes),
            *(MemoryPart(*each) for each in self._broker.logs.memory),
            MemoryPart(
                "fetch sessions",
                "tidelog.max.fetch.session.partitions",
                sessions.most_partitions * PARTITION_BYTES,
                sessions.partitions * PARTITION_BYTES,
            ),
            MemoryPart(
                "compaction", "log.cleaner.dedupe.buffer.size", self._config.cleaner_settings().dedupe_buffer_bytes, 0
            ),
            *(
                MemoryPart(bound.things, bound.config, bound.limit_bytes, bound.used_bytes)
                for bounds in (self._broker.groups.bounds, self._broker.transactions.bounds)
                for bound in bounds
            ),
        ]
