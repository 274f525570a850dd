"""A snapshot of a store that another process writes to as fast as it can: one moment of it, whole and recent."""

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.metadata.writer import CALLERS
from tidelog.errors import InvalidInput, StorageUnavailable
from tidelog.metadata.opening import snapshot
from tidelog.metadata.rows import ClusterRow, OffsetRow
from tidelog.metadata.sqlite import SqliteStore
from tidelog.metadata.sqlite import snapshot as module
from tidelog.metadata.store import Put

SNAPSHOTS, CHECKPOINTS, SECONDS = 25, 4, 60.0


async def offsets(data_dir: Path) -> dict[tuple[str, str], int]:
    async with snapshot(str(data_dir)) as store:
        return {(row.group, row.topic): row.offset for row in await store.load(OffsetRow)}


@pytest.mark.slow
def test_a_snapshot_is_one_moment_of_a_store_that_is_written_to(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.metadata.writer", str(tmp_path / "metadata.sqlite"), "0"]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert writer.stdout is not None
    vouched: dict[str, int] = {}
    output = writer.stdout
    assert output.readline() == "ready\n"

    def listen() -> None:
        for line in output:
            number, _, sequence = line.partition(" ")
            if line.endswith("\n"):
                vouched[f"g{number}"] = int(sequence)

    listener = threading.Thread(target=listen)
    listener.start()
    databases: set[int] = set()  # a checkpoint gives it another time
    deadline, taken = time.monotonic() + SECONDS, 0
    try:
        while len(vouched) < CALLERS:
            assert writer.poll() is None
        while taken < SNAPSHOTS or len(databases) < CHECKPOINTS:
            taken += 1
            assert time.monotonic() < deadline, f"{taken} snapshots and {len(databases)} checkpoints by now"
            before = dict(vouched)
            found = asyncio.run(offsets(tmp_path))
            databases.add((tmp_path / "metadata.sqlite").stat().st_mtime_ns)
            for group, sequence in before.items():
                assert found[group, "a"] == found[group, "b"], "a write of two rows is there as a whole or not at all"
                assert found[group, "a"] >= sequence, "what was acknowledged before is in it"
        assert writer.poll() is None, "the writer was not disturbed"
    finally:
        writer.kill()
        writer.wait()
        listener.join()
        output.close()


def test_what_is_written_to_a_snapshot_is_lost(tmp_path: Path) -> None:
    async def play() -> list[ClusterRow]:
        store = await SqliteStore.open(str(tmp_path / "metadata.sqlite"))
        await store.write([Put(ClusterRow("a", "1"))])
        await store.close()
        async with snapshot(str(tmp_path)) as copy:
            await copy.write([Put(ClusterRow("a", "2"))])
        async with snapshot(str(tmp_path)) as copy:
            return await copy.load(ClusterRow)

    assert asyncio.run(play()) == [ClusterRow("a", "1")]


def test_a_copy_that_never_is_whole_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metadata.sqlite").write_bytes(b"")
    monkeypatch.setattr(module, "_is_same", lambda _path, _copy: False)
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.0)
    with pytest.raises(StorageUnavailable, match="changes faster"):
        asyncio.run(offsets(tmp_path))


def test_a_directory_without_metadata_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a data directory"):
        asyncio.run(offsets(tmp_path))
