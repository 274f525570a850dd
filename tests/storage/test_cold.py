"""Reads of what is not in memory come later, and do not wait for the disk on the event loop."""

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.logs import NOW_MS, append, batch, stored
from tests.support.memory_files import MemoryFiles
from tests.support.page_cache import evict, tells_what_is_cached
from tidelog.errors import StorageError
from tidelog.promise import Promise, result_of
from tidelog.records.batch import iterate
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import ReadResult

RECORDS = 60
NO_TAIL = StorageSettings(tail_cache_bytes=0)
SMALL_SEGMENTS = LogSettings(segment_bytes=4096, index_interval_bytes=512)


def fill(store: LocalStore) -> LocalLog:
    log = store.open(stored("t"), SMALL_SEGMENTS, NOW_MS)
    for number in range(RECORDS):
        append(log, batch(b"%d" % number * 100, timestamp=NOW_MS + number))
    return log


def all_files(files: MemoryFiles) -> set[str]:
    return {path for path, inode in files.names.items() if inode is not None}


def offsets(result: ReadResult) -> list[int]:
    return [view.header.base_offset for view in iterate(result.read())]


def play(story: Callable[[MemoryFiles, LocalLog], Awaitable[None]]) -> None:
    async def run() -> None:
        files = MemoryFiles()
        store = LocalStore("/data", NO_TAIL, files=files)
        log = fill(store)
        await story(files, log)
        await store.close()

    asyncio.run(run())


def test_what_is_in_memory_is_read_at_once() -> None:
    async def story(files: MemoryFiles, log: LocalLog) -> None:
        for offset in range(RECORDS):
            result = log.read(offset, 1)
            assert isinstance(result, ReadResult)
            assert offsets(result) == [offset]

    play(story)


def test_what_is_not_is_read_by_a_thread_and_comes_later() -> None:
    async def story(files: MemoryFiles, log: LocalLog) -> None:
        loop_thread = threading.get_ident()
        waited: list[str] = []

        def on_call(operation: str, path: str) -> None:
            if operation == "read" and path in files.cold:
                assert threading.get_ident() != loop_thread, "the event loop waited for the disk"
                waited.append(path.rpartition(".")[2])

        for offset in (0, 30, RECORDS - 1):
            for segment in log._segments.all():
                log._pool.forget(segment)
            files.cold = all_files(files)
            files.on_call = on_call
            waited.clear()
            result = log.read(offset, 1)
            assert isinstance(result, Promise)
            assert offsets(await result) == [offset]
            assert "log" in waited
            found = log.read(offset, 1)
            assert isinstance(found, ReadResult), "it is in memory now"
            files.on_call = None

    play(story)


def test_times_are_looked_up_later_too() -> None:
    async def story(files: MemoryFiles, log: LocalLog) -> None:
        for look_up, expected in ((partial(log.offset_for_time, NOW_MS + 7), 7), (log.max_timestamp, RECORDS - 1)):
            for segment in log._segments.sealed:
                log._pool.forget(segment)
                segment._max_timestamp = None
            files.cold = all_files(files)
            promised = look_up()
            assert isinstance(promised, Promise)
            found = await promised
            assert found is not None
            assert found.offset == expected

    play(story)


def test_a_disk_that_fails_fails_the_read_and_nothing_else() -> None:
    async def story(files: MemoryFiles, log: LocalLog) -> None:
        def fails(operation: str, path: str) -> None:
            if operation == "read" and path.endswith("00000.log"):
                raise OSError(errno.EIO, "Input/output error", path)

        files.cold = all_files(files)
        files.on_call = fails
        bad = log.read(0, 1)
        assert isinstance(bad, Promise)
        with pytest.raises(StorageError, match="Input/output error"):
            await bad
        assert offsets(await result_of(log.read(RECORDS - 1, 1))) == [RECORDS - 1]
        files.on_call = None
        assert offsets(await result_of(log.read(0, 1))) == [0], "it recovers when the disk does"

    play(story)


def test_a_log_that_is_deleted_meanwhile_answers_with_an_error() -> None:
    async def story(files: MemoryFiles, log: LocalLog) -> None:
        files.cold = all_files(files)
        result = log.read(0, 1)
        assert isinstance(result, Promise)
        log.abandon()
        for path in all_files(files):
            if path.endswith(".log"):
                files.remove(path)
        with pytest.raises(StorageError):
            await result

    play(story)


def test_real_files_that_left_the_page_cache_are_read_later(tmp_path: Path) -> None:
    async def run() -> None:
        store = LocalStore(str(tmp_path), NO_TAIL)
        log = fill(store)
        evict(tmp_path)
        if not tells_what_is_cached(tmp_path):
            pytest.skip("this file system does not tell what is in memory, or keeps all of it")
        evict(tmp_path)
        seen = [offsets(await result_of(log.read(offset, 1))) for offset in range(RECORDS)]
        assert seen == [[offset] for offset in range(RECORDS)]
        evict(tmp_path)
        assert isinstance(log.read(0, 1 << 20), Promise)
        await store.close()

    asyncio.run(run())


def test_only_the_thread_that_must_not_wait_is_told(tmp_path: Path) -> None:
    files = OsFiles()
    (tmp_path / "file").write_bytes(b"x" * 8192)
    file = files.open(str(tmp_path / "file"), writable=False)
    evict(tmp_path)
    read: list[bytes] = []

    def in_a_thread() -> None:
        thread = threading.Thread(target=lambda: read.append(file.pread(2, 4096)))
        thread.start()
        thread.join()

    files.without_waiting(in_a_thread)
    assert read == [b"xx"]
    assert files.without_waiting(lambda: file.pread(10, 8190)) == b"xx", "the end of the file is no reason to wait"
