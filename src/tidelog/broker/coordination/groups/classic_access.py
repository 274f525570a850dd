"""Requests of the classic protocol, served by a consumer group: for members that have not been upgraded yet.

To such a member the group looks like one with another member as leader. JoinGroup is answered at once, with the
member's epoch as the generation; SyncGroup returns the member's partitions. When the member has to give up
partitions, or can get more, its heartbeat is answered with REBALANCE_IN_PROGRESS, so it joins again. The owned
partitions in its new subscription are those that it has not given up.
"""

from collections.abc import Iterable

from tidelog.broker.coordination.groups.consumer import ConsumerGroup
from tidelog.broker.coordination.groups.consumer_member import (
    NOTHING,
    ClassicSide,
    ConsumerMember,
    MemberState,
    by_topic,
    weight_of,
)
from tidelog.broker.coordination.groups.embedded import (
    PROTOCOL_TYPE,
    MalformedConsumerMetadata,
    read_subscription,
    write_assignment,
)
from tidelog.broker.coordination.groups.environment import Environment, Token
from tidelog.broker.coordination.groups.errors import (
    NO_ERROR,
    GroupError,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from tidelog.broker.coordination.groups.messages import (
    NO_MEMBER_ID,
    Heartbeat,
    JoinGroup,
    JoinGroupReply,
    LeavingMember,
    LeftMember,
    SyncGroup,
    SyncGroupReply,
)
from tidelog.broker.coordination.groups.subscriptions import Interest


class ClassicAccess:
    """Has the same methods for members as `ClassicGroup`."""

    def __init__(self, env: Environment, group: ConsumerGroup) -> None:
        self._env = env
        self._group = group

    def join(self, request: JoinGroup, token: Token, now_ms: int) -> None:
        group = self._group
        if request.protocol_type != PROTOCOL_TYPE or not request.protocols or not self._shares_protocol(request):
            raise InconsistentGroupProtocol(f"{group.group_id} has consumers with other protocols")
        try:
            subscription = read_subscription(request.protocols[0].metadata)
        except MalformedConsumerMetadata as error:
            raise InconsistentGroupProtocol(str(error)) from None
        is_newcomer = request.member_id == NO_MEMBER_ID
        if is_newcomer and request.group_instance_id is None and request.member_id_required:
            group.check_room()
            member_id = f"{request.client_id}-{self._env.new_id()}"
            self._env.reply(token, JoinGroupReply(MemberIdRequired.kafka_code, member_id=member_id))
            return
        weight = sum(len(protocol.metadata) for protocol in request.protocols) + weight_of(subscription.topics, None)
        group.check_room_for(request.member_id, weight)
        member = self._member(request, now_ms, owns_something=bool(subscription.owned))
        timeout_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
        news = {
            "interest": Interest(frozenset(subscription.topics)),
            "rack_id": subscription.rack,
            "assignor": None,
            "client_id": request.client_id,
            "client_host": request.client_host,
            "rebalance_timeout_ms": timeout_ms,
            "classic": ClassicSide(request.session_timeout_ms, request.protocols),
        }
        if group.note(member, news):
            group.raise_epoch()
        group.follow_topics()
        group.assign_if_due()
        reported = frozenset(
            (topic.topic_id, partition)
            for name, partitions in subscription.owned
            for topic in (self._env.topics.by_name(name),)
            if topic is not None
            for partition in partitions
        )
        group.reconcile(member, reported, now_ms)
        group.renew_session(member, now_ms)
        group.end_wait(member)
        group.lose_patience_later(member, now_ms)  # until it syncs
        self._env.reply(
            token,
            JoinGroupReply(
                generation_id=member.epoch,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=request.protocols[0].name,
                member_id=member.member_id,
            ),
        )

    def sync(self, request: SyncGroup, token: Token, now_ms: int) -> None:
        group = self._group
        member, classic = self._classic_member(request.member_id, request.group_instance_id, request.generation_id)
        protocol = classic.protocols[0].name
        for theirs, ours in ((request.protocol_type, PROTOCOL_TYPE), (request.protocol_name, protocol)):
            if theirs is not None and theirs != ours:
                raise InconsistentGroupProtocol(f"{member.member_id} has protocol {ours}, not {theirs}")
        if member.epoch < group.group_epoch and member.state is not MemberState.UNREVOKED:
            group.lose_patience_later(member, now_ms)
            raise RebalanceInProgress(f"{group.group_id} has a later epoch than {member.epoch}")
        group.end_wait(member)
        group.renew_session(member, now_ms)
        assignment = tuple(
            (topic.name, tuple(partitions))
            for topic_id, partitions in by_topic(member.assigned).items()
            for topic in (self._env.topics.by_id(topic_id),)
            if topic is not None
        )
        self._env.reply(
            token,
            SyncGroupReply(
                protocol_type=PROTOCOL_TYPE, protocol_name=protocol, assignment=write_assignment(assignment)
            ),
        )

    def heartbeat(self, request: Heartbeat, now_ms: int) -> int:
        group = self._group
        member, _ = self._classic_member(request.member_id, request.group_instance_id, request.generation_id)
        group.renew_session(member, now_ms)
        if (
            member.epoch == group.group_epoch
            and member.state is not MemberState.UNREVOKED
            and (member.state is MemberState.STABLE or group.waits_for_others(member))
        ):
            return NO_ERROR
        group.lose_patience_later(member, now_ms)
        return RebalanceInProgress.kafka_code

    def leave(self, leaving: Iterable[LeavingMember], now_ms: int) -> tuple[LeftMember, ...]:
        return tuple(self._leave_one(member, now_ms) for member in leaving)

    def _leave_one(self, leaving: LeavingMember, now_ms: int) -> LeftMember:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        try:
            if member_id == NO_MEMBER_ID and instance_id is not None:
                member_id = self._group.static_ids.get(instance_id, NO_MEMBER_ID)
            member = self._group.known(member_id, instance_id)
            if member.classic is None:
                raise UnknownMemberId(f"{member_id} does not use the classic protocol")
            self._group.remove(member, now_ms)
        except GroupError as refusal:
            return LeftMember(leaving.member_id, instance_id, refusal.kafka_code)
        return LeftMember(leaving.member_id, instance_id, NO_ERROR)

    def _member(self, request: JoinGroup, now_ms: int, *, owns_something: bool) -> ConsumerMember:
        group, instance_id = self._group, request.group_instance_id
        if request.member_id == NO_MEMBER_ID:
            member_id = f"{instance_id or request.client_id}-{self._env.new_id()}"
            predecessor_id = None if instance_id is None else group.static_ids.get(instance_id)
            if predecessor_id is not None:
                return group.replace(group.members[predecessor_id], member_id, now_ms)
        else:
            member_id = request.member_id
            if instance_id is not None:
                return group.known(member_id, instance_id)
            member = group.members.get(member_id)
            if member is not None:
                return member
            # An id without a member was just given out by us, or belongs to a member that was removed. The latter may
            # still be using partitions that have other owners by now: it must get an error before it joins again.
            if owns_something:
                raise UnknownMemberId(f"no member has id {member_id}")
        group.check_room()
        newcomer = ConsumerMember(member_id, instance_id)
        group.admit(newcomer, NOTHING, now_ms)
        return newcomer

    def _classic_member(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[ConsumerMember, ClassicSide]:
        member = self._group.known(member_id, instance_id)
        if member.classic is None:
            raise UnknownMemberId(f"{member_id} does not use the classic protocol")
        if generation != member.epoch:
            raise IllegalGeneration(f"{member_id} is in epoch {member.epoch}, not {generation}")
        return member, member.classic

    def _shares_protocol(self, request: JoinGroup) -> bool:
        """True if all classic members would still have a protocol in common, should the group be downgraded."""
        common = {protocol.name for protocol in request.protocols}
        for member in self._group.members.values():
            if member.classic is not None:
                common.intersection_update(protocol.name for protocol in member.classic.protocols)
        return bool(common)
