from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.membership.assignment import MOST_AT_ONCE, Known, Partition, Step, Thing, fair_share, next_step
from tidelog.metadata.registry import CONTROLLER, NOBODY, SHARD_LEASES

ANYONE = st.integers(NOBODY, 6)


def topic(number: int) -> bytes:
    return number.to_bytes(16, "big")


def partitions(count: int, of: int = 0) -> list[Partition]:
    return [(topic(of), number) for number in range(count)]


def taken(known: Known, step: Step) -> Known:
    leases, leaders = dict(known.leases), dict(known.leaders)
    leases.update(step.leases)
    leaders.update({(topic_id, number): broker for topic_id, number, broker in step.leaders})
    return known._replace(leases=leases, leaders=leaders)


def settled(known: Known) -> tuple[Known, list[Step]]:
    steps = []
    while not (step := next_step(known)).is_empty:
        assert step == next_step(known)  # it depends on nothing else
        steps.append(step)
        assert len(steps) < 10_000
        known = taken(known, step)
    return known, steps


def counts(owners: Mapping[Thing, int] | Mapping[str, int] | Mapping[Partition, int], known: Known) -> dict[int, int]:
    has = Counter(owners.values())
    return {broker: has[broker] for broker in known.brokers}


def shards(known: Known) -> dict[str, int]:
    return {scope: known.leases.get(scope, NOBODY) for scope in SHARD_LEASES}


@st.composite
def situations(draw: st.DrawFn, *, wishes: bool = False) -> Known:
    up = draw(st.sets(st.integers(0, 6), max_size=6))
    draining = draw(st.sets(st.sampled_from(sorted(up)))) if up else set()
    sizes = draw(st.lists(st.integers(1, 40), max_size=5))
    leaders = {one: draw(ANYONE) for number, size in enumerate(sizes) for one in partitions(size, number)}
    leases = draw(st.dictionaries(st.sampled_from((CONTROLLER, *SHARD_LEASES)), ANYONE))
    things: list[Thing] = [*leaders, *SHARD_LEASES, CONTROLLER, (topic(99), 0)]
    wished = draw(st.dictionaries(st.sampled_from(things), ANYONE, max_size=12)) if wishes else {}
    return Known(up - draining, draining, leases, leaders, wished)


@given(situations(wishes=True))
def test_everything_has_an_owner_that_may_own_it(known: Known) -> None:
    after, _ = settled(known)
    if known.brokers:
        assert set(shards(after).values()) | set(after.leaders.values()) <= set(known.brokers)
        assert after.leases.get(CONTROLLER) not in known.draining
    else:
        assert after == known


@given(situations())
def test_everything_is_balanced(known: Known) -> None:
    after, _ = settled(known)
    if known.brokers:
        held = counts(shards(after), known).values()
        assert max(held) - min(held) <= 1
        low, high = fair_share(len(after.leaders), len(known.brokers))
        assert all(low <= count <= high for count in counts(after.leaders, known).values())


@given(situations())
def test_nothing_moves_that_need_not(known: Known) -> None:
    """What has no proper owner moves once. Beyond that, only as much as some broker has too much or too little of
    when that is placed as well as possible."""
    after, steps = settled(known)
    if not known.brokers:
        return
    compared: list[tuple[dict[Any, int], dict[Any, int], tuple[int, int]]] = [
        (shards(known), shards(after), _exactly(len(SHARD_LEASES), len(known.brokers))),
        (dict(known.leaders), dict(after.leaders), fair_share(len(known.leaders), len(known.brokers))),
    ]
    for before, later, (low, high) in compared:
        stray = [thing for thing, owner in before.items() if owner not in known.brokers]
        has = counts(before, known)
        ceiling = _exactly(len(before), len(known.brokers))[1]
        for _ in stray:  # the best that placing can do is to fill up those with fewest
            fewest = min(has, key=lambda broker: has[broker])
            has[fewest] += 1
            assert has[fewest] <= ceiling
        excess = sum(max(0, count - high) for count in has.values())
        deficit = sum(max(0, low - count) for count in has.values())
        changed = [thing for thing, owner in before.items() if later[thing] != owner]
        assert len(changed) == len(stray) + max(excess, deficit)
    moves = Counter(thing for step in steps for thing, _ in step.leases)
    moves.update((topic_id, number) for step in steps for topic_id, number, _ in step.leaders)  # type: ignore[misc]
    assert all(count == 1 for count in moves.values())


@given(situations())
def test_a_settled_cluster_stays_as_it_is(known: Known) -> None:
    after, _ = settled(known)
    assert next_step(after).is_empty


@given(situations(wishes=True))
def test_wishes_are_fulfilled_and_last(known: Known) -> None:
    after, _ = settled(known)
    for thing, broker in known.wishes.items():
        if broker in known.brokers and (isinstance(thing, str) or thing in known.leaders):
            assert after.leases[thing] == broker if isinstance(thing, str) else after.leaders[thing] == broker


@given(st.integers(2, 6), st.integers(0, 300))
def test_a_broker_that_joins_gets_its_share_in_a_few_steps(brokers: int, count: int) -> None:
    nothing = Known(range(brokers), (), {}, dict.fromkeys(partitions(count), NOBODY), {})
    before, steps = settled(nothing)
    assert len(steps) == 1
    joined = before._replace(brokers=range(brokers + 1))
    after, steps = settled(joined)
    newcomer = counts(after.leaders, joined)[brokers]
    assert newcomer >= fair_share(count, brokers + 1)[0]
    assert len(steps) <= 20 // (brokers + 1) + 2
    assert {owner for one, owner in after.leaders.items() if before.leaders[one] != owner} <= {brokers}


@given(st.integers(2, 6), st.integers(1, 300), st.data())
def test_when_a_broker_goes_only_its_own_things_move_and_in_one_step(
    brokers: int, count: int, data: st.DataObject
) -> None:
    before, _ = settled(Known(range(brokers), (), {}, dict.fromkeys(partitions(count), NOBODY), {}))
    gone = data.draw(st.integers(0, brokers - 1))
    is_draining = data.draw(st.booleans())
    left = [broker for broker in range(brokers) if broker != gone]
    after, steps = settled(before._replace(brokers=left, draining=[gone] if is_draining else []))
    assert len(steps) <= 1
    assert {one: owner for one, owner in before.leaders.items() if owner != gone}.items() <= after.leaders.items()
    assert {one: owner for one, owner in before.leases.items() if owner != gone}.items() <= after.leases.items()


def test_the_partitions_of_each_topic_are_spread() -> None:
    leaders = {one: NOBODY for number in range(8) for one in partitions(12, number)}
    after, _ = settled(Known((1, 2, 3), (), {}, leaders, {}))
    for number in range(8):
        assert counts({one: after.leaders[one] for one in partitions(12, number)}, after) == {1: 4, 2: 4, 3: 4}
    joined, _ = settled(after._replace(brokers=(1, 2, 3, 4)))
    for number in range(8):
        assert counts({one: joined.leaders[one] for one in partitions(12, number)}, joined)[4] in (2, 3, 4)


def test_the_shards_of_groups_and_transactions_are_each_spread() -> None:
    after, _ = settled(Known((1, 2), (), {}, {}, {}))
    assert counts({scope: owner for scope, owner in after.leases.items() if scope.startswith("group/")}, after) == {
        1: 16,
        2: 16,
    }


def test_many_partitions_are_assigned_in_several_steps_without_a_pause() -> None:
    count = 2 * MOST_AT_ONCE + 1
    after, steps = settled(Known((1, 2, 3), (), {}, dict.fromkeys(partitions(count), NOBODY), {}))
    assert [len(step.leaders) for step in steps] == [MOST_AT_ONCE, MOST_AT_ONCE, 1]
    assert [step.is_urgent for step in steps] == [True, True, False]
    assert sorted(counts(after.leaders, after).values()) == [count // 3, count // 3 + 1, count // 3 + 1]


def test_the_controller_goes_last_from_a_broker_that_drains() -> None:
    before, _ = settled(Known((1, 2), (), {CONTROLLER: 1}, dict.fromkeys(partitions(10), NOBODY), {}))
    _, steps = settled(before._replace(brokers=(2,), draining=(1,)))
    assert [step.leases[0] == (CONTROLLER, 2) for step in steps] == [False, True]
    assert len(steps[-1].leases) == 1


def _exactly(things: int, brokers: int) -> tuple[int, int]:
    return things // brokers, -(-things // brokers)
