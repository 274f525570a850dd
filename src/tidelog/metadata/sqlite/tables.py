"""The SQL of rows. The tables are derived from the row dataclasses in `rows.py`.

Fields are only ever added, so the number of columns is the version of the schema. An older file gets the missing
columns; a newer one is refused.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from itertools import chain, starmap
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args, get_type_hints

from tidelog.errors import InvalidInput, MetadataTooNew, StorageUnavailable
from tidelog.metadata.rows import SHARED, TABLES, Row
from tidelog.metadata.store import Change, Delete, Insert, Key, Put, Update, key_of

if TYPE_CHECKING:
    import sqlite3

_MOST_ROWS_PER_STATEMENT = 16  # one compiled statement is cached for each number of rows
_SCHEMA = "tidelog_schema"

# How a row is laid out in its table


_COLUMN_TYPES = {str: "TEXT", int: "INTEGER", bytes: "BLOB", bool: "INTEGER"}


@dataclass(frozen=True)
class _Layout:
    """The SQL of one table."""

    table: str
    columns: dict[str, str]  # name -> declaration
    key: tuple[str, ...]
    select: tuple[str, ...]  # by the number of key fields given
    put: tuple[str, ...]  # by the number of rows
    delete: tuple[str, ...]  # by the number of key fields given
    values: Callable[[Row], tuple[Any, ...]]
    decode: Callable[[Iterable[tuple[Any, ...]]], list[Row]]
    is_shared: bool  # its changes are in the change feed

    def selecting(self, key: Key) -> str:
        return self._of(self.select, key)

    def deleting(self, key: Key) -> str:
        return self._of(self.delete, key)

    def _of(self, statements: tuple[str, ...], key: Key) -> str:
        if len(key) >= len(statements):
            raise InvalidInput(f"{self.table} has {len(self.key)} key fields, not {len(key)}")
        return statements[len(key)]

    def create(self) -> str:
        columns = ", ".join(f'"{name}" {declaration}' for name, declaration in self.columns.items())
        return f'CREATE TABLE "{self.table}" ({columns}, PRIMARY KEY ({_names(self.key)})) WITHOUT ROWID'


def _layout(row: type[Row]) -> _Layout:
    table = _table_name(row)
    hints = get_type_hints(row)
    columns = {field.name: _declaration(hints[field.name]) for field in fields(row)}
    names = _names(columns)
    equal = [f'"{name}" = ?' for name in row.KEY]
    insert, row_of = f'INSERT OR REPLACE INTO "{table}" ({names}) VALUES', f"({', '.join('?' * len(columns))})"
    where = ["", *(" WHERE " + " AND ".join(equal[: count + 1]) for count in range(len(equal)))]
    return _Layout(
        table=table,
        columns=columns,
        key=row.KEY,
        select=tuple(f'SELECT {names} FROM "{table}"{each}' for each in where),  # noqa: S608 (all names are ours)
        put=tuple(f"{insert} {', '.join([row_of] * rows)}" for rows in range(_MOST_ROWS_PER_STATEMENT + 1)),
        delete=tuple(f'DELETE FROM "{table}"{condition}' for condition in where),  # noqa: S608
        values=attrgetter(*columns),
        decode=_decoder(row, hints),
        is_shared=row in SHARED,
    )


def _decoder(row: type[Row], hints: dict[str, Any]) -> Callable[[Iterable[tuple[Any, ...]]], list[Row]]:
    truths = [number for number, field in enumerate(fields(row)) if bool in _kinds(hints[field.name])]
    if not truths:
        return lambda found: list(starmap(row, found))

    def decode(found: Iterable[tuple[Any, ...]]) -> list[Row]:
        rows = []
        for values in found:
            cells = list(values)
            for number in truths:
                cells[number] = None if cells[number] is None else bool(cells[number])
            rows.append(row(*cells))
        return rows

    return decode


def _kinds(hint: object) -> tuple[Any, ...]:
    """The types in a type hint, which is a type or a union of a type and None."""
    return get_args(hint) or (hint,)


def _declaration(hint: object) -> str:
    kinds = _kinds(hint)
    (kind,) = (kind for kind in kinds if kind is not NoneType)
    return _COLUMN_TYPES[kind] + ("" if NoneType in kinds else " NOT NULL")


def _table_name(row: type[Row]) -> str:
    """GroupMemberRow -> group_member"""
    name = row.__name__.removesuffix("Row")
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


def _names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


Statement: TypeAlias = tuple[str, Sequence[Any]]


class Exchange(NamedTuple):
    """Replace the row `before`, or no row if it is None, by `after`; a conflict if anything else is stored."""

    layout: _Layout
    key: Key
    before: tuple[Any, ...] | None
    after: tuple[Any, ...]


def statements(changes: Iterable[Change]) -> tuple[list[Statement | Exchange], bool]:
    """The changes as SQL, in their order, and whether any of their tables is shared. Consecutive rows of one table
    share a statement: each statement releases the GIL and has to take it back from the event loop."""
    steps: list[Statement | Exchange] = []
    layout: _Layout | None = None
    rows: list[tuple[Any, ...]] = []
    is_shared = False

    def put() -> None:
        if layout is not None and rows:
            steps.append((layout.put[len(rows)], list(chain.from_iterable(rows))))
            rows.clear()

    for change in changes:
        if isinstance(change, Put):
            of_row = _LAYOUTS[type(change.row)]
            if of_row is not layout or len(rows) == _MOST_ROWS_PER_STATEMENT:
                put()
                layout = of_row
                is_shared = is_shared or layout.is_shared
            rows.append(of_row.values(change.row))
            continue
        put()
        step, of_row = _single(change)
        steps.append(step)
        is_shared = is_shared or of_row.is_shared
    put()
    return steps, is_shared


def _single(change: Insert | Update | Delete) -> tuple[Statement | Exchange, _Layout]:
    if isinstance(change, Delete):
        layout = _LAYOUTS[change.table]
        return (layout.deleting(change.key), change.key), layout
    row, before = (change.row, None) if isinstance(change, Insert) else (change.after, change.before)
    layout = _LAYOUTS[type(row)]
    if before is not None and (type(before), key_of(before)) != (type(row), key_of(row)):
        raise InvalidInput(f"an update cannot change the key of a row from {key_of(before)} to {key_of(row)}")
    return Exchange(
        layout, key_of(row), None if before is None else layout.values(before), layout.values(row)
    ), layout


_LAYOUTS: dict[type[Row], _Layout] = {row: _layout(row) for row in TABLES}


def layout_of(table: type[Row]) -> _Layout:
    return _LAYOUTS[table]


# The schema of a file


def migrate(connection: "sqlite3.Connection", path: str) -> None:
    """Upgrade the file to the schema of this program, or refuse it."""
    run = connection.execute
    version = sum(len(layout.columns) for layout in _LAYOUTS.values())
    found: dict[str, set[str]] = {}
    for table, column in run("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"):
        found.setdefault(table, set()).add(column)
    if found and _SCHEMA not in found:
        raise StorageUnavailable(f"{path} is not a database of Tidelog; move it away, or use another directory")
    if found:
        (stored,) = run(f"SELECT max(version) FROM {_SCHEMA}").fetchone()  # noqa: S608
        unknown = found.keys() - {_SCHEMA} - {layout.table for layout in _LAYOUTS.values()}
        for layout in _LAYOUTS.values():
            unknown |= found.get(layout.table, set()) - layout.columns.keys()
        if stored is None or stored > version or unknown:
            raise MetadataTooNew(
                f"{path} was written by a newer Tidelog: its schema version is {stored}, this one supports {version}"
                + (f" and does not know {', '.join(sorted(unknown))}" if unknown else "")
                + "; use the newer Tidelog, or restore the backup from before the upgrade"
            )
        if stored == version:
            return
    else:
        run(f"CREATE TABLE {_SCHEMA} (version INTEGER PRIMARY KEY) WITHOUT ROWID")
    for row, layout in _LAYOUTS.items():
        if layout.table not in found:
            run(layout.create())
            continue
        for field in fields(row):
            if field.name not in found[layout.table]:
                declaration = f"{layout.columns[field.name]} DEFAULT {_literal(field)}"
                run(f'ALTER TABLE "{layout.table}" ADD COLUMN "{field.name}" {declaration}')
    run(f"INSERT INTO {_SCHEMA} VALUES (?)", (version,))  # noqa: S608


def _literal(field: "Field[Any]") -> str:
    value = field.default
    if value is MISSING:
        raise TypeError(f"the new field {field.name!r} has no default for existing rows")
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return str(int(value)) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
