"""Compaction in the object store: which extents, what a failure leaves, what a new leader knows. What stays of the
records: tests/storage/test_compaction.py."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from tests.storage.shared.test_log import NO_TAIL, A, World, end, of_producer, opened, play, until
from tests.storage.shared.test_store import MINUTE, SMALL_MERGES, Clock
from tests.storage.test_compaction import RETENTION_MS, compacted, keyed, produced
from tests.support.fake_order import Call, FakeOrder, Moment
from tests.support.faulty_objects import Fault
from tests.support.logs import EPOCH, NOW_MS
from tidelog.errors import CorruptLog, OutcomeUnknown, StorageUnavailable
from tidelog.promise import result_of
from tidelog.records import compaction as rules
from tidelog.records.batch import BatchView, iterate
from tidelog.records.record import Record, decode
from tidelog.settings import CleanerSettings, LogSettings, StorageSettings
from tidelog.storage.compaction import Cancelled, Compacted, Throttle
from tidelog.storage.log import Appended, PartitionLog
from tidelog.storage.shared import compaction as compaction_module
from tidelog.storage.shared.compaction import CompactionPass, LogCompaction
from tidelog.storage.shared.garbage import GarbageSettings
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.merging import MergeSettings
from tidelog.storage.shared.order import Cleaned
from tidelog.storage.shared.store import SharedStore

T = TypeVar("T")
LATER = NOW_MS + 10**9  # nothing is young any more
SEVERAL = 24  # records, of which every second one stays; they take several exchanges
Latest = list[tuple[int, bytes | None, bytes | None]]


@pytest.fixture(autouse=True)
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which take a while to load, and have their own tests."""
    monkeypatch.setattr(compaction_module, "open_key_map", lambda memory, *_: rules.PlainKeyMap(memory))


async def in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)


def compaction_of(store: SharedStore, log: SharedLog) -> LogCompaction:
    [found] = store.compactor.compactions([log])
    return found


def begun(
    store: SharedStore, log: SharedLog, now_ms: int = LATER, cleaner: CleanerSettings | None = None
) -> CompactionPass | None:
    return compaction_of(store, log).begin_pass(now_ms, cleaner or CleanerSettings(), Throttle())


async def compact(
    store: SharedStore, log: SharedLog, now_ms: int = LATER, cleaner: CleanerSettings | None = None
) -> Compacted:
    current = begun(store, log, now_ms, cleaner)
    assert current is not None
    return await current.run(in_thread)


async def compacted_log(store: SharedStore, settings: LogSettings | None = None) -> SharedLog:
    log: PartitionLog = await result_of(store.open(A, settings or compacted(), NOW_MS))
    assert isinstance(log, SharedLog)
    return log


async def write(log: SharedLog, data: bytearray) -> Appended:
    return await result_of(log.append(data, now_ms=NOW_MS, leader_epoch=EPOCH, durable=True))


async def write_pairs(log: SharedLog, *pairs: tuple[bytes, bytes | None]) -> None:
    """Each in an extent of its own."""
    for pair in pairs:
        await write(log, keyed(pair))


async def batches(log: SharedLog, offset: int = 0, *, committed: bool = False) -> list[BatchView]:
    found: list[BatchView] = []
    while offset < log.end_offset:
        views = list(iterate((await result_of(log.read(offset, 300, committed=committed))).read()))
        assert views[0].header.last_offset >= offset
        found += views
        offset = views[-1].header.next_offset
    return found


async def latest(log: SharedLog, offset: int = 0) -> Latest:
    records: list[Record] = []
    for view in await batches(log, offset):
        records += [] if view.header.is_control else decode(view)
    return [(record.offset, record.key, record.value) for record in records]


# What stays


def test_the_last_value_of_each_key_stays_at_its_offset_and_every_offset_can_be_read() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write(log, keyed((b"a", b"1"), (b"b", b"1"), (b"a", b"2")))
        await write_pairs(log, (b"c", b"1"), (b"b", b"2"), (b"a", b"3"))
        done = await compact(store, log)
        assert (done.records, done.kept, done.keys) == (6, 3, 3)
        expected = [(3, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3")]
        assert await latest(log) == expected
        for offset in range(6):
            assert await latest(log, offset) == [one for one in expected if one[0] >= offset]
        assert (log.start_offset, log.end_offset, len(log.extents)) == (0, 6, 1)
        assert not compaction_of(store, log).measure(LATER).dirty_bytes
        await write_pairs(log, (b"c", b"2"))
        assert (await latest(await compacted_log(world.broker(NO_TAIL))))[-1] == (6, b"c", b"2")

    play(story)


def test_a_log_of_which_nothing_is_left_goes_on_and_its_end_is_still_reached() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, (b"a", b"1"), (b"a", None))
        await compact(store, log)
        assert await latest(log) == [(1, b"a", None)]
        await compact(store, log, LATER + RETENTION_MS)
        assert [(view.header.base_offset, view.header.record_count) for view in await batches(log)] == [(1, 0)]
        await write_pairs(log, (b"b", b"x"))
        await compact(store, log, LATER + RETENTION_MS)
        assert [view.header.base_offset for view in await batches(log)] == [2]
        assert [extent.base_offset for extent in (await log.load()).extents] == [2]

    play(story)


def test_a_tombstone_stays_for_its_retention_also_under_another_leader() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, (b"a", b"1"), (b"b", b"1"), (b"a", None), (b"c", b"1"))
        await compact(store, log)
        expected: Latest = [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
        assert await latest(log) == expected

        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        assert log.cleaned == Cleaned(4, LATER + RETENTION_MS)
        compaction = compaction_of(store, log)
        assert not compaction.measure(LATER + RETENTION_MS - 1).wanted
        assert compaction.measure(LATER + RETENTION_MS).urgent
        await compact(store, log, LATER + RETENTION_MS)
        assert await latest(log) == [(1, b"b", b"1"), (3, b"c", b"1")]
        assert not compaction.measure(LATER * 2).wanted

    play(story)


def test_the_newest_batch_of_a_producer_stays_and_a_new_leader_knows_its_repetitions() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store, compacted(max_lag_ms=1000))
        repeated = [produced(7, number, (b"a", b"%d" % number)) for number in range(3)]
        for data in repeated:
            await write(log, bytearray(data))
        await write_pairs(log, (b"a", b"last"))
        await compact(store, log, NOW_MS + 2000)
        assert await latest(log) == [(3, b"a", b"last")]
        assert [view.header.base_offset for view in await batches(log)] == [2, 3]
        new = await compacted_log(world.broker(NO_TAIL))
        for number, data in enumerate(repeated):
            again = await write(new, bytearray(data))
            assert (again.base_offset, again.duplicate) == (number, True)

    play(story)


def test_transactions_that_were_aborted_go_and_are_forgotten_when_their_markers_are_not_needed() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await of_producer_keyed(log, 0)
        await end(log, committed=False)
        await of_producer_keyed(log, 1)
        await end(log, committed=True)
        await write_pairs(log, (b"other", b"x"))
        await compact(store, log)
        assert [value for _, _, value in await latest(log)] == [b"1", b"x"]
        assert len((await log.load()).aborted) == 1, "the pass has seen its records"
        await compact(store, log, LATER + 1)
        assert not (await log.load()).aborted
        assert not log.aborted_between(0, log.end_offset)
        await compact(store, log, LATER + RETENTION_MS + 1)
        assert [view.header.is_control for view in await batches(log, committed=True)] == [False, True, False]

    async def of_producer_keyed(log: SharedLog, sequence: int) -> None:
        await write(log, produced(7, sequence, (b"k", b"%d" % sequence), transactional=True))

    play(story)


def test_an_open_transaction_is_left_alone_and_so_is_what_follows_it() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, (b"a", b"1"), (b"a", b"2"))
        await of_producer(log, 0)
        await write_pairs(log, (b"a", b"3"), (b"a", b"4"))
        await compact(store, log)
        assert log.cleaned.offset == 2
        assert [offset for offset, _, _ in await latest(log)] == [1, 2, 3, 4]

    play(story)


# Which extents


def test_the_newest_of_the_log_is_left_alone_until_it_is_large_or_old() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store, compacted(segment_bytes=2000))
        compaction = compaction_of(store, log)
        for number in range(10):
            await write_pairs(log, (b"%d" % number, b"x" * 400))
        found = compaction.cleanable(NOW_MS, log.settings.compaction)  # type: ignore[arg-type]
        assert [extent.base_offset for extent in found] == [0, 1, 2, 3, 4, 5]
        assert compaction.measure(NOW_MS).ratio == 1.0
        old = NOW_MS + log.settings.segment_ms + 1
        assert len(compaction.cleanable(old, log.settings.compaction)) == 10  # type: ignore[arg-type]
        log.configure(compacted(segment_bytes=2000, max_lag_ms=MINUTE))
        assert compaction.measure(NOW_MS + MINUTE + 1).urgent
        log.configure(compacted(segment_bytes=2000, min_lag_ms=MINUTE))
        assert not compaction.measure(NOW_MS + MINUTE - 1).wanted
        assert begun(store, log, NOW_MS + MINUTE - 1) is None
        assert compaction.measure(NOW_MS + MINUTE).wanted

    play(story)


def test_a_log_is_wanted_again_when_enough_of_it_is_dirty() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        compaction = compaction_of(store, log)
        for number in range(10):
            await write_pairs(log, (b"%d" % number, b"x" * 100))
        await compact(store, log)
        assert compaction.measure(LATER) == (0, 0.0, False, False)
        for number in range(9):
            await write_pairs(log, (b"%d" % number, b"y" * 100))
            assert not compaction.measure(LATER).wanted
        await write_pairs(log, (b"9", b"y" * 200))
        assert compaction.measure(LATER).wanted

    play(story)


def test_extents_that_do_not_change_stay_and_their_neighbours_become_full_segments() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=MergeSettings(steps=(500, 2000)))
        log = await compacted_log(store)
        for number in range(3):
            await write_pairs(log, (b"%d" % number, b"x" * 1500))
        untouched = [extent.key for extent in log.extents]
        for number in range(40):
            await write_pairs(log, (b"k%d" % (number % 10), b"%d" % number + b"x" * 100))
        expected = {key: value for _, key, value in await latest(log)}
        await compact(store, log)
        assert [extent.key for extent in log.extents][:3] == untouched
        assert len(log.extents) == 4
        assert {key: value for _, key, value in await latest(log)} == expected
        assert world.objects.puts == 43 + 1

    play(story)


def test_a_change_late_in_a_large_extent_keeps_what_comes_before_it() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=MergeSettings(fan_in=4))
        log = await compacted_log(store)
        for number in range(30):
            await write_pairs(log, (b"%d" % number, b"%d" % number * 50_000))
        await write_pairs(log, (b"28", b"new"))
        while await store.merger.merge(log):
            pass
        assert log.extents.size_bytes > 2 << 20
        expected = [one for one in await latest(log) if one[0] != 28]
        await compact(store, log)
        assert await latest(log) == expected
        assert len(log.extents) == 1

    play(story)


def test_keys_that_do_not_fit_take_several_passes_and_a_takeover_in_between_loses_none() -> None:
    async def story(world: World) -> None:
        expected: dict[bytes | None, bytes | None] = {}
        passes = 0
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        for round_ in range(2):
            for number in range(0, 100, 10):
                pairs = [(b"key %d" % n, b"%d" % round_) for n in range(number, number + 10)]
                await write(log, keyed(*pairs))
                expected.update(pairs)
        while compaction_of(store, log).measure(LATER).dirty_bytes:
            before = log.cleaned.offset
            await compact(store, log, cleaner=CleanerSettings(dedupe_buffer_bytes=5000))
            assert log.cleaned.offset > before
            store = world.broker(NO_TAIL)
            log = await compacted_log(store)
            passes += 1
        assert passes > 3
        assert [(key, value) for _, key, value in await latest(log)] == list(expected.items())

    play(story)


# Together with other work


def test_readers_go_on_with_the_old_objects_until_these_are_removed_and_then_read_the_new_ones() -> None:
    async def story(world: World) -> None:
        clock = Clock()
        store = world.broker(
            NO_TAIL, clock=clock, block_cache_bytes=0, collecting=GarbageSettings(grace_ms=10 * MINUTE)
        )
        log = await compacted_log(store)
        await write_pairs(log, *((b"k", b"%d" % number) for number in range(5)))
        world.objects.fail("read", Fault.HANG)
        held = log.read(1, 1000)
        await until(lambda: world.objects.hanging)
        await compact(store, log)
        assert len(world.objects.objects) == 6, "the old objects are there for the grace"
        clock.now_ms += 11 * MINUTE
        assert await store.garbage.collect() == 5
        world.objects.release()
        found = list(iterate((await result_of(held)).read()))
        assert [view.header.base_offset for view in found] == [4]
        assert list(world.objects.objects) == [extent.key for extent in log.extents]

    play(story)


def test_the_tail_does_not_bring_back_what_was_compacted_away() -> None:
    async def story(world: World) -> None:
        store = world.broker(StorageSettings(tail_cache_bytes=1 << 20))
        log = await compacted_log(store)
        await write_pairs(log, *((b"k", b"%d" % number) for number in range(5)))
        await compact(store, log)
        await write_pairs(log, (b"k", b"new"))
        assert [value for _, _, value in await latest(log)] == [b"4", b"new"]

    play(story)


def test_a_merge_waits_for_nothing_and_leaves_the_extents_of_a_pass_alone() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=SMALL_MERGES)
        log = await compacted_log(store, compacted(segment_bytes=1024))
        for number in range(20):
            await write_pairs(log, (b"%d" % (number % 3), b"x" * 100))
        current = begun(store, log, NOW_MS)
        assert current is not None
        assert begun(store, log, NOW_MS) is not None
        world.objects.fail("put", Fault.HANG)
        running = asyncio.ensure_future(current.run(in_thread))
        await until(lambda: world.objects.hanging)
        assert begun(store, log, NOW_MS) is None, "one pass at a time"
        assert 0 < log.compacted_before < 20
        behind = log.compacted_before
        kept = [extent for extent in log.extents if extent.base_offset < behind]
        while await store.merger.merge(log):
            pass
        assert [extent for extent in log.extents if extent.base_offset < behind] == kept
        assert len(log.extents) < 20, "what is behind the pass is merged"
        world.objects.release()
        await running
        assert log.compacted_before == 0
        assert {key: value for _, key, value in await latest(log)} == {b"%d" % n: b"x" * 100 for n in range(3)}

    play(story)


def test_a_pass_waits_for_the_merge_that_is_under_way() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=SMALL_MERGES)
        log = await compacted_log(store)
        await write_pairs(log, *((b"k", b"%d" % number) for number in range(6)))
        world.objects.fail("put", Fault.HANG)
        merging = asyncio.ensure_future(store.merger.merge(log))
        await until(lambda: world.objects.hanging)
        current = begun(store, log)
        assert current is not None
        running = asyncio.ensure_future(current.run(in_thread))
        await asyncio.sleep(0.01)
        assert world.objects.puts == 7
        world.objects.release()
        assert await merging
        await running
        assert await latest(log) == [(5, b"k", b"5")]

    play(story)


def test_a_pass_gives_way_to_a_deletion() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, *((b"k", b"%d" % number) for number in range(6)))
        world.objects.fail("put", Fault.HANG)
        running = asyncio.ensure_future(compact(store, log))
        await until(lambda: world.objects.hanging)
        await log.delete_before(3)
        world.objects.release()
        with pytest.raises(Cancelled):
            await running
        assert [offset for offset, _, _ in await latest(log, 3)] == [3, 4, 5]
        await compact(store, log)
        assert await latest(log, 3) == [(5, b"k", b"5")]

    play(story)


def test_retention_deletes_what_compaction_left_without_records() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=MergeSettings(steps=(100, 200)))
        log = await compacted_log(store, replace(compacted(max_lag_ms=1000), retention_ms=1000))
        await write(log, produced(7, 0, (b"a", b"1" * 100)))
        await write_pairs(log, (b"b", b"x" * 200), (b"a", b"2" * 200), (b"c", b"x" * 200))
        await compact(store, log, NOW_MS + 1500)
        assert log.extents[0].max_timestamp == -1
        moved = log.retain(NOW_MS + 2000)
        assert moved is not None
        assert await moved == 4

    play(story)


# Failures


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.REPLY_LOST])
@pytest.mark.parametrize("call", ["read", "put"])
def test_a_failure_of_the_object_store_at_any_step_leaves_the_log_as_it_was_or_will_be(
    call: str, fault: Fault
) -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=MergeSettings(steps=(300, 1000)))
        log = await compacted_log(store)
        for number in range(SEVERAL):
            await write_pairs(log, (b"%d" % (number // 2), b"%d" % number + b"x" * 150))
        expected = {key: value for _, key, value in await latest(log)}
        failures = 0
        for good in range(100):
            world.objects.fail_later(call, fault, good)
            try:
                await compact(store, log, LATER + good)
            except StorageUnavailable:
                failures += 1
            world.objects.fail_no_more(call)
            assert {key: value for _, key, value in await latest(log)} == expected
            world.database.check()
            if log.cleaned.offset:
                break
        assert failures > 1
        assert len(await latest(log)) == SEVERAL / 2
        needed = {extent.key for extent in log.extents}
        assert needed <= set(world.objects.objects)

    play(story)


@pytest.mark.parametrize(
    ("moment", "error"),
    [
        (Moment.BEFORE, StorageUnavailable),
        (Moment.BEFORE, OutcomeUnknown),
        (Moment.AFTER, OutcomeUnknown),
    ],
)
@pytest.mark.parametrize("operation", ["load", "replace", "keep_cleaned"])
def test_a_failure_of_the_database_at_any_step_leaves_the_log_as_it_was_or_will_be(
    operation: str, moment: Moment, error: type[Exception]
) -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=MergeSettings(steps=(300, 1000)))
        log = await compacted_log(store)
        for number in range(SEVERAL):
            await write_pairs(log, (b"%d" % (number // 2), b"%d" % number + b"x" * 150))
        expected = {key: value for _, key, value in await latest(log)}
        good = 0

        async def hook(call: Call) -> None:
            nonlocal good
            if call.operation == operation and call.moment is moment:
                good -= 1
                if good == -1:
                    raise error("the connection was lost")

        assert isinstance(store._order, FakeOrder)
        store._order.hook = hook
        for attempt in range(30):
            good = attempt
            try:
                await compact(store, log, LATER + attempt)
            except StorageUnavailable:
                assert error is StorageUnavailable
            assert [extent[:5] for extent in log.extents] == [
                extent[:5] for extent in world.database.load(A, log.leader).extents
            ]
            assert {key: value for _, key, value in await latest(log)} == expected
            world.database.check()
            if log.cleaned.offset:
                break
        assert len(await latest(log)) == SEVERAL / 2

    play(story)


@pytest.mark.parametrize("steps", range(1, 40, 3))
def test_a_pass_that_is_stopped_anywhere_leaves_memory_and_database_alike(steps: int) -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, merging=MergeSettings(steps=(300, 1000)))
        log = await compacted_log(store)
        for number in range(SEVERAL):
            await write_pairs(log, (b"%d" % (number // 2), b"%d" % number + b"x" * 150))
        expected = {key: value for _, key, value in await latest(log)}
        current = begun(store, log)
        assert current is not None

        async def at_once(work: Callable[[], T]) -> T:
            return work()

        running = asyncio.ensure_future(current.run(at_once))
        for _ in range(steps):
            await asyncio.sleep(0)
        current.halt()
        try:
            await running
        except Cancelled:
            pass
        await until(lambda: not log._changing.locked())
        assert list(log.extents) == [
            extent._replace(producers=b"") for extent in world.database.load(A, log.leader).extents
        ]
        assert {key: value for _, key, value in await latest(log)} == expected
        assert log.compacted_before == 0
        await compact(store, log)
        assert {key: value for _, key, value in await latest(log)} == expected

    play(story)


def test_a_pass_of_a_leader_that_was_replaced_changes_nothing() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, *((b"k", b"%d" % number) for number in range(5)))
        world.objects.fail("put", Fault.HANG)
        running = asyncio.ensure_future(compact(store, log))
        await until(lambda: world.objects.hanging)
        new = await compacted_log(world.broker(NO_TAIL))
        world.objects.release()
        with pytest.raises(Cancelled):
            await running
        assert len(new.extents) == 5
        assert len(await latest(new)) == 5
        assert new.cleaned == Cleaned()

    play(story)


def test_damage_stops_the_pass_and_changes_nothing() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, *((b"k", b"%d" % number * 30) for number in range(5)))
        extents = list(log.extents)
        world.objects.damage(extents[3].key, extents[3].position + 80)
        with pytest.raises(CorruptLog, match="CRC"):
            await compact(store, log)
        assert list(log.extents) == extents
        assert log.cleaned == Cleaned()

    play(story)


def test_a_log_that_is_released_stops_its_pass() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, *((b"k", b"%d" % number) for number in range(5)))
        world.objects.fail("read", Fault.HANG, times=5)
        running = asyncio.ensure_future(compact(store, log))
        await until(lambda: world.objects.hanging)
        store.release([A])
        world.objects.release()
        with pytest.raises(Cancelled):
            await running
        log = await opened(world.broker(NO_TAIL))
        assert len(await latest(log)) == 5

    play(story)
