"""The contract of `Order`, for each engine: the fake of the simulations, and PostgreSQL."""

from collections.abc import Sequence

import pytest

from tests.support.orders import EXTENT_BYTES, Brokers, extent_of, led, new_topic, offsets, part, run
from tidelog.errors import OffsetOutOfRange
from tidelog.model import LeaderEpoch, PartitionIdentity, ProducerId
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.shared.order import (
    FORGOTTEN_AFTER_MS,
    Cleaned,
    Extent,
    Leader,
    LogId,
    NotTheLeader,
    Order,
    ProducerSnapshot,
    UnknownLog,
)

NOW = 1_700_000_000_000
LATER = NOW + 1
FIRST = Leader(1, LeaderEpoch(0))


@pytest.fixture(params=["fake", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def one_log(brokers: Brokers) -> tuple[Order, PartitionIdentity, LogId]:
    order = await brokers.order()
    partition = new_topic().partition(0)
    [log_id] = await led(order, [partition])
    return order, partition, log_id


async def fill(order: Order, log_id: LogId, bundles: int, of: int = 10) -> list[Extent]:
    """Commit bundles b/0, b/1, ... of `of` offsets each."""
    made = []
    for number in range(bundles):
        one = part(log_id, number * of, number * of + of - 1)
        assert await order.commit(f"b/{number}", EXTENT_BYTES, 1, [one], NOW) == {log_id}
        made.append(extent_of(f"b/{number}", one))
    return made


def merged(key: str, old: Sequence[Extent]) -> Extent:
    return Extent(old[0].base_offset, old[-1].last_offset, key, 0, sum(one.size for one in old), 5)


# Leaders


def test_a_new_log_is_empty_and_its_first_leader_has_epoch_0(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order = await brokers.order()
        topic = new_topic()
        await order.create(topic.partitions(2))
        assert await order.take_over(topic.partitions(2), 7) == [0, 0]
        log = await order.load(topic.partition(1), Leader(7, LeaderEpoch(0)))
        assert log[1:] == (0, 0, (), None, (), (), Cleaned())

    run(engine, scenario)


def test_creating_a_log_again_leaves_it_as_it_is(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        await fill(order, log_id, 1)
        await order.create(partition.topic.partitions(2))
        assert (await order.load(partition, FIRST)).high_watermark == 10

    run(engine, scenario)


def test_each_take_over_begins_a_new_epoch(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, _ = await one_log(brokers)
        other = partition.topic.partition(1)
        await order.create([other])
        assert await order.take_over([other, partition], 2) == [0, 1]
        assert await order.take_over([partition, other], 2) == [2, 1]
        with pytest.raises(NotTheLeader):
            await order.load(partition, FIRST)
        with pytest.raises(NotTheLeader):
            await order.load(partition, Leader(3, LeaderEpoch(2)))

    run(engine, scenario)


def test_taking_over_an_unknown_log_changes_nothing(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, _ = await one_log(brokers)
        with pytest.raises(UnknownLog):
            await order.take_over([partition, new_topic().partition(0)], 2)
        await order.load(partition, FIRST)
        with pytest.raises(UnknownLog):
            await order.load(new_topic().partition(0), FIRST)
        assert await order.take_over([], 2) == []

    run(engine, scenario)


# Commits


def test_a_commit_adds_an_extent_to_each_log(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order = await brokers.order()
        topic = new_topic()
        first, second = await led(order, topic.partitions(2))
        parts = [part(second, 0, 4, position=EXTENT_BYTES), part(first, 0, 9)]
        assert await order.commit("b/1", 20, 1, parts, NOW) == {first, second}
        log = await order.load(topic.partition(1), FIRST)
        assert log.extents == (extent_of("b/1", parts[0]),)
        assert (log.start_offset, log.high_watermark, log.epochs) == (0, 5, ((0, 0),))
        assert await order.dead_objects(LATER, 10) == []

    run(engine, scenario)


def test_a_commit_counts_only_for_the_leader_at_its_epoch_and_at_the_end_of_the_log(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order = await brokers.order()
        topic = new_topic()
        right, taken, behind, ahead = await led(order, topic.partitions(4))
        await order.take_over([topic.partition(1)], 2)
        assert await order.commit("b/0", 10, 1, [part(behind, 0, 9)], NOW) == {behind}
        refused = [part(taken, 0, 9), part(behind, 0, 9), part(ahead, 1, 9), part(LogId(1 << 40), 0, 9)]
        assert await order.commit("b/1", 50, 1, [part(right, 0, 9), *refused], NOW) == {right}
        assert await order.commit("b/2", 50, 1, refused, NOW) == frozenset()
        assert await order.commit("b/3", 10, 3, [part(right, 10, 19)], NOW) == frozenset()
        assert await order.commit("b/4", 10, 1, [part(right, 10, 19, epoch=1)], NOW) == frozenset()
        assert await order.dead_objects(LATER, 10) == ["b/2", "b/3", "b/4"]

    run(engine, scenario)


def test_a_commit_said_again_is_answered_alike(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order = await brokers.order()
        topic = new_topic()
        first, second = await led(order, topic.partitions(2))
        bundle = [part(first, 0, 9), part(second, 5, 9)]
        for _ in range(2):
            assert await order.commit("b/1", 20, 1, bundle, NOW) == {first}
            assert await order.commit("b/2", 20, 1, [part(second, 5, 9)], NOW) == frozenset()
        assert offsets(await order.load(topic.partition(0), FIRST)) == [(0, 9)]

    run(engine, scenario)


def test_a_commit_is_answered_alike_whatever_happened_to_its_extents(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        old = await fill(order, log_id, 2)
        await order.take_over([partition], 2)
        leader = Leader(2, LeaderEpoch(1))
        assert await order.replace(log_id, leader, "s/1", 20, old, [merged("s/1", old)], None, NOW)
        assert await order.commit("b/1", 10, 1, [part(log_id, 10, 19)], NOW) == {log_id}
        await order.delete(partition.topic.topic_id, NOW)
        assert await order.commit("b/1", 10, 1, [part(log_id, 10, 19)], NOW) == {log_id}

    run(engine, scenario)


def test_a_commit_remembers_the_first_offset_of_each_epoch_in_which_something_was_written(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        await fill(order, log_id, 2)
        for _ in range(3):
            await order.take_over([partition], 1)
        await order.commit("b/a", 10, 1, [part(log_id, 20, 24, epoch=3)], NOW)
        await order.commit("b/b", 10, 1, [part(log_id, 25, 29, epoch=3)], NOW)
        await order.take_over([partition], 1)
        log = await order.load(partition, Leader(1, LeaderEpoch(4)))
        assert log.epochs == ((0, 0), (3, 20))

    run(engine, scenario)


def test_aborted_transactions_come_with_the_commit_and_go_with_the_start(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order = await brokers.order()
        topic = new_topic()
        first, second = await led(order, topic.partitions(2))
        kept = [AbortedTransaction(ProducerId(5), 0, 3, 0), AbortedTransaction(ProducerId(6), 1, 9, 4)]
        refused = [AbortedTransaction(ProducerId(5), 1, 2, 0)]
        bundle = [part(second, 1, 9)._replace(aborted=refused), part(first, 0, 9)._replace(aborted=kept)]
        assert await order.commit("b/1", 20, 1, bundle, NOW) == {first}
        assert (await order.load(topic.partition(0), FIRST)).aborted == tuple(kept)
        assert (await order.load(topic.partition(1), FIRST)).aborted == ()
        await order.move_start(first, FIRST, 4, NOW)
        assert (await order.load(topic.partition(0), FIRST)).aborted == (kept[1],)

    run(engine, scenario)


# Upkeep


def test_neighbouring_extents_are_exchanged_for_those_of_a_new_object(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        old = await fill(order, log_id, 5)
        segment = merged("s/1", old[1:4])
        snapshot = ProducerSnapshot(40, b"producers")
        for _ in range(2):  # said again, it is answered alike
            assert await order.replace(log_id, FIRST, "s/1", 30, old[1:4], [segment], snapshot, NOW)
        log = await order.load(partition, FIRST)
        assert log.extents == (old[0], segment, old[4])
        assert log.snapshot == snapshot
        assert await order.dead_objects(LATER, 10) == ["b/1", "b/2", "b/3"]

    run(engine, scenario)


def test_an_exchange_is_refused_if_the_extents_are_not_those_that_were_read(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        old = await fill(order, log_id, 4)
        wrong = [
            [old[0], old[2]],
            [old[0]._replace(key="b/1"), old[1]],
            [old[0]._replace(position=1), old[1]],
            [old[0]._replace(base_offset=1), old[1]],
            [old[3], old[3]._replace(base_offset=40, last_offset=49)],
        ]
        for number, extents in enumerate(wrong):
            segment = merged(f"s/{number}", extents)
            for _ in range(2):
                assert not await order.replace(log_id, FIRST, segment.key, 20, extents, [segment], None, NOW)
        assert (await order.load(partition, FIRST)).extents == tuple(old)
        assert await order.dead_objects(LATER, 10) == [f"s/{number}" for number in range(len(wrong))]

    run(engine, scenario)


def test_compaction_may_leave_gaps_or_nothing(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        old = await fill(order, log_id, 4)
        inner = Extent(3, 15, "s/1", 0, 5, 5)
        assert await order.replace(log_id, FIRST, "s/1", 5, old[:2], [inner], None, NOW)
        for _ in range(2):
            assert await order.replace(log_id, FIRST, "s/2", 0, old[2:], [], None, NOW)
        log = await order.load(partition, FIRST)
        assert (log.extents, log.high_watermark) == ((inner,), 40)
        assert await order.dead_objects(LATER, 10) == ["b/0", "b/1", "b/2", "b/3", "s/2"]
        assert await order.commit("b/9", 10, 1, [part(log_id, 40, 49)], NOW) == {log_id}

    run(engine, scenario)


def test_how_far_a_log_is_compacted_is_known_to_the_next_leader_and_never_goes_back(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        aborts = [AbortedTransaction(ProducerId(7), at, at + 1, at + 2) for at in (0, 2, 4)]
        whole = part(log_id, 0, 9)._replace(aborted=aborts)
        assert await order.commit("b/0", 10, 1, [whole], NOW) == {log_id}
        for _ in range(2):
            await order.keep_cleaned(log_id, FIRST, Cleaned(6, NOW), [1, 5])
        await order.keep_cleaned(log_id, FIRST, Cleaned(4, None), [])
        [epoch] = await order.take_over([partition], 2)
        log = await order.load(partition, Leader(2, epoch))
        assert (log.cleaned, log.aborted) == (Cleaned(6, None), (aborts[1],))
        with pytest.raises(NotTheLeader):
            await order.keep_cleaned(log_id, FIRST, Cleaned(9, None), [3])
        with pytest.raises(UnknownLog):
            await order.keep_cleaned(LogId(10**9), FIRST, Cleaned(9, None), [3])
        assert (await order.load(partition, Leader(2, epoch))).cleaned == Cleaned(6, None)

    run(engine, scenario)


def test_a_snapshot_is_not_replaced_by_an_earlier_one(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        old = await fill(order, log_id, 2)
        for number, offset in ((1, 20), (0, 10)):
            segment = merged(f"s/{number}", old[number : number + 1])
            snapshot = ProducerSnapshot(offset, b"%d" % offset)
            assert await order.replace(log_id, FIRST, segment.key, 10, [old[number]], [segment], snapshot, NOW)
        assert (await order.load(partition, FIRST)).snapshot == ProducerSnapshot(20, b"20")

    run(engine, scenario)


def test_only_the_leader_may_exchange_extents_and_move_the_start(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        old = await fill(order, log_id, 2)
        await order.take_over([partition], 2)
        for leader, unknown, error in (
            (FIRST, log_id, NotTheLeader),
            (Leader(1, LeaderEpoch(1)), log_id, NotTheLeader),
            (FIRST, LogId(1 << 40), UnknownLog),
        ):
            with pytest.raises(error):
                await order.replace(unknown, leader, "s/1", 20, old, [merged("s/1", old)], None, NOW)
            with pytest.raises(error):
                await order.move_start(unknown, leader, 5, NOW)
        assert await order.dead_objects(LATER, 10) == []
        assert await order.replace(
            log_id, Leader(2, LeaderEpoch(1)), "s/1", 20, old, [merged("s/1", old)], None, NOW
        ), "the key of a refused exchange may be used by the leader"

    run(engine, scenario)


def test_an_exchange_said_again_is_answered_alike_under_another_leader(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        old = await fill(order, log_id, 2)
        assert await order.replace(log_id, FIRST, "s/1", 20, old, [merged("s/1", old)], None, NOW)
        await order.take_over([partition], 2)
        assert await order.replace(log_id, FIRST, "s/1", 20, old, [merged("s/1", old)], None, NOW)

    run(engine, scenario)


def test_moving_the_start_forgets_what_ends_before_it(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        await fill(order, log_id, 4)
        for epoch in (1, 2):
            await order.take_over([partition], 1)
            base = 30 + 10 * epoch
            await order.commit(f"b/e{epoch}", 10, 1, [part(log_id, base, base + 9, epoch)], NOW)
        leader = Leader(1, LeaderEpoch(2))
        await order.move_start(log_id, leader, 15, NOW)
        log = await order.load(partition, leader)
        assert (log.start_offset, offsets(log)[0], log.epochs) == (15, (10, 19), ((0, 0), (1, 40), (2, 50)))
        await order.move_start(log_id, leader, 50, LATER)
        log = await order.load(partition, leader)
        assert (offsets(log), log.epochs) == ([(50, 59)], ((2, 50),))
        await order.move_start(log_id, leader, 5, LATER)
        assert (await order.load(partition, leader)).start_offset == 50
        await order.move_start(log_id, leader, 60, LATER)
        assert offsets(await order.load(partition, leader)) == []
        with pytest.raises(OffsetOutOfRange):
            await order.move_start(log_id, leader, 61, LATER)
        assert await order.dead_objects(LATER, 10) == ["b/0"]

    run(engine, scenario)


def test_an_object_lives_as_long_as_one_log_has_an_extent_of_it(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order = await brokers.order()
        kept, gone = new_topic("kept"), new_topic("gone")
        first, second = await led(order, [kept.partition(0), gone.partition(0)])
        await order.commit("b/1", 20, 1, [part(first, 0, 9), part(second, 0, 9, position=10)], NOW)
        await order.delete(gone.topic_id, NOW)
        assert await order.dead_objects(LATER, 10) == []
        await order.move_start(first, FIRST, 10, NOW)
        assert await order.dead_objects(LATER, 10) == ["b/1"]

    run(engine, scenario)


def test_a_deleted_topic_is_unknown_and_its_name_is_free(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        await fill(order, log_id, 2)
        for _ in range(2):
            await order.delete(partition.topic.topic_id, NOW)
        with pytest.raises(UnknownLog):
            await order.load(partition, FIRST)
        assert await order.commit("b/9", 10, 1, [part(log_id, 20, 29)], NOW) == frozenset()
        again = new_topic(partition.topic.name)
        [new_log] = await led(order, [again.partition(0)])
        assert new_log != log_id
        assert await order.topics() == [(again.topic_id, again.name, True)]
        assert await order.dead_objects(LATER, 10) == ["b/0", "b/1", "b/9"]

    run(engine, scenario)


def test_topics_tell_whether_something_was_ever_written_to_them(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order = await brokers.order()
        used, unused = new_topic("used"), new_topic("unused")
        [log_id, *_] = await led(order, [*used.partitions(2), unused.partition(0)])
        await fill(order, log_id, 1)
        await order.move_start(log_id, FIRST, 10, NOW)
        assert await order.topics() == sorted([(used.topic_id, "used", False), (unused.topic_id, "unused", True)])

    run(engine, scenario)


# Garbage


def test_an_object_that_was_declared_dead_can_not_be_committed_any_more(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        old = await fill(order, log_id, 2)
        assert await order.declare_dead(["b/9", "b/0", "b/8", "s/1", "b/9"], NOW) == ["b/8", "b/9", "s/1"]
        assert await order.commit("b/9", 10, 1, [part(log_id, 20, 29)], NOW) == frozenset()
        assert not await order.replace(log_id, FIRST, "s/1", 20, old, [merged("s/1", old)], None, NOW)
        assert await order.dead_objects(LATER, 10) == ["b/8", "b/9", "s/1"]
        assert (await order.load(partition, FIRST)).extents == tuple(old)

    run(engine, scenario)


def test_dead_objects_are_listed_from_the_oldest_on_and_until_they_are_forgotten(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order = await brokers.order()
        for number in range(5):
            await order.declare_dead([f"b/{number}"], NOW - number)
        assert await order.dead_objects(NOW, 2) == ["b/4", "b/3"]
        await order.forget_objects(["b/4", "b/2", "b/unknown"], NOW)
        assert await order.dead_objects(NOW, 10) == ["b/3", "b/1"]
        assert await order.dead_objects(LATER, 10) == ["b/3", "b/1", "b/0"]

    run(engine, scenario)


def test_the_key_of_a_forgotten_object_stays_refused_for_an_hour(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, _, log_id = await one_log(brokers)
        await order.declare_dead(["b/1"], NOW)
        await order.forget_objects(["b/1"], NOW)
        await order.forget_objects(["b/1"], NOW + FORGOTTEN_AFTER_MS - 1)
        assert await order.commit("b/1", 10, 1, [part(log_id, 0, 9)], NOW) == frozenset()
        await order.forget_objects([], NOW + FORGOTTEN_AFTER_MS)
        assert await order.declare_dead(["b/1"], NOW) == ["b/1"]

    run(engine, scenario)


def test_an_object_that_a_log_has_is_not_forgotten(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, _, log_id = await one_log(brokers)
        await fill(order, log_id, 1)
        await order.forget_objects(["b/0"], NOW)
        await order.forget_objects([], NOW + 2 * FORGOTTEN_AFTER_MS)
        assert await order.declare_dead(["b/0"], NOW) == []
        await order.move_start(log_id, FIRST, 10, NOW)
        assert await order.dead_objects(LATER, 10) == ["b/0"]

    run(engine, scenario)


def test_a_snapshot_outlives_the_extents_that_it_covers_and_is_never_replaced_by_an_older_one(engine: str) -> None:
    async def scenario(brokers: Brokers) -> None:
        order, partition, log_id = await one_log(brokers)
        await fill(order, log_id, 2)
        for offset, facts in ((10, b"ten"), (20, b"twenty"), (10, b"ten again")):
            await order.keep_snapshot(log_id, FIRST, ProducerSnapshot(offset, facts))
        await order.move_start(log_id, FIRST, 20, NOW)
        assert (await order.load(partition, FIRST)).snapshot == ProducerSnapshot(20, b"twenty")
        with pytest.raises(NotTheLeader):
            await order.keep_snapshot(log_id, Leader(1, LeaderEpoch(7)), ProducerSnapshot(20, b""))
        with pytest.raises(UnknownLog):
            await order.keep_snapshot(LogId(log_id + 1000), FIRST, ProducerSnapshot(20, b""))

    run(engine, scenario)
