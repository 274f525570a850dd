"""What the disk can do to a log, and that the log works again when the cause is gone."""

import errno
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.logs import DIRECTORY, EPOCH, NOW_MS, append, batch, open_log, read_records, stored, values
from tests.support.memory_files import MemoryFiles, Mood
from tidelog.errors import DirectoryInUse, StorageError, StorageFull, StorageUnavailable
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.settings import CompactionSettings, FlushPolicy, LogSettings, StorageSettings
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import ReadResult

ROLLS = LogSettings(segment_bytes=1024, index_interval_bytes=0)


def failing(operation: str, number: int, *, suffix: str = "") -> Callable[[str, str], None]:
    def fail(called: str, path: str) -> None:
        if called == operation and path.endswith(suffix):
            raise OSError(number, os.strerror(number), path)

    return fail


def next_descriptor() -> int:
    """The number that the next open file will get; a limit of it lets nothing more be opened."""
    descriptor = os.open("/dev/null", os.O_RDONLY)
    os.close(descriptor)
    return descriptor


def test_a_full_disk_fails_the_append_and_loses_nothing() -> None:
    files = MemoryFiles()
    log = open_log(files)
    append(log, batch(b"kept"), durable=True)
    files.on_call = failing("write", errno.ENOSPC)
    with pytest.raises(StorageFull, match=r"cannot append to topic-0: No space left.*free some space"):
        append(log, batch(b"refused"), durable=True)
    assert (log.end_offset, values(read_records(log))) == (1, [b"kept"])
    files.on_call = None
    append(log, batch(b"taken"), durable=True)
    assert values(read_records(log)) == [b"kept", b"taken"]
    log.close()
    assert values(read_records(open_log(files))) == [b"kept", b"taken"]


def test_half_a_write_is_cut_off_before_the_next_append_even_if_that_takes_several_tries() -> None:
    files = MemoryFiles()
    log = open_log(files)

    def everything_fails(called: str, path: str) -> None:
        if called in ("write", "truncate") and path.endswith(".log"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    files.on_call = everything_fails
    with pytest.raises(StorageError):
        append(log, batch(b"x" * 500))
    with pytest.raises(StorageError, match="not cut off yet"):
        append(log, batch(b"x" * 500))
    files.on_call = None
    append(log, batch(b"y"), durable=True)
    log.abandon()
    again = open_log(files)
    assert values(read_records(again)) == [b"y"]
    assert not again.recovery.cut


def test_a_full_disk_at_a_roll_leaves_the_log_as_it_was() -> None:
    files = MemoryFiles()
    log = open_log(files, ROLLS)
    append(log, batch(b"a" * 800), durable=True)
    for operation in ("write", "create"):
        files.on_call = failing(operation, errno.ENOSPC)
        with pytest.raises(StorageFull, match="begin a new segment"):
            append(log, batch(b"b" * 800))
    files.on_call = None
    append(log, batch(b"c" * 800), durable=True)
    assert log.stats().segments == 2
    log.close()
    assert [value[:1] for value in values(read_records(open_log(files, ROLLS))) if value] == [b"a", b"c"]


def test_a_failed_sync_is_not_acknowledged_and_nothing_is_taken_until_it_is_made_good() -> None:
    files = MemoryFiles()
    log = open_log(files)
    append(log, batch(b"first"), durable=True)
    files.on_call = failing("sync", errno.EIO, suffix=".log")
    with pytest.raises(StorageError, match=r"cannot flush .*Input/output error"):
        append(log, batch(b"second"), durable=True)
    assert log.durable_offset == 1
    assert log.stats().fault is not None
    with pytest.raises(StorageError, match="takes no appends until its failed flush succeeds"):
        append(log, batch(b"third"))
    assert values(read_records(log)) == [b"first", b"second"], "reads go on"

    files.on_call = None
    with pytest.raises(StorageError):
        append(log, batch(b"third"))  # this attempt makes it good for the next
    append(log, batch(b"fourth"), durable=True)
    assert log.stats().fault is None
    assert log.durable_offset == log.end_offset == 3
    assert values(read_records(log)) == [b"first", b"second", b"fourth"]


def test_after_a_failed_sync_the_bytes_are_written_again_because_the_system_may_have_dropped_them() -> None:
    files = MemoryFiles()
    log = open_log(files)
    path = f"{DIRECTORY}/00000000000000000000.log"
    files.on_call = failing("sync", errno.EIO, suffix=".log")
    with pytest.raises(StorageError):
        append(log, batch(b"important"), durable=True)
    inode = files.names[path]
    assert inode is not None
    inode.pending.clear()  # what Linux does: the pages count as clean although they never reached the device
    files.on_call = None
    log.flush()
    assert log.durable_offset == 1
    assert inode.durable == bytes(inode.data) != b""


def test_bytes_that_did_not_survive_a_failed_sync_are_not_taken_for_data() -> None:
    files = MemoryFiles()
    log = open_log(files)
    append(log, batch(b"first"), durable=True)
    files.on_call = failing("sync", errno.EIO, suffix=".log")
    with pytest.raises(StorageError):
        append(log, batch(b"second"), durable=True)
    inode = files.names[f"{DIRECTORY}/00000000000000000000.log"]
    assert inode is not None
    inode.data[-3:] = b"\0\0\0"
    files.on_call = None
    with pytest.raises(StorageError, match="lost by the failed write-back"):
        log.flush()
    assert log.durable_offset == 1
    log.abandon()
    again = open_log(files)
    assert values(read_records(again)) == [b"first"]
    assert len(again.recovery.cut) == 1


def test_a_checkpoint_that_cannot_be_written_does_not_hold_up_the_data() -> None:
    files = MemoryFiles()
    log = open_log(files, ROLLS)
    files.on_call = failing("write", errno.ENOSPC, suffix="checkpoint.tmp")
    for number in range(5):
        append(log, batch(b"%d" % number * 800), durable=True)
    assert log.durable_offset == 5
    files.on_call = None
    log.abandon()
    again = open_log(files, ROLLS)
    assert len(read_records(again)) == 5


def test_delete_before_changes_nothing_if_it_cannot_be_made_durable() -> None:
    files = MemoryFiles()
    log = open_log(files)
    for number in range(5):
        append(log, batch(b"%d" % number), durable=True)
    files.on_call = failing("write", errno.ENOSPC, suffix="checkpoint.tmp")
    with pytest.raises(StorageFull, match="checkpoint"):
        log.delete_before(3).result()
    assert log.start_offset == 0
    files.on_call = None
    assert log.delete_before(3).result() == 3


def test_a_read_only_directory_is_named(tmp_path: Path) -> None:
    files = MemoryFiles()
    files.on_call = failing("create", errno.EROFS)
    with pytest.raises(StorageUnavailable, match=r"cannot open topic-0: Read-only file system .*mounted read-only"):
        open_log(files)


def test_a_file_in_place_of_the_data_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("I am a file")
    with pytest.raises(StorageUnavailable, match="as data directory"):
        LocalStore(str(tmp_path / "data"), inline=True)


def test_a_data_directory_in_use_names_the_process_that_has_it(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), inline=True)
    with pytest.raises(DirectoryInUse, match=rf"{tmp_path} is in use by process {os.getpid()}; stop it"):
        LocalStore(str(tmp_path), inline=True)
    store.close_now()
    LocalStore(str(tmp_path), inline=True).close_now()


def test_the_lock_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from tidelog.storage.local.store import LocalStore\n"
        f"store = LocalStore({str(tmp_path)!r}, inline=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    LocalStore(str(tmp_path), inline=True).close_now()


def test_too_many_open_files_is_survived_by_closing_what_is_not_used(tmp_path: Path) -> None:
    settings = LogSettings(segment_bytes=1024, index_interval_bytes=0, flush=FlushPolicy.OS)
    log = open_log(OsFiles(), settings, directory=str(tmp_path), tail_bytes=0, open_segments=1000)
    for number in range(60):
        append(log, batch(b"%d" % number * 300))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_descriptor() + 12, hard))
    try:
        assert len(read_records(log)) == 60
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_many_open_files_says_what_to_do_and_passes(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), StorageSettings(tail_cache_bytes=0), inline=True)
    log = store.open(stored("topic"), LogSettings(), NOW_MS)
    append(log, batch(b"a"), durable=True)
    log._pool.forget(log._segments.active)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_descriptor(), hard))
    try:
        with pytest.raises(StorageUnavailable, match="raise the limit of open files"):
            log.read_now(0, 100)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(read_records(log)) == 1
    store.close_now()


READS: dict[str, Callable[[LocalLog], object]] = {
    "read": lambda log: log.read_now(0, 100),
    "read_committed": lambda log: log.read_now(0, 100, committed=True),
    "offset_for_time": lambda log: log.offset_for_time_now(0),
    "max_timestamp": lambda log: log.max_timestamp_now(),
    "measure": lambda log: log.compaction.measure(NOW_MS),
    "retain": lambda log: log.retain(NOW_MS),
}


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex", ""])
@pytest.mark.parametrize("name", READS)
def test_a_disk_that_cannot_be_read_is_told_as_a_storage_error_and_passes(name: str, suffix: str) -> None:
    files = MemoryFiles()
    settings = replace(ROLLS, compaction=CompactionSettings(max_lag_ms=1), retention_ms=10**15)
    log = open_log(files, settings)
    for number in range(10):
        append(log, batch(b"x" * 300, producer_id=1, producer_epoch=0, sequence=number, transactional=True))
        log.end_transaction(
            ProducerId(1), ProducerEpoch(0), committed=False, coordinator_epoch=0, now_ms=NOW_MS, leader_epoch=EPOCH
        )
    log.close()
    expected = READS[name](open_log(files, settings, tail_bytes=0))
    log = open_log(files, settings, tail_bytes=0)
    calls = 0

    def fail(called: str, path: str) -> None:
        nonlocal calls
        if called in ("read", "open") and path.endswith(suffix):
            calls += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    files.on_call = fail
    told = ""
    try:
        READS[name](log)
    except StorageError as error:
        told = str(error)
    assert ("Input/output error" in told) == (calls > 0)
    assert calls or suffix, "none of them does without the disk"
    files.on_call = None
    found = READS[name](log)
    assert str(found) == str(expected) or isinstance(found, ReadResult | tuple)


def test_an_append_to_a_log_whose_indexes_cannot_be_read_is_told_so_and_passes() -> None:
    files = MemoryFiles()
    log = open_log(files)
    append(log, batch(b"first"), durable=True)
    log.close()
    log = open_log(files)
    files.on_call = failing("read", errno.EIO)
    with pytest.raises(StorageError, match="Input/output error"):
        append(log, batch(b"second"))
    files.on_call = None
    append(log, batch(b"third"))
    assert values(read_records(log)) == [b"first", b"third"]


def test_the_start_moves_also_while_data_cannot_be_made_durable() -> None:
    """What is deleted is what makes room on a full disk."""
    files = MemoryFiles()
    log = open_log(files, ROLLS)
    for number in range(5):
        append(log, batch(b"%d" % number * 800), durable=True)
    append(log, batch(b"x"))
    files.on_call = failing("sync", errno.ENOSPC, suffix=".log")
    with pytest.raises(StorageFull):
        log.flush()
    assert log.delete_before(3).result() == 3
    assert log.start_offset == 3
    assert log.fault is not None
    files.on_call = None
    again = open_log(files.after_crash(Mood.DROP, random.Random(0)), ROLLS)
    assert again.start_offset == 3
    assert values(read_records(again))[:1] == [b"3" * 800]


def test_a_segment_that_cannot_be_removed_is_left_until_the_log_is_opened() -> None:
    files = MemoryFiles()
    log = open_log(files, ROLLS)
    for number in range(5):
        append(log, batch(b"%d" % number * 800), durable=True)
    files.on_call = failing("remove", errno.EIO)
    assert log.delete_before(3).result() == 3
    assert values(read_records(log))[:1] == [b"3" * 800]
    files.on_call = None
    log.close()
    assert f"{DIRECTORY}/{0:020d}.log" in files.names
    again = open_log(files, ROLLS)
    assert f"{DIRECTORY}/{0:020d}.log" not in files.names
    assert again.start_offset == 3
