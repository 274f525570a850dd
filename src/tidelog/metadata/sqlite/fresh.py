"""The metadata of a new data directory, written at once."""

import os
import shutil
from collections.abc import Sequence

from tidelog.errors import StorageError
from tidelog.metadata.sqlite.file import sync_directory
from tidelog.metadata.sqlite.store import SqliteStore, file_in
from tidelog.metadata.store import Change

_UNFINISHED = "metadata-unfinished"
_AT_ONCE = 10_000  # changes


async def create(data_dir: str, changes: Sequence[Change]) -> None:
    """The directory must not have any. It has all of it when this returns, and after a crash all or none."""
    unfinished = os.path.join(data_dir, _UNFINISHED)
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        os.mkdir(unfinished, 0o700)
        store = await SqliteStore.open(file_in(unfinished), shown_as=file_in(data_dir))
        try:
            for at in range(0, len(changes), _AT_ONCE):
                await store.write(changes[at : at + _AT_ONCE])
        finally:
            await store.close()
        names = os.listdir(unfinished)
        if names != [os.path.basename(file_in(data_dir))]:
            raise StorageError(f"the metadata in {unfinished} was not closed in order: it has {sorted(names)}")
        os.rename(file_in(unfinished), file_in(data_dir))
        os.rmdir(unfinished)
        sync_directory(data_dir)
    except OSError as error:
        raise StorageError(f"cannot write the metadata of {data_dir}: {error.strerror or error}") from error
