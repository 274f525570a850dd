"""Any row that a table can hold, and what the store should have after some changes."""

from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_type_hints

import hypothesis.strategies as st

from tidelog.metadata.rows import TABLES, Row
from tidelog.metadata.store import Delete, Put, key_of

INT64 = st.integers(-(2**63), 2**63 - 1)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(["", "a", "b"]) | st.text(max_size=8),
    int: st.integers(0, 2) | INT64,
    bytes: st.binary(max_size=20),
    bool: st.booleans(),
    NoneType: st.none(),
}


def value_of(hint: object) -> st.SearchStrategy[Any]:
    return st.one_of(*(VALUES[kind] for kind in get_args(hint) or (hint,)))


def rows_of(table: type[Row]) -> st.SearchStrategy[Row]:
    hints = get_type_hints(table)
    return st.builds(table, **{field.name: value_of(hints[field.name]) for field in fields(table)})


def keys_of(table: type[Row]) -> st.SearchStrategy[tuple[Any, ...]]:
    hints = get_type_hints(table)
    return st.integers(0, len(table.KEY)).flatmap(
        lambda length: st.tuples(*(value_of(hints[name]) for name in table.KEY[:length]))
    )


def deletes_of(table: type[Row]) -> st.SearchStrategy[Delete]:
    return st.builds(Delete, st.just(table), keys_of(table))


ROWS = st.sampled_from(TABLES).flatmap(rows_of)
CHANGES: st.SearchStrategy[Put | Delete] = ROWS.map(Put) | st.sampled_from(TABLES).flatmap(deletes_of)


class Model:
    def __init__(self) -> None:
        self.rows: dict[type[Row], dict[tuple[Any, ...], Row]] = {table: {} for table in TABLES}

    def apply(self, change: Put | Delete) -> None:
        if isinstance(change, Put):
            self.rows[type(change.row)][key_of(change.row)] = change.row
        else:
            held = self.rows[change.table]
            for key in [key for key in held if key[: len(change.key)] == change.key]:
                del held[key]
