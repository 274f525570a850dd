"""`tidelog log dump`: every file on the disk can be looked into, also a damaged one."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.storage.test_compaction import compacted, keyed, marker, produced, seal
from tests.support.logs import NOW_MS, append, open_log, stored
from tidelog.model import LeaderEpoch, ProducerEpoch, ProducerId
from tidelog.records.record import build_batch, build_marker
from tidelog.settings import LogSettings
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.store import LocalStore

FIRST = "00000000000000000000"


def last_segment(partition: Path) -> Path:
    return max(partition.glob("*.log"))


def test_a_data_directory_is_shown_as_its_partitions(tidelog: Command, data: Path) -> None:
    rows = tidelog("log", "dump", data, "--json").rows
    assert [(row["topic"], row["partition"]) for row in rows] == [("clicks", 0), ("clicks", 1), ("orders", 0)]
    assert [row["end_offset"] for row in rows[:2]] == [150, 150]
    table = tidelog("log", "dump", data).out
    assert "orders" in table
    assert "tidelog log dump" in table


def test_a_partition_is_shown_as_its_segments_and_checkpoint(tidelog: Command, orders: Path) -> None:
    outcome = tidelog("log", "dump", orders, "--json")
    segments = outcome.rows_of("segment")
    assert [row["base_offset"] for row in segments][1:] == [row["end_offset"] for row in segments][:-1]
    (checkpoint,) = outcome.rows_of("checkpoint")
    assert checkpoint["offset"] == segments[-1]["end_offset"] == sum(row["records"] for row in segments)
    assert Path(segments[0]["file"]).name in tidelog("log", "dump", orders).out


def test_a_topics_directory_is_shown_as_its_partitions(tidelog: Command, data: Path) -> None:
    rows = tidelog("log", "dump", data / "logs" / "clicks", "--json").rows
    assert [row["partition"] for row in rows] == [0, 1]


def test_a_topic_may_be_named_without_its_id(tidelog: Command, data: Path, orders: Path) -> None:
    named = data / "logs" / "orders" / "0"
    for path, short in ((orders, named), (max(orders.glob("*.log")), named / max(orders.glob("*.log")).name)):
        assert tidelog("log", "dump", short, "--json") == tidelog("log", "dump", path, "--json")
    assert tidelog("log", "verify", named).code == 0
    assert tidelog("log", "dump", data / "logs" / "nobody").code == 2


def test_a_name_that_several_topics_had_is_not_guessed(tidelog: Command, data: Path, orders: Path) -> None:
    other = f"orders~{'0' * 32}"
    shutil.copytree(orders.parent, data / "logs" / other)
    code, _, err = tidelog("log", "dump", data / "logs" / "orders")
    assert code == 1
    assert other in err
    assert orders.parent.name in err
    assert len(tidelog("log", "dump", data / "logs" / other, "--json").rows) == 1


def test_directories_of_earlier_versions_are_shown_too(tidelog: Command, data: Path, orders: Path) -> None:
    orders.parent.rename(data / "logs" / "orders")
    rows = tidelog("log", "dump", data, "--json").rows
    assert [(row["topic"], row["partition"]) for row in rows] == [("clicks", 0), ("clicks", 1), ("orders", 0)]


def test_records_can_be_chosen_by_offset(tidelog: Command, orders: Path) -> None:
    rows = tidelog("log", "dump", orders, "--records", "--from", "50", "--to", "55", "--json").rows
    assert [row["offset"] for row in rows] == [50, 51, 52, 53, 54, 55]
    assert (rows[1]["key"], rows[1]["control"]) == ("order-0052", None)


@pytest.mark.parametrize("what", ["--records", "--batches"])
def test_a_limit_ends_the_listing_and_says_so(tidelog: Command, orders: Path, what: str) -> None:
    assert len(tidelog("log", "dump", orders, what, "--limit", "3", "--json").rows) == 3
    table = tidelog("log", "dump", orders, what, "--limit", "3").out
    assert "Only the first 3 are shown" in table
    assert "are shown" not in tidelog("log", "dump", orders, what, "--limit", "0").out


def test_a_single_log_file_is_shown_batch_by_batch(tidelog: Command, orders: Path) -> None:
    rows = tidelog("log", "dump", orders / f"{FIRST}.log", "--json").rows
    assert {row["type"] for row in rows} == {"batch"}
    assert [row["position"] for row in rows][:2] == [0, rows[0]["size_bytes"]]
    assert rows[0]["producer_id"] == 4711


def test_index_files_are_shown_entry_by_entry(tidelog: Command, orders: Path) -> None:
    batches = tidelog("log", "dump", orders / f"{FIRST}.log", "--json").rows
    entries = tidelog("log", "dump", orders / f"{FIRST}.index", "--json").rows
    last_offset_at = {row["position"]: row["last_offset"] for row in batches}
    assert entries
    assert all(last_offset_at[entry["log_position"]] == entry["offset"] for entry in entries)
    times = tidelog("log", "dump", orders / f"{FIRST}.timeindex", "--json").rows
    assert times[-1]["timestamp"] == max(row["max_timestamp"] for row in batches)
    assert "log position" in tidelog("log", "dump", orders, "--indexes").out


def test_the_checkpoint_is_shown_with_its_producers(tidelog: Command, orders: Path) -> None:
    checkpoint, producer = tidelog("log", "dump", orders / "checkpoint", "--json").rows
    assert producer["producer_id"] == 4711
    assert producer["batches"][-1][3] == checkpoint["offset"] - 1
    assert "4711" in tidelog("log", "dump", orders / "checkpoint").out


def test_the_lock_is_shown_with_its_holder(tidelog: Command, data: Path) -> None:
    assert tidelog("log", "dump", data / "lock", "--json").rows[0]["holder"] is None
    store = LocalStore(str(data), inline=True)
    assert tidelog("log", "dump", data / "lock", "--json").rows[0]["holder"].startswith("process ")
    store.close_now()


def test_transaction_markers_are_named(tidelog: Command, tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), inline=True)
    log = store.open(stored("topic"), LogSettings(), 0)
    marker = build_marker(
        committed=True,
        producer_id=ProducerId(1),
        producer_epoch=ProducerEpoch(0),
        coordinator_epoch=0,
        timestamp=5,
    )
    log.append(marker, now_ms=0, leader_epoch=LeaderEpoch(0), durable=False)
    store.close_now()
    assert "<commit>" in tidelog("log", "dump", tmp_path, "--records").out


def test_the_transactions_of_a_compacted_log_are_shown_and_verified(tidelog: Command, tmp_path: Path) -> None:
    log = open_log(OsFiles(), compacted(), directory=str(tmp_path))
    append(log, keyed((b"x", b"1")))
    seal(log)
    append(log, keyed((b"x", b"2")))
    append(log, produced(7, 0, (b"a", b"no"), transactional=True))
    append(log, marker(7, committed=False))
    seal(log)
    log.compaction.run(NOW_MS)
    log.close()
    (entry,) = tidelog("log", "dump", tmp_path / f"{FIRST}.txnindex", "--json").rows
    assert (entry["producer_id"], entry["first_offset"], entry["last_offset"]) == (7, 2, 3)
    (state,) = tidelog("log", "dump", tmp_path / "compaction", "--json").rows
    assert (state["swap"], state["aborted"]) == (None, [[0, 1]])
    shown = tidelog("log", "dump", tmp_path, "--indexes")
    assert shown.code == 0
    assert "marker at offset" in shown.out
    assert "aborted transactions" in shown.out
    assert tidelog("log", "verify", tmp_path).code == 0
    (tmp_path / f"{FIRST}.txnindex").unlink()
    assert "has 0 of 1 aborted transactions" in tidelog("log", "verify", tmp_path).out
    assert tidelog("log", "repair", tmp_path, "--yes").code == 0
    assert tidelog("log", "verify", tmp_path).code == 0
    assert (tmp_path / f"{FIRST}.txnindex").exists()


def test_values_are_shortened_unless_all_is_asked_for(tidelog: Command, tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), inline=True)
    log = store.open(stored("topic"), LogSettings(), 0)
    log.append(build_batch([(0, b"\xff\xfe", b"v" * 99, ())]), now_ms=0, leader_epoch=LeaderEpoch(0), durable=False)
    store.close_now()
    shortened = tidelog("log", "dump", tmp_path, "--records").out
    assert "0xfffe" in shortened
    assert "v" * 99 not in shortened
    assert "v" * 99 in tidelog("log", "dump", tmp_path, "--records", "--full").out
    (record,) = tidelog("log", "dump", tmp_path, "--records", "--json").rows
    assert (record["key"], record["value"]) == ({"hex": "fffe"}, "v" * 99)


@pytest.mark.parametrize("options", [[], ["--batches"], ["--records"]])
def test_damage_is_shown_at_its_place_and_what_is_behind_it_too(
    tidelog: Command, orders: Path, options: list[str]
) -> None:
    path = orders / f"{FIRST}.log"
    batches = tidelog("log", "dump", path, "--json").rows
    content = bytearray(path.read_bytes())
    content[batches[2]["position"] + 70] ^= 1
    path.write_bytes(content)
    outcome = tidelog("log", "dump", orders, *options, "--json")
    assert outcome.code == 1
    (damage,) = outcome.rows_of("damage")
    assert (damage["position"], damage["offset"]) == (batches[2]["position"], batches[2]["base_offset"])
    if options == ["--batches"]:
        at = outcome.rows.index(damage)
        assert outcome.rows[at - 1]["position"] == batches[1]["position"]
        assert outcome.rows[at + 1]["position"] == batches[3]["position"]
    assert f"position {batches[2]['position']}" in tidelog("log", "dump", orders, *options).out


@pytest.mark.parametrize(
    ("name", "keep", "message"),
    [
        (f"{FIRST}.index", 13, "5 bytes after the last whole entry"),
        (f"{FIRST}.timeindex", 13, "1 bytes after the last whole entry"),
        ("checkpoint", 13, "the checksum is wrong"),
    ],
)
def test_helper_files_that_are_cut_short_are_shown_as_far_as_they_go(
    tidelog: Command, orders: Path, name: str, keep: int, message: str
) -> None:
    path = orders / name
    path.write_bytes(path.read_bytes()[:keep])
    outcome = tidelog("log", "dump", path, "--json")
    assert outcome.code == 1
    assert message in outcome.rows_of("damage")[0]["what"]


@pytest.mark.parametrize("name", ["notes.txt", "1.log"])
def test_a_file_that_is_none_of_ours_is_refused(tidelog: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    code, _, err = tidelog("log", "dump", tmp_path / name)
    assert code == 1
    assert "is not a file of a log" in err


def test_a_directory_without_a_log_is_refused(tidelog: Command, tmp_path: Path) -> None:
    code, _, err = tidelog("log", "dump", tmp_path)
    assert code == 1
    assert "holds no log" in err
