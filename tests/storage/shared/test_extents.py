import pytest

from tidelog.storage.shared.extents import Extents
from tidelog.storage.shared.order import Extent


def extent(base: int, last: int, size: int = 10, timestamp: int = 0) -> Extent:
    return Extent(base, last, f"b/{base}", base * 10, size, timestamp)


FOUR = [extent(0, 4, timestamp=5), extent(5, 5, timestamp=9), extent(8, 9, timestamp=7), extent(10, 19, 40)]


def test_they_come_out_as_they_went_in_without_their_facts() -> None:
    extents = Extents(one._replace(producers=b"facts") for one in FOUR)
    assert list(extents) == FOUR
    assert (len(extents), extents.size_bytes, extents.max_timestamp) == (4, 70, 9)
    assert (len(Extents()), Extents().max_timestamp) == (0, -1)


@pytest.mark.parametrize(
    ("offset", "number"), [(0, 0), (4, 0), (5, 1), (6, 2), (9, 2), (10, 3), (19, 3), (20, 4), (1000, 4)]
)
def test_an_offset_is_found_also_in_a_gap(offset: int, number: int) -> None:
    assert Extents(FOUR).at_or_after(offset) == number


def test_the_first_that_may_have_a_time_is_found() -> None:
    extents = Extents(FOUR)
    assert [extents.first_with_time(time) for time in (0, 5, 6, 9, 10)] == [0, 0, 1, 1, 4]
    assert extents.first_with_time(6, 2) == 2


def test_those_before_an_offset_are_forgotten() -> None:
    extents = Extents(FOUR)
    extents.forget_before(5)
    assert list(extents) == FOUR[1:]
    extents.forget_before(12)
    assert list(extents) == FOUR[3:]
    assert extents.size_bytes == 40
    extents.forget_before(20)
    assert (list(extents), extents.size_bytes) == ([], 0)


def test_neighbours_are_exchanged_if_they_are_there() -> None:
    extents = Extents(FOUR)
    merged = Extent(5, 9, "s/1", 0, 20, 9)
    assert extents.has(FOUR[1:3])
    assert not extents.has([FOUR[0], FOUR[2]])
    assert not extents.has([*FOUR, extent(20, 21)])
    extents.replace(FOUR[1:3], [merged])
    assert list(extents) == [FOUR[0], merged, FOUR[3]]
    assert not extents.has(FOUR[1:3])
    extents.replace([merged], [])
    assert (list(extents), extents.size_bytes) == ([FOUR[0], FOUR[3]], 50)
