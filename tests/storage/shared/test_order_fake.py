"""The faults of the fake order, and what its `check` finds. `test_order_model.py` tests that it answers as PostgreSQL
does."""

import asyncio
from collections.abc import Callable

import pytest

from tests.support.fake_order import Call, FakeDatabase, FakeOrder, Moment, StillOnItsWay
from tests.support.orders import EXTENT_BYTES, led, new_topic, part
from tidelog.errors import OutcomeUnknown, StorageUnavailable
from tidelog.model import LeaderEpoch, PartitionIdentity
from tidelog.storage.shared.order import Leader, LogId

NOW = 1_700_000_000_000
FIRST = Leader(1, LeaderEpoch(0))


def failing(
    operation: str, moment: Moment, make: Callable[[], Exception]
) -> Callable[[Call], "asyncio.Future[None]"]:
    """A hook that fails the first such call."""
    left = [make()]

    def hook(call: Call) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if left and (call.operation, call.moment) == (operation, moment):
            future.set_exception(left.pop())
        else:
            future.set_result(None)
        return future

    return hook


async def one_log() -> tuple[FakeDatabase, FakeOrder, PartitionIdentity, LogId]:
    database = FakeDatabase()
    order = FakeOrder(database)
    partition = new_topic().partition(0)
    [log_id] = await led(order, [partition])
    return database, order, partition, log_id


@pytest.mark.parametrize(
    ("moment", "error", "takes_effect"),
    [
        (Moment.BEFORE, StorageUnavailable, False),
        (Moment.BEFORE, OutcomeUnknown, False),
        (Moment.AFTER, OutcomeUnknown, True),
    ],
)
def test_a_call_fails_before_or_after_it_takes_effect(
    moment: Moment, error: type[Exception], takes_effect: bool
) -> None:
    async def scenario() -> None:
        database, order, partition, log_id = await one_log()
        order.hook = failing("commit", moment, lambda: error("planned"))
        said = ("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW)
        with pytest.raises(error):
            await order.commit(*said)
        assert database.load(partition, FIRST).high_watermark == (10 if takes_effect else 0)
        assert await order.commit(*said) == {log_id}
        database.check()

    asyncio.run(scenario())


def test_a_commit_that_is_still_on_its_way_is_decided_before_later_commits_and_loads_of_its_broker() -> None:
    async def scenario() -> None:
        database, order, partition, log_id = await one_log()
        arrives = asyncio.Event()

        async def arrival() -> None:
            await arrives.wait()

        order.hook = failing("commit", Moment.BEFORE, lambda: StillOnItsWay(arrival()))
        said = ("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW)
        with pytest.raises(OutcomeUnknown):
            await order.commit(*said)
        loading = asyncio.ensure_future(order.load(partition, FIRST))
        again = asyncio.ensure_future(order.commit(*said))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not loading.done()
        assert not again.done()
        assert database.load(partition, FIRST).high_watermark == 0
        arrives.set()
        assert (await loading).high_watermark == 10
        assert await again == {log_id}
        await order.close()

    asyncio.run(scenario())


def test_a_commit_that_arrives_after_another_broker_took_over_is_refused() -> None:
    async def scenario() -> None:
        database, order, partition, log_id = await one_log()
        arrives = asyncio.Event()

        async def arrival() -> None:
            await arrives.wait()

        order.hook = failing("commit", Moment.BEFORE, lambda: StillOnItsWay(arrival()))
        with pytest.raises(OutcomeUnknown):
            await order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW)
        other = FakeOrder(database)
        [epoch] = await other.take_over([partition], 2)
        arrives.set()
        await order.close()
        assert (await other.load(partition, Leader(2, epoch))).high_watermark == 0
        assert await other.dead_objects(NOW + 1, 10) == ["b/1"]

    asyncio.run(scenario())


def test_a_broker_that_crashes_while_it_waits_leaves_all_or_nothing() -> None:
    async def scenario() -> None:
        for moment, high_watermark in ((Moment.BEFORE, 0), (Moment.AFTER, 10)):
            database, order, partition, log_id = await one_log()
            reached = asyncio.Event()

            async def hook(call: Call, moment: Moment = moment, reached: asyncio.Event = reached) -> None:
                if call.moment is moment:
                    reached.set()
                    await asyncio.Event().wait()

            order.hook = hook
            committing = asyncio.ensure_future(order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW))
            await reached.wait()
            committing.cancel()
            await asyncio.wait([committing])
            assert database.load(partition, FIRST).high_watermark == high_watermark
            order.hook = None
            assert await order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW) == {log_id}

    asyncio.run(scenario())


def test_the_check_finds_lost_offsets_dead_objects_in_use_and_logs_that_went_back() -> None:
    async def scenario() -> None:
        database, order, _, log_id = await one_log()
        for number in range(3):
            await order.commit(f"b/{number}", EXTENT_BYTES, 1, [part(log_id, number, number)], NOW)
        database.check()
        log = database._logs[log_id]
        gone = log.extents.pop(1)
        with pytest.raises(AssertionError, match=r"offset 1 of \d+ is lost"):
            database.check()
        log.extents.insert(1, gone)
        database._objects["b/2"].dead_since = NOW
        with pytest.raises(AssertionError, match="b/2 is dead"):
            database.check()
        database._objects["b/2"].dead_since = None
        log.epoch = LeaderEpoch(-1)
        with pytest.raises(AssertionError):
            database.check()

    asyncio.run(scenario())
