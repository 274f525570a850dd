"""Opens the metadata at a place, whichever engine stores it."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from tidelog.metadata.registry import DEAD_AFTER_S, Registry
from tidelog.metadata.sqlite.snapshot import snapshot as sqlite_snapshot
from tidelog.metadata.sqlite.store import SqliteStore, file_in
from tidelog.metadata.store import MetadataStore

if TYPE_CHECKING:
    from tidelog.postgres import Component

_POSTGRES = ("postgresql://", "postgres://")


async def open_store(place: str) -> MetadataStore:
    """The metadata store in a data directory, for the one broker that runs on it; or in a PostgreSQL database, given
    as a URL, for any number of brokers. MissingExtra if the driver for PostgreSQL is not installed."""
    if not place.startswith(_POSTGRES):
        return await SqliteStore.open(file_in(place))
    from tidelog.metadata.postgres import PostgresStore
    from tidelog.postgres import PostgresSettings

    return await PostgresStore.open(PostgresSettings.parse(place))


async def open_for_reading(url: str) -> MetadataStore:
    """The metadata of a cluster in a PostgreSQL database, for tools that only read: its tables are neither created
    nor upgraded."""
    from tidelog.metadata.postgres import PostgresStore
    from tidelog.postgres import PostgresSettings, Session

    return PostgresStore(await Session.open(PostgresSettings.parse(url), name="tidelog tool"))


async def open_registry(url: str, log_tables: "Component", *, dead_after_s: float = DEAD_AFTER_S) -> Registry:
    """The registry of a cluster in a PostgreSQL database, which also has the tables of its logs."""
    from tidelog.metadata.postgres.registry import PostgresRegistry
    from tidelog.postgres import PostgresSettings

    return await PostgresRegistry.open(PostgresSettings.parse(url), log_tables, dead_after_s=dead_after_s)


def snapshot(data_dir: str) -> AbstractAsyncContextManager[MetadataStore]:
    """A copy of the metadata in a data directory at one point in time, for reading. A broker may be running on it."""
    return sqlite_snapshot(data_dir)
