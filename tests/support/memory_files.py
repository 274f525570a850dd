"""A file system in memory that simulates crashes of real ones, and fails on request.

Written bytes are durable after `sync` of the file, names after `sync_directory` of their directory, both after
`sync_filesystem`. `crash_at` stops everything at a numbered step (a step is any call that changes or syncs
something); `after_crash` returns the file system that the next start finds, in one of several moods:

    KEEP     everything written survives: the process died, the machine did not (SIGKILL)
    DROP     only what was synced survives
    TEAR     a prefix of each file's unsynced writes survives, the last of them in part; also a prefix of the names
    SHUFFLE  any subset of each file's unsynced writes survives, with zeros in between
    ZEROS    sizes survive, the unsynced bytes are zeros
"""

import errno
import os
import random
from collections.abc import Callable, Iterator
from enum import Enum, auto
from threading import Lock, get_ident
from typing import TypeVar

from tidelog.errors import DirectoryInUse
from tidelog.records.batch import ReadBuffer
from tidelog.storage.local.files import Entry, File, NotCached

T = TypeVar("T")


class Mood(Enum):
    KEEP = auto()
    DROP = auto()
    TEAR = auto()
    SHUFFLE = auto()
    ZEROS = auto()


def moods(tries: int) -> Iterator[tuple[Mood, int]]:
    """Each mood with a seed; random moods with several seeds."""
    for mood in Mood:
        for seed in range(tries if mood in (Mood.TEAR, Mood.SHUFFLE) else 1):
            yield mood, seed


class CrashError(BaseException):
    """The machine stops: not even error handling runs."""


class Inode:
    def __init__(self, content: bytes = b"") -> None:
        self.data = bytearray(content)
        self.durable = bytes(content)
        self.pending: list[tuple[int, bytes | None]] = []  # (position, bytes) written, or (size, None) truncated

    def write(self, position: int, data: bytes) -> None:
        _apply(self.data, position, data)
        self.pending.append((position, data))

    def truncate(self, size: int) -> None:
        _apply(self.data, size, None)
        self.pending.append((size, None))

    def sync(self) -> None:
        self.durable = bytes(self.data)
        self.pending.clear()

    def after_crash(self, mood: Mood, rng: random.Random) -> "Inode":
        if mood is Mood.KEEP:
            return Inode(bytes(self.data))
        content = bytearray(self.durable)
        if mood is Mood.TEAR:
            survivors = self.pending[: rng.randint(0, len(self.pending))]
            for number, (position, data) in enumerate(survivors):
                torn = data is not None and number == len(survivors) - 1
                _apply(content, position, data[: rng.randint(0, len(data))] if torn and data else data)
        elif mood is Mood.SHUFFLE:
            for position, data in self.pending:
                if data is None or rng.random() < 0.5:
                    _apply(content, position, data)
        elif mood is Mood.ZEROS:
            for position, data in self.pending:
                _apply(content, position, None if data is None else bytes(len(data)))
        return Inode(bytes(content))


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
    else:
        content.extend(bytes(max(0, position - len(content))))
        content[position : position + len(data)] = data


class MemoryFile:
    def __init__(self, files: "MemoryFiles", path: str, inode: Inode) -> None:
        self.path = path
        self._files = files
        self._inode = inode

    def pread(self, size: int, position: int) -> bytes:
        self.need(size, position)
        self._files.check("read", self.path)
        self._files.cold.discard(self.path)
        return bytes(self._inode.data[position : position + size])

    def need(self, size: int, position: int) -> None:
        if self._files.hurried == get_ident() and self.path in self._files.cold:
            raise NotCached(self, position, size)

    def pwrite(self, data: ReadBuffer, position: int) -> None:
        content = bytes(data)
        try:
            self._files.step("write", self.path)
        except BaseException:
            # Half of it may have been written before the failure.
            self._inode.write(position, content[: len(content) // 2])
            raise
        self._inode.write(position, content)

    def sync(self) -> None:
        self._files.step("sync", self.path)
        self._inode.sync()

    def truncate(self, size: int) -> None:
        if size != len(self._inode.data):
            self._files.step("truncate", self.path)
            self._inode.truncate(size)

    def size(self) -> int:
        return len(self._inode.data)

    def fileno(self) -> int:
        raise OSError("a file in memory has no descriptor")


class MemoryFiles:
    """`on_call(operation, path)` is called before every operation and may raise OSError. Files in `cold` are not in
    the page cache until a read that may block has read them."""

    def __init__(self) -> None:
        self.names: dict[str, Inode | None] = {"/": None}  # None: a directory
        self.durable_names: dict[str, Inode | None] = {"/": None}
        self.pending_names: list[tuple[str, str, Inode | str | None]] = []  # (what, path, inode or target)
        self.locked: set[str] = set()
        self.steps = 0
        self.crash_at: int | None = None
        self.crashed = False
        self.on_call: Callable[[str, str], None] | None = None
        self.calls: list[tuple[str, str]] = []
        self.cold: set[str] = set()
        self.hurried = 0
        self._names_lock = Lock()  # a store uses it from several threads

    def check(self, operation: str, path: str) -> None:
        if self.crashed:
            raise CrashError
        if self.on_call is not None:
            self.on_call(operation, path)

    def step(self, operation: str, path: str) -> None:
        self.check(operation, path)
        self.steps += 1
        self.calls.append((operation, path))
        if self.steps == self.crash_at:
            self.crashed = True
            raise CrashError

    def after_crash(self, mood: Mood, rng: random.Random) -> "MemoryFiles":
        after = MemoryFiles()
        names = dict(self.names if mood is Mood.KEEP else self.durable_names)
        if mood in (Mood.TEAR, Mood.SHUFFLE, Mood.ZEROS):
            directories = {os.path.dirname(path) for _, path, _ in self.pending_names}
            for directory in directories:
                pending = [op for op in self.pending_names if os.path.dirname(op[1]) == directory]
                for op in pending[: rng.randint(0, len(pending))]:
                    _change(names, *op)
        inodes: dict[int, Inode] = {}
        for path, inode in names.items():
            if inode is not None:
                inode = inodes.setdefault(id(inode), inode.after_crash(mood, rng))
            after.names[path] = after.durable_names[path] = inode
        return after

    # Files

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        self.check("open", path)
        inode = self.names.get(path)
        if inode is None:
            if not create or path in self.names:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            self._need_directory(os.path.dirname(path))
            self.step("create", path)
            inode = Inode()
            self._change("create", path, inode)
        return MemoryFile(self, path, inode)

    def list(self, directory: str, *, sizes: str = "") -> list[Entry]:
        self.check("list", directory)
        self._need_directory(directory)
        with self._names_lock:
            return [
                Entry(os.path.basename(path), None if inode is None else len(inode.data), inode is None)
                for path, inode in self.names.items()
                if path != "/" and os.path.dirname(path) == directory
            ]

    def make_directories(self, path: str, *, durably: bool = True) -> None:
        if path in self.names:
            return
        parent = os.path.dirname(path)
        self.make_directories(parent, durably=durably)
        self.step("mkdir", path)
        self._change("create", path, None)
        if durably:
            self.sync_directory(parent)

    def rename(self, source: str, target: str) -> None:
        if source not in self.names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", source)
        self.step("rename", source)
        self._change("rename", source, target)

    def remove(self, path: str) -> None:
        if path not in self.names:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        self.step("remove", path)
        self._change("remove", path, None)

    def remove_directory(self, path: str) -> None:
        if any(os.path.dirname(name) == path for name in list(self.names)):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", path)
        self.remove(path)

    def sync_directory(self, path: str) -> None:
        self._need_directory(path)
        self.step("sync_directory", path)
        self._make_names_durable(lambda op: os.path.dirname(op[1]) == path)

    def sync_filesystem(self, path: str, at_most_dirty: int) -> bool:
        self.step("sync_filesystem", path)
        self._make_names_durable(lambda _: True)
        for inode in list(self.names.values()):
            if inode is not None:
                inode.sync()
        return True

    def without_waiting(self, read: Callable[[], T]) -> T:
        self.hurried = get_ident()
        try:
            return read()
        finally:
            self.hurried = 0

    def room(self, path: str) -> tuple[int, int]:
        self.check("room", path)
        return 1 << 40, 1 << 39

    def lock(self, path: str, content: str) -> File:
        if path in self.locked:
            raise DirectoryInUse(f"{path} is in use")
        file = self.open(path, create=True)
        self.locked.add(path)
        return file

    def _need_directory(self, path: str) -> None:
        if self.names.get(path, 0) is not None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)

    def _change(self, what: str, path: str, detail: "Inode | str | None") -> None:
        with self._names_lock:
            _change(self.names, what, path, detail)
            self.pending_names.append((what, path, detail))

    def _make_names_durable(self, which: Callable[[tuple[str, str, "Inode | str | None"]], bool]) -> None:
        with self._names_lock:
            for op in self.pending_names:
                if which(op):
                    _change(self.durable_names, *op)
            self.pending_names = [op for op in self.pending_names if not which(op)]


def _change(names: dict[str, Inode | None], what: str, path: str, detail: "Inode | str | None") -> None:
    if what == "create":
        assert not isinstance(detail, str)
        names[path] = detail
    elif what == "remove":
        names.pop(path, None)
    elif what == "rename" and path in names:
        assert isinstance(detail, str)
        moved = names.pop(path)
        names[detail] = moved
        if moved is None:
            for child in [name for name in names if name.startswith(path + "/")]:
                names[detail + child[len(path) :]] = names.pop(child)
