"""The data directory: partitions come, go and are kept up; one bad partition concerns itself alone."""

import asyncio
import errno
import os
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.logs import NOW_MS, append, batch, read_records, stored, values
from tests.support.memory_files import CrashError, MemoryFiles, Mood
from tidelog.errors import InvalidInput, StorageError, StorageFull
from tidelog.settings import LogSettings
from tidelog.storage.local import store as store_module
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.inspect import find_partitions
from tidelog.storage.local.layout import partition_directory, topic_directory
from tidelog.storage.local.store import LocalStore

A, B = stored("a"), stored("b.c_d-e", 12)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path / "data"), inline=True)


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../../etc", "a" * 250, "white space", "ä", "a\0b"])
def test_names_that_are_no_topic_names_never_reach_the_disk(store: LocalStore, topic: str) -> None:
    with pytest.raises(InvalidInput, match="not a valid name"):
        store.open(stored(topic), LogSettings(), NOW_MS)
    with pytest.raises(InvalidInput):
        store.open(stored("a", -1), LogSettings(), NOW_MS)
    assert store.partitions() == []


def test_a_deleted_topic_is_gone_and_can_be_created_anew(store: LocalStore, tmp_path: Path) -> None:
    append(store.open(A, LogSettings(), NOW_MS), batch(b"old"))
    append(store.open(B, LogSettings(), NOW_MS), batch(b"another"))
    store.release([A])
    store.delete_now(A.topic)
    assert store.partitions() == [B]
    assert os.listdir(tmp_path / "data/logs") == [topic_directory(B.topic)]
    log = store.open(A, LogSettings(), NOW_MS)
    assert log.end_offset == 0
    append(log, batch(b"new"))
    assert values(read_records(log)) == [b"new"]


def test_a_partition_that_was_being_deleted_in_a_crash_is_removed(store: LocalStore, tmp_path: Path) -> None:
    append(store.open(A, LogSettings(), NOW_MS), batch(b"x"))
    store.close_now()
    os.rename(
        tmp_path / f"data/logs/{partition_directory(A)}", tmp_path / f"data/logs/{partition_directory(A)}.deleted"
    )
    again = LocalStore(str(tmp_path / "data"), inline=True)
    assert again.partitions() == []
    assert not (tmp_path / f"data/logs/{partition_directory(A)}.deleted").exists()


def test_a_topic_that_was_being_deleted_in_a_crash_is_removed(store: LocalStore, tmp_path: Path) -> None:
    append(store.open(A, LogSettings(), NOW_MS), batch(b"x"))
    store.close_now()
    os.rename(tmp_path / f"data/logs/{topic_directory(A.topic)}", tmp_path / "data/logs/~deleted.0123")
    assert list(find_partitions(OsFiles(), str(tmp_path / "data"))) == []
    assert LocalStore(str(tmp_path / "data"), inline=True).partitions() == []
    assert os.listdir(tmp_path / "data/logs") == []


# Many partitions at once

MANY = [stored(topic, number) for topic in ("many", "more") for number in range(3)]


class NoWholeSync(MemoryFiles):
    def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
        return False


@pytest.mark.parametrize("files", [MemoryFiles(), NoWholeSync()], ids=["whole", "one by one"])
def test_partitions_that_are_made_together_are_durable_and_as_those_made_one_by_one(files: MemoryFiles) -> None:
    store = LocalStore("/data", files=files, inline=True)
    store.create_now(MANY, NOW_MS)
    after = files.after_crash(Mood.DROP, random.Random(1))
    again = LocalStore("/data", files=after, inline=True)
    assert sorted(again.partitions()) == MANY
    for partition in MANY:
        log = again.open(partition, LogSettings(), NOW_MS)
        assert (log.end_offset, log.recovery.clean) == (0, True)
    assert [path for _, path in after.calls if not path.endswith("lock")] == [], "opening had to change something"
    alone = MemoryFiles()
    LocalStore("/data", files=alone, inline=True).open(MANY[0], LogSettings(), NOW_MS)
    made = {
        path: bytes(inode.data)
        for path, inode in after.names.items()
        if inode and partition_directory(MANY[0]) in path
    }
    assert made == {
        path: bytes(inode.data)
        for path, inode in alone.names.items()
        if inode and partition_directory(MANY[0]) in path
    }


def test_a_thousand_partitions_take_as_few_syncs_as_one() -> None:
    files = MemoryFiles()
    store = LocalStore("/data", files=files, inline=True)
    before = len(files.calls)
    store.create_now([stored("t", number) for number in range(1000)], NOW_MS)
    syncs = [call for call, _ in files.calls[before:] if call.startswith("sync")]
    assert syncs == ["sync_filesystem"] * 2


@pytest.mark.parametrize("mood", Mood)
def test_a_crash_while_partitions_are_made_leaves_what_opening_copes_with(mood: Mood) -> None:
    crash_at = 0
    while True:
        files = MemoryFiles()
        store = LocalStore("/data", files=files, inline=True)
        files.crash_at = files.steps + crash_at + 1
        try:
            store.create_now(MANY, NOW_MS)
        except CrashError:
            pass
        else:
            break
        again = LocalStore("/data", files=files.after_crash(mood, random.Random(crash_at)), inline=True)
        again.create_now(MANY, NOW_MS)
        for partition in MANY:
            log = again.open(partition, LogSettings(), NOW_MS)
            assert (log.end_offset, log.recovery.lost, log.recovery.cut) == (0, [], []), f"step {crash_at}"
            append(log, batch(b"x"), durable=True)
        last = LocalStore("/data", files=again._files.after_crash(Mood.DROP, random.Random(0)), inline=True)  # type: ignore[attr-defined]
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
            append(store.open(partition, LogSettings(), NOW_MS), batch(str(partition.name).encode()), durable=True)
        files.crash_at = files.steps + crash_at + 1
        try:
            store.release(MANY[:3])
            store.delete_now(MANY[0].topic)
        except CrashError:
            pass
        else:
            break
        again = LocalStore("/data", files=files.after_crash(mood, random.Random(crash_at)), inline=True)
        left = sorted(again.partitions())
        assert left in (MANY, MANY[3:]), f"step {crash_at}"
        seen.add(len(left))
        for partition in left:
            assert values(read_records(again.open(partition, LogSettings(), NOW_MS))) == [
                str(partition.name).encode()
            ]
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
        await asyncio.gather(*(store.create([stored(f"t{number}")], NOW_MS) for number in range(50)))
        assert len(store.partitions()) == 50
        assert files.syncs <= 4
        await store.close()

    asyncio.run(run())


def test_one_whose_partitions_cannot_be_made_does_not_keep_others_from_theirs(tmp_path: Path) -> None:
    class Full(OsFiles):
        def make_directories(self, path: str, *, durably: bool = True) -> None:
            if "/bad~" in path and path.endswith("/2"):
                raise OSError(errno.ENOSPC, "No space left on device", path)
            super().make_directories(path, durably=durably)

    async def run() -> None:
        store = LocalStore(str(tmp_path), files=Full())
        wishes = [[stored(topic, number) for number in range(3)] for topic in ("a", "bad", "b")]
        results = await asyncio.gather(*(store.create(wish, NOW_MS) for wish in wishes), return_exceptions=True)
        assert [type(result) for result in results] == [type(None), StorageFull, type(None)]
        assert sorted(store.partitions()) == sorted([*wishes[0], *wishes[2]])
        assert len(os.listdir(tmp_path / "logs")) == 2, "what could not be made as a whole is given back"
        await store.close()

    asyncio.run(run())


# Closing


def test_closing_logs_that_nobody_has_written_to_changes_nothing_on_the_disk() -> None:
    files = MemoryFiles()
    store = LocalStore("/data", files=files, inline=True)
    store.create_now(MANY, NOW_MS)
    for partition in MANY:
        append(store.open(partition, LogSettings(), NOW_MS), batch(b"x"))
    assert store.close_now() == {}
    files.locked.clear()
    again = LocalStore("/data", files=files, inline=True)
    for partition in MANY:
        assert again.open(partition, LogSettings(), NOW_MS).recovery.clean
    before = len(files.calls)
    assert again.close_now() == {}
    assert files.calls[before:] == []


@pytest.fixture
def is_hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a few logs have no more time to close than many."""
    monkeypatch.setattr(store_module, "_FEW", 0)


@pytest.mark.usefixtures("is_hurried")
@pytest.mark.parametrize("files", [MemoryFiles(), NoWholeSync()], ids=["whole", "one by one"])
def test_with_no_time_for_checkpoints_everything_is_durable_all_the_same(files: MemoryFiles) -> None:
    store = LocalStore("/data", files=files, inline=True)
    store.create_now(MANY, NOW_MS)
    for partition in MANY:
        append(store.open(partition, LogSettings(), NOW_MS), batch(str(partition.name).encode()))
    before = len(files.calls)
    assert store.close_now(checkpoints_s=0) == {}
    assert [call for call in files.calls[before:] if call[0] in ("create", "rename")] == []
    again = LocalStore("/data", files=files.after_crash(Mood.DROP, random.Random(0)), inline=True)
    for partition in MANY:
        log = again.open(partition, LogSettings(), NOW_MS)
        assert values(read_records(log)) == [str(partition.name).encode()]
        assert (log.recovery.lost, log.recovery.cut) == ([], [])


@pytest.mark.usefixtures("is_hurried")
def test_the_logs_that_take_longest_to_read_have_checkpoints_first(monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles()
    store = LocalStore("/data", files=files, inline=True)
    store.create_now(MANY, NOW_MS)
    for number, partition in enumerate(MANY):
        append(store.open(partition, LogSettings(), NOW_MS), batch(b"x" * 100 * (number + 1)))
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1
        return now

    monkeypatch.setattr("tidelog.storage.local.store.time", SimpleNamespace(monotonic=clock))
    assert store.close_now(checkpoints_s=3) == {}
    monkeypatch.undo()
    again = LocalStore("/data", files=files.after_crash(Mood.KEEP, random.Random(0)), inline=True)
    clean = [again.open(partition, LogSettings(), NOW_MS).recovery.clean for partition in MANY]
    assert clean == [False] * 4 + [True] * 2


def test_a_log_that_cannot_be_closed_does_not_keep_the_others_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    files = MemoryFiles()
    store = LocalStore("/data", files=files, inline=True)
    logs = [store.open(partition, LogSettings(), NOW_MS) for partition in MANY]
    for log in logs:
        append(log, batch(b"x"))

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def is_wrong(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(logs[1], "begin_flush", fails)
    monkeypatch.setattr(logs[2], "begin_flush", is_wrong)
    monkeypatch.setattr(logs[3], "abandon", fails)
    failures = store.close_now()
    assert list(failures) == [MANY[1].name, MANY[2].name, MANY[3].name]
    assert all(isinstance(error, StorageError) for error in failures.values())
    again = LocalStore("/data", files=files.after_crash(Mood.DROP, random.Random(0)), inline=True)
    found = [again.open(partition, LogSettings(), NOW_MS).end_offset for partition in MANY]
    assert found[:1] + found[3:] == [1, 1, 1, 1]


def test_a_damaged_partition_does_not_keep_others_from_opening(store: LocalStore, tmp_path: Path) -> None:
    for partition in (A, B):
        append(store.open(partition, LogSettings(), NOW_MS), batch(b"x"))
    store.close_now()
    path = tmp_path / f"data/logs/{partition_directory(A)}/00000000000000000000.log"
    path.unlink()
    path.mkdir()
    again = LocalStore(str(tmp_path / "data"), inline=True)
    with pytest.raises(StorageError):
        append(again.open(A, LogSettings(), NOW_MS), batch(b"y"))
    assert values(read_records(again.open(B, LogSettings(), NOW_MS))) == [b"x"]
