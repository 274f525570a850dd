"""Changes of rows as statements of PostgreSQL.

The driver sends a statement only when the last one is answered, so what costs time is the number of statements. Most
writes are puts and deletes, and the order among those rarely matters: all that are in a `Stage` become one statement,
which commits by itself, with the check of the fences in it. A put of a row that an earlier delete of several rows
removes begins a new stage. Changes that expect a row (`Exchange`) look first, in a transaction.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from tidelog.errors import Conflict, InvalidInput
from tidelog.metadata.postgres.tables import LAYOUTS, Layout, quoted, to_text
from tidelog.metadata.rows import Row
from tidelog.metadata.store import Change, Delete, Fence, Insert, Key, Put, Update, table_of
from tidelog.postgres import Connection

_MOST_ROWS = 2_000  # of a stage: the driver encodes them in one go, in the event loop
_MOST_RACES = 5


def is_plain(change: Change) -> bool:
    """True if it expects no row, so that it can share a commit with the changes of other callers."""
    return isinstance(change, Put | Delete)


class Stage:
    """Puts and deletes of different rows, whose order does not matter."""

    def __init__(self) -> None:
        self._puts: dict[Layout, dict[Any, dict[Key, Row]]] = {}  # by the first key field
        self._deletes: dict[Layout, dict[int, set[Key]]] = {}  # by the number of key fields
        self.rows = 0

    def put(self, layout: Layout, row: Row) -> bool:
        """False if it has to go into a later stage."""
        key = layout.key_of(row)
        deletes = self._deletes.get(layout)
        if deletes is not None:
            for length, keys in deletes.items():
                if key[:length] in keys:
                    if length < len(key):
                        return False
                    keys.remove(key)
        if self.rows >= _MOST_ROWS:
            return False
        self.rows += 1
        rows = self._puts.setdefault(layout, {}).setdefault(key[0], {})
        if key in rows:
            layout.check_row(rows[key])  # PostgreSQL will not see it
        rows[key] = row
        return True

    def delete(self, layout: Layout, key: Key) -> bool:
        if self.rows >= _MOST_ROWS:
            return False
        self.rows += 1
        puts = self._puts.get(layout, {})
        for first in [key[0]] if key else list(puts):
            same_first = puts.get(first, {})
            for each in [each for each in same_first if each[: len(key)] == key]:
                layout.check_row(same_first.pop(each))
        self._deletes.setdefault(layout, {}).setdefault(len(key), set()).add(key)
        return True

    def statement(self, fences: Sequence[Fence] = ()) -> tuple[str, list[Any]]:
        """One statement. With fences it returns whether all of them hold; if one does not, it changes nothing."""
        shape: list[_Part] = []
        arguments: list[Any] = []
        if fences:
            arguments += [to_text([fence.scope for fence in fences]), [fence.epoch for fence in fences]]
        for layout, by_length in self._deletes.items():
            for length, keys in by_length.items():
                if keys:
                    shape.append(_Part(layout, length))
                    arguments += layout.keys_as_columns(list(keys), length) if length else []
        for layout, puts in self._puts.items():
            rows = [row for some in puts.values() for row in some.values()]
            if rows:
                shape.append(_Part(layout, None))
                arguments += layout.columns_of(rows)
        return _sql(tuple(shape), bool(fences)), arguments


class _Part(NamedTuple):
    layout: Layout
    delete: int | None  # the number of key fields; None: a put


@cache
def _sql(shape: tuple[_Part, ...], is_fenced: bool) -> str:
    parts: list[str] = []
    number = 3 if is_fenced else 1
    condition = "(SELECT yes FROM allowed)" if is_fenced else "true"
    for part in shape:
        layout, length = part
        if length is None:
            parts.append(_put(layout, number, condition))
            number += len(layout.array_types)
        else:
            parts.append(_delete(layout, length, number, condition))
            number += len(layout.key_array_types(length)) if length else 0
    if not is_fenced and len(parts) == 1:
        return parts[0]
    tables = [f"part{count} AS ({part})" for count, part in enumerate(parts)]
    if not is_fenced:
        return f"WITH {', '.join(tables)} SELECT true" if tables else "SELECT true"
    # FOR SHARE waits for a broker that is taking over, and then sees its epoch. Whoever changes leases locks them in
    # the same order.
    return (
        "WITH held AS MATERIALIZED (SELECT leases.scope FROM leases JOIN unnest($1::text[], $2::bigint[])"  # noqa: S608
        " AS fence (scope, epoch) ON leases.scope = fence.scope AND leases.epoch = fence.epoch"
        " ORDER BY leases.scope FOR SHARE OF leases),"
        " allowed AS MATERIALIZED (SELECT count(*) = cardinality($1::text[]) AS yes FROM held)"
        f"{''.join(', ' + table for table in tables)} SELECT yes FROM allowed"
    )


def _arrays(types: Sequence[str], number: int) -> str:
    return f"unnest({', '.join(f'${number + count}::{type_}[]' for count, type_ in enumerate(types))})"


def _put(layout: Layout, number: int, condition: str) -> str:
    exchanged = ", ".join(f'"{name}" = excluded."{name}"' for name in layout.types if name not in layout.key)
    return (
        f'INSERT INTO "{layout.table}" ({quoted(layout.all_columns)})'  # noqa: S608
        f" SELECT * FROM {_arrays(layout.array_types, number)} WHERE {condition}"
        f" ON CONFLICT ({quoted(layout.stored_key)}) DO UPDATE SET {exchanged}"
    )


def _delete(layout: Layout, length: int, number: int, condition: str) -> str:
    if not length:
        return f'DELETE FROM "{layout.table}" WHERE {condition}'  # noqa: S608
    return f'DELETE FROM "{layout.table}" AS stored {_by_keys(layout, length, number, "USING")} AND {condition}'  # noqa: S608


def _by_keys(layout: Layout, length: int, number: int, join: str) -> str:
    """Joins the table, called `stored`, with keys that are given as arrays."""
    names = layout.stored_key_names(length)
    arrays = _arrays(layout.key_array_types(length), number)
    return f"{join} {arrays} AS given ({quoted(names)}) WHERE " + " AND ".join(
        f'stored."{name}" = given."{name}"' for name in names
    )


class Exchange:
    """Rows of one table, each to be replaced or inserted if what is stored is as expected."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._wanted: dict[Key, tuple[Row | None, Row]] = {}  # before (None: no row) and after

    def add(self, layout: Layout, before: Row | None, after: Row) -> bool:
        """False if it has to go into a later exchange."""
        key = layout.key_of(after)
        if before is not None and (type(before), layout.key_of(before)) != (type(after), key):
            raise InvalidInput(f"an update cannot change the key of a row from {layout.key_of(before)} to {key}")
        if layout is not self.layout or key in self._wanted or len(self._wanted) >= _MOST_ROWS:
            return False
        if before is not None:
            layout.check_row(before)
        self._wanted[key] = (before, after)
        return True

    async def run(self, connection: Connection) -> None:
        for _ in range(_MOST_RACES):
            if await self._try(connection):
                return
        raise Conflict(f"rows of {self.layout.table} are being changed by others")

    async def _try(self, connection: Connection) -> bool:
        """False if another broker inserted a row at the same moment."""
        layout, length = self.layout, len(self.layout.key)
        columns = ", ".join(f'stored."{name}"' for name in layout.types)
        look = (
            f'SELECT {columns} FROM "{layout.table}" AS stored {_by_keys(layout, length, 1, "CROSS JOIN")}'  # noqa: S608
            " FOR UPDATE OF stored"
        )
        records = await connection.fetch(look, *layout.keys_as_columns(list(self._wanted), length))
        found = {layout.key_of(row): row for row in layout.rows_from(records)}
        inserted, updated = [], Stage()
        for key, (before, after) in self._wanted.items():
            stored = found.get(key)
            if stored == after:
                continue  # this write was made before, and is being repeated
            if stored != before:
                what = "exists already" if before is None else "is not as expected"
                raise Conflict(f"the row {key} of {layout.table} {what}")
            if before is None:
                inserted.append(after)
            else:
                updated.put(layout, after)
        if inserted:
            insert = (
                f'INSERT INTO "{layout.table}" ({quoted(layout.all_columns)})'  # noqa: S608
                f" SELECT * FROM {_arrays(layout.array_types, 1)} ON CONFLICT DO NOTHING"
            )
            done = await connection.execute(insert, *layout.columns_of(inserted))
            if done != f"INSERT 0 {len(inserted)}":
                return False
        if updated.rows:
            sql, arguments = updated.statement()
            await connection.execute(sql, *arguments)
        return True


Step: TypeAlias = Stage | Exchange


def plan(changes: Iterable[Change]) -> list[Step]:
    """The changes as steps to be made one after the other. InvalidInput if one of them makes no sense."""
    steps: list[Step] = []
    for change in changes:
        layout = LAYOUTS[table_of(change)]
        if isinstance(change, Delete):
            layout.check_key(change.key)
        if not (steps and _add(steps[-1], layout, change)):
            steps.append(Stage() if isinstance(change, Put | Delete) else Exchange(layout))
            is_added = _add(steps[-1], layout, change)
            assert is_added
    return steps


def _add(step: Step, layout: Layout, change: Change) -> bool:
    if isinstance(change, Put):
        return isinstance(step, Stage) and step.put(layout, change.row)
    if isinstance(change, Delete):
        return isinstance(step, Stage) and step.delete(layout, change.key)
    if not isinstance(step, Exchange):
        return False
    if isinstance(change, Insert):
        return step.add(layout, None, change.row)
    assert isinstance(change, Update)
    return step.add(layout, change.before, change.after)
