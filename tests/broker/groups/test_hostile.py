"""Whatever clients send, in whatever order: the coordinator answers each request once, and never raises."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from tests.broker.groups.classic_members import write_subscription
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups import GroupConfig, Token
from tidelog.broker.coordination.groups.embedded import write_assignment
from tidelog.broker.coordination.groups.messages import (
    CommittedPartition,
    CommittedTopic,
    ConsumerGroupDescribe,
    ConsumerGroupHeartbeat,
    DeleteGroups,
    DescribeGroups,
    FetchedOffsetsTopic,
    GroupOffsetsRequest,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    Protocol,
    Request,
    SyncGroup,
    TopicPartitions,
)

T_ID = b"t".ljust(16, b".")
groups = st.sampled_from(["g", "h", ""])
# The ids that the coordinator gives out are "c-#0", "i-#1", ...: some guesses will be right.
member_ids = st.one_of(
    st.sampled_from(["", "m", "n"]), st.builds("{}-#{}".format, st.sampled_from("cij"), st.integers(0, 6))
)
instances = st.sampled_from([None, None, "i", "j"])
epochs = st.integers(-3, 5)
metadata = st.sampled_from([write_subscription(("t",)), write_subscription(("u", "nope")), b"", b"\0\1\2"])
assignments = st.sampled_from([write_assignment((("t", (0, 1)),)), b"", b"?"])
offered = st.lists(st.builds(Protocol, st.sampled_from(["range", "sticky"]), metadata), max_size=2).map(tuple)
owned = st.one_of(
    st.none(),
    st.just(()),
    st.builds(
        lambda numbers: (TopicPartitions(T_ID, tuple(numbers)),), st.sets(st.integers(0, 5), min_size=1, max_size=3)
    ),
)

requests: st.SearchStrategy[Request] = st.one_of(
    st.builds(
        JoinGroup,
        groups,
        st.sampled_from([10_000, 1]),
        st.sampled_from([-1, 0, 5_000]),
        member_ids,
        instances,
        st.sampled_from(["consumer", "consumer", "connect", ""]),
        offered,
        client_id=st.just("c"),
        member_id_required=st.booleans(),
        understands_skip_assignment=st.booleans(),
    ),
    st.builds(
        SyncGroup,
        groups,
        epochs,
        member_ids,
        instances,
        st.sampled_from([None, "consumer"]),
        st.sampled_from([None, "range"]),
        st.lists(st.tuples(member_ids, assignments), max_size=2).map(tuple),
    ),
    st.builds(Heartbeat, groups, epochs, member_ids, instances),
    st.builds(
        LeaveGroup,
        groups,
        st.lists(st.builds(LeavingMember, member_ids, instances), min_size=1, max_size=2).map(tuple),
    ),
    st.builds(
        ConsumerGroupHeartbeat,
        groups,
        member_ids,
        epochs,
        instances,
        st.sampled_from([None, "r"]),
        st.sampled_from([-1, 5_000]),
        st.sampled_from([None, (), ("t",), ("t", "u")]),
        st.sampled_from([None, "", "t|u", "("]),
        st.sampled_from([None, "range", "mine"]),
        owned,
    ),
    st.builds(
        OffsetCommit,
        groups,
        st.just((CommittedTopic("t", (CommittedPartition(0, 1), CommittedPartition(9, 1))),)),
        epochs,
        member_ids,
        instances,
    ),
    st.builds(
        lambda group, member, epoch: OffsetFetch(
            (GroupOffsetsRequest(group, (FetchedOffsetsTopic("t", (0,)),), member or None, epoch),)
        ),
        groups,
        member_ids,
        epochs,
    ),
    st.builds(lambda group: OffsetDelete(group, (("t", (0,)),)), groups),
    st.builds(lambda group: DeleteGroups((group,)), groups),
    st.builds(lambda group: DescribeGroups((group,)), groups),
    st.builds(lambda group: ConsumerGroupDescribe((group,)), groups),
    st.builds(ListGroups),
)
steps = st.one_of(
    requests,
    requests,
    requests,
    st.sampled_from([1, 3_000, 11_000, 700_000]),
    st.sampled_from(["restart", "break", "mend", "topics"]),
)


@given(st.lists(steps, max_size=50))
@settings(max_examples=100)
def test_every_request_is_answered_once_and_none_raises(steps: list[Any]) -> None:
    world = World(GroupConfig(group_max_size=3, group_consumer_max_size=3, group_initial_rebalance_delay_ms=1_000))
    waiting: list[Token] = []
    for step in steps:
        if isinstance(step, int):
            world.advance(step)
        elif step == "restart":
            world.restart()
            waiting.clear()
        elif step == "topics":
            world.topics.create("u", len(list(world.topics.names())) + 5)
            world.coordinator.topics_changed()
        elif isinstance(step, str):
            world.store_is_broken = step == "break"
        else:
            token = world.send(step)
            if isinstance(step, JoinGroup | SyncGroup):
                waiting.append(token)
            else:
                assert not world.is_waiting(token)
    world.store_is_broken = False
    world.advance(400_000)  # nobody waits longer than a session, a round, and the first join of a newcomer
    assert not [token for token in waiting if world.is_waiting(token)]
