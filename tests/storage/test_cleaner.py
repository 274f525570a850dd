"""The cleaner goes on with the other logs, whatever one of them, or its own settings, do."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from tests.storage.test_compaction import compacted, keyed, use_plain
from tests.support.logs import EPOCH, NOW_MS, stored
from tidelog.promise import result_of
from tidelog.settings import CleanerSettings
from tidelog.storage import cleaner as cleaner_module
from tidelog.storage.cleaner import Cleaner
from tidelog.storage.local.files import File, OsFile, OsFiles
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore

SETTINGS = CleanerSettings(backoff_ms=5)


@pytest.fixture(autouse=True)
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which take a while to load, and have their own tests."""
    use_plain(monkeypatch)
    monkeypatch.setattr(cleaner_module, "load_kernels", lambda _given_up: True)


class FaultyFile(OsFile):
    __slots__ = ("files",)
    files: "FaultyFiles"

    def pread(self, size: int, position: int) -> bytes:
        self.files.check(self.path)
        return super().pread(size, position)


class FaultyFiles(OsFiles):
    unreadable = "nowhere"

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        self.check(path)
        flags = (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0)
        file = FaultyFile(path, os.open(path, flags, 0o600))
        file.files = self
        return file

    def check(self, path: str) -> None:
        if path.startswith(self.unreadable):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)


async def dirty_logs(store: LocalStore) -> list[LocalLog]:
    logs = [
        store.open(stored("t", number), compacted(segment_bytes=1024, max_lag_ms=1), NOW_MS) for number in range(2)
    ]
    for log in logs:
        await write(log)
    return logs


async def write(log: LocalLog) -> None:
    for number in range(20):
        data = keyed((b"%d" % (number % 3), b"v" * 200), timestamp=NOW_MS)
        await result_of(log.append(data, now_ms=NOW_MS, leader_epoch=EPOCH, durable=True))


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not look():
            await asyncio.sleep(0.005)


def test_a_log_that_cannot_be_read_is_told_once_and_the_others_are_compacted(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        store = LocalStore(str(tmp_path), files=files)
        bad, good = await dirty_logs(store)
        for segment in bad._segments.all():
            bad._pool.forget(segment)
        files.unreadable = bad.directory
        cleaner = Cleaner(store.compactions, lambda: SETTINGS)
        await until(lambda: good.compaction.state.clean_offset > 0)
        before = good.compaction.state.clean_offset
        for _ in range(3):
            await write(good)
            await until(lambda before=before: good.compaction.state.clean_offset > before)  # type: ignore[misc]
            before = good.compaction.state.clean_offset
        failures = [entry for entry in lines if entry["log_level"] == "error"]
        assert [entry["partition"] for entry in failures] == ["t-0"]
        assert "Input/output error" in failures[0]["reason"]
        files.unreadable = "nowhere"
        await until(lambda: bad.compaction.state.clean_offset > 0)
        await until(lambda: any(entry["event"] == "compaction works again" for entry in lines))
        await cleaner.close()
        assert await store.close() == {}

    with structlog.testing.capture_logs() as lines:
        asyncio.run(run())


def test_a_bug_of_ours_does_not_end_the_cleaner(tmp_path: Path) -> None:
    async def run() -> None:
        store = LocalStore(str(tmp_path))
        logs = await dirty_logs(store)
        calls = 0

        def settings() -> CleanerSettings:
            nonlocal calls
            calls += 1
            if 1 < calls < 5:
                raise ValueError("not foreseen")
            return SETTINGS

        cleaner = Cleaner(store.compactions, settings)
        await until(lambda: all(log.compaction.state.clean_offset > 0 for log in logs))
        assert [entry["event"] for entry in lines if entry["log_level"] == "error"] == [
            "the cleaner failed; no log is compacted"
        ]
        assert "the cleaner works again" in [entry["event"] for entry in lines]
        await cleaner.close()
        assert await store.close() == {}

    with structlog.testing.capture_logs() as lines:
        asyncio.run(run())


def test_a_log_that_is_deleted_while_it_is_compacted_is_no_trouble(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        store = LocalStore(str(tmp_path), files=files)
        _, other = logs = await dirty_logs(store)
        cleaner = Cleaner(store.compactions, lambda: CleanerSettings(backoff_ms=5, bytes_per_second=2000))
        await until(lambda: bool(cleaner._active))
        store.release([stored("t", 0), stored("t", 1)])
        await store.delete(stored("t", 0).topic)
        other = store.open(stored("u", 0), compacted(segment_bytes=1024, max_lag_ms=1), NOW_MS)
        cleaner._throttle.bytes_per_second = float("inf")
        await until(lambda: not cleaner._active)
        assert all(log.compaction.fault is not None for log in logs)
        assert [entry for entry in lines if entry["log_level"] == "error"] == []
        await cleaner.close()
        assert other.compaction.fault is None
        assert await store.close() == {}

    with structlog.testing.capture_logs() as lines:
        asyncio.run(run())
