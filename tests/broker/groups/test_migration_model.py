"""Random lives of a group in which members of both protocols come and go, so that it changes its kind again and
again.

The classic members are cooperative consumers: they say what they own, keep it during a rebalance, and give up what
they are no longer assigned. At any time a partition has at most one owner, and once everybody follows all are owned.
"""

from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.broker.groups.classic_members import Member, write_subscription
from tests.broker.groups.consumer_members import Consumer
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups.assignors import Subscriber, assign_uniformly
from tidelog.broker.coordination.groups.consumer_member import by_topic
from tidelog.broker.coordination.groups.embedded import (
    read_assignment,
    read_subscription,
    write_assignment,
)
from tidelog.broker.coordination.groups.messages import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeReply,
    DescribeGroups,
    DescribeGroupsReply,
    JoinGroupReply,
    Protocol,
)
from tidelog.metadata.rows import GroupRow

PARTITIONS = 5
START_AGAIN = {22, 25, 82}
names = st.sampled_from("abc")


@dataclass
class Cooperative:
    """A cooperative classic consumer. `step` does whatever comes next."""

    member: Member
    owned: set[tuple[str, int]] = field(default_factory=set)
    waiting: bool = False
    must_join: bool = True
    must_sync: bool = False

    def step(self) -> None:
        member = self.member
        if self.waiting:
            if not member.world.is_waiting(member.token):
                self._take_reply()
        elif self.must_join:
            owned = (("t", tuple(sorted(partition for _, partition in self.owned))),) if self.owned else ()
            member.offers = (Protocol("cooperative-sticky", write_subscription(("t",), owned)),)
            member.send_join()
            self.waiting = True
            self.step()
        elif self.must_sync:
            member.send_sync(self._assignments() if member.leads else None)
            self.waiting = True
            self.step()
        else:
            self._react(member.heartbeat())

    def _take_reply(self) -> None:
        self.waiting = False
        if isinstance(self.member.world.replies[self.member.token], JoinGroupReply):
            code = self.member.join_reply().error_code
            self.must_join, self.must_sync = code != 0, code == 0
        else:
            code = self.member.sync_reply().error_code
            if code == 0:
                partitions = read_assignment(self.member.assignment).partitions
                share = {(topic, partition) for topic, numbers in partitions for partition in numbers}
                self.must_sync = False
                self.must_join = not self.owned <= share  # it has given something up: the others may have it
                self.owned = share
        self._react(code)

    def _react(self, code: int) -> None:
        if code in START_AGAIN:
            self.member.member_id, self.member.generation = "", -1
            self.owned = set()
            self.must_join, self.must_sync = True, False
        elif code == 27:
            self.must_join, self.must_sync = True, False
        else:
            assert code in (0, 15), code

    def _assignments(self) -> dict[str, bytes]:
        """An even share for everyone, but nothing that another still owns."""
        topic_id = b"t"
        owned = {
            each.member_id: frozenset(
                (topic_id, partition)
                for _, partitions in read_subscription(each.metadata).owned
                for partition in partitions
            )
            for each in self.member.joined.members
        }
        everyone = {member_id: Subscriber(None, frozenset({topic_id})) for member_id in owned}
        target = assign_uniformly(everyone, {topic_id: PARTITIONS}, owned)
        taken = frozenset().union(*owned.values())
        return {
            member_id: write_assignment(
                tuple(("t", tuple(numbers)) for numbers in by_topic(share - (taken - owned[member_id])).values())
            )
            for member_id, share in target.items()
        }


class MigrationMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(t=PARTITIONS)
        self.clients: dict[str, Consumer | Cooperative] = {}
        self.stored_epoch = 0
        self.incarnations = 0

    def known_ids(self) -> set[str]:
        classic = self.world.ask(DescribeGroups(("g",)), DescribeGroupsReply).groups[0]
        consumer = self.world.ask(ConsumerGroupDescribe(("g",)), ConsumerGroupDescribeReply).groups[0]
        return {member.member_id for group in (classic, consumer) for member in group.members}

    @rule(name=names, classic=st.booleans(), static=st.booleans())
    def start(self, name: str, classic: bool, static: bool) -> None:
        """A process starts, perhaps after one of that name was killed without a word."""
        self.incarnations += 1
        new = f"{name}{self.incarnations}"
        if classic:
            self.clients[name] = Cooperative(Member(self.world, new))
        else:
            self.clients[name] = Consumer(self.world, new, instance=name if static else None)
        self.step(name)

    @rule(name=names)
    def step(self, name: str) -> None:
        client = self.clients.get(name)
        if isinstance(client, Cooperative):
            client.step()
        elif client is not None:
            code = client.beat()
            if code in (25, 69, 82, 110):
                client.epoch, client.owned, client.told = 0, set(), set()
            else:
                assert code in (0, 15, 111), code

    @rule()
    def everybody_steps(self) -> None:
        for name in self.clients:
            self.step(name)

    @precondition(lambda self: not self.world.store_is_broken)
    @rule(name=names)
    def leave(self, name: str) -> None:
        client = self.clients.get(name)
        if isinstance(client, Cooperative):
            if client.waiting or client.member.generation < 0:
                return
            client.member.leave()
        elif client is None or client.epoch == 0:
            return
        else:
            client.leave()
        del self.clients[name]

    @rule(ms=st.sampled_from([100, 3_000, 9_000, 61_000]))
    def wait(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(broken=st.booleans())
    def break_store(self, broken: bool) -> None:
        self.world.store_is_broken = broken

    @rule()
    def restart(self) -> None:
        """Connections break, so whoever waited asks again."""
        self.world.restart()
        for client in self.clients.values():
            if isinstance(client, Cooperative):
                client.waiting = False

    @invariant()
    def every_partition_has_at_most_one_owner(self) -> None:
        known = self.known_ids()
        owned = [
            partition
            for client in self.clients.values()
            if (client.member if isinstance(client, Cooperative) else client).member_id in known
            for partition in client.owned
        ]
        assert len(owned) == len(set(owned)), owned

    @invariant()
    def stored_epochs_never_go_back(self) -> None:
        """Except when a group that has nothing left is forgotten, and begins anew."""
        epoch = max((row.epoch for row in self.world.stored(GroupRow)), default=0)
        assert epoch >= self.stored_epoch or epoch == 0
        self.stored_epoch = epoch

    def teardown(self) -> None:
        """Everybody follows: then all partitions are owned."""
        self.world.store_is_broken = False
        for _ in range(40):
            for name in self.clients:
                self.step(name)
            self.world.advance(2_000)
            self.every_partition_has_at_most_one_owner()
        if self.clients:
            owned = sorted(partition for client in self.clients.values() for partition in client.owned)
            assert owned == [("t", number) for number in range(PARTITIONS)]


TestMigration = MigrationMachine.TestCase
TestMigration.settings = settings(max_examples=30, stateful_step_count=40)
