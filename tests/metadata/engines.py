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
    """The same schema for all tests of this process, emptied for each: creating one takes longer than most tests."""

    _schema = fresh_schema()

    def __init__(self, _directory: Path) -> None:
        self._settings = PostgresSettings.parse(server().url(), schema=self._schema, deadline_s=60.0)
        server().sql(
            f"""
            DO $$ DECLARE name text; BEGIN
                FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '{self._schema}'
                AND tablename NOT IN ('tidelog_schema', 'feed_head') LOOP
                    EXECUTE format('DELETE FROM {self._schema}.%I', name);
                END LOOP;
            END $$
            """
        )

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
EXAMPLES = {"sqlite": 40, "postgres": 12, "fake": 40}  # of tests with random writes
