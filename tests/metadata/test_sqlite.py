"""What is SQLite's own: commits that are shared, the file, its faults and its versions. What every engine promises is
in `test_store.py`."""

import asyncio
import random
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tidelog.errors import (
    Conflict,
    DirectoryInUse,
    Fenced,
    InvalidInput,
    MetadataDamaged,
    MetadataTooNew,
    StorageError,
    StorageFull,
    StorageUnavailable,
    TidelogError,
)
from tidelog.metadata.rows import TABLES, ClusterRow, GroupMemberRow, GroupRow, OffsetRow, Row, TopicRow
from tidelog.metadata.sqlite import SqliteStore, file, tables
from tidelog.metadata.sqlite import store as store_module
from tidelog.metadata.store import Change, Delete, Fence, Insert, Put

OFFSET = OffsetRow("group", "topic", 0, 5, 1, "note", 1_700_000_000_000)
GROUP = GroupRow("group", "classic", "consumer", "range", 3, "m-1", "Stable", 0, 7, '{"a": 1}')


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "metadata.sqlite")


@asynccontextmanager
async def opened(path: str, max_bytes: int | None = None) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, max_bytes=max_bytes)
    try:
        yield store
    finally:
        await store.close()


def in_store(path: str, play: Callable[[SqliteStore], Awaitable[Any]], max_bytes: int | None = None) -> Any:
    async def run() -> Any:
        async with opened(path, max_bytes) as store:
            return await play(store)

    return asyncio.run(run())


def after(path: str, changes: list[Change], table: type[Row]) -> list[Row]:
    """What a table has after some changes and a reopening."""
    in_store(path, lambda store: store.write(changes))
    rows: list[Row] = in_store(path, lambda store: store.load(table))
    return rows


def cluster(name: str, value: str = "") -> Put:
    return Put(ClusterRow(name, value))


@asynccontextmanager
async def all_at_once(store: SqliteStore) -> AsyncIterator[None]:
    """Whatever is asked for in here waits until the end, behind a write of nothing that holds up the store's thread,
    and is then there together. The write of nothing is a commit of its own."""
    held, go = threading.Event(), threading.Event()

    def nothing() -> Iterator[Change]:
        held.set()
        go.wait(10)
        yield from ()

    first = asyncio.ensure_future(store.write(nothing()))  # type: ignore[arg-type]
    await asyncio.to_thread(held.wait)
    yield
    go.set()
    await first


# Rows


def test_a_row_type_may_have_flags_and_any_default(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, slots=True)
    class FlagRow:
        KEY: ClassVar[tuple[str, ...]] = ("name",)

        name: str
        on: bool
        maybe: bool | None = None
        text: str = "it's"
        data: bytes = b"\x00'"
        number: int = -1
        sure: bool = True

    def layouts(*columns: str) -> dict[Any, Any]:
        layout = tables._layout(FlagRow)  # type: ignore[arg-type]
        return {FlagRow: replace(layout, columns={name: layout.columns[name] for name in columns})}

    monkeypatch.setattr(tables, "_LAYOUTS", layouts("name", "on"))
    in_store(path, lambda _: asyncio.sleep(0))
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO flag VALUES ('old', 0)")
    connection.close()
    monkeypatch.setattr(tables, "_LAYOUTS", layouts("name", "on", "maybe", "text", "data", "number", "sure"))
    new: Any = FlagRow("new", True, False, "", b"", 0, False)
    rows = after(path, [Put(new)], FlagRow)  # type: ignore[arg-type]
    assert rows == [new, FlagRow("old", False)]
    assert rows[0].maybe is False  # type: ignore[union-attr]
    assert rows[1].sure is True  # type: ignore[union-attr]


# Writes at the same time


def test_writes_that_wait_together_share_a_commit_and_an_answer(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(store: SqliteStore) -> None:
        loop = asyncio.get_running_loop()
        answers = 0
        original = loop.call_soon_threadsafe

        def counting(*arguments: Any) -> asyncio.Handle:
            nonlocal answers
            answers += 1
            return original(*arguments)

        async with all_at_once(store):
            before = store.commits
            writes = [asyncio.ensure_future(store.write([cluster(str(number))])) for number in range(100)]
            await asyncio.sleep(0)
            monkeypatch.setattr(loop, "call_soon_threadsafe", counting)
        await asyncio.gather(*writes)
        monkeypatch.undo()
        assert (store.commits - before, answers) == (1 + 1, 1 + 1)
        assert len(await store.load(ClusterRow)) == 100

    in_store(path, play)


def test_of_writes_in_one_commit_a_bad_one_fails_alone_and_whole(path: str) -> None:
    bad: dict[str, list[Change]] = {
        "a number beyond 64 bits": [cluster("x"), Put(replace(OFFSET, offset=2**63))],
        "no text": [cluster("x"), cluster("\udcff")],
        "a null": [cluster("x"), Put(ClusterRow("y", None))],  # type: ignore[arg-type]
        "too long a key": [cluster("x"), Delete(ClusterRow, ("a", "b"))],
    }

    async def play(store: SqliteStore) -> None:
        async with all_at_once(store):
            before = store.commits
            writes = [
                store.write([cluster("first")]),
                *map(store.write, bad.values()),
                store.write([cluster("last")]),
            ]
            answers = asyncio.gather(*writes, return_exceptions=True)
            await asyncio.sleep(0)
        first, *middle, last = await answers
        assert (first, last) == (None, None)
        for what, error in zip(bad, middle, strict=True):
            assert type(error) is InvalidInput, what
        assert store.commits - before == 1 + 2
        assert {row.name for row in await store.load(ClusterRow)} == {"first", "last"}

    in_store(path, play)


# Closing


def test_a_closed_store_is_one_file_and_all_its_commits_reached_the_disk(path: str, tmp_path: Path) -> None:
    async def play(store: SqliteStore) -> list[Any]:
        await store.write([cluster("a")])
        run = store._connection.execute
        return await asyncio.to_thread(lambda: [run(f"PRAGMA {name}").fetchone()[0] for name in pragmas])

    pragmas = ["journal_mode", "synchronous"]
    with pytest.MonkeyPatch.context() as patch:  # the test looks from another thread
        connect: Any = sqlite3.connect
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, check_same_thread=False))
        assert in_store(path, play) == ["wal", 2]
    assert [entry.name for entry in tmp_path.iterdir()] == ["metadata.sqlite"]


# Faults


def test_on_a_full_disk_writes_fail_and_what_was_acknowledged_stays(path: str) -> None:
    async def play(store: SqliteStore) -> None:
        acknowledged: list[str] = []

        async def fill() -> None:
            for number in range(1000):
                await store.write([cluster(str(number), "x" * 1000)])
                acknowledged.append(str(number))

        with pytest.raises(StorageFull, match=r"metadata\.sqlite: the disk is full .* free some space"):
            await fill()
        assert len(acknowledged) > 20
        assert {row.name for row in await store.load(ClusterRow)} == set(acknowledged)
        await store.write([Delete(ClusterRow, ())])
        await store.write([cluster("room again", "x" * 1000)])
        assert [row.name for row in await store.load(ClusterRow)] == ["room again"]

    in_store(path, play, max_bytes=200_000)


def test_a_write_too_large_for_the_disk_fails_alone(path: str) -> None:
    async def play(store: SqliteStore) -> None:
        async with all_at_once(store):
            large = store.write([cluster(f"large {number}", "x" * 1000) for number in range(500)])
            answers = asyncio.gather(
                store.write([cluster("a")]), large, store.write([cluster("b")]), return_exceptions=True
            )
            await asyncio.sleep(0)
        first, full, last = await answers
        assert isinstance(full, StorageFull)
        assert (first, last) == (None, None)
        assert [row.name for row in await store.load(ClusterRow)] == ["a", "b"]

    in_store(path, play, max_bytes=200_000)


def test_if_a_commit_fails_as_a_whole_each_write_is_tried_alone(path: str) -> None:
    """As when the disk fills up between the statement and the commit."""

    class Fails:
        def __init__(self, connection: sqlite3.Connection) -> None:
            self.connection = connection
            self.left = 2  # the commit of all together, and of the first alone

        def executemany(self, sql: str, parameters: Any) -> Any:
            if self.left:
                self.left -= 1
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            return self.connection.executemany(sql, parameters)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.connection, name)

    async def play(store: SqliteStore) -> None:
        async with all_at_once(store):
            store._connection = Fails(store._connection)  # type: ignore[assignment]
            answers = asyncio.gather(*(store.write([cluster(name)]) for name in "abc"), return_exceptions=True)
            await asyncio.sleep(0)
        first, *others = await answers
        assert isinstance(first, StorageFull)
        assert others == [None, None]
        assert [row.name for row in await store.load(ClusterRow)] == ["b", "c"]

    in_store(path, play)


def test_a_read_only_file_is_said_to_be_one(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = file.connect

    def read_only(path: str, max_bytes: int | None, shown_as: str) -> sqlite3.Connection:
        connection = connect(path, max_bytes, shown_as)
        connection.execute("PRAGMA query_only=ON")
        return connection

    monkeypatch.setattr(store_module, "connect", read_only)
    with pytest.raises(StorageUnavailable, match=r"metadata\.sqlite: it is read-only .* check the permissions"):
        in_store(path, lambda store: store.write([cluster("a")]))


@pytest.mark.parametrize("where", ["missing/metadata.sqlite", "."])
def test_a_file_that_cannot_be_opened_is_named(where: str, tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match=r"cannot be opened .* check that its directory exists"):
        in_store(str(tmp_path / where), lambda _: asyncio.sleep(0))


def test_a_file_that_another_process_uses_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_LOCK_TIMEOUT_S", 0.05)
    in_store(path, lambda store: store.write([cluster("a")]))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO cluster VALUES ('b', '')")
    with pytest.raises(DirectoryInUse, match=r"another process uses it .* stop that process"):
        in_store(path, lambda _: asyncio.sleep(0))
    other.execute("COMMIT")
    other.close()
    assert len(in_store(path, lambda store: store.load(ClusterRow))) == 2


def test_a_store_that_is_open_cannot_be_opened_again(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_LOCK_TIMEOUT_S", 0.05)

    async def play(store: SqliteStore) -> None:
        with pytest.raises(DirectoryInUse):
            await SqliteStore.open(path)
        await store.write([cluster("still works")])

    in_store(path, play)


def test_a_file_that_is_no_database_is_damaged(path: str) -> None:
    Path(path).write_bytes(b"this is not what was written here. " * 300)
    with pytest.raises(MetadataDamaged, match=r"metadata\.sqlite: the file is damaged .* backup.*\.recover"):
        in_store(path, lambda _: asyncio.sleep(0))


def test_somebody_elses_database_is_left_alone(path: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE guests (name TEXT)")
    connection.close()
    with pytest.raises(StorageUnavailable, match="not a database of Tidelog"):
        in_store(path, lambda _: asyncio.sleep(0))


def test_a_file_cut_short_is_damaged(path: str) -> None:
    in_store(path, lambda store: store.write([cluster(str(number), "x" * 500) for number in range(500)]))
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MetadataDamaged):
        in_store(path, lambda store: store.load(ClusterRow))


def test_whatever_is_damaged_the_answer_is_rows_or_a_storage_error(path: str) -> None:
    rng = random.Random(5)
    in_store(path, lambda store: store.write([cluster(f"name {number}", "ü" * 200) for number in range(60)]))
    whole = Path(path).read_bytes()

    async def read_all(store: SqliteStore) -> None:
        for table in TABLES:
            await store.load(table)
        await store.write([cluster("name 7", "new")])

    errors: list[TidelogError] = []
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 20, 400])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        Path(path).write_bytes(data)
        try:
            in_store(path, read_all)
        except TidelogError as error:
            errors.append(error)
    assert len(errors) > 5
    assert all(isinstance(error, StorageError) and "metadata.sqlite" in str(error) for error in errors)


# What is kept beside rows


def test_a_fence_costs_nothing_where_none_is_given_and_one_question_for_all_who_share_it(path: str) -> None:
    asked: list[str] = []

    async def play(store: SqliteStore) -> None:
        mine, other = await store.acquire("mine"), await store.acquire("other")
        store._connection.set_trace_callback(asked.append)
        async with all_at_once(store):
            writes = [store.write([cluster(str(number))], mine) for number in range(10)]
            writes += [store.write([cluster("o")], other)]
        for write in writes:
            await write
        assert [sql.split()[0] for sql in asked].count("SELECT") == 2
        asked.clear()
        await store.write([cluster("a"), cluster("b")])
        assert [sql.split()[0] for sql in asked] == ["INSERT"]

    with pytest.MonkeyPatch.context() as patch:  # the test looks from another thread
        connect: Any = sqlite3.connect
        patch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, check_same_thread=False))
        in_store(path, play)


def test_producer_ids_of_earlier_versions_are_not_given_out_again(path: str) -> None:
    in_store(path, lambda store: store.write([cluster("next.producer.id", "3000")]))
    assert in_store(path, lambda store: store.reserve("next.producer.id", 1000)) == 3000
    assert in_store(path, lambda store: store.load(ClusterRow)) == [ClusterRow("next.producer.id", "4000")]


def test_the_version_of_the_feed_is_written_with_the_changes_it_counts(path: str) -> None:
    topic = TopicRow("topic", bytes(16), 1, 0)

    def user_version() -> int:
        with sqlite3.connect(path) as connection:
            (stored,) = connection.execute("PRAGMA user_version").fetchone()
        connection.close()
        return int(stored)

    in_store(path, lambda store: store.write([Put(topic)]))
    assert user_version() == 1
    with pytest.raises(Conflict):
        in_store(path, lambda store: store.write([Put(topic), Insert(replace(topic, partitions=2))]))
    with pytest.raises(Fenced):
        in_store(path, lambda store: store.write([Put(topic)], Fence("scope", 7)))
    in_store(path, lambda store: store.write([Put(OFFSET)]))
    assert user_version() == 1
    in_store(path, lambda store: store.write([Put(topic)]))
    assert user_version() == 2


# The schema


def version(path: str) -> int:
    with sqlite3.connect(path) as connection:
        (stored,) = connection.execute("SELECT max(version) FROM tidelog_schema").fetchone()
    connection.close()
    return int(stored)


def change_file(path: str, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_an_older_file_gets_the_new_tables_and_columns(path: str) -> None:
    in_store(path, lambda store: store.write([Put(OFFSET), Put(GROUP), cluster("a")]))
    current = version(path)
    change_file(
        path,
        'ALTER TABLE "offset" DROP COLUMN expires_ms',
        'ALTER TABLE "group" DROP COLUMN details',
        'ALTER TABLE "group" DROP COLUMN assignment_epoch',
        "DROP TABLE group_member",
        "DELETE FROM tidelog_schema",
        f"INSERT INTO tidelog_schema VALUES ({current - 14})",
    )
    member = GroupMemberRow("group", "m-1", None, "", "", 0, 0, 0, b"", b"")

    async def play(store: SqliteStore) -> None:
        assert await store.load(OffsetRow) == [OFFSET]
        assert await store.load(GroupRow) == [replace(GROUP, assignment_epoch=-1, details="{}")]
        assert await store.load(ClusterRow) == [ClusterRow("a", "")]
        await store.write([Put(member), Put(GROUP)])

    in_store(path, play)
    assert version(path) == current
    assert in_store(path, lambda store: store.load(GroupMemberRow)) == [member]
    assert in_store(path, lambda store: store.load(GroupRow)) == [GROUP]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO tidelog_schema SELECT max(version) + 1 FROM tidelog_schema",
        "ALTER TABLE cluster ADD COLUMN future TEXT",
        "CREATE TABLE future (name TEXT)",
    ],
)
def test_a_newer_file_is_refused_and_left_as_it_is(statement: str, path: str) -> None:
    in_store(path, lambda store: store.write([cluster("a")]))
    change_file(path, statement)
    before = Path(path).read_bytes()
    with pytest.raises(MetadataTooNew, match=r"newer Tidelog.*use the newer Tidelog, or restore the backup"):
        in_store(path, lambda store: store.write([cluster("b")]))
    assert Path(path).read_bytes() == before


def test_a_new_field_without_a_default_is_a_mistake_that_is_told() -> None:
    from dataclasses import fields

    with pytest.raises(TypeError, match="'name' has no default"):
        tables._literal(fields(ClusterRow)[0])
