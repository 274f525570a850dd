"""Tables in PostgreSQL, and their versions.

All tables of a cluster are in one schema. Each part of Tidelog that stores something there is a `Component` with a
version of its own; the table `tidelog_schema` has the versions that were ever applied. Brokers that start at the same
time take turns (an advisory lock); each brings older tables up to date in one transaction. Tables of a newer Tidelog
are refused.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

from tidelog.errors import MetadataTooNew

if TYPE_CHECKING:
    import asyncpg

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_LOCKS = 0x54494445  # "TIDE": the class of our advisory locks
_VERSIONS = """
CREATE TABLE tidelog_schema (
    component text NOT NULL,
    version integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (component, version)
)
"""


@dataclass(frozen=True)
class Component:
    """`upgrade(connection, stored)` brings the tables from the stored version, 0 if there are none, to `version`. It
    runs in a transaction, with the schema as the search path."""

    name: str
    version: int
    upgrade: Callable[[Connection, int], Awaitable[None]]


def scripted(name: str, scripts: Sequence[str]) -> Component:
    """A component whose version is the number of SQL scripts that were applied, in order. Scripts are only ever
    added: a released one is never changed."""

    async def upgrade(connection: Connection, stored: int) -> None:
        for script in scripts[stored:]:
            await connection.execute(script)

    return Component(name, len(scripts), upgrade)


async def bring_up_to_date(connection: Connection, schema: str, components: Iterable[Component], where: str) -> None:
    """Create what is missing. MetadataTooNew if a newer Tidelog has been here."""
    stored = await stored_versions(connection, schema)
    _refuse_newer(components, stored, where)
    if all(stored.get(each.name) == each.version for each in components):
        return
    async with connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
        await connection.execute("SELECT pg_advisory_xact_lock($1, $2)", _LOCKS, _lock_of(schema))
        stored = await stored_versions(connection, schema)  # another broker may have been faster
        _refuse_newer(components, stored, where)
        if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)", schema):
            await connection.execute(f'CREATE SCHEMA "{schema}"')
        if not await _has_versions(connection, schema):
            await connection.execute(_VERSIONS)
        for each in components:
            version = stored.get(each.name, 0)
            if version < each.version:
                await each.upgrade(connection, version)
                await connection.execute(
                    "INSERT INTO tidelog_schema (component, version) VALUES ($1, $2)", each.name, each.version
                )


def _refuse_newer(components: Iterable[Component], stored: dict[str, int], where: str) -> None:
    for each in components:
        version = stored.get(each.name, 0)
        if version > each.version:
            raise MetadataTooNew(
                f"{where} was written by a newer Tidelog: the version of its {each.name} tables is {version}, this"
                f" one supports {each.version}; use the newer Tidelog, or restore the backup from before the upgrade"
            )


async def stored_versions(connection: Connection, schema: str) -> dict[str, int]:
    if not await _has_versions(connection, schema):
        return {}
    found = await connection.fetch("SELECT component, max(version) AS version FROM tidelog_schema GROUP BY component")
    return {row["component"]: row["version"] for row in found}


async def _has_versions(connection: Connection, schema: str) -> bool:
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'tidelog_schema')", schema
    )
    return found


def _lock_of(schema: str) -> int:
    return crc32(schema.encode()) - (1 << 31)  # PostgreSQL's integers have a sign
