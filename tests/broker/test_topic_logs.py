"""Which directories belong to topics: taken over from earlier versions, told apart at a start, removed when they were
deleted. Crashes at every step, of the file system and of the metadata store."""

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest
import structlog

from tests.support.logs import NOW_MS, append, batch, read_records, values
from tests.support.memory_files import CrashError, MemoryFiles, Mood
from tidelog.broker.configs import BrokerConfig
from tidelog.broker.topic_logs import LAYOUT, TopicLogs, identity
from tidelog.broker.topics import Topic
from tidelog.metadata.rows import ClusterRow, DeletedTopicRow, Row
from tidelog.metadata.store import Change, Delete, Put, R
from tidelog.model import TopicPartition
from tidelog.promise import Promise
from tidelog.settings import LogSettings
from tidelog.storage.local.layout import topic_directory
from tidelog.storage.local.store import LocalStore

CONFIG = BrokerConfig({}).topic_config({})


def topic(name: str, number: int = 0) -> Topic:
    return Topic(name, bytes([number]) * 16, 2, NOW_MS, {}, CONFIG)


A, B = topic("a", 1), topic("b.c", 2)


class Rows:
    """A metadata store whose writes are durable when they return, and steps of the same world as those of files."""

    def __init__(self, files: MemoryFiles, rows: dict[tuple[Any, ...], Row]) -> None:
        self.rows = rows
        self._files = files

    def load(self, table: type[R]) -> Promise[list[R]]:
        loaded: Promise[list[R]] = Promise()
        loaded.settle([row for row in self.rows.values() if isinstance(row, table)])
        return loaded

    def write(self, changes: Sequence[Change], _fence: Any = None) -> Promise[None]:
        self._files.step("write", "metadata")
        for change in changes:
            if isinstance(change, Put):
                key = [getattr(change.row, name) for name in change.row.KEY]
                self.rows[type(change.row), *key] = change.row
            else:
                assert isinstance(change, Delete)
                self.rows.pop((change.table, *change.key), None)
        written: Promise[None] = Promise()
        written.settle(None)
        return written

    async def close(self) -> None:
        pass


class World:
    def __init__(self, files: MemoryFiles, rows: dict[tuple[Any, ...], Row] | None = None) -> None:
        self.files = files
        self.rows = {} if rows is None else dict(rows)
        self.store = LocalStore("/data", files=files)
        self.topic_logs = TopicLogs(self.store, cast("Any", Rows(files, self.rows)))

    def fill(self, *topics: Topic) -> None:
        for each in topics:
            for number in range(each.partitions):
                name = TopicPartition(each.name, number)
                log = self.store.open(identity(each).partition(number), LogSettings(), NOW_MS)
                append(log, batch(str(name).encode()), durable=False)
                log.flush()

    def read(self, each: Topic) -> list[bytes | None]:
        logs = [self.store.open(identity(each).partition(n), LogSettings(), NOW_MS) for n in range(each.partitions)]
        return [value for log in logs for value in values(read_records(log))]

    def name_as_earlier_versions(self, *topics: Topic) -> None:
        for each in topics:
            self.store.release(identity(each).partition(number) for number in range(each.partitions))
            self.files.rename(f"/data/logs/{topic_directory(identity(each))}", f"/data/logs/{each.name}")
        self.files.sync_directory("/data/logs")
        self.rows.pop((ClusterRow, LAYOUT), None)

    async def removed(self) -> None:
        """Waits; a crash in there is the world's."""
        for result in await asyncio.gather(*self.topic_logs._removing, return_exceptions=True):
            if isinstance(result, CrashError):
                raise result

    def after_crash(self, mood: Mood, seed: int) -> "World":
        return World(self.files.after_crash(mood, random.Random(seed)), self.rows)

    def end(self) -> None:
        """Its threads; the files are as they are."""
        group = self.store._group
        assert group is not None
        for executor in (self.store._maker, self.store._remover, group._executor):
            if executor is not None:
                executor.shutdown()
        group._rounds.put(None)
        group._thread.join()


def contents(each: Topic) -> list[bytes]:
    return [f"{each.name}-{number}".encode() for number in range(each.partitions)]


def crash_everywhere(
    begin: Callable[[World], None],
    work: Callable[[World], Awaitable[None]],
    check: Callable[[World], Awaitable[None]],
) -> int:
    """Does `work` after `begin`, crashed at each of its steps in turn, in every mood, and has the world afterwards
    checked. How many steps there are."""

    async def one(crash_at: int, mood: Mood) -> bool:
        world = World(MemoryFiles())
        begin(world)
        world.files.crash_at = world.files.steps + crash_at
        try:
            await work(world)
        except CrashError:
            pass
        finally:
            world.end()
        crashed = world.files.crashed
        after = world.after_crash(mood, crash_at)
        try:
            await check(after)
        finally:
            after.end()
        return crashed

    steps = 0
    while True:
        crashed = [asyncio.run(one(steps + 1, mood)) for mood in Mood]
        if not any(crashed):
            return steps
        steps += 1


def test_logs_of_an_earlier_version_are_taken_over_whatever_crashes_in_between() -> None:
    def begin(world: World) -> None:
        world.fill(A, B)
        world.name_as_earlier_versions(A, B)

    async def work(world: World) -> None:
        await world.topic_logs.adopt([A, B])

    async def check(world: World) -> None:
        await world.topic_logs.adopt([A, B])
        assert world.read(A) == contents(A)
        assert world.read(B) == contents(B)
        assert sorted(world.store.topic_directories()) == sorted(topic_directory(identity(each)) for each in (A, B))
        assert (ClusterRow, LAYOUT) in world.rows

    assert crash_everywhere(begin, work, check) == 4, "two renames, a sync, and the row that says that it is done"


def test_what_is_named_like_a_topic_is_nobodys_once_the_logs_were_taken_over() -> None:
    """A topic that was created after that, and crashed before its directories were made, must not get old records."""

    async def run() -> None:
        world = World(MemoryFiles())
        world.fill(A)
        world.name_as_earlier_versions(A)
        await world.topic_logs.adopt([])  # an earlier version could not remove what it deleted
        again = topic("a", 9)
        await world.topic_logs.adopt([again])
        assert world.read(again) == []
        with structlog.testing.capture_logs() as logs:
            await world.topic_logs.clear([again])
        assert [entry["directory"] for entry in logs] == ["a"]
        world.end()

    asyncio.run(run())


def test_both_names_at_once_are_no_reason_to_lose_either() -> None:
    async def run() -> None:
        world = World(MemoryFiles())
        world.fill(A)
        world.name_as_earlier_versions(A)
        world.store.create_now([identity(A).partition(0)], NOW_MS)
        await world.topic_logs.adopt([A])
        assert sorted(world.store.topic_directories()) == ["a", topic_directory(identity(A))]
        world.end()

    asyncio.run(run())


def test_a_deleted_topic_is_gone_after_the_next_start_whatever_crashes_in_between() -> None:
    def begin(world: World) -> None:
        world.fill(A, B)
        world.store.release(identity(A).partition(number) for number in range(A.partitions))
        world.rows[DeletedTopicRow, A.topic_id] = DeletedTopicRow(A.topic_id, A.name)
        world.rows[ClusterRow, LAYOUT] = ClusterRow(LAYOUT, "topic-id")

    async def work(world: World) -> None:
        world.topic_logs.remove(identity(A))
        await world.removed()

    async def check(world: World) -> None:
        await world.topic_logs.adopt([B])
        with structlog.testing.capture_logs() as logs:
            await world.topic_logs.clear([B])
            await world.removed()
        assert logs == [], "what was deleted is taken for data that may matter"
        assert world.store.topic_directories() == [topic_directory(identity(B))]
        assert not any(isinstance(row, DeletedTopicRow) for row in world.rows.values())
        assert world.read(B) == contents(B)
        new = topic("a", 7)
        assert world.read(new) == []

    assert crash_everywhere(begin, work, check) > 8


def test_a_topic_whose_creation_crashed_leaves_nothing_after_the_next_start() -> None:
    """Its row is written when its directories are there: a crash before that leaves them without a topic."""

    def begin(world: World) -> None:
        world.fill(B)
        world.rows[ClusterRow, LAYOUT] = ClusterRow(LAYOUT, "topic-id")

    async def work(world: World) -> None:
        await world.store.create([identity(A).partition(number) for number in range(A.partitions)], NOW_MS)
        for number in range(A.partitions):
            world.store.open(identity(A).partition(number), LogSettings(), NOW_MS)
        world.files.step("write", "metadata")

    async def check(world: World) -> None:
        with structlog.testing.capture_logs() as logs:
            await world.topic_logs.clear([B])
            await world.removed()
        assert logs == []
        assert world.store.topic_directories() == [topic_directory(identity(B))]
        assert world.read(B) == contents(B)

    assert crash_everywhere(begin, work, check) > 8


def test_records_of_an_unknown_topic_are_reported_and_left_alone() -> None:
    async def run() -> None:
        world = World(MemoryFiles())
        world.fill(A, B)
        with structlog.testing.capture_logs() as logs:
            await world.topic_logs.clear([B])
            await world.removed()
        assert [(entry["event"], entry["directory"]) for entry in logs] == [
            ("a directory belongs to no topic and is left as it is", topic_directory(identity(A)))
        ]
        assert world.read(A) == contents(A)
        world.end()

    asyncio.run(run())


@pytest.mark.parametrize("call", ["rename", "sync_directory", "remove"])
def test_a_removal_that_fails_is_said_and_made_good_by_the_next_start(call: str) -> None:
    async def run() -> None:
        world = World(MemoryFiles())
        world.fill(A)
        world.store.release(identity(A).partition(number) for number in range(A.partitions))
        world.rows[DeletedTopicRow, A.topic_id] = DeletedTopicRow(A.topic_id, A.name)

        def fail(operation: str, path: str) -> None:
            if operation == call:
                raise OSError(errno.EIO, "Input/output error", path)

        world.files.on_call = fail
        with structlog.testing.capture_logs() as logs:
            world.topic_logs.remove(identity(A))
            await world.removed()
        assert [entry["event"] for entry in logs] == [
            "the data of a deleted topic could not be removed; the next start tries again"
        ]
        assert (DeletedTopicRow, A.topic_id) in world.rows
        world.files.on_call = None
        after = world.after_crash(Mood.KEEP, 0)
        await after.topic_logs.clear([])
        await after.removed()
        while any("/logs/" in path for path in after.files.names):
            await asyncio.sleep(0.001)  # what was renamed already is removed by the store itself
        assert (DeletedTopicRow, A.topic_id) not in after.rows
        for each in (world, after):
            each.end()

    asyncio.run(run())


def test_stopping_does_not_wait_for_a_removal() -> None:
    async def run() -> None:
        world = World(MemoryFiles())
        world.fill(A)
        world.store.release(identity(A).partition(number) for number in range(A.partitions))
        world.topic_logs.remove(identity(A))
        await world.topic_logs.close()
        assert not world.topic_logs._removing
        world.topic_logs.remove(identity(A))  # of a deletion that ends after the broker: nobody would wait for it
        assert not world.topic_logs._removing
        world.end()

    asyncio.run(run())
