"""The data directory: partitions come, go and are kept up; one bad partition concerns itself alone."""

import asyncio
import os
import random
import threading
from pathlib import Path

import pytest

from tests.support.logs import NOW_MS, append, batch, read_records, values
from tests.support.memory_files import CrashError, MemoryFiles, Mood
from tidelog.errors import InvalidInput, StorageError
from tidelog.model import TopicPartition
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.inspect import find_partitions
from tidelog.storage.local.store import LocalStore

A, B = TopicPartition("a", 0), TopicPartition("b.c_d-e", 12)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "data"), inline=True)


def test_partitions_are_found_again(store: LocalStore, tmp_path: Path) -> None:
    for partition in (A, B):
        append(store.open(partition, LogSettings(), NOW_MS), batch(str(partition).encode()))
    assert store.close_now() == {}
    again = LocalStore(str(tmp_path / "data"), inline=True)
    assert sorted(again.partitions()) == [A, B]
    assert values(read_records(again.open(B, LogSettings(), NOW_MS))) == [b"b.c_d-e-12"]


def test_a_partition_is_opened_once(store: LocalStore) -> None:
    assert store.open(A, LogSettings(), NOW_MS) is store.open(A, LogSettings(), NOW_MS)


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../../etc", "a" * 250, "white space", "ä", "a\0b"])
def test_names_that_are_no_topic_names_never_reach_the_disk(store: LocalStore, topic: str) -> None:
    with pytest.raises(InvalidInput, match="not a valid name"):
        store.open(TopicPartition(topic, 0), LogSettings(), NOW_MS)
    with pytest.raises(InvalidInput):
        store.open(TopicPartition("a", -1), LogSettings(), NOW_MS)
    assert store.partitions() == []


def test_a_deleted_topic_is_gone_and_can_be_created_anew(store: LocalStore, tmp_path: Path) -> None:
    append(store.open(A, LogSettings(), NOW_MS), batch(b"old"))
    append(store.open(B, LogSettings(), NOW_MS), batch(b"another"))
    store.delete_topic("a")
    assert store.partitions() == [B]
    assert os.listdir(tmp_path / "data/logs") == [B.topic]
    log = store.open(A, LogSettings(), NOW_MS)
    assert log.end_offset == 0
    append(log, batch(b"new"))
    assert values(read_records(log)) == [b"new"]


def test_a_partition_that_was_being_deleted_in_a_crash_is_removed(store: LocalStore, tmp_path: Path) -> None:
    append(store.open(A, LogSettings(), NOW_MS), batch(b"x"))
    store.close_now()
    os.rename(tmp_path / "data/logs/a/0", tmp_path / "data/logs/a/0.deleted")
    again = LocalStore(str(tmp_path / "data"), inline=True)
    assert again.partitions() == []
    assert not (tmp_path / "data/logs/a/0.deleted").exists()


def test_a_topic_that_was_being_deleted_in_a_crash_is_removed(store: LocalStore, tmp_path: Path) -> None:
    append(store.open(A, LogSettings(), NOW_MS), batch(b"x"))
    store.close_now()
    os.rename(tmp_path / "data/logs/a", tmp_path / "data/logs/~deleted.0123")
    assert list(find_partitions(OsFiles(), str(tmp_path / "data"))) == []
    assert LocalStore(str(tmp_path / "data"), inline=True).partitions() == []
    assert os.listdir(tmp_path / "data/logs") == []


def test_deleting_what_is_not_there_is_an_error(store: LocalStore) -> None:
    with pytest.raises(StorageError, match="cannot delete a"):
        store.delete_topic("a")


# Many partitions at once

MANY = [TopicPartition(topic, number) for topic in ("many", "more") for number in range(3)]


class NoWholeSync(MemoryFiles):
    def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
        return False


@pytest.mark.parametrize("files", [MemoryFiles(), NoWholeSync()], ids=["whole", "one by one"])
def test_partitions_that_are_made_together_are_durable_and_as_those_made_one_by_one(files: MemoryFiles) -> None:
    store = LocalStore("/data", files=files, inline=True)
    store.make_now(MANY, NOW_MS)
    after = files.after_crash(Mood.DROP, random.Random(1))
    again = LocalStore("/data", files=after, inline=True)
    assert sorted(again.partitions()) == MANY
    for partition in MANY:
        log = again.open(partition, LogSettings(), NOW_MS)
        assert (log.end_offset, log.recovery.clean) == (0, True)
    assert [path for _, path in after.calls if not path.endswith("lock")] == [], "opening had to change something"
    alone = MemoryFiles()
    LocalStore("/data", files=alone, inline=True).open(MANY[0], LogSettings(), NOW_MS)
    made = {path: bytes(inode.data) for path, inode in after.names.items() if inode and "many/0" in path}
    assert made == {path: bytes(inode.data) for path, inode in alone.names.items() if inode and "many/0" in path}


def test_a_thousand_partitions_take_as_few_syncs_as_one() -> None:
    files = MemoryFiles()
    store = LocalStore("/data", files=files, inline=True)
    before = len(files.calls)
    store.make_now([TopicPartition("t", number) for number in range(1000)], NOW_MS)
    syncs = [call for call, _ in files.calls[before:] if call.startswith("sync")]
    assert syncs == ["sync_filesystem"] * 2


def test_making_partitions_leaves_those_alone_that_are_there(store: LocalStore) -> None:
    append(store.open(A, LogSettings(), NOW_MS), batch(b"x"))
    more = TopicPartition("a", 1)
    store.make_now([A, more], NOW_MS)
    assert sorted(store.partitions()) == [A, more]
    assert values(read_records(store.open(A, LogSettings(), NOW_MS))) == [b"x"]


@pytest.mark.parametrize("mood", Mood)
def test_a_crash_while_partitions_are_made_leaves_what_opening_copes_with(mood: Mood) -> None:
    crash_at = 0
    while True:
        files = MemoryFiles()
        store = LocalStore("/data", files=files, inline=True)
        files.crash_at = files.steps + crash_at + 1
        try:
            store.make_now(MANY, NOW_MS)
        except CrashError:
            pass
        else:
            break
        again = LocalStore("/data", files=files.after_crash(mood, random.Random(crash_at)), inline=True)
        again.make_now(MANY, NOW_MS)
        for partition in MANY:
            log = again.open(partition, LogSettings(), NOW_MS)
            assert (log.end_offset, log.recovery.lost, log.recovery.cut) == (0, [], []), f"step {crash_at}"
            append(log, batch(b"x"), durable=True)
        last = LocalStore("/data", files=again.files.after_crash(Mood.DROP, random.Random(0)), inline=True)  # type: ignore[attr-defined]
        for partition in MANY:
            assert values(read_records(last.open(partition, LogSettings(), NOW_MS))) == [b"x"], f"step {crash_at}"
        crash_at += 1
    assert crash_at > 10


@pytest.mark.parametrize("mood", Mood)
def test_after_a_crash_a_topic_that_was_being_deleted_is_gone_or_whole(mood: Mood) -> None:
    crash_at, seen = 0, set()
    while True:
        files = MemoryFiles()
        store = LocalStore("/data", files=files, inline=True)
        for partition in MANY:
            append(store.open(partition, LogSettings(), NOW_MS), batch(str(partition).encode()), durable=True)
        files.crash_at = files.steps + crash_at + 1
        try:
            store.delete_topic("many")
        except CrashError:
            pass
        else:
            break
        again = LocalStore("/data", files=files.after_crash(mood, random.Random(crash_at)), inline=True)
        left = sorted(again.partitions())
        assert left in (MANY, MANY[3:]), f"step {crash_at}"
        seen.add(len(left))
        for partition in left:
            assert values(read_records(again.open(partition, LogSettings(), NOW_MS))) == [str(partition).encode()]
        crash_at += 1
    assert len(seen) == 2


def test_those_who_make_partitions_at_the_same_time_share_the_syncs(tmp_path: Path) -> None:
    class Counting(OsFiles):
        syncs = 0

        def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
            self.syncs += 1
            return super().sync_filesystem(path, 1 << 62)

    async def run() -> None:
        files = Counting()
        store = LocalStore(str(tmp_path), files=files)
        await asyncio.gather(*(store.make([TopicPartition(f"t{number}", 0)], NOW_MS) for number in range(50)))
        assert len(store.partitions()) == 50
        assert files.syncs <= 4
        await store.close()

    asyncio.run(run())


def test_a_flush_of_a_deleted_topic_does_not_write_into_the_next_one_of_its_name(tmp_path: Path) -> None:
    class Held(OsFiles):
        is_syncing, may_sync = threading.Event(), threading.Event()

        def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
            return False

        def sync_directory(self, path: str) -> None:
            if path.endswith("/a/0") and threading.current_thread().name.startswith("tidelog-flush"):
                self.is_syncing.set()
                assert self.may_sync.wait(20)
            super().sync_directory(path)

    async def run() -> None:
        files = Held()
        store = LocalStore(str(tmp_path), files=files)
        log = store.open(A, LogSettings(segment_bytes=1024), NOW_MS)
        for _ in range(3):
            append(log, batch(b"x" * 600))  # rolls, which asks for a flush with a checkpoint
        await asyncio.to_thread(files.is_syncing.wait, 20)
        store.delete_topic("a")
        making = asyncio.ensure_future(store.make([A], NOW_MS))
        await asyncio.wait([making], timeout=0.1)
        files.may_sync.set()
        await making
        new = store.open(A, LogSettings(), NOW_MS)
        assert (new.end_offset, new.recovery.clean) == (0, True)
        assert await store.close() == {}
        again = LocalStore(str(tmp_path), inline=True).open(A, LogSettings(), NOW_MS)
        assert (again.end_offset, again.recovery.lost) == (0, [])

    asyncio.run(run())


def test_upkeep_applies_retention_to_every_partition(store: LocalStore) -> None:
    settings = LogSettings(segment_bytes=1024, retention_bytes=2000)
    logs = [store.open(partition, settings, NOW_MS) for partition in (A, B)]
    for log in logs:
        for _ in range(20):
            append(log, batch(b"x" * 300))
    assert store.upkeep(NOW_MS) == {}
    assert all(log.stats().size_bytes < 3100 for log in logs)


def test_upkeep_in_steps_lets_others_have_their_turn_and_passes_over_what_they_delete(tmp_path: Path) -> None:
    async def run() -> None:
        store = LocalStore(str(tmp_path))
        partitions = [TopicPartition(topic, number) for topic in ("a", "b", "c") for number in range(50)]
        await store.make(partitions, NOW_MS)
        settings = LogSettings(segment_bytes=1024, retention_bytes=0)
        logs = [store.open(partition, settings, NOW_MS) for partition in partitions]
        for log in logs:
            append(log, batch(b"x"))
        upkeep = asyncio.ensure_future(store.upkeep_in_steps(NOW_MS))
        while logs[0].start_offset == 0:
            await asyncio.sleep(0)
        assert logs[-1].start_offset == 0, "all of it was one step"
        store.delete_topic("c")
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
    directory = tmp_path / "data/logs/a/0"
    (directory / "checkpoint").unlink()
    (directory / "checkpoint").mkdir()
    assert list(store.upkeep(NOW_MS)) == [A]
    assert fine.start_offset > 0
    assert broken.start_offset == 0
    (directory / "checkpoint").rmdir()
    assert store.upkeep(NOW_MS) == {}
    assert broken.start_offset > 0


def test_a_damaged_partition_does_not_keep_others_from_opening(store: LocalStore, tmp_path: Path) -> None:
    for partition in (A, B):
        append(store.open(partition, LogSettings(), NOW_MS), batch(b"x"))
    store.close_now()
    path = tmp_path / "data/logs/a/0/00000000000000000000.log"
    path.unlink()
    path.mkdir()
    again = LocalStore(str(tmp_path / "data"), inline=True)
    with pytest.raises(StorageError):
        append(again.open(A, LogSettings(), NOW_MS), batch(b"y"))
    assert values(read_records(again.open(B, LogSettings(), NOW_MS))) == [b"x"]


def test_the_tail_cache_is_shared_and_bounded(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), StorageSettings(tail_cache_bytes=100_000), inline=True)
    for number in range(20):
        log = store.open(TopicPartition("t", number), LogSettings(), NOW_MS)
        for _ in range(5):
            append(log, batch(b"x" * 20_000))
    assert store._shared.tails.size_bytes <= 100_000
    assert len(read_records(log)) == 5
