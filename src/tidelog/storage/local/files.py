"""The file system as the log sees it: `Files` and `File`, and the real ones.

Every call that touches the disk goes through here, so that a test can pass another implementation that drops what was
not synced, tears a write or fails a call (tests/support/memory_files.py).

What a crash may do: bytes that were written but not synced may be there, not there, or there in part; a name that was
created, renamed or removed may or may not have changed until its directory is synced.
"""

import ctypes
import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable
from threading import get_ident
from typing import NamedTuple, Protocol, TypeVar, cast

from tidelog.errors import DirectoryInUse, StorageError, StorageFull, StorageUnavailable
from tidelog.records.batch import ReadBuffer

# New files are private to the user. Existing files keep their mode: an operator may have changed it on purpose.
PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600
TEMPORARY = ".tmp"  # files with this suffix are leftovers when a directory is opened
_PROBE_EVERY = 256 << 10  # about the size of the kernel's read-ahead
_WARM_PIECE = 1 << 20

T = TypeVar("T")


class Entry(NamedTuple):
    """A file in a directory. The size is None where the caller did not ask for it."""

    name: str
    size: int | None
    is_directory: bool


class NotCached(Exception):
    """Bytes that a read needs are not in memory; only within `Files.without_waiting`."""

    def __init__(self, file: "File", position: int, size: int) -> None:
        super().__init__(f"{size} bytes at position {position} of {file.path}")
        self._file = file
        self._position = position
        self._size = size

    def read_it(self, times: int) -> None:
        """Runs in a thread: wait for the bytes and some of the following ones, up to `times` as many. Raises
        OSError."""
        position, end = self._position, self._position + self._size
        end += min((times - 1) * self._size, max(0, self._file.size() - end))
        while position < end and (piece := self._file.pread(min(_WARM_PIECE, end - position), position)):
            position += len(piece)


class File(Protocol):
    """An open file. It is closed when the last reference to it is gone, so a reader that holds it can go on
    reading."""

    path: str

    def pread(self, size: int, position: int) -> bytes: ...
    def need(self, size: int, position: int) -> None:
        """Within `Files.without_waiting`: raises NotCached unless these bytes seem to be in memory."""

    def pwrite(self, data: ReadBuffer, position: int) -> None:
        """Write all of `data`, or raise OSError; after an error any part of it may have been written."""

    def sync(self) -> None: ...
    def truncate(self, size: int) -> None: ...
    def size(self) -> int: ...
    def fileno(self) -> int: ...


class Files(Protocol):
    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """Opens regular files only: raises OSError for anything else, and does not block on a FIFO."""

    def list(self, directory: str, *, sizes: str = "") -> list[Entry]:
        """The directory's entries; with sizes only for names that end in `sizes` (each size costs a system call)."""

    def make_directories(self, path: str, *, durably: bool = True) -> None:
        """Create the directory and its parents. `durably`: the parent of every created directory is synced."""

    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_directory(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
        """Make everything on the file system durable, names included, in one call. Returns False and does nothing if
        the system does not report write errors from such a call, or if more than `at_most_dirty` bytes would have to
        be written."""

    def without_waiting(self, read: Callable[[], T]) -> T:
        """Call `read` and return its result. Within it, preads in this thread raise NotCached instead of waiting for
        the disk, if the system supports that. Only one of the threads that share these files may use it."""

    def room(self, path: str) -> tuple[int, int]:
        """Size of the file system in bytes, and how many of them are free."""

    def lock(self, path: str, content: str) -> File:
        """Hold an exclusive lock on `path` until the returned file is dropped, and write `content` into it. If
        another process holds the lock, raises DirectoryInUse with the content that the holder wrote."""


class _Patience:
    """Which thread must not wait for the disk at present (0: none), and whether the system supports such reads."""

    __slots__ = ("can_tell", "hurried")

    def __init__(self) -> None:
        self.hurried = 0
        self.can_tell = hasattr(os, "RWF_NOWAIT")


class OsFile:
    __slots__ = ("_fd", "_patience", "path")

    def __init__(self, path: str, fd: int, patience: _Patience | None = None) -> None:
        self.path = path
        self._fd = fd
        self._patience = patience or _PATIENT

    def __del__(self) -> None:
        os.close(self._fd)

    def pread(self, size: int, position: int) -> bytes:
        if self._patience.hurried == get_ident():
            return self._pread_cached(size, position)
        return os.pread(self._fd, size, position)

    def need(self, size: int, position: int) -> None:
        if self._patience.hurried == get_ident():
            for at in range(position, position + size, _PROBE_EVERY):
                self._pread_cached(1, at)
            self._pread_cached(1, position + size - 1)

    def _pread_cached(self, size: int, position: int) -> bytes:
        buffer = bytearray(size)
        try:
            got = os.preadv(self._fd, [buffer], position, os.RWF_NOWAIT)
        except BlockingIOError:
            raise NotCached(self, position, size) from None
        except OSError as error:
            if error.errno not in _CANNOT_TELL:
                raise
            self._patience.can_tell = False
            return os.pread(self._fd, size, position)
        if got != size:
            if position + got < self.size():
                raise NotCached(self, position, size)
            del buffer[got:]
        return cast("bytes", buffer)  # a bytearray serves as well, and saves the copy

    def pwrite(self, data: ReadBuffer, position: int) -> None:
        written = os.pwrite(self._fd, data, position)
        if written != len(data):  # a signal, or a disk that is nearly full: the next call shows which
            view = memoryview(data)
            while written < len(view):
                written += os.pwrite(self._fd, view[written:], position + written)

    def sync(self) -> None:
        _datasync(self._fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def fileno(self) -> int:
        return self._fd


class OsFiles:
    def __init__(self) -> None:
        self._directories: dict[str, OsFile] = {}  # kept open for the next sync of their file system
        self._dirty = _DirtyBytes()
        self._patience = _Patience()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | (os.O_CREAT if create else 0) | os.O_CLOEXEC
        file = OsFile(path, os.open(path, flags | os.O_NONBLOCK, PRIVATE_FILE), self._patience)
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return file

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
            os.mkdir(path, PRIVATE_DIRECTORY)
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

    def without_waiting(self, read: Callable[[], T]) -> T:
        patience = self._patience
        if not patience.can_tell:
            return read()
        patience.hurried = get_ident()
        try:
            return read()
        finally:
            patience.hurried = 0

    def room(self, path: str) -> tuple[int, int]:
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def lock(self, path: str, content: str) -> File:
        file = OsFile(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
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


if sys.platform == "darwin":  # on macOS fsync leaves the data in the drive's cache

    def _datasync(fd: int) -> None:
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)

else:
    _datasync = os.fdatasync


def kernel_version(release: str) -> tuple[int, int]:
    """Major and minor number of a kernel release, such as "6.8.0-31-generic", "6.8+" or "7-rc1"; (0, 0) if it does
    not begin with a number."""
    numbers = re.match(r"(\d+)(?:\.(\d+))?", release, re.ASCII)
    return (int(numbers[1]), int(numbers[2] or 0)) if numbers else (0, 0)


def _find_syncfs() -> "ctypes._FuncPointer | None":
    """None on kernels older than Linux 5.8: there syncfs does not report write-back errors and proves nothing."""
    if sys.platform != "linux":
        return None
    if kernel_version(os.uname().release) < (5, 8):
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


_syncfs = _find_syncfs()


class _DirtyBytes:
    """How many bytes the kernel has yet to write back, over all file systems: an upper bound for ours.

    The value may be a little old, and its file stays open, to save system calls: each one releases the GIL, and under
    load it takes longer to get the GIL back than the call itself."""

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


_PATIENT = _Patience()
_CANNOT_TELL = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS}
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
    errno.EEXIST: "a file is in the place of a directory; move it away",
    errno.ENOTDIR: "a file is in the place of a directory; move it away",
    errno.EMFILE: "raise the limit of open files (ulimit -n) or lower open-segments",
    errno.ENFILE: "raise the system's limit of open files",
}


def storage_error(error: OSError, action: str) -> StorageError:
    """The error as the operator should see it: what failed, where, why, and what to do about it."""
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
    """Replace a small file atomically: after a crash it holds either the old or the new content."""
    temporary = path + TEMPORARY
    write_whole(files, temporary, content).sync()
    files.rename(temporary, path)
    files.sync_directory(os.path.dirname(path))


def remove_tree(files: Files, path: str, give_up: Callable[[], bool] = lambda: False) -> None:
    """Remove a directory and everything in it. `give_up` is called for every entry; if it returns True the removal
    stops early."""
    for entry in files.list(path):
        if give_up():
            return
        child = f"{path}/{entry.name}"
        if entry.is_directory:
            remove_tree(files, child, give_up)
        else:
            files.remove(child)
    if not give_up():
        files.remove_directory(path)
