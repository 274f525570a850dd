"""Objects as files in a directory that all brokers share.

An object is written under a temporary name and synced; then it gets its own name, which never replaces another file;
then the directory is synced. A crash leaves at most a file whose name ends in ".tmp". It is listed like an object, so
the collection of garbage finds it.

All work is done in a few threads, never in that of the event loop. If the file system hangs, calls fail in time and
the threads stay busy until it answers. Directories and files are private to the user that runs the brokers.
"""

import asyncio
import errno
import os
import stat
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar
from uuid import uuid4

from tidelog.errors import StorageUnavailable
from tidelog.records.batch import ReadBuffer
from tidelog.storage.shared.objects import ObjectMissing, StoredObject, is_key

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
_THREADS = 8
_BUFFERS_AT_ONCE = 512  # of the 1024 that Linux allows
_STREAM_BYTES = 4 << 20
_REMOVED_AT_ONCE = 100
_KNOWN_DIRECTORIES = 4096
_ATTEMPTS = 5
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)

T = TypeVar("T")


class FileObjects:
    """`ObjectStore` in a directory. The directory itself is created if its parent exists."""

    def __init__(self, directory: str, *, total_ms: int = 15_000) -> None:
        self._files = _Directory(directory.rstrip("/") or "/")
        self.place = self._files.place
        self._seconds = total_ms / 1000
        self._threads = ThreadPoolExecutor(_THREADS, "tidelog-objects")

    async def put(self, key: str, parts: Sequence[ReadBuffer]) -> None:
        await self._run(key, self._files.put, key, list(parts))

    async def put_stream(self, key: str, parts: AsyncIterable[ReadBuffer]) -> int:
        size = waiting = 0
        some: list[ReadBuffer] = []
        beginning = self._threads.submit(self._files.begin, key)
        try:
            upload = await self._result(key, asyncio.wrap_future(beginning))
        except BaseException:
            beginning.add_done_callback(_give_up)  # it may still begin
            raise
        try:
            async for part in parts:
                some.append(part)
                size += len(part)
                waiting += len(part)
                if waiting >= _STREAM_BYTES:
                    await self._run(key, upload.write, some)
                    some, waiting = [], 0
            await self._run(key, upload.write, some)
            await self._run(key, upload.finish)
        except BaseException:
            self._threads.submit(upload.give_up)
            raise
        return size

    async def read(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return await self._run(key, self._files.read, key, list(ranges))

    async def read_up_to(self, key: str, position: int, size: int) -> bytes:
        return await self._run(key, self._files.read_up_to, key, position, size)

    async def remove(self, keys: Iterable[str]) -> None:
        every = list(keys)
        for first in range(0, len(every), _REMOVED_AT_ONCE):
            await self._run("", self._files.remove, every[first : first + _REMOVED_AT_ONCE])

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        directory = prefix.rpartition("/")[0]
        # The next one is last. Names of directories end in "/": so files and directories are in the order of keys.
        pending = [StoredObject(directory + "/" if directory else "", 0, 0)]
        while pending:
            each = pending.pop()
            if each.key and not each.key.endswith("/"):
                yield each
                continue
            found = await self._run(each.key, self._files.scan, each.key)
            pending += [
                one
                for one in reversed(found)
                if one.key.startswith(prefix) or (one.key.endswith("/") and prefix.startswith(one.key))
            ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False)

    async def _run(self, key: str, work: Callable[..., T], *arguments: object) -> T:
        """Do work in a thread."""
        return await self._result(key, asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments))

    async def _result(self, key: str, working: "asyncio.Future[T]") -> T:
        """Of work in a thread. Its OSError becomes one of our errors; so does taking too long."""
        try:
            async with asyncio.timeout(self._seconds):
                return await working
        except FileExistsError:
            reason = "there is an object of this key already"
        except TimeoutError:
            reason = "the file system does not answer in time"
        except OSError as error:
            reason = error.strerror or type(error).__name__
        raise StorageUnavailable(f"{self.place}/{key}: {reason}")


class _Directory:
    """The work of the threads. Raises OSError, and ObjectMissing."""

    def __init__(self, root: str) -> None:
        self.place = f"file://{root}"
        self._root = root
        self._synced: dict[str, int] = {}  # directories whose names are durable, with their inodes

    def put(self, key: str, parts: list[ReadBuffer]) -> None:
        upload = self.begin(key)
        try:
            upload.write(parts)
            upload.finish()
        except BaseException:
            upload.give_up()
            raise

    def begin(self, key: str) -> "_Upload":
        path = self._path(key)
        temporary = f"{path}.{uuid4().hex}.tmp"
        for attempt in range(_ATTEMPTS):
            self._make_directory(os.path.dirname(path))
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                return _Upload(path, temporary, os.open(temporary, flags, PRIVATE_FILE))
            except FileNotFoundError:  # another broker has just removed the directory, because it was empty
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("not reached")

    def read(self, key: str, ranges: list[tuple[int, int]]) -> list[bytes]:
        descriptor = self._open(key)
        try:
            found = [_read(descriptor, position, size) for position, size in ranges]
        finally:
            os.close(descriptor)
        if any(len(content) < size for content, (_, size) in zip(found, ranges, strict=True)):
            raise self._shorter(key)
        return found

    def read_up_to(self, key: str, position: int, size: int) -> bytes:
        descriptor = self._open(key)
        try:
            content = _read(descriptor, position, size)
        finally:
            os.close(descriptor)
        if not content:
            raise self._shorter(key)
        return content

    def remove(self, keys: list[str]) -> None:
        """Also directories that are empty then."""
        paths = [self._path(key) for key in keys]
        for path in paths:
            _remove(path)
        for directory in {os.path.dirname(path) for path in paths}:
            while directory != self._root:
                try:
                    os.rmdir(directory)
                except OSError:  # not empty, or gone
                    break
                directory = os.path.dirname(directory)

    def scan(self, directory: str) -> list[StoredObject]:
        """What is in a directory, in order. Files that cannot be objects are left out."""
        found = []
        try:
            with os.scandir(f"{self._root}/{directory}") as entries:
                for entry in entries:
                    key = directory + entry.name
                    if not is_key(key):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        found.append(StoredObject(key + "/", 0, 0))
                        continue
                    try:
                        about = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # removed meanwhile
                        continue
                    if stat.S_ISREG(about.st_mode):
                        found.append(StoredObject(key, about.st_size, about.st_mtime_ns // 1_000_000))
        except FileNotFoundError:
            return []
        return sorted(found)

    def _path(self, key: str) -> str:
        if not is_key(key):
            raise ValueError(f"not the key of an object: {key!r}")
        return f"{self._root}/{key}"

    def _make_directory(self, directory: str) -> None:
        """Create the directory and its parents up to the root, and sync their names, also if someone else has just
        created them. Directories that this process has synced before are only looked at."""
        try:
            if self._synced.get(directory) == os.stat(directory).st_ino:
                return
        except FileNotFoundError:
            pass
        parent = os.path.dirname(directory)
        if directory != self._root:
            self._make_directory(parent)
        try:
            os.mkdir(directory, PRIVATE_DIRECTORY)
        except FileExistsError:
            pass
        inode = os.stat(directory).st_ino
        _sync_directory(parent)
        if len(self._synced) >= _KNOWN_DIRECTORIES:
            self._synced.clear()
        self._synced[directory] = inode

    def _open(self, key: str) -> int:
        try:
            return os.open(self._path(key), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if not os.path.isdir(self._root):
                raise  # the whole store is not there; perhaps it is not mounted
        raise ObjectMissing(f"{self.place}/{key}: there is no such object")

    def _shorter(self, key: str) -> ObjectMissing:
        return ObjectMissing(f"{self.place}/{key}: the object is shorter than expected")


class _Upload:
    """A file that becomes an object when it is finished. The lock is for an upload that was given up because it took
    too long: its descriptor must not be closed, and used again for another file, while a thread still writes."""

    def __init__(self, path: str, temporary: str, descriptor: int) -> None:
        self._path = path
        self._temporary = temporary
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, parts: list[ReadBuffer]) -> None:
        """Write all parts after each other."""
        views = [memoryview(part) for part in parts if len(part)]
        first = 0
        with self._lock:
            while first < len(views):
                written = os.writev(self._descriptor, views[first : first + _BUFFERS_AT_ONCE])
                while first < len(views) and written >= len(views[first]):
                    written -= len(views[first])
                    first += 1
                if written:
                    views[first] = views[first][written:]

    def finish(self) -> None:
        """Make it durable and give it its own name. FileExistsError if that is in use."""
        with self._lock:
            os.fsync(self._descriptor)
            try:
                os.link(self._temporary, self._path)
                os.unlink(self._temporary)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                # A file system without hard links: take the name with an empty file, and replace that.
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
                os.rename(self._temporary, self._path)
            _sync_directory(os.path.dirname(self._path))
            self._close()

    def give_up(self) -> None:
        with self._lock:
            self._close()
            _remove(self._temporary)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _give_up(begun: "Future[_Upload]") -> None:
    if not begun.cancelled() and begun.exception() is None:
        begun.result().give_up()


def _read(descriptor: int, position: int, size: int) -> bytes:
    """Up to `size` bytes; fewer only at the end of the file."""
    content = os.pread(descriptor, size, position)
    while content and len(content) < size:
        more = os.pread(descriptor, size - len(content), position + len(content))
        if not more:
            break
        content += more
    return content


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
