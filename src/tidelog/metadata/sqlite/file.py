"""The file of a `SqliteStore`: how it is opened, and the error messages when something is wrong with it."""

import contextlib
import os
from typing import TYPE_CHECKING

from tidelog.errors import (
    DirectoryInUse,
    InvalidInput,
    MetadataDamaged,
    StorageError,
    StorageFull,
    StorageUnavailable,
    TidelogError,
)
from tidelog.metadata.sqlite.tables import migrate

if TYPE_CHECKING:
    import sqlite3

_LOCK_TIMEOUT_S = 1.0
_PAGE_BYTES = 4096
_WAL_KEPT_BYTES = 16 << 20


def connect(path: str, max_bytes: int | None, shown_as: str) -> "sqlite3.Connection":
    import sqlite3

    new = not os.path.exists(path)
    if new:  # created with mode 0600; SQLite gives its other files the same mode
        with contextlib.suppress(OSError):  # SQLite reports the error
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
    try:
        run = connection.execute
        run("PRAGMA locking_mode=EXCLUSIVE")  # before anything else: then WAL needs no shared memory
        run(f"PRAGMA page_size={_PAGE_BYTES}")
        (mode,) = run("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise StorageUnavailable(f"{shown_as} needs a write-ahead log, but the file system allows only {mode!r}")
        run("PRAGMA synchronous=FULL")
        run(f"PRAGMA journal_size_limit={_WAL_KEPT_BYTES}")
        if max_bytes is not None:
            run(f"PRAGMA max_page_count={max(1, max_bytes // _PAGE_BYTES)}")
        run("BEGIN IMMEDIATE")  # takes the file lock, so that a second process fails here
        migrate(connection, shown_as)
        run("COMMIT")
    except BaseException:
        connection.close()
        raise
    if new:
        sync_directory(os.path.dirname(os.path.abspath(path)))
    return connection


def sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# The parts of the messages that operators read: primary result code -> error, what happened, what to do

_FAULTS: dict[str, tuple[type[StorageError], str, str]] = {
    "SQLITE_FULL": (StorageFull, "the disk is full", "free some space; what was acknowledged is kept"),
    "SQLITE_READONLY": (StorageUnavailable, "it is read-only", "check the permissions and how the disk is mounted"),
    "SQLITE_CANTOPEN": (StorageUnavailable, "it cannot be opened", "check that its directory exists and is writable"),
    "SQLITE_PERM": (StorageUnavailable, "access is denied", "check the permissions"),
    "SQLITE_IOERR": (StorageError, "the disk reports an error", "check the disk; what was acknowledged is kept"),
    "SQLITE_BUSY": (DirectoryInUse, "another process uses it", "stop that process, or use another directory"),
    "SQLITE_LOCKED": (DirectoryInUse, "another process uses it", "stop that process, or use another directory"),
    "SQLITE_CORRUPT": (
        MetadataDamaged,
        "the file is damaged",
        "restore it from a backup, or salvage it with the .recover command of the sqlite3 shell; the logs are intact",
    ),
}
_FAULTS["SQLITE_NOTADB"] = _FAULTS["SQLITE_CORRUPT"]


def explained(error: Exception, path: str, action: str) -> TidelogError:
    """The error as a TidelogError, so that callers do not depend on SQLite."""
    import sqlite3

    if isinstance(error, TidelogError):
        return error
    if isinstance(error, OSError):
        return StorageError(f"cannot {action} the metadata in {path}: {error.strerror or error}")
    if isinstance(error, sqlite3.Error):
        code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == 0 and action == "read":  # text that is not UTF-8: raised by the Python module, without a code
            code = sqlite3.SQLITE_CORRUPT
        for name, (kind, what, advice) in _FAULTS.items():
            if code == getattr(sqlite3, name):
                return kind(f"cannot {action} the metadata in {path}: {what} ({error}); {advice}")
        if code not in (0, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG):
            return StorageError(f"cannot {action} the metadata in {path}: {error}")
    if action == "write":  # a number beyond 64 bits, text that is not Unicode, a null in a NOT NULL column
        return InvalidInput(f"a row cannot be stored: {error}")
    return StorageError(f"cannot {action} the metadata in {path}: {error!r}")
