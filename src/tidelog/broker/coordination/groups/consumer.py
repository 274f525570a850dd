"""The consumer rebalance protocol (KIP-848): the coordinator assigns, heartbeats tell the members, no request waits.

Three numbers, each of which only grows:

    group epoch        + 1 when a member joins, leaves or changes its subscription, or a subscribed topic changes
    assignment epoch   the group epoch for which the target (the partitions each member should own) was computed
    member epoch       the assignment epoch that a member has reached

All work is done by heartbeats, each for its own member. A heartbeat first stores what changed about the member. If
the group epoch has grown since the last assignment, it computes a new target. Then it moves the member towards the
target (see `consumer_member`). The group is

    Empty         without members
    Assigning     if the group epoch is higher than the assignment epoch, until the next heartbeat of any member
    Reconciling   if some member has not reached the target
    Stable        otherwise

A member that sends no heartbeat for the session timeout, or that does not give up partitions within its rebalance
timeout, is removed. A static member may leave temporarily (epoch -2): its partitions are reserved for the next member
with its instance id, for as long as its session lasts. While a static member has not left, another one with its
instance id is refused (UNRELEASED_INSTANCE_ID), which ends most clients. There is one exception, after a restart: a
member cannot leave while its coordinator is down, so a member that has sent nothing since the restart is replaced by
its successor, and is fenced if it still runs.

Members learn of a new target with their next heartbeat, and get partitions that others gave up with the one after
that. So members are told to send heartbeats more often while there is something to learn: a member that is not
reconciled, and all members for one usual interval after the epoch grew, because members often start together.

Stored: the row of the group whenever an epoch changes, and the row of each member that changed. A restarted
coordinator knows every epoch, target and owner, so heartbeats continue as if nothing had happened.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from json import dumps, loads

from tidelog.broker.coordination.groups.assignors import ASSIGNORS, Partition, Subscriber, Target
from tidelog.broker.coordination.groups.consumer_member import (
    NOTHING,
    ConsumerMember,
    MemberState,
    as_reply,
    from_request,
    member_from_row,
    weight_of,
)
from tidelog.broker.coordination.groups.embedded import PROTOCOL_TYPE
from tidelog.broker.coordination.groups.environment import GROUP_ROW, Environment
from tidelog.broker.coordination.groups.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupMaxSizeReached,
    IllegalGeneration,
    InvalidRequest,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from tidelog.broker.coordination.groups.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_MEMBER_ID,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    DescribedConsumerGroup,
    OffsetCommit,
)
from tidelog.broker.coordination.groups.subscriptions import Interest, Resolved, check_pattern, resolve
from tidelog.broker.coordination.timers import Timer
from tidelog.metadata.rows import GroupMemberRow, GroupRow

_HURRY = 10  # heartbeats are this many times more frequent
_HURRY_AT_MOST_EVERY_MS = 100


def check_heartbeat(request: ConsumerGroupHeartbeat, max_pattern_length: int) -> None:
    """Raises if the request is invalid by itself, without looking at the group."""
    epoch = request.member_epoch
    if epoch < LEAVE_STATIC_EPOCH:
        raise InvalidRequest(f"MemberEpoch {epoch} is invalid.")
    if request.instance_id == "":
        raise InvalidRequest("InstanceId can't be empty.")
    if request.rack_id == "":
        raise InvalidRequest("RackId can't be empty.")
    if request.member_id == NO_MEMBER_ID and epoch != JOIN_EPOCH:
        raise InvalidRequest("MemberId can't be empty.")
    if epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms < 0:
            raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
        if not request.subscribed_topic_names and not request.subscribed_topic_regex:
            raise InvalidRequest("SubscribedTopicNames or SubscribedTopicRegex must be set in first request.")
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(ASSIGNORS)}."
        )
    if request.subscribed_topic_regex:
        check_pattern(request.subscribed_topic_regex, max_pattern_length)


class ConsumerGroup:
    kind = "consumer"
    protocol_type = PROTOCOL_TYPE

    def __init__(self, env: Environment, group_id: str, since_ms: int, epoch: int = 0) -> None:
        self._env = env
        self.group_id = group_id
        self.group_epoch = epoch
        self.assignment_epoch = epoch
        self.members: dict[str, ConsumerMember] = {}
        self.static_ids: dict[str, str] = {}  # instance id -> member id
        self.target: Target = {}
        self.owners: dict[Partition, str] = {}
        self.empty_since_ms = since_ms  # by the wall clock
        self.topics_may_have_changed = False
        self._fingerprint = ""
        self._hurry_until_ms = 0

    # Requests

    def heartbeat(self, request: ConsumerGroupHeartbeat, now_ms: int) -> ConsumerGroupHeartbeatReply:
        """The request has passed `check_heartbeat`."""
        if request.member_epoch < 0:
            return self._leave(request, now_ms)
        if request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None:
            self.check_room_for(
                request.member_id, weight_of(request.subscribed_topic_names or (), request.subscribed_topic_regex)
            )
        member = self._joining(request, now_ms) if request.member_epoch == JOIN_EPOCH else self._known(request)
        member.is_unheard = False
        owned_before, epoch_before = member.assigned, self.group_epoch
        if self._note_news(member, request):
            self.raise_epoch()
        self.follow_topics()
        self.assign_if_due()
        reported = None if request.topic_partitions is None else from_request(request.topic_partitions)
        self.reconcile(member, reported, now_ms)
        self.renew_session(member, now_ms)
        usual_interval_ms = self._env.pace(self.group_id).heartbeat_interval_ms
        if self.group_epoch != epoch_before:
            self._hurry_until_ms = now_ms + usual_interval_ms
        is_full_request = (
            request.rebalance_timeout_ms >= 0
            and request.topic_partitions is not None
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        )
        return ConsumerGroupHeartbeatReply(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._interval_ms(member, usual_interval_ms, now_ms),
            assignment=as_reply(member.assigned) if is_full_request or member.assigned != owned_before else None,
        )

    def steady_heartbeat(self, request: ConsumerGroupHeartbeat, now_ms: int) -> ConsumerGroupHeartbeatReply | None:
        """The reply if neither the member nor the group has anything new, else None. This is the most frequent
        request of all, so it is answered by a shortcut."""
        member = self.members.get(request.member_id)
        if (
            member is None
            or member.epoch != request.member_epoch
            or member.epoch != self.group_epoch
            or member.state is not MemberState.STABLE
            or member.classic is not None
            or member.is_unheard
            or self.topics_may_have_changed
            or request.subscribed_topic_names is not None
            or request.subscribed_topic_regex is not None
            or request.topic_partitions is not None
            or request.server_assignor is not None
            or request.rebalance_timeout_ms >= 0
            or request.instance_id != member.instance_id
        ):
            return None
        session_timeout_ms, usual_interval_ms = self._env.pace(self.group_id)
        heartbeat_interval_ms = self._interval_ms(member, usual_interval_ms, now_ms)
        self._env.timers.set(member.session, now_ms + session_timeout_ms)
        reply = member.steady_reply
        if (
            reply is None
            or reply.member_epoch != member.epoch
            or reply.heartbeat_interval_ms != heartbeat_interval_ms
        ):
            reply = member.steady_reply = ConsumerGroupHeartbeatReply(
                member_id=member.member_id,
                member_epoch=member.epoch,
                heartbeat_interval_ms=heartbeat_interval_ms,
            )
        return reply

    def _interval_ms(self, member: ConsumerMember, usual_ms: int, now_ms: int) -> int:
        if now_ms >= self._hurry_until_ms and member.state is MemberState.STABLE:
            return usual_ms
        return min(usual_ms, max(usual_ms // _HURRY, _HURRY_AT_MOST_EVERY_MS))

    def check_commit(self, request: OffsetCommit, _now_ms: int) -> None:
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return  # an operator, or a consumer that assigns its own partitions
        member = self.members.get(request.member_id)
        if member is not None and member.classic is None and not request.understands_member_epochs:
            raise UnsupportedVersion("members of the consumer protocol need OffsetCommit version 9 or later")
        self.check_epoch(request.member_id, epoch)

    def check_epoch(self, member_id: str, epoch: int) -> None:
        """Raises unless there is such a member, in this epoch."""
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"no member has id {member_id}")
        if epoch != member.epoch:
            error = StaleMemberEpoch if member.classic is None else IllegalGeneration
            raise error(f"{member_id} is in epoch {member.epoch}, not {epoch}")
        member.is_unheard = False

    # Queries

    @property
    def is_empty(self) -> bool:
        return not self.members

    is_awaited = False

    @property
    def is_blank(self) -> bool:
        return self.is_empty and self.group_epoch == 0

    @property
    def state(self) -> str:
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(member.is_reconciled(self.assignment_epoch) for member in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    def subscribed_topics(self) -> frozenset[str]:
        return frozenset(topic.name for topic in self._resolved().topics.values())

    def check_offset_delete(self) -> None:
        """Always allowed: the topics that the members use are known, and their offsets stay."""

    def offsets_expire_from(self, committed_ms: int) -> int:
        return max(committed_ms, self.empty_since_ms) if self.is_empty else committed_ms

    def describe(self) -> DescribedConsumerGroup:
        return DescribedConsumerGroup(
            self.group_id,
            self.state,
            self.group_epoch,
            self.assignment_epoch,
            self._preferred_assignor(),
            tuple(
                member.describe(self.target.get(member_id, NOTHING), self._env.topics)
                for member_id, member in self.members.items()
            ),
        )

    # Rows

    def row(self) -> GroupRow:
        """The row has no state: the state follows from the epochs and the members."""
        return GroupRow(
            group=self.group_id,
            kind=self.kind,
            protocol_type=PROTOCOL_TYPE,
            protocol=None,
            epoch=self.group_epoch,
            leader=None,
            state="",
            state_since_ms=self.empty_since_ms,
            assignment_epoch=self.assignment_epoch,
            details=dumps({"topics": self._fingerprint}),
        )

    def member_row(self, member_id: str) -> GroupMemberRow | None:
        member = self.members.get(member_id)
        return None if member is None else member.row(self.group_id, self.target.get(member_id, NOTHING))

    @classmethod
    def restored(
        cls, env: Environment, row: GroupRow, members: Iterable[GroupMemberRow], now_ms: int
    ) -> "ConsumerGroup":
        group = cls(env, row.group, row.state_since_ms, row.epoch)
        group.assignment_epoch = row.assignment_epoch
        group._fingerprint = loads(row.details)["topics"]
        group.topics_may_have_changed = True  # changes during the downtime were not reported
        for member_row in members:
            member, target = member_from_row(member_row)
            member.is_unheard = True
            group._place(member, target, now_ms)
            if member.state is MemberState.UNREVOKED and member.classic is None:
                group.lose_patience_later(member, now_ms)
        return group

    # Members

    def admit(self, member: ConsumerMember, target: frozenset[Partition], now_ms: int) -> None:
        self._place(member, target, now_ms)
        self._touch(member.member_id)

    def _place(self, member: ConsumerMember, target: frozenset[Partition], now_ms: int) -> None:
        member.session = Timer(partial(self.remove, member))
        member.patience = Timer(partial(self.remove, member))
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        self.target[member.member_id] = target
        self._env.bounds.members.used += 1
        self._weigh(member)
        self.owners.update(dict.fromkeys(member.held, member.member_id))
        self.renew_session(member, now_ms)

    def dismiss(self, member: ConsumerMember) -> None:
        """Removes the member and frees all its partitions. The caller has to raise the epoch."""
        self._uncount(member)
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self.target.pop(member.member_id, None)
        self._release(member, member.held)
        self._env.timers.cancel(member.session)
        self._env.timers.cancel(member.patience)
        self._touch(member.member_id)

    def remove(self, member: ConsumerMember, _now_ms: int) -> None:
        self.dismiss(member)
        self.raise_epoch()
        if not self.members:
            self.empty_since_ms = self._env.wall_ms()

    def replace(self, member: ConsumerMember, member_id: str, now_ms: int) -> ConsumerMember:
        """A new process takes over an instance id, and with it the subscription, the target and the partitions."""
        target = self.target.get(member.member_id, NOTHING)
        successor = ConsumerMember(member_id, member.instance_id)
        for name in (
            "rack_id",
            "client_id",
            "client_host",
            "rebalance_timeout_ms",
            "interest",
            "assignor",
            "assigned",
        ):
            setattr(successor, name, getattr(member, name))
        self.dismiss(member)
        self.admit(successor, target, now_ms)
        return successor

    def check_room(self) -> None:
        if len(self.members) >= self._env.config.group_consumer_max_size:
            raise GroupMaxSizeReached(f"{self.group_id} has the most members, {len(self.members)}")
        self._env.bounds.members.check(GroupMaxSizeReached)

    def check_room_for(self, member_id: str, weight: int) -> None:
        """Raises if there is no room for the metadata of a new or an existing member."""
        known = self.members.get(member_id)
        more = weight - (0 if known is None else known.said_bytes)
        if more > 0:
            self._env.bounds.member_bytes.check(GroupMaxSizeReached, more)

    def renew_session(self, member: ConsumerMember, now_ms: int) -> None:
        if member.classic is None:
            timeout_ms = self._env.pace(self.group_id).session_timeout_ms
        else:
            timeout_ms = member.classic.session_timeout_ms
        self._env.timers.set(member.session, now_ms + timeout_ms)

    def lose_patience_later(self, member: ConsumerMember, now_ms: int) -> None:
        """Removes the member after its rebalance timeout, unless `end_wait` is called. Further calls do not prolong
        it."""
        if member.patience.deadline_ms is None:
            self._env.timers.set(member.patience, now_ms + member.rebalance_timeout_ms)

    def end_wait(self, member: ConsumerMember) -> None:
        self._env.timers.cancel(member.patience)

    def _joining(self, request: ConsumerGroupHeartbeat, now_ms: int) -> ConsumerMember:
        """A new member, a known one that starts over, or one that takes over an instance id."""
        member_id = request.member_id or self._env.new_id()
        if request.instance_id is not None:
            predecessor_id = self.static_ids.get(request.instance_id)
            if predecessor_id is not None and predecessor_id != member_id:
                predecessor = self.members[predecessor_id]
                is_released = predecessor.epoch == LEAVE_STATIC_EPOCH or predecessor.is_unheard
                if predecessor.classic is None and not is_released:
                    raise UnreleasedInstanceId(f"instance id {request.instance_id} belongs to {predecessor_id}")
                return self.replace(predecessor, member_id, now_ms)
        member = self.members.get(member_id)
        if member is None:
            self.check_room()
            member = ConsumerMember(member_id, request.instance_id)
            self.admit(member, NOTHING, now_ms)
        elif member.instance_id != request.instance_id:
            raise InvalidRequest(f"member {member_id} has instance id {member.instance_id}")
        else:  # a joining member owns nothing, so the partitions it held are free
            self._release(member, member.held)
            member.assigned = member.revoking = NOTHING
            member.state = MemberState.UNRELEASED
            self.end_wait(member)
            self._touch(member_id)
        return member

    def _known(self, request: ConsumerGroupHeartbeat) -> ConsumerMember:
        member = self.known(request.member_id, request.instance_id)
        epoch = request.member_epoch
        if epoch != member.epoch:
            # The reply that raised its epoch may have been lost: then it owns at most what it is assigned now.
            owned = None if request.topic_partitions is None else from_request(request.topic_partitions)
            if epoch != member.previous_epoch or owned is None or not owned <= member.assigned:
                raise FencedMemberEpoch(f"{member.member_id} is in epoch {member.epoch}, not {epoch}")
        return member

    def known(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        if instance_id is not None:
            current = self.static_ids.get(instance_id)
            if current is None:
                raise UnknownMemberId(f"no member has instance id {instance_id}")
            if current != member_id:
                raise FencedInstanceId(f"instance id {instance_id} belongs to {current} now")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"no member has id {member_id}")
        return member

    def _leave(self, request: ConsumerGroupHeartbeat, now_ms: int) -> ConsumerGroupHeartbeatReply:
        member = self.known(request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_EPOCH:
            self.remove(member, now_ms)
        else:
            self._release(member, member.revoking)
            member.revoking = NOTHING
            member.state = MemberState.STABLE
            member.epoch = LEAVE_STATIC_EPOCH
            self.end_wait(member)
            self._touch(member.member_id)
        return ConsumerGroupHeartbeatReply(member_id=member.member_id, member_epoch=request.member_epoch)

    def _note_news(self, member: ConsumerMember, request: ConsumerGroupHeartbeat) -> bool:
        """Stores what the request says about the member. Returns True if its subscription has changed."""
        names = member.interest.names
        pattern = member.interest.pattern
        if request.subscribed_topic_names is not None:
            names = frozenset(request.subscribed_topic_names)
        if request.subscribed_topic_regex is not None:
            pattern = request.subscribed_topic_regex or None
        news = {
            "interest": Interest(names, pattern),
            "rack_id": request.rack_id or member.rack_id,
            "assignor": request.server_assignor or member.assignor,
            "client_id": request.client_id,
            "client_host": request.client_host,
            "classic": None,
            "rebalance_timeout_ms": member.rebalance_timeout_ms
            if request.rebalance_timeout_ms < 0
            else request.rebalance_timeout_ms,
        }
        return self.note(member, news)

    def note(self, member: ConsumerMember, news: Mapping[str, object]) -> bool:
        """Stores these attributes. Returns True if the subscription has changed."""
        changed = [name for name, value in news.items() if getattr(member, name) != value]
        for name in changed:
            setattr(member, name, news[name])
        if changed:
            self._touch(member.member_id)
        return "interest" in changed

    # Epochs, targets, owners

    def raise_epoch(self) -> None:
        self.group_epoch += 1
        self._touch(GROUP_ROW)

    def follow_topics(self) -> None:
        """Raises the epoch if subscribed topics were created, deleted, or got more partitions."""
        if self.topics_may_have_changed:
            self.topics_may_have_changed = False
            if self._resolved().fingerprint != self._fingerprint and self.group_epoch == self.assignment_epoch:
                self.raise_epoch()

    def assign_if_due(self) -> None:
        if self.group_epoch == self.assignment_epoch:
            return
        resolved = self._resolved()
        subscribers = {
            member_id: Subscriber(member.instance_id, resolved.topic_ids[member.interest])
            for member_id, member in self.members.items()
        }
        partition_counts = {topic_id: topic.partitions for topic_id, topic in resolved.topics.items()}
        target = ASSIGNORS[self._preferred_assignor()](subscribers, partition_counts, self.target)
        before, self.target = self.target, target
        for member_id, share in target.items():
            if share != before.get(member_id):
                self._touch(member_id)
        self.assignment_epoch = self.group_epoch
        self._fingerprint = resolved.fingerprint
        self._touch(GROUP_ROW)

    def reconcile(self, member: ConsumerMember, reported: frozenset[Partition] | None, now_ms: int) -> None:
        if member.is_reconciled(self.assignment_epoch):
            return
        before = (member.state, member.epoch, member.assigned, member.revoking)
        held = member.held
        target = self.target.get(member.member_id, NOTHING)
        member.reconcile(target, self.assignment_epoch, self.owners, reported)
        if (member.state, member.epoch, member.assigned, member.revoking) == before:
            return
        self._release(member, held - member.held)
        self.owners.update(dict.fromkeys(member.held, member.member_id))
        self._touch(member.member_id)
        self.end_wait(member)
        if member.state is MemberState.UNREVOKED and member.classic is None:
            self.lose_patience_later(member, now_ms)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """True if other members still hold partitions that this member should own."""
        lacking = self.target.get(member.member_id, NOTHING) - member.assigned
        return any(self.owners.get(partition, member.member_id) != member.member_id for partition in lacking)

    def _release(self, member: ConsumerMember, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if self.owners.get(partition) == member.member_id:
                del self.owners[partition]

    def _resolved(self) -> Resolved:
        return resolve((member.interest for member in self.members.values()), self._env.topics)

    def _preferred_assignor(self) -> str:
        """The assignor that most members ask for. Ties go to the name that sorts first, so that a restart changes
        nothing."""
        votes = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        if not votes:
            return self._env.config.group_consumer_default_assignor
        return min(votes, key=lambda name: (-votes[name], name))

    def dissolve(self) -> None:
        """The group is deleted, or continues as another kind of group."""
        for member in list(self.members.values()):
            self._env.timers.cancel(member.session)
            self._env.timers.cancel(member.patience)
        self._touch(GROUP_ROW, *self.members)
        for member in self.members.values():
            self._uncount(member)

    def _touch(self, *member_ids: str) -> None:
        for member_id in member_ids:
            self._env.ledger.touch(self.group_id, member_id)
            member = self.members.get(member_id)
            if member is not None:
                self._weigh(member)

    def _weigh(self, member: ConsumerMember) -> None:
        weight = member.weigh(self.group_id, self.target.get(member.member_id, NOTHING))
        self._env.bounds.member_bytes.used += weight - member.weight
        member.weight = weight

    def _uncount(self, member: ConsumerMember) -> None:
        self._env.bounds.members.used -= 1
        self._env.bounds.member_bytes.used -= member.weight
        member.weight = 0
