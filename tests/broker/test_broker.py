"""The broker as gateways see it: which partitions there are, what happens to those that cannot be opened, and what
remains of topics that could not be created."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.late_store import LateStore, Pace
from tests.support.memory_files import MemoryFiles
from tidelog.broker.broker import Broker, Unopened
from tidelog.broker.configs import Alter, Alteration, BrokerConfig, Operation
from tidelog.broker.ownership import NotLeader, Owner, SoleOwnership
from tidelog.broker.partition import DataWait
from tidelog.broker.topics import NewTopic, Topic, Topics, UnknownTopic
from tidelog.broker.writes import Writes
from tidelog.errors import CorruptLog, StorageError, StorageFull, StorageUnavailable
from tidelog.metadata.sqlite import SqliteStore
from tidelog.metadata.store import Change
from tidelog.promise import Promise
from tidelog.storage.local.store import LocalStore

NOW_MS = 1_700_000_000_000


class World:
    """A broker on a file system in memory, with a clock that stands until it is told to go on."""

    def __init__(self, files: MemoryFiles, metadata: SqliteStore) -> None:
        self.files = files
        self.metadata = metadata
        self.now = 100.0
        self.topics = Topics(metadata, BrokerConfig({}))
        self.logs = LocalStore("/data", files=files)
        self.late = LateStore(self.logs, Pace.NOW)
        nobody = cast("Any", None)
        self.broker = Broker(
            cluster_id="c",
            topics=self.topics,
            logs=self.late,
            groups=nobody,
            transactions=nobody,
            producer_ids=nobody,
            metadata=metadata,
            tables_directory="/data/tables",
            ownership=SoleOwnership(0),
            clock=lambda: self.now,
        )

    async def create(self, name: str, partitions: int = 1) -> Topic:
        return await self.topics.create(NewTopic(name, partitions), NOW_MS)

    def fail(self, number: int, *, at: str, after_s: float = 0.0) -> None:
        def fail(_operation: str, path: str) -> None:
            if at in path:
                self.now += after_s
                raise OSError(number, os.strerror(number), path)

        self.files.on_call = fail

    def heal(self) -> None:
        self.files.on_call = None

    def reason(self, topic: str, index: int) -> StorageError:
        with pytest.raises(StorageError) as caught:
            self.broker.partition(topic, index)
        return caught.value

    async def until_removed(self) -> None:
        while self.broker._topic_logs._removing:
            await asyncio.sleep(0.001)


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., None]:
    """Runs one broker after another on the same directory."""
    files = MemoryFiles()

    def run(*parts: Callable[[World], Awaitable[None]]) -> None:
        for part in parts:
            asyncio.run(one(part))

    async def one(part: Callable[[World], Awaitable[None]]) -> None:
        metadata = await SqliteStore.open(str(tmp_path / "metadata.sqlite"))
        files.locked.clear()
        world = World(files, metadata)
        try:
            await world.topics.load()
            await part(world)
        finally:
            world.heal()
            await world.broker.close()
            await metadata.close()
            await world.logs.close()

    return run


async def two_topics(world: World) -> None:
    await world.broker.open_topics()
    await world.create("good", 2)
    await world.create("bad", 2)


def test_a_partition_is_found_if_there_is_one(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        await two_topics(world)
        assert world.broker.partition("good", 1).name == ("good", 1)
        assert world.broker.find("good", 1) is world.broker.partition("good", 1)
        for topic, index in (("good", 2), ("good", -1), ("nobody", 0)):
            with pytest.raises(UnknownTopic):
                world.broker.partition(topic, index)
            assert world.broker.find(topic, index) is None
        assert world.broker.find(None, 0) is None

    play(look)


def test_a_partition_that_cannot_be_opened_says_why_anew_each_time_and_does_not_keep_others_from_it(
    play: Callable[..., None],
) -> None:
    async def look(world: World) -> None:
        world.fail(errno.EIO, at="/logs/bad~")
        await world.broker.open_topics()
        assert world.broker.partition("good", 0).log.end_offset == 0
        first, second = world.reason("bad", 0), world.reason("bad", 0)
        assert "Input/output error" in str(first)
        assert str(first) == str(second)
        assert first is not second
        assert first.__traceback__ is not None
        assert len(list(_frames(first))) == len(list(_frames(second)))
        assert world.broker.find("bad", 1) is None
        assert all(isinstance(partition, Unopened) for partition in world.broker.partitions_of("bad"))

    play(two_topics, look)


def _frames(error: BaseException) -> list[int]:
    trace, lines = error.__traceback__, []
    while trace is not None:
        lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines


def test_opening_is_tried_again_when_somebody_asks_but_ever_less_often(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        world.fail(errno.EMFILE, at="/logs/bad~")
        await world.broker.open_topics()
        tries: list[float] = []
        began = world.now

        def count(_operation: str, path: str) -> None:
            if "/logs/bad~" in path and path.endswith("/0"):
                tries.append(world.now - began)
                raise OSError(errno.EMFILE, "Too many open files", path)

        world.files.on_call = count
        while world.now < began + 100:
            assert isinstance(world.reason("bad", 0), StorageUnavailable)
            world.now += 0.5
        assert tries == [1, 3, 7, 15, 31, 61, 91]
        world.heal()
        assert world.broker.find("bad", 0) is None, "it is not time yet"
        world.now += 30
        partition = world.broker.find("bad", 0)
        assert partition is not None
        assert partition is world.broker.partition("bad", 0)

    play(two_topics, look)


def test_tries_to_open_partitions_take_a_fifth_of_the_time_at_most(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        world.fail(errno.EIO, at="/logs/bad~")
        await world.broker.open_topics()
        world.now += 10
        world.fail(errno.EIO, at="/logs/bad~", after_s=2.0)
        before = world.now
        world.reason("bad", 0)
        assert world.now == before + 2
        for _ in range(7):
            world.reason("bad", 1)
            world.now += 1
        assert world.now == before + 9, "another one was tried too early"
        world.now += 1
        world.reason("bad", 1)
        assert world.now == before + 12

    play(two_topics, look)


def test_a_partition_that_comes_over_is_opened_at_once_however_long_the_question_for_its_leader_took(
    play: Callable[..., None],
) -> None:
    class SlowOwnership(SoleOwnership):
        """As on a machine whose processor is busy."""

        is_sole = False
        leads = False

        def __init__(self, world: World) -> None:
            super().__init__(0)
            self._world = world

        def leader(self, topic_id: bytes, index: int) -> Owner:
            self._world.now += 1.0
            return super().leader(topic_id, index) if self.leads else Owner(1, 3)

    async def look(world: World) -> None:
        ownership = world.broker.ownership = SlowOwnership(world)
        await world.broker.open_topics()
        with pytest.raises(NotLeader):
            world.broker.partition("good", 0)
        ownership.leads = True
        assert world.broker.partition("good", 0).log.end_offset == 0

    play(two_topics, look)


def test_what_trying_again_cannot_mend_is_not_tried_again(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(world: World) -> None:
        calls = 0

        def damaged(*_: object) -> None:
            nonlocal calls
            calls += 1
            raise CorruptLog("damaged", file="f", position=1, offset=2)

        monkeypatch.setattr(world.logs, "open", damaged)
        await world.broker.open_topics()
        opened = calls
        world.now += 1000
        error = world.reason("bad", 0)
        assert isinstance(error, CorruptLog)
        assert (error.file, error.position, error.offset) == ("f", 1, 2)
        assert calls == opened

    play(two_topics, look)


def test_a_partition_that_is_opened_late_works_with_the_configs_of_then(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        world.fail(errno.EIO, at="/logs/bad~")
        await world.broker.open_topics()
        edit = Alter([Alteration("retention.ms", Operation.SET, "77")])
        await world.topics.alter_configs("bad", edit)
        world.heal()
        world.now += 10
        partition = world.broker.partition("bad", 1)
        assert partition.config.retention_ms == 77

    play(two_topics, look)


@pytest.mark.parametrize("operation", ["mkdir", "create", "open", "list", "sync_filesystem"])
def test_a_topic_that_cannot_be_had_leaves_nothing_behind(play: Callable[..., None], operation: str) -> None:
    async def look(world: World) -> None:
        await two_topics(world)
        calls = 0

        def fail(called: str, path: str) -> None:
            nonlocal calls
            if called == operation and ("/logs/new~" in path or operation == "sync_filesystem"):
                calls += 1
                raise OSError(errno.ENOSPC, "No space left on device", path)

        world.files.on_call = fail
        with pytest.raises(StorageFull):
            await world.create("new", 3)
        assert calls
        world.heal()
        await world.until_removed()
        assert world.topics.find("new") is None
        assert [log for log in world.logs.logs() if log.partition.topic == "new"] == []
        left = {path for path in world.files.names if "/new~" in path or "~deleted" in path}
        assert left == set() or operation == "list"  # whoever cannot look cannot remove; the next start does
        await world.create("new", 3)
        assert world.broker.partition("new", 2).log.end_offset == 0

    async def again(world: World) -> None:
        await world.broker.open_topics()
        await world.until_removed()
        assert world.broker.partition("new", 2).log.end_offset == 0
        assert len(world.logs.topic_directories()) == 3

    play(look, again)


def test_a_topic_that_cannot_be_written_down_leaves_nothing_behind(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(world: World) -> None:
        await two_topics(world)
        write = world.metadata.write

        def full(_changes: list[Change], _fence: Any = None) -> Promise[None]:
            failed: Promise[None] = Promise()
            failed.fail(StorageFull("the disk is full"))
            return failed

        monkeypatch.setattr(world.metadata, "write", full)
        with pytest.raises(StorageFull):
            await world.create("new", 3)
        with pytest.raises(StorageFull):
            await world.topics.add_partitions("good", 4)
        await world.until_removed()
        assert [log for log in world.logs.logs() if log.partition.topic == "new"] == []
        assert len(world.logs.topic_directories()) == 2
        assert len(world.broker.partitions_of("good")) == 2
        assert world.broker.find("good", 2) is None
        monkeypatch.setattr(world.metadata, "write", write)
        await world.topics.add_partitions("good", 4)
        assert world.broker.partition("good", 3).log.end_offset == 0

    play(look)


def test_partitions_that_are_coming_are_not_seen_before_they_are_durable_whatever_else_changes(
    play: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(world: World) -> None:
        await two_topics(world)
        write, writing, may_write = world.metadata.write, asyncio.Event(), asyncio.Event()

        async def held(changes: Sequence[Change], promise: Promise[None]) -> None:
            writing.set()
            await may_write.wait()
            await write(changes)
            promise.settle(None)

        def write_later(changes: Sequence[Change], _fence: Any = None) -> Promise[None]:
            promise: Promise[None] = Promise()
            tasks.append(asyncio.ensure_future(held(changes, promise)))
            return promise

        tasks: list[asyncio.Task[None]] = []
        monkeypatch.setattr(world.metadata, "write", write_later)
        growing = asyncio.ensure_future(world.topics.add_partitions("good", 4))
        await writing.wait()
        monkeypatch.setattr(world.metadata, "write", write)
        edit = Alter([Alteration("log.retention.ms", Operation.SET, "77")])
        await world.topics.broker_config.alter(Writes(world.metadata), "0", edit)
        assert world.topics.get("good").config.retention_ms == 77, "the topic was not told of the change"
        assert world.broker.find("good", 2) is None
        may_write.set()
        await growing
        assert [world.broker.partition("good", index).config.retention_ms for index in range(4)] == [77] * 4

    play(look)


def test_whoever_waits_for_a_partition_of_a_deleted_topic_is_woken(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        await two_topics(world)
        woken: list[bool] = []
        world.broker.partition("bad", 1).add_wait(DataWait(lambda: woken.append(True), 1))
        await world.topics.delete("bad")
        assert woken == [True]
        assert world.broker.find("bad", 1) is None
        await world.until_removed()
        assert len(world.logs.topic_directories()) == 1

    play(look)


# Logs that come later than they are asked for


def test_a_broker_waits_for_logs_that_come_later(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        world.late.pace = Pace.SOON
        world.fail(errno.EIO, at="/logs/bad~")
        await world.broker.open_topics()
        assert world.broker.partition("good", 1).log.end_offset == 0
        assert "Input/output error" in str(world.reason("bad", 0))
        world.heal()
        await world.create("new", 60)
        assert world.broker.partition("new", 59).log.end_offset == 0

    play(two_topics, look)


def test_a_topic_of_which_one_log_does_not_come_is_not_created(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        await two_topics(world)
        world.late.pace = Pace.SOON

        def fail(called: str, path: str) -> None:
            if called == "open" and "/logs/new~" in path and "/1/" in path:
                raise OSError(errno.EMFILE, "Too many open files", path)

        world.files.on_call = fail
        with pytest.raises(StorageUnavailable):
            await world.create("new", 3)
        world.heal()
        await world.until_removed()
        assert world.topics.find("new") is None
        assert len(world.logs.topic_directories()) == 2

    play(look)


def test_who_asks_for_a_partition_whose_log_is_coming_is_told_to_try_again(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        world.fail(errno.EMFILE, at="/logs/bad~")
        await world.broker.open_topics()
        late = world.late
        late.pace = Pace.HELD
        late.asked.clear()
        for _ in range(5):
            world.now += 100
            assert world.reason("bad", 0).retriable
        assert len(late.asked) == 1, "it is being opened already"
        late.let_come()
        assert world.reason("bad", 0).retriable
        world.heal()
        world.now += 100
        assert world.broker.find("bad", 0) is None
        await world.topics.alter_configs("bad", Alter([Alteration("retention.ms", Operation.SET, "77")]))
        late.let_come()
        assert len(late.asked) == 2
        assert world.broker.partition("bad", 0).config.retention_ms == 77, "the config of when it was asked for"

    play(two_topics, look)


def test_a_log_that_comes_when_its_topic_is_deleted_is_nobodys(play: Callable[..., None]) -> None:
    async def look(world: World) -> None:
        world.fail(errno.EMFILE, at="/logs/bad~")
        await world.broker.open_topics()
        late = world.late
        late.pace = Pace.HELD
        late.asked.clear()
        world.now += 100
        assert world.broker.find("bad", 0) is None
        world.heal()
        await world.topics.delete("bad")
        late.let_come()
        assert [log for log in world.logs.logs() if log.partition.topic == "bad"] == []
        with pytest.raises(UnknownTopic):
            world.broker.partition("bad", 0)

    play(two_topics, look)
