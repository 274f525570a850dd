"""Random lives of a consumer group: members come, go, hang, are forgotten; topics change; the broker restarts.

At any time a partition has at most one owner; epochs never go back; once everybody follows, everything is owned; and
a coordinator that restarts answers like the one that did not.
"""

from copy import deepcopy
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.broker.groups.consumer_members import Consumer, converge
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups.messages import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeReply,
    ConsumerGroupHeartbeatReply,
    DescribedConsumerGroup,
)

NAMES = "abc"
SUBSCRIPTIONS: list[tuple[tuple[str, ...], str | None]] = [
    (("t",), None),
    (("t", "u"), None),
    (("u", "v"), None),
    ((), "[tu]"),
    (("v",), "t|u"),
]
members = st.sampled_from(NAMES)


class ConsumerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(t=4, u=3)
        self.consumers: dict[str, Consumer] = {}
        self.group_epoch = 0
        self.incarnations = 0

    def describe(self, world: World | None = None) -> DescribedConsumerGroup:
        reply = (world or self.world).ask(ConsumerGroupDescribe(("g",)), ConsumerGroupDescribeReply).groups[0]
        return replace(reply, members=tuple(sorted(reply.members, key=lambda member: member.member_id)))

    def alive(self) -> list[Consumer]:
        """Those whom both sides take for members: neither forgotten by the coordinator nor gone themselves."""
        known = {member.member_id for member in self.describe().members}
        return [each for each in self.consumers.values() if each.epoch > 0 and each.member_id in known]

    def beat(self, consumer: Consumer) -> None:
        epoch = consumer.epoch
        code = consumer.beat()
        if code == 0:
            assert consumer.epoch >= epoch
        elif code in (25, 69, 82, 110):  # forgotten or fenced: it gives up everything and starts again
            consumer.epoch, consumer.owned, consumer.told = 0, set(), set()
        else:
            assert code in (15, 111), code

    @rule(name=members, subscription=st.sampled_from(SUBSCRIPTIONS), static=st.booleans(), lingers=st.booleans())
    def start(self, name: str, subscription: tuple[tuple[str, ...], str | None], static: bool, lingers: bool) -> None:
        """A process starts, perhaps after one of that name was killed without a word."""
        self.incarnations += 1
        topics, pattern = subscription
        consumer = Consumer(
            self.world,
            f"{name}{self.incarnations}",
            instance=name if static else None,
            topics=topics,
            pattern=pattern,
            lingers=lingers,
        )
        self.consumers[name] = consumer
        self.beat(consumer)

    @rule(name=members)
    def heartbeat(self, name: str) -> None:
        if name in self.consumers:
            self.beat(self.consumers[name])

    @rule(name=members)
    def give_up(self, name: str) -> None:
        """A lingering member does what it was told, and says so next time."""
        if name in self.consumers:
            self.consumers[name].settle()

    @rule(name=members, subscription=st.sampled_from(SUBSCRIPTIONS))
    def subscribe(self, name: str, subscription: tuple[tuple[str, ...], str | None]) -> None:
        consumer = self.consumers.get(name)
        if consumer is not None and consumer in self.alive():
            consumer.topics, consumer.pattern = subscription
            consumer.beat(subscribed_topic_names=consumer.topics, subscribed_topic_regex=consumer.pattern or "")

    @rule(name=members, epoch=st.sampled_from([-1, -2]))
    def leave(self, name: str, epoch: int) -> None:
        consumer = self.consumers.get(name)
        if consumer is not None and consumer.epoch > 0 and not self.world.store_is_broken:
            consumer.leave(epoch if consumer.instance is not None else -1)
            del self.consumers[name]

    @rule(ms=st.sampled_from([100, 20_000, 50_000]))
    def wait(self, ms: int) -> None:
        self.world.advance(ms)

    @rule(topic=st.sampled_from("tuv"), partitions=st.integers(1, 3))
    def change_topic(self, topic: str, partitions: int) -> None:
        known = self.world.topics.by_name(topic)
        self.world.topics.create(topic, partitions + (known.partitions if known else 0))
        self.world.coordinator.topics_changed()

    @precondition(lambda self: self.world.topics.by_name("v") is not None)
    @rule()
    def delete_topic(self) -> None:
        self.world.topics.delete("v")
        self.world.coordinator.topics_changed()

    @rule(broken=st.booleans())
    def break_store(self, broken: bool) -> None:
        self.world.store_is_broken = broken

    @precondition(lambda self: not self.world.store_is_broken)
    @rule()
    def restart(self) -> None:
        self.world.advance(1000)  # what could not be written is written now
        before = self.describe()
        self.world.restart()
        assert self.describe() == before

    @precondition(lambda self: not self.world.store_is_broken)
    @rule()
    def a_restarted_twin_answers_alike(self) -> None:
        self.world.advance(1000)
        twin = deepcopy(self.world)
        twin.restart()
        for consumer in self.alive():
            request = consumer.request()
            reply = twin.ask(request, ConsumerGroupHeartbeatReply)
            consumer.last = self.world.ask(request, ConsumerGroupHeartbeatReply)
            # How soon the next heartbeat should come is no promise: a restarted coordinator knows of no hurry.
            assert replace(consumer.last, heartbeat_interval_ms=0) == replace(reply, heartbeat_interval_ms=0)
            if reply.error_code == 0:
                consumer.take(reply)
            else:
                consumer.epoch, consumer.owned, consumer.told = 0, set(), set()
        assert self.describe(twin) == self.describe()
        assert twin.snapshot() == self.world.snapshot()

    @invariant()
    def every_partition_has_at_most_one_owner(self) -> None:
        owned = [partition for consumer in self.alive() for partition in consumer.owned]
        assert len(owned) == len(set(owned)), owned
        told = [
            (topic.topic_name, partition)
            for member in self.describe().members
            for topic in member.assignment
            for partition in topic.partitions
        ]
        assert len(told) == len(set(told)), told

    @invariant()
    def epochs_never_go_back(self) -> None:
        """Except when a group that has nothing left is forgotten, and begins anew."""
        group = self.describe()
        if group.error_code != 0:
            self.group_epoch = 0
        else:
            assert group.group_epoch >= self.group_epoch
            assert group.assignment_epoch <= group.group_epoch
            assert all(member.member_epoch <= group.assignment_epoch for member in group.members)
            self.group_epoch = group.group_epoch

    def teardown(self) -> None:
        """Everybody follows: then every partition of every subscribed topic is owned."""
        self.world.store_is_broken = False
        self.world.advance(46_000)  # the silent are gone; the others start again
        followers = list(self.consumers.values())
        for consumer in followers:
            consumer.lingers = False
            self.beat(consumer)
            self.beat(consumer)
        if not followers:
            return
        converge(*followers)
        group = self.describe()
        assert group.group_state == "Stable"
        assert all(member.assignment == member.target_assignment for member in group.members)
        owned = sorted(partition for consumer in followers for partition in consumer.owned)
        wanted = {
            name
            for consumer in followers
            for name in self.world.topics.names()
            if name in (consumer.topics or ()) or (consumer.pattern and name in consumer.pattern)
        }
        topics = [topic for topic in map(self.world.topics.by_name, wanted) if topic is not None]
        assert owned == sorted((topic.name, number) for topic in topics for number in range(topic.partitions))


TestConsumerGroup = ConsumerMachine.TestCase
TestConsumerGroup.settings = settings(max_examples=40, stateful_step_count=40)
