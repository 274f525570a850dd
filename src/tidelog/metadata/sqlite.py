"""`SqliteStore`: the metadata of a single node in one SQLite file. docs/formats/metadata.md describes the file.

One thread owns the connection. Callers put what they want into a queue and await; the thread takes everything that
waits, writes it in one transaction (if that fails, in one for each caller), and answers all of them with one call
into the event loop. A commit is on the disk when it returns (WAL, synchronous=FULL).

Tables come from the row dataclasses: what `rows.py` says is what is stored. Fields are only ever added, so the number
of columns is the version of the schema: an older file gets the missing columns, a newer one is refused.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from itertools import chain, starmap
from operator import attrgetter
from queue import Empty, SimpleQueue
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args, get_type_hints

from tidelog.errors import DirectoryInUse, InvalidInput, StorageError, StorageFull, StorageUnavailable, TidelogError
from tidelog.metadata.rows import TABLES, Row
from tidelog.metadata.store import Change, Delete, R
from tidelog.promise import Promise

if TYPE_CHECKING:  # it takes some milliseconds, which the thread spends while the rest of the broker starts
    import sqlite3

METADATA_FILE = "metadata.sqlite"  # in the data directory
_MOST_CALLERS_PER_COMMIT = 1024
_MOST_ROWS_PER_STATEMENT = 16  # SQLite keeps a compiled one for each number of them
_LOCK_TIMEOUT_S = 1.0
_PAGE_BYTES = 4096
_WAL_KEPT_BYTES = 16 << 20
_SCHEMA = "tidelog_schema"


class MetadataDamaged(StorageError):
    """The file is not what was written. Nothing of it is used."""

    retriable = False


class MetadataTooNew(StorageUnavailable):
    """The file was written by a newer Tidelog."""

    retriable = False


class _Write(NamedTuple):
    changes: Sequence[Change]
    answer: Promise[Any]


class _Load(NamedTuple):
    table: type[Any]  # one of TABLES
    answer: Promise[Any]


class _Close(NamedTuple):
    answer: Promise[Any]


_Request: TypeAlias = _Write | _Load | _Close
_Outcome: TypeAlias = tuple[Promise[Any], Any, Exception | None]  # whose, result, error


class SqliteStore:
    """Belongs to the event loop that opened it."""

    def __init__(self, path: str, max_bytes: int | None, shown_as: str | None = None) -> None:
        self._file = path
        self.path = shown_as or path  # as errors call it
        self.commits = 0  # transactions that reached the disk
        self._max_bytes = max_bytes
        self._loop = asyncio.get_running_loop()
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._closing: asyncio.Future[None] | None = None
        self._opened: Promise[None] = Promise()
        self._connection: sqlite3.Connection
        self._thread = threading.Thread(target=self._run, name="metadata", daemon=True)

    @classmethod
    async def open(cls, path: str, *, max_bytes: int | None = None, shown_as: str | None = None) -> "SqliteStore":
        """The store in this file, created if it is missing; its directory must exist. A write that would make the
        file larger than `max_bytes` fails as on a full disk. Errors speak of `shown_as`, where the file is a copy."""
        store = cls(path, max_bytes, shown_as)
        store._thread.start()
        await store._opened
        return store

    def load(self, table: type[R]) -> Promise[list[R]]:
        answer: Promise[list[R]] = Promise()
        self._ask(_Load(table, answer))
        return answer

    def write(self, changes: Sequence[Change]) -> Promise[None]:
        answer: Promise[None] = Promise()
        self._ask(_Write(changes, answer))
        return answer

    async def close(self) -> None:
        if self._closing is None:
            answer: Promise[None] = Promise()
            self._requests.put(_Close(answer))
            self._closing = asyncio.ensure_future(answer)
        await asyncio.shield(self._closing)
        self._thread.join()

    def _ask(self, request: _Write | _Load) -> None:
        if self._closing is None:
            self._requests.put(request)
        else:
            request.answer.fail(StorageUnavailable(f"the metadata store {self.path} is closed"))

    # What follows runs in the store's thread.

    def _run(self) -> None:
        try:
            self._connection = _connect(self._file, self._max_bytes, self.path)
        except Exception as error:
            self._settle([(self._opened, None, _explained(error, self.path, "open"))])
            return
        self._settle([(self._opened, None, None)])
        going_on = True
        while going_on:
            going_on = self._serve(self._take())

    def _take(self) -> list[_Request]:
        """Everything that waits, in order; at least one request."""
        requests = [self._requests.get()]
        try:
            while len(requests) < _MOST_CALLERS_PER_COMMIT:
                requests.append(self._requests.get_nowait())
        except Empty:
            pass
        return requests

    def _serve(self, requests: list[_Request]) -> bool:
        """False when that was the last."""
        outcomes: list[_Outcome] = []
        writes: list[_Write] = []
        for request in requests:
            if isinstance(request, _Write):
                writes.append(request)
                continue
            outcomes += self._commit(writes)  # a load sees what was written before it, once that is durable
            writes = []
            if isinstance(request, _Load):
                outcomes.append(self._rows(request))
            else:
                outcomes.append(self._close(request))
        outcomes += self._commit(writes)
        self._settle(outcomes)
        return not any(isinstance(request, _Close) for request in requests)

    def _commit(self, writes: list[_Write]) -> list[_Outcome]:
        """All writes in one transaction. If that is not to be had (the disk is full, or one of them is wrong) each in
        one of its own, so that nobody fails for what another wanted."""
        if not writes:
            return []
        run = self._connection.execute
        try:
            statements = _statements(change for write in writes for change in write.changes)
            if len(statements) == 1:
                ((sql, values),) = statements  # a transaction by itself
                self._connection.executemany(sql, (values,))  # which does not stop to ask for a row id
            elif statements:
                run("BEGIN IMMEDIATE")
                for statement in statements:
                    run(*statement)
                run("COMMIT")
        except Exception as error:
            self._roll_back()
            if len(writes) == 1:
                return [(writes[0].answer, None, _explained(error, self.path, "write"))]
            return [outcome for write in writes for outcome in self._commit([write])]
        self.commits += 1
        return [(write.answer, None, None) for write in writes]

    def _roll_back(self) -> None:
        import sqlite3

        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # the reason is on its way to the caller; the next BEGIN tells if it lasts

    def _rows(self, load: _Load) -> _Outcome:
        try:
            layout = _LAYOUTS[load.table]
            return load.answer, layout.decode(self._connection.execute(layout.select)), None
        except Exception as error:
            return load.answer, None, _explained(error, self.path, "read")

    def _close(self, request: _Close) -> _Outcome:
        try:
            self._connection.close()
        except Exception as error:
            return request.answer, None, _explained(error, self.path, "close")
        return request.answer, None, None

    def _settle(self, outcomes: list[_Outcome]) -> None:
        try:
            self._loop.call_soon_threadsafe(_answer, outcomes)
        except RuntimeError:
            pass  # the loop is closed, so nobody waits


def _answer(outcomes: list[_Outcome]) -> None:
    for promise, result, error in outcomes:
        if error is None:
            promise.settle(result)
        else:
            promise.fail(error)


# How a row is laid out in its table


_COLUMN_TYPES = {str: "TEXT", int: "INTEGER", bytes: "BLOB", bool: "INTEGER"}


@dataclass(frozen=True)
class _Layout:
    """The SQL of one table."""

    table: str
    columns: dict[str, str]  # name -> declaration
    key: tuple[str, ...]
    select: str
    put: tuple[str, ...]  # by the number of rows
    delete: tuple[str, ...]  # by the number of key fields given
    values: Callable[[Row], tuple[Any, ...]]
    decode: Callable[[Iterable[tuple[Any, ...]]], list[Row]]

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
        select=f'SELECT {names} FROM "{table}"',  # noqa: S608 (all names are ours)
        put=tuple(f"{insert} {', '.join([row_of] * rows)}" for rows in range(_MOST_ROWS_PER_STATEMENT + 1)),
        delete=tuple(f'DELETE FROM "{table}"{condition}' for condition in where),  # noqa: S608
        values=attrgetter(*columns),
        decode=_decoder(row, hints),
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
    """Of a type, or of a union of one and None."""
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


_Statement: TypeAlias = tuple[str, Sequence[Any]]


def _statements(changes: Iterable[Change]) -> list[_Statement]:
    """In their order. Neighbours that go into the same table share a statement: each one takes the thread that runs
    Python away from the event loop and hands it back."""
    statements: list[_Statement] = []
    layout: _Layout | None = None
    rows: list[tuple[Any, ...]] = []

    def put() -> None:
        if layout is not None and rows:
            statements.append((layout.put[len(rows)], list(chain.from_iterable(rows))))
            rows.clear()

    for change in changes:
        if isinstance(change, Delete):
            put()
            statements.append(_delete(change))
            continue
        of_row = _LAYOUTS[type(change.row)]
        if of_row is not layout or len(rows) == _MOST_ROWS_PER_STATEMENT:
            put()
            layout = of_row
        rows.append(of_row.values(change.row))
    put()
    return statements


def _delete(change: Delete) -> _Statement:
    layout = _LAYOUTS[change.table]
    if len(change.key) >= len(layout.delete):
        raise InvalidInput(f"{change.table.__name__} has {len(layout.key)} key fields, not {len(change.key)}")
    return layout.delete[len(change.key)], change.key


_LAYOUTS: dict[type[Row], _Layout] = {row: _layout(row) for row in TABLES}


# Opening


def _connect(path: str, max_bytes: int | None, shown_as: str) -> "sqlite3.Connection":
    import sqlite3

    new = not os.path.exists(path)
    connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
    try:
        run = connection.execute
        run("PRAGMA locking_mode=EXCLUSIVE")  # before anything else: then WAL needs no shared memory
        run(f"PRAGMA page_size={_PAGE_BYTES}")
        (mode,) = run("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise StorageUnavailable(f"cannot write ahead in {shown_as}: the file system allows only {mode!r}")
        run("PRAGMA synchronous=FULL")
        run(f"PRAGMA journal_size_limit={_WAL_KEPT_BYTES}")
        if max_bytes is not None:
            run(f"PRAGMA max_page_count={max(1, max_bytes // _PAGE_BYTES)}")
        run("BEGIN IMMEDIATE")  # also takes the lock, so that a second process fails here
        _migrate(connection, shown_as)
        run("COMMIT")
    except BaseException:
        connection.close()
        raise
    if new:
        _sync_directory(os.path.dirname(os.path.abspath(path)))
    return connection


def _migrate(connection: "sqlite3.Connection", path: str) -> None:
    """Bring the file to the schema of this program, or refuse it."""
    run = connection.execute
    version = sum(len(layout.columns) for layout in _LAYOUTS.values())
    found: dict[str, set[str]] = {}
    for table, column in run("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"):
        found.setdefault(table, set()).add(column)
    if found and _SCHEMA not in found:
        raise StorageUnavailable(f"{path} is a database, but not Tidelog's; move it away, or use another directory")
    if found:
        (stored,) = run(f"SELECT max(version) FROM {_SCHEMA}").fetchone()  # noqa: S608
        unknown = found.keys() - {_SCHEMA} - {layout.table for layout in _LAYOUTS.values()}
        for layout in _LAYOUTS.values():
            unknown |= found.get(layout.table, set()) - layout.columns.keys()
        if stored is None or stored > version or unknown:
            raise MetadataTooNew(
                f"{path} was written by a newer Tidelog: its schema has version {stored}, this one knows {version}"
                + (f" and not {', '.join(sorted(unknown))}" if unknown else "")
                + "; use that Tidelog, or restore the backup from before the upgrade"
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
        raise TypeError(f"the new field {field.name!r} has no default for the rows that exist")
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return str(int(value)) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# What the operator reads: primary result code -> error, what happened, what to do

_FAULTS: dict[str, tuple[type[StorageError], str, str]] = {
    "SQLITE_FULL": (StorageFull, "the disk is full", "free some space; what was acknowledged is kept"),
    "SQLITE_READONLY": (StorageUnavailable, "it is read-only", "check the permissions and how the disk is mounted"),
    "SQLITE_CANTOPEN": (StorageUnavailable, "it cannot be opened", "check that its directory exists and is writable"),
    "SQLITE_PERM": (StorageUnavailable, "access is denied", "check the permissions"),
    "SQLITE_IOERR": (StorageError, "the disk reports an error", "check the disk; what was acknowledged is kept"),
    "SQLITE_BUSY": (DirectoryInUse, "another process uses it", "stop that process, or use another directory"),
    "SQLITE_LOCKED": (DirectoryInUse, "another process uses it", "stop that process, or use another directory"),
    "SQLITE_CORRUPT": (
        MetadataDamaged,
        "the file is damaged",
        "restore it from a backup, or salvage it with the .recover command of the sqlite3 shell; the logs are intact",
    ),
}
_FAULTS["SQLITE_NOTADB"] = _FAULTS["SQLITE_CORRUPT"]


def _explained(error: Exception, path: str, action: str) -> TidelogError:
    """The error in Tidelog's words; no caller learns what is behind the store."""
    import sqlite3

    if isinstance(error, TidelogError):
        return error
    if isinstance(error, OSError):
        return StorageError(f"cannot {action} the metadata in {path}: {error.strerror or error}")
    if isinstance(error, sqlite3.Error):
        code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == 0 and action == "read":  # text that is not UTF-8: the module, not the engine, noticed
            code = sqlite3.SQLITE_CORRUPT
        for name, (kind, what, advice) in _FAULTS.items():
            if code == getattr(sqlite3, name):
                return kind(f"cannot {action} the metadata in {path}: {what} ({error}); {advice}")
        if code not in (0, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG):
            return StorageError(f"cannot {action} the metadata in {path}: {error}")
    if action == "write":  # a number beyond 64 bits, text that is not Unicode, a null where none may be
        return InvalidInput(f"a row cannot be stored: {error}")
    return StorageError(f"cannot {action} the metadata in {path}: {error!r}")
