"""Objects as files: durable before they have their name, private, never in the event loop's thread."""

import asyncio
import errno
import os
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tidelog.errors import StorageUnavailable
from tidelog.storage.shared.object_stores import files
from tidelog.storage.shared.object_stores.files import FileObjects
from tidelog.storage.shared.objects import ObjectMissing


def run(root: Path, test: Callable[[FileObjects], Awaitable[None]], *, total_ms: int = 60_000) -> None:
    async def whole() -> None:
        objects = FileObjects(str(root), total_ms=total_ms)
        async with asyncio.timeout(100):
            await test(objects)
        await objects.close()

    asyncio.run(whole())


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_directories_and_files_are_private(tmp_path: Path) -> None:
    async def test(objects: FileObjects) -> None:
        await objects.put("b/hour/key", [b"secret"])

    before = os.umask(0)
    try:
        run(tmp_path / "new", test)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
    assert modes == {"b": 0o700, "hour": 0o700, "key": 0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_an_object_gets_its_name_when_it_is_synced_and_the_directory_is_synced_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, link = os.fsync, os.link

    def seen_fsync(descriptor: int) -> None:
        steps.append("sync " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.partition(".")[0])
        fsync(descriptor)

    def seen_link(source: str, target: str) -> None:
        steps.append("name " + Path(target).name)
        link(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "link", seen_link)

    async def test(objects: FileObjects) -> None:
        await objects.put("b/hour/one", [b"1"])
        assert steps == [f"sync {tmp_path.name}", "sync new", "sync b", "sync one", "name one", "sync hour"]
        steps.clear()
        await objects.put("b/hour/two", [b"2"])
        assert steps == ["sync two", "name two", "sync hour"]

    run(tmp_path / "new", test)


def test_a_failed_upload_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def test(objects: FileObjects) -> None:
        await objects.put("b/before", [b"x"])
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(StorageUnavailable, match="b/key: No space left on device"):
                await objects.put("b/key", [b"content"])
        assert names(tmp_path) == ["b", "b/before"]
        await objects.put("b/key", [b"content"])

    run(tmp_path, test)


def test_what_a_crash_left_is_listed_for_the_collection_of_garbage(tmp_path: Path) -> None:
    async def test(objects: FileObjects) -> None:
        await objects.put("b/hour/one", [b"1"])
        (tmp_path / "b/hour/two.0123.tmp").write_bytes(b"half")
        (tmp_path / "b/lost+found").mkdir()
        (tmp_path / "b/.nfs0001").write_bytes(b"")
        (tmp_path / "b/link").symlink_to(tmp_path / "b/hour/one")
        found = [each.key async for each in objects.list("b/")]
        assert found == ["b/hour/one", "b/hour/two.0123.tmp"]
        await objects.remove(found)
        assert "b/hour" not in names(tmp_path)

    run(tmp_path, test)


def test_a_file_system_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_link)

    async def test(objects: FileObjects) -> None:
        await objects.put("b/key", [b"first"])
        with pytest.raises(StorageUnavailable, match="there is an object of this key already"):
            await objects.put("b/key", [b"second"])
        assert await objects.read("b/key", [(0, 5)]) == [b"first"]
        assert names(tmp_path) == ["b", "b/key"]

    run(tmp_path, test)


def test_a_directory_that_another_broker_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    make = files._Directory._make_directory

    def make_and_lose(self: Any, directory: str) -> None:
        make(self, directory)
        if directory.endswith("/hour") and len(removed) < 2:
            os.rmdir(directory)
            removed.append(directory)

    monkeypatch.setattr(files._Directory, "_make_directory", make_and_lose)

    async def test(objects: FileObjects) -> None:
        await objects.put("b/hour/key", [b"content"])
        assert await objects.read("b/hour/key", [(0, 7)]) == [b"content"]
        assert len(removed) == 2

    run(tmp_path, test)


def test_a_store_that_is_not_mounted_is_not_taken_for_lost_data(tmp_path: Path) -> None:
    async def test(objects: FileObjects) -> None:
        with pytest.raises(StorageUnavailable, match="No such file or directory"):
            await objects.read("b/key", [(0, 1)])
        assert [each async for each in objects.list("b/")] == []
        (tmp_path / "share").mkdir()
        with pytest.raises(ObjectMissing):
            await objects.read("b/key", [(0, 1)])

    run(tmp_path / "share", test)


def test_a_directory_whose_parent_is_missing_is_not_made_up(tmp_path: Path) -> None:
    async def test(objects: FileObjects) -> None:
        with pytest.raises(StorageUnavailable, match="No such file or directory"):
            await objects.put("b/key", [b""])
        assert names(tmp_path) == []

    run(tmp_path / "not/mounted", test)


def test_a_file_system_that_hangs_fails_calls_in_time_and_does_not_stop_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    threads: set[int] = set()
    fsync = os.fsync

    def hanging(descriptor: int) -> None:
        threads.add(threading.get_ident())
        answers.wait(60)
        fsync(descriptor)

    async def test(objects: FileObjects) -> None:
        monkeypatch.setattr(os, "fsync", hanging)
        with pytest.raises(StorageUnavailable, match="the file system does not answer in time"):
            await objects.put("b/key", [b"content"])

        async def parts() -> AsyncIterator[bytes]:
            yield b"content"

        with pytest.raises(StorageUnavailable, match="the file system does not answer in time"):
            await objects.put_stream("b/stream", parts())
        assert threading.get_ident() not in threads
        answers.set()
        await asyncio.to_thread(objects._threads.shutdown)
        # What was given up is finished or removed, when the file system answers again.
        assert names(tmp_path) == ["b", "b/key"]

    try:
        run(tmp_path, test, total_ms=500)
    finally:
        answers.set()


def test_a_cancelled_stream_leaves_nothing(tmp_path: Path) -> None:
    async def test(objects: FileObjects) -> None:
        began = asyncio.Event()

        async def parts() -> AsyncIterator[bytes]:
            yield bytes(5 << 20)
            began.set()
            await asyncio.Event().wait()

        upload = asyncio.create_task(objects.put_stream("s/key", parts()))
        await began.wait()
        upload.cancel()
        await asyncio.wait([upload])
        assert upload.cancelled()
        while names(tmp_path) != ["s"]:
            await asyncio.sleep(0.01)

    run(tmp_path, test)


def test_keys_that_leave_the_directory_are_refused(tmp_path: Path) -> None:
    async def test(objects: FileObjects) -> None:
        for key in ("../evil", "/etc/passwd", "a/../../b"):
            with pytest.raises(ValueError, match="not the key of an object"):
                await objects.put(key, [b""])
            with pytest.raises(ValueError, match="not the key of an object"):
                await objects.read(key, [(0, 1)])

    run(tmp_path / "objects", test)
