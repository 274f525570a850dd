"""Rows in which memory is ahead of the store: they go with every write until that very state of them is durable."""

import random
from collections.abc import Hashable

import pytest

from tidelog.broker.coordination.ledger import Ledger, Stamp
from tidelog.metadata.rows import ClusterRow
from tidelog.metadata.store import Change, Put


def fact(name: str, value: object) -> Put:
    return Put(ClusterRow(name, str(value)))


def rows(stamps: list[Stamp]) -> list[tuple[str, Hashable]]:
    return [(stamp.owner, stamp.row) for stamp in stamps]


class Memory:
    """What rows are now; rendered as they are stored."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.values: dict[tuple[str, Hashable], int] = {}

    def change(self, owner: str, row: str) -> None:
        self.values[owner, row] = self.values.get((owner, row), 0) + 1
        self.ledger.touch(owner, row)

    def render(self, owner: str, row: Hashable) -> Change:
        return fact(f"{owner}/{row}", self.values[owner, row])

    def collect(self, *owners: str) -> list[Stamp]:
        return self.ledger.collect(owners, self.render)


def test_an_outcome_carries_all_marked_rows_of_its_owners_in_their_order_also_those_under_way() -> None:
    memory = Memory()
    for owner, row in (("b", "1"), ("a", "1"), ("a", "2"), ("c", "1")):
        memory.change(owner, row)
    assert rows(memory.collect("a", "b", "nobody")) == [("a", "1"), ("a", "2"), ("b", "1")]
    memory.change("a", "3")
    assert rows(memory.collect("a")) == [("a", "1"), ("a", "2"), ("a", "3")]
    assert memory.ledger.owners() == ["b", "a", "c"]


def test_a_row_is_settled_by_a_write_of_its_present_state_only() -> None:
    memory, ledger = Memory(), Ledger()
    memory.change("a", "1")
    first = memory.collect("a")
    memory.change("a", "1")
    second = memory.collect("a")
    memory.ledger.settle(first)
    assert "a" in memory.ledger
    memory.ledger.settle(second)
    assert "a" not in memory.ledger
    assert [stamp.change for stamp in first + second] == [fact("a/1", 1), fact("a/1", 2)]
    ledger.put("a", "1", fact("x", 1))
    old = ledger.collect(["a"])
    ledger.put("a", "1", fact("x", 1))  # equal, but said anew
    ledger.settle(old)
    assert ledger.is_marked("a", "1")


def test_what_is_touched_is_rendered_as_it_is_when_it_is_collected() -> None:
    memory = Memory()
    memory.change("a", "1")
    memory.values["a", "1"] = 77
    assert [stamp.change for stamp in memory.collect("a")] == [fact("a/1", 77)]


def test_owners_wait_while_no_write_under_way_carries_their_rows_as_they_are() -> None:
    memory, ledger = Memory(), Memory().ledger
    ledger = memory.ledger
    memory.change("a", "1")
    memory.change("b", "1")
    assert ledger.waiting() == ["a", "b"]
    under_way = memory.collect("a")
    assert ledger.waiting() == ["b"]
    memory.change("a", "1")
    assert ledger.waiting() == ["b", "a"]
    newer = memory.collect("a")
    ledger.failed(under_way)
    assert ledger.waiting() == ["b", "a"], "as far as anybody knows"
    ledger.settle(newer)
    assert ledger.waiting() == ["b"]
    ledger.failed(under_way)
    assert ledger.waiting() == ["b"], "what a later write has stored does not wait"


def test_what_is_withdrawn_or_forgotten_is_not_written() -> None:
    ledger = Ledger()
    ledger.put("a", "1", fact("x", 1))
    ledger.put("a", "2", fact("x", 2))
    ledger.withdraw("a", "1")
    ledger.withdraw("a", "unknown")
    ledger.withdraw("unknown", "1")
    assert rows(ledger.collect(["a"])) == [("a", "2")]
    ledger.withdraw("a", "2")
    assert "a" not in ledger
    ledger.put("b", "1", fact("x", 1))
    stamps = ledger.collect(["b"])
    ledger.forget("b")
    ledger.settle(stamps)
    ledger.failed(stamps)
    assert (ledger.owners(), ledger.waiting()) == ([], [])


@pytest.mark.parametrize("seed", range(50))
def test_whichever_writes_fail_the_store_has_a_state_of_memory_and_in_the_end_the_last(seed: int) -> None:
    """Rows of an owner change together; a write brings all of them, or nothing."""
    rng = random.Random(seed)
    memory, store, under_way = Memory(), dict[str, int](), list[list[Stamp]]()
    states: dict[str, list[dict[str, int]]] = {owner: [{}] for owner in "ab"}

    def finish(stamps: list[Stamp], *, succeeds: bool) -> None:
        if not succeeds:
            memory.ledger.failed(stamps)
            return
        for stamp in stamps:
            assert isinstance(stamp.change, Put)
            assert isinstance(stamp.change.row, ClusterRow)
            store[stamp.change.row.name] = int(stamp.change.row.value)
        memory.ledger.settle(stamps)

    for _ in range(60):
        owner = rng.choice("ab")
        for row in rng.sample("123", rng.randint(1, 3)):
            memory.change(owner, row)
        states[owner].append({f"{o}/{row}": value for (o, row), value in memory.values.items() if o == owner})
        under_way.append(memory.collect(owner))
        while under_way and rng.random() < 0.6:  # they return in order
            finish(under_way.pop(0), succeeds=rng.random() < 0.6)
        for each in "ab":
            assert {name: value for name, value in store.items() if name[0] == each} in states[each]
    for stamps in under_way:
        finish(stamps, succeeds=False)
    finish(memory.collect(*memory.ledger.waiting()), succeeds=True)
    assert memory.ledger.owners() == []
    assert store == states["a"][-1] | states["b"][-1]
