"""Exporting topics of a cluster into a data directory: with a process that ends at any step, and with brokers that
remove objects meanwhile."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import NOW_MS, stored
from tests.support.transfers import (
    SMALL,
    Cluster,
    Killed,
    Life,
    Mortal,
    batches_in,
    put,
    with_cluster,
    write_directory,
)
from tidelog.errors import CorruptLog, InvalidInput, TidelogError
from tidelog.metadata.opening import create_in, open_store
from tidelog.metadata.rows import OffsetRow, TopicRow
from tidelog.node import exporting
from tidelog.node.exporting import ClusterExport
from tidelog.settings import ClusterSettings
from tidelog.storage.engines import open_cluster_export
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore
from tidelog.storage.shared.store import wall_clock_ms
from tidelog.storage.transfer.exporting import JOURNAL, ExportStorage, Journal
from tidelog.storage.transfer.importing import CopyDiffers

STRIDE = 1 if "TIDELOG_TEST_CLUSTER" in os.environ else 7  # of the steps at which an export ends
FILE_CALLS = ("open", "rename", "remove", "sync_directory", "make_directories", "remove_directory")


async def export(cluster: Cluster, target: Path, *topics: str) -> None:
    await ClusterExport(cluster.settings, str(target), topics).run(lambda _: None)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("with_effect", [False, True])
def test_an_export_that_ends_at_any_step_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_effect: bool
) -> None:
    opened, created = open_cluster_export, create_in
    life = Life()

    @asynccontextmanager
    async def open_mortal(settings: ClusterSettings, cluster_id: str, data_dir: str) -> AsyncIterator[ExportStorage]:
        async with opened(settings, cluster_id, data_dir):
            pass  # what it checks, and the first line of the journal
        files: Any = Mortal(OsFiles(), life, *FILE_CALLS)
        objects: Any = Mortal(_objects[0], life)
        journal: Any = Mortal(Journal(f"{data_dir}/{JOURNAL}"), life, "note", "remove")
        storage = ExportStorage(data_dir, journal, objects, clock=wall_clock_ms, files=files)
        try:
            yield storage
        finally:
            life.is_over = True
            storage.close()

    async def create_mortal(data_dir: str, changes: Any) -> None:
        await life.through(lambda: created(data_dir, changes))

    _objects: list[Any] = []

    async def test(cluster: Cluster) -> None:
        nonlocal life
        _objects.append(cluster.objects)
        source = tmp_path / "single"
        await write_directory(source, ["topic"])
        await cluster.take_in(source)
        with monkeypatch.context() as patched:
            patched.setattr(exporting, "open_cluster_export", open_mortal)
            patched.setattr(exporting, "create_in", create_mortal)
            for step in range(1, 1000, STRIDE):
                life = Life(step, with_effect=with_effect)
                target = tmp_path / f"target-{step}"
                is_killed = False
                try:
                    await export(cluster, target)
                except Killed:
                    is_killed = True
                    assert (target / JOURNAL).exists() or (target / "metadata.sqlite").exists()
                    life = Life()
                    if (target / JOURNAL).exists():
                        await export(cluster, target)
                assert not (target / JOURNAL).exists()
                assert sorted(os.listdir(target)) == ["lock", "logs", "metadata.sqlite"]
                assert batches_in(target, "topic") == batches_in(source, "topic")
                if not is_killed:
                    break
            assert step > 20
        metadata = await open_store(str(target))
        try:
            assert [row.name for row in await metadata.load(TopicRow)] == ["topic"]
            (offset,) = await metadata.load(OffsetRow)
            assert (offset.offset, offset.leader_epoch) == (4, -1)
        finally:
            await metadata.close()

    with_cluster(tmp_path, test)


def test_an_export_is_made_of_one_moment_and_begins_again_if_objects_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(cluster: Cluster) -> None:
        await write_directory(tmp_path / "single", ["topic", "other"])
        await cluster.take_in(tmp_path / "single")
        exported = ClusterExport(cluster.settings, str(tmp_path / "target"), ())
        old = await exported.state()
        gone = next(log for log in old.logs if log.partition == stored("topic")).known.extents[0].key
        lost = Path(f"{tmp_path}/objects/{gone}")
        content = lost.read_bytes()
        looks = 0
        reading = ClusterExport.state

        async def state(self: ClusterExport) -> Any:
            nonlocal looks
            looks += 1
            if looks == 2:  # the brokers have merged it: it is there under another key
                lost.write_bytes(content)
            return await reading(self)

        lost.unlink()
        monkeypatch.setattr(ClusterExport, "state", state)
        await exported.run(lambda _: None)
        assert looks == 2
        assert batches_in(tmp_path / "target", "topic") == batches_in(tmp_path / "single", "topic")
        monkeypatch.setattr(ClusterExport, "state", reading)
        lost.unlink()
        with pytest.raises(TidelogError, match=r"run the command again; otherwise see: tidelog cluster check"):
            await export(cluster, tmp_path / "second")
        lost.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        with pytest.raises(CorruptLog):
            await export(cluster, tmp_path / "second")
        lost.write_bytes(content)
        await export(cluster, tmp_path / "second")

    with_cluster(tmp_path, test)


def test_only_a_new_directory_or_an_unfinished_export_of_the_same_cluster_is_taken(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        await write_directory(tmp_path / "single", ["topic"])
        await cluster.take_in(tmp_path / "single")
        with pytest.raises(InvalidInput, match="is not empty"):
            await export(cluster, tmp_path / "single")
        await export(cluster, tmp_path / "target")
        with pytest.raises(InvalidInput, match="is not empty"):
            await export(cluster, tmp_path / "target")
        (tmp_path / "foreign").mkdir()
        Journal(f"{tmp_path}/foreign/{JOURNAL}").begin("another")
        with pytest.raises(InvalidInput, match="an unfinished export of the cluster 'another'"):
            await export(cluster, tmp_path / "foreign")
        served = tmp_path / "served"
        served.mkdir()
        Journal(f"{served}/{JOURNAL}").begin("the cluster")
        await (await open_store(str(served))).close()  # as a broker does that is started too early
        with pytest.raises(InvalidInput, match=r"a broker has used .* before its export was complete"):
            await export(cluster, served)
        with pytest.raises(InvalidInput, match="the cluster has no topic wrong; it has: topic"):
            await export(cluster, tmp_path / "x", "wrong")
        assert not (tmp_path / "x").exists()

    with_cluster(tmp_path, test)


def test_a_copy_that_differs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(cluster: Cluster) -> None:
        await write_directory(tmp_path / "single", ["topic"])
        await cluster.take_in(tmp_path / "single")
        writing = ExportStorage._write

        async def write(self: ExportStorage, *about: Any) -> Any:
            totals = await writing(self, *about)
            (first, *_) = sorted((tmp_path / "target").glob("logs/*/0/*.log"))
            content = bytearray(first.read_bytes())
            content[15] ^= 1  # the leader epoch, which no CRC of a batch covers
            first.write_bytes(content)
            return totals

        monkeypatch.setattr(ExportStorage, "_write", write)
        with pytest.raises(
            CopyDiffers, match=r"topic-0 was read as 15 batches, 15 records, .* but .* has 15 batches"
        ):
            await export(cluster, tmp_path / "target")
        monkeypatch.setattr(ExportStorage, "_write", writing)
        await export(cluster, tmp_path / "target")

    with_cluster(tmp_path, test)


def test_the_files_of_an_export_are_a_log_that_goes_on(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        await write_directory(tmp_path / "single", ["topic"])
        await cluster.take_in(tmp_path / "single")
        await export(cluster, tmp_path / "target")

    with_cluster(tmp_path, test)
    stores = [LocalStore(str(tmp_path / name), inline=True) for name in ("single", "target")]
    first, second = (_opened(store) for store in stores)
    assert not second.recovery.lines(), "nothing had to be scanned or rebuilt"
    assert (second.start_offset, second.end_offset) == (first.start_offset, first.end_offset)
    assert sorted(map(repr, second.active_producers())) == sorted(
        repr(each._replace(coordinator_epoch=-1)) for each in first.active_producers()
    )
    for log in (first, second):
        put(log, b"more", producer_id=5, producer_epoch=0, sequence=1)
        put(log, b"more", producer_id=5, producer_epoch=0, sequence=1)  # a repetition
    assert second.read_now(0, 1 << 20, committed=True).aborted == first.read_now(0, 1 << 20, committed=True).aborted
    assert second.end_offset == first.end_offset == 16
    for store in stores:
        assert not store.close_now()


def _opened(store: LocalStore) -> LocalLog:
    return store.open(stored("topic"), SMALL, NOW_MS)
