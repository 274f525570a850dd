"""The contract of `MetadataStore`, for every engine: whole writes, in order, durable; scopes, fences, inserts that
find a row, numbers that are given out once, and the change feed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias

import pytest

from tests.metadata.engines import ENGINES, Engine
from tidelog.errors import Conflict, Fenced, InvalidInput, StorageUnavailable
from tidelog.metadata import feed
from tidelog.metadata.rows import ClusterRow, ConfigRow, GroupMemberRow, GroupRow, OffsetRow, Row, TopicRow
from tidelog.metadata.store import (
    Change,
    Delete,
    Fence,
    Insert,
    Key,
    MetadataStore,
    News,
    Put,
    Shards,
    Update,
    key_of,
)
from tidelog.model import SHARDS, shard_of

OFFSET = OffsetRow("group", "topic", 0, 5, 1, "note", 1_700_000_000_000)
GROUP = GroupRow("group", "classic", "consumer", "range", 3, "m-1", "Stable", 0, 7, '{"a": 1}')
TOPIC = TopicRow("topic", bytes(16), 3, 1_700_000_000_000)
CONFIG = ConfigRow("topic", "topic", "retention.ms", "5")
IMPOSSIBLE: dict[str, list[Change]] = {
    "a number beyond 64 bits": [Put(ClusterRow("x", "")), Put(replace(OFFSET, offset=2**63))],
    "no text": [Put(ClusterRow("x", "")), Put(ClusterRow("\udcff", ""))],
    "a null": [Put(ClusterRow("x", "")), Put(ClusterRow("y", None))],  # type: ignore[arg-type]
    "too long a key": [Put(ClusterRow("x", "")), Delete(ClusterRow, ("a", "b"))],
    "another key": [Put(ClusterRow("x", "")), Update(ClusterRow("a", ""), ClusterRow("b", ""))],
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return ENGINES[request.param](tmp_path)


Play: TypeAlias = Callable[[MetadataStore], Awaitable[Any]]


def in_store(engine: Engine, play: Play) -> Any:
    async def run() -> Any:
        store = await engine.open()
        try:
            return await play(store)
        finally:
            await store.close()

    return asyncio.run(run())


def after(engine: Engine, changes: list[Change], table: type[Row]) -> list[Row]:
    """What a table has after some changes and a reopening, by key: a table has no order of its own."""
    in_store(engine, lambda store: store.write(changes))
    return sorted(in_store(engine, lambda store: store.load(table)), key=key_of)


def cluster(name: str, value: str = "") -> Put:
    return Put(ClusterRow(name, value))


# Rows


@pytest.mark.parametrize(
    "row",
    [
        ClusterRow("id", "čeština 日本 🌊 \x00 '\"; DROP TABLE cluster"),
        TopicRow("topic", bytes(range(16)), 2**31 - 1, 1_700_000_000_000),
        CONFIG,
        OFFSET,
        replace(OFFSET, expires_ms=2**63 - 1, offset=-(2**63)),
        GROUP,
        replace(GROUP, protocol=None, leader=None),
        GroupMemberRow("group", "m-1", None, "client", "/127.0.0.1", 10_000, 60_000, 1, b"\x00\xff", b""),
    ],
    ids=lambda row: type(row).__name__,
)
@pytest.mark.parametrize("how", [Put, Insert])
def test_a_row_comes_back_as_it_was(row: Row, how: type[Put | Insert], engine: Engine) -> None:
    assert after(engine, [how(row)], type(row)) == [row]


def test_a_put_replaces_the_row_with_the_same_key(engine: Engine) -> None:
    rows = [OFFSET, replace(OFFSET, offset=6), replace(OFFSET, partition=1)]
    assert after(engine, [Put(row) for row in rows], OffsetRow) == rows[1:]


@pytest.mark.parametrize(
    ("key", "left"),
    [
        (("g1", "t1", 0), ["g1 t1 1", "g1 t2 0", "g2 t1 0"]),
        (("g1", "t1"), ["g1 t2 0", "g2 t1 0"]),
        (("g1",), ["g2 t1 0"]),
        (("g",), ["g1 t1 0", "g1 t1 1", "g1 t2 0", "g2 t1 0"]),
        ((), []),
    ],
)
def test_a_delete_takes_the_rows_whose_key_begins_so_and_a_load_gives_them(
    key: Key, left: list[str], engine: Engine
) -> None:
    kept = [("g1", "t1", 0), ("g1", "t1", 1), ("g1", "t2", 0), ("g2", "t1", 0)]
    puts = [Put(OffsetRow(group, topic, partition, 1, 0, "", 0)) for group, topic, partition in kept]

    def names(rows: list[OffsetRow]) -> list[str]:
        return sorted(f"{row.group} {row.topic} {row.partition}" for row in rows)

    async def play(store: MetadataStore) -> None:
        await store.write(puts)
        everything = names(await store.load(OffsetRow))
        found = names(await store.load(OffsetRow, key))
        assert sorted(found + left) == everything
        await store.write([Delete(OffsetRow, key)])
        assert names(await store.load(OffsetRow)) == left

    in_store(engine, play)


def test_shards_part_the_rows_of_a_table_by_their_first_key_field(engine: Engine) -> None:
    async def play(store: MetadataStore) -> None:
        await store.write([Put(replace(OFFSET, group=f"g{number}", partition=number % 3)) for number in range(300)])
        some = frozenset(range(0, SHARDS, 2))
        found = await store.load(OffsetRow, Shards(some))
        assert {row.group for row in found} == {f"g{n}" for n in range(300) if shard_of(f"g{n}") in some}
        others = await store.load(OffsetRow, Shards(frozenset(range(SHARDS)) - some))
        assert len(found) + len(others) == 300
        assert min(len(found), len(others)) > 100
        assert await store.load(OffsetRow, Shards(frozenset())) == []

    in_store(engine, play)


def test_the_shard_of_an_id_never_changes() -> None:
    assert [shard_of(id_) for id_ in ("", "a", "orders", "日本")] == [0, 3, 14, 12]


def test_a_scope_with_more_than_the_key_is_a_mistake(engine: Engine) -> None:
    with pytest.raises(InvalidInput):
        in_store(engine, lambda store: store.load(ClusterRow, ("a", "b")))


# Writes


def test_changes_of_one_write_take_effect_in_their_order(engine: Engine) -> None:
    changes: list[Change] = [
        cluster("a", "1"),
        Delete(ClusterRow, ("a",)),
        cluster("b", "1"),
        cluster("b", "2"),
        Insert(ClusterRow("a", "3")),
        Update(ClusterRow("a", "3"), ClusterRow("a", "4")),
    ]
    assert after(engine, changes, ClusterRow) == [ClusterRow("a", "4"), ClusterRow("b", "2")]


def test_writes_take_effect_and_are_told_in_the_order_of_the_calls(engine: Engine) -> None:
    async def play(store: MetadataStore) -> None:
        for turn in range(20):
            told: list[int] = []

            async def write(number: int, turn: int = turn, told: list[int] = told) -> None:
                await store.write([cluster("same", f"{turn} {number}")])
                told.append(number)

            await asyncio.gather(*map(write, range(50)))
            assert await store.load(ClusterRow) == [ClusterRow("same", f"{turn} 49")]
            assert told == list(range(50))

    in_store(engine, play)


def test_a_load_sees_the_writes_before_it_and_not_those_after(engine: Engine) -> None:
    async def play(store: MetadataStore) -> None:
        answers = await asyncio.gather(
            store.write([cluster("a")]), store.load(ClusterRow), store.write([cluster("b")])
        )
        assert answers[1] == [ClusterRow("a", "")]

    in_store(engine, play)


@pytest.mark.parametrize("changes", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_write_that_is_impossible_fails_as_a_whole_and_alone(changes: list[Change], engine: Engine) -> None:
    async def play(store: MetadataStore) -> None:
        first, bad, last = await asyncio.gather(
            store.write([cluster("first")]),
            store.write(changes),
            store.write([cluster("last")]),
            return_exceptions=True,
        )
        assert (first, type(bad), last) == (None, InvalidInput, None)
        assert {row.name for row in await store.load(ClusterRow)} == {"first", "last"}

    in_store(engine, play)


def test_a_write_whose_caller_gave_up_is_done_and_hurts_nobody(engine: Engine) -> None:
    async def play(store: MetadataStore) -> None:
        given_up = asyncio.ensure_future(store.write([cluster("given up")]))
        other = asyncio.ensure_future(store.write([cluster("other")]))
        await asyncio.sleep(0)
        given_up.cancel()
        await other
        assert len(await store.load(ClusterRow)) == 2

    in_store(engine, play)


def test_closing_waits_for_what_was_asked_for(engine: Engine) -> None:
    async def play() -> None:
        store = await engine.open()
        writes = [asyncio.ensure_future(store.write([cluster(str(number))])) for number in range(200)]
        await asyncio.sleep(0)
        await asyncio.gather(store.close(), store.close())
        await asyncio.gather(*writes)
        await store.close()
        for question in (store.write([]), store.load(ClusterRow), store.reserve("n", 1), store.changes_since(0)):
            with pytest.raises(StorageUnavailable, match="closed"):
                await question

    asyncio.run(play())
    assert len(in_store(engine, lambda store: store.load(ClusterRow))) == 200


# Writes that expect something


@pytest.mark.parametrize(
    ("there", "change"),
    [
        (ClusterRow("a", "1"), Insert(ClusterRow("a", "2"))),
        (None, Update(ClusterRow("a", "1"), ClusterRow("a", "2"))),
        (ClusterRow("a", "3"), Update(ClusterRow("a", "1"), ClusterRow("a", "2"))),
    ],
    ids=["an insert that finds a row", "an update that finds none", "an update that finds another one"],
)
def test_a_conflict_writes_nothing_and_hurts_no_other_write(
    there: ClusterRow | None, change: Insert | Update, engine: Engine
) -> None:
    async def play(store: MetadataStore) -> None:
        if there is not None:
            await store.write([Put(there)])
        first, conflict, last = await asyncio.gather(
            store.write([cluster("first")]),
            store.write([cluster("x"), change, cluster("y")]),
            store.write([cluster("last")]),
            return_exceptions=True,
        )
        assert (first, type(conflict), last) == (None, Conflict, None)
        rows = {ClusterRow("first", ""), ClusterRow("last", "")} | ({there} if there else set())
        assert set(await store.load(ClusterRow)) == rows

    in_store(engine, play)


@pytest.mark.parametrize(
    "change",
    [Insert(CONFIG), Update(replace(CONFIG, value="4"), CONFIG), Put(CONFIG)],
    ids=lambda change: type(change).__name__,
)
def test_a_write_can_be_said_again(change: Change, engine: Engine) -> None:
    """So that a writer who does not know the outcome learns it."""

    async def play(store: MetadataStore) -> None:
        if isinstance(change, Update):
            await store.write([Put(change.before)])
        for _ in range(3):
            await store.write([Put(TOPIC), change])
        assert await store.load(ConfigRow) == [CONFIG]

    in_store(engine, play)


# Fences


def test_only_the_newest_owner_of_a_scope_can_write(engine: Engine) -> None:
    async def play(store: MetadataStore) -> None:
        old = await store.acquire("groups/1")
        other = await store.acquire("groups/2")
        await store.write([cluster("a", "old")], old)
        new = await store.acquire("groups/1")
        assert (old, other, new) == (Fence("groups/1", 1), Fence("groups/2", 1), Fence("groups/1", 2))
        outcomes = await asyncio.gather(
            store.write([cluster("a", "of the fenced")], old),
            store.write([cluster("b")], new),
            store.write([cluster("c")], other),
            store.write([cluster("d")]),
            store.write([], old),
            return_exceptions=True,
        )
        assert [type(each) for each in outcomes] == [Fenced, NoneType, NoneType, NoneType, Fenced]
        rows = {row.name: row.value for row in await store.load(ClusterRow)}
        assert {name: rows[name] for name in "abcd"} == {"a": "old", "b": "", "c": "", "d": ""}

    in_store(engine, play)


def test_a_fence_that_was_never_acquired_holds_off_its_writer(engine: Engine) -> None:
    with pytest.raises(Fenced):
        in_store(engine, lambda store: store.write([cluster("a")], Fence("nobody's", 1)))


def test_epochs_go_on_after_a_restart(engine: Engine) -> None:
    before = in_store(engine, lambda store: store.acquire("scope"))

    async def play(store: MetadataStore) -> None:
        await store.write([cluster("a")], before)
        assert await store.acquire("scope") == Fence("scope", before.epoch + 1)
        with pytest.raises(Fenced, match="scope"):
            await store.write([cluster("a")], before)

    in_store(engine, play)


# Numbers


def test_numbers_are_given_out_once_also_after_a_restart(engine: Engine) -> None:
    async def play(store: MetadataStore) -> list[int]:
        return await asyncio.gather(*(store.reserve("ids", count) for count in (1, 5, 10)), store.reserve("more", 7))

    assert in_store(engine, play) == [0, 1, 6, 0]
    assert in_store(engine, play) == [16, 17, 22, 7]


# The change feed


def test_the_feed_tells_in_order_what_became_of_shared_tables(engine: Engine) -> None:
    async def play(store: MetadataStore) -> None:
        begun = await store.changes_since(-1)
        assert begun.changes is None, "whoever begins to follow loads the tables"
        await store.write([Put(TOPIC), Insert(CONFIG), Put(OFFSET), cluster("a")])
        await store.write([Put(OFFSET), Put(GROUP)])
        first = await store.changes_since(begun.version)
        assert first == News(begun.version + 1, (Put(TOPIC), Put(CONFIG)))
        grown = replace(TOPIC, partitions=4)
        await store.write([Update(TOPIC, grown)])
        await store.write([Delete(ConfigRow, ("topic", "topic")), Delete(TopicRow, ("topic",))])
        second = await store.changes_since(first.version)
        assert second.changes == (Put(grown), Delete(ConfigRow, ("topic", "topic")), Delete(TopicRow, ("topic",)))
        assert (await store.changes_since(begun.version)).changes == (*first.changes, *second.changes)  # type: ignore[misc]
        assert await store.changes_since(second.version) == News(second.version, ())
        assert (await store.changes_since(second.version + 1)).changes is None, "a version that never was"

    in_store(engine, play)


def test_a_write_that_failed_is_not_in_the_feed(engine: Engine) -> None:
    async def play(store: MetadataStore) -> None:
        await store.write([Put(TOPIC)])
        version = (await store.changes_since(-1)).version
        too_large, other = replace(TOPIC, partitions=2**70), replace(TOPIC, partitions=9)
        bad: list[list[Change]] = [[Put(CONFIG), Insert(other)], [Put(too_large)]]
        for changes in bad:
            with pytest.raises((Conflict, InvalidInput)):
                await store.write(changes)
        assert await store.changes_since(version) == News(version, ())

    in_store(engine, play)


def test_the_version_of_the_feed_never_goes_back(engine: Engine) -> None:
    async def play(store: MetadataStore) -> int:
        await store.write([Put(TOPIC)])
        news: News = await store.changes_since(-1)
        return news.version

    versions = [in_store(engine, play) for _ in range(3)]
    assert versions == sorted(set(versions))


def test_who_is_too_far_behind_is_told_to_load_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(store: MetadataStore) -> None:
        versions = []
        for number in range(6):
            await store.write([Put(replace(TOPIC, partitions=number))])
            versions.append((await store.changes_since(-1)).version)
        told = [(await store.changes_since(version)).changes for version in versions]
        assert [None if changes is None else len(changes) for changes in told] == [None, None, 3, 2, 1, 0]

    monkeypatch.setattr(feed, "MOST_KEPT", 3)
    in_store(engine, play)
