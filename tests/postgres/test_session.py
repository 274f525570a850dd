"""`Session` with a real server: order, errors, lost connections, unknown outcomes, and that what is unknown has no
effect after later work."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest
import structlog

from tests.support.postgres import PostgresServer, fresh_schema, server
from tests.support.postgres_proxy import Fate, LosingProxy
from tidelog.errors import (
    Conflict,
    InvalidInput,
    OutcomeUnknown,
    StorageUnavailable,
    StoreClosed,
    TidelogError,
)
from tidelog.postgres import Connection, PostgresSettings, Session, scripted

TABLE = scripted("test", ["CREATE TABLE t (a text PRIMARY KEY, b bigint NOT NULL)"])
LONG_S = 60.0


def settings(postgres: PostgresServer, **changes: object) -> PostgresSettings:
    given = PostgresSettings.parse(postgres.url(), schema=fresh_schema(), deadline_s=LONG_S, connect_timeout_s=LONG_S)
    return replace(given, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(given: PostgresSettings) -> AsyncIterator[Session]:
    session = await Session.open(given, [TABLE])
    try:
        yield session
    finally:
        await session.close()


def put(a: str, b: int = 0) -> Callable[[Connection], Awaitable[str]]:
    return lambda connection: connection.execute(
        "INSERT INTO t VALUES ($1, $2) ON CONFLICT (a) DO UPDATE SET b = excluded.b", a, b
    )


async def rows(connection: Connection) -> dict[str, int]:
    return {row["a"]: row["b"] for row in await connection.fetch("SELECT a, b FROM t")}


async def eventually_works(session: Session, work: Callable[[], Awaitable[object]]) -> None:
    """Until PostgreSQL is back."""
    async with asyncio.timeout(LONG_S):
        while True:
            try:
                await work()
            except (StorageUnavailable, OutcomeUnknown):
                await asyncio.sleep(0.02)
            else:
                return


def test_units_run_one_at_a_time_in_the_order_of_the_calls() -> None:
    async def play() -> None:
        async with opened(settings(server())) as session:
            begun: list[int] = []

            async def unit(number: int, connection: Connection) -> int:
                begun.append(number)
                await connection.execute("SELECT pg_sleep(0.001)")
                assert begun[-1] == number, "another one began meanwhile"
                return number

            kinds = (session.read, session.statement, session.transaction)
            calls = [kinds[number % 3](partial(unit, number)) for number in range(30)]
            assert await asyncio.gather(*calls) == begun == list(range(30))

    asyncio.run(play())


def test_a_transaction_that_raises_changes_nothing_and_says_why() -> None:
    async def play() -> None:
        async with opened(settings(server())) as session:

            async def unit(error: Exception, connection: Connection) -> None:
                await put("a")(connection)
                raise error

            for error in (Conflict("no"), ZeroDivisionError("a bug")):
                with pytest.raises(type(error)):
                    await session.transaction(partial(unit, error))
            assert await session.read(rows) == {}

    asyncio.run(play())


@pytest.mark.parametrize(
    ("sql", "arguments", "error"),
    [
        ("INSERT INTO t VALUES ($1, $2)", ("a", None), InvalidInput),
        ("INSERT INTO t VALUES ($1, $2)", ("a", 2**70), InvalidInput),
        ("INSERT INTO t VALUES ($1, $2)", ("\x00", 1), InvalidInput),
        ("INSERT INTO missing VALUES (1)", (), StorageUnavailable),
        ("this is no SQL", (), StorageUnavailable),
    ],
)
def test_a_statement_that_is_refused_has_changed_nothing(
    sql: str, arguments: tuple[object, ...], error: type[TidelogError]
) -> None:
    async def play() -> None:
        async with opened(settings(server())) as session:
            for kind in (session.statement, session.transaction):
                with pytest.raises(error) as refused:
                    await kind(lambda connection: connection.execute(sql, *arguments))
                assert not isinstance(refused.value, OutcomeUnknown)
            assert session.is_connected, "nothing is wrong with the connection"
            assert await session.read(rows) == {}

    asyncio.run(play())


def test_a_swallowed_error_does_not_pass_for_a_commit() -> None:
    async def play() -> None:
        async with opened(settings(server())) as session:

            async def unit(connection: Connection) -> None:
                await put("a")(connection)
                try:
                    await connection.execute("SELECT 1 / 0")
                except Exception:
                    pass

            with pytest.raises(StorageUnavailable, match="rolled back"):
                await session.transaction(unit)
            assert await session.read(rows) == {}

    asyncio.run(play())


def test_a_deadlock_is_resolved_by_doing_the_work_again() -> None:
    async def play() -> None:
        given = settings(server())
        async with opened(given) as one, opened(given) as other:
            await one.statement(put("a"))
            await one.statement(put("b"))
            met = asyncio.Barrier(2)
            calls = 0

            async def unit(connection: Connection, first: str, second: str) -> None:
                nonlocal calls
                calls += 1
                await connection.execute("SET LOCAL deadlock_timeout = '10ms'")
                await connection.execute("UPDATE t SET b = b + 1 WHERE a = $1", first)
                if calls <= 2:
                    await met.wait()
                await connection.execute("UPDATE t SET b = b + 1 WHERE a = $1", second)

            await asyncio.gather(
                one.transaction(lambda connection: unit(connection, "a", "b")),
                other.transaction(lambda connection: unit(connection, "b", "a")),
            )
            assert calls >= 3, "neither was done again"  # both, if PostgreSQL ends both
            assert await one.read(rows) == {"a": 2, "b": 2}

    asyncio.run(play())


def test_a_caller_that_gives_up_does_not_stop_the_work() -> None:
    async def play() -> None:
        async with opened(settings(server())) as session:
            begun = asyncio.Event()

            async def unit(connection: Connection) -> None:
                begun.set()
                await put("a")(connection)

            call = asyncio.ensure_future(session.transaction(unit))
            await begun.wait()
            call.cancel()
            assert await session.read(rows) == {"a": 0}

    asyncio.run(play())


def test_a_closed_session_refuses_work_after_it_has_finished_what_waits() -> None:
    async def play() -> None:
        given = settings(server())
        session = await Session.open(given, [TABLE])
        writes = [asyncio.ensure_future(session.statement(put(str(number)))) for number in range(20)]
        await asyncio.sleep(0)
        await asyncio.gather(session.close(), session.close())
        await asyncio.gather(*writes)
        with pytest.raises(StoreClosed):
            await session.read(rows)
        async with opened(given) as other:
            assert len(await other.read(rows)) == 20

    asyncio.run(play())


# Lost connections


@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.name)
@pytest.mark.parametrize("kind", ["statement", "transaction"])
def test_a_connection_that_breaks_at_the_commit_leaves_the_outcome_unknown(fate: Fate, kind: str) -> None:
    async def play() -> None:
        given = settings(server())
        async with LosingProxy(server().port) as proxy:
            through = replace(given, url=given.url.replace(f":{server().port}/", f":{proxy.port}/"))
            async with opened(through) as session:
                await session.statement(put("before"))
                proxy.lose(b"fateful" if kind == "statement" else b"COMMIT", fate)
                with pytest.raises(OutcomeUnknown):
                    await getattr(session, kind)(put("fateful", 1))
                found = await session.read(rows)
                assert found == ({"before": 0, "fateful": 1} if fate is Fate.ANSWERED else {"before": 0})
                await session.statement(put("fateful", 2))
                if fate is Fate.LATE:
                    await proxy.deliver()
                assert await session.read(rows) == {"before": 0, "fateful": 2}, "what is late has no effect"

    asyncio.run(play())


@pytest.mark.parametrize("fate", [Fate.ANSWERED, Fate.LOST], ids=lambda fate: fate.name)
@pytest.mark.parametrize("moment", [b"pg_stat_activity", b"pg_advisory_xact_lock", b"COMMIT"])
def test_a_connection_that_breaks_while_tables_are_created_is_opened_again(fate: Fate, moment: bytes) -> None:
    async def play() -> None:
        given = settings(server())
        async with LosingProxy(server().port) as proxy:
            proxy.lose(moment, fate)
            async with opened(
                replace(given, url=given.url.replace(f":{server().port}/", f":{proxy.port}/"))
            ) as session:
                await session.statement(put("key"))
                assert await session.read(rows) == {"key": 0}

    asyncio.run(play())


def test_a_user_without_special_rights_can_do_all_that_too() -> None:
    database, role = server().new_database(), fresh_schema()
    server().sql(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    server().sql(f"GRANT CREATE ON DATABASE {database} TO {role}")

    async def play() -> None:
        async with LosingProxy(server().port) as proxy:
            url = f"postgresql://{role}:x@127.0.0.1:{proxy.port}/{database}"
            async with opened(PostgresSettings.parse(url, deadline_s=LONG_S)) as session:
                await session.statement(put("fateful", 1))
                proxy.lose(b"fateful", Fate.LATE)
                with pytest.raises(OutcomeUnknown):
                    await session.statement(put("fateful", 2))
                await session.statement(put("fateful", 3))
                await proxy.deliver()
                assert await session.read(rows) == {"fateful": 3}

    asyncio.run(play())


def test_commits_are_durable_even_if_the_database_says_otherwise() -> None:
    database = server().new_database()
    server().sql(f"ALTER DATABASE {database} SET synchronous_commit = off")

    async def play() -> None:
        async with opened(PostgresSettings.parse(server().url(database), deadline_s=LONG_S)) as session:
            assert await session.read(lambda connection: connection.fetchval("SHOW synchronous_commit")) == "on"

    asyncio.run(play())


@pytest.mark.parametrize("fate", [Fate.ANSWERED, Fate.LOST], ids=lambda fate: fate.name)
def test_work_that_has_not_committed_is_done_again_over_a_new_connection(fate: Fate) -> None:
    async def play() -> None:
        given = settings(server())
        async with LosingProxy(server().port) as proxy:
            through = replace(given, url=given.url.replace(f":{server().port}/", f":{proxy.port}/"))
            async with opened(through) as session:
                proxy.lose(b"marked", fate)
                await session.transaction(put("marked"))
                proxy.lose(b"SELECT a, b", fate)
                assert await session.read(rows) == {"marked": 0}

    asyncio.run(play())


def test_a_server_that_stands_still_leaves_the_outcome_unknown_and_cannot_surprise_later_work() -> None:
    """The server reads the statement from its socket when it continues: it takes effect before any later work, or
    never."""

    async def play() -> None:
        given = settings(server(), deadline_s=0.5, connect_timeout_s=0.2)
        async with opened(given) as session, opened(replace(given, deadline_s=LONG_S)) as watching:
            await session.statement(put("a", 1))
            with server().paused():
                with pytest.raises(OutcomeUnknown):
                    await session.statement(put("a", 2))
                with pytest.raises(StorageUnavailable):
                    await session.statement(put("a", 3))
                with pytest.raises(StorageUnavailable):
                    await session.read(rows)
            await eventually_works(session, lambda: session.statement(put("a", 4)))
            for _ in range(5):
                assert await watching.read(rows) == {"a": 4}

    asyncio.run(play())


def test_a_process_of_the_server_that_stands_still_holds_up_later_work_until_it_is_gone() -> None:
    async def play() -> None:
        given = settings(server(), deadline_s=0.5)
        async with opened(given) as session:
            pid = await session.read(lambda connection: connection.fetchval("SELECT pg_backend_pid()"))
            with server().paused(only=pid):
                with pytest.raises(OutcomeUnknown):
                    await session.statement(put("a", 1))
                with pytest.raises(StorageUnavailable):
                    await session.statement(put("a", 2))
            await eventually_works(session, lambda: session.statement(put("a", 3)))
            assert await session.read(rows) == {"a": 3}

    asyncio.run(play())


def test_a_killed_server_is_used_again_when_it_is_back() -> None:
    async def play() -> None:
        async with opened(settings(server())) as session:
            await session.statement(put("a", 1))
            server().kill()
            waiting = asyncio.ensure_future(session.read(rows))
            await asyncio.to_thread(server().restart)
            assert await waiting == {"a": 1}
            await session.statement(put("a", 2))
            assert await session.read(rows) == {"a": 2}

    asyncio.run(play())


def test_a_connection_that_the_server_ends_is_opened_again_before_anyone_asks() -> None:
    async def play() -> None:
        name = fresh_schema()
        session = await Session.open(settings(server()), name=name)
        try:
            pid = server().sql(f"SELECT pid FROM pg_stat_activity WHERE application_name = '{name}'")
            assert server().sql(f"SELECT pg_terminate_backend({pid}, 60000)") == "t"
            async with asyncio.timeout(LONG_S):
                while not server().sql(f"SELECT pid FROM pg_stat_activity WHERE application_name = '{name}'"):
                    await asyncio.sleep(0.01)
        finally:
            await session.close()

    asyncio.run(play())


# The start


def test_a_server_that_is_down_at_the_start_is_used_when_it_is_up() -> None:
    async def play() -> None:
        server().shut_down()
        try:
            async with opened(settings(server(), deadline_s=0.3)) as session:
                assert not session.is_connected
                with pytest.raises(StorageUnavailable):
                    await session.read(rows)
                await asyncio.to_thread(server().restart)
                await eventually_works(session, lambda: session.read(rows))
        finally:
            server().make_sure_it_runs()

    asyncio.run(play())


def test_a_session_can_be_closed_while_the_server_does_not_answer() -> None:
    async def play() -> None:
        with server().paused():
            session = Session(settings(server()), [TABLE])
            read = asyncio.ensure_future(session.read(rows))
            await asyncio.sleep(0)
            await session.close()
            with pytest.raises(StorageUnavailable):
                await read

    asyncio.run(play())


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"password": "hunter2"}, "login was refused"),
        ({"database": "missing"}, "does not exist"),
    ],
    ids=["password", "database"],
)
def test_what_an_operator_has_to_correct_is_told_at_once_and_without_secrets(
    wrong: dict[str, str], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        given = PostgresSettings.parse(server().url(**wrong), deadline_s=LONG_S)  # type: ignore[arg-type]
        with pytest.raises(StorageUnavailable, match=told) as refused:
            await Session.open(given)
        said = f"{refused.value!r} {refused.value.__cause__!r} {refused.value.__context__!r}"
        assert str(given.password) not in said + "".join(str(line) for line in logged)

    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as logged:
        asyncio.run(play())
    assert str(server().password) not in caplog.text
    assert "hunter2" not in caplog.text
