"""One budget for all that is bounded."""

import pytest

from tidelog.broker.memory import GROWN_BYTES, MemoryPart, Returned, check_budget, resident_bytes
from tidelog.errors import InvalidSettings

PARTS = [MemoryPart("requests", "max-total-pending-bytes", 100 << 20, 0), MemoryPart("replies", "x", 50 << 20, 0)]


def test_parts_that_fit_are_fine() -> None:
    check_budget(150 << 20, PARTS)


def test_parts_that_do_not_fit_are_named_with_what_bounds_them() -> None:
    with pytest.raises(InvalidSettings) as refused:
        check_budget((150 << 20) - 1, PARTS)
    said = str(refused.value)
    assert "requests 100 MiB (max-total-pending-bytes)" in said
    assert "150 MiB" in said


def test_the_process_knows_its_size() -> None:
    assert 10 << 20 < resident_bytes() < 100 << 30


def test_memory_that_was_freed_is_given_back() -> None:
    """Small blocks, every hundredth of which stays: the C library cannot shorten its heap by itself."""
    returned = Returned()
    blocks = [bytes(1000) for _ in range(4 * GROWN_BYTES // 1000)]
    assert returned.is_due
    kept = blocks[::100]
    del blocks
    before = resident_bytes()
    returned.give_back()
    assert before - resident_bytes() > GROWN_BYTES
    assert len(kept[0]) == 1000
    assert not returned.is_due
