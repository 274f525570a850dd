"""`tidelog log repair`: it says what it will do, does that, and loses nothing that could be read."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.test_log_verify import DAMAGES, FIRST, batches_of, flip, flip_two_batches, segments, tear_the_tail
from tidelog.cli.log import SAMPLE_ORDERS
from tidelog.model import LeaderEpoch, ProducerEpoch, ProducerId
from tidelog.records.batch import iterate
from tidelog.records.record import BatchBuilder, decode
from tidelog.settings import LogSettings
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.store import LocalStore

# What stays wrong: bytes or offsets are gone, and no file can be made to say otherwise.
LOST = {
    "a segment deleted from the middle",
    "a log file deleted from the middle",
    "the first segment deleted",
    "all segments deleted",
}
# What stays wrong unless the log may be cut there.
NEEDS_A_CUT = {
    "a bit of a record",
    "a bit of a batch length",
    "a high bit of a batch length",
    "a bit of a magic",
    "a bit of a CRC",
    "a bit of a record count",
    "a base offset that is too large",
    "a base offset that is negative or huge",
    "two batches of one segment",
    "a sealed segment that is cut short",
    "a segment of garbage",
    "a segment that starts inside another",
}


def content_of(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "lock"}


def readable(tidelog: Command, partition: Path) -> list[int]:
    return [row["offset"] for row in tidelog("log", "dump", partition, "--records", "--json").rows_of("record")]


def test_a_sound_log_needs_no_repair(tidelog: Command, data: Path) -> None:
    before = content_of(data)
    assert tidelog("log", "repair", data, "--yes") == (0, "Nothing to repair.\n", "")
    assert content_of(data) == before


def test_without_yes_the_plan_is_shown_and_nothing_is_changed(tidelog: Command, data: Path, orders: Path) -> None:
    (torn,) = tear_the_tail(orders)
    (orders / f"{FIRST}.index").unlink()
    (orders / "checkpoint.tmp").touch()
    before = content_of(data)
    code, out, err = tidelog("log", "repair", data)
    assert code == 1
    assert f"cut 90 bytes at position {torn.position} of {torn.file}, after offset 122" in out
    assert f"rebuild the indexes of {FIRST}.log" in out
    assert "remove checkpoint.tmp" in out
    assert err == "tidelog: error: nothing was changed; run again with --yes to carry out these steps\n"
    assert content_of(data) == before


@pytest.mark.parametrize("name", DAMAGES)
def test_after_a_repair_only_what_cannot_be_repaired_is_left(
    tidelog: Command, data: Path, orders: Path, name: str
) -> None:
    DAMAGES[name](orders)
    survivors = readable(tidelog, orders)
    repair = tidelog("log", "repair", data, "--yes")
    verify = tidelog("log", "verify", data, "--json")
    assert readable(tidelog, orders) == survivors
    if name in LOST | NEEDS_A_CUT:
        assert (repair.code, verify.code) == (1, 1)
        assert "leave" in repair.out
    else:
        assert (repair.code, verify.code) == (0, 0)
        assert reopened(data) == survivors
    before = content_of(data)
    assert "Done." not in tidelog("log", "repair", data, "--yes").out
    assert content_of(data) == before


@pytest.mark.parametrize("name", sorted(NEEDS_A_CUT))
def test_a_log_can_be_cut_at_its_damage_and_what_is_cut_is_kept(
    tidelog: Command, data: Path, orders: Path, name: str
) -> None:
    first = DAMAGES[name](orders)[0]
    before = b"".join(path.read_bytes() for path in segments(orders))
    assert tidelog("log", "repair", data, "--yes", "--cut-at-damage").code == 0
    assert tidelog("log", "verify", data).code == 0
    assert segments(orders)[-1].name <= first.file
    kept = b"".join(path.read_bytes() for path in (*segments(orders), *sorted(orders.glob("*.cut"))))
    assert kept == before
    offsets = readable(tidelog, orders)
    assert offsets == list(range(len(offsets)))
    assert reopened(data) == offsets


def reopened(data: Path) -> list[int]:
    """The offsets that a log finds which opens the directory; it has nothing to recover."""
    store = LocalStore(str(data), inline=True)
    log = store.open(SAMPLE_ORDERS.partition(0), LogSettings(), 0)
    assert log.recovery.clean, log.recovery
    found: list[int] = []
    while (at := found[-1] + 1 if found else log.start_offset) < log.end_offset:
        found += [record.offset for batch in iterate(log.read_now(at, 1).read()) for record in decode(batch)]
    assert store.close_now() == {}
    return found


def test_damage_in_the_middle_does_not_keep_the_rest_from_being_repaired(
    tidelog: Command, data: Path, orders: Path
) -> None:
    flip_two_batches(orders)
    (orders / "checkpoint").write_bytes(b"nonsense")
    survivors = readable(tidelog, orders)
    repair = tidelog("log", "repair", data, "--yes")
    assert repair.code == 1
    assert "Done." in repair.out
    assert "--cut-at-damage" in repair.out
    assert {row["kind"] for row in tidelog("log", "verify", data, "--json").errors} == {"damage"}
    assert readable(tidelog, orders) == survivors


def test_producers_are_remembered_by_the_new_checkpoint(tidelog: Command, data: Path, orders: Path) -> None:
    before = tidelog("log", "dump", orders / "checkpoint", "--json").rows_of("producer")
    (orders / "checkpoint").unlink()
    assert tidelog("log", "repair", data, "--yes").code == 0
    after = tidelog("log", "dump", orders / "checkpoint", "--json").rows_of("producer")
    assert after[0]["batches"] == before[0]["batches"]


def test_the_start_of_the_log_survives_a_repair(tidelog: Command, data: Path, orders: Path) -> None:
    store = LocalStore(str(data), inline=True)
    store.open(SAMPLE_ORDERS.partition(0), LogSettings(), 0).delete_before(20)
    store.close_now()
    last = segments(orders)[-1]
    os.truncate(last, last.stat().st_size - 5)
    assert tidelog("log", "repair", data, "--yes").code == 0
    assert tidelog("log", "dump", orders / "checkpoint", "--json").rows[0]["start_offset"] == 20


def test_what_a_crash_left_behind_the_checkpoint_is_kept(tidelog: Command, data: Path, orders: Path) -> None:
    store = LocalStore(str(data), inline=True)
    log = store.open(SAMPLE_ORDERS.partition(0), LogSettings(segment_bytes=2048, index_interval_bytes=256), 0)
    for number in range(30):
        builder = BatchBuilder(producer_id=ProducerId(9), producer_epoch=ProducerEpoch(0), base_sequence=number)
        builder.append(b"x" * 100, timestamp=0)
        log.append(builder.build(), now_ms=0, leader_epoch=LeaderEpoch(0), durable=False)
    log.abandon()
    del store
    for path in segments(orders)[-2:]:
        path.with_suffix(".index").unlink(missing_ok=True)
    flip(segments(orders)[-1], batches_of(segments(orders)[-1])[-1].position + 70)
    assert tidelog("log", "repair", data, "--yes").code == 0
    assert tidelog("log", "verify", data).code == 0
    assert readable(tidelog, orders) == list(range(123 + 29))
    rows = tidelog("log", "dump", orders / "checkpoint", "--json").rows_of("producer")
    assert {row["producer_id"]: row["batches"][-1][1] for row in rows}[9] == 28


def test_data_that_was_set_aside_is_not_removed(tidelog: Command, data: Path, orders: Path) -> None:
    aside = orders / f"{9:020d}.log.unreachable"
    aside.write_bytes(b"data")
    assert tidelog("log", "repair", data, "--yes").code == 0
    assert aside.read_bytes() == b"data"


def test_a_directory_in_use_is_not_repaired(tidelog: Command, data: Path, orders: Path) -> None:
    tear_the_tail(orders)
    lock = OsFiles().lock(str(data / "lock"), "process 4711\n")
    before = content_of(data)
    code, out, err = tidelog("log", "repair", orders, "--yes")
    assert (code, out) == (1, "")
    assert "is in use by process 4711; stop it" in err
    assert content_of(data) == before
    del lock


def test_a_partition_that_stands_alone_can_be_repaired(tidelog: Command, orders: Path, tmp_path: Path) -> None:
    tear_the_tail(orders)
    copy = orders.rename(tmp_path / "copy")
    assert tidelog("log", "repair", copy, "--yes").code == 0
    assert tidelog("log", "verify", copy).code == 0


def test_on_a_terminal_the_user_is_asked(
    tidelog: Command, data: Path, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tear_the_tail(orders)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda _: True)
    assert "Done." in tidelog("log", "repair", data).out
    assert tidelog("log", "verify", data).code == 0
