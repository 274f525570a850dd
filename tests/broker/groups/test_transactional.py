"""Offsets that are committed inside a transaction: who may send them, and when they are the group's."""

import pytest

from tests.broker.groups.classic_members import Member, settle
from tests.broker.groups.consumer_members import Consumer, converge
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups.errors import (
    GroupError,
    IllegalGeneration,
    StaleMemberEpoch,
    UnknownMemberId,
)
from tidelog.broker.coordination.groups.messages import CommittedPartition, CommittedTopic, OffsetCommit
from tidelog.metadata.rows import OffsetRow
from tidelog.metadata.store import Put


def asked(
    world: World, generation: int = -1, member: str = "", topic: str = "t", partition: int = 0
) -> list[OffsetRow]:
    request = OffsetCommit("g", (CommittedTopic(topic, (CommittedPartition(partition, 7),)),), generation, member)
    _, rows = world.coordinator.check_transactional(request, world.now_ms)
    return rows


def test_nothing_changes_until_the_transaction_commits() -> None:
    world = World()
    rows = asked(world)
    assert [row.offset for row in rows] == [7]
    assert world.committed("g").offset == -1
    world.coordinator.offsets_committed([Put(row) for row in rows])
    assert world.committed("g").offset == 7


def test_a_member_of_a_classic_group_is_checked_and_a_nameless_sender_is_not() -> None:
    world = World()
    member = Member(world, "m")
    settle(member)
    assert asked(world, member.generation, member.member_id)
    assert asked(world)  # as old producers do, which know nothing of the group
    with pytest.raises(IllegalGeneration):
        asked(world, member.generation + 1, member.member_id)
    with pytest.raises(UnknownMemberId):
        asked(world, member.generation, "stranger")


def test_a_member_of_a_consumer_group_is_checked_by_its_epoch() -> None:
    world = World()
    consumer = Consumer(world, "c")
    converge(consumer)
    assert asked(world, consumer.epoch, consumer.member_id)
    assert asked(world)
    with pytest.raises(StaleMemberEpoch):
        asked(world, consumer.epoch + 1, consumer.member_id)
    with pytest.raises(UnknownMemberId):
        asked(world, consumer.epoch, "stranger")


def test_a_member_of_a_group_that_does_not_exist_is_of_an_illegal_generation() -> None:
    with pytest.raises(GroupError) as refused:
        asked(World(), 3, "member")
    assert isinstance(refused.value, IllegalGeneration)


@pytest.mark.parametrize(("topic", "partition"), [("unknown", 0), ("t", 99)])
def test_an_unknown_partition_brings_nothing(topic: str, partition: int) -> None:
    assert asked(World(), topic=topic, partition=partition) == []
