"""The block cache: what it keeps, what it fetches, and what happens to readers when fetching fails."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from tests.support.faulty_objects import Fault, MemoryObjects
from tidelog.errors import LogClosed, StorageUnavailable
from tidelog.storage.shared.blocks import COLD_REQUESTS, HOT_REQUESTS, BlockCache
from tidelog.storage.shared.objects import ObjectMissing

BLOCK = 1024
OVERHEAD = 512


def content_of(key: str, size: int) -> bytes:
    return (key.encode() + b"-%d-" % size).ljust(7, b".") * (size // 7 + 1)


def store(**sizes: int) -> MemoryObjects:
    objects = MemoryObjects()
    for key, size in sizes.items():
        objects.objects[key] = content_of(key, size)[:size]
    return objects


def cache_of(objects: MemoryObjects, blocks: int = 4) -> BlockCache:
    return BlockCache(objects, blocks * (BLOCK + OVERHEAD), block_size=BLOCK)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


def run(test: Callable[[], Coroutine[object, object, None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(whole())


async def read(cache: BlockCache, key: str, position: int, size: int, *, cold: bool = False) -> bytes:
    return b"".join(await cache.read(key, position, size, cold=cold))


def test_ranges_are_read_across_blocks_and_then_found_in_memory() -> None:
    async def test() -> None:
        objects = store(a=5000)
        cache = cache_of(objects, 8)
        whole = objects.objects["a"]
        for position, size in ((0, 1), (0, 5000), (1000, 48), (1023, 2), (4096, 904), (1024, 1024), (4999, 1)):
            assert cache.cached("a", position, size) is None or position or size == 1
            assert await read(cache, "a", position, size) == whole[position : position + size]
            parts = cache.cached("a", position, size)
            assert parts is not None
            assert b"".join(parts) == whole[position : position + size]
        assert sum(size for _, _, size in objects.ranges) == 5000
        await cache.close()

    run(test)


def test_a_whole_block_is_given_without_copying() -> None:
    async def test() -> None:
        objects = store(a=500)
        cache = cache_of(objects)
        [first] = await cache.read("a", 0, 500)
        [again] = await cache.read("a", 0, 500)
        assert again is first
        [part] = await cache.read("a", 10, 20)
        assert isinstance(part, memoryview)
        assert part.obj is first
        await cache.close()

    run(test)


def test_concurrent_readers_share_one_request() -> None:
    async def test() -> None:
        objects = store(a=1000)
        cache = cache_of(objects)
        objects.fail("read", Fault.HANG)
        readers = [asyncio.create_task(read(cache, "a", number, 100)) for number in range(20)]
        await until(lambda: objects.hanging)
        objects.release()
        found = await asyncio.gather(*readers)
        assert found == [objects.objects["a"][number : number + 100] for number in range(20)]
        assert objects.reads == 1
        await cache.close()

    run(test)


def test_a_cancelled_reader_leaves_the_request_to_the_others() -> None:
    async def test() -> None:
        objects = store(a=1000)
        cache = cache_of(objects)
        objects.fail("read", Fault.HANG)
        first, second = (asyncio.create_task(read(cache, "a", 0, 100)) for _ in range(2))
        await until(lambda: objects.hanging)
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        objects.release()
        assert await second == objects.objects["a"][:100]
        assert objects.reads == 1
        await cache.close()

    run(test)


def test_a_request_whose_only_reader_is_cancelled_still_fills_the_cache() -> None:
    async def test() -> None:
        objects = store(a=1000)
        cache = cache_of(objects)
        objects.fail("read", Fault.HANG)
        reader = asyncio.create_task(read(cache, "a", 0, 100))
        await until(lambda: objects.hanging)
        reader.cancel()
        objects.release()
        await until(lambda: cache.cached("a", 0, 100))
        await cache.close()

    run(test)


def test_a_failed_request_fails_each_reader_with_its_own_error_and_is_not_remembered() -> None:
    async def test() -> None:
        objects = store(a=1000)
        cache = cache_of(objects)
        objects.fail("read", Fault.UNAVAILABLE)
        failed = await asyncio.gather(*(read(cache, "a", 0, 100) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(error, StorageUnavailable) for error in failed)
        assert len(set(map(id, failed))) == 3
        assert objects.reads == 1
        assert await read(cache, "a", 0, 100) == objects.objects["a"][:100]
        await cache.close()

    run(test)


def test_missing_and_truncated_objects_are_told_and_not_cached() -> None:
    async def test() -> None:
        objects = store(a=1000, b=3000)
        cache = cache_of(objects, 8)
        objects.lose("a")
        with pytest.raises(ObjectMissing, match="a: there is no such object"):
            await read(cache, "a", 0, 100)
        objects.truncate("b", 1500)
        assert await read(cache, "b", 0, 1500) == objects.objects["b"]
        for _ in range(2):
            with pytest.raises(ObjectMissing, match="b: the object ends before position 1600"):
                await read(cache, "b", 1400, 200)
        with pytest.raises(ObjectMissing):
            await read(cache, "b", 2048, 100)
        with pytest.raises(ObjectMissing):
            await read(cache, "b", 0, 3000)
        await cache.close()

    run(test)


def test_memory_is_bounded_also_for_many_tiny_objects() -> None:
    async def test() -> None:
        objects = store(**{f"tiny{number}": 10 for number in range(100)}, large=20_000)
        cache = cache_of(objects, 4)
        for number in range(100):
            await read(cache, f"tiny{number}", 0, 10)
            await read(cache, "large", number * 190, 200)
            assert cache.memory.used_bytes <= cache.memory.limit_bytes
        assert cache.memory.used_bytes > 0
        await cache.close()

    run(test)


def test_readers_get_their_bytes_even_if_nothing_can_be_cached() -> None:
    async def test() -> None:
        objects = store(a=10_000)
        cache = BlockCache(objects, 0, block_size=BLOCK)
        found = await asyncio.gather(*(read(cache, "a", 100, 9000) for _ in range(3)))
        assert found == [objects.objects["a"][100:9100]] * 3
        assert cache.memory.used_bytes == 0
        await cache.close()

    run(test)


def test_a_scan_does_not_displace_what_is_read_again_and_again() -> None:
    async def test() -> None:
        objects = store(hot=2 * BLOCK, cold=200 * BLOCK)
        cache = cache_of(objects, 8)
        for _ in range(2):
            await read(cache, "hot", 0, 2 * BLOCK)
        for position in range(0, 200 * BLOCK, 300):  # in pieces that are no blocks
            await read(cache, "cold", position, min(300, 200 * BLOCK - position), cold=True)
        assert cache.cached("hot", 0, 2 * BLOCK) is not None
        assert cache.cached("cold", 0, BLOCK) is None
        await cache.close()

    run(test)


def test_protected_blocks_give_way_to_newer_ones_that_are_read_again() -> None:
    async def test() -> None:
        objects = store(**{f"o{number}": BLOCK for number in range(20)})
        cache = cache_of(objects, 5)
        for number in range(20):
            for _ in range(2):
                await read(cache, f"o{number}", 0, BLOCK)
        assert cache.cached("o19", 0, BLOCK) is not None
        assert cache.cached("o0", 0, BLOCK) is None
        assert cache.memory.used_bytes <= cache.memory.limit_bytes
        await cache.close()

    run(test)


def test_cold_readers_wait_for_each_other_and_nobody_waits_for_them() -> None:
    async def test() -> None:
        objects = store(**{f"c{number}": 100 for number in range(20)}, hot=100)
        cache = cache_of(objects, 2)  # too small to read ahead
        objects.fail("read", Fault.HANG, COLD_REQUESTS)
        scans = [asyncio.create_task(read(cache, f"c{number}", 0, 100, cold=True)) for number in range(20)]
        await until(lambda: objects.hanging == COLD_REQUESTS)
        assert await read(cache, "hot", 0, 100)
        # Someone needs recently written data that a cold reader is queued for.
        assert await read(cache, "c19", 0, 100)
        assert objects.reads == COLD_REQUESTS + 2
        objects.release()
        await asyncio.gather(*scans)
        assert objects.reads == 21
        await cache.close()

    run(test)


def test_requests_are_bounded_and_what_only_cancelled_readers_wanted_is_not_fetched() -> None:
    async def test() -> None:
        objects = store(**{f"o{number}": 100 for number in range(HOT_REQUESTS + 5)})
        cache = cache_of(objects)
        objects.fail("read", Fault.HANG, HOT_REQUESTS)
        readers = [asyncio.create_task(read(cache, f"o{number}", 0, 100)) for number in range(HOT_REQUESTS + 5)]
        await until(lambda: objects.hanging == HOT_REQUESTS)
        assert objects.reads == HOT_REQUESTS
        for reader in readers[HOT_REQUESTS:-1]:
            reader.cancel()
        await asyncio.wait(readers[HOT_REQUESTS:-1])
        objects.release()
        await asyncio.gather(*readers[:HOT_REQUESTS], readers[-1])
        assert objects.reads == HOT_REQUESTS + 1
        await cache.close()

    run(test)


def test_a_sequential_reader_finds_the_next_blocks_in_memory() -> None:
    async def test() -> None:
        objects = store(a=40 * BLOCK)
        cache = cache_of(objects, 64)
        waited = 0
        for number in range(40):
            waited += cache.cached("a", number * BLOCK, BLOCK) is None
            await read(cache, "a", number * BLOCK, BLOCK, cold=True)
            for _ in range(20):
                await asyncio.sleep(0)
        assert waited <= 3
        assert sum(size for _, _, size in objects.ranges) <= 41 * BLOCK
        await cache.close()

    run(test)


def test_what_is_prefetched_is_there_for_the_reader_and_a_failure_leaves_nothing_behind() -> None:
    async def test() -> None:
        objects = store(a=1000, b=1000)
        cache = cache_of(objects, 16)
        cache.prefetch("a", 0, 1000)
        await until(lambda: cache.cached("a", 0, 1000))
        objects.fail("read", Fault.UNAVAILABLE)
        cache.prefetch("b", 0, 1000)
        await until(lambda: objects.reads == 2)
        for _ in range(10):
            await asyncio.sleep(0)
        assert await read(cache, "b", 0, 1000) == objects.objects["b"]
        await cache.close()

    run(test)


def test_a_prefetch_gives_way_when_the_cold_lane_is_busy() -> None:
    async def test() -> None:
        objects = store(**{f"o{number}": 100 for number in range(COLD_REQUESTS + 1)})
        cache = cache_of(objects, 16)
        objects.fail("read", Fault.HANG, COLD_REQUESTS)
        for number in range(COLD_REQUESTS + 1):
            cache.prefetch(f"o{number}", 0, 100)
        await until(lambda: objects.hanging == COLD_REQUESTS)
        objects.release()
        await until(lambda: cache.cached("o0", 0, 100))
        assert objects.reads == COLD_REQUESTS
        await cache.close()

    run(test)


def test_closing_fails_those_who_wait() -> None:
    async def test() -> None:
        objects = store(**{f"o{number}": 100 for number in range(HOT_REQUESTS + 1)})
        cache = cache_of(objects)
        objects.fail("read", Fault.HANG, HOT_REQUESTS)
        readers = [asyncio.create_task(read(cache, f"o{number}", 0, 100)) for number in range(HOT_REQUESTS + 1)]
        await until(lambda: objects.hanging == HOT_REQUESTS)
        await cache.close()
        failed = await asyncio.gather(*readers, return_exceptions=True)
        assert all(isinstance(error, LogClosed) for error in failed)
        with pytest.raises(LogClosed):
            await read(cache, "o0", 0, 100)

    run(test)
