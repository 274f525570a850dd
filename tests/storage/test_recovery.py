"""Opening a directory after things went wrong: what is found, what is mended, what is said."""

import os
import random
from pathlib import Path

import pytest

from tests.support.logs import append, batch, open_log, read_records
from tidelog.errors import CorruptLog
from tidelog.records.batch import HEADER_SIZE, iterate
from tidelog.records.crc import crc32c
from tidelog.settings import FlushPolicy, LogSettings
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.log import LocalLog

SMALL = LogSettings(segment_bytes=2000, index_interval_bytes=100, flush=FlushPolicy.OS)
RECORDS = 60


def reopen(directory: Path, settings: LogSettings = SMALL) -> LocalLog:
    return open_log(OsFiles(), settings, directory=str(directory), tail_bytes=0)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log of several segments, closed."""
    log = reopen(tmp_path)
    for number in range(RECORDS):
        append(log, batch(b"%04d" % number + b"." * 100, timestamp=1000 + number))
    log.close()
    return tmp_path


def crashed_after(directory: Path, more: int) -> list[bytes]:
    """Append without a flush and let go, as a killed process does; the batches."""
    log = reopen(directory)
    sent = []
    for number in range(more):
        data = batch(b"more %d" % number)
        sent.append(bytes(data))
        append(log, data)
    log.abandon()
    return sent


def last_log(directory: Path) -> Path:
    return max(directory.glob("*.log"))


def offsets(log: LocalLog) -> list[int]:
    return [record.offset for record in read_records(log)]


def test_everything_that_was_written_is_found_after_a_crash(directory: Path) -> None:
    crashed_after(directory, 3)
    log = reopen(directory)
    assert offsets(log) == list(range(RECORDS + 3))
    assert log.recovery.scanned_bytes > 0
    assert not log.recovery.cut


def test_only_what_the_checkpoint_does_not_vouch_for_is_scanned(directory: Path) -> None:
    sent = crashed_after(directory, 3)
    assert reopen(directory).recovery.scanned_bytes == sum(map(len, sent))


def test_a_torn_tail_is_cut_at_the_last_whole_batch(directory: Path) -> None:
    sent = crashed_after(directory, 2)
    path = last_log(directory)
    whole = path.stat().st_size
    for left in range(1, len(sent[-1])):
        os.truncate(path, whole)
        content = path.read_bytes()
        os.truncate(path, whole - left)
        log = reopen(directory)
        assert log.end_offset == RECORDS + 1
        (cut,) = log.recovery.cut
        assert f"cut {len(sent[-1]) - left} bytes" in cut
        assert f"offset {RECORDS + 1}" in cut
        log.abandon()
        path.write_bytes(content)


def test_garbage_behind_the_tail_is_cut(directory: Path) -> None:
    crashed_after(directory, 1)
    with last_log(directory).open("ab") as file:
        file.write(random.Random(1).randbytes(5000))
    log = reopen(directory)
    assert offsets(log) == list(range(RECORDS + 1))
    assert "cut 5000 bytes" in log.recovery.cut[0]
    log.abandon()
    assert not reopen(directory).recovery.cut, "it is cut on the disk too"


def test_zeros_behind_the_tail_are_cut(directory: Path) -> None:
    crashed_after(directory, 1)
    path = last_log(directory)
    os.truncate(path, path.stat().st_size + 10_000)
    assert reopen(directory).end_offset == RECORDS + 1


def test_a_bit_that_flipped_in_the_unflushed_tail_ends_the_log_there(directory: Path) -> None:
    sent = crashed_after(directory, 4)
    path = last_log(directory)
    content = bytearray(path.read_bytes())
    position = len(content) - len(sent[-1]) - len(sent[-2])
    content[position + HEADER_SIZE + 3] ^= 4
    path.write_bytes(content)
    log = reopen(directory)
    assert log.end_offset == RECORDS + 2
    assert "CRC mismatch" in log.recovery.cut[0]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_missing_indexes_are_made_anew(directory: Path, suffix: str) -> None:
    before = {path.name: path.read_bytes() for path in directory.glob("*" + suffix)}
    for path in directory.glob("*" + suffix):
        path.unlink()
    log = reopen(directory)
    assert len(log.recovery.rebuilt) == len(before) - 1, "the active segment's are made when they are needed"
    assert offsets(log) == list(range(RECORDS))
    found = log.offset_for_time_now(1030)
    assert found is not None
    assert found.offset == 30
    append(log, batch(b"next"))
    log.close()
    after = {path.name: path.read_bytes() for path in directory.glob("*" + suffix)}
    assert {name: after[name] for name in before if name in after and name != max(before)} == {
        name: before[name] for name in before if name != max(before)
    }


def test_a_wrong_offset_index_is_found_out_and_made_anew(directory: Path) -> None:
    path = min(directory.glob("*.index"))
    right = path.read_bytes()
    for wrong in (
        bytes(len(right)),
        right[:8] + right[:8] + right[16:],
        random.Random(3).randbytes(len(right)),
        b"\x7f" * len(right),
        right[: len(right) - 3],
    ):
        path.write_bytes(wrong)
        log = reopen(directory)
        assert offsets(log) == list(range(RECORDS))
        for offset in range(12):
            (view,) = iterate(log.read_now(offset, 1).read())
            assert view.header.base_offset == offset
        log.abandon()


def test_leftovers_are_removed(directory: Path) -> None:
    for name in ("checkpoint.tmp", "00000000000000009999.index", "00000000000000009999.timeindex"):
        (directory / name).write_bytes(b"left over")
    log = reopen(directory)
    assert sorted(log.recovery.removed) == [
        "00000000000000009999.index",
        "00000000000000009999.timeindex",
        "checkpoint.tmp",
    ]
    assert offsets(log) == list(range(RECORDS))


@pytest.mark.parametrize("content", [None, b"", b"garbage", b'{"version":1}\n00000000\n'])
def test_without_a_checkpoint_everything_is_read_again(directory: Path, content: bytes | None) -> None:
    path = directory / "checkpoint"
    path.unlink() if content is None else path.write_bytes(content)
    log = reopen(directory)
    assert offsets(log) == list(range(RECORDS))
    assert log.recovery.scanned_bytes == sum(path.stat().st_size for path in directory.glob("*.log"))
    log.close()
    assert reopen(directory).recovery.clean


def test_durable_bytes_that_are_missing_are_reported(directory: Path) -> None:
    path = last_log(directory)
    os.truncate(path, 10)
    log = reopen(directory)
    assert log.end_offset < RECORDS
    assert "were durable" in log.recovery.lost[0]
    assert offsets(log) == list(range(log.end_offset))


def test_a_segment_that_cannot_follow_is_set_aside_not_deleted(directory: Path) -> None:
    crashed_after(directory, 40)
    first_unflushed = sorted(directory.glob("*.log"))[-2]
    content = bytearray(first_unflushed.read_bytes())
    content[HEADER_SIZE + 1] ^= 1
    first_unflushed.write_bytes(content)
    # The flush at each roll vouches for sealed segments: take it back to what it was before them.
    (directory / "checkpoint").unlink()
    log = reopen(directory)
    assert log.end_offset == int(first_unflushed.stem)
    assert list(directory.glob("*.log.unreachable"))
    assert any("set aside" in line for line in log.recovery.cut)


def test_foreign_files_are_left_alone(directory: Path) -> None:
    (directory / "notes.txt").write_text("mine")
    (directory / "12.log").write_text("not a segment name")
    log = reopen(directory)
    assert log.recovery.clean
    assert (directory / "notes.txt").exists()
    assert (directory / "12.log").exists()


def test_an_offset_that_cannot_be_in_its_segment_is_damage(directory: Path) -> None:
    """The CRC does not cover the base offset."""
    first = min(directory.glob("*.log"))
    content = bytearray(first.read_bytes())
    content[0] ^= 0x40
    first.write_bytes(content)
    for path in directory.glob("*.index"):
        path.unlink()
    log = reopen(directory)
    with pytest.raises(CorruptLog, match="position 0"):
        log.read_now(3, 100)
    assert log.read_now(RECORDS - 1, 100).size


def test_index_entries_that_outlived_their_batches_are_dropped(directory: Path) -> None:
    path = max(directory.glob("*.timeindex"))
    path.write_bytes(path.read_bytes() + (9_000_000).to_bytes(8, "big") + (2_000_000).to_bytes(4, "big"))
    log = reopen(directory)
    for number in range(60):
        append(log, batch(b"%04d" % number + b"." * 100, timestamp=2000 + number))
    newest = log.max_timestamp_now()
    assert newest is not None
    assert newest.timestamp == 2059
    assert log._segments.sealed[-1].max_timestamp < 3000


def test_without_a_checkpoint_what_is_cut_is_kept(directory: Path) -> None:
    path = min(directory.glob("*.log"))
    content = bytearray(path.read_bytes())
    content[HEADER_SIZE + 5] ^= 1
    path.write_bytes(content)
    (directory / "checkpoint").write_bytes(b"damaged too")
    log = reopen(directory)
    assert log.end_offset == 0
    kept = directory / f"{path.name}.0.cut"
    assert kept.read_bytes() == content
    assert any("kept in" in line for line in log.recovery.cut)


def test_a_checkpoint_of_another_program_is_not_believed(directory: Path) -> None:
    line = b'{"version":1,"surprise":2}'
    (directory / "checkpoint").write_bytes(line + b"\n%08x\n" % crc32c(line))
    assert offsets(reopen(directory)) == list(range(RECORDS))
