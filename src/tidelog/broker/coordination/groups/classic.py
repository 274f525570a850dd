"""The classic rebalance protocol: all members join, one assigns the partitions, each gets its assignment.

A rebalance has two rounds. In the first, every member sends JoinGroup and waits until all have done so (or the
rebalance timeout is over); then a new generation begins, and the coordinator chooses a leader and sends it the list
of members. In the second, every member sends SyncGroup and waits until the leader's SyncGroup brings the assignments.
The coordinator does not read the assignments, so it serves eager and cooperative members in the same way. Between
rebalances members send heartbeats. A member that sends none for its session timeout is removed, which starts a
rebalance.

    state                 meaning                                     next states
    Empty                 no members, perhaps offsets                 PreparingRebalance, Dead
    PreparingRebalance    round one: waiting for JoinGroup of all     CompletingRebalance, Empty, Dead
    CompletingRebalance   round two: waiting for the leader's         Stable, PreparingRebalance, Dead
                          SyncGroup
    Stable                all members have their assignments          PreparingRebalance, Dead
    Dead                  deleted, or became a consumer group         (nothing)

What is stored: the group's row at every change of state except the one from Empty, which promises nothing yet; the
rows of members when a generation begins, when it is assigned, and when a member is replaced or removed. So a
restarted coordinator continues in the same generation and the same round. Members that were waiting for a reply send
their request again, because their connection is gone.
"""

from collections.abc import Iterable
from functools import partial

from tidelog.broker.coordination.groups.classic_record import FOLLOWS, ClassicRecord, State
from tidelog.broker.coordination.groups.embedded import PROTOCOL_TYPE
from tidelog.broker.coordination.groups.environment import GROUP_ROW, Environment, Token
from tidelog.broker.coordination.groups.errors import (
    NO_ERROR,
    FencedInstanceId,
    GroupError,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from tidelog.broker.coordination.groups.messages import (
    NO_MEMBER_ID,
    Heartbeat,
    JoinedMember,
    JoinGroup,
    JoinGroupReply,
    LeavingMember,
    LeftMember,
    OffsetCommit,
    SyncGroup,
    SyncGroupReply,
)
from tidelog.broker.coordination.groups.roster import Member, member_from_row
from tidelog.broker.coordination.timers import Timer
from tidelog.metadata.rows import GroupMemberRow, GroupRow


class ClassicGroup(ClassicRecord):
    def __init__(self, env: Environment, group_id: str, since_ms: int, generation: int = 0) -> None:
        super().__init__(group_id, since_ms, generation, env.bounds)
        self._env = env
        self._promised: dict[str, Timer] = {}  # ids sent with MEMBER_ID_REQUIRED that have not joined yet
        self._joining: dict[str, Token] = {}  # members whose JoinGroup waits for the end of round one
        self._syncing: dict[str, Token] = {}  # members whose SyncGroup waits for the leader's
        self._unsynced: set[str] = set()  # members that have not sent SyncGroup in this generation
        self._join_timer = Timer(self._join_round_is_over)
        self._sync_timer = Timer(self._sync_round_is_over)
        # The first rebalance of an empty group waits for members that start at the same time. Each new member
        # prolongs the wait, up to the rebalance timeout in total.
        self._gathering = False
        self._gathered_more = False
        self._gathering_left_ms = 0

    # Requests

    def join(self, request: JoinGroup, token: Token, now_ms: int) -> None:
        member_id = request.member_id
        if not self._has_room_for(member_id):
            if member_id in self.roster.members:
                self._remove(self.roster.members[member_id])
                self._after_removal(now_ms)
            raise GroupMaxSizeReached(f"{self.group_id} has the most members, {self._env.config.group_max_size}")
        if not self._accepts(request):
            raise InconsistentGroupProtocol(f"{self.group_id} has {self.protocol_type} members with other protocols")
        if member_id == NO_MEMBER_ID:
            self._join_as_newcomer(request, token, now_ms)
        elif member_id in self._promised:
            self._unpromise(member_id)
            self._add(member_id, request, token, now_ms)
        else:
            self._rejoin(self.roster.known(member_id, request.group_instance_id), request, token, now_ms)

    def sync(self, request: SyncGroup, token: Token, now_ms: int) -> None:
        member = self.roster.known(request.member_id, request.group_instance_id)
        if request.generation_id != self.generation:
            raise IllegalGeneration(f"{self.group_id} is at generation {self.generation}")
        for theirs, ours in ((request.protocol_type, self.protocol_type), (request.protocol_name, self.protocol)):
            if theirs is not None and ours is not None and theirs != ours:
                raise InconsistentGroupProtocol(f"{self.group_id} uses {ours}, not {theirs}")
        if self.state is State.PREPARING:
            raise RebalanceInProgress(f"{self.group_id} is rebalancing")
        self._unsynced.discard(member.member_id)
        if not self._unsynced:
            self._env.timers.cancel(self._sync_timer)
        if self.state is State.STABLE:
            self._env.reply(token, self._share_of(member))
            return
        self._answer_sync(member.member_id, RebalanceInProgress.kafka_code)  # an earlier request that it gave up on
        if member.member_id == self.leader:
            self.roster.check_room_for_shares(share for _, share in request.assignments)
        self._syncing[member.member_id] = token
        if member.member_id == self.leader:
            self._assign(dict(request.assignments), now_ms)

    def heartbeat(self, request: Heartbeat, now_ms: int) -> int:
        """The error code to answer with."""
        member = self.roster.members.get(request.member_id)
        if member is None or member.instance_id != request.group_instance_id:
            member = self.roster.known(request.member_id, request.group_instance_id)
        if request.generation_id != self.generation:
            return IllegalGeneration.kafka_code
        self._env.timers.set(member.session, now_ms + member.session_timeout_ms)
        return RebalanceInProgress.kafka_code if self.state is State.PREPARING else NO_ERROR

    def leave(self, leaving: Iterable[LeavingMember], now_ms: int) -> tuple[LeftMember, ...]:
        members_before = len(self.roster)
        left = tuple(self._leave_one(member) for member in leaving)
        if len(self.roster) < members_before:
            self._after_removal(now_ms)
        else:
            self._complete_join_if_all_are_here(now_ms)
        return left

    def check_commit(self, request: OffsetCommit, now_ms: int) -> None:
        """Raises unless the sender may commit offsets now. A commit also counts as a heartbeat."""
        generation, member_id = request.generation_id_or_member_epoch, request.member_id
        if self.state is State.EMPTY and generation < 0:
            return  # an operator, or a consumer that assigns its own partitions
        if generation < 0 and not member_id and request.group_instance_id is None:
            raise UnknownMemberId(f"{self.group_id} has members: only they can commit its offsets")
        member = self.roster.known(member_id, request.group_instance_id)
        if generation != self.generation:
            raise IllegalGeneration(f"{self.group_id} is at generation {self.generation}")
        if self.state is State.COMPLETING:
            raise RebalanceInProgress(f"{self.group_id} has not assigned generation {self.generation} yet")
        self._env.timers.set(member.session, now_ms + member.session_timeout_ms)

    # Queries

    @property
    def is_awaited(self) -> bool:
        """True if a client was given an id to join with, and has not joined yet."""
        return bool(self._promised)

    @property
    def is_blank(self) -> bool:
        """True if the group has nothing worth keeping, except perhaps offsets."""
        return self.is_empty and self.generation == 0 and not self._promised

    @classmethod
    def restored(
        cls, env: Environment, row: GroupRow, members: Iterable[GroupMemberRow], now_ms: int
    ) -> "ClassicGroup":
        """The group as it was when these rows were written. Sessions and the current round start again, with their
        full timeouts."""
        group = cls(env, row.group, row.state_since_ms, row.epoch)
        group.protocol_type = row.protocol_type
        group.protocol = row.protocol
        group.leader = row.leader
        for member_row in members:
            member = member_from_row(member_row, Timer(lambda _: None))
            group.adopt(member, now_ms)
        if group.roster.members:
            group.state = State(row.state)
        if group.state is State.PREPARING:
            env.timers.set(group._join_timer, now_ms + group.roster.rebalance_timeout_ms())
        elif group.state is State.COMPLETING:
            group._await_syncs(now_ms)
        return group

    @classmethod
    def downgraded(
        cls, env: Environment, group_id: str, generation: int, members: Iterable[Member], now_ms: int
    ) -> "ClassicGroup":
        """A classic group made from the remaining members of a consumer group; it starts with a rebalance."""
        group = cls(env, group_id, env.wall_ms(), generation)
        group.protocol_type = PROTOCOL_TYPE
        for member in members:
            group.adopt(member, now_ms)
        group.leader = min(group.roster.members)
        group.protocol = group.roster.elected_protocol()
        group.state = State.STABLE
        group._touch(*group.roster.members)
        group._prepare_rebalance(now_ms)
        return group

    def adopt(self, member: Member, now_ms: int) -> None:
        """Adds a member that belongs to the current generation already, with a new session."""
        member.session = Timer(partial(self._session_expired, member))
        self.roster.add(member)
        self._renew_session(member, now_ms)

    # Becoming a member

    def _join_as_newcomer(self, request: JoinGroup, token: Token, now_ms: int) -> None:
        instance_id = request.group_instance_id
        member_id = f"{instance_id or request.client_id}-{self._env.new_id()}"
        if instance_id is not None:
            predecessor = self.roster.static_ids.get(instance_id)
            if predecessor is not None:
                self._replace(self.roster.members[predecessor], member_id, request, token, now_ms)
            else:
                self._add(member_id, request, token, now_ms)
        elif request.member_id_required:
            bounds = self._env.bounds
            bounds.members.check(GroupMaxSizeReached)
            bounds.member_bytes.check(GroupMaxSizeReached, self._promise_bytes(member_id))
            bounds.members.used += 1
            bounds.member_bytes.used += self._promise_bytes(member_id)
            timer = Timer(partial(self._promise_expired, member_id))
            self._promised[member_id] = timer
            self._env.timers.set(timer, now_ms + request.session_timeout_ms)
            self._env.reply(token, JoinGroupReply(MemberIdRequired.kafka_code, member_id=member_id))
        else:
            self._add(member_id, request, token, now_ms)

    def _add(self, member_id: str, request: JoinGroup, token: Token, now_ms: int) -> None:
        self.roster.check_room_for(request.protocols)
        member = Member(
            member_id,
            request.group_instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            _rebalance_timeout_ms(request),
            request.protocols,
            Timer(lambda _: None),
        )
        member.session = Timer(partial(self._session_expired, member))
        if not self.roster.members:
            self.protocol_type = request.protocol_type
        self.roster.add(member)
        self._joining[member_id] = token
        self._gathered_more = True
        # A new member does not know its id, so it cannot send heartbeats; and a client that gives up and sends
        # JoinGroup again leaves a member behind each time. So its first JoinGroup may wait for a limited time only.
        self._env.timers.set(member.session, now_ms + self._env.config.new_member_join_timeout_ms)
        self._rebalance_or_complete(now_ms)

    def _rejoin(self, member: Member, request: JoinGroup, token: Token, now_ms: int) -> None:
        if self.state is State.EMPTY:
            raise UnknownMemberId(f"{self.group_id} has no members")
        changed = member.protocols != request.protocols
        leader_wants_new_assignment = self.state is State.STABLE and member.member_id == self.leader
        if self.state is State.PREPARING or changed or leader_wants_new_assignment:
            self.roster.check_room_for(request.protocols, member)
            self._update(member, request, token)
            self._rebalance_or_complete(now_ms)
        else:  # it did not get the reply that ended round one; the generation has not changed since
            self._env.reply(token, self._welcome(member))

    def _update(self, member: Member, request: JoinGroup, token: Token) -> None:
        self.roster.offer(member, request.protocols)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        self._answer_join(member.member_id, RebalanceInProgress.kafka_code)  # an earlier request that it gave up on
        self._joining[member.member_id] = token

    def _replace(self, member: Member, member_id: str, request: JoinGroup, token: Token, now_ms: int) -> None:
        """A new process takes over an instance id; the old process, if it still runs, is fenced."""
        self.roster.check_room_for(request.protocols, member)
        old_id, old_leader = member.member_id, self.leader
        self._answer_join(old_id, FencedInstanceId.kafka_code)
        self._answer_sync(old_id, FencedInstanceId.kafka_code)
        self.roster.rename(member, member_id)
        if old_leader == old_id:
            self.leader = member_id
        if old_id in self._unsynced:
            self._unsynced.remove(old_id)
            self._unsynced.add(member_id)
        member.client_id, member.client_host = request.client_id, request.client_host
        self._update(member, request, token)
        self._renew_session(member, now_ms)
        self._touch(GROUP_ROW, old_id, member_id)
        if self.state is State.STABLE and self.roster.elected_protocol() == self.protocol:
            # Nothing changes for the other members, so there is no rebalance. A leader is told to skip the
            # assignment; if its version does not support that, it is told that another member is the leader.
            del self._joining[member_id]
            if request.understands_skip_assignment:
                self._env.reply(token, self._welcome(member, skip_assignment=member_id == self.leader))
            else:
                self._env.reply(token, self._welcome(member, leader=old_leader))
        elif self.state is State.COMPLETING:
            self._prepare_rebalance(now_ms)  # the leader is making an assignment for the old member id
        else:
            self._rebalance_or_complete(now_ms)

    def _accepts(self, request: JoinGroup) -> bool:
        if not request.protocol_type or not request.protocols:
            return False
        return self.state is State.EMPTY or (
            self.protocol_type == request.protocol_type and self.roster.shares_any(request.protocols)
        )

    def _has_room_for(self, member_id: str) -> bool:
        limit = self._env.config.group_max_size
        if self.state is State.EMPTY:
            return True
        if self.state is State.PREPARING:  # members that do not rejoin in time lose their place
            return member_id in self._joining or len(self._joining) < limit
        return member_id in self.roster.members or len(self.roster) < limit

    # Round one

    def _rebalance_or_complete(self, now_ms: int) -> None:
        if self.state is not State.PREPARING:
            self._prepare_rebalance(now_ms)
        else:
            self._complete_join_if_all_are_here(now_ms)

    def _complete_join_if_all_are_here(self, now_ms: int) -> None:
        if self.state is State.PREPARING and self._everyone_joined() and not self._gathering:
            self._complete_join(now_ms)

    def _prepare_rebalance(self, now_ms: int) -> None:
        if self.state is State.COMPLETING:
            for member_id, member in self.roster.members.items():
                self.roster.assign(member, b"")
                if member_id in self._syncing:
                    self._answer_sync(member_id, RebalanceInProgress.kafka_code)
                    self._renew_session(member, now_ms)
        self._unsynced.clear()
        self._env.timers.cancel(self._sync_timer)
        was_empty = self.state is State.EMPTY
        self._become(State.PREPARING)
        if was_empty:
            self._gather(now_ms)
        elif self._everyone_joined():
            self._complete_join(now_ms)
        else:
            self._env.timers.set(self._join_timer, now_ms + self.roster.rebalance_timeout_ms())

    def _gather(self, now_ms: int) -> None:
        delay_ms = self._env.config.group_initial_rebalance_delay_ms
        self._gathering = True
        self._gathered_more = False
        self._gathering_left_ms = max(self.roster.rebalance_timeout_ms() - delay_ms, 0)
        if delay_ms == 0:
            self._complete_join(now_ms)
        else:
            self._env.timers.set(self._join_timer, now_ms + delay_ms)

    def _join_round_is_over(self, now_ms: int) -> None:
        if self._gathering and self._gathered_more and self._gathering_left_ms > 0:
            delay_ms = min(self._env.config.group_initial_rebalance_delay_ms, self._gathering_left_ms)
            self._gathered_more = False
            self._gathering_left_ms -= delay_ms
            self._env.timers.set(self._join_timer, now_ms + delay_ms)
        else:
            self._complete_join(now_ms)

    def _everyone_joined(self) -> bool:
        return len(self._joining) == len(self.roster) and not self._promised

    def _complete_join(self, now_ms: int) -> None:
        """Remove the members that have not joined, except static ones: those are removed only by their session
        timeout."""
        self._gathering = False
        self._env.timers.cancel(self._join_timer)
        absent = [member for member in self.roster.members.values() if member.member_id not in self._joining]
        for member in absent:
            if member.instance_id is None:
                self._remove(member)
        if not self.roster.members:
            self.generation += 1
            self.protocol = self.leader = None
            self._become(State.EMPTY)
            return
        if self.leader not in self._joining:
            if not self._joining:  # only static members that are away: wait until they rejoin or expire
                self._env.timers.set(self._join_timer, now_ms + self.roster.rebalance_timeout_ms())
                return
            self.leader = min(self._joining)
        self.generation += 1
        self.protocol = self.roster.elected_protocol()
        self._become(State.COMPLETING)
        for member_id, member in self.roster.members.items():
            token = self._joining.pop(member_id, None)
            if token is not None:
                self._env.reply(token, self._welcome(member))
            member.is_new = False
            self._renew_session(member, now_ms)
        self._touch(*self.roster.members)
        self._await_syncs(now_ms)

    def _welcome(self, member: Member, *, leader: str | None = None, skip_assignment: bool = False) -> JoinGroupReply:
        leader = leader or self.leader or ""
        return JoinGroupReply(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=leader,
            skip_assignment=skip_assignment,
            member_id=member.member_id,
            members=tuple(
                JoinedMember(other.member_id, other.instance_id, other.metadata(self.protocol))
                for _, other in sorted(self.roster.members.items())
            )
            if leader == member.member_id
            else (),
        )

    # Round two

    def _await_syncs(self, now_ms: int) -> None:
        self._unsynced = set(self.roster.members)
        self._env.timers.set(self._sync_timer, now_ms + self.roster.rebalance_timeout_ms())

    def _assign(self, assignments: dict[str, bytes], now_ms: int) -> None:
        self._become(State.STABLE)
        for member_id, member in self.roster.members.items():
            self.roster.assign(member, assignments.get(member_id, b""))
            token = self._syncing.pop(member_id, None)
            if token is not None:
                self._env.reply(token, self._share_of(member))
                self._renew_session(member, now_ms)
        self._touch(*self.roster.members)

    def _share_of(self, member: Member) -> SyncGroupReply:
        return SyncGroupReply(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )

    def _sync_round_is_over(self, now_ms: int) -> None:
        for member_id in sorted(self._unsynced):
            self._remove(self.roster.members[member_id])
        self._prepare_rebalance(now_ms)

    # Leaving

    def _leave_one(self, leaving: LeavingMember) -> LeftMember:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        try:
            if member_id == NO_MEMBER_ID and instance_id in self.roster.static_ids:
                self._remove(self.roster.members[self.roster.static_ids[instance_id]])
            elif member_id in self._promised:
                self._unpromise(member_id)
            else:
                self._remove(self.roster.known(member_id, instance_id))
        except GroupError as refusal:
            return LeftMember(member_id, instance_id, refusal.kafka_code)
        return LeftMember(member_id, instance_id, NO_ERROR)

    def _remove(self, member: Member) -> None:
        member_id = member.member_id
        self._answer_join(member_id, UnknownMemberId.kafka_code)  # a client that still runs joins as a new member
        self._answer_sync(member_id, UnknownMemberId.kafka_code)
        self._env.timers.cancel(member.session)
        self._unsynced.discard(member_id)
        self.roster.remove(member)
        if self.leader == member_id:
            self.leader = min(self.roster.members, default=None)
        if not member.is_new:
            self._touch(GROUP_ROW, member_id)

    def _after_removal(self, now_ms: int) -> None:
        if self.state in (State.STABLE, State.COMPLETING):
            self._prepare_rebalance(now_ms)
        else:
            self._complete_join_if_all_are_here(now_ms)

    def _session_expired(self, member: Member, now_ms: int) -> None:
        waiting = member.member_id in self._joining or member.member_id in self._syncing
        if waiting and not member.is_new:
            return  # the member waits for our reply, which starts its session again
        self._remove(member)
        self._after_removal(now_ms)

    def _promise_expired(self, member_id: str, now_ms: int) -> None:
        self._unpromise(member_id)
        self._complete_join_if_all_are_here(now_ms)

    def dissolve(self) -> None:
        """The group is deleted, or continues as another kind of group. Waiting members are told to join again."""
        for member_id in list(self._joining):
            self._answer_join(member_id, RebalanceInProgress.kafka_code)
        for member_id in list(self._syncing):
            self._answer_sync(member_id, RebalanceInProgress.kafka_code)
        for timer in (self._join_timer, self._sync_timer):
            self._env.timers.cancel(timer)
        for member_id in list(self._promised):
            self._unpromise(member_id)
        for member in self.roster.members.values():
            self._env.timers.cancel(member.session)
        self.roster.dissolve()
        self._become(State.DEAD)
        self._touch(GROUP_ROW, *self.roster.members)

    # Helpers

    def _unpromise(self, member_id: str) -> None:
        self._env.timers.cancel(self._promised.pop(member_id))
        self._env.bounds.members.used -= 1
        self._env.bounds.member_bytes.used -= self._promise_bytes(member_id)

    def _promise_bytes(self, member_id: str) -> int:
        return len(self.group_id) + len(member_id)

    def _answer_join(self, member_id: str, error_code: int) -> None:
        token = self._joining.pop(member_id, None)
        if token is not None:
            self._env.reply(token, JoinGroupReply(error_code))

    def _answer_sync(self, member_id: str, error_code: int) -> None:
        token = self._syncing.pop(member_id, None)
        if token is not None:
            self._env.reply(token, SyncGroupReply(error_code))

    def _renew_session(self, member: Member, now_ms: int) -> None:
        self._env.timers.set(member.session, now_ms + member.session_timeout_ms)

    def _become(self, state: State) -> None:
        if state not in FOLLOWS[self.state]:
            raise AssertionError(f"{self.group_id}: {self.state} -> {state}")
        if self.state is not State.EMPTY:
            self._touch(GROUP_ROW)
        self.state = state
        self.state_since_ms = self._env.wall_ms()

    def _touch(self, *member_ids: str) -> None:
        for member_id in member_ids:
            self._env.ledger.touch(self.group_id, member_id)


def _rebalance_timeout_ms(request: JoinGroup) -> int:
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
