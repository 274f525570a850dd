"""Group commit in an event loop: who waits for what, how many syncs, and what a failure does to whom."""

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from tests.support.logs import EPOCH, NOW_MS, batch, read_records, stored
from tidelog.errors import LogClosed, StorageError
from tidelog.promise import Promise, result_of
from tidelog.settings import FlushPolicy, LogSettings
from tidelog.storage.local.files import File, OsFile, OsFiles
from tidelog.storage.local.layout import partition_directory
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import Appended


class WatchedFile(OsFile):
    __slots__ = ("files",)
    files: "WatchedFiles"

    def sync(self) -> None:
        self.files.synced(self.path)
        super().sync()


class WatchedFiles(OsFiles):
    """Real files; syncs are counted, can be held up and can fail."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.whole = whole
        self.file_syncs: list[str] = []
        self.whole_syncs = 0
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.failing = ""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0)
        file = WatchedFile(path, os.open(path, flags, 0o644))
        file.files = self
        return file

    def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
        assert self.may_sync.wait(20)
        if not self.whole:
            return False
        if self.failing:
            raise OSError(errno.EIO, "Input/output error")
        self.whole_syncs += 1
        return super().sync_filesystem(path, 1 << 62)

    def synced(self, path: str) -> None:
        assert self.may_sync.wait(20)
        self.file_syncs.append(path)
        if self.failing and self.failing in path:
            raise OSError(errno.EIO, "Input/output error", path)

    def log_syncs(self) -> int:
        return sum(path.endswith(".log") for path in self.file_syncs)


def append(log: LocalLog, value: bytes = b"x", *, durable: bool = True) -> Appended | Promise[Appended]:
    return log.append(batch(value), now_ms=NOW_MS, leader_epoch=EPOCH, durable=durable)


def open_logs(store: LocalStore, count: int, settings: LogSettings | None = None) -> list[LocalLog]:
    return [store.open(stored("t", number), settings or LogSettings(), NOW_MS) for number in range(count)]


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_nobody_is_answered_before_the_sync(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        files.may_sync.clear()
        waiting = asyncio.ensure_future(result_of(append(log)))
        await turns()
        assert not waiting.done()
        assert log.durable_offset == 0
        files.may_sync.set()
        assert (await waiting).base_offset == 0
        assert log.durable_offset == 1
        await store.close()

    asyncio.run(run())


def test_appends_of_one_turn_share_one_sync(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        await asyncio.gather(*(result_of(append(log)) for _ in range(100)))
        assert files.log_syncs() == 1
        await store.close()

    asyncio.run(run())


def test_appends_during_a_sync_wait_for_the_next_one(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        files.may_sync.clear()
        first = asyncio.ensure_future(result_of(append(log)))
        await turns()
        second = [asyncio.ensure_future(result_of(append(log))) for _ in range(10)]
        await turns()
        files.may_sync.set()
        await first
        assert not any(task.done() for task in second)
        await asyncio.gather(*second)
        assert files.log_syncs() == 2
        await store.close()

    asyncio.run(run())


def test_a_thousand_dirty_partitions_are_synced_with_one_call(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=True)
        store = LocalStore(str(tmp_path), files=files)
        logs = open_logs(store, 1000)
        files.file_syncs.clear()
        files.whole_syncs = 0
        await asyncio.gather(*(result_of(append(log)) for log in logs))
        assert (files.whole_syncs, files.log_syncs()) == (1, 0)
        assert all(log.durable_offset == 1 for log in logs)
        files.file_syncs.clear()
        assert await store.close() == {}
        assert files.file_syncs == [], "closing needs no sync per partition either"

    asyncio.run(run())


def test_where_the_file_system_cannot_be_synced_as_a_whole_each_file_is(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        logs = open_logs(store, 20)
        files.file_syncs.clear()
        await asyncio.gather(*(result_of(append(log)) for log in logs))
        assert files.log_syncs() == 20
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("whole", [True, False], ids=["whole file system", "file by file"])
def test_a_failing_partition_fails_its_own_callers_only_and_heals(tmp_path: Path, whole: bool) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=whole)
        store = LocalStore(str(tmp_path), files=files)
        logs = open_logs(store, 4)
        files.failing = partition_directory(stored("t", 2)) + "/"
        results = await asyncio.gather(*(result_of(append(log)) for log in logs), return_exceptions=True)
        assert [isinstance(result, StorageError) for result in results] == [False, False, True, False]
        assert [log.durable_offset for log in logs] == [1, 1, 0, 1]
        files.failing = ""
        with pytest.raises(StorageError, match="failed flush"):
            append(logs[2])
        while logs[2].fault is not None:
            await asyncio.sleep(0.001)
        await result_of(append(logs[2]))
        assert logs[2].durable_offset == 2
        await store.close()

    asyncio.run(run())


def test_everybody_who_waits_for_a_failed_sync_gets_an_error_of_their_own(tmp_path: Path) -> None:
    """The log keeps its fault for as long as the disk fails: raised itself, it would keep all who met it."""

    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        files.failing = log.directory
        results = await asyncio.gather(*(result_of(append(log)) for _ in range(5)), return_exceptions=True)
        assert [type(result) for result in results] == [StorageError] * 5
        assert len({id(result) for result in results}) == 5
        assert log.fault is not None
        for _ in range(3):
            with pytest.raises(StorageError) as caught:
                log.flush()
            assert caught.value is not log.fault
        assert log.fault.__traceback__ is None
        files.failing = ""
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("count", [1, 3])
def test_a_bug_in_a_flush_fails_those_who_wait_and_the_next_flush_works(tmp_path: Path, count: int) -> None:
    class Buggy(WatchedFiles):
        has_bug = True

        def synced(self, path: str) -> None:
            if self.has_bug:
                raise ValueError("not foreseen")
            super().synced(path)

        def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
            if self.has_bug:
                raise ValueError("not foreseen")
            return super().sync_filesystem(path, at_most_dirty)

    async def run() -> None:
        files = Buggy(whole=True)
        files.has_bug = False
        store = LocalStore(str(tmp_path), files=files)
        logs = open_logs(store, count)
        files.has_bug = True
        for outcome in await asyncio.gather(*(result_of(append(log)) for log in logs), return_exceptions=True):
            assert isinstance(outcome, StorageError)
            assert "not foreseen" in str(outcome)
        assert all(log.durable_offset == 0 for log in logs)
        files.has_bug = False
        for log in logs:
            log.flush()
            await asyncio.wait_for(result_of(append(log)), 20)
        assert all(log.durable_offset == 2 for log in logs)
        assert await store.close() == {}

    asyncio.run(run())


def test_a_caller_that_gives_up_does_not_disturb_the_others(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        files.may_sync.clear()
        tasks = [asyncio.ensure_future(result_of(append(log))) for _ in range(3)]
        await turns()
        tasks[1].cancel()
        await turns()
        files.may_sync.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[1], asyncio.CancelledError)
        assert [isinstance(results[n], Appended) for n in (0, 2)] == [True, True]
        await store.close()

    asyncio.run(run())


def test_the_interval_policy_flushes_by_itself_and_nobody_waits(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1, LogSettings(flush=FlushPolicy.INTERVAL, flush_ms=5, flush_messages=1000))
        files.may_sync.clear()
        await result_of(append(log))
        assert log.durable_offset == 0
        files.may_sync.set()
        while log.durable_offset < 1:
            await asyncio.sleep(0.001)
        await store.close()

    asyncio.run(run())


def test_a_repeated_batch_is_answered_only_when_the_first_is_durable(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        data = batch(b"once", producer_id=1, producer_epoch=0, sequence=0)
        files.may_sync.clear()
        first = asyncio.ensure_future(
            result_of(log.append(bytearray(data), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True))
        )
        await turns()
        again = asyncio.ensure_future(
            result_of(log.append(bytearray(data), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True))
        )
        await turns()
        assert not again.done()
        files.may_sync.set()
        assert (await again).duplicate
        assert not (await first).duplicate
        await store.close()

    asyncio.run(run())


def test_deleting_a_topic_answers_those_who_wait_for_it(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        other = store.open(stored("other"), LogSettings(), NOW_MS)
        files.may_sync.clear()
        first = asyncio.ensure_future(result_of(append(other)))
        await turns()
        waiting = asyncio.ensure_future(result_of(append(log)))
        await turns()
        store.release([stored("t", 0)])
        with pytest.raises(StorageError, match="closed"):
            await waiting
        files.may_sync.set()
        await first
        assert await store.close() == {}

    asyncio.run(run())


def test_concurrent_callers_lose_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        store = LocalStore(str(tmp_path))
        logs = open_logs(store, 8, LogSettings(segment_bytes=20_000))

        async def caller(number: int) -> None:
            for turn in range(25):
                log = logs[(number + turn) % 8]
                appended = await result_of(append(log, b"%d-%d" % (number, turn)))
                assert log.durable_offset > appended.last_offset

        await asyncio.gather(*(caller(number) for number in range(32)))
        assert await store.close() == {}
        again = LocalStore(str(tmp_path), inline=True)
        found = [record.value for log in open_logs(again, 8) for record in read_records(log)]
        assert sorted(value or b"" for value in found) == sorted(
            b"%d-%d" % (number, turn) for number in range(32) for turn in range(25)
        )
        again.close_now()

    asyncio.run(run())


def test_who_waits_again_while_being_answered_is_answered_too(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        files.may_sync.clear()
        first = append(log)
        assert isinstance(first, Promise)
        await turns()  # the round of the first has begun
        second = append(log)
        again: list[Appended | Promise[Appended]] = []
        first.when_done(lambda _result, _error: again.append(append(log)))
        files.may_sync.set()
        await asyncio.wait_for(result_of(second), 20)
        (third,) = again
        await asyncio.wait_for(result_of(third), 20)
        assert log.durable_offset == 3
        await store.close()

    asyncio.run(run())


def test_those_who_fail_together_get_errors_of_their_own(tmp_path: Path) -> None:
    """One that is raised for all would keep alive what each of them was doing."""

    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        files.failing = ".log"
        first, second = await asyncio.gather(*(result_of(append(log)) for _ in range(2)), return_exceptions=True)
        assert isinstance(first, StorageError)
        assert str(first) == str(second) == str(log.fault)
        assert len({id(first), id(second), id(log.fault)}) == 3
        await store.close()

    asyncio.run(run())


def test_the_starts_of_many_logs_move_with_a_few_syncs_when_they_are_durable(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=True)
        store = LocalStore(str(tmp_path), files=files)
        logs = open_logs(store, 300)
        await asyncio.gather(*(result_of(append(log)) for log in logs for _ in range(3)))
        files.file_syncs.clear()
        files.whole_syncs = 0
        files.may_sync.clear()
        moves = [log.delete_before(1 + number % 3) for number, log in enumerate(logs)]
        await turns()
        assert not any(move.is_kept for move in moves)
        assert {log.start_offset for log in logs} == {0}, "not before it is durable"
        files.may_sync.set()
        assert [await move for move in moves] == [1 + number % 3 for number in range(300)]
        assert [log.start_offset for log in logs] == [1 + number % 3 for number in range(300)]
        assert files.file_syncs == []
        assert files.whole_syncs <= 3
        await store.close()
        again = LocalStore(str(tmp_path), inline=True)
        assert [log.start_offset for log in open_logs(again, 300)] == [1 + number % 3 for number in range(300)]
        again.close_now()

    asyncio.run(run())


@pytest.mark.parametrize("whole", [True, False], ids=["whole file system", "file by file"])
def test_a_start_that_cannot_be_made_durable_has_not_moved_and_concerns_nobody_else(
    tmp_path: Path, whole: bool
) -> None:
    class Failing(WatchedFiles):
        directory = "nowhere"

        def rename(self, source: str, target: str) -> None:
            if source == f"{self.directory}/checkpoint.tmp":
                raise OSError(errno.EIO, "Input/output error", source)
            super().rename(source, target)

    async def run() -> None:
        files = Failing(whole=whole)
        store = LocalStore(str(tmp_path), files=files)
        logs = open_logs(store, 4)
        await asyncio.gather(*(result_of(append(log)) for log in logs for _ in range(3)))
        files.directory = logs[2].directory
        moves = [log.delete_before(2) for log in logs]
        with pytest.raises(StorageError, match="cannot move the start of t-2"):
            await moves[2]
        assert [await moves[number] for number in (0, 1, 3)] == [2, 2, 2]
        assert [log.start_offset for log in logs] == [2, 2, 0, 2]
        await result_of(append(logs[2]))
        files.directory = "nowhere"
        assert await logs[2].delete_before(2) == 2
        assert await store.close() == {}

    asyncio.run(run())


def test_starts_that_are_moved_during_a_sync_wait_for_the_next_one(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1, LogSettings(segment_bytes=1024))
        for number in range(10):
            await result_of(append(log, b"%d" % number * 500))
        files.may_sync.clear()
        first = log.delete_before(3)
        await turns()
        second, third = log.delete_before(9), log.delete_before(5)
        files.may_sync.set()
        assert await first == 3
        assert (await second, await third) == (9, 9)
        assert await log.delete_before(7) == 9, "the start never moves back"
        async with asyncio.timeout(20):  # what is before it is removed aside
            while sum(name.endswith(".log") for name in os.listdir(log.directory)) > 1:
                await asyncio.sleep(0.001)
        await store.close()

    asyncio.run(run())


def test_a_deleted_topic_answers_those_who_delete_its_records(tmp_path: Path) -> None:
    async def run() -> None:
        files = WatchedFiles(whole=False)
        store = LocalStore(str(tmp_path), files=files)
        (log,) = open_logs(store, 1)
        await result_of(append(log))
        files.may_sync.clear()
        moving = log.delete_before(1)
        await turns()
        store.release([stored("t", 0)])
        with pytest.raises(LogClosed):
            await moving
        with pytest.raises(LogClosed):
            log.delete_before(1)
        files.may_sync.set()
        assert await store.close() == {}

    asyncio.run(run())
