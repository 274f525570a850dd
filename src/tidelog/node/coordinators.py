"""Builds the coordinators of groups and transactions from the rows of the metadata store.

A broker that is alone builds them when it starts. In a cluster the controller has them: they are built whenever this
broker becomes the controller, and resign when it no longer is.
"""

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tidelog.broker.configs import BrokerConfig
from tidelog.broker.coordination.groups import GroupConfig, GroupCoordinator
from tidelog.broker.coordination.groups import Topic as GroupTopic
from tidelog.broker.coordination.transactions import Outcome, TransactionConfig, TransactionCoordinator
from tidelog.broker.group_configs import GroupConfigs
from tidelog.broker.groups import Groups
from tidelog.broker.ownership import Ownership
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.shell import monotonic_ms, now_ms
from tidelog.broker.topics import Topic, Topics
from tidelog.broker.transactions import Transactions
from tidelog.broker.writes import Writes
from tidelog.metadata.rows import (
    ConfigRow,
    DecisionRow,
    GroupMemberRow,
    GroupRow,
    OffsetRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.metadata.store import Fence, MetadataStore

if TYPE_CHECKING:
    from tidelog.broker.remote_transactions import Markers  # only brokers of a cluster need it, and a client


class Coordinators(NamedTuple):
    groups: Groups
    transactions: Transactions
    restored: Outcome
    """For `Transactions.begin`: what was decided and is not completed."""

    def resign(self) -> None:
        self.groups.resign()
        self.transactions.resign()

    async def close(self) -> None:
        await self.transactions.close()
        await self.groups.close()


class CoordinatorFactory:
    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        metadata: MetadataStore,
        producer_ids: ProducerIds,
        ownership: Ownership,
        markers: "Markers | None" = None,
    ) -> None:
        self._config = config
        self._topics = topics
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._ownership = ownership
        self._markers = markers

    async def restored(self, fence: Fence | None = None) -> Coordinators:
        """Coordinators with everything that is stored."""
        made = self._made(await self._metadata.load(ConfigRow), fence)
        groups, transactions = made.groups.coordinator, made.transactions.coordinator
        outcome = transactions.restore(
            await self._metadata.load(TransactionRow),
            await self._metadata.load(TransactionOffsetRow),
            await self._metadata.load(DecisionRow),
            monotonic_ms(),
        )
        groups.restore(
            await self._metadata.load(GroupRow),
            await self._metadata.load(GroupMemberRow),
            await self._metadata.load(OffsetRow),
            monotonic_ms(),
        )
        return made._replace(restored=outcome)

    def resigned(self) -> Coordinators:
        """Coordinators without anything, which refuse every request: those of another broker count."""
        made = self._made((), None)
        made.resign()
        return made

    def _made(self, config_rows: Sequence[ConfigRow], fence: Fence | None) -> Coordinators:
        transactions = _transaction_coordinator(self._config, self._producer_ids)
        groups = _group_coordinator(self._config, self._topics, transactions)
        writes = self._topics.writes if fence is None else Writes(self._metadata, fence)
        configs = GroupConfigs(writes, self._config, groups.configure)
        configs.load(config_rows)  # before the members: restoring starts their sessions, with these timeouts
        return Coordinators(
            Groups(groups, self._metadata, configs, fence),
            Transactions(
                transactions, self._metadata, self._producer_ids, groups, self._ownership, fence, self._markers
            ),
            Outcome(),
        )


def _transaction_coordinator(config: BrokerConfig, producer_ids: ProducerIds) -> TransactionCoordinator:
    return TransactionCoordinator(
        TransactionConfig(
            transaction_max_timeout_ms=config.number("transaction.max.timeout.ms"),
            transactional_id_expiration_ms=config.number("transactional.id.expiration.ms"),
            transaction_remove_expired_transaction_cleanup_interval_ms=config.number(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
            tidelog_max_transactional_ids=config.number("tidelog.max.transactional.ids"),
            tidelog_max_transaction_entries=config.number("tidelog.max.transaction.entries"),
        ),
        producer_ids.take,
        now_ms,
    )


def _group_coordinator(
    config: BrokerConfig, topics: Topics, transactions: TransactionCoordinator
) -> GroupCoordinator:
    return GroupCoordinator(
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
            tidelog_max_groups=config.number("tidelog.max.groups"),
            tidelog_max_group_members=config.number("tidelog.max.group.members"),
            tidelog_max_group_bytes=config.number("tidelog.max.group.bytes"),
            tidelog_max_group_offset_bytes=config.number("tidelog.max.group.offset.bytes"),
        ),
        _TopicsOfGroups(topics),
        lambda: str(uuid.uuid4()),
        now_ms,
        transactions.is_unstable,
    )


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
