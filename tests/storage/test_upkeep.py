"""The regular upkeep of logs: one that fails concerns itself alone, and others have their turn in between."""

import asyncio
from pathlib import Path

import pytest
import structlog

from tests.support.logs import NOW_MS, append, batch, stored
from tidelog.settings import CleanerSettings, LogSettings
from tidelog.storage.local.layout import partition_directory
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import UpkeepPolicy

A, B = stored("a"), stored("b.c_d-e", 12)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "data"), inline=True)


def test_upkeep_applies_retention_to_every_partition(store: LocalStore) -> None:
    settings = LogSettings(segment_bytes=1024, retention_bytes=2000)
    logs = [store.open(partition, settings, NOW_MS) for partition in (A, B)]
    for log in logs:
        for _ in range(20):
            append(log, batch(b"x" * 300))
    assert store.upkeep_now(NOW_MS) == {}
    assert all(log.stats().size_bytes < 3100 for log in logs)


def test_upkeep_in_steps_lets_others_have_their_turn_and_passes_over_what_they_delete(tmp_path: Path) -> None:
    async def run() -> None:
        store = LocalStore(str(tmp_path))
        partitions = [stored(topic, number) for topic in ("a", "b", "c") for number in range(50)]
        await store.create(partitions, NOW_MS)
        settings = LogSettings(segment_bytes=1024, retention_bytes=0)
        logs = [store.open(partition, settings, NOW_MS) for partition in partitions]
        for log in logs:
            append(log, batch(b"x"))
        upkeep = asyncio.ensure_future(store.upkeep(NOW_MS))
        while logs[0].start_offset == 0:
            await asyncio.sleep(0)
        assert logs[-1].start_offset == 0, "all of it was one step"
        store.release(partitions[100:])
        await store.delete(partitions[100].topic)
        assert await upkeep == {}
        assert {log.start_offset for log in logs[:100]} == {1}
        assert {log.start_offset for log in logs[100:]} == {0}
        assert await store.close() == {}

    asyncio.run(run())


def test_a_partition_that_cannot_be_kept_up_does_not_keep_the_others_from_it(
    store: LocalStore, tmp_path: Path
) -> None:
    settings = LogSettings(segment_bytes=1024, retention_bytes=2000)
    broken, fine = (store.open(partition, settings, NOW_MS) for partition in (A, B))
    for log in (broken, fine):
        for _ in range(20):
            append(log, batch(b"x" * 300))
    directory = tmp_path / f"data/logs/{partition_directory(A)}"
    (directory / "checkpoint").unlink()
    (directory / "checkpoint").mkdir()
    assert list(store.upkeep_now(NOW_MS)) == [A.name]
    assert fine.start_offset > 0
    assert broken.start_offset == 0
    (directory / "checkpoint").rmdir()
    assert store.upkeep_now(NOW_MS) == {}
    assert broken.start_offset > 0


def test_a_turn_that_fails_as_a_whole_is_told_once_and_is_not_the_last(tmp_path: Path) -> None:
    async def run() -> None:
        store = LocalStore(str(tmp_path))
        turns = 0

        class Broken(dict):  # type: ignore[type-arg]
            def items(self) -> object:  # type: ignore[override]
                nonlocal turns
                turns += 1
                if turns < 4:
                    raise ValueError("a bug of ours")
                return super().items()

        store._logs = Broken(store._logs)
        policy = UpkeepPolicy(lambda: 1, lambda _: None, CleanerSettings, cleaner_threads=0)
        with structlog.testing.capture_logs() as lines:
            store.start_upkeep(policy)
            async with asyncio.timeout(60):
                while not any(line["event"] == "upkeep of all partitions works again" for line in lines):
                    await asyncio.sleep(0.001)
            await store.stop_upkeep()
        assert [line["event"] for line in lines] == [
            "upkeep failed for all partitions",
            "upkeep of all partitions works again",
        ]
        assert await store.close() == {}

    asyncio.run(run())
