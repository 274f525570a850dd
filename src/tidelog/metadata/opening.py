"""Opens the metadata at a place, whichever engine stores it."""

import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from tidelog.metadata.intake import MetadataIntake
from tidelog.metadata.registry import DEAD_AFTER_S, Registry
from tidelog.metadata.rows import Row
from tidelog.metadata.sqlite.fresh import create
from tidelog.metadata.sqlite.snapshot import check_data_dir
from tidelog.metadata.sqlite.snapshot import snapshot as sqlite_snapshot
from tidelog.metadata.sqlite.store import SqliteStore, file_in
from tidelog.metadata.store import Change, MetadataStore

if TYPE_CHECKING:
    from tidelog.postgres import Component, Connection

_POSTGRES = ("postgresql://", "postgres://")
_PATIENCE_S = 120.0  # for one statement: tools may write many rows


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


def need_data_dir(data_dir: str) -> None:
    """InvalidInput: it is not the data directory of a broker."""
    check_data_dir(data_dir)


def has_metadata(data_dir: str) -> bool:
    return os.path.exists(file_in(data_dir))


async def create_in(data_dir: str, changes: Sequence[Change]) -> None:
    """Give a directory without metadata all of it at once: after a crash it has all or nothing."""
    await create(data_dir, changes)


async def open_intake(url: str, log_tables: "Component") -> MetadataIntake:
    """For adding rows to the metadata of a cluster in a PostgreSQL database, beside its brokers. Creates what is
    missing."""
    from tidelog.metadata.postgres.intake import PostgresMetadataIntake
    from tidelog.postgres import PostgresSettings

    return await PostgresMetadataIntake.open(PostgresSettings.parse(url, deadline_s=_PATIENCE_S), log_tables)


async def rows_as_of(connection: "Connection") -> tuple[dict[type[Row], list[Row]], dict[str, int]]:
    """All rows of a cluster, by table, and the next number of each sequence, in a transaction of the caller."""
    from tidelog.metadata.postgres.intake import all_rows

    return await all_rows(connection)
