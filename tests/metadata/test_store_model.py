"""Each engine against plain dicts, over random writes at once, failures and reopening."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.metadata.engines import ENGINES, EXAMPLES
from tests.metadata.rows import CHANGES, ROWS, Model
from tidelog.errors import InvalidInput
from tidelog.metadata.rows import TABLES, ClusterRow, GroupRow, Row
from tidelog.metadata.store import Delete, MetadataStore, Put, key_of

IMPOSSIBLE = [
    Put(GroupRow("g", "classic", "consumer", None, 2**70, None, "Empty", 0)),
    Put(ClusterRow("\ud800", "text that is not Unicode")),
    Put(ClusterRow("name", None)),  # type: ignore[arg-type]
]
ONE_CALLER = st.lists(CHANGES | st.sampled_from(IMPOSSIBLE), max_size=4)
AT_ONCE = st.lists(ONE_CALLER, max_size=6)


async def contents(store: MetadataStore) -> dict[type[Row], list[Row]]:
    return {table: await store.load(table) for table in TABLES}


@pytest.mark.parametrize("name", ENGINES)
def test_the_store_holds_what_was_put_and_not_deleted_since(name: str) -> None:
    async def play(directory: str, rounds: list[list[list[Put | Delete]]]) -> None:
        engine = ENGINES[name](Path(directory))
        model = Model()
        store = await engine.open()
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
                store = await engine.open()
            assert_same(await contents(store), model)
        await store.close()

    @given(rounds=st.lists(AT_ONCE, max_size=5))
    @settings(max_examples=EXAMPLES[name])
    def check(rounds: list[list[list[Put | Delete]]]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(play(directory, rounds))

    check()


@pytest.mark.parametrize("name", ENGINES)
def test_every_row_comes_back_as_it_was(name: str) -> None:
    async def play(directory: str, rows: Sequence[Row]) -> None:
        engine = ENGINES[name](Path(directory))
        model = Model()
        store = await engine.open()
        await store.write([Put(row) for row in rows])
        for row in rows:
            model.apply(Put(row))
        await store.close()
        store = await engine.open()
        assert_same(await contents(store), model)
        await store.close()

    @given(rows=st.lists(ROWS, max_size=20))
    @settings(max_examples=EXAMPLES[name])
    def check(rows: Sequence[Row]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(play(directory, rows))

    check()


def assert_same(found: dict[type[Row], list[Row]], model: Model) -> None:
    for table, rows in found.items():
        assert {key_of(row): row for row in rows} == model.rows[table]
        assert len(rows) == len(model.rows[table])
