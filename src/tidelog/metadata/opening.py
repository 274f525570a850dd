"""Opens the metadata at a place, whichever engine stores it."""

from contextlib import AbstractAsyncContextManager

from tidelog.metadata.sqlite.snapshot import snapshot as sqlite_snapshot
from tidelog.metadata.sqlite.store import SqliteStore, file_in
from tidelog.metadata.store import MetadataStore

_POSTGRES = ("postgresql://", "postgres://")


async def open_store(place: str) -> MetadataStore:
    """The metadata store in a data directory, for the one broker that runs on it; or in a PostgreSQL database, given
    as a URL, for any number of brokers. MissingExtra if the driver for PostgreSQL is not installed."""
    if not place.startswith(_POSTGRES):
        return await SqliteStore.open(file_in(place))
    from tidelog.metadata.postgres import PostgresStore
    from tidelog.postgres import PostgresSettings

    return await PostgresStore.open(PostgresSettings.parse(place))


def snapshot(data_dir: str) -> AbstractAsyncContextManager[MetadataStore]:
    """A copy of the metadata in a data directory at one point in time, for reading. A broker may be running on it."""
    return sqlite_snapshot(data_dir)
