"""What is written down of a compaction. How crashes at each step of an exchange end: test_compaction_crash.py."""

from dataclasses import dataclass

import pytest

from tests.support.memory_files import MemoryFiles
from tidelog.storage.local.compaction_state import (
    STATE,
    CompactionState,
    PlannedSwap,
    cleaned_name,
    decode_state,
    is_cleaned,
    read_state,
    write_state,
)
from tidelog.storage.local.sealed_json import seal

FULL = CompactionState(70, 90, 1_700_000_000_000, PlannedSwap(10, 4096, (10, 20, 30), 2), ((10, 2), (50, 1)))


@dataclass
class Segment:
    base_offset: int
    aborted_count: int


@pytest.mark.parametrize("state", [CompactionState(), FULL])
def test_a_state_comes_back_as_it_was_written(state: CompactionState) -> None:
    assert decode_state(state.encode()) == state
    files = MemoryFiles()
    files.make_directories("/log")
    assert read_state(files, "/log") is None
    write_state(files, "/log", state)
    assert read_state(files, "/log") == state
    assert f"/log/{STATE}" in files.names


@pytest.mark.parametrize(
    "line",
    [
        b'{"version":1}',
        b'{"version":1,"swap":1}',
        b'{"version":1,"swap":[1]}',
        b'{"version":1,"swap":null,"clean_offset":1,"unknown":2}',
        b'{"version":1,"swap":null,"aborted":[1]}',
        b'{"version":2,"swap":null}',
    ],
)
def test_a_state_that_cannot_be_one_is_refused(line: bytes) -> None:
    assert decode_state(seal(line)) is None


def test_where_the_log_is_cut_the_state_ends_too() -> None:
    assert FULL.cut(60, 50) == CompactionState(60, 60, FULL.next_horizon_ms, FULL.swap, ((10, 2),))


def test_after_an_exchange_the_counts_are_those_of_the_segments_that_are_left() -> None:
    segments = [Segment(10, 2), Segment(20, 0), Segment(30, 1), Segment(50, 1)]
    state = CompactionState(aborted=((10, 2), (30, 1), (50, 1)))
    after = state.exchanged(PlannedSwap(10, 100, (10, 20, 30), 3), 50, segments)
    assert after == CompactionState(compacted_to=50, aborted=((10, 3), (50, 1)))
    assert (after.aborted_in(10), after.aborted_in(50), after.aborted_in(60)) == (3, 1, None)


def test_the_files_of_a_new_segment_have_names_of_their_own() -> None:
    assert is_cleaned(cleaned_name(5, ".log"))
    assert not is_cleaned("00000000000000000005.log")
