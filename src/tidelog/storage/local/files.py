"""The file system as the log sees it: `Files` and `File`, and the real ones.

Every call that touches the disk goes through here, so that a test can pass another implementation that drops what was
not synced, tears a write or fails a call (tests/support/memory_files.py).

What a crash may do: bytes that were written but not synced may be there, not there, or there in part; a name that was
created, renamed or removed may or may not have changed until its directory is synced.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import sys
import time
from typing import NamedTuple, Protocol

from tidelog.errors import DirectoryInUse, StorageError, StorageFull, StorageUnavailable
from tidelog.records.batch import ReadBuffer

TEMPORARY = ".tmp"  # what ends so is a leftover when a directory is opened


class Entry(NamedTuple):
    """A file in a directory. The size is None where the caller did not ask for it."""

    name: str
    size: int | None
    is_directory: bool


class File(Protocol):
    """An open file. It is closed when nobody holds it any more, so a reader keeps what it reads alive."""

    path: str

    def pread(self, size: int, position: int) -> bytes: ...
    def pwrite(self, data: ReadBuffer, position: int) -> None:
        """All of `data`, or OSError; after an error any part of it may have been written."""

    def sync(self) -> None: ...
    def truncate(self, size: int) -> None: ...
    def size(self) -> int: ...
    def map(self) -> ReadBuffer:
        """The whole content, read-only, without reading it."""

    def fileno(self) -> int: ...


class Files(Protocol):
    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File: ...
    def list(self, directory: str, *, sizes: str = "") -> list[Entry]:
        """The directory's entries; with sizes for the names that end in `sizes` (asking costs a call each)."""

    def make_directories(self, path: str, *, durably: bool = True) -> None:
        """Durably: every directory that is created is synced into its parent."""

    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_directory(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
        """Make everything on the file system durable, names included, in one call. False, with nothing done, where
        that cannot be had with errors reported, or where more than so many bytes would have to be written."""

    def lock(self, path: str, content: str) -> File:
        """Hold an exclusive lock on `path` until the returned file is dropped; DirectoryInUse with the holder's
        content if somebody else has it."""


class OsFile:
    __slots__ = ("_fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    def __del__(self) -> None:
        os.close(self._fd)

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self._fd, size, position)

    def pwrite(self, data: ReadBuffer, position: int) -> None:
        written = os.pwrite(self._fd, data, position)
        if written != len(data):  # a signal, or a disk that is nearly full: the next call says which
            view = memoryview(data)
            while written < len(view):
                written += os.pwrite(self._fd, view[written:], position + written)

    def sync(self) -> None:
        _datasync(self._fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def map(self) -> ReadBuffer:
        if self.size() == 0:
            return b""
        return memoryview(mmap.mmap(self._fd, 0, access=mmap.ACCESS_READ))

    def fileno(self) -> int:
        return self._fd


class OsFiles:
    def __init__(self) -> None:
        self._directories: dict[str, OsFile] = {}  # of file systems that are synced again and again
        self._dirty = _DirtyBytes()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0) | os.O_CLOEXEC
        return OsFile(path, os.open(path, flags, 0o644))

    def list(self, directory: str, *, sizes: str = "") -> list[Entry]:
        with os.scandir(directory) as entries:
            return [
                Entry(e.name, e.stat().st_size if sizes and e.name.endswith(sizes) else None, e.is_dir())
                for e in entries
            ]

    def make_directories(self, path: str, *, durably: bool = True) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(path) or "."
        self.make_directories(parent, durably=durably)
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
        if durably:
            self.sync_directory(parent)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
        if _syncfs is None or (at_most_dirty < sys.maxsize and self._dirty.look() > at_most_dirty):
            return False
        directory = self._directories.get(path)
        if directory is None:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            directory = self._directories[path] = OsFile(path, fd)
        if _syncfs(directory.fileno()) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
        return True

    def lock(self, path: str, content: str) -> File:
        file = OsFile(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.pread(200, 0).decode(errors="replace").strip() or "an unknown process"
            raise DirectoryInUse(
                f"{os.path.dirname(path)} is in use by {holder}; stop it, or choose another data directory"
            ) from None
        file.truncate(0)
        file.pwrite(content.encode(), 0)
        return file


if sys.platform == "darwin":  # fsync leaves the data in the drive's cache there

    def _datasync(fd: int) -> None:
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)

else:
    _datasync = os.fdatasync


def _find_syncfs() -> "ctypes._FuncPointer | None":
    """Linux reports write-back errors from syncfs since 5.8; without that it is no proof of durability."""
    if sys.platform != "linux":
        return None
    major, minor = (int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if (major, minor) < (5, 8):
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


_syncfs = _find_syncfs()


class _DirtyBytes:
    """What the system has yet to write back, over all file systems: an upper bound for ours.

    As seen a moment ago, from a file that stays open: every call into the system gives the thread that runs Python
    away, and under load it takes longer to get that back than the call itself."""

    _FRESH_S = 0.05

    def __init__(self) -> None:
        self._meminfo: OsFile | None = None
        self._at = 0.0
        self._seen = 0

    def look(self) -> int:
        now = time.monotonic()
        if self._meminfo is None or now - self._at > self._FRESH_S:
            if self._meminfo is None:
                path = "/proc/meminfo"
                self._meminfo = OsFile(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            content = self._meminfo.pread(4096, 0)
            self._seen = sum(
                int(content.split(name, 1)[1].split(None, 1)[0]) << 10 for name in (b"Dirty:", b"Writeback:")
            )
            self._at = now
        return self._seen


_FULL = {errno.ENOSPC, errno.EDQUOT}
_UNAVAILABLE = {
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE),
    *(errno.ENOENT, errno.ENOTDIR, errno.EEXIST),
}
_ADVICE = {
    errno.ENOSPC: "free some space or lower the retention",
    errno.EDQUOT: "raise the quota or lower the retention",
    errno.EROFS: "the file system is mounted read-only",
    errno.EACCES: "give this user access to the data directory",
    errno.EEXIST: "a file stands where a directory should",
    errno.ENOTDIR: "a file stands where a directory should",
    errno.EMFILE: "raise the limit of open files (ulimit -n) or lower open-segments",
    errno.ENFILE: "raise the system's limit of open files",
}


def storage_error(error: OSError, action: str) -> StorageError:
    """What the operator should read: what failed, where, why, and what to do about it."""
    number = error.errno or 0
    kind = StorageFull if number in _FULL else StorageUnavailable if number in _UNAVAILABLE else StorageError
    where = f" ({error.filename})" if error.filename else ""
    advice = f"; {_ADVICE[number]}" if number in _ADVICE else ""
    return kind(f"cannot {action}: {error.strerror or error}{where}{advice}")


def write_whole(files: Files, path: str, content: ReadBuffer) -> File:
    file = files.open(path, create=True)
    file.truncate(0)
    file.pwrite(content, 0)
    return file


def write_durably(files: Files, path: str, content: ReadBuffer) -> None:
    """Replace a small file as a whole: after a crash it holds the old content or the new."""
    temporary = path + TEMPORARY
    write_whole(files, temporary, content).sync()
    files.rename(temporary, path)
    files.sync_directory(os.path.dirname(path))


def remove_tree(files: Files, path: str) -> None:
    for entry in files.list(path):
        child = f"{path}/{entry.name}"
        if entry.is_directory:
            remove_tree(files, child)
        else:
            files.remove(child)
    files.remove_directory(path)
