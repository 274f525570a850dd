"""The engines that must keep the contract of `MetadataStore`, each as a place where a store can be opened again and
again, as after a restart of the broker."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tests.support.metadata_store import Database, FakeStore
from tidelog.metadata.sqlite import SqliteStore
from tidelog.metadata.store import MetadataStore


class SqliteEngine:
    def __init__(self, directory: Path) -> None:
        self._path = str(directory / "metadata.sqlite")

    async def open(self) -> MetadataStore:
        return await SqliteStore.open(self._path)


class FakeEngine:
    """Its answers come late."""

    def __init__(self, _directory: Path) -> None:
        self._database = Database()

    async def open(self) -> MetadataStore:
        return FakeStore(self._database, delay_turns=3)


Engine: TypeAlias = SqliteEngine | FakeEngine
ENGINES: dict[str, Callable[[Path], Engine]] = {"sqlite": SqliteEngine, "fake": FakeEngine}
