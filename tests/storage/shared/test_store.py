"""The background work of a store: merging, garbage. What every store does: tests/storage/test_log_store.py."""

import asyncio
from dataclasses import replace

import pytest

from tests.storage.shared.test_log import NO_TAIL, A, B, World, append, opened, play, until, values
from tests.support.fake_order import FakeOrder
from tests.support.faulty_objects import Fault
from tests.support.logs import EPOCH, NOW_MS, batch
from tests.support.shared_store import AT_ONCE, LeadingStore
from tidelog.errors import StorageUnavailable
from tidelog.model import LeaderEpoch, TimestampMs
from tidelog.promise import result_of
from tidelog.settings import CleanerSettings, LogSettings, StorageSettings
from tidelog.storage.log import Appended, PartitionLog, UpkeepPolicy
from tidelog.storage.shared.garbage import MOST_SKEW_MS, GarbageSettings, WrongClock
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.merging import MergeSettings
from tidelog.storage.shared.order import Extent, NotTheLeader
from tidelog.storage.shared.store import SharedStore
from tidelog.storage.shared.upkeep import UpkeepSettings

SMALL_MERGES = MergeSettings(fan_in=4, steps=(1000, 20_000, 100_000))
MINUTE = 60_000


class Clock:
    def __init__(self) -> None:
        self.now_ms: TimestampMs = NOW_MS

    def __call__(self) -> TimestampMs:
        return self.now_ms


async def write(log: SharedLog, count: int, size: int = 10) -> None:
    for number in range(count):
        await append(log, b"%d" % number * size)


# Merging


def test_small_neighbours_become_one_segment_with_the_same_content() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=SMALL_MERGES)
        log = await opened(store)
        await write(log, 3)
        assert not await store.merger.merge(log), "they are too few"
        await write(log, 7)
        before = await values(log)
        assert await store.merger.merge(log)
        assert len(log.extents) < 10
        assert log.extents[0].key.startswith("s/")
        assert await values(log) == before
        for offset in range(10):
            assert len(await values(log, offset)) == 10 - offset
        assert (await append(log)).base_offset == 10
        assert len((await log.load()).extents) == len(log.extents)

    play(story)


def test_what_is_in_memory_is_merged_without_reading_it_from_the_store() -> None:
    async def story(world: World) -> None:
        store = world.broker(merging=SMALL_MERGES)
        log = await opened(store)
        await write(log, 10)
        stored = b"".join(_stored(world, extent) for extent in log.extents)
        assert await store.merger.merge(log)
        assert not world.objects.ranges
        (extent,) = log.extents
        assert _stored(world, extent) == stored
        assert len(await values(await opened(world.broker(NO_TAIL)))) == 10

    play(story)


def test_a_merge_takes_from_memory_what_is_there_and_the_rest_from_the_store() -> None:
    async def story(world: World) -> None:
        await write(await opened(world.broker()), 6)
        tails = StorageSettings(tail_cache_bytes=1_000)
        store = world.broker(tails, merging=SMALL_MERGES)
        log = await opened(store)  # with nothing in memory
        await write(log, 30)
        stored = b"".join(_stored(world, extent) for extent in log.extents)
        in_memory = sum(log.in_memory(extent) is not None for extent in log.extents)
        assert 0 < in_memory < 30
        assert await store.merger.merge(log)
        assert len(world.objects.ranges) == 36 - in_memory
        (extent,) = log.extents
        assert _stored(world, extent) == stored

    play(story)


def _stored(world: World, extent: Extent) -> bytes:
    return world.objects.objects[extent.key][extent.position : extent.position + extent.size]


def test_a_log_has_few_extents_however_many_were_written() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=SMALL_MERGES)
        log = await opened(store)
        for _ in range(40):
            await write(log, 4)
            while await store.merger.merge(log):
                pass
        assert len(log.extents) < 3 * SMALL_MERGES.fan_in
        assert len(await values(log)) == 160

    play(story)


def test_a_full_segment_is_not_merged_again() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=MergeSettings(fan_in=2, steps=(500, 1000)))
        log = await opened(store)
        await write(log, 30, size=100)
        while await store.merger.merge(log):
            pass
        keys = [extent.key for extent in log.extents]
        assert all(500 <= extent.size <= 1000 for extent in log.extents)
        assert not await store.merger.merge(log)
        assert [extent.key for extent in log.extents] == keys

    play(story)


def test_a_new_leader_knows_the_producers_of_merged_extents() -> None:
    async def story(world: World) -> None:
        store = world.broker(merging=SMALL_MERGES)
        log = await opened(store)
        for sequence in range(5):
            await append(log, b"x", producer_id=7, producer_epoch=0, sequence=sequence, transactional=sequence > 2)
        assert await store.merger.merge(log)
        new = await opened(world.broker())
        assert new.open_transactions() == {7: 3}
        for sequence in range(5):
            repeated = new.append(
                batch(b"x", producer_id=7, producer_epoch=0, sequence=sequence, transactional=True),
                now_ms=NOW_MS,
                leader_epoch=EPOCH,
                durable=True,
            )
            assert isinstance(repeated, Appended)
            assert (repeated.base_offset, repeated.duplicate) == (sequence, True)

    play(story)


def test_a_merge_of_a_leader_that_was_replaced_changes_nothing() -> None:
    async def story(world: World) -> None:
        store = world.broker(merging=SMALL_MERGES)
        log = await opened(store)
        await write(log, 5)
        world.objects.fail("put", Fault.HANG)
        merging = asyncio.ensure_future(store.merger.merge(log))
        await until(lambda: world.objects.hanging)
        new = await opened(world.broker(NO_TAIL))
        world.objects.release()
        with pytest.raises(NotTheLeader):
            await merging
        assert len(new.extents) == 5
        assert len(await values(new)) == 5

    play(story)


def test_a_merge_gives_way_to_a_deletion() -> None:
    async def story(world: World) -> None:
        store = world.broker(merging=SMALL_MERGES)
        log = await opened(store)
        await write(log, 5)
        world.objects.fail("put", Fault.HANG)
        merging = asyncio.ensure_future(store.merger.merge(log))
        await until(lambda: world.objects.hanging)
        await log.delete_before(3)
        world.objects.release()
        assert not await merging
        assert [extent.base_offset for extent in log.extents] == [3, 4]

    play(story)


def test_records_are_found_in_large_segments_by_offset_and_by_time() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=MergeSettings(fan_in=4))
        log = await opened(store)
        for number in range(60):
            await append(log, b"%d" % number * 20_000, timestamp=NOW_MS + number)
        while await store.merger.merge(log):
            pass
        assert log.extents[0].size > 1 << 20, "it has an index that is used"
        for offset in (0, 1, 31, 59):
            assert await values(log, offset) == [b"%d" % number * 20_000 for number in range(offset, 60)]
            found = await result_of(log.offset_for_time(NOW_MS + offset))
            assert found is not None
            assert found.offset == offset
        world.objects.reads = 0
        fresh = await opened(world.broker(NO_TAIL, block_cache_bytes=0))
        await result_of(fresh.read(40, 1))
        position = 40 * fresh.extents[0].size // 60
        assert all(at > position - (2 << 20) for _, at, _ in world.objects.ranges[-2:])

    play(story)


# Garbage


def collecting(world: World, clock: Clock) -> LeadingStore:
    return world.broker(
        clock=clock, merging=SMALL_MERGES, collecting=GarbageSettings(grace_ms=10 * MINUTE, orphan_ms=60 * MINUTE)
    )


def test_dead_objects_are_removed_after_the_grace_and_no_others() -> None:
    async def story(world: World) -> None:
        clock = Clock()
        store = collecting(world, clock)
        a, b = await opened(store, A), await opened(store, B)
        both = [append(a), append(b)]  # in one object
        for promise in both:
            await promise
        await write(a, 3)
        await a.delete_before(4)
        clock.now_ms += 9 * MINUTE
        assert await store.garbage.collect() == 0
        clock.now_ms += 2 * MINUTE
        assert await store.garbage.collect() == 3
        assert await store.garbage.collect() == 0
        assert list(world.objects.objects) == [b.extents[0].key]
        await b.delete_before(1)
        clock.now_ms += 11 * MINUTE
        assert await store.garbage.collect() == 1
        assert not world.objects.objects

    play(story)


def test_orphans_are_declared_dead_before_they_are_removed() -> None:
    async def story(world: World) -> None:
        clock = Clock()
        store = collecting(world, clock)
        log = await opened(store)
        await append(log)
        await world.objects.put("b/2023111400/orphan", [b"never committed"])
        await world.objects.put("s/topic/0/orphan", [b"never exchanged"])
        world.objects.modified_ms = dict.fromkeys(world.objects.objects, NOW_MS)
        assert await store.garbage.sweep() == 0, "they are too young"
        clock.now_ms += 61 * MINUTE
        assert await store.garbage.sweep() == 2
        assert await store.garbage.collect() == 0
        assert len(world.objects.objects) == 3
        clock.now_ms += 11 * MINUTE
        assert await store.garbage.collect() == 2
        assert list(world.objects.objects) == [log.extents[0].key]

    play(story)


def test_a_commit_of_an_object_that_was_swept_is_refused_and_its_producer_sends_again() -> None:
    async def story(world: World) -> None:
        clock = Clock()
        slow, sweeper = world.broker(), collecting(world, clock)
        log = await opened(slow, max_message_bytes=2 * AT_ONCE.bundle_bytes)
        world.objects.fail("put", Fault.HANG)
        first = append(log)
        await until(lambda: world.objects.hanging)
        second = append(log, bytes(AT_ONCE.bundle_bytes))  # a full bundle does not wait for the first one
        await until(lambda: len(world.objects.objects) == 1)  # uploaded, but the first is not
        world.objects.modified_ms = dict.fromkeys(world.objects.objects, NOW_MS)
        clock.now_ms += 61 * MINUTE
        assert await sweeper.garbage.sweep() == 1
        world.objects.release()
        assert (await first).base_offset == 0
        with pytest.raises(NotTheLeader):
            await second
        await until(lambda: log.fault is None)
        assert (await append(log)).base_offset == 1

    play(story)


@pytest.mark.parametrize("ahead_ms", [MOST_SKEW_MS + 1000, -MOST_SKEW_MS - 1000])
def test_a_broker_with_a_wrong_clock_removes_nothing(ahead_ms: int) -> None:
    async def story(world: World) -> None:
        clock = Clock()
        store = collecting(world, clock)
        log = await opened(store)
        await append(log)
        await log.delete_before(1)
        clock.now_ms += 11 * MINUTE
        world.database.clock = lambda: clock.now_ms - ahead_ms
        with pytest.raises(WrongClock, match=r"the clock of this machine is 601 s (ahead of|behind) the database's"):
            await store.garbage.collect()
        with pytest.raises(WrongClock):
            await store.garbage.sweep()
        assert len(world.objects.objects) == 1
        world.database.clock = clock
        assert await store.garbage.collect() == 1

    play(story)


def test_what_could_not_be_removed_is_removed_the_next_time() -> None:
    async def story(world: World) -> None:
        clock = Clock()
        store = collecting(world, clock)
        log = await opened(store)
        await append(log)
        await log.delete_before(1)
        clock.now_ms += 11 * MINUTE
        for fault in (Fault.UNAVAILABLE, Fault.REPLY_LOST):
            world.objects.fail("remove", fault)
            with pytest.raises(StorageUnavailable):
                await store.garbage.collect()
        assert await store.garbage.collect() == 1

    play(story)


# In the background


def test_upkeep_merges_and_removes_garbage_until_it_is_stopped() -> None:
    async def story(world: World) -> None:
        often = UpkeepSettings(merge_interval_ms=1, garbage_interval_ms=1, sweep_interval_ms=1)
        store = world.broker(
            upkeep=often,
            merging=SMALL_MERGES,
            collecting=GarbageSettings(grace_ms=-MINUTE, orphan_ms=60 * MINUTE),
        )
        log = await opened(store)
        store.start_upkeep(policy())
        await write(log, 20)
        await until(lambda: len(log.extents) < 8)
        await until(lambda: set(world.objects.objects) == {extent.key for extent in log.extents})
        await store.stop_upkeep()
        await write(log, 6)
        count = len(log.extents)
        await asyncio.sleep(0.02)
        assert len(log.extents) == count

    play(story)


@pytest.mark.parametrize("is_urgent", [False, True])
def test_merges_wait_while_producers_keep_the_store_busy_but_not_for_ever(is_urgent: bool) -> None:
    async def story(world: World) -> None:
        merging = replace(SMALL_MERGES, urgent_extents=4 if is_urgent else 5)
        store = world.broker(upkeep=UpkeepSettings(merge_interval_ms=1), merging=merging)
        size = AT_ONCE.uploads * AT_ONCE.bundle_bytes // 2
        a, b = await opened(store, A), await opened(store, B, max_message_bytes=2 * size)
        await write(a, 5)
        world.objects.fail("put", Fault.HANG)
        large = append(b, bytes(size))
        await until(lambda: world.objects.hanging)
        store.start_upkeep(policy())
        if is_urgent:
            await until(lambda: len(a.extents) == 1)
        else:
            await asyncio.sleep(0.05)
            assert len(a.extents) == 5
        world.objects.release()
        await large
        await until(lambda: len(a.extents) == 1)

    play(story)


def test_only_the_collector_removes_garbage() -> None:
    async def story(world: World) -> None:
        often = UpkeepSettings(merge_interval_ms=1, garbage_interval_ms=1, sweep_interval_ms=1)
        is_collector = False
        store = world.broker(
            upkeep=often, collecting=GarbageSettings(grace_ms=-MINUTE), is_collector=lambda: is_collector
        )
        log = await opened(store)
        await append(log)
        await log.delete_before(1)
        store.start_upkeep(policy())
        await asyncio.sleep(0.02)
        assert len(world.objects.objects) == 1
        is_collector = True
        await until(lambda: not world.objects.objects)

    play(story)


def test_the_failure_of_one_merge_does_not_stop_the_others() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, upkeep=UpkeepSettings(merge_interval_ms=1), merging=SMALL_MERGES)
        a, b = await opened(store, A), await opened(store, B)
        await write(a, 5)
        await write(b, 5)
        world.objects.lose(a.extents[2].key)
        store.start_upkeep(policy())
        await until(lambda: len(b.extents) == 1)
        assert len(a.extents) == 5

    play(story)


def policy() -> UpkeepPolicy:
    return UpkeepPolicy(
        interval_ms=lambda: 60_000,
        keep_from=lambda _: None,
        cleaner=CleanerSettings,
        cleaner_threads=0,
    )


# Opening


def test_a_log_that_is_opened_at_a_later_epoch_replaces_the_one_before() -> None:
    async def story(world: World) -> None:
        store = SharedStore(FakeOrder(world.database), world.objects, 1, writing=AT_ONCE)
        world.stores.append(store)
        world.database.create([A])
        assert world.database.take_over([A], 1) == [0]
        first = await opened_at(store, 0)
        await append(first)
        world.objects.fail("put", Fault.HANG)
        in_flight = append(first)
        await until(lambda: world.objects.hanging)
        assert world.database.take_over([A], 1) == [1]
        second = await opened_at(store, 1)
        assert second is not first
        with pytest.raises(NotTheLeader):
            await in_flight
        world.objects.release()
        assert (second.leader_epoch, second.end_offset) == (1, 1)
        assert (await append(second)).base_offset == 1

    play(story)


def test_who_does_not_lead_a_log_cannot_open_it() -> None:
    async def story(world: World) -> None:
        store = SharedStore(FakeOrder(world.database), world.objects, 1, writing=AT_ONCE)
        world.stores.append(store)
        with pytest.raises(NotTheLeader):
            await opened_at(store, 0)
        assert world.database.topics(), "it exists now, and has no leader"
        world.database.take_over([A], 2)
        with pytest.raises(NotTheLeader):
            await opened_at(store, 0)

    play(story)


async def opened_at(store: SharedStore, epoch: int) -> SharedLog:
    log: PartitionLog = await result_of(store.open(A, LogSettings(), NOW_MS, leader_epoch=LeaderEpoch(epoch)))
    assert isinstance(log, SharedLog)
    return log
