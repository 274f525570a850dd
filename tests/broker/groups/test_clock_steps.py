"""Somebody sets the clock: by hours, back or forward. Only the stamps of what is stored follow it."""

import pytest

from tests.broker.groups.classic_members import SESSION_MS as CLASSIC_SESSION_MS
from tests.broker.groups.classic_members import Member
from tests.broker.groups.consumer_members import Consumer, converge
from tests.broker.groups.world import START_MS, World
from tidelog.broker.coordination.groups import GroupConfig
from tidelog.metadata.rows import GroupRow, OffsetRow

HOUR_MS = 3_600_000
SESSION_MS = 45_000
STEPS = pytest.mark.parametrize("step_ms", [-3 * HOUR_MS, 5 * HOUR_MS], ids=["-3h", "+5h"])
RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])


@STEPS
@RESTARTS
def test_who_is_silent_is_out_after_its_session_and_who_is_not_stays(step_ms: int, restarts: bool) -> None:
    world = World()
    silent, lively = Consumer(world, "silent"), Consumer(world, "lively")
    converge(silent, lively)
    world.step_ms = step_ms
    if restarts:
        world.restart()
    for _ in range(9):
        assert lively.beat() == 0
        assert len(lively.owned) == 2
        world.advance(SESSION_MS // 9)
    converge(lively)
    assert len(lively.owned) == 4


@STEPS
@RESTARTS
def test_members_of_the_classic_protocol_keep_their_sessions(step_ms: int, restarts: bool) -> None:
    world = World(GroupConfig(group_initial_rebalance_delay_ms=0))
    member = Member(world, "a")
    member.send_join()
    member.join_reply()
    member.send_sync({member.member_id: b"all"})
    world.step_ms = step_ms
    if restarts:
        world.restart()
    world.advance(CLASSIC_SESSION_MS - 1)
    assert member.heartbeat() == 0
    world.advance(CLASSIC_SESSION_MS)
    assert member.heartbeat() == 25


@STEPS
def test_a_rebalance_waits_as_long_as_it_may(step_ms: int) -> None:
    world = World(GroupConfig(group_initial_rebalance_delay_ms=0))
    first = Member(world, "a", session_ms=200_000)
    first.send_join()
    first.join_reply()
    first.send_sync({first.member_id: b"all"})
    second = Member(world, "b")
    token = second.send_join()
    world.step_ms = step_ms
    world.advance(first.rebalance_ms - 1)
    assert world.is_waiting(token)
    world.advance(1)
    assert not world.is_waiting(token)


@STEPS
def test_what_is_stored_is_stamped_by_the_wall_clock_and_expires_by_it(step_ms: int) -> None:
    world = World()
    world.step_ms = step_ms
    assert world.commit("g") == 0
    (row,) = world.stored(OffsetRow)
    assert row.committed_ms == START_MS + step_ms
    consumer = Consumer(world, "c", group="h")
    consumer.beat()
    consumer.leave()
    (group,) = world.stored(GroupRow)
    assert group.state_since_ms == START_MS + step_ms
    world.step_ms = 0
    world.advance(world.config.offsets_retention_ms + abs(step_ms) + world.config.offsets_retention_check_interval_ms)
    assert not world.stored(OffsetRow)
