"""The classic rebalance protocol, as transcripts."""

import pytest

from tests.broker.groups.classic_members import REBALANCE_MS, SESSION_MS, Member, protocols, settle
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups import GroupConfig
from tidelog.broker.coordination.groups.messages import (
    DescribeGroups,
    DescribeGroupsReply,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    LeavingMember,
    SyncGroupReply,
)

OK, UNKNOWN, REBALANCING, ILLEGAL_GENERATION, INCONSISTENT, FENCED = 0, 25, 27, 22, 23, 82


def describe(world: World, group: str = "g") -> str:
    return world.ask(DescribeGroups((group,)), DescribeGroupsReply).groups[0].group_state


def test_a_new_member_is_given_an_id_and_joins_again_with_it() -> None:
    world = World()
    a = Member(world, "a")
    first = world.ask(a.join_request(), JoinGroupReply)
    assert (first.error_code, first.member_id) == (79, "a-#0")
    a.member_id = first.member_id
    a.token = world.send(a.join_request())
    assert world.is_waiting(a.token)
    world.advance(3000)
    joined = a.join_reply()
    assert (joined.error_code, joined.generation_id, joined.leader, joined.member_id) == (OK, 1, "a-#0", "a-#0")
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert [member.member_id for member in joined.members] == ["a-#0"]


def test_an_old_client_joins_without_an_id() -> None:
    world = World()
    a = Member(world, "a")
    a.token = world.send(a.join_request(member_id_required=False))
    world.advance(3000)
    assert a.join_reply().error_code == OK


def test_the_first_rebalance_waits_for_those_who_start_together() -> None:
    world = World()
    a, b, c = (Member(world, name) for name in "abc")
    a.send_join()
    world.advance(2000)
    b.send_join()  # prolongs the wait by another delay
    world.advance(2000)
    c.send_join()
    assert world.is_waiting(a.token)
    world.advance(5000)
    assert {member.join_reply().generation_id for member in (a, b, c)} == {1}
    assert len(a.joined.members) == 3
    assert b.joined.members == ()


def test_the_first_rebalance_waits_no_longer_than_the_rebalance_timeout() -> None:
    world = World()
    a = Member(world, "a", rebalance_ms=7000)
    a.send_join()
    others = []
    for number in range(5):
        world.advance(1500)
        if world.is_waiting(a.token):
            others.append(Member(world, f"b{number}", rebalance_ms=7000))
            others[-1].send_join()
    assert not world.is_waiting(a.token)


def test_without_an_initial_delay_the_first_member_is_served_at_once() -> None:
    world = World(GroupConfig(group_initial_rebalance_delay_ms=0))
    a = Member(world, "a")
    a.send_join()
    assert a.join_reply().generation_id == 1


def test_everyone_waits_for_the_leaders_assignment() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b")
    a.send_join()
    b.send_join()
    world.advance(6000)
    a.join_reply()
    b.join_reply()
    b.send_sync()
    assert world.is_waiting(b.token)
    a.send_sync({a.member_id: b"first", b.member_id: b"second"})
    assert a.sync_reply().assignment == b"first"
    assert b.sync_reply().assignment == b"second"
    assert describe(world) == "Stable"


def test_a_member_that_the_leader_forgot_gets_nothing() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b")
    settle(a, b)
    b.send_join()
    assert b.join_reply().generation_id == 1  # a follower without news is only told again
    leader, follower = (a, b) if a.leads else (b, a)
    leader.send_join()
    follower.send_join()
    leader.join_reply()
    follower.join_reply()
    leader.send_sync({leader.member_id: b"all"})
    follower.send_sync()
    assert follower.sync_reply().assignment == b""


def test_a_newcomer_starts_a_rebalance_that_the_others_learn_of_by_heartbeat() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b")
    settle(a)
    assert a.heartbeat() == OK
    b.send_join()
    assert world.is_waiting(b.token)
    assert describe(world) == "PreparingRebalance"
    assert a.heartbeat() == REBALANCING
    a.send_join()
    assert a.join_reply().generation_id == 2
    assert b.join_reply().generation_id == 2
    assert describe(world) == "CompletingRebalance"
    assert a.heartbeat() == OK


def test_whoever_does_not_rejoin_in_time_is_out() -> None:
    world = World()
    a, b = Member(world, "a", session_ms=120_000), Member(world, "b")
    settle(a)
    b.send_join()
    world.advance(REBALANCE_MS - 1)
    assert world.is_waiting(b.token)
    world.advance(1)
    assert b.join_reply().leader == b.member_id
    assert a.heartbeat() == UNKNOWN


def test_whoever_does_not_sync_in_time_is_out() -> None:
    world = World()
    a, b = Member(world, "a", session_ms=120_000), Member(world, "b", session_ms=120_000)
    a.send_join()
    b.send_join()
    world.advance(6000)
    a.join_reply()
    b.join_reply()
    b.send_sync()
    world.advance(REBALANCE_MS)
    assert b.sync_reply().error_code == REBALANCING
    assert a.heartbeat() == UNKNOWN
    assert b.heartbeat() == REBALANCING


def test_a_silent_member_is_removed_after_its_session_timeout() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b", session_ms=SESSION_MS * 3)
    settle(a, b)
    for _ in range(5):
        world.advance(SESSION_MS - 1)
        assert a.heartbeat() == OK
        assert b.heartbeat() == OK
    world.advance(SESSION_MS)
    assert b.heartbeat() == REBALANCING
    assert a.heartbeat() == UNKNOWN


def test_a_commit_counts_as_a_heartbeat() -> None:
    world = World()
    a = Member(world, "a")
    settle(a)
    world.advance(SESSION_MS - 1)
    assert a.commit(5) == OK
    world.advance(SESSION_MS - 1)
    assert a.heartbeat() == OK


def test_a_member_that_waits_for_others_does_not_expire() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b", session_ms=120_000)
    settle(a, b)
    Member(world, "c").send_join()
    a.send_join()
    world.advance(SESSION_MS * 3)
    assert world.is_waiting(a.token)
    b.send_join()
    assert a.join_reply().error_code == OK


def test_a_newcomer_whose_join_waits_too_long_is_told_to_start_again() -> None:
    world = World(GroupConfig(new_member_join_timeout_ms=20_000))
    a = Member(world, "a", session_ms=120_000)
    settle(a)
    b = Member(world, "b")
    b.send_join()
    world.advance(20_000)
    assert b.join_reply().error_code == UNKNOWN


def test_a_promised_id_that_nobody_uses_delays_a_rebalance_only_for_a_session() -> None:
    world = World()
    a = Member(world, "a", session_ms=120_000)
    settle(a)
    world.ask(Member(world, "ghost").join_request(), JoinGroupReply)
    a.send_join()
    assert world.is_waiting(a.token)
    world.advance(SESSION_MS)
    assert a.join_reply().generation_id == 2


def test_a_join_asked_twice_answers_both() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b")
    settle(a, b)
    first = a.send_join() if a.leads else b.send_join()
    leader = a if a.leads else b
    leader.send_join()
    assert world.reply(first, JoinGroupReply).error_code == REBALANCING
    assert world.is_waiting(leader.token)


def test_leaving_makes_room_at_once() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b")
    settle(a, b)
    assert a.leave() == OK
    assert b.heartbeat() == REBALANCING
    b.send_join()
    assert b.join_reply().leader == b.member_id
    assert a.heartbeat() == UNKNOWN


def test_the_last_one_out_leaves_an_empty_group_in_a_new_generation() -> None:
    world = World()
    a = Member(world, "a")
    settle(a)
    assert a.leave() == OK
    assert describe(world) == "Empty"
    settle(b := Member(world, "b"))
    assert b.generation == 3


def test_many_leave_with_one_request() -> None:
    world = World()
    a, b, c = Member(world, "a"), Member(world, "b", instance="i"), Member(world, "c", instance="j")
    settle(a, b, c)
    leaving = (
        LeavingMember(a.member_id),
        LeavingMember("", "i"),
        LeavingMember("somebody else", "j"),
        LeavingMember("", "nobody"),
        LeavingMember("nobody"),
    )
    left = world.ask(LeaveGroup("g", leaving), LeaveGroupReply).members
    assert [member.error_code for member in left] == [OK, OK, FENCED, UNKNOWN, UNKNOWN]
    assert c.heartbeat() == REBALANCING


def test_leaving_a_group_that_is_not_there() -> None:
    left = World().ask(LeaveGroup("g", (LeavingMember("a"), LeavingMember("b"))), LeaveGroupReply)
    assert [member.error_code for member in left.members] == [UNKNOWN, UNKNOWN]


def test_members_vote_among_the_strategies_that_all_share() -> None:
    world = World()
    a = Member(world, "a", offers=protocols("sticky", "roundrobin", "range"))
    b = Member(world, "b", offers=protocols("range", "roundrobin"))
    c = Member(world, "c", offers=protocols("roundrobin", "range", "sticky"))
    settle(a, b, c)
    assert a.joined.protocol_name == "roundrobin"


def test_a_member_without_a_shared_strategy_is_refused() -> None:
    world = World()
    settle(Member(world, "a"))
    b = Member(world, "b", offers=protocols("roundrobin"))
    b.send_join()
    assert b.join_reply().error_code == INCONSISTENT
    c = Member(world, "c", protocol_type="connect")
    c.send_join()
    assert c.join_reply().error_code == INCONSISTENT


def test_a_changed_subscription_starts_a_rebalance() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b")
    settle(a, b)
    follower = b if a.leads else a
    follower.offers = protocols("range", topics=("t", "u"))
    follower.send_join()
    assert world.is_waiting(follower.token)
    assert (a if follower is b else b).heartbeat() == REBALANCING


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group": ""}, 24),
        ({"session_ms": 5_999}, 26),
        ({"session_ms": 1_800_001}, 26),
        ({"offers": ()}, INCONSISTENT),
        ({"protocol_type": ""}, INCONSISTENT),
        ({"member_id": "unheard of"}, UNKNOWN),
    ],
)
def test_what_a_join_must_say(changes: dict[str, object], code: int) -> None:
    world = World()
    a = Member(world, "a", **changes)  # type: ignore[arg-type]
    a.send_join()
    assert a.join_reply().error_code == code
    assert describe(world, a.group) == "Dead"


def test_a_full_group_takes_no_more_members() -> None:
    world = World(GroupConfig(group_max_size=2))
    a, b = Member(world, "a"), Member(world, "b")
    settle(a, b)
    c = Member(world, "c")
    c.send_join()
    assert c.join_reply().error_code == 81
    assert a.heartbeat() == OK


@pytest.mark.parametrize("instance", [None, "i"])
def test_requests_of_another_generation_or_member_are_refused(instance: str | None) -> None:
    world = World()
    a = Member(world, "a", instance=instance)
    settle(a)
    a.generation += 1
    assert a.heartbeat() == ILLEGAL_GENERATION
    assert a.commit(1) == ILLEGAL_GENERATION
    a.send_sync()
    assert a.sync_reply().error_code == ILLEGAL_GENERATION
    a.generation, a.member_id = 1, "another"
    code = FENCED if instance else UNKNOWN
    assert a.heartbeat() == code
    assert a.commit(1) == code
    a.send_sync()
    assert a.sync_reply().error_code == code
    a.send_join()
    assert a.join_reply().error_code == code


def test_a_sync_with_another_protocol_is_refused() -> None:
    world = World()
    a = Member(world, "a")
    settle(a)
    a.protocol_type = "connect"
    a.send_sync()
    assert a.sync_reply().error_code == INCONSISTENT


def test_a_sync_during_round_one_is_told_to_rejoin() -> None:
    world = World()
    a = Member(world, "a")
    settle(a)
    Member(world, "b").send_join()
    a.send_sync()
    assert a.sync_reply().error_code == REBALANCING


def test_offsets_cannot_be_committed_between_the_rounds() -> None:
    world = World()
    a = Member(world, "a")
    a.send_join()
    world.advance(3000)
    a.join_reply()
    assert a.commit(1) == REBALANCING


# Static members


def test_a_static_member_that_restarts_gets_its_share_back_without_a_rebalance() -> None:
    world = World()
    a, b = Member(world, "a", instance="i"), Member(world, "b", instance="j")
    settle(a, b)
    follower, leader = (b, a) if a.leads else (a, b)
    again = Member(world, follower.name, instance=follower.instance)
    again.send_join()
    joined = again.join_reply()
    assert (joined.error_code, joined.generation_id, joined.skip_assignment) == (OK, 1, False)
    assert again.member_id != follower.member_id
    again.send_sync()
    assert again.sync_reply().assignment == follower.name.encode()
    assert leader.heartbeat() == OK
    assert follower.heartbeat() == FENCED
    assert follower.commit(3) == FENCED


@pytest.mark.parametrize("understands", [True, False])
def test_a_static_leader_that_restarts_does_not_assign_again(understands: bool) -> None:
    world = World()
    a = Member(world, "a", instance="i")
    settle(a)
    again = Member(world, "a", instance="i")
    again.send_join(understands_skip_assignment=understands)
    joined = again.join_reply()
    assert joined.error_code == OK
    if understands:
        assert (joined.leader, joined.skip_assignment, len(joined.members)) == (again.member_id, True, 1)
    else:  # it is told that its predecessor leads, so it does not assign either
        assert (joined.leader, joined.skip_assignment, joined.members) == (a.member_id, False, ())


def test_a_static_member_that_restarts_while_its_join_waits_fences_the_first() -> None:
    world = World()
    a, b = Member(world, "a", instance="i"), Member(world, "b")
    settle(a, b)
    Member(world, "c").send_join()
    a.send_join()
    again = Member(world, "a", instance="i")
    again.send_join()
    assert a.join_reply().error_code == FENCED
    assert world.is_waiting(again.token)


def test_a_static_member_that_restarts_between_the_rounds_starts_a_rebalance() -> None:
    world = World()
    a, b = Member(world, "a", instance="a"), Member(world, "b")
    a.send_join()
    b.send_join()
    world.advance(6000)
    a.join_reply()
    b.join_reply()
    b.send_sync()
    again = Member(world, "a", instance="a")
    again.send_join()
    assert b.sync_reply().error_code == REBALANCING
    b.send_join()
    assert again.join_reply().generation_id == 2


def test_a_static_member_that_is_away_keeps_its_place_until_its_session_ends() -> None:
    world = World()
    a, b = Member(world, "a", instance="i", session_ms=300_000), Member(world, "b")
    settle(a, b)
    b.leave()
    world.advance(REBALANCE_MS)  # the round ends with nobody there: it goes on
    assert describe(world) == "PreparingRebalance"
    assert a.heartbeat() == REBALANCING
    a.send_join()
    assert a.join_reply().error_code == OK


# Restarts


def test_after_a_restart_members_carry_on_in_the_same_generation() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b", instance="i")
    settle(a, b)
    a.commit(7)
    world.advance(SESSION_MS - 1)
    world.restart()
    world.advance(SESSION_MS - 1)
    assert [a.heartbeat(), b.heartbeat()] == [OK, OK]
    assert a.commit(8) == OK
    for member in (a, b):
        member.send_sync()
        assert member.sync_reply().assignment == member.name.encode()


def test_after_a_restart_silent_members_expire_as_ever() -> None:
    world = World()
    a = Member(world, "a")
    settle(a)
    world.restart()
    world.advance(SESSION_MS)
    assert a.heartbeat() == UNKNOWN
    assert describe(world) == "Empty"


def test_a_restart_in_round_one_asks_everyone_again() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b")
    settle(a, b)
    a.leave()
    world.restart()
    assert describe(world) == "PreparingRebalance"
    assert a.heartbeat() == UNKNOWN
    assert b.heartbeat() == REBALANCING
    b.send_join()
    assert b.join_reply().generation_id == 2


def test_a_restart_in_round_two_goes_on_with_it() -> None:
    world = World()
    a, b = Member(world, "a"), Member(world, "b")
    a.send_join()
    b.send_join()
    world.advance(6000)
    a.join_reply()
    b.join_reply()
    b.send_sync()
    world.restart()
    b.send_sync()
    assert world.is_waiting(b.token)
    a.send_sync({a.member_id: b"x", b.member_id: b"y"})
    assert (a.sync_reply().assignment, b.sync_reply().assignment) == (b"x", b"y")


def test_a_generation_that_was_announced_is_never_announced_again() -> None:
    world = World()
    a = Member(world, "a")
    a.send_join()
    world.advance(3000)
    assert a.join_reply().generation_id == 1
    world.restart()
    a.leave()
    settle(b := Member(world, "b"))
    assert b.generation == 3


# Writes that fail


def test_no_reply_leaves_before_its_rows_are_stored() -> None:
    world = World()
    a = Member(world, "a")
    world.hold_writes()
    a.send_join()
    world.advance(3000)
    assert world.is_waiting(a.token)
    world.release()
    assert a.join_reply().error_code == OK


def test_a_write_that_fails_is_an_error_to_retry_and_the_next_one_makes_up_for_it() -> None:
    world = World()
    a = Member(world, "a")
    a.send_join()
    world.advance(3000)
    a.join_reply()
    world.store_is_broken = True
    a.send_sync({a.member_id: b"mine"})
    assert a.sync_reply().error_code == 15
    assert a.heartbeat() == 15  # the group has something to say that is not stored
    world.store_is_broken = False
    world.advance(1000)
    world.restart()
    a.send_sync()
    assert a.sync_reply().assignment == b"mine"


def test_a_stable_group_needs_no_store_for_its_heartbeats() -> None:
    world = World()
    a = Member(world, "a")
    settle(a)
    world.store_is_broken = True
    writes = world.writes
    assert [a.heartbeat() for _ in range(3)] == [OK] * 3
    assert world.writes == writes


def test_a_reply_that_overtakes_a_write_carries_the_same_rows() -> None:
    world = World()
    a = Member(world, "a")
    a.send_join()
    world.advance(3000)
    a.join_reply()
    world.hold_writes()
    a.send_sync({a.member_id: b"mine"})
    token = world.send(a.sync_request())
    assert world.held is not None
    first, second = world.held
    assert set(map(repr, first.changes)) <= set(map(repr, second.changes))
    world.store_is_broken = True
    world.held = None
    world.carry_out(first)
    world.store_is_broken = False
    world.carry_out(second)
    assert world.reply(token, SyncGroupReply).assignment == b"mine"
    world.restart()
    a.send_sync()
    assert a.sync_reply().assignment == b"mine"
