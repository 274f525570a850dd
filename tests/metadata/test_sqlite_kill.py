"""A real writer process, killed with SIGKILL at random moments, many rounds over the same file: everything it said
was written is there, and of every write all or nothing."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.metadata.writer import CALLERS
from tidelog.errors import DirectoryInUse
from tidelog.metadata.rows import OffsetRow
from tidelog.metadata.sqlite import SqliteStore, file


async def offsets(path: str) -> dict[tuple[str, str], int]:
    store = await SqliteStore.open(path)
    rows = await store.load(OffsetRow)
    await store.close()
    return {(row.group, row.topic): row.offset for row in rows}


def run_and_kill(path: str, start: int, rng: random.Random, *, try_to_share: bool) -> dict[int, int]:
    """The last sequence that each caller vouched for before the process died."""
    command = [sys.executable, "-m", "tests.metadata.writer", path, str(start)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert writer.stdout is not None
    vouched: dict[int, int] = {}
    with writer.stdout:
        assert writer.stdout.readline() == "ready\n"
        if try_to_share:
            with pytest.raises(DirectoryInUse, match="another process uses it"):
                asyncio.run(offsets(path))
        deadline = time.monotonic() + rng.uniform(0.0, 0.06)
        for line in writer.stdout:
            if not line.endswith("\n"):
                break  # it died in the middle of a word
            number, sequence = map(int, line.split())
            vouched[number] = sequence
            if time.monotonic() >= deadline:
                os.kill(writer.pid, signal.SIGKILL)  # what it had said before counts, so read on
                deadline = float("inf")
    assert writer.wait() == -signal.SIGKILL
    return vouched


def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_LOCK_TIMEOUT_S", 0.05)
    rng = random.Random(7)
    path = str(tmp_path / "metadata.sqlite")
    start = 0
    for turn in range(12):
        vouched = run_and_kill(path, start, rng, try_to_share=turn == 0)
        found = asyncio.run(offsets(path))
        assert vouched, "it wrote something before it died"
        for number in range(CALLERS):
            first, second = found.get((f"g{number}", "a"), -1), found.get((f"g{number}", "b"), -1)
            assert first == second, "a write of two rows is there as a whole or not at all"
            assert first >= vouched.get(number, -1)
        start = max(found.values()) + 1
