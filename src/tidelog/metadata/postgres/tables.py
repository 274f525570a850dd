"""The tables of rows in PostgreSQL, derived from the dataclasses in `rows.py`, and our own tables beside them.

- A row of a group or a transactional id has one more column, `shard`, the first of its primary key: so the rows of a
  shard are next to each other, and no second index is needed.
- PostgreSQL's text cannot hold the character 0, which Kafka's strings can: it is stored as \\x01 0, and \\x01 itself
  as \\x01 1.
- Fields are only ever added, so the number of columns is the version of the tables, as in the SQLite engine.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cached_property
from operator import attrgetter
from types import NoneType
from typing import Any, get_args, get_type_hints

from tidelog.errors import InvalidInput
from tidelog.metadata.rows import SHARED, TABLES, Row
from tidelog.metadata.store import Key, Shards
from tidelog.model import shard_of
from tidelog.postgres import Component, Connection

_TYPES = {str: "text", int: "bigint", bytes: "bytea", bool: "boolean"}
_PYTHON_TYPES = {name: kind for kind, name in _TYPES.items()}
_INT64 = (-(1 << 63), (1 << 63) - 1)
_SHARDED_BY = frozenset({"group", "transactional_id", "scope"})  # first key fields
_SHARD = "shard"
_ESCAPE, _ZERO = "\x01", "\x00"
# leases: the owner of each scope. The store checks the epoch; the broker's id belongs to the registry.
# feed: the changes of shared tables. `before` counts all changes of earlier versions.
_OWN_TABLES = """
CREATE TABLE IF NOT EXISTS leases (
    scope text COLLATE "C" PRIMARY KEY, broker_id integer NOT NULL DEFAULT -1, epoch bigint NOT NULL);
CREATE TABLE IF NOT EXISTS reserved (name text COLLATE "C" PRIMARY KEY, next bigint NOT NULL);
CREATE TABLE IF NOT EXISTS feed (version bigint PRIMARY KEY, before bigint NOT NULL, changes text NOT NULL);
CREATE TABLE IF NOT EXISTS feed_head (
    is_head boolean PRIMARY KEY DEFAULT true CHECK (is_head), version bigint NOT NULL, changes bigint NOT NULL);
INSERT INTO feed_head (version, changes) VALUES (0, 0) ON CONFLICT DO NOTHING;
"""


@dataclass(frozen=True, eq=False)  # compared by identity: there is one for each table
class Layout:
    """How the rows of one table are stored."""

    row: type[Row]
    table: str
    types: dict[str, str]  # column -> SQL type, without `shard`
    nullable: frozenset[str]
    is_sharded: bool

    @property
    def key(self) -> tuple[str, ...]:
        return self.row.KEY

    @cached_property
    def stored_key(self) -> tuple[str, ...]:
        return (_SHARD, *self.key) if self.is_sharded else self.key

    @cached_property
    def key_of(self) -> Callable[[Row], Key]:
        if len(self.key) > 1:
            return attrgetter(*self.key)
        (name,) = self.key
        return lambda row: (getattr(row, name),)

    @cached_property
    def _values(self) -> Callable[[Row], tuple[Any, ...]]:
        return attrgetter(*self.types)

    def columns_of(self, rows: Sequence[Row]) -> list[Sequence[Any]]:
        """The stored values, column by column, as arrays for `unnest`."""
        columns = list(zip(*map(self._values, rows), strict=True))
        return self._stored(columns, tuple(self.types), columns[0])

    def keys_as_columns(self, keys: Sequence[Key], length: int) -> list[Sequence[Any]]:
        columns = list(zip(*keys, strict=True))
        return self._stored(columns, self.key[:length], columns[0])

    def _stored(
        self, columns: Iterable[Sequence[Any]], names: Sequence[str], first: Sequence[Any]
    ) -> list[Sequence[Any]]:
        stored = [
            to_text(column) if self.types[name] == "text" else column
            for name, column in zip(names, columns, strict=True)
        ]
        if self.is_sharded:
            stored.insert(0, _shards(first))
        return stored

    def rows_from(self, records: Iterable[Iterable[Any]]) -> list[Row]:
        texts = self._texts
        rows = []
        for record in records:
            values = list(record)
            for number in texts:
                value = values[number]
                if value is not None and _ESCAPE in value:
                    values[number] = _unescaped(value)
            rows.append(self.row(*values))
        return rows

    @cached_property
    def _texts(self) -> tuple[int, ...]:
        return tuple(number for number, type_ in enumerate(self.types.values()) if type_ == "text")

    # SQL. All names are ours.

    @cached_property
    def array_types(self) -> tuple[str, ...]:
        """Of `columns_of`."""
        return (*(["smallint"] if self.is_sharded else []), *self.types.values())

    def key_array_types(self, length: int) -> tuple[str, ...]:
        names = self.key[:length]
        return (*(["smallint"] if self.is_sharded else []), *(self.types[name] for name in names))

    def stored_key_names(self, length: int) -> tuple[str, ...]:
        """The first key fields, and the shard if it follows from them."""
        return (*([_SHARD] if self.is_sharded and length else []), *self.key[:length])

    @cached_property
    def all_columns(self) -> tuple[str, ...]:
        return (*([_SHARD] if self.is_sharded else []), *self.types)

    @cached_property
    def select(self) -> str:
        return f'SELECT {quoted(self.types)} FROM "{self.table}"'  # noqa: S608

    def selecting(self, scope: Key | Shards) -> tuple[str, list[Any]]:
        if isinstance(scope, Shards):
            if not self.is_sharded:
                raise InvalidInput(f"the table {self.table} has no shards")
            return f"{self.select} WHERE {_SHARD} = ANY($1::smallint[])", [sorted(scope.numbers)]
        self.check_key(scope)
        if not scope:
            return self.select, []
        names = self.stored_key_names(len(scope))
        where = " AND ".join(f'"{name}" = ${number}' for number, name in enumerate(names, 1))
        return f"{self.select} WHERE {where}", [column[0] for column in self.keys_as_columns([scope], len(scope))]

    def check_key(self, key: Key) -> None:
        if len(key) > len(self.key):
            raise InvalidInput(f"{self.table} has {len(self.key)} key fields, not {len(key)}")

    def check_row(self, row: Row) -> None:
        """InvalidInput if PostgreSQL would refuse the row."""
        for name, type_ in self.types.items():
            value = getattr(row, name)
            if value is None and name in self.nullable:
                continue
            if not isinstance(value, _PYTHON_TYPES[type_]) or (
                isinstance(value, int) and not _INT64[0] <= value <= _INT64[1]
            ):
                raise InvalidInput(f"a row cannot be stored: the value of {name} does not fit")
            if isinstance(value, str):
                try:
                    value.encode()
                except UnicodeEncodeError as error:
                    raise InvalidInput(f"a row cannot be stored: {error}") from error

    def declaration(self, name: str) -> str:
        collation = ' COLLATE "C"' if self.types[name] == "text" and name in self.key else ""
        return f'"{name}" {self.types[name]}{collation}' + ("" if name in self.nullable else " NOT NULL")

    def create(self) -> str:
        columns = [*([f"{_SHARD} smallint NOT NULL"] if self.is_sharded else []), *map(self.declaration, self.types)]
        # Rows are replaced often: room for their new versions in the same page spares the index.
        return (
            f'CREATE TABLE "{self.table}" ({", ".join(columns)}, PRIMARY KEY ({quoted(self.stored_key)}))'
            " WITH (fillfactor = 70)"
        )


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _layout(row: type[Row]) -> Layout:
    hints = get_type_hints(row)
    kinds = {field.name: get_args(hints[field.name]) or (hints[field.name],) for field in fields(row)}
    return Layout(
        row=row,
        table=_table_name(row),
        types={name: _TYPES[next(kind for kind in some if kind is not NoneType)] for name, some in kinds.items()},
        nullable=frozenset(name for name, some in kinds.items() if NoneType in some),
        is_sharded=row.KEY[0] in _SHARDED_BY,
    )


def _table_name(row: type[Row]) -> str:
    """GroupMemberRow -> group_member"""
    name = row.__name__.removesuffix("Row")
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


LAYOUTS: dict[type[Row], Layout] = {row: _layout(row) for row in TABLES}
SHARED_TABLES = {layout.table: layout for row, layout in LAYOUTS.items() if row in SHARED}


# Values


def to_text(values: Sequence[str | None]) -> Sequence[str | None]:
    for value in values:
        if isinstance(value, str) and (_ZERO in value or _ESCAPE in value):
            break
    else:
        return values
    return [_escaped(value) if isinstance(value, str) else value for value in values]


def _escaped(value: str) -> str:
    return value.replace(_ESCAPE, _ESCAPE + "1").replace(_ZERO, _ESCAPE + "0")


def _unescaped(value: str) -> str:
    return value.replace(_ESCAPE + "0", _ZERO).replace(_ESCAPE + "1", _ESCAPE)


def _shards(ids: Sequence[Any]) -> list[int]:
    try:
        return [shard_of(id_) for id_ in ids]
    except (AttributeError, UnicodeEncodeError) as error:
        raise InvalidInput(f"a row cannot be stored: {error}") from error


# Versions


async def _upgrade(connection: Connection, _stored: int) -> None:
    found: dict[str, set[str]] = {}
    columns = await connection.fetch(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
    )
    for table, column in columns:
        found.setdefault(table, set()).add(column)
    for row, layout in LAYOUTS.items():
        if layout.table not in found:
            await connection.execute(layout.create())
            continue
        for field in fields(row):
            if field.name not in found[layout.table]:
                column = f"{layout.declaration(field.name)} DEFAULT {_literal(field)}"
                await connection.execute(f'ALTER TABLE "{layout.table}" ADD COLUMN {column}')
    await connection.execute(_OWN_TABLES)


def _literal(field: "Field[Any]") -> str:
    value = field.default
    if value is MISSING:
        raise TypeError(f"the new field {field.name!r} has no default for existing rows")
    if value is None or isinstance(value, bool):
        return str(value).upper() if value is not None else "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


METADATA = Component("metadata", sum(len(layout.types) for layout in LAYOUTS.values()), _upgrade)
