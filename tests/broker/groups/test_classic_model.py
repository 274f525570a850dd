"""Random lives of a classic group: members join, sync, hang, leave, restart; writes fail; the broker restarts.

A generation is announced once, with one leader and one list of members; it never goes back; who is in it gets what
its leader assigned, and nothing else; once everybody follows, the group is stable; and a coordinator that restarts
answers like the one that did not.
"""

from copy import deepcopy

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.broker.groups.classic_members import Member, protocols
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups.messages import (
    DescribeGroups,
    DescribeGroupsReply,
    HeartbeatReply,
    JoinedMember,
    JoinGroupReply,
    SyncGroupReply,
)
from tidelog.metadata.rows import GroupRow

names = st.sampled_from("abc")
START_AGAIN = {22, 25, 82}


class ClassicMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.members: dict[str, Member] = {}
        self.busy: set[str] = set()  # members that wait for a reply
        self.synced: dict[str, int] = {}  # member -> the generation in which it has its share
        self.leaders: dict[int, str] = {}
        self.rosters: dict[int, tuple[JoinedMember, ...]] = {}
        self.shares: dict[tuple[int, str], bytes] = {}
        self.offsets: dict[str, int] = {}
        self.stored_generation = 0
        self.incarnations = 0

    @rule(name=names, static=st.booleans(), strategies=st.sampled_from([("range",), ("sticky", "range")]))
    def start(self, name: str, static: bool, strategies: tuple[str, ...]) -> None:
        """A process starts, perhaps after one of that name was killed without a word."""
        self.incarnations += 1
        self.drop(name)
        self.members[name] = Member(
            self.world,
            f"{name}{self.incarnations}",
            instance=name if static else None,
            offers=protocols(*strategies),
        )
        self.join(name)

    @rule(name=names)
    def join(self, name: str) -> None:
        if name in self.members and name not in self.busy:
            self.members[name].send_join()
            self.busy.add(name)
            self.collect()

    @rule(name=names)
    def sync(self, name: str) -> None:
        member = self.members.get(name)
        if member is None or name in self.busy or member.generation < 0:
            return
        shares = None
        if member.leads and member.joined.members:
            shares = {
                other.member_id: f"{member.generation}:{other.member_id}".encode() for other in member.joined.members
            }
        member.send_sync(shares)
        self.busy.add(name)
        self.collect()

    @rule(name=names)
    def heartbeat(self, name: str) -> None:
        member = self.members.get(name)
        if member is None or name in self.busy or member.generation < 0:
            return
        self.react(member, member.heartbeat())

    @rule(name=names)
    def commit(self, name: str) -> None:
        member = self.members.get(name)
        if member is None or name in self.busy or member.generation < 0:
            return
        offset = self.offsets.get("t", 0) + 1
        code = member.commit(offset)
        if code == 0:
            self.offsets["t"] = offset
        self.react(member, code)

    @rule(name=names)
    def leave(self, name: str) -> None:
        member = self.members.get(name)
        if member is not None and name not in self.busy and member.generation >= 0:
            member.leave()
            self.drop(name)

    @rule(ms=st.sampled_from([100, 3_000, 9_000, 61_000]))
    def wait(self, ms: int) -> None:
        self.world.advance(ms)
        self.collect()

    @rule(broken=st.booleans())
    def break_store(self, broken: bool) -> None:
        self.world.store_is_broken = broken

    @precondition(lambda self: not self.world.store_is_broken)
    @rule()
    def restart(self) -> None:
        """Connections break, so whoever waited asks again."""
        self.world.restart()
        self.busy.clear()

    @precondition(lambda self: not self.world.store_is_broken and not self.busy)
    @rule()
    def a_restarted_twin_answers_alike(self) -> None:
        self.world.advance(1000)
        twin = deepcopy(self.world)
        twin.restart()
        described = [world.ask(DescribeGroups(("g",)), DescribeGroupsReply).groups[0] for world in (self.world, twin)]
        ours, theirs = ({member.member_id: member for member in group.members} for group in described)
        assert ours.keys() >= theirs.keys()  # newcomers that wait for the first round are not stored
        if ours.keys() != theirs.keys():
            return
        assert ours == theirs
        for member in self.members.values():
            if member.generation < 0:
                continue
            heartbeats = [world.send(member.heartbeat_request()) for world in (self.world, twin)]
            assert self.world.reply(heartbeats[0], HeartbeatReply) == twin.reply(heartbeats[1], HeartbeatReply)
            assert self.world.committed("g") == twin.committed("g")

    def react(self, member: Member, code: int) -> None:
        if code in START_AGAIN:
            member.generation = -1
            member.member_id = ""
        else:
            assert code in (0, 15, 27, 69), code

    def drop(self, name: str) -> None:
        self.members.pop(name, None)
        self.busy.discard(name)
        self.synced.pop(name, None)

    def collect(self) -> None:
        """Looks at the replies that have come."""
        for name in list(self.busy):
            member = self.members[name]
            if self.world.is_waiting(member.token):
                continue
            self.busy.remove(name)
            if isinstance(self.world.replies[member.token], JoinGroupReply):
                reply = member.join_reply()
                self.react(member, reply.error_code)
                if reply.error_code == 0:
                    self.check_welcome(reply)
            else:
                assert isinstance(self.world.replies[member.token], SyncGroupReply)
                synced = member.sync_reply()
                self.react(member, synced.error_code)
                if synced.error_code == 0:
                    self.check_share(member)

    def check_welcome(self, reply: JoinGroupReply) -> None:
        generation = reply.generation_id
        assert reply.protocol_name in ("range", "sticky")
        if reply.members and not reply.skip_assignment:
            known = self.rosters.setdefault(generation, reply.members)
            assert known == reply.members, "a generation was announced twice"
            assert self.leaders.setdefault(generation, reply.leader) == reply.leader
            assert reply.member_id in {member.member_id for member in reply.members}

    def check_share(self, member: Member) -> None:
        """What its leader gave to it, or to the process whose place it has taken; nothing if it was forgotten."""
        if member.assignment:
            generation, _, owner = member.assignment.decode().partition(":")
            assert int(generation) == member.generation
            assert owner == member.member_id or member.instance is not None

    @invariant()
    def generations_never_go_back(self) -> None:
        """Except when a group that has nothing left is forgotten, and begins anew."""
        generation = max((row.epoch for row in self.world.stored(GroupRow)), default=0)
        assert generation >= self.stored_generation or generation == 0
        if generation == 0:
            self.rosters.clear()
            self.leaders.clear()
        self.stored_generation = generation

    @invariant()
    def acknowledged_offsets_are_never_lost(self) -> None:
        assert self.world.committed("g").offset >= self.offsets.get("t", -1)

    def teardown(self) -> None:
        """Everybody follows: then the group is stable, and everyone has its share of the same generation."""
        self.world.store_is_broken = False
        self.wait(1000)
        for _ in range(12):
            for name, member in self.members.items():
                if name in self.busy:
                    continue
                if member.generation < 0 or member.heartbeat() != 0:
                    if member.generation >= 0 and member.heartbeat() in START_AGAIN:
                        member.member_id = ""
                    self.join(name)
                else:
                    self.sync(name)
            self.wait(3000)
        if self.members:
            assert not self.busy
            described = self.world.ask(DescribeGroups(("g",)), DescribeGroupsReply).groups[0]
            assert described.group_state == "Stable", described
            assert len({member.generation for member in self.members.values()}) == 1
            shares = [member.assignment for member in self.members.values()]
            assert all(shares)
            assert len(set(shares)) == len(shares)


TestClassicGroup = ClassicMachine.TestCase
TestClassicGroup.settings = settings(max_examples=40, stateful_step_count=40)
