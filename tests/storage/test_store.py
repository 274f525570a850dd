"""The data directory: partitions come, go and are kept up; one bad partition concerns itself alone."""

import os
from pathlib import Path

import pytest

from tests.support.logs import NOW_MS, append, batch, read_records, values
from tidelog.errors import InvalidInput, StorageError
from tidelog.model import TopicPartition
from tidelog.settings import LogSettings, StorageSettings
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


def test_a_deleted_partition_is_gone_and_can_be_created_anew(store: LocalStore) -> None:
    append(store.open(A, LogSettings(), NOW_MS), batch(b"old"))
    store.delete(A)
    assert store.partitions() == []
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


def test_deleting_what_is_not_there_is_an_error(store: LocalStore) -> None:
    with pytest.raises(StorageError, match="cannot delete a-0"):
        store.delete(A)


def test_upkeep_applies_retention_to_every_partition(store: LocalStore) -> None:
    settings = LogSettings(segment_bytes=1024, retention_bytes=2000)
    logs = [store.open(partition, settings, NOW_MS) for partition in (A, B)]
    for log in logs:
        for _ in range(20):
            append(log, batch(b"x" * 300))
    assert store.upkeep(NOW_MS) == {}
    assert all(log.stats().size_bytes < 3100 for log in logs)


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
