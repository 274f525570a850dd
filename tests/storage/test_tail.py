"""The tail cache: bounded over all partitions, oldest first, without gaps."""

from tests.support.logs import batch
from tidelog.storage.tail import Tail, TailCache

PLACE = 64
END = 1 << 40


def view(size: int) -> memoryview:
    return memoryview(bytearray(size))


def sizes(tail: Tail, offset: int, max_bytes: int = 1 << 30) -> list[int] | None:
    found = tail.read(offset, max_bytes, END, at_least_one=True)
    return None if found is None else [len(part) for part in found]


def test_recent_batches_are_found_by_any_of_their_offsets() -> None:
    tail = Tail(TailCache(10_000))
    tail.append(0, view(100))
    tail.append(5, view(200))
    assert sizes(tail, 0) == sizes(tail, 4) == [100, 200]
    assert sizes(tail, 5) == sizes(tail, 9) == [200]


def test_what_is_appended_first_goes_first_whoever_it_belongs_to() -> None:
    cache = TailCache(3 * (1000 + PLACE))
    quiet, busy = Tail(cache), Tail(cache)
    quiet.append(0, view(1000))
    for offset in range(3):
        busy.append(offset, view(1000))
    assert sizes(quiet, 0) is None
    assert sizes(busy, 0) == [1000, 1000, 1000]
    assert cache.size_bytes <= cache.capacity_bytes
    busy.append(3, view(1000))
    assert sizes(busy, 0) is None
    assert sizes(busy, 1) == [1000, 1000, 1000]


def test_the_bound_holds_for_any_sizes_and_bookkeeping_stays_small() -> None:
    cache = TailCache(50_000)
    tails = [Tail(cache) for _ in range(10)]
    for number in range(5000):
        tails[number % 7].append(number, view(1 + number * 37 % 3000))
        assert cache.size_bytes <= cache.capacity_bytes
    assert len(cache._order) <= 50_000 // PLACE
    assert all(len(tail._views) < 1000 for tail in tails)


def test_a_batch_larger_than_the_cache_leaves_no_gap() -> None:
    tail = Tail(TailCache(1000))
    tail.append(0, view(100))
    tail.append(1, view(5000))
    tail.append(2, view(100))
    assert sizes(tail, 0) is None
    assert sizes(tail, 1) is None
    assert sizes(tail, 2) == [100]


def test_clearing_gives_the_memory_back() -> None:
    cache = TailCache(100_000)
    tail = Tail(cache)
    for offset in range(10):
        tail.append(offset, view(1000))
    tail.clear()
    assert sizes(tail, 5) is None
    assert cache.size_bytes == 10 * PLACE
    tail.append(10, view(1000))
    assert sizes(tail, 10) == [1000]


def test_a_large_batch_is_kept_as_it_is_and_a_small_one_as_a_copy() -> None:
    tail = Tail(TailCache(1 << 20))
    whole = memoryview(bytearray(64 << 10))
    tail.append(0, whole)
    tail.append(1, memoryview(bytearray(256 << 10))[:1000])
    kept, copied = tail.read(0, 1 << 30, END, at_least_one=True) or []
    assert kept is whole
    assert isinstance(copied, bytes)


def test_a_large_batch_in_a_much_larger_buffer_is_left_to_the_page_cache() -> None:
    cache = TailCache(1 << 20)
    tail = Tail(cache)
    tail.append(0, view(100))
    tail.append(1, memoryview(bytearray(256 << 10))[: 20 << 10])
    assert sizes(tail, 0) is None, "there is no gap: what is older goes with it"
    tail.append(2, view(100))
    assert sizes(tail, 1) is None
    assert sizes(tail, 2) == [100]


def test_reads_respect_limit_and_end() -> None:
    tail = Tail(TailCache(1 << 20))
    size = len(batch(b"x"))
    for offset in range(5):
        tail.append(offset, memoryview(batch(b"x")))
    assert sizes(tail, 1, 2 * size) == [size, size]
    assert sizes(tail, 1, 1) == [size]
    assert tail.read(1, 1, END, at_least_one=False) == []
    assert len(tail.read(1, 1 << 20, 3, at_least_one=True) or []) == 2
