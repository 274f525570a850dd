"""How appends become bundles and commits. What happens to them when anything fails: tests/simulation."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from tests.support.fake_order import Call, FakeOrder, Moment
from tests.support.faulty_objects import Fault, MemoryObjects
from tests.support.logs import EPOCH, NOW_MS, batch, stored
from tests.support.shared_store import AT_ONCE, LeadingStore
from tidelog.errors import InvalidSettings, OutcomeUnknown, StorageUnavailable
from tidelog.model import PartitionIdentity
from tidelog.promise import Promise
from tidelog.settings import LogSettings
from tidelog.storage.log import Appended
from tidelog.storage.shared import writer as writer_module
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.order import NotTheLeader
from tidelog.storage.shared.writer import AppendTimedOut, BufferFull, WriterSettings

A, B = stored("a"), stored("b")
SIZE = len(batch(b"x"))
EACH_IS_FULL = WriterSettings(linger_ms=0, bundle_bytes=1)
"""Each append is a bundle of its own, and they are uploaded side by side."""


class World:
    """A store over fakes, in which tests decide what fails."""

    def __init__(self, writing: WriterSettings = AT_ONCE) -> None:
        self.objects = MemoryObjects()
        self.order = FakeOrder(hook=self._hook)
        self.commits = 0
        self.before_commit: list[Exception] = []
        self.after_commit: list[Exception] = []
        self.store = LeadingStore(self.order, self.objects, 1, writing=writing)

    async def _hook(self, call: Call) -> None:
        if call.operation != "commit":
            return
        faults = self.before_commit if call.moment is Moment.BEFORE else self.after_commit
        self.commits += call.moment is Moment.BEFORE
        if faults:
            raise faults.pop(0)

    async def open(self, partition: PartitionIdentity = A) -> SharedLog:
        opening = self.store.open(partition, LogSettings(), NOW_MS)
        log = await opening if isinstance(opening, Promise) else opening
        assert isinstance(log, SharedLog)
        return log


def append(log: SharedLog, value: bytes = b"x", **more: Any) -> Promise[Appended]:
    promise = log.append(batch(value, **more), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
    assert isinstance(promise, Promise)
    return promise


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.001)


Story = Callable[[World], Coroutine[Any, Any, None]]


def play(story: Story, writing: WriterSettings = AT_ONCE) -> None:
    async def main() -> None:
        world = World(writing)
        try:
            await story(world)
            world.order.database.check()
        finally:
            world.objects.release()
            await world.store.close()

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_FIRST_PAUSE_S", 0.001)


def test_what_is_appended_in_one_iteration_of_the_loop_is_one_object_and_one_commit() -> None:
    async def story(world: World) -> None:
        a, b = await world.open(A), await world.open(B)
        promises = [append(log) for log in (a, b, a, b, a)]
        assert [(await each).base_offset for each in promises] == [0, 0, 1, 1, 2]
        assert (world.objects.puts, world.commits) == (1, 1)

    play(story)


def test_a_bundle_waits_for_others_until_it_is_due() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        first = append(log)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not first.is_kept
        second = append(log)
        await first
        await second
        assert world.objects.puts == 1

    play(story, WriterSettings(linger_ms=50))


def test_a_bundle_that_is_large_enough_waits_for_nobody() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        promises = [append(log) for _ in range(6)]
        assert [(await each).base_offset for each in promises] == list(range(6))
        assert world.objects.puts == 3

    play(story, WriterSettings(linger_ms=60_000, bundle_bytes=2 * SIZE))


def test_readers_see_nothing_before_the_commit() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.objects.fail("put", Fault.HANG)
        told: list[int] = []
        log.on_progress = told.append
        promise = append(log)
        await until(lambda: world.objects.hanging)
        assert (log.end_offset, told) == (0, [])
        world.objects.release()
        await promise
        assert (log.end_offset, told) == (1, [SIZE])

    play(story)


def test_commits_are_made_in_order_even_if_uploads_end_out_of_order() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.objects.fail("put", Fault.HANG)
        first = append(log)
        await until(lambda: world.objects.hanging)
        second = append(log)
        await until(lambda: len(world.objects.objects) == 1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (world.commits, second.is_kept) == (0, False)
        world.objects.release()
        assert (await first).base_offset == 0
        assert (await second).base_offset == 1

    play(story, EACH_IS_FULL)


def test_while_a_bundle_is_in_flight_the_next_is_gathered() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.objects.fail("put", Fault.HANG)
        waiting = [append(log)]
        await until(lambda: world.objects.hanging)
        for _ in range(10):
            waiting.append(append(log))
            await asyncio.sleep(0)
        assert world.objects.puts == 1
        world.objects.release()
        assert [(await each).base_offset for each in waiting] == list(range(11))
        assert world.objects.puts == 2

    play(story)


def test_no_more_full_bundles_are_uploaded_than_there_are_slots() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.objects.fail("put", Fault.HANG, times=2)
        waiting = []
        for _ in range(2):
            waiting.append(append(log))
            await until(lambda: world.objects.hanging == len(waiting))
        waiting += [append(log) for _ in range(10)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert world.objects.puts == 2
        world.objects.release()
        assert [(await each).base_offset for each in waiting] == list(range(12))
        assert world.objects.puts == 12

    play(story, replace(EACH_IS_FULL, uploads=2))


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.REPLY_LOST])
def test_a_failed_upload_is_tried_again_under_another_key(fault: Fault) -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.objects.fail("put", fault, times=3)
        assert (await append(log)).base_offset == 0
        assert world.objects.puts == 4
        assert len(world.objects.objects) == (4 if fault is Fault.REPLY_LOST else 1)

    play(story)


def test_a_lost_reply_is_answered_by_saying_the_same_again() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.after_commit += [OutcomeUnknown("the reply was lost"), OutcomeUnknown("again")]
        assert (await append(log)).base_offset == 0
        assert (log.end_offset, world.commits, world.objects.puts) == (1, 3, 1)
        assert (await append(log)).base_offset == 1

    play(story)


def test_a_database_that_is_down_is_asked_until_it_answers() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.before_commit += [StorageUnavailable("down")] * 5
        assert (await append(log)).base_offset == 0
        assert (world.commits, world.objects.puts) == (6, 1)

    play(story)


def test_beyond_the_bound_appends_are_refused_until_there_is_room() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.objects.fail("put", Fault.HANG)
        waiting = [append(log) for _ in range(3)]
        with pytest.raises(BufferFull) as refused:
            append(log)
        assert (refused.value.kafka_code, refused.value.retriable) == (7, True)
        await until(lambda: world.objects.hanging)
        with pytest.raises(BufferFull):
            append(log)
        world.objects.release()
        assert [(await each).base_offset for each in waiting] == [0, 1, 2]
        assert (await append(log)).base_offset == 3

    play(story, WriterSettings(linger_ms=0, buffer_bytes=3 * SIZE))


def test_a_batch_that_is_larger_than_the_bound_goes_alone() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        assert (await append(log, b"x" * 1000)).base_offset == 0

    play(story, WriterSettings(linger_ms=0, buffer_bytes=10, bundle_bytes=10))


def test_an_append_that_takes_too_long_fails_as_unknown_and_may_be_committed_later() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        world.objects.fail("put", Fault.HANG)
        with pytest.raises(AppendTimedOut) as late:
            await append(log, producer_id=7, producer_epoch=0, sequence=0)
        assert late.value.kafka_code == 7
        with pytest.raises(AppendTimedOut):
            append(log, producer_id=7, producer_epoch=0, sequence=0)
        world.objects.release()
        await until(lambda: log.end_offset == 1)
        repeated = log.append(
            batch(b"x", producer_id=7, producer_epoch=0, sequence=0), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True
        )
        assert isinstance(repeated, Appended)
        assert (repeated.base_offset, repeated.duplicate, log.end_offset) == (0, True, 1)

    play(story, WriterSettings(linger_ms=0, append_timeout_ms=20))


def test_what_cannot_be_committed_before_the_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.storage.shared.store._PATIENCE_S", 0.02)

    async def story(world: World) -> None:
        a, b = await world.open(A), await world.open(B)
        await append(a)
        world.objects.fail("put", Fault.HANG)
        promise = append(b)
        assert list(await world.store.close()) == [B.name]
        with pytest.raises(NotTheLeader):
            await promise

    play(story)


def test_a_bug_in_a_delivery_fails_its_appends_and_not_the_next_ones() -> None:
    async def story(world: World) -> None:
        log = await world.open()
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        world.before_commit.append(ZeroDivisionError("a bug"))
        with pytest.raises(Exception, match="a bug"):
            await append(log)
        assert len(reported) == 1
        await until(lambda: log.fault is None)
        assert (await append(log)).base_offset == 0

    play(story)


def test_all_wrong_settings_are_told_together() -> None:
    with pytest.raises(InvalidSettings) as wrong:
        WriterSettings(linger_ms=-1, uploads=0)
    assert len(wrong.value.problems) == 2
