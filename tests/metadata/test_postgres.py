"""What only the PostgreSQL engine has: several brokers on one database, lost connections, a server that is down, and
tables that brokers of different versions share."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.postgres import fresh_schema, server
from tests.support.postgres_proxy import Fate, LosingProxy
from tidelog.errors import Conflict, Fenced, MetadataTooNew, OutcomeUnknown, StorageError, StorageUnavailable
from tidelog.metadata.opening import open_store
from tidelog.metadata.postgres import PostgresStore
from tidelog.metadata.rows import ClusterRow, ConfigRow, GroupRow, OffsetRow, TopicRow
from tidelog.metadata.sqlite import SqliteStore
from tidelog.metadata.store import Change, Delete, Fence, Insert, MetadataStore, Put, Shards, Update
from tidelog.model import shard_of
from tidelog.postgres import PostgresSettings

OFFSET = OffsetRow("group", "topic", 0, 5, 1, "note", 1_700_000_000_000)
TOPIC = TopicRow("topic", bytes(16), 3, 1_700_000_000_000)
LONG_S = 60.0


def fresh_settings() -> PostgresSettings:
    return PostgresSettings.parse(server().url(), schema=fresh_schema(), deadline_s=LONG_S)


@asynccontextmanager
async def stores(settings: PostgresSettings, count: int = 1) -> AsyncIterator[list[PostgresStore]]:
    opened = await asyncio.gather(*(PostgresStore.open(settings) for _ in range(count)))
    try:
        yield opened
    finally:
        await asyncio.gather(*(store.close() for store in opened))


def offsets(group: str, count: int, offset: int = 0) -> list[Change]:
    return [Put(replace(OFFSET, group=group, partition=number, offset=offset)) for number in range(count)]


async def decided(write: Callable[[], Awaitable[Any]]) -> Any:
    """As `broker/writes.py` does: repeat until the outcome is known."""
    async with asyncio.timeout(LONG_S):
        while True:
            try:
                return await write()
            except StorageError:
                await asyncio.sleep(0.02)


# Writes


def test_writes_that_wait_at_the_same_time_share_commits() -> None:
    async def play() -> None:
        async with stores(fresh_settings()) as [store]:
            fence = await store.acquire("scope")
            await asyncio.gather(*(store.write(offsets(f"g{number}", 2), fence) for number in range(300)))
            assert store.commits < 10
            assert len(await store.load(OffsetRow)) == 600

    asyncio.run(play())


def test_a_large_write_is_atomic_too() -> None:
    async def play() -> None:
        async with stores(fresh_settings()) as [store]:
            await store.write(offsets("g", 5_000, offset=1))
            with pytest.raises(Conflict):
                await store.write([*offsets("g", 5_000, offset=2), Insert(replace(OFFSET, group="g", offset=7))])
            rows = await store.load(OffsetRow, ("g",))
            assert (len(rows), {row.offset for row in rows}) == (5_000, {1})
            await store.write([*offsets("g", 5_000, offset=3), Delete(OffsetRow, ("g",)), *offsets("g", 1, offset=4)])
            assert [row.offset for row in await store.load(OffsetRow)] == [4]

    asyncio.run(play())


def test_the_shard_is_a_column_of_each_group_and_transaction() -> None:
    settings = fresh_settings()

    async def play() -> None:
        async with stores(settings) as [store]:
            groups = [GroupRow(f"g{number}", "classic", "", None, 0, None, "Empty", 0) for number in range(40)]
            await store.write([Put(group) for group in groups])
            one = frozenset({shard_of("g1")})
            assert {row.group for row in await store.load(GroupRow, Shards(one))} == {
                group.group for group in groups if shard_of(group.group) in one
            }

    asyncio.run(play())
    stored = server().sql(f'SELECT "group", shard FROM {settings.schema}."group"')
    assert {tuple(line.split("|")) for line in stored.split("\n")} == {
        (f"g{number}", str(shard_of(f"g{number}"))) for number in range(40)
    }


# Two brokers


def test_a_broker_that_takes_over_a_scope_shuts_out_the_other_one() -> None:
    async def play() -> None:
        async with stores(fresh_settings(), 2) as [old, new]:
            fence = await old.acquire("groups/1")
            other = await old.acquire("groups/2")
            await old.write(offsets("g", 1), fence)
            assert await new.acquire("groups/1") == Fence("groups/1", 2)
            outcomes = await asyncio.gather(
                old.write(offsets("g", 1, offset=9), fence),
                old.write(offsets("h", 1), other),
                old.write([Insert(TOPIC)], fence),
                return_exceptions=True,
            )
            assert [type(outcome) for outcome in outcomes] == [Fenced, type(None), Fenced]
            assert {(row.group, row.offset) for row in await new.load(OffsetRow)} == {("g", 0), ("h", 0)}

    asyncio.run(play())


def test_no_write_of_a_former_owner_comes_after_the_new_owner_has_loaded() -> None:
    """Whatever the old owner was told to be done before, the new owner sees; and it sees nothing more later."""

    async def play() -> None:
        async with stores(fresh_settings(), 2) as brokers:
            fence = await brokers[0].acquire("scope")
            for turn in range(1, 12):
                old, new = brokers[(turn - 1) % 2], brokers[turn % 2]
                writing = asyncio.ensure_future(write_until_fenced(old, fence, turn * 1000))
                await asyncio.sleep(0.005)
                fence = await new.acquire("scope")
                seen = [row.offset for row in await new.load(OffsetRow)]
                assert max(seen, default=-1) >= await writing
                assert len(set(seen)) <= 1
                assert [row.offset for row in await new.load(OffsetRow)] == seen

    asyncio.run(play())


async def write_until_fenced(store: MetadataStore, fence: Fence, first: int) -> int:
    """The last offset that was acknowledged."""
    acknowledged = -1
    with suppress(Fenced):
        for offset in range(first, first + 1000):
            await store.write(offsets("g", 3, offset=offset), fence)
            acknowledged = offset
    return acknowledged


def test_of_two_brokers_that_insert_the_same_row_one_has_a_conflict() -> None:
    async def play() -> None:
        async with stores(fresh_settings(), 2) as both:
            for number in range(20):
                rows = [ClusterRow(f"row {number}", f"of {broker}") for broker in range(2)]
                outcomes = await asyncio.gather(
                    *(store.write([Insert(row)]) for store, row in zip(both, rows, strict=True)),
                    return_exceptions=True,
                )
                assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "NoneType"]
                winner = rows[outcomes.index(None)]
                assert await both[0].load(ClusterRow, (f"row {number}",)) == [winner]

    asyncio.run(play())


def test_updates_of_brokers_lose_nothing() -> None:
    async def play() -> None:
        async with stores(fresh_settings(), 3) as brokers:
            await brokers[0].write([Put(ClusterRow("list", ""))])

            async def add(store: MetadataStore, letter: str) -> None:
                for _ in range(10):
                    while True:
                        (before,) = await store.load(ClusterRow)
                        try:
                            await store.write([Update(before, replace(before, value=before.value + letter))])
                        except Conflict:
                            continue
                        break

            await asyncio.gather(*map(add, brokers, "abc"))
            (row,) = await brokers[0].load(ClusterRow)
            assert sorted(row.value) == [letter for letter in "abc" for _ in range(10)]

    asyncio.run(play())


def test_brokers_reserve_different_numbers() -> None:
    async def play() -> None:
        async with stores(fresh_settings(), 3) as brokers:
            firsts = await asyncio.gather(*(store.reserve("ids", 10) for store in brokers for _ in range(20)))
            assert sorted(firsts) == list(range(0, 600, 10))

    asyncio.run(play())


def test_a_broker_follows_what_others_change_in_the_order_of_the_commits() -> None:
    async def play() -> None:
        async with stores(fresh_settings(), 3) as [one, two, follower]:
            news = await follower.changes_since(-1)
            table = {row.name: row for row in await follower.load(TopicRow)}

            async def change(store: MetadataStore, which: int) -> None:
                for number in range(20):
                    await store.write([Put(replace(TOPIC, partitions=number * 10 + which)), Put(OFFSET)])

            changing = asyncio.gather(change(one, 1), change(two, 2))
            versions = 0
            while not changing.done() or versions < 40:
                news = await follower.changes_since(news.version)
                assert news.changes is not None
                versions += len(news.changes)
                for each in news.changes:
                    assert isinstance(each, Put)
                    assert isinstance(each.row, TopicRow)
                    table[each.row.name] = each.row
            await changing
            assert list(table.values()) == await follower.load(TopicRow)
            assert versions == 40

    asyncio.run(play())


# Lost connections


def through(proxy: LosingProxy, settings: PostgresSettings) -> PostgresSettings:
    return replace(settings, url=settings.url.replace(f":{server().port}/", f":{proxy.port}/"))


@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.name)
@pytest.mark.parametrize("change", [Put(ClusterRow("fateful", "1")), Insert(ClusterRow("fateful", "1"))], ids=repr)
def test_a_write_whose_reply_is_lost_is_unknown_and_a_repetition_decides(fate: Fate, change: Change) -> None:
    async def play() -> None:
        settings = fresh_settings()
        async with (
            LosingProxy(server().port) as proxy,
            stores(through(proxy, settings)) as [store],
            stores(settings) as [other],
        ):
            fence = await store.acquire("scope")
            proxy.lose(b"fateful" if isinstance(change, Put) else b"COMMIT", fate)
            unknown, later = await asyncio.gather(
                store.write([change], fence), store.load(ClusterRow), return_exceptions=True
            )
            assert isinstance(unknown, OutcomeUnknown)
            assert later == ([ClusterRow("fateful", "1")] if fate is Fate.ANSWERED else [])
            await store.write([change], fence)
            await other.write([Put(ClusterRow("fateful", "2"))])
            if fate is Fate.LATE:
                await proxy.deliver()
            assert await store.load(ClusterRow) == [ClusterRow("fateful", "2")]
            if isinstance(change, Insert):
                with pytest.raises(Conflict):
                    await store.write([change], fence)

    asyncio.run(play())


def test_a_server_that_stands_still_fails_writes_and_is_used_again() -> None:
    async def play() -> None:
        settings = replace(fresh_settings(), deadline_s=0.5, connect_timeout_s=0.3)
        async with stores(settings) as [store]:
            await store.write(offsets("g", 1, offset=1))
            with server().paused():
                outcomes = await asyncio.gather(
                    store.write(offsets("g", 1, offset=2)), store.load(OffsetRow), return_exceptions=True
                )
            assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown, StorageUnavailable]
            await decided(lambda: store.write(offsets("g", 1, offset=3)))
            assert [row.offset for row in await store.load(OffsetRow)] == [3]

    asyncio.run(play())


def test_acknowledged_writes_survive_kills_of_the_server_and_the_store_comes_back_by_itself() -> None:
    async def play() -> None:
        async with stores(fresh_settings()) as [store]:
            fence = await store.acquire("scope")
            acknowledged: list[int] = []
            is_over = asyncio.Event()

            async def write_on() -> None:
                number = 0
                while not is_over.is_set():
                    changes = [Put(ClusterRow(f"{number:06}", "")), Put(replace(OFFSET, offset=number))]
                    await decided(lambda changes=changes: store.write(changes, fence))  # type: ignore[misc]
                    acknowledged.append(number)
                    number += 1

            async def more(than: int) -> None:
                while len(acknowledged) <= than:
                    await asyncio.sleep(0.01)

            writing = asyncio.ensure_future(write_on())
            async with asyncio.timeout(LONG_S):
                await more(20)
                await asyncio.to_thread(server().kill)
                await asyncio.to_thread(server().restart)
                await more(len(acknowledged) + 20)
            is_over.set()
            await writing
            assert [
                int(row.name) for row in sorted(await store.load(ClusterRow), key=lambda row: row.name)
            ] == acknowledged
            assert [row.offset for row in await store.load(OffsetRow)] == acknowledged[-1:]

    try:
        asyncio.run(play())
    finally:
        server().make_sure_it_runs()


def test_a_store_is_opened_while_the_server_is_down_and_works_when_it_is_up() -> None:
    async def play() -> None:
        settings = replace(fresh_settings(), deadline_s=0.3)
        server().shut_down()
        try:
            async with stores(settings) as [store]:
                outcomes = await asyncio.gather(
                    store.load(ClusterRow), store.write([Put(ClusterRow("a", ""))]), return_exceptions=True
                )
                assert [type(outcome) for outcome in outcomes] == [StorageUnavailable] * 2
                await asyncio.to_thread(server().restart)
                await decided(lambda: store.write([Put(ClusterRow("b", ""))]))
                assert await store.load(ClusterRow) == [ClusterRow("b", "")]
        finally:
            server().make_sure_it_runs()

    asyncio.run(play())


def test_a_store_can_be_closed_while_the_server_is_down() -> None:
    async def play() -> None:
        store = await PostgresStore.open(fresh_settings())
        server().shut_down()
        try:
            writes = [asyncio.ensure_future(store.write([Put(ClusterRow(str(n), ""))])) for n in range(3)]
            await asyncio.sleep(0)
            await store.close()
            outcomes = await asyncio.gather(*writes, return_exceptions=True)
            assert all(isinstance(outcome, StorageError) for outcome in outcomes)
        finally:
            server().make_sure_it_runs()

    asyncio.run(play())


# Tables


def test_stores_that_are_opened_at_once_on_an_empty_database_share_it() -> None:
    settings = PostgresSettings.parse(server().url(server().new_database()), deadline_s=LONG_S)

    async def play() -> None:
        async with stores(settings, 3) as opened:
            for number, store in enumerate(opened):
                await store.write([Insert(ClusterRow(str(number), ""))])
            assert len(await opened[0].load(ClusterRow)) == 3

    asyncio.run(play())


def test_tables_of_a_newer_tidelog_are_refused() -> None:
    settings = fresh_settings()

    async def play() -> None:
        async with stores(settings):
            pass
        server().sql(f"INSERT INTO {settings.schema}.tidelog_schema VALUES ('metadata', 10000)")
        with pytest.raises(MetadataTooNew, match="10000"):
            await PostgresStore.open(settings)

    asyncio.run(play())


def test_tables_of_an_older_tidelog_get_the_missing_columns_and_keep_their_rows() -> None:
    settings = fresh_settings()
    group = GroupRow("g", "classic", "consumer", None, 3, None, "Empty", 0)

    async def play() -> None:
        async with stores(settings) as [store]:
            await store.write([Put(group), Put(OFFSET)])
        server().sql(
            f"""
            SET search_path = {settings.schema};
            ALTER TABLE "group" DROP COLUMN details, DROP COLUMN assignment_epoch;
            ALTER TABLE "offset" DROP COLUMN expires_ms;
            DROP TABLE decision;
            UPDATE tidelog_schema SET version = version - 6;
            """
        )
        async with stores(settings) as [store]:
            assert await store.load(GroupRow) == [group]
            assert await store.load(OffsetRow) == [OFFSET]

    asyncio.run(play())


# The door


def test_a_place_is_a_directory_or_a_url(tmp_path: Path) -> None:
    async def play() -> None:
        url = f"{server().url()}?schema={fresh_schema()}"
        for place, engine in ((str(tmp_path), SqliteStore), (url, PostgresStore)):
            store = await open_store(place)
            assert isinstance(store, engine)
            await store.write([Put(ConfigRow("topic", "a", "b", "c"))])
            await store.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("place", "told"), [(".", "opened without asyncpg"), ("postgresql://u@h/db", 'pip install "tidelog[cluster]"')]
)
def test_the_driver_is_needed_only_for_a_url(place: str, told: str, tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
sys.modules["asyncpg"] = None
from tidelog.errors import MissingExtra
from tidelog.metadata.opening import open_store

async def play():
    store = await open_store({place!r})
    await store.close()
    print("opened without asyncpg")

try:
    asyncio.run(play())
except MissingExtra as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told in run.stdout
