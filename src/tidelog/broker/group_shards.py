"""`GroupShards`: the groups that a broker of a cluster coordinates. Has the interface of `Groups`."""

from collections.abc import Collection
from dataclasses import replace
from operator import attrgetter
from typing import Any

from tidelog.broker.configs import BrokerConfig
from tidelog.broker.coordination.groups import Pace
from tidelog.broker.coordination.groups import messages as m
from tidelog.broker.coordination.groups.environment import GroupBounds
from tidelog.broker.coordination.groups.errors import CoordinatorLoading, GroupError, NotCoordinator
from tidelog.broker.coordination.transactions.messages import CommitOffsets, CommitOffsetsReply
from tidelog.broker.group_configs import GroupConfigs
from tidelog.broker.groups import Groups
from tidelog.broker.offsets_in_transactions import AskTransaction
from tidelog.broker.shards import CoordinatorShards
from tidelog.broker.writes import Writes
from tidelog.metadata.rows import OffsetRow
from tidelog.promise import Promise

# Requests that name many groups: the field with them, an entry's id, the field of the reply, its class.
_MANY: dict[type[m.Request], tuple[str, Any, str, Any]] = {
    m.OffsetFetch: ("groups", attrgetter("group_id"), "groups", m.OffsetFetchReply),
    m.DescribeGroups: ("groups", str, "groups", m.DescribeGroupsReply),
    m.DeleteGroups: ("groups", str, "results", m.DeleteGroupsReply),
    m.ConsumerGroupDescribe: ("group_ids", str, "groups", m.ConsumerGroupDescribeReply),
}


class GroupShards(CoordinatorShards[Groups]):
    def __init__(self, bounds: GroupBounds, writes: Writes, config: BrokerConfig) -> None:
        """`writes` are those of the owner of configs."""
        super().__init__(bounds)
        self.configs = GroupConfigs(writes, config, self._configure)
        self._is_stopping = False

    def add(self, number: int, shard: Groups) -> None:
        super().add(number, shard)
        if self._is_stopping:
            shard.stop_waiting()

    def ask(self, request: Any) -> Any:  # noqa: ANN401
        """As `Groups.ask`."""
        if isinstance(request, m.ListGroups):
            return self._list(request)
        many = _MANY.get(type(request))
        if many is None:
            return self._ask(request.group_id, request)
        field, id_of, answered, reply = many
        entries = getattr(request, field)
        return self._each(
            [id_of(entry) for entry in entries],
            lambda id_, those: self._ask(id_, replace(request, **{field: tuple(entries[each] for each in those)})),
            attrgetter(answered),
            reply,
        )

    def _ask(self, group_id: str, request: Any) -> Any:  # noqa: ANN401
        shard = self._shard(group_id)
        return m.refusal(request, self._missing(group_id).kafka_code) if shard is None else shard.ask(request)

    def _missing(self, group_id: str) -> GroupError:
        if self._is_loading(group_id):
            return CoordinatorLoading(f"the group {group_id} is being loaded")
        return NotCoordinator(f"another broker owns the group {group_id}")

    def _list(self, request: m.ListGroups) -> m.ListGroupsReply:
        """Incomplete lists are not told: a client that asks all brokers may rely on having seen every group."""
        if self.is_loading:
            return m.ListGroupsReply(CoordinatorLoading.kafka_code)
        return m.ListGroupsReply(groups=tuple(group for shard in self for group in shard.ask(request).groups))

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        """As `Groups.committed`; None also while the group is being loaded."""
        shard = self._shard(group)
        return None if shard is None else shard.committed(group, topic, partition)

    def check_transactional(self, request: m.OffsetCommit) -> tuple[tuple[m.TopicResult, ...], list[OffsetRow]]:
        shard = self._shard(request.group_id)
        if shard is None:
            raise self._missing(request.group_id)
        return shard.check_transactional(request)

    def commit_in_transaction(self, question: CommitOffsets, ask: AskTransaction) -> Promise[CommitOffsetsReply]:
        shard = self._shard(question.group_id)
        assert shard is not None, "the request has just been checked there"
        return shard.commit_in_transaction(question, ask)

    def transaction_ended(self, transactional_id: str, group: str, topics: Collection[str] | None) -> Promise[int]:
        shard = self._shard(group)
        if shard is None:
            code: Promise[int] = Promise()
            code.settle(self._missing(group).kafka_code)
            return code
        return shard.transaction_ended(transactional_id, group, topics)

    def stop_waiting(self) -> None:
        self._is_stopping = True
        for shard in self:
            shard.stop_waiting()

    def _configure(self, group: str, pace: Pace | None) -> None:
        shard = self._shard(group)
        if shard is not None:
            shard.coordinator.configure(group, pace)
