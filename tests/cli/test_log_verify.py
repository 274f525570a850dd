"""`tidelog log verify`: whatever is damaged, it says in which file and where."""

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import lz4.frame  # type: ignore[import-untyped]
import pytest

from tests.cli.conftest import Command
from tests.cli.processes import TIDELOG
from tests.support.logs import at_once, stored
from tidelog.model import LeaderEpoch
from tidelog.records.batch import HEADER_SIZE, BatchView, assemble, iterate, place, read_header
from tidelog.records.compression import Codec, compress
from tidelog.records.record import build_batch
from tidelog.settings import LogSettings
from tidelog.storage.local.checkpoint import Checkpoint, decode_checkpoint
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.store import LocalStore
from tidelog.storage.local.verify import Kind, PartitionCheck

FIRST = "00000000000000000000"


class Place(NamedTuple):
    """Where something was damaged: what verify must name."""

    file: str
    position: int
    kind: str


def batches_of(path: Path) -> list[BatchView]:
    return list(iterate(path.read_bytes()))


def segments(partition: Path) -> list[Path]:
    return sorted(partition.glob("*.log"))


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


def rewrite_checkpoint(partition: Path, change: Callable[[Checkpoint], Checkpoint]) -> None:
    path = partition / "checkpoint"
    checkpoint = decode_checkpoint(path.read_bytes())
    assert checkpoint is not None
    path.write_bytes(change(checkpoint).encode())


def flip_in_batch(at: int) -> Callable[[Path], list[Place]]:
    """A bit of the fourth batch of the first, sealed segment."""

    def damage(partition: Path) -> list[Place]:
        path = partition / f"{FIRST}.log"
        position = batches_of(path)[3].position
        flip(path, position + at)
        return [Place(path.name, position, "damage")]

    return damage


def flip_the_base_offset(at: int) -> Callable[[Path], list[Place]]:
    def damage(partition: Path) -> list[Place]:
        path = partition / f"{FIRST}.log"
        position = batches_of(path)[3].position
        flip(path, position + at)
        return [Place(path.name, position, "order")]

    return damage


def flip_two_batches(partition: Path) -> list[Place]:
    path = partition / f"{FIRST}.log"
    batches = batches_of(path)
    flip(path, batches[2].position + 80)
    flip(path, batches[6].position + 8)
    return [Place(path.name, batches[number].position, "damage") for number in (2, 6)]


def cut_a_sealed_segment(partition: Path) -> list[Place]:
    path = partition / f"{FIRST}.log"
    last = batches_of(path)[-1]
    os.truncate(path, last.position + 30)
    return [Place(path.name, last.position, "damage")]


def tear_the_tail(partition: Path) -> list[Place]:
    path = segments(partition)[-1]
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(build_batch([(0, None, b"x" * 100, ())]))[:90])
    return [Place(path.name, size, "torn-tail")]


def cut_the_tail(partition: Path) -> list[Place]:
    path = segments(partition)[-1]
    last = batches_of(path)[-1]
    os.truncate(path, last.position + last.header.size - 5)
    return [Place("checkpoint", 0, "checkpoint"), Place(path.name, last.position, "torn-tail")]


def fill_a_segment_with_garbage(partition: Path) -> list[Place]:
    path = segments(partition)[1]
    path.write_bytes(bytes(range(256)) * 16)
    return [Place(path.name, 0, "damage")]


def delete_a_segment(partition: Path) -> list[Place]:
    gone, following = segments(partition)[1:3]
    for suffix in (".log", ".index", ".timeindex"):
        gone.with_suffix(suffix).unlink()
    return [Place(following.name, 0, "gap")]


def delete_a_log_file(partition: Path) -> list[Place]:
    gone, following = segments(partition)[1:3]
    gone.unlink()
    return [Place(following.name, 0, "gap")]


def delete_the_first_segment(partition: Path) -> list[Place]:
    gone, following = segments(partition)[:2]
    for suffix in (".log", ".index", ".timeindex"):
        gone.with_suffix(suffix).unlink()
    return [Place(following.name, 0, "gap")]


def delete_all_segments(partition: Path) -> list[Place]:
    for path in segments(partition):
        path.unlink()
    return [Place("checkpoint", 0, "checkpoint")]


def add_a_segment_inside_another(partition: Path) -> list[Place]:
    following = segments(partition)[1]
    copy = following.with_name(f"{int(following.stem) - 1:020d}.log")
    for suffix in (".log", ".index", ".timeindex"):
        copy.with_suffix(suffix).touch()
    return [Place(copy.name, 0, "order")]


def delete_file(name: str) -> Callable[[Path], list[Place]]:
    def damage(partition: Path) -> list[Place]:
        (partition / name).unlink()
        return [Place(name, -1, "index")]

    return damage


def flip_index_entry(name: str, entry: int, at: int) -> Callable[[Path], list[Place]]:
    size = 8 if name.endswith(".index") else 12

    def damage(partition: Path) -> list[Place]:
        flip(partition / name, entry * size + at)
        return [Place(name, entry * size, "index")]

    return damage


def end_the_time_index_early(partition: Path) -> list[Place]:
    path = partition / f"{FIRST}.timeindex"
    size = path.stat().st_size - 12
    os.truncate(path, size)
    return [Place(path.name, size - 12, "index")]


def cut_an_index(partition: Path) -> list[Place]:
    path = partition / f"{FIRST}.index"
    os.truncate(path, 13)
    return [Place(path.name, 8, "index")]


def cut_the_last_index(partition: Path) -> list[Place]:
    path = segments(partition)[-1].with_suffix(".index")
    os.truncate(path, 8)
    return [Place(path.name, 8, "index")]


def flip_the_checkpoint(partition: Path) -> list[Place]:
    flip(partition / "checkpoint", 20)
    return [Place("checkpoint", 0, "checkpoint")]


def checkpoint_with(**changes: int) -> Callable[[Path], list[Place]]:
    def damage(partition: Path) -> list[Place]:
        def changed(checkpoint: Checkpoint) -> Checkpoint:
            values = {name: getattr(checkpoint, name) for name in checkpoint.__slots__}
            return Checkpoint(**{**values, **{name: values[name] + more for name, more in changes.items()}})

        rewrite_checkpoint(partition, changed)
        return [Place("checkpoint", 0, "checkpoint")]

    return damage


DAMAGES: dict[str, Callable[[Path], list[Place]]] = {
    "a bit of a record": flip_in_batch(75),
    "a bit of a batch length": flip_in_batch(11),
    "a high bit of a batch length": flip_in_batch(8),
    "a bit of a magic": flip_in_batch(16),
    "a bit of a CRC": flip_in_batch(18),
    "a bit of a record count": flip_in_batch(60),
    "a base offset that is too large": flip_the_base_offset(4),
    "a base offset that is negative or huge": flip_the_base_offset(0),
    "two batches of one segment": flip_two_batches,
    "a sealed segment that is cut short": cut_a_sealed_segment,
    "a torn tail": tear_the_tail,
    "a tail that is cut short": cut_the_tail,
    "a segment of garbage": fill_a_segment_with_garbage,
    "a segment deleted from the middle": delete_a_segment,
    "a log file deleted from the middle": delete_a_log_file,
    "the first segment deleted": delete_the_first_segment,
    "all segments deleted": delete_all_segments,
    "a segment that starts inside another": add_a_segment_inside_another,
    "a missing index": delete_file(f"{FIRST}.index"),
    "a missing time index": delete_file(f"{FIRST}.timeindex"),
    "the position of an index entry": flip_index_entry(f"{FIRST}.index", 2, 7),
    "the offset of an index entry": flip_index_entry(f"{FIRST}.index", 2, 3),
    "the high bits of an index entry": flip_index_entry(f"{FIRST}.index", 2, 4),
    "the timestamp of a time index entry": flip_index_entry(f"{FIRST}.timeindex", 1, 7),
    "the offset of a time index entry": flip_index_entry(f"{FIRST}.timeindex", 1, 10),
    "a time index that ends too early": end_the_time_index_early,
    "an index that ends inside an entry": cut_an_index,
    "an index that is shorter than the checkpoint says": cut_the_last_index,
    "a bit of the checkpoint": flip_the_checkpoint,
    "a checkpoint with another offset": checkpoint_with(offset=1),
    "a checkpoint inside a batch": checkpoint_with(position=-1),
    "a checkpoint behind the end": checkpoint_with(position=1),
    "a checkpoint of a missing segment": checkpoint_with(segment=1),
}


def test_a_sound_log_is_sound(tidelog: Command, data: Path) -> None:
    code, out, err = tidelog("log", "verify", data, "--deep")
    assert (code, err) == (0, "")
    assert out.startswith("3 partitions, ")
    assert out.endswith(": sound\n")
    (summary,) = tidelog("log", "verify", data, "--json").rows
    assert (summary["errors"], summary["notes"], summary["partitions"]) == (0, 0, 3)


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_its_file_and_position_named(tidelog: Command, orders: Path, name: str) -> None:
    expected = DAMAGES[name](orders)
    outcome = tidelog("log", "verify", orders, "--json")
    found = [Place(Path(row["file"]).name, row["position"], row["kind"]) for row in outcome.errors]
    assert outcome.code == 1
    for damage in expected:
        assert damage in [found_._replace(position=-1) if damage.position < 0 else found_ for found_ in found]
    # Each is reported once, or twice if it is wrong in two ways: no damage is taken for many.
    assert len(found) <= 2 * len(expected)
    table = tidelog("log", "verify", orders).out
    assert all(place.file in table for place in expected)


def test_every_single_bit_matters(orders: Path) -> None:
    """Every damaged byte of every file is noticed. The leader epoch is outside the CRC and judged by its neighbours;
    an entry of the time index may name another offset of the same batch and still be true."""
    files = OsFiles()
    assert list(PartitionCheck(files, str(orders))) == []
    unnoticed = []
    for path in sorted(orders.iterdir()):
        good = path.read_bytes()
        starts = [batch.position for batch in iterate(good)] if path.suffix == ".log" else []
        epochs = {start + at for start in starts for at in (12, 13, 14, 15)}
        for position in range(0, len(good), 1 if len(good) < 200 else 53):
            if position in epochs or (path.suffix == ".timeindex" and position % 12 == 11):
                continue
            path.write_bytes(good[:position] + bytes([good[position] ^ 0x20]) + good[position + 1 :])
            if not any(finding.is_error for finding in PartitionCheck(files, str(orders))):
                unnoticed.append((path.name, position))
        path.write_bytes(good)
    assert unnoticed == []


def around(payload: bytes, count: int, codec: Codec = Codec.NONE) -> bytearray:
    """A batch with a right CRC around whatever it is."""
    return assemble(
        payload,
        attributes=codec,
        record_count=count,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=-1,  # type: ignore[arg-type]
        producer_epoch=-1,  # type: ignore[arg-type]
        base_sequence=-1,
    )


RECORD = bytes(build_batch([(0, None, b"value", ())])[HEADER_SIZE:])
LARGE_RECORD = bytes(build_batch([(0, None, b"value" * 30_000, ())])[HEADER_SIZE:])
POISON = {
    "garbage": (around(b"\x7f" * 20, 2), "record 0"),
    "compressed garbage": (around(bytes(compress(Codec.ZSTD, b"\x7f" * 20)), 2, Codec.ZSTD), "record 0"),
    "no lz4": (around(b"\x7f" * 20, 2, Codec.LZ4), "lz4 data"),
    "lz4 that Java cannot read": (
        around(lz4.frame.compress(LARGE_RECORD, block_linked=True), 1, Codec.LZ4),
        "linked",
    ),
    "a varint that Java cannot read": (around(b"\x18\x00\x00\x80\x80\x80\x80\x80\x00\x01\x01\x00\x00", 1), "varint"),
    "an offset twice": (around(RECORD * 2, 2), "offset delta"),
}


def test_records_that_cannot_be_read_are_found_when_asked_for(tidelog: Command, tmp_path: Path) -> None:
    """Stored by an earlier version, or with tidelog.validate=header."""
    store = LocalStore(str(tmp_path), inline=True)
    log = store.open(stored("topic"), LogSettings(), 0)
    expected = []
    for codec, (poison, reason) in zip(cycle(Codec), POISON.values(), strict=False):
        good = build_batch([(0, None, b"value", ()), (0, b"key", None, ())], codec)
        log.append(good, now_ms=0, leader_epoch=LeaderEpoch(0), durable=False)
        appended = log.append(bytearray(poison), now_ms=0, leader_epoch=LeaderEpoch(0), durable=False)
        expected.append((at_once(appended).base_offset, reason))
    store.close_now()
    assert tidelog("log", "verify", tmp_path).code == 0
    assert tidelog("log", "verify", tmp_path, "--deep").code == 1
    errors = tidelog("log", "verify", tmp_path, "--deep", "--json").errors
    assert {(error["kind"], error["partition"]) for error in errors} == {("records", "topic-0")}
    assert [error["offset"] for error in errors] == [offset for offset, _ in expected]
    for error, (_, reason) in zip(errors, expected, strict=True):
        assert reason in error["what"]


def test_a_record_that_claims_all_offsets_is_found_when_asked_for(tidelog: Command, tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), inline=True)
    log = store.open(stored("topic"), LogSettings(), 0)
    log.append(build_batch([(0, None, b"value", ())]), now_ms=0, leader_epoch=LeaderEpoch(0), durable=False)
    store.close_now()
    claims = around(RECORD, 2**31 - 1)
    place(claims, 0, read_header(claims), 1, LeaderEpoch(0))
    with open(Path(log.directory) / f"{FIRST}.log", "ab") as file:
        file.write(claims)
    (error,) = tidelog("log", "verify", tmp_path, "--deep", "--json").errors
    assert (error["kind"], error["offset"]) == ("records", 1)


def test_missing_offsets_are_legal_in_a_compacted_topic(tidelog: Command, orders: Path) -> None:
    delete_a_segment(orders)
    outcome = tidelog("log", "verify", orders, "--compacted", "--json")
    assert outcome.code == 0
    (note,) = outcome.rows_of("finding")
    assert (note["severity"], note["kind"]) == ("note", "gap")


def test_a_segment_whose_indexes_are_left_was_not_compacted_away(tidelog: Command, orders: Path) -> None:
    delete_a_log_file(orders)
    (error,) = tidelog("log", "verify", orders, "--compacted", "--json").errors
    assert error["kind"] == "gap"


def test_leftovers_and_unknown_files_are_noted(tidelog: Command, orders: Path) -> None:
    names = ["checkpoint.tmp", f"{7:020d}.index", f"{9:020d}.log.unreachable", f"{FIRST}.log.12.cut", "notes.txt"]
    for name in names:
        (orders / name).touch()
    outcome = tidelog("log", "verify", orders, "--json")
    assert outcome.code == 0
    kinds = {Path(row["file"]).name: row["kind"] for row in outcome.rows_of("finding")}
    assert kinds == dict(zip(names, ["leftover", "leftover", "set-aside", "set-aside", "unknown-file"], strict=True))


def test_a_log_without_a_checkpoint_is_sound(tidelog: Command, orders: Path) -> None:
    (orders / "checkpoint").unlink()
    outcome = tidelog("log", "verify", orders, "--json")
    assert outcome.code == 0
    assert [row["kind"] for row in outcome.rows_of("finding")] == ["checkpoint"]


def test_a_log_that_ends_before_its_start_is_found(tidelog: Command, orders: Path) -> None:
    checkpoint_with(start_offset=1000)(orders)
    (error,) = tidelog("log", "verify", orders, "--json").errors
    assert (error["kind"], error["offset"]) == ("checkpoint", 1000)


def test_segments_before_the_start_of_the_log_are_leftovers(tidelog: Command, orders: Path) -> None:
    second = int(segments(orders)[1].stem)
    checkpoint_with(start_offset=second)(orders)
    outcome = tidelog("log", "verify", orders, "--json")
    assert outcome.code == 0
    assert [Path(row["file"]).name for row in outcome.rows_of("finding")] == [f"{FIRST}.log"]
    assert tidelog("log", "repair", orders, "--yes").code == 0
    assert not list(orders.glob(f"{FIRST}.*"))
    assert tidelog("log", "verify", orders).out.endswith(": sound\n")


def test_what_a_running_broker_is_writing_is_no_damage(tidelog: Command, data: Path, orders: Path) -> None:
    tear_the_tail(orders)
    assert tidelog("log", "verify", data).code == 1
    lock = OsFiles().lock(str(data / "lock"), "process 1\n")
    code, out, _ = tidelog("log", "verify", data)
    assert code == 0
    assert "in use by process 1" in out
    assert "being written" in out
    del lock


def test_damage_before_the_checkpoint_is_damage_also_while_a_broker_runs(
    tidelog: Command, data: Path, orders: Path
) -> None:
    flip_in_batch(75)(orders)
    lock = OsFiles().lock(str(data / "lock"), "process 1\n")
    assert tidelog("log", "verify", data).code == 1
    del lock


def test_verifying_changes_nothing(tidelog: Command, data: Path, orders: Path) -> None:
    flip_two_batches(orders)
    tear_the_tail(orders)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in data.rglob("*") if path.is_file()}
    tidelog("log", "verify", data, "--deep")
    assert before == {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in data.rglob("*") if path.is_file()
    }


def test_batches_inside_damaged_records_are_not_taken_for_the_log(tmp_path: Path) -> None:
    """A topic that carries batches as values: the search behind damage must not step into them."""
    store = LocalStore(str(tmp_path), inline=True)
    log = store.open(stored("topic"), LogSettings(), 0)
    for number in range(4):
        inner = build_batch([(0, None, b"inner", ())])
        log.append(
            build_batch([(number, None, bytes(inner), ())]), now_ms=0, leader_epoch=LeaderEpoch(0), durable=False
        )
    store.close_now()
    path = Path(log.directory) / f"{FIRST}.log"
    batches = batches_of(path)
    flip(path, batches[1].position + 62)
    (finding,) = PartitionCheck(OsFiles(), str(path.parent))
    assert (finding.kind, finding.position, finding.size) == (
        Kind.DAMAGE,
        batches[1].position,
        batches[1].header.size,
    )


def test_progress_covers_every_byte(orders: Path) -> None:
    flip_two_batches(orders)
    steps: list[int] = []
    list(PartitionCheck(OsFiles(), str(orders), progress=steps.append))
    assert sum(steps) == sum(path.stat().st_size for path in segments(orders))


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_directory(path: Path) -> None:
    path.mkdir()


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "suffix"),
    [
        *(
            (make_fifo, suffix)
            for suffix in (".log", ".index", ".timeindex", ".txnindex", "checkpoint", "compaction")
        ),
        *((make_directory, suffix) for suffix in (".log", ".index")),
        *((link_to_a_device, suffix) for suffix in (".log", "checkpoint")),
    ],
)
def test_what_is_not_a_regular_file_is_named_and_not_waited_for(
    orders: Path, make: Callable[[Path], None], suffix: str
) -> None:
    if suffix == ".txnindex":  # which the checkpoint has to know of
        rewrite_checkpoint(orders, lambda known: replace(known, aborted=[[0, 1]]))
    path = orders / (f"{FIRST}{suffix}" if suffix.startswith(".") else suffix)
    path.unlink(missing_ok=True)
    make(path)
    for command in (["verify"], ["repair", "--yes"], ["dump", "--indexes", "--batches"]):
        done = subprocess.run([*TIDELOG, "log", *command, orders], capture_output=True, timeout=60, check=False)
        assert done.returncode != 0
        assert path.name.encode() in done.stdout + done.stderr
        assert b"not a regular file" in done.stdout + done.stderr
        assert b"Traceback" not in done.stderr


def test_a_lock_that_is_a_fifo_is_not_waited_for(data: Path) -> None:
    (data / "lock").unlink()
    os.mkfifo(data / "lock")
    done = subprocess.run([*TIDELOG, "log", "verify", data], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_of_zeros_is_judged_in_linear_time_and_told_in_a_few_lines(
    tidelog: Command, orders: Path, suffix: str
) -> None:
    (orders / f"{FIRST}{suffix}").write_bytes(bytes(24 * 20_000))
    began = time.process_time()
    errors = tidelog("log", "verify", orders, "--json").errors
    assert len(errors) == 21
    assert {row["kind"] for row in errors} == {"index"}
    assert "more entries are wrong" in errors[-1]["what"]
    shown = tidelog("log", "verify", orders)
    assert (shown.code, len(shown.out.splitlines())) == (1, 25)
    assert tidelog("log", "repair", orders, "--yes").code == 0
    assert time.process_time() - began < 10, "a millisecond for each entry and command would be a minute and more"
    assert tidelog("log", "verify", orders).code == 0
