"""`PostgresMetadataIntake`: rows from elsewhere, in one transaction with new epochs of all leases."""

import json
from collections.abc import Sequence

from tidelog.metadata.feed import shared_changes
from tidelog.metadata.intake import MetadataIntake, Numbers
from tidelog.metadata.postgres.feed import publish
from tidelog.metadata.postgres.plan import Exchange, Stage, plan
from tidelog.metadata.postgres.registry_schema import REGISTRY
from tidelog.metadata.postgres.tables import LAYOUTS, METADATA, to_text
from tidelog.metadata.rows import TABLES, ClusterRow, Row
from tidelog.metadata.store import Change, Put
from tidelog.postgres import Component, Connection, PostgresSettings, Session

_LOCK_NUMBERS = (
    "INSERT INTO reserved (name, next) VALUES ($1, 0) ON CONFLICT (name) DO UPDATE SET next = reserved.next"
)
_NEXT = "SELECT next FROM reserved WHERE name = $1"
_RAISE = "UPDATE reserved SET next = greatest(next, $2::bigint) WHERE name = $1"
_LOCK_LEASES = "SELECT FROM leases ORDER BY scope FOR NO KEY UPDATE"
_DEPOSE = "UPDATE leases SET epoch = epoch + 1"


class PostgresMetadataIntake(MetadataIntake):
    def __init__(self, session: Session) -> None:
        """Use `open`."""
        self._session = session

    @classmethod
    async def open(cls, settings: PostgresSettings, logs: Component) -> "PostgresMetadataIntake":
        """`logs` is the component of the storage engine. Creates what is missing. Fails as `Session.open` does."""
        return cls(await Session.open(settings, [METADATA, logs, REGISTRY], name="tidelog import"))

    async def claim(self, name: str, source: str, end: int, *, rehearse: bool = False) -> list[Numbers]:
        return await self._session.transaction(lambda connection: _claim(connection, name, source, end, rehearse))

    async def take_in(self, changes: Sequence[Change]) -> None:
        await self._session.transaction(lambda connection: _take_in(connection, changes))

    async def close(self) -> None:
        await self._session.close()


async def _claim(connection: Connection, name: str, source: str, end: int, rehearse: bool) -> list[Numbers]:
    (stored_name,) = to_text([name])
    await connection.execute(_LOCK_NUMBERS, stored_name)  # whoever reserves waits
    fact = f"import.{source}.{name}"
    claimed = [Numbers(*each) for each in json.loads(await _fact(connection, fact) or "[]")]
    given: int = await connection.fetchval(_NEXT, stored_name)
    if given < end:
        claimed.append(Numbers(given, end))
    if given < end and not rehearse:
        await connection.execute(_RAISE, stored_name, end)
        await _make(connection, [Put(ClusterRow(fact, json.dumps(claimed)))])
    return claimed


async def _fact(connection: Connection, name: str) -> str | None:
    sql, arguments = LAYOUTS[ClusterRow].selecting((name,))
    for row in LAYOUTS[ClusterRow].rows_from(await connection.fetch(sql, *arguments)):
        assert isinstance(row, ClusterRow)
        return row.value
    return None


async def _take_in(connection: Connection, changes: Sequence[Change]) -> None:
    await connection.execute(_LOCK_LEASES)
    await connection.execute(_DEPOSE)
    await _make(connection, changes)
    shared = shared_changes(changes)
    if shared:
        await publish(connection, shared)
    await connection.execute("SELECT registry_count()")


async def _make(connection: Connection, changes: Sequence[Change]) -> None:
    for step in plan(changes):
        if isinstance(step, Exchange):
            await step.run(connection)
        else:
            assert isinstance(step, Stage)
            sql, arguments = step.statement()
            await connection.execute(sql, *arguments)


async def all_rows(connection: Connection) -> tuple[dict[type[Row], list[Row]], dict[str, int]]:
    """All rows, by table, and the next number of each sequence, in a transaction of the caller."""
    rows = {}
    for table in TABLES:
        layout = LAYOUTS[table]
        rows[table] = layout.rows_from(await connection.fetch(layout.select))
    numbers = await connection.fetch("SELECT name, next FROM reserved")
    return rows, {row["name"]: row["next"] for row in numbers}
