"""Tables and their versions: created once, brought up to date, refused if they are newer."""

import asyncio

import pytest

from tests.support.postgres import fresh_schema, server
from tidelog.errors import MetadataTooNew
from tidelog.postgres import PostgresSettings, Session, scripted

FIRST = "CREATE TABLE t (a bigint); INSERT INTO t VALUES (1)"
SECOND = "ALTER TABLE t ADD COLUMN b bigint NOT NULL DEFAULT 7"


def fresh_settings() -> PostgresSettings:
    return PostgresSettings.parse(server().url(), schema=fresh_schema(), deadline_s=60.0)


def contents(settings: PostgresSettings, *scripts: str) -> list[tuple[int, ...]]:
    async def play() -> list[tuple[int, ...]]:
        session = await Session.open(settings, [scripted("test", scripts)])
        try:
            found = await session.read(lambda connection: connection.fetch("SELECT * FROM t"))
            return [tuple(row) for row in found]
        finally:
            await session.close()

    return asyncio.run(play())


def test_scripts_are_applied_once_each() -> None:
    settings = fresh_settings()
    assert contents(settings, FIRST) == [(1,)]
    assert contents(settings, FIRST) == [(1,)]
    assert contents(settings, FIRST, SECOND) == [(1, 7)]
    assert contents(settings, FIRST, SECOND) == [(1, 7)]
    versions = server().sql(f"SELECT component, version FROM {settings.schema}.tidelog_schema ORDER BY version")
    assert versions.split("\n") == ["test|1", "test|2"]


def test_a_newer_schema_is_refused_and_left_as_it_is() -> None:
    settings = fresh_settings()
    contents(settings, FIRST, SECOND)
    with pytest.raises(MetadataTooNew, match=f"{settings.schema} .* newer Tidelog"):
        contents(settings, FIRST)
    assert contents(settings, FIRST, SECOND) == [(1, 7)]


def test_a_script_that_fails_leaves_nothing_behind() -> None:
    settings = fresh_settings()

    async def play() -> None:
        session = await Session.open(settings, [scripted("test", [FIRST, "no SQL"])])
        assert not session.is_connected
        await session.close()

    asyncio.run(play())
    assert contents(settings, FIRST) == [(1,)]


def test_components_have_versions_of_their_own() -> None:
    settings = fresh_settings()

    async def play() -> None:
        for components in ([scripted("one", [FIRST])], [scripted("two", ["CREATE TABLE u ()"])]):
            session = await Session.open(settings, components)
            assert session.is_connected
            await session.close()

    asyncio.run(play())
    assert contents(settings) == [(1,)]


def test_brokers_that_start_at_once_on_an_empty_database_take_turns() -> None:
    settings = PostgresSettings.parse(server().url(server().new_database()), deadline_s=60.0)

    async def play() -> None:
        sessions = await asyncio.gather(
            *(Session.open(settings, [scripted("test", [FIRST, SECOND])]) for _ in range(5))
        )
        for session in sessions:
            assert await session.read(lambda connection: connection.fetchval("SELECT count(*) FROM t")) == 1
        await asyncio.gather(*(session.close() for session in sessions))

    asyncio.run(play())
