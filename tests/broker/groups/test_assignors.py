"""Assignors: complete, balanced, sticky."""

from collections.abc import Mapping, Set

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tidelog.broker.coordination.groups.assignors import (
    ASSIGNORS,
    Partition,
    Subscriber,
    Target,
    assign_by_range,
    assign_uniformly,
)

TOPICS = [bytes([letter]) * 16 for letter in b"abcd"]
T, U = TOPICS[:2]
NOBODY_OWNS: dict[str, Set[Partition]] = {}


def subscribers(**topics: Set[bytes]) -> dict[str, Subscriber]:
    return {member: Subscriber(None, frozenset(ids)) for member, ids in topics.items()}


counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12))
alike = st.builds(
    lambda names, ids: {name: Subscriber(None, frozenset(ids)) for name in names},
    st.sets(st.sampled_from("klmnopq"), min_size=1),
    st.sets(st.sampled_from(TOPICS)),
)
mixed = st.dictionaries(
    st.sampled_from("klmnopq"),
    st.builds(lambda ids: Subscriber(None, frozenset(ids)), st.sets(st.sampled_from(TOPICS))),
    min_size=1,
)


@st.composite
def ownership(draw: st.DrawFn) -> dict[str, Set[Partition]]:
    """Who owns what before: not necessarily members, subscribed, or partitions that exist; but each has one owner."""
    owners = draw(
        st.dictionaries(st.tuples(st.sampled_from(TOPICS), st.integers(0, 14)), st.sampled_from("klmnopqrs"))
    )
    owned: dict[str, set[Partition]] = {}
    for partition, owner in owners.items():
        owned.setdefault(owner, set()).add(partition)
    return {owner: frozenset(partitions) for owner, partitions in owned.items()}


def check_complete(target: Target, members: Mapping[str, Subscriber], numbers: Mapping[bytes, int]) -> None:
    assert target.keys() == members.keys()
    owned = [(member, partition) for member, share in target.items() for partition in share]
    assert all(topic in members[member].topic_ids for member, (topic, _) in owned)
    wanted = set().union(*(subscriber.topic_ids for subscriber in members.values()))
    assert sorted(partition for _, partition in owned) == sorted(
        (topic, number) for topic in wanted if topic in numbers for number in range(numbers[topic])
    )


@given(st.sampled_from(sorted(ASSIGNORS)), st.one_of(alike, mixed), counts, ownership())
@settings(max_examples=80)
def test_every_partition_of_a_subscribed_topic_has_exactly_one_owner(
    name: str, members: dict[str, Subscriber], numbers: dict[bytes, int], before: dict[str, Set[Partition]]
) -> None:
    check_complete(ASSIGNORS[name](members, numbers, before), members, numbers)


@given(st.one_of(alike, mixed), counts, ownership())
@settings(max_examples=80)
def test_uniform_leaves_no_partition_that_would_better_be_moved(
    members: dict[str, Subscriber], numbers: dict[bytes, int], before: dict[str, Set[Partition]]
) -> None:
    target = assign_uniformly(members, numbers, before)
    for share in target.values():
        for topic, _ in share:
            for taker, subscriber in members.items():
                if topic in subscriber.topic_ids:
                    assert len(share) - len(target[taker]) < 2


@given(st.sampled_from(sorted(ASSIGNORS)), st.one_of(alike, mixed), counts, ownership())
@settings(max_examples=60)
def test_a_settled_group_stays_as_it_is(
    name: str, members: dict[str, Subscriber], numbers: dict[bytes, int], before: dict[str, Set[Partition]]
) -> None:
    target = ASSIGNORS[name](members, numbers, before)
    assert ASSIGNORS[name](members, numbers, target) == target


@given(alike, counts, ownership())
@settings(max_examples=60)
def test_uniform_moves_no_more_than_it_must_when_somebody_comes(
    members: dict[str, Subscriber], numbers: dict[bytes, int], before: dict[str, Set[Partition]]
) -> None:
    target = assign_uniformly(members, numbers, before)
    topics = next(iter(members.values())).topic_ids
    after = assign_uniformly({**members, "z": Subscriber(None, topics)}, numbers, target)
    assert all(after[member] <= target[member] for member in members)


@given(alike, counts, ownership())
@settings(max_examples=60)
def test_uniform_moves_no_more_than_it_must_when_somebody_goes(
    members: dict[str, Subscriber], numbers: dict[bytes, int], before: dict[str, Set[Partition]]
) -> None:
    target = assign_uniformly(members, numbers, before)
    rest = dict(sorted(members.items())[1:])
    after = assign_uniformly(rest, numbers, target)
    assert all(after[member] >= target[member] for member in rest)


def test_range_gives_contiguous_ranges_that_are_the_same_for_topics_of_the_same_size() -> None:
    target = assign_by_range(subscribers(a={T, U}, b={T, U}), {T: 5, U: 5}, NOBODY_OWNS)
    assert target["a"] == {(topic, number) for topic in (T, U) for number in (0, 1, 2)}
    assert target["b"] == {(topic, number) for topic in (T, U) for number in (3, 4)}


def test_range_orders_static_members_by_their_instance_ids() -> None:
    members = {"x": Subscriber("2", frozenset({T})), "y": Subscriber("1", frozenset({T}))}
    assert assign_by_range(members, {T: 2}, NOBODY_OWNS) == {"y": {(T, 0)}, "x": {(T, 1)}}


def test_uniform_balances_over_topics_not_within_each() -> None:
    target = assign_uniformly(subscribers(a={T, U}, b={T, U}), {T: 1, U: 1}, NOBODY_OWNS)
    assert sorted(map(len, target.values())) == [1, 1]


@pytest.mark.parametrize("assignor", ASSIGNORS.values())
def test_nobody_and_nothing(assignor: object) -> None:
    assert callable(assignor)
    assert assignor({}, {T: 3}, NOBODY_OWNS) == {}
    assert assignor(subscribers(a={T}), {}, NOBODY_OWNS) == {"a": frozenset()}
