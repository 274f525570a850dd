"""A copy of the metadata in a data directory at one point in time, for reading. A broker may be running on it.

A broker holds an exclusive lock on its file, so the file is copied, together with its write-ahead log (WAL), and the
copy is opened like any store. Nothing in the directory is written or locked.

Why the copy is consistent: commits go to the WAL, and a checkpoint moves them into the database; only after that is
the WAL restarted, with a new header. So a copy is consistent if no checkpoint wrote to the database during the copy
(the two files are compared afterwards) and the WAL was not restarted (its header is the same before and after).
Otherwise the copy is repeated. A commit that was being written has no valid end in the copied WAL, so SQLite ignores
it.
"""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidelog.errors import InvalidInput, StorageUnavailable
from tidelog.metadata.sqlite.store import METADATA_FILE, SqliteStore, file_in
from tidelog.metadata.store import MetadataStore

_LOG_SUFFIX = "-wal"
_LOG_HEADER_BYTES = 32
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.02
_CHUNK = 1 << 20


@asynccontextmanager
async def snapshot(data_dir: str) -> AsyncIterator[MetadataStore]:
    """The metadata in this directory; writes to it are lost. Must not be called in the broker's own process: closing
    the file there would release the broker's lock on it."""
    path = file_in(data_dir)
    check_data_dir(data_dir)
    with tempfile.TemporaryDirectory(prefix="tidelog-metadata-") as directory:
        copy = file_in(directory)
        await asyncio.to_thread(_copy, path, copy)
        store = await SqliteStore.open(copy, shown_as=path)
        try:
            yield store
        finally:
            await store.close()


def check_data_dir(data_dir: str) -> None:
    """InvalidInput if there is no metadata in it."""
    if not os.path.isdir(data_dir):
        raise InvalidInput(f"there is no directory {data_dir}")
    if not os.path.isfile(file_in(data_dir)):
        raise InvalidInput(
            f"{data_dir} is not a data directory of Tidelog: it has no {METADATA_FILE};"
            " give the directory that the broker uses as --data-dir"
        )


def _copy(path: str, copy: str) -> None:
    log, copied_log = path + _LOG_SUFFIX, copy + _LOG_SUFFIX
    for _ in range(_ATTEMPTS):
        header = _header(log)
        shutil.copyfile(path, copy)
        try:
            shutil.copyfile(log, copied_log)
        except FileNotFoundError:  # there is no WAL: no broker is running, or it has just started
            if os.path.exists(copied_log):
                os.remove(copied_log)
        if _is_same(path, copy) and _header(log) == header:
            return
        time.sleep(_PAUSE_SECONDS)
    raise StorageUnavailable(f"{path} changes faster than it can be copied; try again when the broker is less busy")


def _header(log: str) -> bytes:
    try:
        with open(log, "rb") as file:
            return file.read(_LOG_HEADER_BYTES)
    except FileNotFoundError:
        return b""


def _is_same(path: str, copy: str) -> bool:
    with open(path, "rb") as one, open(copy, "rb") as other:
        while True:
            here, there = one.read(_CHUNK), other.read(_CHUNK)
            if here != there:
                return False
            if not here:
                return True
