"""`GroupCoordinator`: requests and the time go in, replies and rows to store come out.

How the shell drives it, on one thread:

    outcome = coordinator.handle(request, token, now_ms)     # or .tick(now_ms), .topics_deleted(names)
    if outcome.changes:
        try:
            await store.write(outcome.changes)
        except TidelogError:
            outcome = coordinator.failed(outcome, now_ms)
        else:
            coordinator.written(outcome)
    for token, reply in outcome.replies: send

Writes are asked for in the order of the decisions, and `written` is called in that order too.

The outcome of JoinGroup and SyncGroup may have no reply; the reply is in a later outcome, with the token of its
request. Call `tick` at `next_deadline_ms()`, which every call may change. Call `restore` once, first, with the rows
of the store.

What makes this safe:

*Replies contain only what is durable.* A decision changes memory at once and marks the rows in which memory is now
ahead of the store; every outcome of a group contains all its marked rows (`coordination/ledger.py`).

*A failed write undoes nothing.* (A write with unknown outcome has not failed: the shell repeats it until it is
decided, see `broker/writes.py`.) The replies that depended on it become COORDINATOR_NOT_AVAILABLE, which clients
retry; the rows stay marked and are part of the next outcome, or of a tick a second later. Memory, not the store, is
authoritative, and no client has seen the part that is not stored. If the process ends before the rows are stored, the
last state that any client has seen is restored.

*Committed offsets never go back.* They enter memory when they are durable, not before (see `offsets`), and writes
take effect in the order of the calls. If a write was reported as failed but took effect, it only moves an offset to
where its client is about to commit it again.

Exception: ListGroups and the Describe requests show the state in memory, durable or not.

*Deadlines do not depend on the time of day.* `now_ms` is a clock that never jumps and starts anywhere. Deadlines use
it, and start again when the coordinator is restored. Stored timestamps use the wall clock; only the expiry of offsets
depends on them.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tidelog.broker.coordination.groups.admin import Group, describe_classic, describe_consumer, list_groups
from tidelog.broker.coordination.groups.classic import ClassicGroup
from tidelog.broker.coordination.groups.classic_access import ClassicAccess
from tidelog.broker.coordination.groups.config import GroupConfig
from tidelog.broker.coordination.groups.consumer import ConsumerGroup, check_heartbeat
from tidelog.broker.coordination.groups.environment import (
    GROUP_ROW,
    Environment,
    GroupBounds,
    Pace,
    Token,
    TopicCatalog,
)
from tidelog.broker.coordination.groups.errors import (
    NO_ERROR,
    CoordinatorNotAvailable,
    GroupError,
    GroupIdNotFound,
    GroupMaxSizeReached,
    IllegalGeneration,
    InvalidCommitOffsetSize,
    InvalidGroupId,
    InvalidRequest,
    InvalidSessionTimeout,
    NonEmptyGroup,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from tidelog.broker.coordination.groups.messages import (
    JOIN_EPOCH,
    NO_MEMBER_ID,
    ConsumerGroupDescribe,
    ConsumerGroupDescribeReply,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    DeletedGroup,
    DeleteGroups,
    DeleteGroupsReply,
    DescribeGroups,
    DescribeGroupsReply,
    GroupOffsets,
    GroupOffsetsRequest,
    Heartbeat,
    HeartbeatReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    LeftMember,
    ListGroups,
    ListGroupsReply,
    OffsetCommit,
    OffsetCommitReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    PartitionResult,
    Reply,
    Request,
    SyncGroup,
    SyncGroupReply,
    TopicResult,
)
from tidelog.broker.coordination.groups.migration import downgraded, is_to_be_downgraded, upgraded
from tidelog.broker.coordination.groups.offsets import IsUnstable, Offsets
from tidelog.broker.coordination.ledger import Stamp
from tidelog.broker.coordination.timers import Timer
from tidelog.metadata.rows import GroupMemberRow, GroupRow, OffsetRow
from tidelog.metadata.store import Change, Delete, Put

WRITE_RETRY_MS = 1_000
SWEPT_AT_ONCE = 10_000  # groups and offsets, in about 10 ms
G = TypeVar("G", ClassicGroup, ConsumerGroup)


@dataclass(slots=True)
class Outcome:
    """What to do: make `changes` durable, then send `replies`. The rest is for `written` and `failed`."""

    replies: list[tuple[Token, Reply]]
    changes: list[Change]
    stamps: Sequence[Stamp] = ()
    commits_of: str | None = None  # the group for which a client committed offsets that are among the changes


class GroupCoordinator:
    def __init__(
        self,
        config: GroupConfig,
        topics: TopicCatalog,
        new_id: Callable[[], str],
        wall_ms: Callable[[], int],
        is_unstable: IsUnstable = lambda _group, _topic, _partition: False,
        is_in_transaction: Callable[[str], bool] = lambda _group: False,
    ) -> None:
        """`wall_ms` returns the time of day, for timestamps; `is_unstable` says whether an open transaction has an
        offset of a group for a topic and partition; `is_in_transaction`, whether one that another broker coordinates
        has any offset of a group."""
        self._env = Environment(config, topics, new_id, wall_ms)
        self._offsets = Offsets(config, topics, self._env.bounds.offset_bytes, is_unstable)
        self._is_in_transaction = is_in_transaction
        self._groups: dict[str, Group] = {}
        self._is_resigned = False
        self._sweep_timer = Timer(self._sweep)
        self._retry_timer = Timer(lambda _now_ms: None)  # causes a tick, which writes all marked rows
        self._swept: list[Change] = []
        self._to_sweep: list[str] = []  # groups that remain to be swept in this round
        self._handlers: dict[type[Request], Callable[[Any, Token, int], Outcome]] = {
            JoinGroup: self._join,
            SyncGroup: self._sync,
            Heartbeat: self._heartbeat,
            LeaveGroup: self._leave,
            OffsetCommit: self._commit,
            OffsetFetch: self._fetch,
            OffsetDelete: self._delete_offsets,
            ListGroups: self._list,
            DescribeGroups: self._describe,
            DeleteGroups: self._delete,
            ConsumerGroupHeartbeat: self._consumer_heartbeat,
            ConsumerGroupDescribe: self._consumer_describe,
        }

    # Called by the shell

    def handle(self, request: Request, token: Token, now_ms: int) -> Outcome:
        """Decides on one request. Refusals are replies; an exception is a bug."""
        return self._handlers[type(request)](request, token, now_ms)

    def tick(self, now_ms: int) -> Outcome:
        """Does what is due: ends sessions and rounds, expires offsets, writes rows again whose write failed."""
        self._env.timers.run(now_ms)
        for group_id in self._env.ledger.owners():
            self._downgrade_if_due(group_id, now_ms)
        swept, self._swept = self._swept, []
        return self._outcome(self._env.ledger.owners(), swept)

    def next_deadline_ms(self) -> int | None:
        """When to call `tick` next; an earlier or later call does no harm."""
        return self._env.timers.next_deadline_ms()

    def written(self, outcome: Outcome) -> None:
        """The outcome's changes are durable: its replies may be sent."""
        self._env.ledger.settle(outcome.stamps)
        if outcome.commits_of is not None:
            self._offsets.commit_ended(outcome.commits_of)
        self.offsets_committed(outcome.changes)

    def failed(self, outcome: Outcome, now_ms: int) -> Outcome:
        """The changes were not stored. Returns the replies to send instead."""
        if outcome.commits_of is not None:
            self._offsets.commit_ended(outcome.commits_of)
        if outcome.stamps:
            self._env.ledger.failed(outcome.stamps)
            self._env.timers.set(self._retry_timer, now_ms + WRITE_RETRY_MS)
        for change in outcome.changes:
            if isinstance(change, Delete) and change.table is OffsetRow:
                self._keep_if_it_has_offsets(str(change.key[0]))
        return Outcome(
            [(token, reply.failed(CoordinatorNotAvailable.kafka_code)) for token, reply in outcome.replies], []
        )

    def restore(
        self,
        groups: Iterable[GroupRow],
        members: Iterable[GroupMemberRow],
        offsets: Iterable[OffsetRow],
        now_ms: int,
    ) -> None:
        """Continues from the rows of the store. Members have a full session timeout from now on for their next
        request."""
        self._env.timers.set(self._sweep_timer, now_ms + self._env.config.offsets_retention_check_interval_ms)
        members_of: dict[str, list[GroupMemberRow]] = {}
        for member in members:
            members_of.setdefault(member.group, []).append(member)
        for row in groups:
            kind = ConsumerGroup if row.kind == ConsumerGroup.kind else ClassicGroup
            self._groups[row.group] = kind.restored(self._env, row, members_of.get(row.group, ()), now_ms)
        for offset in offsets:
            self._offsets.apply(Put(offset))
            self._keep_if_it_has_offsets(offset.group)
        self._count_groups()

    def resign(self) -> None:
        """Another broker owns the groups: the shell sends no more requests."""
        self._is_resigned = True

    def configure(self, group_id: str, pace: Pace | None) -> None:
        """Gives a group its own pace (its configs `consumer.session.timeout.ms` and
        `consumer.heartbeat.interval.ms`), or with None the usual one. It applies from the next heartbeats on."""
        if pace is None:
            self._env.paces.pop(group_id, None)
        else:
            self._env.paces[group_id] = pace

    @property
    def bounds(self) -> GroupBounds:
        """What all groups use, and the most they may use."""
        self._count_groups()
        return self._env.bounds

    def _count_groups(self) -> None:
        self._env.bounds.groups.used = len(self._groups)

    def committed(self, group_id: str, topic: str, partition: int) -> int | None:
        """The group's durable committed offset of a partition; None: it has none."""
        return self._offsets.committed(group_id, topic, partition)

    def topics_changed(self) -> None:
        """Topics were created, deleted, or got more partitions: groups that subscribe to them get new targets with
        their next heartbeats."""
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                group.topics_may_have_changed = True

    def topics_deleted(self, names: Iterable[str]) -> Outcome:
        """These topics were deleted: delete their offsets too. Includes `topics_changed`."""
        self.topics_changed()
        return self._outcome((), self._offsets.delete_topics(frozenset(names)))

    def drop_deleted(self, topics: Iterable[str] | None) -> Outcome:
        """Delete the offsets of those of these topics (None: of all) that do not exist. Only for a coordinator that
        knows all topics which existed when these offsets were committed."""
        named = self._offsets.topics() if topics is None else topics
        gone = [name for name in named if self._env.topics.by_name(name) is None]
        return self.topics_deleted(gone) if gone else Outcome([], [])

    # Membership

    def _join(self, request: JoinGroup, token: Token, now_ms: int) -> Outcome:
        group_id, config = request.group_id, self._env.config
        group = self._groups.get(group_id)
        try:
            if not group_id:
                raise InvalidGroupId("a group needs an id")
            if (
                not config.group_min_session_timeout_ms
                <= request.session_timeout_ms
                <= config.group_max_session_timeout_ms
            ):
                raise InvalidSessionTimeout(
                    f"session.timeout.ms must be from {config.group_min_session_timeout_ms}"
                    f" to {config.group_max_session_timeout_ms}"
                )
            if group is None:
                if request.member_id != NO_MEMBER_ID:
                    raise UnknownMemberId(f"there is no group {group_id}")
                self._check_room_for_a_group(GroupMaxSizeReached)
                group = self._groups[group_id] = ClassicGroup(self._env, group_id, self._env.wall_ms())
            elif isinstance(group, ConsumerGroup) and group.is_empty:
                if request.member_id != NO_MEMBER_ID:
                    raise UnknownMemberId(f"{group_id} has no members")
                group = self._become(ClassicGroup(self._env, group_id, self._env.wall_ms(), group.group_epoch))
            self._for_classic_members(group).join(request, token, now_ms)
        except GroupError as refusal:
            self._env.reply(token, JoinGroupReply(refusal.kafka_code, member_id=request.member_id))
            self._forget_if_blank(group_id)
        self._downgrade_if_due(group_id, now_ms)
        return self._outcome((group_id,))

    def _sync(self, request: SyncGroup, token: Token, now_ms: int) -> Outcome:
        try:
            self._with_members(request.group_id).sync(request, token, now_ms)
        except GroupError as refusal:
            self._env.reply(token, SyncGroupReply(refusal.kafka_code))
        return self._outcome((request.group_id,))

    def _heartbeat(self, request: Heartbeat, token: Token, now_ms: int) -> Outcome:
        try:
            error_code = self._with_members(request.group_id).heartbeat(request, now_ms)
        except GroupError as refusal:
            error_code = refusal.kafka_code
        reply = _HEARTBEAT_REPLIES.get(error_code) or HeartbeatReply(error_code)
        if request.group_id in self._env.ledger:
            self._env.reply(token, reply)
            return self._outcome((request.group_id,))
        return Outcome([(token, reply)], [])

    def _leave(self, request: LeaveGroup, token: Token, now_ms: int) -> Outcome:
        try:
            left = self._with_members(request.group_id).leave(request.members, now_ms)
            self._env.reply(token, LeaveGroupReply(members=left))
        except InvalidGroupId as refusal:
            self._env.reply(token, LeaveGroupReply(refusal.kafka_code))
        except GroupError as refusal:
            code = refusal.kafka_code
            left = tuple(LeftMember(member.member_id, member.group_instance_id, code) for member in request.members)
            self._env.reply(token, LeaveGroupReply(members=left))
        self._downgrade_if_due(request.group_id, now_ms)
        return self._outcome((request.group_id,))

    def _with_members(self, group_id: str) -> ClassicGroup | ClassicAccess:
        group = self._groups.get(group_id)
        if group is None:
            if not group_id:
                raise InvalidGroupId("a group needs an id")
            raise UnknownMemberId(f"there is no group {group_id}")
        return self._for_classic_members(group)

    def _for_classic_members(self, group: Group) -> ClassicGroup | ClassicAccess:
        return group if isinstance(group, ClassicGroup) else ClassicAccess(self._env, group)

    def _consumer_heartbeat(self, request: ConsumerGroupHeartbeat, token: Token, now_ms: int) -> Outcome:
        group_id = request.group_id
        group = self._groups.get(group_id)
        reply = group.steady_heartbeat(request, now_ms) if isinstance(group, ConsumerGroup) else None
        if reply is not None and group_id not in self._env.ledger:
            return Outcome([(token, reply)], [])
        if reply is None:
            try:
                if not group_id:
                    raise InvalidRequest("GroupId can't be empty.")
                check_heartbeat(request, self._env.config.group_consumer_max_regex_length)
                reply = self._consumer_group(request, now_ms).heartbeat(request, now_ms)
            except GroupError as refusal:
                reply = ConsumerGroupHeartbeatReply(
                    refusal.kafka_code,
                    error_message=str(refusal),
                    member_id=request.member_id,
                    member_epoch=request.member_epoch,
                )
                self._forget_if_blank(group_id)
        self._env.reply(token, reply)
        self._downgrade_if_due(group_id, now_ms)
        return self._outcome((group_id,))

    def _consumer_group(self, request: ConsumerGroupHeartbeat, now_ms: int) -> ConsumerGroup:
        """The group. For a member that joins it is created, or made from a classic group."""
        group_id = request.group_id
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if request.member_epoch != JOIN_EPOCH:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if group is not None and not group.is_empty:
            made = self._groups[group_id] = upgraded(self._env, group, now_ms)
            return made
        if group is None:
            self._check_room_for_a_group(GroupMaxSizeReached)
        generation = 0 if group is None else group.generation
        return self._become(ConsumerGroup(self._env, group_id, self._env.wall_ms(), generation))

    def _become(self, group: G) -> G:
        """Adds the group. It replaces a group of the other kind that has no members, if there is one."""
        old = self._groups.get(group.group_id)
        if old is not None:
            old.dissolve()
        self._groups[group.group_id] = group
        return group

    def _downgrade_if_due(self, group_id: str, now_ms: int) -> None:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup) and is_to_be_downgraded(self._env, group):
            self._groups[group_id] = downgraded(self._env, group, now_ms)

    def _check_room_for_a_group(self, refusal: type[GroupError]) -> None:
        self.bounds.groups.check(refusal)

    def _forget_if_blank(self, group_id: str) -> None:
        """A refused request leaves no group behind."""
        group = self._groups.get(group_id)
        if group is not None and group.is_blank and not self._offsets.has(group_id):
            del self._groups[group_id]

    # Offsets

    def _commit(self, request: OffsetCommit, token: Token, now_ms: int) -> Outcome:
        group_id = request.group_id
        try:
            self._check_commit(request, now_ms)
        except GroupError as refusal:
            reply = OffsetCommitReply(
                tuple(
                    TopicResult(
                        name, topic_id, tuple(PartitionResult(p.partition, refusal.kafka_code) for p in partitions)
                    )
                    for name, partitions, topic_id in request.topics
                )
            )
            self._env.reply(token, reply)
            return self._outcome((group_id,))
        results, changes = self._offsets.commit(request, self._env.wall_ms())
        self._env.reply(token, OffsetCommitReply(results))
        outcome = self._outcome((group_id,), changes)
        if changes:
            self._offsets.commit_began(group_id)
            outcome.commits_of = group_id
        return outcome

    def _check_commit(self, request: OffsetCommit, now_ms: int) -> None:
        group = self._groups.get(request.group_id)
        if group is not None:
            group.check_commit(request, now_ms)
            return
        self._check_room_for_a_group(InvalidCommitOffsetSize)
        if request.generation_id_or_member_epoch >= 0:
            if request.understands_member_epochs:
                raise GroupIdNotFound(f"there is no group {request.group_id}")
            raise IllegalGeneration(f"there is no group {request.group_id}")

    def check_transactional(
        self, request: OffsetCommit, now_ms: int
    ) -> tuple[tuple[TopicResult, ...], list[OffsetRow]]:
        """The results and rows of an offset commit inside a transaction, for when the transaction commits. Changes
        nothing. Raises if the sender may not commit. As in Kafka, a sender that gives no member id may commit."""
        if self._is_resigned:
            raise NotCoordinator(f"another broker owns the group {request.group_id} now")
        says_who = (
            request.generation_id_or_member_epoch >= 0
            or request.member_id != NO_MEMBER_ID
            or request.group_instance_id is not None
        )
        if says_who:
            try:
                self._check_commit(request, now_ms)
            except GroupIdNotFound as error:
                raise IllegalGeneration(str(error)) from None
            except RebalanceInProgress:
                pass  # the generation is right, and the transaction ends before the members continue
        results, changes = self._offsets.commit(request, self._env.wall_ms())
        rows = [c.row for c in changes if isinstance(c, Put) and isinstance(c.row, OffsetRow)]
        return results, rows

    def offsets_committed(self, changes: Iterable[Change]) -> None:
        """A transaction has committed these changes of offsets; they are durable."""
        for change in changes:
            group_id = self._offsets.apply(change)
            if group_id is not None:
                self._keep_if_it_has_offsets(group_id)

    def offsets_found(self, group_id: str, topic: str | None, rows: Iterable[OffsetRow]) -> None:
        """The store has these offsets of the group, and no others of the topic, or of all topics. Call it in the
        order of the answers of the store, among which are those to the writes of this coordinator."""
        self.offsets_committed(
            [Delete(OffsetRow, (group_id,) if topic is None else (group_id, topic)), *map(Put, rows)]
        )

    def _fetch(self, request: OffsetFetch, token: Token, _now_ms: int) -> Outcome:
        groups = tuple(self._fetch_group(wanted, request.require_stable) for wanted in request.groups)
        return Outcome([(token, OffsetFetchReply(groups))], [])

    def _fetch_group(self, wanted: GroupOffsetsRequest, require_stable: bool) -> GroupOffsets:
        group = self._groups.get(wanted.group_id)
        if isinstance(group, ConsumerGroup) and (wanted.member_id is not None or wanted.member_epoch >= 0):
            try:
                group.check_epoch(wanted.member_id or NO_MEMBER_ID, wanted.member_epoch)
            except GroupError as refusal:
                return GroupOffsets(wanted.group_id, (), refusal.kafka_code)
        return GroupOffsets(
            wanted.group_id, self._offsets.fetch(wanted.group_id, wanted.topics, require_stable=require_stable)
        )

    def _delete_offsets(self, request: OffsetDelete, token: Token, _now_ms: int) -> Outcome:
        changes: list[Change] = []
        try:
            group = self._groups.get(request.group_id)
            if group is None:
                raise GroupIdNotFound(f"there is no group {request.group_id}")
            group.check_offset_delete()
            results, changes = self._offsets.delete(request, group.subscribed_topics())
            self._env.reply(token, OffsetDeleteReply(topics=results))
        except GroupError as refusal:
            self._env.reply(token, OffsetDeleteReply(refusal.kafka_code))
        return self._outcome((), changes)

    def _keep_if_it_has_offsets(self, group_id: str) -> None:
        """A group with offsets exists even without a row of its own."""
        if group_id not in self._groups and self._offsets.has(group_id):
            self._groups[group_id] = ClassicGroup(self._env, group_id, 0)

    def _sweep(self, now_ms: int) -> None:
        """Deletes expired offsets, and groups that have neither members nor offsets left: some at a time, so that a
        tick does not take long."""
        if not self._to_sweep:
            self._to_sweep = list(self._groups)
        offsets_seen = 0
        while self._to_sweep and offsets_seen < SWEPT_AT_ONCE:
            group_id = self._to_sweep.pop()
            group = self._groups.get(group_id)
            offsets_seen += 1 + self._offsets.count(group_id)
            if group is None:
                continue
            expired: list[OffsetRow] = []
            if self._offsets.has(group_id):
                expired += self._offsets.expired(
                    group_id, group.subscribed_topics(), group.offsets_expire_from, self._env.wall_ms()
                )
            is_wanted = (
                not group.is_empty
                or group.is_awaited
                or self._offsets.is_being_committed(group_id)
                or self._is_in_transaction(group_id)
            )
            if not is_wanted and len(expired) == self._offsets.count(group_id):
                self._drop(group_id)
                self._swept.append(Delete(OffsetRow, (group_id,)))
            else:
                self._swept += [Delete(OffsetRow, (group_id, row.topic, row.partition)) for row in expired]
        pause_ms = 1 if self._to_sweep else self._env.config.offsets_retention_check_interval_ms
        self._env.timers.set(self._sweep_timer, now_ms + pause_ms)

    # Administration

    def _list(self, request: ListGroups, token: Token, _now_ms: int) -> Outcome:
        return Outcome([(token, ListGroupsReply(groups=list_groups(self._groups, request)))], [])

    def _describe(self, request: DescribeGroups, token: Token, _now_ms: int) -> Outcome:
        described = tuple(describe_classic(group_id, self._groups.get(group_id)) for group_id in request.groups)
        return Outcome([(token, DescribeGroupsReply(described))], [])

    def _consumer_describe(self, request: ConsumerGroupDescribe, token: Token, _now_ms: int) -> Outcome:
        described = tuple(describe_consumer(group_id, self._groups.get(group_id)) for group_id in request.group_ids)
        return Outcome([(token, ConsumerGroupDescribeReply(described))], [])

    def _delete(self, request: DeleteGroups, token: Token, _now_ms: int) -> Outcome:
        changes: list[Change] = []
        results = []
        for group_id in request.groups:
            group = self._groups.get(group_id)
            if group is None:
                code = GroupIdNotFound.kafka_code
            elif not group.is_empty:
                code = NonEmptyGroup.kafka_code
            else:
                code = NO_ERROR
                self._drop(group_id)
                changes.append(Delete(OffsetRow, (group_id,)))
            results.append(DeletedGroup(group_id, code))
        self._env.reply(token, DeleteGroupsReply(tuple(results)))
        return self._outcome(request.groups, changes)

    def _drop(self, group_id: str) -> None:
        self._groups.pop(group_id).dissolve()

    # Outcomes

    def _outcome(self, group_ids: Iterable[str], changes: list[Change] | None = None) -> Outcome:
        """The replies of this call, with every row of these groups that is not known to be durable."""
        stamps = self._env.ledger.collect(group_ids, self._as_stored)
        self._count_groups()
        return Outcome(self._env.take_replies(), [*(stamp.change for stamp in stamps), *(changes or ())], stamps)

    def _as_stored(self, group_id: str, row: Hashable) -> Change:
        group = self._groups.get(group_id)
        if row == GROUP_ROW:
            return Delete(GroupRow, (group_id,)) if group is None else Put(group.row())
        member_id = str(row)
        member_row = None if group is None else group.member_row(member_id)
        return Delete(GroupMemberRow, (group_id, member_id)) if member_row is None else Put(member_row)


_HEARTBEAT_REPLIES = {code: HeartbeatReply(code) for code in (0, 22, 25, 27, 82)}
