"""Groups that change between the classic and the consumer protocol while their members go on."""

from tests.broker.groups.classic_members import SESSION_MS, Member, protocols, settle, write_subscription
from tests.broker.groups.consumer_members import Consumer
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups import GroupConfig
from tidelog.broker.coordination.groups.embedded import read_assignment, write_assignment
from tidelog.broker.coordination.groups.messages import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeReply,
    LeaveGroup,
    LeaveGroupReply,
    LeavingMember,
    ListGroups,
    ListGroupsReply,
    Protocol,
)

OK, UNKNOWN, REBALANCING = 0, 25, 27


def kind(world: World) -> tuple[str, str]:
    group = world.ask(ListGroups(), ListGroupsReply).groups[0]
    return group.group_type, group.group_state


def owns(member: Member) -> set[int]:
    return {partition for _, partitions in read_assignment(member.assignment).partitions for partition in partitions}


def offer(*owned: int) -> tuple[Protocol, ...]:
    """A cooperative member that says what it owns."""
    return (Protocol("cooperative-sticky", write_subscription(("t",), (("t", owned),) if owned else ())),)


def settle_classic(world: World, shares: dict[str, tuple[int, ...]]) -> list[Member]:
    """A stable classic group in which each member owns these partitions of `t`."""
    members = [Member(world, name, offers=offer()) for name in shares]
    for member in members:
        member.send_join()
    world.advance(6000)
    for member in members:
        member.join_reply()
    assignments = {m.member_id: write_assignment((("t", shares[m.name]),)) for m in members}
    for member in members:
        member.send_sync(assignments if member.leads else None)
    for member in members:
        member.sync_reply()
        member.offers = offer(*shares[member.name])
    return members


def catch_up(member: Member) -> None:
    """What a cooperative client does when its heartbeat is told of a rebalance: join, sync, give up, join again."""
    for _ in range(5):
        if member.heartbeat() == OK:
            return
        member.send_join()
        assert member.join_reply().error_code == OK
        member.send_sync()
        assert member.sync_reply().error_code == OK
        member.offers = offer(*sorted(owns(member)))
    raise AssertionError("it does not settle")


def test_the_first_consumer_protocol_member_upgrades_the_group_and_nobody_stops() -> None:
    world = World()
    a, b = settle_classic(world, {"a": (0, 1), "b": (2, 3)})
    c = Consumer(world, "c")
    assert c.beat() == OK
    assert (c.epoch, c.owned, kind(world)) == (2, set(), ("Consumer", "Reconciling"))
    assert [a.commit(1), b.commit(2)] == [OK, OK]
    catch_up(a)
    catch_up(b)
    c.beat()
    c.beat()
    assert kind(world) == ("Consumer", "Stable")
    shares = [owns(a), owns(b), {partition for _, partition in c.owned}]
    assert sorted(map(len, shares)) == [1, 1, 2]
    assert set().union(*shares) == {0, 1, 2, 3}
    assert a.joined.leader == ""
    members = world.ask(ConsumerGroupDescribe(("g",)), ConsumerGroupDescribeReply).groups[0].members
    assert sorted(member.member_type for member in members) == [0, 0, 1]


def test_members_that_wait_in_a_classic_rebalance_are_told_to_rejoin_the_upgraded_group() -> None:
    world = World()
    a, b = settle_classic(world, {"a": (0, 1), "b": (2, 3)})
    late = Member(world, "late", offers=offer())
    late.send_join()
    a.send_join()
    Consumer(world, "c").beat()
    assert [a.join_reply().error_code, late.join_reply().error_code] == [REBALANCING, REBALANCING]
    assert b.heartbeat() == REBALANCING


def test_a_new_classic_member_joins_an_upgraded_group() -> None:
    world = World()
    c = Consumer(world, "c")
    c.beat()
    a = Member(world, "a", offers=offer())
    a.send_join()
    assert a.join_reply().error_code == OK
    a.send_sync()
    assert a.sync_reply().error_code == OK
    assert owns(a) == set()
    assert a.heartbeat() == OK  # what it lacks is still with the other
    c.beat()
    c.beat()
    assert a.heartbeat() == REBALANCING  # now it can have it
    catch_up(a)
    assert owns(a) == {2, 3}


def test_when_the_last_consumer_protocol_member_leaves_the_group_is_classic_again() -> None:
    world = World()
    a, b = settle_classic(world, {"a": (0, 1), "b": (2, 3)})
    c = Consumer(world, "c")
    c.beat()
    catch_up(a)
    catch_up(b)
    c.beat()
    c.leave()
    assert kind(world) == ("Classic", "PreparingRebalance")
    assert a.heartbeat() in (REBALANCING, 22)
    world.restart()
    assert kind(world) == ("Classic", "PreparingRebalance")
    settle(a, b)
    assert kind(world) == ("Classic", "Stable")
    assert a.generation > 2


def test_when_the_last_consumer_protocol_member_expires_the_group_is_classic_again() -> None:
    world = World()
    a, _ = settle_classic(world, {"a": (0, 1), "b": (2, 3)})
    Consumer(world, "c").beat()
    for _ in range(6):
        world.advance(SESSION_MS - 1)
        if a.heartbeat() != OK:
            a.send_join()
            a.join_reply()
            a.send_sync()
    assert kind(world)[0] == "Classic"


def test_a_classic_member_that_is_silent_leaves_an_upgraded_group() -> None:
    world = World()
    settle_classic(world, {"a": (0, 1), "b": (2, 3)})
    c = Consumer(world, "c")
    c.beat()
    world.advance(SESSION_MS)
    c.beat()
    assert len(c.owned) == 4


def test_a_classic_member_that_does_not_rejoin_in_time_leaves_an_upgraded_group() -> None:
    world = World()
    a, _ = settle_classic(world, {"a": (0, 1), "b": (2, 3)})
    c = Consumer(world, "c")
    c.beat()
    codes = []
    for _ in range(8):
        world.advance(SESSION_MS - 1)
        codes.append(a.heartbeat())
        c.beat()
    assert codes[0] == REBALANCING
    assert codes[-1] == UNKNOWN


def test_a_classic_member_that_was_removed_gives_up_everything_before_it_is_let_in_again() -> None:
    world = World()
    a, _ = settle_classic(world, {"a": (0, 1), "b": (2, 3)})
    c = Consumer(world, "c")
    c.beat()
    world.advance(SESSION_MS)
    c.beat()
    assert len(c.owned) == 4
    a.send_join()
    assert a.join_reply().error_code == UNKNOWN
    a.member_id, a.offers = "", offer()
    a.send_join()
    assert a.join_reply().error_code == OK


def test_classic_members_leave_an_upgraded_group_by_id_or_instance() -> None:
    world = World()
    c = Consumer(world, "c")
    c.beat()
    a, s = Member(world, "a", offers=offer()), Member(world, "s", instance="i", offers=offer())
    for member in (a, s):
        member.send_join()
        member.join_reply()
    leaving = (
        LeavingMember(a.member_id),
        LeavingMember("", "i"),
        LeavingMember(c.member_id),
        LeavingMember("", "nobody"),
    )
    left = world.ask(LeaveGroup("g", leaving), LeaveGroupReply).members
    assert [member.error_code for member in left] == [OK, OK, UNKNOWN, UNKNOWN]
    c.beat()
    assert len(c.owned) == 4


def test_a_static_member_changes_to_the_consumer_protocol_and_back() -> None:
    world = World()
    a = Member(world, "a", instance="i", offers=offer())
    a.send_join()
    world.advance(3000)
    a.join_reply()
    a.send_sync({a.member_id: write_assignment((("t", (0, 1, 2, 3)),))})
    upgraded = Consumer(world, "a2", instance="i")
    assert upgraded.beat() == OK
    assert kind(world) == ("Consumer", "Stable")
    assert a.heartbeat() == 82
    back = Member(world, "a3", instance="i", offers=offer())
    back.send_join()
    assert back.join_reply().error_code == OK
    assert kind(world)[0] == "Classic"
    assert upgraded.beat() == 69


def test_an_empty_group_takes_either_protocol_and_keeps_its_offsets_and_numbers() -> None:
    world = World()
    a = Member(world, "a")
    settle(a)
    a.commit(7)
    a.leave()
    c = Consumer(world, "c")
    assert c.beat() == OK
    assert c.epoch == 3
    assert world.committed("g").offset == 7
    c.leave()
    settle(b := Member(world, "b"))
    assert b.generation > c.last.member_epoch
    assert world.committed("g").offset == 7
    world.restart()
    assert b.heartbeat() == OK


def test_groups_that_are_not_of_consumers_are_not_upgraded() -> None:
    for offers, protocol_type in ((protocols("x"), "connect"), ((Protocol("x", b"?"),), "consumer")):
        world = World()
        a = Member(world, "a", protocol_type=protocol_type, offers=offers)
        a.send_join()
        world.advance(3000)
        a.join_reply()
        a.send_sync({})
        assert Consumer(world, "c").beat() == 69
        assert a.heartbeat() == OK


def test_groups_with_an_assignor_of_their_own_are_not_upgraded() -> None:
    world = World()
    a = Member(world, "a")
    a.send_join()
    world.advance(3000)
    a.join_reply()
    a.send_sync({a.member_id: write_assignment((("t", (0,)),))[:-4] + b"\0\0\0\1!"})
    assert Consumer(world, "c").beat() == 69
    assert a.heartbeat() == OK


def test_an_operator_may_forbid_either_way() -> None:
    world = World(GroupConfig(group_consumer_migration_policy="downgrade"))
    settle_classic(world, {"a": (0, 1, 2, 3)})
    assert Consumer(world, "c").beat() == 69
    world = World(GroupConfig(group_consumer_migration_policy="upgrade"))
    settle_classic(world, {"a": (0, 1, 2, 3)})
    c = Consumer(world, "c")
    assert [c.beat(), c.leave()] == [OK, OK]
    assert kind(world)[0] == "Consumer"


def test_a_group_too_large_is_not_upgraded() -> None:
    world = World(GroupConfig(group_consumer_max_size=1))
    settle(Member(world, "a"))
    assert Consumer(world, "c").beat() == 69


def test_classic_requests_of_consumer_protocol_members_are_refused() -> None:
    world = World()
    c = Consumer(world, "c")
    c.beat()
    impostor = Member(world, "x", member_id=c.member_id, generation=1)
    assert impostor.heartbeat() == UNKNOWN
    impostor.send_sync()
    assert impostor.sync_reply().error_code == UNKNOWN
    stranger = Member(world, "y", protocol_type="connect")
    stranger.send_join()
    assert stranger.join_reply().error_code == 23


def test_an_upgraded_group_survives_a_restart_with_both_kinds_of_members() -> None:
    world = World()
    a, b = settle_classic(world, {"a": (0, 1), "b": (2, 3)})
    c = Consumer(world, "c")
    c.beat()
    catch_up(a)
    world.restart()
    catch_up(b)
    c.beat()
    c.beat()
    world.restart()
    assert [a.heartbeat(), b.heartbeat(), c.beat()] == [OK, OK, OK]
    assert kind(world) == ("Consumer", "Stable")
