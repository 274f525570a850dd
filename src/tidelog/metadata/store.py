"""`MetadataStore`: durable rows, written in all-or-nothing groups. SQLite in one process, PostgreSQL in a cluster.

The broker keeps the rows it needs in memory: it loads them when it starts and decides on what it has. A reply that
promises something goes out after the write that makes it true has returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from tidelog.metadata.rows import Row

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
    async def load(self, table: type[R]) -> list[R]:
        """Every row of a table."""

    async def write(self, changes: Sequence[Change]) -> None:
        """Durable and visible when it returns; nothing of it otherwise. Writes take effect in the order of the calls;
        those that wait at the same time share a commit."""

    async def close(self) -> None:
        """After everything that was asked for is written."""
