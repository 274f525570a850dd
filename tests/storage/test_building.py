"""Logs whose files are written from batches that have their offsets already."""

from pathlib import Path

import pytest

from tests.support.logs import NOW_MS, batch, stored
from tidelog.model import LeaderEpoch, Offset
from tidelog.records.batch import BatchView, iterate, place, read_header
from tidelog.settings import LogSettings
from tidelog.storage.local.building import LogBuilder
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.layout import LOGS, partition_directory
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore
from tidelog.storage.local.verify import PartitionCheck
from tidelog.storage.producers import Producers
from tidelog.storage.whole_log import WholeLog

TOPIC = stored("topic")


def placed(offset: Offset, *values: bytes, timestamp: int = NOW_MS) -> BatchView:
    content = batch(*values, timestamp=timestamp)
    place(content, 0, read_header(content), offset, LeaderEpoch(0))
    (view,) = iterate(content)
    return view


def build(tmp_path: Path, batches: list[BatchView], whole: WholeLog, segment_bytes: int = 1024) -> None:
    directory = f"{tmp_path}/{LOGS}/{partition_directory(TOPIC)}"
    builder = LogBuilder(OsFiles(), directory, whole.start_offset, LogSettings(segment_bytes=segment_bytes))
    for each in batches:
        builder.add(each, each.view)
    files = builder.finish(whole, NOW_MS)
    check = PartitionCheck(OsFiles(), directory)
    assert [finding for finding in check if finding.is_error] == []
    assert check.tally.batches == len(batches)
    assert [int(Path(file).stem) for file in files] == list(check.listing.segments)


def opened(tmp_path: Path) -> tuple[LocalStore, LocalLog]:
    store = LocalStore(str(tmp_path), inline=True)
    log = store.open(TOPIC, LogSettings(segment_bytes=1024), NOW_MS)
    assert not log.recovery.lines(), "nothing had to be scanned or rebuilt"
    return store, log


@pytest.mark.parametrize("segment_bytes", [1024, 1 << 20])
def test_gaps_at_the_beginning_in_between_and_at_the_end_stay(tmp_path: Path, segment_bytes: int) -> None:
    batches = [placed(5 + 10 * number, b"x" * 300, timestamp=NOW_MS + number) for number in range(8)]
    build(tmp_path, batches, WholeLog(3, 200, Producers(), (), 150, NOW_MS + 5), segment_bytes)
    store, log = opened(tmp_path)
    assert (log.start_offset, log.end_offset, log.last_stable_offset) == (3, 200, 200)
    found, offset = [], log.start_offset
    while (read := log.read_now(offset, 1 << 20)).size:
        found += list(iterate(read.read()))
        offset = found[-1].header.next_offset
    assert [bytes(each.view) for each in found] == [bytes(each.view) for each in batches]
    at_time = log.offset_for_time_now(NOW_MS + 4)
    assert at_time is not None
    assert at_time.offset == 45
    state = log.compaction.state
    assert (state.clean_offset, state.next_horizon_ms, state.compacted_to >= 75) == (150, NOW_MS + 5, True)
    log.append(batch(b"more"), now_ms=NOW_MS, leader_epoch=LeaderEpoch(0), durable=True)
    assert log.end_offset == 201
    assert not store.close_now()
    store, log = opened(tmp_path)
    assert (log.start_offset, log.end_offset) == (3, 201)
    assert not store.close_now()


def test_a_log_without_batches_begins_where_it_ended(tmp_path: Path) -> None:
    build(tmp_path, [], WholeLog(42, 42, Producers(), ()))
    store, log = opened(tmp_path)
    assert (log.start_offset, log.end_offset) == (42, 42)
    log.append(batch(b"more"), now_ms=NOW_MS, leader_epoch=LeaderEpoch(0), durable=True)
    assert log.end_offset == 43
    assert not store.close_now()


def test_a_builder_begins_anew_in_a_directory_that_a_crash_left(tmp_path: Path) -> None:
    directory = f"{tmp_path}/{LOGS}/{partition_directory(TOPIC)}"
    unfinished = LogBuilder(OsFiles(), directory, 0, LogSettings(segment_bytes=1024))
    for number in range(10):
        each = placed(number, b"old" * 200)
        unfinished.add(each, each.view)
    build(tmp_path, [placed(0, b"new")], WholeLog(0, 1, Producers(), ()))
    store, log = opened(tmp_path)
    assert log.end_offset == 1
    assert not store.close_now()
