"""What a partition's log does, on real files unless the test says otherwise."""

import os
import random
from pathlib import Path

import pytest

from tests.support.logs import (
    EPOCH,
    NOW_MS,
    append,
    batch,
    open_log,
    read_batches,
    read_records,
    values,
)
from tidelog.errors import (
    CorruptBatch,
    CorruptLog,
    InvalidRecord,
    LogClosed,
    OffsetOutOfRange,
    RecordTooLarge,
)
from tidelog.model import LeaderEpoch, ProducerEpoch, ProducerId, TimestampType
from tidelog.records.batch import read_header
from tidelog.records.compression import Codec
from tidelog.records.record import build_marker
from tidelog.settings import FlushPolicy, LogSettings
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.log import LocalLog
from tidelog.storage.log import NOTHING

SMALL = LogSettings(segment_bytes=2000, index_interval_bytes=100, flush=FlushPolicy.OS)
LARGE_TAIL, NO_TAIL = 64 << 20, 0


@pytest.fixture(params=[LARGE_TAIL, NO_TAIL], ids=["from the tail cache", "from files"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> LocalLog:
    return open_log(OsFiles(), SMALL, directory=str(tmp_path / "log"), tail_bytes=request.param)


def fill(log: LocalLog, count: int, *, size: int = 100, now_ms: int = NOW_MS) -> None:
    for number in range(count):
        append(log, batch(b"%06d" % number + b"." * size, timestamp=now_ms + number), now_ms=now_ms)


def test_a_new_log_is_empty(log: LocalLog) -> None:
    assert (log.start_offset, log.end_offset, log.durable_offset) == (0, 0, 0)
    assert log.read_now(0, 1000) == NOTHING
    assert log.max_timestamp_now() is None
    assert log.offset_for_time_now(0) is None


def test_batches_get_contiguous_offsets_and_come_back_as_sent(log: LocalLog) -> None:
    first = append(log, batch(b"a", b"b", b"c"))
    second = append(log, batch(b"d", codec=Codec.ZSTD))
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 3)
    assert [(record.offset, record.value) for record in read_records(log)] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
        (3, b"d"),
    ]


def test_many_batches_in_one_append_are_written_together(log: LocalLog) -> None:
    appended = append(log, batch(b"a", b"b") + batch(b"c") + batch(b"d"))
    assert (appended.base_offset, appended.last_offset) == (0, 3)
    assert [view.header.base_offset for view in read_batches(log)] == [0, 2, 3]


def test_a_batch_of_an_idempotent_producer_comes_alone(log: LocalLog) -> None:
    numbered = batch(b"b", producer_id=7, producer_epoch=0, sequence=0)
    for together in (batch(b"a") + numbered, numbered + batch(b"a"), numbered + numbered):
        with pytest.raises(InvalidRecord, match="several batches"):
            append(log, together)
    assert log.end_offset == 0


def test_the_leader_epoch_is_written_into_the_batch(log: LocalLog) -> None:
    log.append(batch(b"a"), now_ms=NOW_MS, leader_epoch=LeaderEpoch(7), durable=False)
    assert read_batches(log)[0].header.leader_epoch == 7


def test_every_offset_can_be_read_across_segments(log: LocalLog) -> None:
    fill(log, 200)
    assert log.stats().segments > 10
    for offset in range(200):
        header = read_header(log.read_now(offset, 1).read())
        assert header.base_offset == offset


def test_an_offset_inside_a_batch_gives_the_whole_batch(log: LocalLog) -> None:
    append(log, batch(b"a", b"b", b"c"))
    append(log, batch(b"d"))
    assert read_header(log.read_now(1, 1).read()).base_offset == 0


def test_reads_stay_within_the_limit_but_give_at_least_one_batch(log: LocalLog) -> None:
    fill(log, 10)
    size = log.read_now(0, 1).size
    for limit in range(1, 5 * size, 7):
        result = log.read_now(0, limit)
        assert result.size == len(result.read()) == max(1, limit // size) * size
    assert log.read_now(0, size - 1, at_least_one=False).size == 0
    assert log.read_now(0, size, at_least_one=False).size == size


def test_reads_stop_before_the_offset_they_are_told(log: LocalLog) -> None:
    fill(log, 30)
    for up_to in (1, 5, 13, 29, 30, 99):
        seen = []
        offset = 0
        while (data := log.read_now(offset, 1 << 20, up_to=up_to).read()) != b"":
            header = read_header(data)
            seen.append(header.base_offset)
            offset += len(data) // header.size
        assert offset == min(up_to, 30)


def test_reading_outside_the_log_is_refused(log: LocalLog) -> None:
    fill(log, 30)
    log.delete_before(10)
    for offset in (-1, 9, 31):
        with pytest.raises(OffsetOutOfRange, match=f"offset {offset} .* 10 to 30"):
            log.read_now(offset, 100)
    assert log.read_now(30, 100).size == 0


def test_reads_go_on_over_a_segment_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    log = open_log(OsFiles(), SMALL, directory=str(tmp_path / "log"), tail_bytes=NO_TAIL)
    fill(log, 100)
    expected = log.read_now(0, 1000).read()
    result = log.read_now(0, 1000)
    log.delete_before(90)
    assert not (tmp_path / "log" / "00000000000000000000.log").exists()
    assert result.read() == expected


@pytest.mark.parametrize(
    ("damaged", "error"),
    [
        (bytearray(b""), InvalidRecord),
        (bytearray(b"junk"), CorruptBatch),
        (batch(b"a")[:-1], CorruptBatch),
        (batch(b"a") + b"junk", CorruptBatch),
    ],
)
def test_what_is_not_whole_batches_is_refused(log: LocalLog, damaged: bytearray, error: type[Exception]) -> None:
    with pytest.raises(error):
        append(log, damaged)
    assert log.end_offset == 0


def test_a_flipped_bit_is_refused(log: LocalLog) -> None:
    data = batch(b"hello")
    data[-1] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        append(log, data)
    assert log.end_offset == 0


def test_one_bad_batch_refuses_the_whole_append(log: LocalLog) -> None:
    bad = batch(b"bad")
    bad[-1] ^= 1
    with pytest.raises(CorruptBatch):
        append(log, batch(b"good") + bad)
    assert log.end_offset == 0


def test_a_batch_over_the_limit_is_refused(tmp_path: Path) -> None:
    log = open_log(OsFiles(), LogSettings(max_message_bytes=200), directory=str(tmp_path))
    with pytest.raises(RecordTooLarge, match="takes at most 200"):
        append(log, batch(b"x" * 200))


def test_an_append_that_no_segment_can_hold_is_refused(log: LocalLog) -> None:
    with pytest.raises(RecordTooLarge, match="segment of 2000 bytes"):
        append(log, batch(b"x" * 3000))


def test_the_append_time_replaces_the_producers_when_asked(log: LocalLog) -> None:
    log.append(batch(b"a", timestamp=5), now_ms=NOW_MS + 9, leader_epoch=EPOCH, durable=False, stamp=True)
    (view,) = read_batches(log)
    assert view.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert view.header.max_timestamp == NOW_MS + 9
    assert log.max_timestamp_now() == (NOW_MS + 9, 0, 0)


def test_segments_roll_by_size(log: LocalLog) -> None:
    fill(log, 100)
    sizes = {name: os.path.getsize(f"{log.directory}/{name}") for name in os.listdir(log.directory)}
    logs = {name: size for name, size in sizes.items() if name.endswith(".log")}
    assert len(logs) == log.stats().segments > 5
    assert all(size <= SMALL.segment_bytes for size in logs.values())


def test_segments_roll_by_age(tmp_path: Path) -> None:
    log = open_log(OsFiles(), LogSettings(segment_ms=1000), directory=str(tmp_path))
    append(log, batch(b"a"), now_ms=NOW_MS)
    append(log, batch(b"b"), now_ms=NOW_MS + 999)
    assert log.stats().segments == 1
    append(log, batch(b"c"), now_ms=NOW_MS + 1000)
    assert log.stats().segments == 2


def test_a_segment_of_a_clock_that_was_ahead_does_not_wait_for_that_time(tmp_path: Path) -> None:
    """It would keep its records from retention until then. A small step back changes nothing."""
    log = open_log(OsFiles(), LogSettings(segment_ms=1000), directory=str(tmp_path))
    append(log, batch(b"a"), now_ms=NOW_MS)
    append(log, batch(b"b"), now_ms=NOW_MS - 999)
    assert log.stats().segments == 1
    append(log, batch(b"c"), now_ms=NOW_MS - 1000)
    assert log.stats().segments == 2


def test_old_timestamps_do_not_make_segments_roll(tmp_path: Path) -> None:
    log = open_log(OsFiles(), LogSettings(segment_ms=1000), directory=str(tmp_path))
    for number in range(20):
        append(log, batch(b"replayed", timestamp=number * 10_000), now_ms=NOW_MS)
    assert log.stats().segments == 1


def test_segments_roll_when_their_index_is_full(tmp_path: Path) -> None:
    settings = LogSettings(index_interval_bytes=0, segment_index_bytes=120)
    log = open_log(OsFiles(), settings, directory=str(tmp_path))
    for number in range(40):
        append(log, batch(b"x", timestamp=NOW_MS + number))
    assert log.stats().segments > 3
    log.close()
    for name in os.listdir(tmp_path):
        if name.endswith("index"):
            assert os.path.getsize(tmp_path / name) <= 120
    assert len(read_batches(open_log(OsFiles(), settings, directory=str(tmp_path)))) == 40


def test_the_first_record_at_or_after_a_time_is_found(log: LocalLog) -> None:
    for number in range(60):
        append(log, batch(b"a", b"b", timestamp=1000 + 10 * number))
    for wanted in (0, 1000, 1001, 1005, 1300, 1589, 1590):
        found = log.offset_for_time_now(wanted)
        expected = max(0, -(-(wanted - 1000) // 10))
        assert found is not None
        assert (found.timestamp, found.offset) == (1000 + 10 * expected, 2 * expected)
    assert log.offset_for_time_now(1591) is None


def test_times_out_of_order_are_found_by_the_first_offset_that_qualifies(log: LocalLog) -> None:
    rng = random.Random(4)
    times = [rng.randrange(1000, 2000) for _ in range(150)]
    for time in times:
        append(log, batch(b"x", timestamp=time))
    for wanted in (*range(990, 2010, 13), max(times), max(times) + 1):
        expected = next((offset for offset, time in enumerate(times) if time >= wanted), None)
        found = log.offset_for_time_now(wanted)
        assert (found.offset if found else None) == expected
    newest = log.max_timestamp_now()
    assert newest is not None
    assert (newest.timestamp, newest.offset) == (max(times), times.index(max(times)))


def test_times_before_the_start_of_the_log_are_not_found(log: LocalLog) -> None:
    fill(log, 50)
    log.delete_before(25)
    found = log.offset_for_time_now(NOW_MS)
    assert found is not None
    assert found.offset == 25


def test_delete_before_moves_the_start_and_frees_whole_segments(log: LocalLog) -> None:
    fill(log, 100)
    segments = log.stats().segments
    assert log.delete_before(55).result() == 55
    assert log.start_offset == 55
    assert log.stats().segments < segments
    assert [record.offset for record in read_records(log)] == list(range(55, 100))
    assert log.delete_before(10).result() == 55, "the start never moves back"
    with pytest.raises(OffsetOutOfRange):
        log.delete_before(101)


def test_deleting_everything_leaves_an_empty_log_that_goes_on(log: LocalLog) -> None:
    fill(log, 30)
    log.delete_before(30)
    assert (log.start_offset, log.end_offset, log.stats().size_bytes) == (30, 30, 0)
    append(log, batch(b"next"))
    assert [(record.offset, record.value) for record in read_records(log)] == [(30, b"next")]


def test_retention_by_size_deletes_the_oldest_segments(tmp_path: Path) -> None:
    settings = LogSettings(segment_bytes=2000, retention_bytes=6000, retention_ms=-1, flush=FlushPolicy.OS)
    log = open_log(OsFiles(), settings, directory=str(tmp_path))
    fill(log, 200)
    assert log.retain(NOW_MS) is not None
    size = log.stats().size_bytes
    assert 6000 <= size < 8000
    assert read_records(log)[0].offset == log.start_offset
    assert log.retain(NOW_MS) is None


def test_retention_by_time_deletes_segments_whose_newest_record_is_too_old(tmp_path: Path) -> None:
    settings = LogSettings(segment_bytes=2000, retention_ms=50, flush=FlushPolicy.OS)
    log = open_log(OsFiles(), settings, directory=str(tmp_path))
    fill(log, 100)  # timestamps NOW_MS .. NOW_MS + 99
    log.retain(NOW_MS + 120)
    assert 50 < log.start_offset <= 70
    log.retain(NOW_MS + 149)
    assert log.start_offset < 100, "the newest record is 50 ms old"
    log.retain(NOW_MS + 150)
    assert (log.start_offset, log.end_offset) == (100, 100), "the active segment expires too"
    append(log, batch(b"new"))
    assert values(read_records(log)) == [b"new"]


def test_retention_keeps_what_somebody_still_needs(tmp_path: Path) -> None:
    settings = LogSettings(segment_bytes=2000, retention_ms=50, retention_bytes=2000, flush=FlushPolicy.OS)
    log = open_log(OsFiles(), settings, directory=str(tmp_path))
    fill(log, 100)
    assert log.retain(NOW_MS + 1000, keep_from=0) is None
    log.retain(NOW_MS + 1000, keep_from=40)
    assert 0 < log.start_offset <= 40, "the segment that holds the offset stays whole"
    log.retain(NOW_MS + 1000, keep_from=99)
    assert log.start_offset <= 99
    assert read_records(log)[-1].offset == 99, "also in the active segment"
    log.retain(NOW_MS + 1000, keep_from=100)
    assert (log.start_offset, log.end_offset) == (100, 100)


def test_without_limits_retention_deletes_nothing(tmp_path: Path) -> None:
    settings = LogSettings(segment_bytes=2000, retention_ms=-1, flush=FlushPolicy.OS)
    log = open_log(OsFiles(), settings, directory=str(tmp_path))
    fill(log, 100)
    assert log.retain(NOW_MS * 10) is None
    assert log.start_offset == 0


def test_a_quiet_active_segment_is_sealed_when_it_is_old_enough(tmp_path: Path) -> None:
    settings = LogSettings(segment_ms=1000, retention_ms=-1)
    log = open_log(OsFiles(), settings, directory=str(tmp_path))
    append(log, batch(b"a"))
    log.retain(NOW_MS + 1000)
    assert log.stats().segments == 2
    log.retain(NOW_MS + 5000)
    assert log.stats().segments == 2, "an empty segment is not sealed"


@pytest.mark.parametrize("policy", FlushPolicy)
def test_a_durable_append_is_durable_when_the_policy_promises_it(tmp_path: Path, policy: FlushPolicy) -> None:
    log = open_log(OsFiles(), LogSettings(flush=policy, flush_messages=3), directory=str(tmp_path))
    append(log, batch(b"a"), durable=True)
    promised = policy in (FlushPolicy.ACKS, FlushPolicy.ALWAYS)
    assert log.durable_offset == (1 if promised else 0)
    append(log, batch(b"b"))
    assert log.durable_offset == {"always": 2, "acks": 1}.get(policy, 0)
    append(log, batch(b"c"))
    assert log.durable_offset == {"always": 3, "acks": 1, "interval": 3}.get(policy, 0)


def test_a_closed_log_refuses_appends(log: LocalLog) -> None:
    log.close()
    with pytest.raises(LogClosed):
        append(log, batch(b"a"))


def test_a_clean_stop_scans_nothing_and_keeps_everything(tmp_path: Path) -> None:
    files = OsFiles()
    log = open_log(files, SMALL, directory=str(tmp_path))
    fill(log, 150)
    log.delete_before(33)
    expected = read_records(log)
    before = log.stats()
    log.close()
    again = open_log(files, SMALL, directory=str(tmp_path))
    assert again.recovery.clean
    assert again.stats() == before.__class__(
        **{
            **{name: getattr(before, name) for name in before.__slots__},
            "durable_offset": before.end_offset,
        }
    )
    assert read_records(again) == expected
    newest = again.max_timestamp_now()
    assert newest is not None
    assert newest.timestamp == NOW_MS + 149


def test_a_control_batch_may_be_appended_and_has_no_sequence(log: LocalLog) -> None:
    marker = build_marker(
        committed=True,
        producer_id=ProducerId(5),
        producer_epoch=ProducerEpoch(0),
        coordinator_epoch=1,
        timestamp=NOW_MS,
    )
    append(log, marker)
    assert read_batches(log)[0].header.is_control


def test_damage_in_a_sealed_segment_is_reported_with_its_place_and_other_offsets_stay_readable(
    tmp_path: Path,
) -> None:
    log = open_log(OsFiles(), SMALL, directory=str(tmp_path), tail_bytes=NO_TAIL)
    fill(log, 60)
    log.close()
    first = tmp_path / "00000000000000000000.log"
    size = read_header(first.read_bytes()).size
    with first.open("r+b") as file:
        file.seek(3 * size)
        file.write(b"\xff" * 61)
    log = open_log(OsFiles(), SMALL, directory=str(tmp_path), tail_bytes=NO_TAIL)
    assert log.recovery.clean, "what the checkpoint vouches for is not read when it is opened"
    with pytest.raises(CorruptLog) as caught:
        log.read_now(3, 100)
    assert caught.value.file == str(first)
    assert caught.value.position == 3 * size
    assert read_header(log.read_now(0, 1).read()).base_offset == 0
    assert read_header(log.read_now(30, 1).read()).base_offset == 30
    append(log, batch(b"goes on"))


def test_open_files_stay_bounded_with_many_segments(tmp_path: Path) -> None:
    log = open_log(OsFiles(), SMALL, directory=str(tmp_path), tail_bytes=NO_TAIL, open_segments=5)
    fill(log, 400)
    assert log.stats().segments > 20

    def open_files() -> int:
        return sum(
            1 for fd in os.listdir("/proc/self/fd") if str(tmp_path) in os.path.realpath(f"/proc/self/fd/{fd}")
        )

    for offset in range(0, 400, 3):
        assert read_header(log.read_now(offset, 1).read()).base_offset == offset
        assert open_files() <= 15
    log.abandon()
    assert open_files() == 0
