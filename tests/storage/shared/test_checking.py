"""A check of a cluster's storage: it finds what is planted, and nothing while brokers write."""

import asyncio
from dataclasses import replace

import pytest

from tests.storage.shared.test_compaction import compact, compacted_log, without_kernels, write_pairs  # noqa: F401
from tests.storage.shared.test_log import NO_TAIL, A, B, World, append, opened, play
from tests.storage.shared.test_store import MINUTE, SMALL_MERGES, Clock, collecting, write
from tests.support.fake_inventory import FakeInventory
from tests.support.logs import NOW_MS
from tidelog.storage.shared.checking import Checker, Count, Finding, Tally, findings_in
from tidelog.storage.shared.garbage import GarbageSettings
from tidelog.storage.shared.inventory import KnownObject, LogState, UsedRange
from tidelog.storage.shared.order import LogId

SETTINGS = GarbageSettings(grace_ms=10 * MINUTE, orphan_ms=60 * MINUTE)


async def check(
    world: World, *, deep: bool = False, now_ms: int = NOW_MS, inventory: FakeInventory | None = None
) -> tuple[list[Finding], Tally]:
    found: list[Finding] = []
    checker = Checker(
        inventory or FakeInventory(world.database),
        world.objects,
        SETTINGS,
        compacted=(),
        clock=lambda: now_ms,
        found=found.append,
    )
    return found, await checker.check(deep=deep)


async def two_logs(world: World) -> list[str]:
    """Bundles, and a segment. Returns the keys in use; the first is that of a bundle that both logs use."""
    store = world.broker(NO_TAIL, merging=SMALL_MERGES)
    a, b = await opened(store, A), await opened(store, B)
    for number in range(10):
        await asyncio.gather(append(a, b"a%d" % number), append(b, b"b%d" % number))
    while await store.merger.merge(b):
        pass
    await asyncio.gather(append(a, b"last a"), append(b, b"last b"))
    assert a.extents[-1].key == b.extents[-1].key
    keys = {extent.key for log in (a, b) for extent in log.extents}
    return [a.extents[-1].key, *sorted(keys - {a.extents[-1].key})]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    async def story(world: World) -> None:
        keys = await two_logs(world)
        assert {key[:2] for key in keys} == {"b/", "s/"}
        for deep in (False, True):
            found, tally = await check(world, deep=deep)
            assert found == []
            assert (tally.logs, tally.errors, tally.notes) == (2, 0, 0)
            assert tally.used == Count(len(keys), sum(len(world.objects.objects[key]) for key in keys))

    play(story)


@pytest.mark.parametrize("prefix", ["b/", "s/"])
def test_a_missing_object_is_told_with_the_offsets_that_are_lost(prefix: str) -> None:
    async def story(world: World) -> None:
        key = next(key for key in await two_logs(world) if key.startswith(prefix))
        content = world.objects.objects[key]
        world.objects.lose(key)
        for deep in (False, True):
            found, tally = await check(world, deep=deep)
            assert {(each.kind, each.key) for each in found} == {("missing", key)}
            assert tally.errors == len(found)
            assert all(each.topic in ("a", "b") and each.base_offset is not None for each in found)
            assert "bring the object back" in found[0].advice
        world.objects.objects[key] = content  # the advice
        assert (await check(world, deep=True))[0] == []

    play(story)


def test_an_object_that_is_too_short_is_told() -> None:
    async def story(world: World) -> None:
        key, *_ = await two_logs(world)
        content = world.objects.objects[key]
        for size in (10, len(content) - 1):
            world.objects.objects[key] = content[:size]
            found, _ = await check(world)
            assert {(each.kind, each.key) for each in found} == {("short", key)}
            assert f"has {size:,} of {len(content):,} bytes" in found[0].what

    play(story)


@pytest.mark.parametrize("prefix", ["b/", "s/"])
def test_a_deep_check_finds_every_flipped_byte(prefix: str) -> None:
    async def story(world: World) -> None:
        key = next(key for key in await two_logs(world) if key.startswith(prefix))
        for position in range(len(world.objects.objects[key])):
            world.objects.damage(key, position)
            assert (await check(world))[0] == [], "only a deep check reads"
            found, _ = await check(world, deep=True)
            assert found, f"position {position} was not found"
            assert {(each.kind, each.key, each.is_error) for each in found} == {("damaged", key, True)}
            world.objects.damage(key, position)

    play(story)


def test_garbage_is_counted_by_what_becomes_of_it() -> None:
    async def story(world: World) -> None:
        clock = Clock()
        store = collecting(world, clock)
        log = await opened(store)
        await write(log, 10)
        while await store.merger.merge(log):
            pass
        dead = len(world.objects.objects) - len({extent.key for extent in log.extents})
        assert dead
        world.objects.objects["b/2023111422/orphan"] = b"12345"
        world.objects.modified_ms["b/2023111422/orphan"] = NOW_MS
        for minutes, removable, orphans, recent in ((0, 0, 0, dead + 1), (11, dead, 0, 1), (61, dead, 1, 0)):
            found, tally = await check(world, now_ms=NOW_MS + minutes * MINUTE)
            assert found == []
            counts = (tally.removable.objects, tally.orphans.objects, tally.recent.objects)
            assert counts == (removable, orphans, recent), minutes
        assert tally.orphans == Count(1, 5)

    play(story)


def test_what_changes_during_a_check_is_no_finding() -> None:
    """After each page that the check reads, everything is merged and the garbage removed."""

    async def story(world: World) -> None:
        clock = Clock()
        store = world.broker(
            NO_TAIL, clock=clock, merging=SMALL_MERGES, collecting=GarbageSettings(grace_ms=-1, orphan_ms=60 * MINUTE)
        )
        log = await opened(store)
        changes = 0

        class Changing(FakeInventory):
            async def objects(self, after: str, limit: int) -> list[KnownObject]:
                nonlocal changes
                page = await super().objects(after, min(limit, 3))
                await write(log, 5)
                while await store.merger.merge(log):
                    changes += 1
                await store.garbage.collect()
                return page if after < "t" else []

        await write(log, 10)
        for deep in (False, True):
            found, tally = await check(world, deep=deep, inventory=Changing(world.database))
            assert found == []
            assert tally.logs == 1
        assert changes

    play(story)


def test_a_log_that_was_compacted_is_found_well_also_if_its_topic_is_not_compacted_any_more() -> None:
    async def story(world: World) -> None:
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, *((b"key %d" % (number % 3), b"value") for number in range(12)))
        await write_pairs(log, (b"another", b"value"))
        await compact(store, log)
        assert log.extents[0].base_offset > 0
        for deep in (False, True):
            assert (await check(world, deep=deep))[0] == []

    play(story)


def extents(*ranges: tuple[int, int], key: str = "b/x") -> list[UsedRange]:
    return [UsedRange("t", b"id", 0, base, last, key, 0, 10) for base, last in ranges]


LOG = LogState(LogId(1), "t", 0, 5, 30, 0, extents((0, 9), (10, 19), (20, 29)))


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (LOG, []),
        (LOG._replace(start_offset=30, extents=[]), []),
        (LOG._replace(extents=extents((0, 9), (20, 29))), [("gap", 10, 19)]),
        (LOG._replace(extents=extents((10, 19), (20, 29))), [("gap", 5, 9)]),
        (LOG._replace(extents=extents((0, 9), (10, 19))), [("gap", 20, 29)]),
        (LOG._replace(extents=[]), [("gap", 5, 29)]),
        (LOG._replace(extents=extents((0, 9), (8, 29))), [("overlap", 8, 29)]),
        (LOG._replace(high_watermark=25), [("overlap", 20, 29)]),
        (LOG._replace(extents=extents((0, 29), key="")), [("unknown-object", 0, 29)]),
    ],
)
def test_extents_must_be_contiguous_from_the_start_to_the_high_watermark(
    log: LogState, found: list[tuple[str, int, int]]
) -> None:
    findings = findings_in(log, may_have_gaps=False)
    assert [(each.kind, each.base_offset, each.last_offset) for each in findings] == found
    assert all(each.is_error for each in findings)


def test_compaction_may_leave_gaps() -> None:
    gap = LOG._replace(extents=extents((6, 9), (20, 25)))
    assert findings_in(gap, may_have_gaps=True) == []
    assert findings_in(gap._replace(clean_offset=30), may_have_gaps=False) == []
    assert len(findings_in(gap._replace(clean_offset=20), may_have_gaps=False)) == 1
    beside = LOG._replace(extents=[*extents((0, 9), key="s/x"), *extents((20, 29))])
    (note,) = findings_in(beside, may_have_gaps=False)
    assert not note.is_error
    assert replace(note, is_error=True).fields()["severity"] == "error"
