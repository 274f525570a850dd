"""The shell around the group coordinator: stores its decisions, sends its replies after that, and runs its timers.

JoinGroup and SyncGroup wait for other members, longer than a stopping broker can wait. When the broker stops, these
clients are told to look up the coordinator again; the group is unchanged, and its members continue after the restart.

When a write fails with `Fenced`, another broker owns the groups. From then on no request is answered from memory:
clients are told to look up their coordinator, and a list of the groups is empty.

A broker of a cluster learns late, by up to a few seconds, that another one owns the groups. What it tells about
committed offsets meanwhile could be older than what clients have committed there. So the store confirms the fence
before such a reply is sent.

If another broker may coordinate a transaction that commits offsets, `offsets_in_transactions` describes what happens.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import structlog

from tidelog.broker.coordination.groups import GroupCoordinator, Outcome
from tidelog.broker.coordination.groups.environment import GroupBounds
from tidelog.broker.coordination.groups.errors import CoordinatorNotAvailable, NotCoordinator
from tidelog.broker.coordination.groups.messages import (
    JoinGroup,
    ListGroups,
    ListGroupsReply,
    OffsetCommit,
    OffsetFetch,
    SyncGroup,
    TopicResult,
    refusal,
)
from tidelog.broker.coordination.groups.pending import PendingOffsets
from tidelog.broker.coordination.transactions.messages import CommitOffsets, CommitOffsetsReply
from tidelog.broker.group_configs import GroupConfigs
from tidelog.broker.offsets_in_transactions import AskTransaction, OffsetsInTransactions
from tidelog.broker.shell import Alarm, monotonic_ms, send, tell
from tidelog.broker.topics import Topic
from tidelog.broker.writes import Writes
from tidelog.errors import Fenced, TidelogError
from tidelog.metadata.rows import OffsetRow
from tidelog.metadata.store import Fence, MetadataStore
from tidelog.promise import Promise

log = structlog.get_logger("tidelog.groups")


class Groups:
    """Belongs to the running event loop; one coordinator makes all decisions, in order."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        metadata: MetadataStore,
        configs: GroupConfigs,
        fence: Fence | None = None,
        pending: PendingOffsets | None = None,
    ) -> None:
        """`pending`: the offsets of these groups that are in transactions, if other brokers may coordinate those."""
        self.coordinator = coordinator
        self.configs = configs
        self._writes = Writes(metadata, fence)
        self._may_be_replaced = fence is not None
        self._news = coordinator.bounds.news
        self._alarm = Alarm(coordinator.next_deadline_ms, self.tick)
        self._waiting: dict[Promise[Any], JoinGroup | SyncGroup] = {}  # requests that wait for other members
        self._stopping = False
        self._is_resigned = False
        self._in_transactions = (
            None
            if pending is None
            else OffsetsInTransactions(coordinator, pending, metadata, self._confirm, self._drop_deleted)
        )

    @property
    def bounds(self) -> GroupBounds:
        return self.coordinator.bounds

    def committed(self, group: str, topic: str, partition: int) -> int | None:
        """The group's durable committed offset of a partition; None: it has none."""
        return self.coordinator.committed(group, topic, partition)

    def ask(self, request: Any) -> Any:  # noqa: ANN401  (a request of `coordination.groups`, and its reply)
        """The reply, or a promise of it if it has to wait for a write or for other members."""
        if self._is_resigned:
            if isinstance(request, ListGroups):  # clients ask every broker for the groups that it coordinates
                return ListGroupsReply()
            return refusal(request, NotCoordinator.kafka_code)
        waits = isinstance(request, JoinGroup | SyncGroup)
        if self._stopping and waits:
            return refusal(request, CoordinatorNotAvailable.kafka_code)
        token: Promise[Any] = Promise()
        outcome = self.coordinator.handle(request, token, monotonic_ms())
        if self._news:
            tell(self._news, log.warning)
        must_confirm = self._may_be_replaced and isinstance(request, OffsetFetch)
        if not outcome.changes and not must_confirm and len(outcome.replies) == 1 and outcome.replies[0][0] is token:
            self._alarm.set()
            return outcome.replies[0][1]
        self._carry_out(outcome, must_confirm=must_confirm)
        if waits and not token.is_kept:
            self._waiting[token] = request
            return token.then(lambda reply: self._answered(token, reply))
        return token

    # Offsets in transactions

    def check_transactional(self, request: OffsetCommit) -> tuple[tuple[TopicResult, ...], list[OffsetRow]]:
        """See `GroupCoordinator.check_transactional`."""
        return self.coordinator.check_transactional(request, monotonic_ms())

    def commit_in_transaction(self, question: CommitOffsets, ask: AskTransaction) -> Promise[CommitOffsetsReply]:
        """`ask` asks the coordinator of the transaction. Call it right after `check_transactional`."""
        assert self._in_transactions is not None
        return self._in_transactions.commit(question, ask)

    def transaction_ended(self, transactional_id: str, group: str, topics: Collection[str] | None) -> Promise[int]:
        """The coordinator of a transaction that had offsets of the group tells that it has ended. An error code."""
        assert self._in_transactions is not None
        return self._in_transactions.ended(transactional_id, group, topics)

    def _confirm(self, then: Callable[[int], None]) -> None:
        def confirmed(error: TidelogError | None) -> None:
            if isinstance(error, Fenced):
                self.resign()
            if self._is_resigned:
                then(NotCoordinator.kafka_code)
            else:
                then(0 if error is None else CoordinatorNotAvailable.kafka_code)

        self._writes.write((), confirmed)

    def _drop_deleted(self, topics: Collection[str]) -> None:
        """Delete the offsets of topics that do not exist: a transaction has committed them after the deletion of the
        topic was carried out here."""
        self._carry_out(self.coordinator.drop_deleted(topics))

    def _answered(self, token: Promise[Any], reply: Any) -> Any:  # noqa: ANN401
        del self._waiting[token]
        return reply

    def stop_waiting(self) -> None:
        """The broker stops: answer all requests that wait for other members, and let no new ones wait. No group
        changes."""
        self._stopping = True
        self._give_up_waiting(CoordinatorNotAvailable.kafka_code)

    def _give_up_waiting(self, code: int) -> None:
        send([(token, refusal(request, code)) for token, request in self._waiting.items()])

    def resign(self) -> None:
        """Another broker owns the groups."""
        if self._is_resigned:
            return
        self._is_resigned = True
        self.coordinator.resign()
        if self._in_transactions is not None:
            self._in_transactions.close()
        self._alarm.close()
        self._give_up_waiting(NotCoordinator.kafka_code)

    def begin(self) -> None:
        """Everything was restored: drop what belongs to topics that were deleted meanwhile, and keep deadlines."""
        self._carry_out(self.coordinator.drop_deleted(None))

    # As a listener to topics

    def topic_created(self, _topic: Topic) -> None:
        self.coordinator.topics_changed()
        self._alarm.set()

    def topic_changed(self, _before: Topic, _after: Topic) -> None:
        self.coordinator.topics_changed()
        self._alarm.set()

    def topic_deleted(self, topic: Topic) -> None:
        self._carry_out(self.coordinator.topics_deleted([topic.name]))

    def tick(self) -> None:
        self._carry_out(self.coordinator.tick(monotonic_ms()))

    def _carry_out(self, outcome: Outcome, *, must_confirm: bool = False) -> None:
        if self._is_resigned:
            return
        self._alarm.set()
        if outcome.changes or must_confirm:
            self._writes.write(outcome.changes, partial(self._stored, outcome))
        else:
            send(outcome.replies)

    def _stored(self, outcome: Outcome, error: TidelogError | None) -> None:
        if isinstance(error, Fenced):
            self.resign()
            outcome.replies = [(token, reply.failed(NotCoordinator.kafka_code)) for token, reply in outcome.replies]
        elif error is not None:
            log.error("group state could not be stored or confirmed; clients have to retry", reason=str(error))
            outcome = self.coordinator.failed(outcome, monotonic_ms())
            self._alarm.set()
        else:
            self.coordinator.written(outcome)
        send(outcome.replies)

    async def close(self) -> None:
        self._alarm.close()
        if self._in_transactions is not None:
            self._in_transactions.close()
        await self._writes.drain()
