"""`PostgresInventory`: reads the tables of the order for tools, in read-only transactions, and never upgrades
them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tidelog.errors import InvalidInput
from tidelog.postgres import Connection, PostgresSettings, Session
from tidelog.postgres.schema import stored_versions
from tidelog.storage.shared.inventory import PAGE, Inventory, KnownObject, LogState, Totals, UsedRange
from tidelog.storage.shared.order import LogId
from tidelog.storage.shared.postgres.order import COMPONENT

_TOTALS = """
    SELECT (SELECT count(*) FROM logs), count(*), coalesce(sum(size), 0)::bigint FROM objects
    WHERE dead_since IS NULL"""
_LOGS = """
    SELECT log_id, topic, partition, start_offset, high_watermark, clean_offset FROM logs
    WHERE log_id > $1 ORDER BY log_id LIMIT $2"""
_EXTENTS = """
    SELECT extents.log_id, extents.object_id, topic, topic_id, partition, base_offset, last_offset,
        coalesce(objects.key, '') AS key, extents.position, extents.size, clean_offset
    FROM extents JOIN logs ON logs.log_id = extents.log_id
    LEFT JOIN objects ON objects.object_id = extents.object_id"""
_EXTENTS_OF_LOGS = f"""
    {_EXTENTS} WHERE extents.log_id = ANY ($1::bigint[]) AND last_offset >= start_offset
    ORDER BY extents.log_id, last_offset"""
_EXTENTS_OF_OBJECTS = f"""
    {_EXTENTS} WHERE extents.object_id = ANY ($1::bigint[]) AND last_offset >= start_offset
    ORDER BY extents.object_id, extents.position"""
_COLUMNS = "SELECT object_id, key, size, dead_since, removed_since IS NOT NULL AS is_removed FROM objects"
_OBJECTS = f"{_COLUMNS} WHERE key > $1 AND removed_since IS NULL ORDER BY key LIMIT $2"
_OBJECTS_NAMED = f"{_COLUMNS} WHERE key = ANY ($1::text[])"


class PostgresInventory(Inventory):
    def __init__(self, session: Session) -> None:
        """Use `open`."""
        self._session = session

    @classmethod
    async def open(cls, settings: PostgresSettings) -> "PostgresInventory":
        """InvalidInput if the database has no cluster, or one whose tables are of another version."""
        session = await Session.open(settings, name="tidelog inventory")
        try:
            await session.read(lambda connection: check_tables(connection, settings))
        except BaseException:
            await session.close()
            raise
        return cls(session)

    async def totals(self) -> Totals:
        [row] = await self._session.read(lambda connection: connection.fetch(_TOTALS))
        return Totals(*row)

    async def logs(self, after: LogId, limit: int) -> list[LogState]:
        async def work(connection: Connection) -> list[LogState]:
            logs = await connection.fetch(_LOGS, after, limit)
            extents = defaultdict(list)
            for row in await connection.fetch(_EXTENTS_OF_LOGS, [row["log_id"] for row in logs]):
                extents[row["log_id"]].append(UsedRange(*row[2:]))
            return [LogState._make((*row, extents[row["log_id"]])) for row in logs]

        return await self._session.read(work, as_of_one_moment=True)

    async def objects(self, after: str, limit: int) -> list[KnownObject]:
        return await self._objects(_OBJECTS, after, limit)

    async def look(self, keys: Iterable[str]) -> dict[str, KnownObject]:
        every, found = list(keys), {}
        for at in range(0, len(every), PAGE):
            for each in await self._objects(_OBJECTS_NAMED, every[at : at + PAGE]):
                found[each.key] = each
        return found

    async def _objects(self, sql: str, *arguments: object) -> list[KnownObject]:
        async def work(connection: Connection) -> list[KnownObject]:
            rows: list[Any] = await connection.fetch(sql, *arguments)
            used = defaultdict(list)
            for row in await connection.fetch(_EXTENTS_OF_OBJECTS, [row["object_id"] for row in rows]):
                used[row["object_id"]].append(UsedRange(*row[2:]))
            return [KnownObject._make((*row[1:], used[row["object_id"]])) for row in rows]

        return await self._session.read(work, as_of_one_moment=True)

    async def close(self) -> None:
        await self._session.close()


async def check_tables(connection: Connection, settings: PostgresSettings) -> None:
    """InvalidInput if the database has no cluster, or one whose tables are of another version."""
    stored = (await stored_versions(connection, settings.schema)).get(COMPONENT.name)
    if stored is None:
        raise InvalidInput(f"the schema {settings.schema} of {settings} has no tables of a Tidelog cluster")
    if stored != COMPONENT.version:
        raise InvalidInput(
            f"the tables in the schema {settings.schema} of {settings} have version {stored}, and this Tidelog"
            f" expects {COMPONENT.version}; use the Tidelog that the brokers run"
        )
