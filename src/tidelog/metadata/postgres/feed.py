"""The change feed in PostgreSQL: the newest changes of shared tables, as JSON, by version.

A writer increments the version in its own transaction, as the last thing before it commits. The lock on that row
makes versions visible in order: whoever sees a version sees all changes up to it.
"""

import json
from collections.abc import Sequence
from typing import Any

from tidelog.metadata import feed
from tidelog.metadata.postgres.tables import LAYOUTS, SHARED_TABLES
from tidelog.metadata.store import Delete, News, Put, table_of
from tidelog.postgres import Connection

# $1 the changes, $2 their number, $3 how many are kept. Too many at once are not kept at all.
_PUBLISH = """
WITH head AS (
    UPDATE feed_head SET version = version + 1, changes = changes + $2::bigint RETURNING version, changes
), added AS (
    INSERT INTO feed (version, before, changes) SELECT version, changes - $2, $1 FROM head WHERE $2 <= $3::bigint
)
DELETE FROM feed WHERE before < (SELECT changes FROM head) - $3
"""
_SINCE = """
SELECT head.version AS newest, feed.version, feed.changes
FROM feed_head AS head
LEFT JOIN feed ON feed.version > $1::bigint AND $1 + 1 >= (SELECT min(version) FROM feed)
ORDER BY feed.version
"""


async def publish(connection: Connection, changes: Sequence[Put | Delete]) -> None:
    await connection.execute(_PUBLISH, json.dumps([_encoded(each) for each in changes]), len(changes), feed.MOST_KEPT)


async def news_since(connection: Connection, version: int) -> News:
    found = await connection.fetch(_SINCE, version)
    newest: int = found[0]["newest"]
    kept = [row["changes"] for row in found if row["version"] is not None]
    if len(kept) != newest - version:
        return News(newest, None)
    return News(newest, tuple(_decoded(each) for changes in kept for each in json.loads(changes)))


def _encoded(change: Put | Delete) -> list[Any]:
    """["put", table, {column: value}] or ["delete", table, [value of key field]]; bytes are {"hex": ...}."""
    layout = LAYOUTS[table_of(change)]
    if isinstance(change, Delete):
        return ["delete", layout.table, [_plain(value) for value in change.key]]
    return ["put", layout.table, {name: _plain(getattr(change.row, name)) for name in layout.types}]


def _decoded(change: list[Any]) -> Put | Delete:
    """Columns of a newer Tidelog are left out."""
    kind, table, values = change
    layout = SHARED_TABLES[table]
    if kind == "delete":
        return Delete(layout.row, tuple(_value(each) for each in values))
    return Put(layout.row(**{name: _value(each) for name, each in values.items() if name in layout.types}))


def _plain(value: object) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _value(plain: Any) -> Any:  # noqa: ANN401
    return bytes.fromhex(plain["hex"]) if isinstance(plain, dict) else plain
