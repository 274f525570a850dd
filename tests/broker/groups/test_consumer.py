"""The consumer rebalance protocol, as transcripts."""

import pytest

from tests.broker.groups.consumer_members import Consumer, converge
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups import GroupConfig, Pace
from tidelog.broker.coordination.groups.messages import (
    ConsumerGroupDescribe,
    ConsumerGroupDescribeReply,
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    DescribedConsumerGroup,
    FetchedOffsetsTopic,
    GroupOffsetsRequest,
    ListGroups,
    ListGroupsReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    TopicPartitions,
)

OK, UNKNOWN, FENCED_EPOCH, STALE, INVALID = 0, 25, 110, 113, 42
FENCED_INSTANCE, UNRELEASED = 82, 111
SESSION_MS = 45_000


def describe(world: World, group: str = "g") -> DescribedConsumerGroup:
    return world.ask(ConsumerGroupDescribe((group,)), ConsumerGroupDescribeReply).groups[0]


def of(topic: str, *partitions: int) -> set[tuple[str, int]]:
    return {(topic, partition) for partition in partitions}


# Joining and sharing


def test_the_first_member_gets_everything_with_its_first_heartbeat() -> None:
    world = World()
    a = Consumer(world, "a")
    assert a.beat() == OK
    assert (a.epoch, a.owned) == (1, of("t", 0, 1, 2, 3))
    assert describe(world).group_state == "Stable"


def test_heartbeats_are_asked_for_more_often_while_there_is_something_to_learn() -> None:
    world = World()
    a, b = Consumer(world, "a", lingers=True), Consumer(world, "b")

    def told(*consumers: Consumer) -> list[int]:
        for consumer in consumers:
            assert consumer.beat() == OK
        return [consumer.last.heartbeat_interval_ms for consumer in consumers]

    assert told(a) == [500]  # others may be about to come
    world.advance(4_999)
    assert told(a) == [500]
    world.advance(1)
    assert told(a) == [5_000]
    assert told(b, a) == [500, 500]
    world.advance(5_000)
    assert told(a, b) == [500, 500]  # it has not given up what is the other's, who waits for it
    a.settle()
    converge(a, b)
    assert told(a, b) == [5_000, 5_000]


@pytest.mark.parametrize(("usual_ms", "told_ms"), [(30_000, 3_000), (500, 100), (60, 60)])
def test_more_often_is_never_too_often(usual_ms: int, told_ms: int) -> None:
    world = World()
    world.coordinator.configure("g", Pace(90_000, usual_ms))
    a = Consumer(world, "a")
    assert a.beat() == OK
    assert a.last.heartbeat_interval_ms == told_ms


def test_a_member_without_an_id_is_given_one() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat(member_id="")
    assert a.last.member_id == "#0"


def test_a_partition_goes_to_its_new_owner_only_after_the_old_one_gave_it_up() -> None:
    world = World()
    a, b = Consumer(world, "a", lingers=True), Consumer(world, "b")
    a.beat()
    assert b.beat() == OK
    assert (b.epoch, b.owned) == (2, set())  # in the target's epoch already, but its share is not free
    a.beat()
    assert (a.epoch, a.told) == (1, of("t", 0, 1))  # told to give two up, and kept in its epoch until it has
    b.beat()
    assert b.owned == set()
    a.beat(topic_partitions=a.reported())  # it still owns all four
    assert a.epoch == 1
    b.beat()
    assert b.owned == set()
    a.settle()
    a.beat()
    assert a.epoch == 2
    b.beat()
    assert b.owned == of("t", 2, 3)
    assert describe(world).group_state == "Stable"


def test_states_of_a_group() -> None:
    world = World()
    a, b = Consumer(world, "a"), Consumer(world, "b")
    converge(a, b)
    assert describe(world).group_state == "Stable"
    b.leave()
    assert describe(world).group_state == "Assigning"
    b.beat()
    assert describe(world).group_state == "Reconciling"
    a.leave()
    b.leave()
    assert describe(world).group_state == "Empty"


def test_many_members_share_evenly_and_keep_what_they_have() -> None:
    world = World(t=12)
    members = [Consumer(world, f"m{number}") for number in range(4)]
    converge(*members[:3])
    before = {member.name: set(member.owned) for member in members}
    converge(*members)
    assert [len(member.owned) for member in members] == [3, 3, 3, 3]
    assert set().union(*(member.owned for member in members)) == of("t", *range(12))
    assert all(member.owned <= before[member.name] for member in members[:3])


def test_the_assignment_is_told_again_only_to_those_who_ask_for_it() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()
    a.beat()
    assert a.last.assignment is None
    a.beat(rebalance_timeout_ms=60_000, subscribed_topic_names=("t",), topic_partitions=a.reported())
    assert a.last.assignment == (TopicPartitions(b"t".ljust(16, b"."), (0, 1, 2, 3)),)


def test_members_choose_the_assignor_by_majority() -> None:
    world = World(t=3, u=3)
    a = Consumer(world, "a", topics=("t", "u"), assignor="range")
    b = Consumer(world, "b", topics=("t", "u"), assignor="range")
    c = Consumer(world, "c", topics=("t", "u"), assignor="uniform")
    converge(a, b, c)
    assert describe(world).assignor_name == "range"
    assert a.owned == of("t", 0) | of("u", 0)
    assert c.owned == of("t", 2) | of("u", 2)


# Subscriptions and topics


def test_a_changed_subscription_changes_the_assignment() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()
    a.subscribe("u")
    converge(a)
    assert (a.epoch, a.owned) == (2, of("u", 0, 1, 2, 3))


def test_new_topics_and_partitions_are_assigned() -> None:
    world = World(t=1)
    a = Consumer(world, "a", topics=("t", "later"))
    a.beat()
    assert a.owned == of("t", 0)
    world.topics.create("later", 2)
    world.coordinator.topics_changed()
    a.beat()
    assert (a.epoch, a.owned) == (2, of("t", 0) | of("later", 0, 1))
    world.topics.create("t", 3)
    world.coordinator.topics_changed()
    a.beat()
    assert a.owned == of("t", 0, 1, 2) | of("later", 0, 1)


def test_topics_of_others_do_not_disturb() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()
    world.topics.create("other", 1)
    world.coordinator.topics_changed()
    a.beat()
    assert a.epoch == 1


def test_partitions_of_a_deleted_topic_are_taken_away() -> None:
    world = World()
    a = Consumer(world, "a", topics=("t", "u"))
    a.beat()
    world.topics.delete("t")
    world.coordinator.topics_changed()
    converge(a)
    assert a.owned == of("u", 0, 1, 2, 3)


def test_topics_by_pattern() -> None:
    world = World(orders_eu=1, orders_us=1, other=1)
    a = Consumer(world, "a", topics=None, pattern="orders_.*")
    a.beat()
    assert a.owned == of("orders_eu", 0) | of("orders_us", 0)
    world.topics.create("orders_asia", 1)
    world.topics.create("all_orders_", 1)
    world.coordinator.topics_changed()
    a.beat()
    assert ("orders_asia", 0) in a.owned
    assert ("all_orders_", 0) not in a.owned
    assert describe(world).members[0].subscribed_topic_regex == "orders_.*"
    a.beat(subscribed_topic_regex="", subscribed_topic_names=("other",))
    converge(a)
    assert a.owned == of("other", 0)


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "(a)\\1", "x" * 10_001])
def test_patterns_that_are_not_re2_are_refused(pattern: str) -> None:
    world = World()
    assert Consumer(world, "a", pattern=pattern).beat() == 128
    assert world.ask(ListGroups(), ListGroupsReply).groups == ()


def test_a_hostile_pattern_does_not_stop_the_broker() -> None:
    world = World()
    world.topics.create("a" * 200, 1)
    assert Consumer(world, "a", pattern="(a*)*(a*)*(a|a)*b").beat() == OK


# Leaving, expiring, fencing


def test_who_leaves_makes_room_for_the_others() -> None:
    world = World()
    a, b = Consumer(world, "a"), Consumer(world, "b")
    converge(a, b)
    assert b.leave() == OK
    assert (b.last.member_epoch, b.beat(member_epoch=2)) == (-1, UNKNOWN)
    converge(a)
    assert len(a.owned) == 4


def test_a_silent_member_is_removed_after_the_session_timeout() -> None:
    world = World()
    a, b = Consumer(world, "a"), Consumer(world, "b")
    converge(a, b)
    for _ in range(4):
        world.advance(SESSION_MS - 1)
        assert [a.beat(), b.beat()] == [OK, OK]
    world.advance(SESSION_MS - 1)
    a.beat()
    world.advance(1)
    converge(a)
    assert (len(a.owned), b.beat()) == (4, UNKNOWN)


def test_a_member_that_does_not_give_up_its_partitions_is_removed() -> None:
    world = World()
    a, b = Consumer(world, "a", lingers=True, rebalance_ms=70_000), Consumer(world, "b")
    a.beat()
    b.beat()
    a.beat()
    for _ in range(7):
        world.advance(9_999)
        assert a.beat(topic_partitions=a.reported()) == OK
        assert b.beat() == OK
    world.advance(10)
    assert a.beat() == UNKNOWN
    converge(b)
    assert len(b.owned) == 4


def test_a_group_may_have_a_pace_of_its_own() -> None:
    world = World()
    a, b = Consumer(world, "a"), Consumer(world, "b", group="h")
    a.beat()
    b.beat()
    world.advance(5_000)
    world.coordinator.configure("g", Pace(90_000, 30_000))
    assert [a.beat(), b.beat()] == [OK, OK]
    assert (a.last.heartbeat_interval_ms, b.last.heartbeat_interval_ms) == (30_000, 5_000)
    world.advance(89_999)
    assert [a.beat(), b.beat()] == [OK, UNKNOWN]
    world.coordinator.configure("g", None)
    a.beat()
    assert a.last.heartbeat_interval_ms == 5_000


@pytest.mark.parametrize("epoch", [1, 5])
def test_a_member_in_another_epoch_is_fenced(epoch: int) -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()
    a.subscribe("u")
    converge(a)
    a.subscribe("t")
    converge(a)
    assert a.beat(member_epoch=epoch) == FENCED_EPOCH


def test_a_member_that_lost_the_reply_which_raised_its_epoch_goes_on() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()
    world.topics.create("t", 5)
    world.coordinator.topics_changed()
    world.ask(a.request(), ConsumerGroupHeartbeatReply)  # and the reply is lost
    assert a.epoch == 1
    assert a.beat(topic_partitions=a.reported(), rebalance_timeout_ms=1, subscribed_topic_names=("t",)) == OK
    assert (a.epoch, len(a.owned)) == (2, 5)


def test_a_member_that_starts_afresh_gets_its_share_again() -> None:
    world = World()
    a, b = Consumer(world, "a"), Consumer(world, "b")
    converge(a, b)
    before = set(a.owned)
    a.epoch, a.owned = 0, set()
    assert a.beat() == OK
    assert a.owned == before


def test_a_full_group_takes_no_more_members() -> None:
    world = World(GroupConfig(group_consumer_max_size=1))
    a, b = Consumer(world, "a"), Consumer(world, "b")
    assert [a.beat(), b.beat(), a.beat()] == [OK, 81, OK]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": ""}, INVALID),
        ({"member_epoch": -3}, INVALID),
        ({"instance_id": ""}, INVALID),
        ({"rack_id": ""}, INVALID),
        ({"rebalance_timeout_ms": -1}, INVALID),
        ({"topic_partitions": None}, INVALID),
        ({"topic_partitions": (TopicPartitions(bytes(16), (0,)),)}, INVALID),
        ({"subscribed_topic_names": None}, INVALID),
        ({"subscribed_topic_names": ()}, INVALID),
        ({"server_assignor": "mine"}, 112),
        ({"member_id": "", "member_epoch": -1}, INVALID),
        ({"member_epoch": -2}, INVALID),
        ({"member_epoch": 1}, 69),
        ({"member_epoch": -1}, 69),
    ],
)
def test_what_a_heartbeat_must_say(changes: dict[str, object], code: int) -> None:
    world = World()
    a = Consumer(world, "a")
    assert a.beat(**changes) == code
    assert world.ask(ListGroups(), ListGroupsReply).groups == ()
    assert world.rows == {}


# Static members


def test_a_static_member_that_went_away_for_a_while_gets_its_partitions_back() -> None:
    world = World()
    a, b = Consumer(world, "a", instance="i"), Consumer(world, "b")
    converge(a, b)
    owned, epoch = set(a.owned), describe(world).group_epoch
    assert a.leave(-2) == OK
    assert a.last.member_epoch == -2
    b.beat()
    again = Consumer(world, "again", instance="i")
    assert again.beat() == OK
    assert (again.owned, describe(world).group_epoch) == (owned, epoch)
    assert a.beat(member_epoch=epoch) == 82


def test_a_static_member_that_stays_away_loses_its_place_with_its_session() -> None:
    world = World()
    a, b = Consumer(world, "a", instance="i"), Consumer(world, "b")
    converge(a, b)
    a.leave(-2)
    world.advance(SESSION_MS - 1)
    b.beat()
    assert len(b.owned) == 2
    world.advance(1)
    converge(b)
    assert len(b.owned) == 4


def test_an_instance_id_in_use_is_not_given_away() -> None:
    world = World()
    a, b = Consumer(world, "a", instance="i"), Consumer(world, "b", instance="i")
    a.beat()
    assert b.beat() == 111
    a.leave(-1)
    assert b.beat() == OK


def test_after_a_restart_a_successor_takes_the_place_of_a_static_member_that_is_silent() -> None:
    """It may have ended while the coordinator was away, and could not say so."""
    world = World()
    a, b = Consumer(world, "a", instance="i"), Consumer(world, "b")
    converge(a, b)
    owned, epoch = set(a.owned), describe(world).group_epoch
    world.restart()
    again = Consumer(world, "again", instance="i")
    assert again.beat() == OK
    assert (again.owned, describe(world).group_epoch) == (owned, epoch)
    assert a.beat() == FENCED_INSTANCE, "should it still run"
    assert world.commit("g", member=a.member_id, generation=a.epoch) == UNKNOWN
    assert Consumer(world, "third", instance="i").beat() == UNRELEASED
    assert b.beat() == OK


@pytest.mark.parametrize("speaks", ["heartbeat", "full heartbeat", "commit"])
def test_after_a_restart_a_static_member_that_was_heard_keeps_its_instance_id(speaks: str) -> None:
    world = World()
    a = Consumer(world, "a", instance="i")
    converge(a)
    world.restart()
    if speaks == "commit":
        assert world.commit("g", member=a.member_id, generation=a.epoch) == OK
    else:
        assert a.beat(**({} if speaks == "heartbeat" else {"topic_partitions": a.reported()})) == OK
    assert Consumer(world, "again", instance="i").beat() == UNRELEASED
    assert a.beat() == OK


def test_a_hundred_members_half_of_them_static_go_on_after_a_restart() -> None:
    """Those that run, and the successors of those that do not."""
    world = World(t=100)
    members = [Consumer(world, f"m{n}", instance=f"i{n}" if n % 2 else None) for n in range(100)]
    converge(*members)
    owned = [set(member.owned) for member in members]
    assert sorted(map(len, owned)) == [1] * 100
    world.restart()
    for n in range(1, 50, 2):
        members[n] = Consumer(world, f"successor{n}", instance=f"i{n}")
    converge(*members)
    assert [member.owned for member in members] == owned


def test_nothing_is_stored_again_because_of_a_restart() -> None:
    world = World()
    a, b = Consumer(world, "a", instance="i"), Consumer(world, "b")
    converge(a, b)
    before = world.writes
    world.restart()
    converge(a, b)
    assert world.writes == before


# Offsets


def test_commits_and_fetches_name_the_member_and_its_epoch() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()

    def fetch(member: str | None, epoch: int) -> int:
        wanted = GroupOffsetsRequest("g", (FetchedOffsetsTopic("t", (0,)),), member, epoch)
        return world.ask(OffsetFetch((wanted,)), OffsetFetchReply).groups[0].error_code

    assert world.commit("g", offset=5, member=a.member_id, generation=1) == OK
    assert world.commit("g", offset=5, member=a.member_id, generation=2) == STALE
    assert world.commit("g", offset=5, member="b", generation=1) == UNKNOWN
    assert world.commit("g", offset=5) == UNKNOWN
    assert [fetch(None, -1), fetch(a.member_id, 1), fetch(a.member_id, 0), fetch("b", 1)] == [OK, OK, STALE, UNKNOWN]
    a.leave()
    assert world.commit("g", offset=6) == OK


def test_offsets_of_subscribed_topics_cannot_be_deleted() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()
    for topic in ("t", "u"):
        world.commit("g", topic, offset=5, member=a.member_id, generation=1)
    request = OffsetDelete("g", (("t", (0,)), ("u", (0,))))
    codes = [topic.partitions[0].error_code for topic in world.ask(request, OffsetDeleteReply).topics]
    assert codes == [86, OK]


# What operators see


def test_a_group_is_described_with_what_members_own_and_should_own() -> None:
    world = World()
    a, b = Consumer(world, "a", lingers=True), Consumer(world, "b", instance="i")
    a.beat(rack_id="r1")
    b.beat()
    group = describe(world)
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
    first, second = group.members
    assert (first.member_id, first.rack_id, first.client_id, first.member_type) == ("g/a", "r1", "a", 1)
    assert [len(topic.partitions) for topic in first.assignment] == [4]
    assert [(topic.topic_name, len(topic.partitions)) for topic in first.target_assignment] == [("t", 2)]
    assert (second.instance_id, second.assignment) == ("i", ())
    assert second.subscribed_topic_names == ("t",)
    assert describe(world, "nope").error_code == 69
    listed = world.ask(ListGroups(types_filter=("consumer",)), ListGroupsReply).groups
    assert [(each.group_id, each.group_type, each.group_state) for each in listed] == [
        ("g", "Consumer", "Reconciling")
    ]


# Restarts and failing writes


def test_after_a_restart_heartbeats_go_on_as_if_nothing_had_happened() -> None:
    world = World()
    a, b = Consumer(world, "a"), Consumer(world, "b", instance="i", topics=None, pattern="t")
    converge(a, b)
    before = describe(world)
    world.advance(SESSION_MS - 1)
    world.restart()
    world.advance(SESSION_MS - 1)
    assert [a.beat(), b.beat()] == [OK, OK]
    assert describe(world) == before
    assert a.last.assignment is None


def test_a_restart_in_the_middle_of_a_handover_keeps_partitions_with_their_owner() -> None:
    world = World()
    a, b = Consumer(world, "a", lingers=True), Consumer(world, "b")
    a.beat()
    b.beat()
    a.beat()
    world.restart()
    b.beat()
    assert b.owned == set()
    a.settle()
    a.beat()
    b.beat()
    assert b.owned == of("t", 2, 3)


def test_topics_that_changed_while_the_broker_was_away_are_noticed() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()
    world.topics.create("t", 6)
    world.restart()
    a.beat()
    assert len(a.owned) == 6


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    world = World()
    a = Consumer(world, "a")
    a.beat()
    a.beat()
    writes = world.writes
    for _ in range(3):
        a.beat()
    assert world.writes == writes


def test_nobody_hears_of_an_epoch_that_is_not_stored() -> None:
    world = World()
    a = Consumer(world, "a")
    world.store_is_broken = True
    assert a.beat() == 15
    world.store_is_broken = False
    assert a.beat() == OK
    assert (a.epoch, len(a.owned)) == (1, 4)
    world.restart()
    assert a.beat() == OK


def test_the_request_type_has_the_defaults_of_a_heartbeat_without_news() -> None:
    request = ConsumerGroupHeartbeat("g", "m", 3)
    assert (request.subscribed_topic_names, request.topic_partitions, request.rebalance_timeout_ms) == (
        None,
        None,
        -1,
    )
