"""Builds the coordinators of groups and transactions, with the settings of the broker. A broker that is alone has one
of each; in a cluster each shard has one (`shard_loading`)."""

import uuid
from collections.abc import Callable
from typing import NamedTuple

from tidelog.broker.configs import BrokerConfig
from tidelog.broker.coordination.groups import GroupConfig, GroupCoordinator
from tidelog.broker.coordination.groups import Topic as GroupTopic
from tidelog.broker.coordination.groups.offsets import IsUnstable
from tidelog.broker.coordination.transactions import Outcome, TransactionConfig, TransactionCoordinator
from tidelog.broker.group_configs import GroupConfigs
from tidelog.broker.groups import Groups
from tidelog.broker.ownership import Ownership
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.shell import monotonic_ms, now_ms
from tidelog.broker.topics import Topic, Topics
from tidelog.broker.transactions import Transactions
from tidelog.metadata.rows import (
    ConfigRow,
    DecisionRow,
    GroupMemberRow,
    GroupRow,
    OffsetRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.metadata.store import MetadataStore


class Coordinators(NamedTuple):
    groups: Groups
    transactions: Transactions
    restored: Outcome
    """For `Transactions.begin`: what was decided and is not completed."""

    async def close(self) -> None:
        await self.transactions.close()
        await self.groups.close()


async def restored_coordinators(
    config: BrokerConfig, topics: Topics, metadata: MetadataStore, producer_ids: ProducerIds, ownership: Ownership
) -> Coordinators:
    """The coordinators of a broker that is alone, with everything that is stored."""
    transactions = transaction_coordinator(config, producer_ids)
    groups = group_coordinator(config, topics, transactions.is_unstable)
    configs = GroupConfigs(topics.writes, config, groups.configure)
    # Before the members: restoring starts their sessions, with these timeouts.
    configs.load(await metadata.load(ConfigRow))
    outcome = transactions.restore(
        await metadata.load(TransactionRow),
        await metadata.load(TransactionOffsetRow),
        await metadata.load(DecisionRow),
        monotonic_ms(),
    )
    groups.restore(
        await metadata.load(GroupRow),
        await metadata.load(GroupMemberRow),
        await metadata.load(OffsetRow),
        monotonic_ms(),
    )
    return Coordinators(
        Groups(groups, metadata, configs),
        Transactions(transactions, metadata, producer_ids, groups, ownership),
        outcome,
    )


def transaction_coordinator(config: BrokerConfig, producer_ids: ProducerIds) -> TransactionCoordinator:
    return TransactionCoordinator(transaction_config(config), producer_ids.take, now_ms)


def transaction_config(config: BrokerConfig) -> TransactionConfig:
    return TransactionConfig(
        transaction_max_timeout_ms=config.number("transaction.max.timeout.ms"),
        transactional_id_expiration_ms=config.number("transactional.id.expiration.ms"),
        transaction_remove_expired_transaction_cleanup_interval_ms=config.number(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
        tidelog_max_transactional_ids=config.number("tidelog.max.transactional.ids"),
        tidelog_max_transaction_entries=config.number("tidelog.max.transaction.entries"),
    )


def group_coordinator(
    config: BrokerConfig,
    topics: Topics,
    is_unstable: IsUnstable,
    is_in_transaction: Callable[[str], bool] = lambda _group: False,
) -> GroupCoordinator:
    return GroupCoordinator(
        group_config(config),
        _TopicsOfGroups(topics),
        lambda: str(uuid.uuid4()),
        now_ms,
        is_unstable,
        is_in_transaction,
    )


def group_config(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
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
