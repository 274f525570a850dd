"""The contract of `ObjectStore`, for every store: memory, a directory, and a real S3 server."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.faulty_objects import MemoryObjects
from tests.support.object_server import shared_server
from tidelog.errors import StorageUnavailable
from tidelog.records.batch import ReadBuffer
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.object_stores.ranges import GAP, MOST_BYTES, joined
from tidelog.storage.shared.objects import ObjectMissing, ObjectStore, is_key

Run = Callable[[Callable[[ObjectStore], Awaitable[None]]], None]


@pytest.fixture(params=["memory", "file", "s3"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a test with a new, empty store."""

    def opened() -> ObjectStore:
        match request.param:
            case "memory":
                return MemoryObjects(lambda: time.time_ns() // 1_000_000)
            case "file":
                return open_object_store(f"file://{tmp_path}/objects")
            case _:
                server = shared_server()
                return open_object_store(server.new_url(), server.options)

    def run_it(test: Callable[[ObjectStore], Awaitable[None]]) -> None:
        async def whole() -> None:
            objects = opened()
            async with asyncio.timeout(100):
                await test(objects)
            await objects.close()

        asyncio.run(whole())

    return run_it


def test_what_was_put_is_read(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        parts: list[ReadBuffer] = [b"one", bytearray(b" two"), memoryview(b"- three")[1:], b""]
        await objects.put("b/hour/key", parts)
        assert await objects.read("b/hour/key", [(0, 13)]) == [b"one two three"]
        assert await objects.read("b/hour/key", [(8, 5), (0, 3), (4, 3), (2, 0)]) == [b"three", b"one", b"two", b""]

    run(test)


def test_an_object_of_thousands_of_parts_is_their_concatenation(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        content = random.Random(1).randbytes(300_000)
        parts = [memoryview(content)[at : at + 100] for at in range(0, len(content), 100)]
        await objects.put("many/parts", parts)
        assert await objects.read("many/parts", [(0, len(content))]) == [content]

    run(test)


def test_a_key_is_never_used_twice(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        await objects.put("b/1", [b"first"])
        with pytest.raises(StorageUnavailable, match="b/1: there is an object of this key already"):
            await objects.put("b/1", [b"second"])
        assert await objects.read("b/1", [(0, 5)]) == [b"first"]
        assert [each.key async for each in objects.list("")] == ["b/1"]

    run(test)


def test_of_many_who_put_the_same_key_one_succeeds(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        puts = [objects.put("b/race", [b"%d" % number]) for number in range(3)]
        outcomes = await asyncio.gather(*puts, return_exceptions=True)
        [winner] = [number for number, outcome in enumerate(outcomes) if outcome is None]
        assert all(isinstance(outcome, StorageUnavailable) for outcome in outcomes if outcome is not None)
        assert await objects.read("b/race", [(0, 1)]) == [b"%d" % winner]

    run(test)


def test_a_missing_or_too_short_object_is_told(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        await objects.put("b/short", [b"0123456789"])
        with pytest.raises(ObjectMissing, match="b/none: there is no such object"):
            await objects.read("b/none", [(0, 1)])
        with pytest.raises(ObjectMissing, match="b/none: there is no such object"):
            await objects.read_up_to("b/none", 0, 1)
        for ranges in ([(0, 11)], [(20, 5)], [(0, 3), (5, 10)], [(0, 3), (100, 1)], [(0, 3), (10 << 20, 1)]):
            with pytest.raises(ObjectMissing, match="b/short: the object is shorter than expected"):
                await objects.read("b/short", ranges)

    run(test)


def test_reading_up_to_a_size_stops_at_the_end(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        await objects.put("b/1", [b"0123456789"])
        assert await objects.read_up_to("b/1", 0, 1000) == b"0123456789"
        assert await objects.read_up_to("b/1", 4, 3) == b"456"
        assert await objects.read_up_to("b/1", 8, 3) == b"89"
        for position in (10, 50):
            with pytest.raises(ObjectMissing, match="b/1: the object is shorter than expected"):
                await objects.read_up_to("b/1", position, 3)

    run(test)


def test_ranges_of_a_large_object_in_any_order(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        content = random.Random(2).randbytes(3_000_000)
        await objects.put("b/large", [content])
        ranges = [(2_900_000, 100_000), (0, 10), (5, 10), (2_000_000, 50), (600_000, 700_000), (100, 0), (9, 1)]
        found = await objects.read("b/large", ranges)
        assert found == [content[position : position + size] for position, size in ranges]

    run(test)


def test_objects_are_listed_by_prefix_in_the_order_of_their_keys(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        assert [each async for each in objects.list("")] == []
        before_ms = time.time_ns() // 1_000_000
        keys = ["b/2026111804/a", "b/2026111804/c", "b/2026111805/b", "b/2026111-x", "s/1/0/0-a", "s/1/1/0-b", "t"]
        for key in reversed(keys):
            await objects.put(key, [key.encode()])
        found = [each async for each in objects.list("")]
        assert [each.key for each in found] == sorted(keys)
        assert all(each.size == len(each.key) for each in found)
        assert all(abs(each.modified_ms - before_ms) < 600_000 for each in found)
        for prefix in ("b/", "b/2026111804/", "b/20261118", "b/2026111804/c", "s/1/0", "x/", "t"):
            listed = [each.key async for each in objects.list(prefix)]
            assert listed == sorted(key for key in keys if key.startswith(prefix)), prefix

    run(test)


def test_removed_objects_are_gone_and_missing_ones_are_no_error(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        keys = [f"b/{hour}/{number}" for hour in range(3) for number in range(5)]
        for key in keys:
            await objects.put(key, [b"content"])
        await objects.remove([*keys[:7], "b/none", "x/y/none"])
        await objects.remove(keys[:2])
        await objects.remove([])
        assert [each.key async for each in objects.list("b/")] == keys[7:]
        with pytest.raises(ObjectMissing):
            await objects.read(keys[0], [(0, 1)])
        await objects.put("b/0/again", [b"directories come again"])
        assert len(await objects.read_up_to("b/0/again", 0, 100)) == 22

    run(test)


def test_a_stream_becomes_one_object(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        content = random.Random(3).randbytes(10 << 20)

        async def parts() -> AsyncIterator[ReadBuffer]:
            for at in range(0, len(content), 700_000):
                yield memoryview(content)[at : at + 700_000]

        assert await objects.put_stream("s/large", parts()) == len(content)
        [found] = await objects.read("s/large", [(0, len(content))])
        assert found == content
        assert [(each.key, each.size) async for each in objects.list("s/")] == [("s/large", len(content))]

    run(test)


@pytest.mark.parametrize("fails_after", [0, 3, 9 << 20])
def test_a_stream_whose_source_fails_leaves_no_object(run: Run, fails_after: int) -> None:
    async def test(objects: ObjectStore) -> None:
        async def parts() -> AsyncIterator[ReadBuffer]:
            if fails_after:
                yield bytes(fails_after)
            raise ObjectMissing("the source is gone")

        with pytest.raises(ObjectMissing, match=r"^the source is gone$"):
            await objects.put_stream("s/none", parts())
        with pytest.raises(ObjectMissing, match="s/none: there is no such object"):
            await objects.read("s/none", [(0, 1)])
        assert [each.key async for each in objects.list("s/none")] == []

    run(test)


def test_a_put_that_is_larger_than_one_request(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        piece = random.Random(4).randbytes(1 << 20)
        await objects.put("s/1", [piece] * 17)
        assert await objects.read("s/1", [(0, 100), (16 << 20, 1 << 20)]) == [piece[:100], piece]

    run(test)


def test_objects_of_any_bytes_and_none(run: Run) -> None:
    async def test(objects: ObjectStore) -> None:
        await objects.put("b/empty", [])
        await objects.put("b/zeros", [bytes(1000), os.urandom(10)])
        sizes = {each.key: each.size async for each in objects.list("b/")}
        assert sizes == {"b/empty": 0, "b/zeros": 1010}
        with pytest.raises(ObjectMissing):
            await objects.read("b/empty", [(0, 1)])

    run(test)


def test_keys_stay_below_the_directory() -> None:
    for key in ("b/2026111804/00ff", "s/1/0/00-a", "a.b", "_", "b/x.tmp"):
        assert is_key(key)
    for key in ("", "/", "/a", "a/", "a//b", "..", "a/../b", "a/.b", ".", "a b", "a\nb", "ä", "a\0"):
        assert not is_key(key)


def test_ranges_with_small_gaps_are_fetched_together() -> None:
    assert joined([(0, 10), (20, 10)]) == [(0, 30, [0, 1])]
    assert joined([(20, 10), (0, 10), (5, 2)]) == [(0, 30, [1, 2, 0])]
    assert joined([(0, 10), (10 + GAP, 5)]) == [(0, 15 + GAP, [0, 1])]
    assert joined([(0, 10), (11 + GAP, 5)]) == [(0, 10, [0]), (11 + GAP, 5, [1])]
    assert joined([(0, MOST_BYTES), (MOST_BYTES, 1)]) == [(0, MOST_BYTES, [0]), (MOST_BYTES, 1, [1])]
    assert joined([(0, 2 * MOST_BYTES), (5, 1)]) == [(0, 2 * MOST_BYTES, [0, 1])]
    assert joined([(5, 0)]) == []
    assert joined([]) == []
