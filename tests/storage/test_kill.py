"""A real writer process, killed with SIGKILL at random moments, many rounds over the same directory: everything it
said was appended is there afterwards, in order, and nothing else than what it sent."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.logs import NOW_MS, read_records, stored
from tests.support.writer import log_settings
from tidelog.storage.local.store import LocalStore


def run_and_kill(directory: str, policy: str, rng: random.Random) -> int:
    """The end offset that the writer vouched for before it died."""
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.support.writer", directory, policy, str(rng.choice([10, 500, 3000]))],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert writer.stdout is not None
    with writer.stdout:
        ready, end = writer.stdout.readline().split()
        assert ready == "ready"
        vouched = int(end)
        deadline = time.monotonic() + rng.uniform(0.0, 0.15)
        wanted = rng.randint(0, 400)
        for number, line in enumerate(writer.stdout):
            vouched = int(line)
            if number >= wanted or time.monotonic() >= deadline:
                break
        os.kill(writer.pid, signal.SIGKILL)
        for line in writer.stdout:  # what it had said before it died counts
            if line.endswith("\n"):
                vouched = int(line)
    assert writer.wait() == -signal.SIGKILL
    return vouched


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["acks", "always", "interval", "os"])
def test_a_killed_writer_loses_nothing_that_it_acknowledged(policy: str, tmp_path: Path) -> None:
    rng = random.Random(policy)
    for _ in range(12):
        vouched = run_and_kill(str(tmp_path), policy, rng)
        store = LocalStore(str(tmp_path), inline=True)
        log = store.open(stored("topic"), log_settings(policy), NOW_MS)
        assert log.end_offset >= vouched
        records = read_records(log)
        assert [record.offset for record in records] == list(range(log.start_offset, log.end_offset))
        assert all((record.value or b"").startswith(b"%d:" % record.offset) for record in records)
        assert not log.recovery.lost
        # Half of the rounds go on from what the crash left, half from a clean stop.
        store.close_now() if rng.random() < 0.5 else log.abandon()
        del store, log
