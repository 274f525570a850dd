"""A log whose memory and database can differ: refused commits, new leaders, missing objects. What every log does:
tests/storage/test_partition_log.py."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.support.fake_order import Call, FakeDatabase, FakeOrder, Moment
from tests.support.faulty_objects import Fault, MemoryObjects
from tests.support.logs import EPOCH, NOW_MS, batch, stored
from tests.support.shared_store import AT_ONCE, LeadingStore
from tidelog.errors import CorruptLog, LogClosed, StorageError, StorageUnavailable
from tidelog.model import PartitionIdentity, ProducerEpoch, ProducerId
from tidelog.promise import Promise, result_of
from tidelog.records.batch import iterate
from tidelog.records.record import decode
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.log import Appended, PartitionLog
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.merging import MergeSettings
from tidelog.storage.shared.objects import ObjectMissing
from tidelog.storage.shared.order import NotTheLeader
from tidelog.storage.shared.store import SharedStore

A, B = stored("a"), stored("b")
NO_TAIL = StorageSettings(tail_cache_bytes=0)
Story = Callable[["World"], Coroutine[Any, Any, None]]


class World:
    """Brokers that share a database and an object store."""

    def __init__(self) -> None:
        self.database = FakeDatabase()
        self.objects = MemoryObjects()
        self.stores: list[SharedStore] = []
        self.loads_fail = 0

    def broker(self, settings: StorageSettings | None = None, **more: Any) -> LeadingStore:
        order = FakeOrder(self.database, self._hook)
        self.database.clock = more.get("clock", self.database.clock)
        store = LeadingStore(order, self.objects, len(self.stores) + 1, settings, AT_ONCE, **more)
        self.stores.append(store)
        return store

    async def _hook(self, call: Call) -> None:
        if call.operation == "load" and call.moment is Moment.BEFORE and self.loads_fail:
            self.loads_fail -= 1
            raise StorageUnavailable("the database is down")


def play(story: Story) -> None:
    async def main() -> None:
        world = World()
        try:
            await story(world)
            world.database.check()
        finally:
            world.objects.release()
            for store in world.stores:
                await store.close()

    asyncio.run(asyncio.wait_for(main(), 60))


async def opened(store: SharedStore, partition: PartitionIdentity = A, **settings: Any) -> SharedLog:
    log: PartitionLog = await result_of(store.open(partition, LogSettings(**settings), NOW_MS))
    assert isinstance(log, SharedLog)
    return log


def append(log: SharedLog, value: bytes = b"x", **more: Any) -> Promise[Appended]:
    promise = log.append(batch(value, **more), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
    assert isinstance(promise, Promise)
    return promise


def of_producer(log: SharedLog, sequence: int, value: bytes = b"x") -> Promise[Appended]:
    return append(log, value, producer_id=7, producer_epoch=0, sequence=sequence, transactional=True)


async def end(log: SharedLog, *, committed: bool = True) -> Appended:
    return await result_of(
        log.end_transaction(
            ProducerId(7),
            ProducerEpoch(0),
            committed=committed,
            coordinator_epoch=3,
            now_ms=NOW_MS,
            leader_epoch=EPOCH,
        )
    )


async def values(log: SharedLog, offset: int = 0) -> list[bytes | None]:
    found: list[bytes | None] = []
    while offset < log.end_offset:
        for view in iterate((await result_of(log.read(offset, 500))).read()):
            found += [record.value for record in decode(view) if not view.header.is_control]
            offset = view.header.next_offset
    return found


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.001)


# Refused commits


def test_after_a_refused_commit_everything_in_flight_fails_and_other_logs_do_not() -> None:
    async def story(world: World) -> None:
        store = world.broker()
        a, b = await opened(store, A), await opened(store, B)
        await append(a)
        world.database.take_over([A], 9)
        world.objects.fail("put", Fault.HANG)
        first, other = append(a), append(b)
        await until(lambda: world.objects.hanging)
        second = append(a)
        world.objects.release()
        assert (await other).base_offset == 0
        for promise in (first, second):
            with pytest.raises(NotTheLeader) as refused:
                await promise
            assert (refused.value.kafka_code, refused.value.retriable) == (6, True)
        assert a.end_offset == 1
        await until(lambda: "at epoch" in str(a.fault))
        with pytest.raises(NotTheLeader):
            append(a)
        with pytest.raises(NotTheLeader):
            a.delete_before(1)
        assert await values(a) == [b"x"], "what was committed stays true"
        assert (await append(b)).base_offset == 1

    play(story)


def test_a_leader_whose_object_was_declared_dead_loads_its_state_and_goes_on() -> None:
    async def story(world: World) -> None:
        log = await opened(world.broker())
        await of_producer(log, 0)
        world.objects.fail("put", Fault.REPLY_LOST)  # pauses before the next attempt
        refused = of_producer(log, 1)

        async def declare(call: Call) -> None:
            if call.operation == "commit" and call.moment is Moment.BEFORE and not world.database.topics()[0][2]:
                world.database.declare_dead([str(call.arguments[0])], NOW_MS)

        order = log._order
        assert isinstance(order, FakeOrder)
        order.hook = declare
        with pytest.raises(NotTheLeader):
            await refused
        order.hook = None
        await until(lambda: log.fault is None)
        assert log.open_transactions() == {7: 0}
        assert (await of_producer(log, 1)).base_offset == 1
        assert len(await values(log)) == 2

    play(story)


def test_a_log_is_loaded_again_when_the_database_is_back() -> None:
    async def story(world: World) -> None:
        log = await opened(world.broker())
        await append(log)
        world.loads_fail = 3
        log.refused(_some_part(log), StorageError("the commit was refused"))
        with pytest.raises(StorageError):
            append(log)
        await until(lambda: log.fault is None)
        assert world.loads_fail == 0
        assert (await append(log)).base_offset == 1

    play(story)


def test_a_database_that_lost_commits_closes_the_log_for_good() -> None:
    async def story(world: World) -> None:
        log = await opened(world.broker())
        await append(log)
        row = world.database._of(A)
        row.extents, row.high_watermark, row.epochs = [], 0, []
        world.database._objects.clear()
        with pytest.raises(NotTheLeader):
            await append(log)
        await until(lambda: "commits were lost" in str(log.fault))
        with pytest.raises(StorageError, match="commits were lost"):
            append(log)
        world.database._seen.clear()

    play(story)


def _some_part(log: SharedLog) -> Any:
    return log._writer.part_of(log, log.end_offset)


def test_what_is_in_flight_when_the_log_is_released_fails() -> None:
    async def story(world: World) -> None:
        store = world.broker()
        log = await opened(store)
        world.objects.fail("put", Fault.HANG)
        promise = append(log)
        await until(lambda: world.objects.hanging)
        store.release([A])
        with pytest.raises(NotTheLeader):
            await promise
        with pytest.raises(LogClosed):
            append(log)
        world.objects.release()
        again = await opened(store)
        assert again.end_offset == 0, "its bundle was not committed any more"
        assert (await append(again)).base_offset == 0

    play(story)


# Transactions


def test_the_stable_offset_and_open_transactions_are_those_of_committed_batches() -> None:
    async def story(world: World) -> None:
        log = await opened(world.broker())
        await append(log)
        world.objects.fail("put", Fault.HANG)
        first = of_producer(log, 0)
        await until(lambda: world.objects.hanging)
        assert (log.last_stable_offset, log.open_transactions()) == (1, {})
        world.objects.release()
        await first
        assert (log.last_stable_offset, log.open_transactions()) == (1, {7: 1})
        world.objects.fail("put", Fault.HANG)
        ending = asyncio.ensure_future(end(log, committed=False))
        await until(lambda: world.objects.hanging)
        again = asyncio.ensure_future(end(log, committed=False))
        await asyncio.sleep(0)
        assert (log.last_stable_offset, log.open_transactions(), again.done()) == (1, {7: 1}, False)
        world.objects.release()
        assert not (await ending).duplicate
        assert (await again).duplicate
        assert (log.last_stable_offset, log.open_transactions()) == (3, {})
        assert [each.first_offset for each in (await result_of(log.read(1, 1000, committed=True))).aborted] == [1]

    play(story)


# A new leader


def test_a_new_leader_knows_producers_transactions_and_data_of_the_old_one() -> None:
    async def story(world: World) -> None:
        old = await opened(world.broker())
        await of_producer(old, 0, b"aborted")
        await end(old, committed=False)
        await of_producer(old, 1, b"open")
        new = await opened(world.broker(NO_TAIL))
        assert (new.end_offset, new.last_stable_offset, new.open_transactions()) == (3, 2, {7: 2})
        assert new.aborted_between(0, 3) == old.aborted_between(0, 3)
        repeated = new.append(
            batch(b"open", producer_id=7, producer_epoch=0, sequence=1, transactional=True),
            now_ms=NOW_MS,
            leader_epoch=EPOCH,
            durable=True,
        )
        assert isinstance(repeated, Appended)
        assert (repeated.base_offset, repeated.duplicate) == (2, True)
        assert await values(new) == [b"aborted", b"open"]
        with pytest.raises(NotTheLeader):
            await append(old)
        assert (await end(new)).base_offset == 3

    play(story)


def test_a_new_leader_knows_the_producers_of_deleted_records() -> None:
    async def story(world: World) -> None:
        old = await opened(world.broker())
        for sequence in range(3):
            await append(old, b"%d" % sequence, producer_id=7, producer_epoch=0, sequence=sequence)
        await old.delete_before(3)
        new = await opened(world.broker())
        repeated = new.append(
            batch(b"1", producer_id=7, producer_epoch=0, sequence=1), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True
        )
        assert isinstance(repeated, Appended)
        assert (repeated.base_offset, repeated.duplicate) == (1, True)

    play(story)


# Reading objects


def test_only_reads_of_a_missing_object_fail() -> None:
    async def story(world: World) -> None:
        log = await opened(world.broker(NO_TAIL, block_cache_bytes=0))
        for number in range(3):
            await append(log, b"%d" % number)
        world.objects.lose(log.extents[1].key)
        assert (await result_of(log.read(0, 1))).size
        with pytest.raises(ObjectMissing):
            await result_of(log.read(1, 1))
        assert await values(log, 2) == [b"2"]

    play(story)


def test_damage_is_told_with_object_and_position() -> None:
    async def story(world: World) -> None:
        log = await opened(world.broker(NO_TAIL, block_cache_bytes=0))
        await append(log)
        world.objects.damage(log.extents[0].key, 16)
        with pytest.raises(CorruptLog, match=log.extents[0].key):
            await result_of(log.read(0, 1000))

    play(story)


def test_a_read_that_meets_an_exchange_begins_again() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL, block_cache_bytes=0, merging=MergeSettings(fan_in=3))
        log = await opened(store)
        for number in range(5):
            await append(log, b"%d" % number)
        world.objects.fail("read", Fault.HANG, times=5)
        reading = asyncio.ensure_future(values(log))
        await until(lambda: world.objects.hanging)
        old = [extent.key for extent in log.extents]
        world.objects._faults["read"].clear()
        assert await store.merger.merge(log)
        for key in old:
            world.objects.lose(key)
        world.objects.release()
        assert await reading == [b"%d" % number for number in range(5)]

    play(story)


def test_many_small_extents_are_read_with_one_call_and_large_ones_in_pieces() -> None:
    async def story(world: World) -> None:
        log = await opened(world.broker(NO_TAIL))
        for number in range(40):
            await append(log, b"%d" % number)
        result = await result_of(log.read(5, 1 << 20))
        assert len(list(iterate(result.read()))) >= 30
        await append(log, b"x" * 500_000)
        for number in range(8):
            await append(log, b"%d" % number * 200_000)
        assert len(await values(log, 40)) == 9

    play(story)


def test_readers_of_logs_whose_batches_are_in_one_object_do_not_confuse_each_other() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        a, b = await opened(store, A), await opened(store, B)
        for promise in [append(log, b"%d" % number) for log in (a, b) for number in range(3)]:
            await promise
        assert a.extents[0].key == b.extents[0].key
        for offset in range(3):
            for log in (a, b):
                (view,) = iterate((await result_of(log.read(offset, 1))).read())
                assert view.header.base_offset == offset

    play(story)


def test_aborted_transactions_are_told_even_if_their_records_are_deleted_while_they_are_read() -> None:
    async def story(world: World) -> None:
        log = await opened(world.broker(NO_TAIL, block_cache_bytes=0))
        await of_producer(log, 0)
        await end(log, committed=False)
        await append(log)
        world.objects.fail("read", Fault.HANG, times=3)
        reading = log.read(0, 1000, committed=True)
        await until(lambda: world.objects.hanging)
        await log.delete_before(2)
        world.objects.release()
        assert [each.first_offset for each in (await result_of(reading)).aborted] == [0]

    play(story)
