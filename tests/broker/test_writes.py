"""Writes on their way into the store: told in order, written again while their outcome is unknown, and no more when
somebody else owns the rows."""

import asyncio
from typing import cast

import pytest
import structlog

from tests.broker.held_store import HeldStore
from tests.broker.test_shell import in_loop
from tests.support.metadata_store import Database, FakeStore, Fault, unknown
from tidelog.broker import writes as module
from tidelog.broker.writes import Then, Writes
from tidelog.errors import (
    Conflict,
    Fenced,
    InvalidInput,
    OutcomeUnknown,
    StorageFull,
    StorageUnavailable,
    TidelogError,
)
from tidelog.metadata.rows import ClusterRow
from tidelog.metadata.store import Change, Delete, Fence, Insert, MetadataStore, Put

ROW = Put(ClusterRow("name", "value"))


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPEAT_S", 0.002)


def put(name: str, value: str = "") -> list[Change]:
    return [Put(ClusterRow(name, value))]


class Told:
    """What writers were told, in order."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, str]] = []

    def of(self, name: str) -> Then:
        def then(error: TidelogError | None) -> None:
            self.outcomes.append((name, type(error).__name__ if error is not None else "written"))

        return then


def facts(database: Database) -> dict[str, str]:
    return {row.name: row.value for row in database.table(ClusterRow)}


def test_a_write_is_told_of_when_it_is_durable_or_why_it_is_not() -> None:
    store, told = HeldStore(), list[str]()

    def then(error: TidelogError | None) -> None:
        told.append(str(error))

    async def run() -> None:
        writes = Writes(cast("MetadataStore", store))
        for _ in range(3):
            writes.write([ROW], then)
        assert told == []
        store.asked[0][1].settle(None)
        assert told == ["None"]
        store.asked[1][1].fail(StorageUnavailable("no space"))
        assert told[1:] == ["no space"]
        with structlog.testing.capture_logs() as logged:
            store.asked[2][1].fail(ValueError("a bug"))
        assert "a bug" in told[2], "whoever waits hears of it nevertheless"
        assert [(each["event"], each["log_level"]) for each in logged] == [
            ("a metadata write failed because of a bug", "error")
        ]
        await writes.drain()

    assert in_loop(run) == []


def test_draining_waits_for_writes_that_others_led_to() -> None:
    store = HeldStore()

    async def run() -> None:
        writes = Writes(cast("MetadataStore", store))
        writes.write([ROW], lambda _: writes.write([ROW], lambda _: None))
        drained = asyncio.ensure_future(writes.drain())
        await asyncio.sleep(0)
        store.asked[0][1].settle(None)
        await asyncio.sleep(0)
        assert not drained.done()
        store.asked[1][1].settle(None)
        await drained

    assert in_loop(run) == []


# The outcome is unknown


@pytest.mark.parametrize("takes_effect", [True, False])
def test_what_comes_after_an_unknown_outcome_is_told_in_order_when_it_is_decided(takes_effect: bool) -> None:
    async def run() -> None:
        store, told = FakeStore(), Told()
        store.faults.extend([unknown(takes_effect=takes_effect), None, Fault(StorageFull("full"))])
        writes = Writes(store)
        for number in range(4):
            writes.write(put("same", str(number)), told.of(str(number)))
        await writes.drain()
        assert told.outcomes == [("0", "written"), ("1", "written"), ("2", "StorageFull"), ("3", "written")]
        again = [change for number in (0, 1, 3) for change in put("same", str(number))]
        assert store.written[-1] == again, (
            "all that may be there, in one write: no state that was replaced comes back"
        )
        assert facts(store.database) == {"same": "3"}

    assert in_loop(run) == []


def test_it_is_written_again_until_the_store_tells_and_nothing_else_meanwhile() -> None:
    async def run() -> None:
        store, told = FakeStore(), Told()
        store.always = unknown(takes_effect=False)
        writes = Writes(store)
        with structlog.testing.capture_logs() as logged:
            writes.write(put("first"), told.of("first"))
            while len(store.written) < 5:
                await asyncio.sleep(0.001)
            writes.write(put("second"), told.of("second"))
            assert told.outcomes == []
            await asyncio.sleep(0)
            assert told.outcomes == [("second", "StorageUnavailable")], "not within the call, but at once"
            store.always = Fault(StorageUnavailable("down: it tells nothing of the first attempts"))
            attempts = len(store.written)
            while len(store.written) < attempts + 3:
                await asyncio.sleep(0.001)
            store.always = None
            while len(told.outcomes) < 2:
                await asyncio.sleep(0.001)
        assert told.outcomes[1:] == [("first", "written")]
        assert facts(store.database) == {"first": ""}
        assert [each["log_level"] for each in logged] == ["warning", "info"], "said once"
        writes.write(put("third"), told.of("third"))
        await writes.drain()
        assert told.outcomes[2:] == [("third", "written")]

    assert in_loop(run) == []


def test_what_cannot_be_written_at_all_was_not_written() -> None:
    async def run() -> None:
        store, told = FakeStore(), Told()
        store.faults.extend([unknown(takes_effect=False), Fault(InvalidInput("no text"))])
        writes = Writes(store)
        writes.write(put("a"), told.of("a"))
        await writes.drain()
        assert told.outcomes == [("a", "InvalidInput")]

    assert in_loop(run) == []


def test_draining_tries_once_more_and_then_says_that_nobody_knows() -> None:
    async def run() -> None:
        store, told = FakeStore(), Told()
        store.faults.append(unknown(takes_effect=True))
        store.always = Fault(StorageUnavailable("down"))
        writes = Writes(store)
        writes.write(put("a"), told.of("a"))
        await writes.drain()
        assert told.outcomes == [("a", "OutcomeUnknown")]
        assert len(store.written) == 2

    assert in_loop(run) == []


# Those that are decided one by one


@pytest.mark.parametrize("takes_effect", [True, False])
@pytest.mark.parametrize("change", [*put("a"), Insert(ClusterRow("a", "")), Delete(ClusterRow, ("b",))])
def test_a_change_is_decided_whatever_its_first_attempts_did(change: Change, takes_effect: bool) -> None:
    async def run() -> None:
        store = FakeStore()
        store.database.write(put("b"))
        store.faults.extend(
            [unknown(takes_effect=takes_effect), Fault(StorageFull("full")), unknown(takes_effect=True)]
        )
        await Writes(store).decided([change])
        expected = Database()
        expected.write([*put("b"), change])
        assert facts(store.database) == facts(expected)
        assert len(store.written) == 4

    assert in_loop(run) == []


@pytest.mark.parametrize("error", [StorageFull("full"), Conflict("another"), InvalidInput("no text")])
def test_a_change_that_failed_is_not_tried_again(error: TidelogError) -> None:
    async def run() -> None:
        store = FakeStore()
        store.always = Fault(error)
        with pytest.raises(type(error)):
            await Writes(store).decided(put("a"))
        assert len(store.written) == 1

    assert in_loop(run) == []


def test_an_insert_that_meets_anothers_row_after_an_unknown_outcome_is_a_conflict() -> None:
    async def run() -> None:
        store = FakeStore()
        store.faults.append(unknown(takes_effect=False))
        deciding = asyncio.ensure_future(Writes(store).decided([Insert(ClusterRow("a", "mine"))]))
        while not store.written:
            await asyncio.sleep(0)
        store.database.write([Insert(ClusterRow("a", "theirs"))])
        with pytest.raises(Conflict):
            await deciding
        assert facts(store.database) == {"a": "theirs"}

    assert in_loop(run) == []


def test_a_store_that_is_closed_before_it_tells_leaves_the_outcome_unknown() -> None:
    async def run() -> None:
        store = FakeStore()
        store.always = unknown(takes_effect=True)
        deciding = asyncio.ensure_future(Writes(store).decided(put("a")))
        while not store.written:
            await asyncio.sleep(0)
        await store.close()
        with pytest.raises(OutcomeUnknown):
            await deciding
        with pytest.raises(StorageUnavailable, match="closed"):
            await Writes(store).decided(put("b"))

    assert in_loop(run) == []


# Fenced


def test_an_owner_writes_with_its_fence_until_another_takes_over_and_never_after() -> None:
    async def run() -> None:
        store, told = FakeStore(), Told()
        mine = await store.acquire("scope")
        writes = Writes(store, mine)
        writes.write(put("a"), told.of("a"))
        await writes.decided(put("b"))
        assert store.fences == [mine, mine]
        await FakeStore(store.database).acquire("scope")
        writes.write(put("c"), told.of("c"))
        writes.write(put("d"), told.of("d"))
        while len(told.outcomes) < 3:
            await asyncio.sleep(0)
        attempts = len(store.written)
        writes.write(put("e"), told.of("e"))
        with pytest.raises(Fenced):
            await writes.decided(put("f"))
        await writes.drain()
        assert told.outcomes == [("a", "written"), ("c", "Fenced"), ("d", "Fenced"), ("e", "Fenced")]
        assert len(store.written) == attempts, "it does not even ask"
        assert facts(store.database) == {"a": "", "b": ""}

    assert in_loop(run) == []


def test_who_is_fenced_while_an_outcome_is_unknown_does_not_take_it_for_a_failure() -> None:
    """What was prepared for it must stay: it may be in use by the next owner."""

    async def run() -> None:
        store, told = FakeStore(), Told()
        writes = Writes(store, Fence("scope", 0))
        store.faults.extend([unknown(takes_effect=True)] * 2)
        writes.write(put("a"), told.of("a"))
        deciding = asyncio.ensure_future(writes.decided(put("b")))
        while len(store.written) < 2:
            await asyncio.sleep(0)
        await FakeStore(store.database).acquire("scope")
        with pytest.raises(OutcomeUnknown):
            await deciding
        while not told.outcomes:
            await asyncio.sleep(0)
        assert told.outcomes == [("a", "Fenced")]
        assert facts(store.database) == {"a": "", "b": ""}

    assert in_loop(run) == []


def test_who_is_fenced_does_not_try_again_to_write_what_is_undecided() -> None:
    async def run() -> None:
        store, told = FakeStore(), Told()
        writes = Writes(store, Fence("scope", 0))
        store.faults.extend([unknown(takes_effect=False), Fault(Fenced("scope is at epoch 1"))])
        writes.write(put("a"), told.of("a"))
        writes.write(put("b"), told.of("b"))
        while len(told.outcomes) < 2:
            await asyncio.sleep(0.001)
        assert told.outcomes == [("a", "Fenced"), ("b", "Fenced")]
        assert len(store.written) == 2

    assert in_loop(run) == []


def test_a_listener_with_a_bug_keeps_no_other_from_being_told() -> None:
    async def run() -> None:
        store, told = FakeStore(), Told()

        def bug(_error: TidelogError | None) -> None:
            raise ValueError("not foreseen")

        store.faults.append(unknown(takes_effect=True))
        writes = Writes(store)
        writes.write(put("a"), bug)
        writes.write(put("b"), told.of("b"))
        await writes.drain()
        assert told.outcomes == [("b", "written")]

    assert len(in_loop(run)) == 1
