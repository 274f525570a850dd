"""Opens the metadata of a data directory, whichever engine stores it."""

from contextlib import AbstractAsyncContextManager

from tidelog.metadata.sqlite.snapshot import snapshot as sqlite_snapshot
from tidelog.metadata.sqlite.store import SqliteStore, file_in
from tidelog.metadata.store import MetadataStore


async def open_store(data_dir: str) -> MetadataStore:
    """The metadata store of this data directory, for the one broker that runs on it."""
    return await SqliteStore.open(file_in(data_dir))


def snapshot(data_dir: str) -> AbstractAsyncContextManager[MetadataStore]:
    """A copy of the metadata in a data directory at one point in time, for reading. A broker may be running on it."""
    return sqlite_snapshot(data_dir)
