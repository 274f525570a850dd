"""`MetadataStore`: durable rows, written in all-or-nothing groups. SQLite in one process, PostgreSQL in a cluster.

The broker keeps the rows it needs in memory: it loads them when it starts and decides on what it has. A reply that
promises something goes out after the write that makes it true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from tidelog.metadata.rows import Row
from tidelog.promise import Promise

R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Put:
    """Insert the row, or replace the one with the same key."""

    row: Row


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the rows of a table whose first key fields have these values; none is fine."""

    table: type[Row]
    key: tuple[str | int, ...]


Change: TypeAlias = Put | Delete


class MetadataStore(Protocol):
    def load(self, table: type[R]) -> Promise[list[R]]:
        """Every row of a table, as the writes before it left it."""

    def write(self, changes: Sequence[Change]) -> Promise[None]:
        """Durable and visible when the promise is kept; nothing of it if it fails. Writes take effect, and promises
        are kept, in the order of the calls; those that wait at the same time share a commit."""

    async def close(self) -> None:
        """After everything that was asked for is written."""
