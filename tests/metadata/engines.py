"""The engines that must keep the contract of `MetadataStore`, each as a place where a store can be opened again and
again, as after a restart of the broker."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tests.support.metadata_store import Database, FakeStore
from tests.support.postgres import fresh_schema, server
from tidelog.metadata.postgres import PostgresStore
from tidelog.metadata.sqlite import SqliteStore
from tidelog.metadata.store import MetadataStore
from tidelog.postgres import PostgresSettings


class SqliteEngine:
    def __init__(self, directory: Path) -> None:
        self._path = str(directory / "metadata.sqlite")

    async def open(self) -> MetadataStore:
        return await SqliteStore.open(self._path)


class PostgresEngine:
    """A schema of its own on the server of this test process."""

    def __init__(self, _directory: Path) -> None:
        self._settings = PostgresSettings.parse(server().url(), schema=fresh_schema(), deadline_s=60.0)

    async def open(self) -> MetadataStore:
        return await PostgresStore.open(self._settings)


class FakeEngine:
    """Its answers come late."""

    def __init__(self, _directory: Path) -> None:
        self._database = Database()

    async def open(self) -> MetadataStore:
        return FakeStore(self._database, delay_turns=3)


Engine: TypeAlias = SqliteEngine | PostgresEngine | FakeEngine
ENGINES: dict[str, Callable[[Path], Engine]] = {
    "sqlite": SqliteEngine,
    "postgres": PostgresEngine,
    "fake": FakeEngine,
}
