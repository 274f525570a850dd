"""What groups keep in memory has bounds over all clients; what goes beyond is refused, and everybody else goes on."""

from typing import Any

import pytest

from tests.broker.groups.classic_members import Member, protocols, settle
from tests.broker.groups.consumer_members import Consumer, converge
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups import GroupConfig
from tidelog.broker.coordination.groups.messages import (
    DeleteGroups,
    DeleteGroupsReply,
    JoinGroupReply,
    ListGroups,
    ListGroupsReply,
    SyncGroupReply,
)

OK, INVALID_SIZE, MAX_SIZE = 0, 28, 81


def world_of(**bounds: Any) -> World:
    return World(GroupConfig(group_initial_rebalance_delay_ms=0, **bounds))


def groups(world: World) -> set[str]:
    return {each.group_id for each in world.ask(ListGroups(), ListGroupsReply).groups}


def test_one_group_more_is_refused_and_leaves_nothing_behind() -> None:
    world = world_of(tidelog_max_groups=2)
    assert Consumer(world, "a", group="one").beat() == OK
    assert world.commit("two") == OK
    assert Consumer(world, "b", group="three").beat() == MAX_SIZE
    assert world.commit("three") == INVALID_SIZE
    assert world.ask(Member(world, "c", group="three").join_request(), JoinGroupReply).error_code == MAX_SIZE
    assert groups(world) == {"one", "two"}
    assert world.commit("two", offset=5) == OK
    assert world.ask(DeleteGroups(("two",)), DeleteGroupsReply).results[0].error_code == OK
    assert world.commit("three") == OK


def test_one_member_more_is_refused_in_whatever_group() -> None:
    world = world_of(tidelog_max_group_members=3)
    a = Consumer(world, "a", group="new")
    a.beat()
    settle(Member(world, "b", group="old"))
    promised = world.ask(Member(world, "c", group="other").join_request(), JoinGroupReply)
    assert promised.error_code == 79, "an id that was given out is a member to be"
    assert Consumer(world, "d", group="new").beat() == MAX_SIZE
    assert world.ask(Member(world, "e", group="old").join_request(), JoinGroupReply).error_code == MAX_SIZE
    world.advance(world.config.group_consumer_session_timeout_ms)  # all are silent
    assert Consumer(world, "d", group="new").beat() == OK


@pytest.mark.parametrize("kind", ["subscription", "pattern", "metadata", "names"])
def test_what_members_say_of_themselves_is_bounded(kind: str) -> None:
    world = world_of(tidelog_max_group_bytes=20_000, group_consumer_max_regex_length=30_000)
    kept = Consumer(world, "kept", topics=("t",))
    converge(kept)
    before = world.coordinator.bounds.member_bytes.used
    if kind == "metadata":
        classic = Member(world, "big", group="old", offers=protocols("range", topics=("t" * 20_000,)))
        classic.member_id = world.ask(classic.join_request(), JoinGroupReply).member_id
        assert world.ask(classic.join_request(), JoinGroupReply).error_code == MAX_SIZE
    elif kind == "names":
        lengthy = Member(world, "x" * 20_000, group="old")
        assert world.ask(lengthy.join_request(), JoinGroupReply).error_code == MAX_SIZE
    else:
        topics = tuple(f"topic-{n}" for n in range(200)) if kind == "subscription" else None
        big = Consumer(world, "big", topics=topics, pattern="x" * 20_000 if kind == "pattern" else None)
        assert big.beat() == MAX_SIZE
        assert kept.beat(subscribed_topic_names=topics, subscribed_topic_regex=big.pattern) == MAX_SIZE
    assert world.coordinator.bounds.member_bytes.used == before
    converge(kept)


def test_what_a_leader_assigns_is_bounded() -> None:
    world = world_of(tidelog_max_group_bytes=20_000)
    leader = Member(world, "leader")
    settle(leader)
    before = world.coordinator.bounds.member_bytes.used
    leader.send_join()
    leader.join_reply()
    refused = world.ask(leader.sync_request({leader.member_id: bytes(20_000)}), SyncGroupReply)
    assert refused.error_code == MAX_SIZE
    assert world.coordinator.bounds.member_bytes.used <= before
    leader.send_sync({leader.member_id: bytes(2_000)})
    assert leader.sync_reply().error_code == OK


def test_committed_offsets_are_bounded_and_those_there_are_can_be_committed_again() -> None:
    world = world_of(tidelog_max_group_offset_bytes=800)
    assert world.commit("g", partition=0) == OK
    assert world.commit("g", partition=1) == OK
    assert world.commit("g", partition=2) == INVALID_SIZE
    assert world.commit("h") == INVALID_SIZE
    assert world.commit("g", partition=1, offset=7) == OK
    assert world.committed("g", partition=1).offset == 7
    world.carry_out(world.coordinator.topics_deleted(["t"]))
    assert world.coordinator.bounds.offset_bytes.used == 0
    assert world.commit("g", topic="u") == OK


def test_the_counts_are_the_same_after_a_restart() -> None:
    world = World()
    a, b = Consumer(world, "a", instance="i"), Consumer(world, "b")
    converge(a, b)
    settle(Member(world, "c", group="old"))
    world.commit("only offsets", metadata="note")
    before = [(bound.config, bound.used) for bound in world.coordinator.bounds]
    assert all(used for _, used in before)
    world.restart()
    assert [(bound.config, bound.used) for bound in world.coordinator.bounds] == before


def test_what_is_stored_is_kept_although_less_is_allowed_now() -> None:
    world = World()
    members = [Consumer(world, f"m{n}") for n in range(3)]
    converge(*members)
    world.config = GroupConfig(tidelog_max_group_members=1, tidelog_max_groups=1, tidelog_max_group_bytes=1)
    world.restart()
    converge(*members)
    assert Consumer(world, "one more").beat() == MAX_SIZE


def test_an_operator_is_told_once_each_time_that_a_bound_is_reached() -> None:
    world = world_of(tidelog_max_group_members=10)
    members = [Consumer(world, f"m{n}") for n in range(10)]
    for member in members:
        assert member.beat() == OK
    news = world.coordinator.bounds.news
    for _ in range(3):
        assert Consumer(world, "more").beat() == MAX_SIZE
    assert news == ["the broker has 10 of at most 10 members of groups (tidelog.max.group.members); more are refused"]
    news.clear()
    for member in members[:2]:
        member.leave()
    for n in range(2):
        assert Consumer(world, f"again{n}").beat() == OK
    assert Consumer(world, "more").beat() == MAX_SIZE
    assert len(news) == 1
