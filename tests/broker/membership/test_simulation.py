"""Clusters of three to five brokers in virtual time. A failed random run is repeated with its seed:

TIDELOG_SEED=17 pytest tests/broker/membership/test_simulation.py -k random
"""

import os
from collections import Counter
from contextlib import suppress

import pytest

from tests.broker.membership.simulated import TIMING, SimulatedCluster
from tests.simulation.virtual_loop import run
from tests.support.fake_order import Call, Moment
from tidelog.broker.membership.assignment import fair_share
from tidelog.broker.membership.ownership import Owned
from tidelog.broker.ownership import NOBODY, Coordinated, NotController, NotCoordinator, NotLeader
from tidelog.errors import InvalidInput, OutcomeUnknown
from tidelog.metadata.registry import CONTROLLER, SHARD_LEASES, NoOtherBroker, UnknownBroker

FIRST, SECOND = b"first topic id..", b"second topic id."
SEEDS = [int(os.environ["TIDELOG_SEED"])] if "TIDELOG_SEED" in os.environ else list(range(25))
FAILOVER_S = TIMING.dead_after + 3 * TIMING.beat_every


def make(seed: int = 0, brokers: int = 3) -> SimulatedCluster:
    return SimulatedCluster(seed, brokers, {FIRST: 30, SECOND: 7})


def test_brokers_that_start_together_share_everything() -> None:
    async def main() -> None:
        cluster = make()
        assert await cluster.until(cluster.is_whole, 10) < 5
        await cluster.run_for(10)
        held = Counter(cluster.leaders().values())
        assert sorted(held.values()) == [12, 12, 13]
        shards = Counter(cluster.database.owner(scope).broker_id for scope in SHARD_LEASES)
        assert sorted(shards.values()) == [21, 21, 22]
        told = [broker.ownership for broker in cluster.brokers.values()]
        assert len({ownership.controller() for ownership in told}) == 1
        for ownership in told:
            assert [each.broker_id for each in ownership.brokers("PLAINTEXT")] == [1, 2, 3]
            assert [ownership.leader(FIRST, n) for n in range(30)] == [told[0].leader(FIRST, n) for n in range(30)]
        await cluster.end()

    run(main())


def test_the_controller_says_who_else_has_got_something() -> None:
    async def main() -> None:
        cluster = make(brokers=2)
        told: dict[int, list[set[int]]] = {1: [], 2: []}
        for broker_id, broker in cluster.brokers.items():
            broker.member.on_assigned = told[broker_id].append
        await cluster.until(cluster.is_whole, 10)
        controller = cluster.database.owner(CONTROLLER).broker_id
        other = 3 - controller
        assert told[controller][-1] == {other}
        assert not told[other]
        told[controller].clear()
        await cluster.run_for(10)
        assert not told[controller], "nothing moves any more"
        cluster.brokers[controller].member.move({(FIRST, 0): other, (FIRST, 1): other})
        await cluster.until(lambda: cluster.leaders()[FIRST, 0] == other, 5)
        assert told[controller] == [{other}]
        await cluster.end()

    run(main())


@pytest.mark.parametrize("is_controller", [True, False])
def test_what_a_killed_broker_owned_is_owned_by_others_soon_and_nothing_else_moves(is_controller: bool) -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        await cluster.run_for(10)
        controller = cluster.database.owner(CONTROLLER).broker_id
        victim = next(each for each in cluster.brokers if (each == controller) == is_controller)
        before = {thing: cluster.database.owner(thing).epoch for thing in cluster.things()}
        own = set(cluster.owned_by(victim))
        await cluster.kill(victim)
        assert await cluster.until(cluster.is_whole, FAILOVER_S) > TIMING.fence_after
        await cluster.run_for(10)
        after = {thing: cluster.database.owner(thing).epoch for thing in cluster.things()}
        assert {thing for thing in before if before[thing] != after[thing]} == own
        await cluster.end()

    run(main())


def test_a_broker_that_is_killed_and_started_at_once_keeps_its_things_at_new_epochs() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        await cluster.run_for(10)
        before = {thing: cluster.database.owner(thing).epoch for thing in cluster.owned_by(2)}
        await cluster.kill(2)
        cluster.start(2)
        await cluster.until(cluster.is_whole, 2)
        await cluster.run_for(20)
        assert {thing: cluster.database.owner(thing).epoch for thing in cluster.owned_by(2)} == {
            thing: epoch + 1 for thing, epoch in before.items()
        }
        await cluster.end()

    run(main())


def test_a_broker_that_joins_gets_its_share_within_seconds() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        await cluster.run_for(10)
        cluster.start(4)
        low, _ = fair_share(37, 4)
        await cluster.until(lambda: Counter(cluster.leaders().values())[4] >= low, 8)
        await cluster.run_for(5)
        await cluster.until(cluster.is_whole, 2)
        await cluster.end()

    run(main())


def test_a_broker_that_was_paused_says_nothing_from_memory_when_it_wakes() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        broker = cluster.brokers[2]
        (topic_id, number), *_ = broker.ownership.mine.partitions
        version = broker.ownership.version
        broker.pause()
        await cluster.run_for(30)
        broker.resume()  # nothing of it has run yet
        ownership = broker.ownership
        with pytest.raises(NotLeader):
            ownership.check_leader(topic_id, number)
        assert ownership.leader(topic_id, number).broker_id == NOBODY
        assert ownership.version > version
        for kind in Coordinated:
            with pytest.raises(NotCoordinator):
                ownership.check_coordinator(kind, "any")
        with pytest.raises(NotController):
            ownership.check_controller()
        assert not ownership.mine.is_empty
        await cluster.until(lambda: ownership.is_trusted, 3)
        assert cluster.database.leaders[topic_id, number].broker_id != 2
        await cluster.run_for(10)
        assert cluster.is_whole()
        assert len(cluster.owned_by(2)) >= 12
        await cluster.end()

    run(main())


def test_a_broker_that_is_cut_off_fences_itself_and_comes_back() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        broker = cluster.brokers[3]
        broker.is_cut_off = True
        took = await cluster.until(lambda: not broker.ownership.is_trusted, 6)
        assert TIMING.fence_after - TIMING.beat_every - 0.1 <= took <= TIMING.fence_after
        await cluster.until(lambda: not cluster.owned_by(3), FAILOVER_S)
        await cluster.until(cluster.is_whole, 2)
        broker.is_cut_off = False
        await cluster.until(lambda: len(cluster.owned_by(3)) >= 30, 20)
        await cluster.until(cluster.is_whole, 3)
        await cluster.end()

    run(main())


def test_an_outage_of_the_database_moves_nothing() -> None:
    async def main() -> None:
        cluster = make(brokers=5)
        await cluster.until(cluster.is_whole, 10)
        await cluster.run_for(10)
        before = {thing: cluster.database.owner(thing).epoch for thing in cluster.things()}
        for broker in cluster.brokers.values():
            broker.is_cut_off = True
        await cluster.run_for(60)
        assert not any(broker.ownership.is_trusted for broker in cluster.brokers.values())
        for broker in cluster.brokers.values():
            broker.is_cut_off = False
        await cluster.until(cluster.is_whole, 2 * 3 + 2)
        await cluster.run_for(30)
        after = {thing: cluster.database.owner(thing).epoch for thing in cluster.things()}
        assert {thing for thing in before if before[thing] != after[thing]} <= {CONTROLLER}
        await cluster.end()

    run(main())


@pytest.mark.parametrize("seconds", [3600.0, 20.0, -20.0, -3600.0])
def test_a_clock_of_the_database_that_is_set_moves_nothing_and_hides_no_death(seconds: float) -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        await cluster.run_for(10.37)
        before = {thing: cluster.database.owner(thing).epoch for thing in cluster.things()}
        cluster.database.jumped += seconds
        await cluster.run_for(20)
        after = {thing: cluster.database.owner(thing).epoch for thing in cluster.things()}
        assert {thing for thing in before if before[thing] != after[thing]} <= {CONTROLLER}
        assert cluster.is_whole()
        cluster.database.jumped -= seconds
        await cluster.kill(1)  # its last beat may be in the future now
        await cluster.until(cluster.is_whole, 2 * FAILOVER_S)
        await cluster.end()

    run(main())


@pytest.mark.parametrize("is_controller", [True, False])
def test_a_broker_that_stops_in_order_hands_over_before_it_leaves(is_controller: bool) -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        controller = cluster.database.owner(CONTROLLER).broker_id
        leaver = next(each for each in cluster.brokers if (each == controller) == is_controller)
        await cluster.brokers[leaver].member.stop(20)
        assert not cluster.owned_by(leaver)
        assert leaver not in cluster.database.brokers
        assert not cluster.brokers[leaver].claims()
        await cluster.until(cluster.is_whole, 2)
        await cluster.end()

    run(main())


def test_the_last_broker_stops_at_once() -> None:
    async def main() -> None:
        cluster = make(brokers=1)
        took = await cluster.until(cluster.is_whole, 10)
        await cluster.brokers[1].member.stop(20)
        assert cluster._loop.time() - took < 1
        await cluster.end()

    run(main())


def test_a_stop_takes_no_longer_than_it_may_while_the_database_is_down() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        began = cluster._loop.time()
        cluster.brokers[1].is_cut_off = True
        await cluster.brokers[1].member.stop(10)
        assert cluster._loop.time() - began < 10 + 4 * 3 + 1
        await cluster.until(lambda: not cluster.owned_by(1), 2 * FAILOVER_S)
        await cluster.end()

    run(main())


def test_an_operator_can_drain_a_broker_and_take_that_back() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        controller = cluster.database.owner(CONTROLLER).broker_id
        cluster.database.set_drained(controller, True)
        await cluster.until(lambda: not cluster.owned_by(controller), 5)
        await cluster.until(cluster.is_whole, 3)
        assert controller in cluster.database.brokers
        cluster.database.set_drained(controller, False)
        await cluster.until(lambda: len(cluster.owned_by(controller)) >= 30, 15)
        await cluster.end()

    run(main())


def test_a_drained_broker_is_still_drained_when_it_is_started_again() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        controller = cluster.database.owner(CONTROLLER).broker_id
        cluster.database.set_drained(controller, True)
        await cluster.until(lambda: not cluster.owned_by(controller), 5)
        await cluster.kill(controller)
        await cluster.run_for(2 * FAILOVER_S)
        cluster.start(controller)
        await cluster.run_for(2 * FAILOVER_S)
        assert controller in cluster.database.brokers
        assert not cluster.owned_by(controller)
        governing = cluster.brokers[cluster.database.owner(CONTROLLER).broker_id].member
        with pytest.raises(InvalidInput, match="is drained"):
            governing.move({(FIRST, 0): controller})
        await cluster.end()

    run(main())


def test_things_are_moved_as_an_operator_wishes_and_stay_there() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        controller = cluster.database.owner(CONTROLLER).broker_id
        other = next(each for each in cluster.brokers if each != controller)
        with pytest.raises(NotController):
            cluster.brokers[other].member.move({(SECOND, 0): other})
        wished = [(SECOND, number) for number in range(7)]
        cluster.brokers[controller].member.move(dict.fromkeys([*wished, "group/3"], other))
        await cluster.run_for(10)
        assert all(cluster.leaders()[one] == other for one in wished)
        assert cluster.database.owner("group/3").broker_id == other
        assert cluster.is_whole()
        await cluster.end()

    run(main())


def test_wishes_are_taken_over_all_or_none_and_end_with_their_topic() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        controller = cluster.database.owner(CONTROLLER).broker_id
        member = cluster.brokers[controller].member
        with pytest.raises(UnknownBroker):
            member.move({(FIRST, 0): controller, (FIRST, 1): 99})
        assert not member._wishes
        third = b"third topic id.."
        cluster.database.create_logs(third, 6)
        member.move(dict.fromkeys([*((third, number) for number in range(6)), (SECOND, 0)], controller))
        await cluster.run_for(5)
        assert {owner for (topic_id, _), owner in cluster.leaders().items() if topic_id == third} == {controller}
        cluster.database.delete_logs(third)
        await cluster.run_for(2)
        assert set(member._wishes) == {(SECOND, 0)}
        await cluster.end()

    run(main())


def test_a_topic_gets_leaders_when_it_is_created_and_loses_them_when_it_is_deleted() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        third = b"third topic id.."
        cluster.database.create_logs(third, 6)
        for broker in cluster.brokers.values():
            broker.member.hurry()
        assert await cluster.until(cluster.is_whole, 3) < 1.5
        cluster.database.delete_logs(third)
        await cluster.run_for(2)
        for broker in cluster.brokers.values():
            assert broker.ownership.leader(third, 0).broker_id == NOBODY
            assert all(topic_id != third for topic_id, _ in broker.ownership.mine.partitions)
        await cluster.end()

    run(main())


def test_two_processes_with_one_id_do_not_both_serve() -> None:
    async def main() -> None:
        cluster = make()
        await cluster.until(cluster.is_whole, 10)
        first = cluster.brokers[2]
        second = cluster.start(2)  # from the same address: it replaces the first one
        cluster.brokers[22] = first
        await cluster.until(lambda: second.ownership.is_trusted, 3)
        await cluster.run_for(1.1)
        assert not first.claims()
        await cluster.run_for(30)  # whatever they do to each other
        cluster.brokers.pop(22)
        await first.kill()
        await cluster.until(cluster.is_whole, 2 * FAILOVER_S)
        await cluster.end()

    run(main())


@pytest.mark.parametrize("lost", ["the request", "the reply"])
@pytest.mark.parametrize("operation", ["register", "stand_for_controller", "assign", "changes_since", "bury"])
def test_a_call_whose_outcome_is_unknown_is_made_good(operation: str, lost: str) -> None:
    async def main() -> None:
        cluster = make(brokers=0)
        left = 3

        async def hook(call: Call) -> None:
            nonlocal left
            if call.operation == operation and (call.moment is Moment.BEFORE) == (lost == "the request") and left:
                left -= 1
                raise OutcomeUnknown("the connection was lost")

        for broker_id in (1, 2, 3):
            cluster.start(broker_id).registry.hook = hook
        await cluster.until(lambda: cluster.is_whole() and len(cluster.database.brokers) == 3, 10)
        await cluster.run_for(2 * TIMING.dead_after)
        await cluster.kill(1)
        await cluster.until(cluster.is_whole, FAILOVER_S + 3)
        assert left < 3
        await cluster.end()

    run(main())


def test_a_listener_that_fails_does_not_keep_others_from_being_told() -> None:
    class Failing:
        def lost(self, things: Owned) -> None:
            raise RuntimeError("a bug")

        def gained(self, things: Owned) -> None:
            raise RuntimeError("a bug")

    async def main() -> None:
        cluster = make(brokers=2)
        for broker in cluster.brokers.values():
            broker.member._listeners.insert(0, Failing())
        await cluster.until(cluster.is_whole, 10)  # which compares what was told with what is owned
        await cluster.end()

    run(main())


@pytest.mark.parametrize("seed", SEEDS)
def test_random_faults(seed: int) -> None:
    """Whatever happens, nobody claims what it must not; and soon after the last fault everything has an owner."""

    async def main() -> None:
        cluster = make(seed, brokers=3 + seed % 3)
        random = cluster.random
        count = len(cluster.brokers)
        for _ in range(25):
            await cluster.run_for(random.choice([0.1, 1.0, 4.0, 9.0]) * random.random())
            broker_id = random.randint(1, count)
            broker = cluster.brokers.get(broker_id)
            match random.randrange(9):
                case 0 if broker is not None:
                    await cluster.kill(broker_id)
                case 1 if broker is not None:
                    broker.pause()
                case 2 if broker is not None:
                    broker.is_cut_off = True
                case 3 if broker is not None:
                    broker.delay_s = random.choice([0.1, 1.0, 4.0])
                case 4:
                    cluster.database.jumped += random.choice([-30.0, -6.0, 6.0, 30.0])
                case 5 if broker is not None and not broker.is_paused:
                    await broker.member.stop(random.uniform(0, 5))
                    broker.is_dead = True
                    del cluster.brokers[broker_id]
                case 6 if broker_id in cluster.database.brokers:
                    with suppress(NoOtherBroker):
                        cluster.database.set_drained(broker_id, random.random() < 0.5)
                case 7 if broker is None:
                    cluster.start(broker_id)
                case 8 if broker is not None:
                    broker.resume()
                    broker.is_cut_off, broker.delay_s = False, 0.0
        for broker_id in range(1, count + 1):
            if broker_id not in cluster.brokers:
                cluster.start(broker_id)
            broker = cluster.brokers[broker_id]
            broker.resume()
            broker.is_cut_off, broker.delay_s = False, 0.0
        await cluster.run_for(TIMING.dead_after)  # the last jump of the clock may have been just now
        for broker_id in list(cluster.database.drained):
            cluster.database.set_drained(broker_id, False)
        await cluster.until(cluster.is_whole, 2 * FAILOVER_S)
        await cluster.run_for(20)
        low, high = fair_share(37, len(cluster.brokers))
        assert all(low <= held <= high for held in Counter(cluster.leaders().values()).values())
        assert cluster.is_whole()
        await cluster.end()

    run(main())
