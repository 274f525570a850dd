"""What every `LogStore` keeps to, whatever is behind it. What is true of files alone: test_store.py."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.storage.test_compaction import compacted, keyed, use_plain
from tests.support.late_store import LateStore
from tests.support.logs import EPOCH, NOW_MS, batch, stored
from tests.support.memory_files import MemoryFiles
from tests.support.shared_store import Services
from tests.support.slow_engine import Pace, SlowStore
from tidelog.errors import InvalidInput, LogClosed
from tidelog.model import PartitionIdentity, TopicIdentity, TopicPartition
from tidelog.promise import Promise, result_of
from tidelog.records.batch import iterate
from tidelog.records.record import decode
from tidelog.settings import UNLIMITED, CleanerSettings, LogSettings, StorageSettings
from tidelog.storage import cleaner as cleaner_module
from tidelog.storage.engines import open_log_store
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import LogStore, PartitionLog, UpkeepPolicy

Play = Callable[..., None]
Part = Callable[[LogStore], Coroutine[Any, Any, None]]

SETTINGS = StorageSettings(tail_cache_bytes=100_000)
A, B = stored("a"), stored("b.c_d-e", 12)


@pytest.fixture(params=["files", "files in memory", "later", "slow", "shared in memory", "shared in files"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Runs parts one after another, each with a store that is opened anew on the same data and closed."""
    memory = MemoryFiles()
    is_shared = request.param.startswith("shared")
    services = Services(request.param.removeprefix("shared in "), str(tmp_path)) if is_shared else None

    async def open_store() -> LogStore:
        memory.locked.clear()
        if request.param == "files":
            return open_log_store(str(tmp_path / "data"), SETTINGS)
        if request.param == "slow":
            return SlowStore(str(tmp_path / "data"), SETTINGS, pace=Pace(0.001))
        if services is not None:
            return await services.open(SETTINGS)
        if request.param == "later":
            return LateStore(LocalStore(str(tmp_path / "data"), SETTINGS))
        return LocalStore("/data", SETTINGS, files=memory)

    async def one(part: Part) -> None:
        store = await open_store()
        try:
            await part(store)
        finally:
            assert await store.close() == {}

    def run(*parts: Part) -> None:
        for part in parts:
            asyncio.run(one(part))

    return run


async def opened(store: LogStore, partition: PartitionIdentity, settings: LogSettings | None = None) -> PartitionLog:
    log = store.open(partition, settings or LogSettings(), NOW_MS)
    return await result_of(log)


async def write(log: PartitionLog, data: bytearray) -> None:
    await result_of(log.append(data, now_ms=NOW_MS, leader_epoch=EPOCH, durable=True))


async def values(log: PartitionLog) -> list[bytes | None]:
    found: list[bytes | None] = []
    offset = log.start_offset
    while offset < log.end_offset:
        for view in iterate((await result_of(log.read(offset, 1 << 20))).read()):
            found += [record.value for record in decode(view) if record.offset >= log.start_offset]
            offset = view.header.next_offset
    return found


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not look():
            await asyncio.sleep(0.005)


# Logs come and go


def test_what_was_written_is_there_when_the_store_is_opened_again(play: Play) -> None:
    async def begin(store: LogStore) -> None:
        await store.create([A, B], NOW_MS)
        for partition in (A, B):
            await write(await opened(store, partition), batch(str(partition.name).encode()))

    async def again(store: LogStore) -> None:
        assert await values(await opened(store, B)) == [b"b.c_d-e-12"]
        assert await values(await opened(store, A)) == [b"a-0"]

    play(begin, again)


def test_what_was_not_waited_for_is_there_when_the_store_was_closed(play: Play) -> None:
    async def begin(store: LogStore) -> None:
        log = await opened(store, A)
        log.append(batch(b"x"), now_ms=NOW_MS, leader_epoch=EPOCH, durable=False)

    async def again(store: LogStore) -> None:
        assert await values(await opened(store, A)) == [b"x"]

    play(begin, again)


def test_a_new_log_is_empty_whether_it_was_made_before_or_not(play: Play) -> None:
    async def look(store: LogStore) -> None:
        await store.create([A], NOW_MS)
        for partition in (A, B):
            log = await opened(store, partition)
            assert (log.start_offset, log.end_offset) == (0, 0)

    play(look)


def test_a_log_is_opened_once(play: Play) -> None:
    async def look(store: LogStore) -> None:
        assert await opened(store, A) is await opened(store, A)

    play(look)


def test_making_logs_leaves_those_alone_that_are_there(play: Play) -> None:
    async def look(store: LogStore) -> None:
        await write(await opened(store, A), batch(b"x"))
        await store.create([A, stored("a", 1)], NOW_MS)
        assert await values(await opened(store, A)) == [b"x"]
        assert await values(await opened(store, stored("a", 1))) == []

    play(look)


def test_many_may_make_logs_at_the_same_time(play: Play) -> None:
    async def look(store: LogStore) -> None:
        topics = [stored(f"t{number}").topic for number in range(20)]
        await asyncio.gather(*(store.create(topic.partitions(3), NOW_MS) for topic in topics))
        for topic in topics:
            assert (await opened(store, topic.partition(2))).end_offset == 0

    play(look)


def test_who_asks_for_what_cannot_be_made_does_not_keep_others_from_theirs(play: Play) -> None:
    async def look(store: LogStore) -> None:
        wishes = [[A], [stored("white space")], [B]]
        results = await asyncio.gather(*(store.create(wish, NOW_MS) for wish in wishes), return_exceptions=True)
        assert [type(result) for result in results] == [type(None), InvalidInput, type(None)]
        assert {stray.topic for stray in await store.strays(())} == {A.topic, B.topic}

    play(look)


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../../etc", "a" * 250, "white space", "ä", "a\0b"])
def test_names_that_are_no_topic_names_are_refused(play: Play, topic: str) -> None:
    async def look(store: LogStore) -> None:
        for wrong in (stored(topic), stored("a", -1), TopicIdentity("a", b"short").partition(0)):
            with pytest.raises(InvalidInput, match="not a valid name"):
                await opened(store, wrong)
            with pytest.raises(InvalidInput, match="not a valid name"):
                await store.create([wrong], NOW_MS)
        assert await store.strays(()) == []

    play(look)


def test_a_released_log_takes_and_gives_nothing_more_and_is_there_when_it_is_opened_again(play: Play) -> None:
    async def look(store: LogStore) -> None:
        log = await opened(store, A)
        await write(log, batch(b"x"))
        store.release([A, B])
        with pytest.raises(LogClosed):
            await write(log, batch(b"y"))
        again = await opened(store, A)
        assert again is not log
        assert await values(again) == [b"x"]

    play(look)


def test_a_log_that_is_released_while_it_comes_does_not_come(play: Play) -> None:
    async def look(store: LogStore) -> None:
        coming = store.open(A, LogSettings(), NOW_MS)
        store.release([A])
        with pytest.raises(LogClosed):
            await write(await coming if isinstance(coming, Promise) else coming, batch(b"x"))

    play(look)


def test_a_deleted_topic_is_gone_and_others_are_not(play: Play) -> None:
    async def begin(store: LogStore) -> None:
        for partition in (A, stored("a", 1), B):
            await write(await opened(store, partition), batch(b"old"))
        store.release([A, stored("a", 1)])
        await store.delete(A.topic)
        assert {stray.topic for stray in await store.strays(())} == {B.topic}
        log = await opened(store, A)
        assert log.end_offset == 0
        await write(log, batch(b"new"))

    async def again(store: LogStore) -> None:
        assert await values(await opened(store, A)) == [b"new"]
        assert await values(await opened(store, stored("a", 1))) == []
        assert await values(await opened(store, B)) == [b"old"]

    play(begin, again)


def test_deleting_what_is_not_there_is_done_already(play: Play) -> None:
    async def look(store: LogStore) -> None:
        await store.delete(A.topic)

    play(look)


def test_a_topic_does_not_find_the_records_of_another_of_its_name(play: Play) -> None:
    another = TopicIdentity(A.topic.name, bytes(range(16)))

    async def look(store: LogStore) -> None:
        await write(await opened(store, A), batch(b"old"))
        new = await opened(store, another.partition(0))
        assert await values(new) == []
        await write(new, batch(b"new"))
        assert await values(await opened(store, A)) == [b"old"]
        store.release([A])
        await store.delete(A.topic)
        assert await values(new) == [b"new"]

    play(look)


def test_data_of_unknown_topics_is_told_and_whether_it_was_ever_written_to(play: Play) -> None:
    async def begin(store: LogStore) -> None:
        empty, known = stored("empty"), stored("known")
        await store.create([A, *empty.topic.partitions(3), known], NOW_MS)
        await write(await opened(store, A), batch(b"x"))

    async def look(store: LogStore) -> None:
        found = {stray.topic: stray.is_unused for stray in await store.strays({stored("known").topic.topic_id})}
        assert found == {A.topic: False, stored("empty").topic: True}

    play(begin, look, look)


def test_a_store_of_this_version_has_nothing_to_take_over(play: Play) -> None:
    async def look(store: LogStore) -> None:
        await write(await opened(store, A), batch(b"x"))
        store.release([A])
        assert await store.adopt([A.topic, B.topic]) == 0
        assert await values(await opened(store, A)) == [b"x"]

    play(look)


# What it uses


def test_it_says_where_the_logs_are(play: Play) -> None:
    async def look(store: LogStore) -> None:
        place = store.place()
        assert place.name
        assert -1 <= place.usable_bytes <= place.total_bytes

    play(look)


def test_the_memory_for_the_newest_batches_is_shared_and_bounded(play: Play) -> None:
    async def look(store: LogStore) -> None:
        assert store.memory[0][1:] == ("tail-cache-bytes", 100_000, 0)
        for number in range(20):
            log = await opened(store, stored("t", number))
            for _ in range(5):
                await write(log, batch(b"x" * 20_000))
            assert 0 < store.memory[0].used_bytes <= 100_000
            assert all(each.used_bytes <= each.limit_bytes for each in store.memory)
        assert len(await values(log)) == 5
        assert store.max_descriptors >= 0

    play(look)


# Upkeep


def policy(**others: Any) -> UpkeepPolicy:
    every = UpkeepPolicy(
        interval_ms=lambda: 5,
        keep_from=lambda _: None,
        cleaner=lambda: CleanerSettings(backoff_ms=5),
        cleaner_threads=0,
    )
    return replace(every, **others)


async def filled(store: LogStore, partition: PartitionIdentity, settings: LogSettings) -> PartitionLog:
    log = await opened(store, partition, settings)
    for _ in range(20):
        await write(log, batch(b"x" * 300))
    return log


def test_retention_goes_as_far_as_it_may(play: Play) -> None:
    async def look(store: LogStore) -> None:
        settings = LogSettings(segment_bytes=1024, retention_bytes=0)
        all_of_it, some_of_it = [await filled(store, partition, settings) for partition in (A, B)]

        def keep_from(partition: TopicPartition) -> int | None:
            return 10 if partition == B.name else None

        store.start_upkeep(policy(keep_from=keep_from))
        await until(lambda: all_of_it.start_offset == 20 and some_of_it.start_offset > 0)
        assert some_of_it.start_offset <= 10
        await write(all_of_it, batch(b"y"))
        await until(lambda: all_of_it.start_offset == 21)
        await store.stop_upkeep()
        await store.stop_upkeep()
        await write(all_of_it, batch(b"z"))
        await asyncio.sleep(0.05)
        assert all_of_it.start_offset == 21

    play(look)


def test_topics_come_and_go_while_they_are_kept_up(play: Play) -> None:
    async def look(store: LogStore) -> None:
        settings = LogSettings(segment_bytes=1024, retention_bytes=0)
        store.start_upkeep(policy(cleaner_threads=1))
        for number in range(5):
            topic = TopicIdentity("a", bytes([number]) * 16)  # the same name; but an id is never used again
            partition = topic.partition(0)
            log = await filled(store, partition, settings)
            await until(lambda log=log: log.start_offset > 0)  # type: ignore[misc]
            store.release([partition])
            await store.delete(topic)

    play(look)


def test_compacted_logs_are_compacted_if_that_is_wanted(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    use_plain(monkeypatch)
    monkeypatch.setattr(cleaner_module, "load_kernels", lambda _given_up: True)

    def look(threads: int, then: Callable[[PartitionLog], Awaitable[None]]) -> Part:
        async def part(store: LogStore) -> None:
            settings = replace(compacted(segment_bytes=1024, max_lag_ms=1), retention_ms=UNLIMITED)
            log = await opened(store, A, settings)
            if not log.end_offset:
                for number in range(20):
                    await write(log, keyed((b"%d" % (number % 3), b"%d" % number), timestamp=NOW_MS))
                    await write(log, keyed((b"filler", b"v" * 200), timestamp=NOW_MS))
            store.start_upkeep(policy(cleaner_threads=threads))
            await then(log)

        return part

    async def stays(log: PartitionLog) -> None:
        await asyncio.sleep(0.05)
        assert (await values(log))[0] == b"0"

    async def goes(log: PartitionLog) -> None:
        async with asyncio.timeout(60):
            while b"0" in await values(log):
                await asyncio.sleep(0.005)
        assert (await values(log))[-1] == b"v" * 200
        assert {b"17", b"18", b"19"} <= set(await values(log)), "the last values of the keys stay"

    play(look(0, stays), look(1, goes))
