"""The store against plain dicts, over random writes at once, failures and reopening."""

import asyncio
import tempfile
from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis import given, settings

from tests.metadata.rows import CHANGES, ROWS, Model, key_of
from tidelog.errors import InvalidInput
from tidelog.metadata.rows import TABLES, ClusterRow, GroupRow, Row
from tidelog.metadata.sqlite import SqliteStore
from tidelog.metadata.store import Change, Put

IMPOSSIBLE = [
    Put(GroupRow("g", "classic", "consumer", None, 2**70, None, "Empty", 0)),
    Put(ClusterRow("\ud800", "text that is not Unicode")),
    Put(ClusterRow("name", None)),  # type: ignore[arg-type]
]
ONE_CALLER = st.lists(CHANGES | st.sampled_from(IMPOSSIBLE), max_size=4)
AT_ONCE = st.lists(ONE_CALLER, max_size=6)


async def contents(store: SqliteStore) -> dict[type[Row], list[Row]]:
    return {table: await store.load(table) for table in TABLES}


@given(st.lists(AT_ONCE, max_size=5))
@settings(max_examples=40, deadline=None)
def test_the_store_holds_what_was_put_and_not_deleted_since(rounds: list[list[list[Change]]]) -> None:
    async def play(path: str) -> None:
        model = Model()
        store = await SqliteStore.open(path)
        for number, callers in enumerate(rounds):
            outcomes = await asyncio.gather(*(store.write(changes) for changes in callers), return_exceptions=True)
            for changes, outcome in zip(callers, outcomes, strict=True):
                if any(change in IMPOSSIBLE for change in changes):
                    assert isinstance(outcome, InvalidInput)
                    continue
                assert outcome is None
                for change in changes:
                    model.apply(change)
            if number % 2:
                await store.close()
                store = await SqliteStore.open(path)
            assert_same(await contents(store), model)
        await store.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(play(f"{directory}/metadata.sqlite"))


@given(st.lists(ROWS, max_size=20))
@settings(max_examples=25, deadline=None)
def test_every_row_comes_back_as_it_was(rows: Sequence[Row]) -> None:
    async def play(path: str) -> None:
        model = Model()
        store = await SqliteStore.open(path)
        await store.write([Put(row) for row in rows])
        for row in rows:
            model.apply(Put(row))
        await store.close()
        store = await SqliteStore.open(path)
        assert_same(await contents(store), model)
        await store.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(play(f"{directory}/metadata.sqlite"))


def assert_same(found: dict[type[Row], list[Row]], model: Model) -> None:
    for table, rows in found.items():
        assert {key_of(row): row for row in rows} == model.rows[table]
        assert len(rows) == len(model.rows[table])
