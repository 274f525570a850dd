"""A data directory's metadata as it was at one moment, for looking at: whether or not a broker runs on it.

A broker keeps everybody else out of its file, so the file is copied, with its write-ahead log, and the copy is opened
as any store. Nothing in the directory is written or locked.

Why the copy is whole: commits go to the log, and a checkpoint moves them into the database; only after it the log
begins anew, with another header. So a copy is consistent if no checkpoint wrote to the database while it was copied
(it is compared afterwards) and the log did not begin anew (its header is the same before and after); otherwise it is
copied again. A commit that was being written has no valid end in the copied log, and is left out.
"""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidelog.errors import InvalidInput, StorageUnavailable
from tidelog.metadata.sqlite import METADATA_FILE, SqliteStore
from tidelog.metadata.store import MetadataStore

_LOG_SUFFIX = "-wal"
_LOG_HEADER_BYTES = 32
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.02
_CHUNK = 1 << 20


@asynccontextmanager
async def snapshot(data_dir: str) -> AsyncIterator[MetadataStore]:
    """The metadata in this directory; what is written to it is lost. Not for the process of the broker itself: to
    close a file there would give up the broker's lock on it."""
    path = os.path.join(data_dir, METADATA_FILE)
    if not os.path.isdir(data_dir):
        raise InvalidInput(f"there is no directory {data_dir}")
    if not os.path.isfile(path):
        raise InvalidInput(
            f"{data_dir} is not a data directory of Tidelog: it has no {METADATA_FILE};"
            " give the directory that the broker has as --data-dir"
        )
    with tempfile.TemporaryDirectory(prefix="tidelog-metadata-") as directory:
        copy = os.path.join(directory, METADATA_FILE)
        await asyncio.to_thread(_copy, path, copy)
        store = await SqliteStore.open(copy, shown_as=path)
        try:
            yield store
        finally:
            await store.close()


def _copy(path: str, copy: str) -> None:
    log, copied_log = path + _LOG_SUFFIX, copy + _LOG_SUFFIX
    for _ in range(_ATTEMPTS):
        header = _header(log)
        shutil.copyfile(path, copy)
        try:
            shutil.copyfile(log, copied_log)
        except FileNotFoundError:  # nothing is written ahead: no broker runs, or it has just begun
            if os.path.exists(copied_log):
                os.remove(copied_log)
        if _is_same(path, copy) and _header(log) == header:
            return
        time.sleep(_PAUSE_SECONDS)
    raise StorageUnavailable(f"{path} changes faster than it can be copied; try again when there is less to do")


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
