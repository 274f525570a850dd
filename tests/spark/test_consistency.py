"""Whether tables and checkpoints belong together, and what is remembered of them: by files, without a JVM."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidelog.errors import InvalidInput
from tidelog.spark.pipelines import consistency, engine, tables
from tidelog.spark.pipelines.consistency import Consistency
from tidelog.spark.pipelines.declared import DeclaredTable, check_flows, full_names
from tidelog.spark.pipelines.lock import RunLock
from tidelog.spark.pipelines.tables import ALL_TABLES, Memory

SPARK: Any = SimpleNamespace()
COMMAND = "tidelog pipeline run shop"


class LocalPlaces:
    """As `Places`, for folders of this machine."""

    def __init__(self, spark: object) -> None: ...

    def exists(self, place: str) -> bool:
        return Path(place).exists()

    def names_in(self, folder: str) -> list[str]:
        return os.listdir(folder) if Path(folder).exists() else []

    def mention(self, folder: str, text: str) -> bool:
        return any(text in file.read_text() for file in Path(folder).iterdir())

    def delete(self, folder: str) -> None:
        shutil.rmtree(folder)


class World:
    """A table `kept` with the flow `kept`, at numbers of batches that a test chooses."""

    def __init__(self, folder: Path) -> None:
        self.storage = folder / "storage"
        self.kept = DeclaredTable(
            "spark_catalog", "default", "kept", True, True, "parquet", ("kept",), str(folder / "warehouse" / "kept")
        )
        self.known: set[str] = {"kept"}
        self.adopted: list[str] = []

    def checkpoint(self, planned: int, committed: int, *, flow: str = "kept", version: int = 0) -> None:
        folder = Path(self.kept.checkpoint(str(self.storage), flow)) / str(version)
        self._numbers(folder / "offsets", planned)
        self._numbers(folder / "commits", committed)

    def data(self, written: int, *, compacted: int | None = None) -> None:
        log = Path(self.kept.location) / "_spark_metadata"
        self._numbers(log, written)
        if compacted is not None:
            (log / str(compacted)).rename(log / f"{compacted}.compact")
        (log.parent / "part-0.parquet").touch()

    def _numbers(self, folder: Path, last: int) -> None:
        folder.mkdir(parents=True)
        for number in range(last + 1):
            (folder / str(number)).touch()
            (folder / f".{number}.crc").touch()

    def check(self, *, cleared: tuple[str, ...] = (), ours: bool = True, table: DeclaredTable | None = None) -> None:
        declared = [table or self.kept]
        places = {self.kept.location} if ours else set()
        self.consistency.check(declared, ours=places, cleared=cleared)
        self.consistency.take_over(declared, cleared=cleared)

    @property
    def consistency(self) -> Consistency:
        return Consistency(SPARK, str(self.storage), COMMAND)

    @property
    def has_files(self) -> bool:
        return Path(self.kept.location).exists()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(consistency, "Places", LocalPlaces)
    monkeypatch.setattr(tables, "is_known", lambda _spark, _database, name: name in made.known)
    monkeypatch.setattr(tables, "adopt", lambda _spark, _database, name, _format, _place: made.adopted.append(name))
    return made


@pytest.mark.parametrize(
    ("planned", "committed", "written", "problem"),
    [
        (-1, -1, -1, None),
        (0, -1, -1, None),  # killed before anything was written
        (0, -1, 0, None),  # killed after the table had it, before the checkpoint
        (0, 0, 0, None),
        (7, 6, 6, None),
        (7, 6, 7, None),
        (12, 12, 12, None),
        (0, 0, -1, "data of the table kept is missing"),
        (7, 6, 5, "data of the table kept is missing"),
        (-1, -1, 0, "the checkpoint of its flow kept is missing"),
        (3, 3, 5, "the checkpoint of its flow kept is missing"),
    ],
)
def test_batches_of_the_table_are_those_of_the_checkpoint(
    world: World, planned: int, committed: int, written: int, problem: str | None
) -> None:
    world.checkpoint(planned, committed)
    world.data(written, compacted=9 if written > 9 else None)
    if problem is None:
        world.check()
        return
    with pytest.raises(InvalidInput, match=problem) as raised:
        world.check()
    assert f"{COMMAND} --recompute kept" in str(raised.value)
    assert world.has_files, "nothing is touched"
    world.check(cleared=(world.kept.full_name,))


def test_the_newest_checkpoint_of_a_flow_counts(world: World) -> None:
    world.checkpoint(9, 9)
    world.checkpoint(2, 2, version=1)
    world.data(2)
    world.check()


def test_a_folder_of_checkpoints_that_is_gone_or_a_table_that_is_gone_is_noticed(world: World) -> None:
    world.data(3)
    with pytest.raises(InvalidInput, match="checkpoint of its flow kept"):
        world.check()
    shutil.rmtree(world.kept.location)
    world.checkpoint(3, 3)
    with pytest.raises(InvalidInput, match="data of the table kept is missing"):
        world.check()


def test_a_flow_with_another_name_is_told_which_one_wrote_the_table(world: World) -> None:
    world.checkpoint(5, 5)
    world.data(5)
    with pytest.raises(
        InvalidInput, match="was written by the flow kept; the flow renamed would start from the beginning"
    ):
        world.check(table=replace(world.kept, flows=("renamed",)))


def test_a_table_of_another_format_must_be_there_if_its_flow_has_come_far(world: World) -> None:
    delta = replace(world.kept, format="delta")
    world.checkpoint(1, 1)
    with pytest.raises(InvalidInput, match="data of the table kept is missing"):
        world.check(table=delta)
    Path(world.kept.location).mkdir(parents=True)
    world.check(table=delta)


def test_files_of_a_table_that_nobody_remembers_are_taken_over_with_their_checkpoint(world: World) -> None:
    world.known.clear()
    world.checkpoint(2, 1)
    world.data(2)
    world.check()
    assert world.adopted == ["kept"]
    assert world.has_files


@pytest.mark.parametrize("written", [-1, 2])
def test_files_that_are_not_ours_are_never_touched(world: World, written: int) -> None:
    world.known.clear()
    world.data(written)
    for cleared in ((), (world.kept.full_name,)):
        with pytest.raises(InvalidInput, match="files that this project did not make"):
            world.check(ours=False, cleared=cleared)
    assert world.has_files
    assert not world.adopted


def test_what_was_never_committed_or_is_computed_anew_is_cleared(world: World) -> None:
    world.known.clear()
    world.checkpoint(0, -1)
    world.data(-1)
    world.check()
    assert not world.has_files, "files of a first batch that was killed"
    world.data(4)
    world.check(cleared=(world.kept.full_name,))
    assert not world.has_files
    world.data(-1)
    world.check(table=replace(world.kept, is_streaming=False))
    assert not world.has_files, "a materialized view is computed anew in each run"
    assert not world.adopted


def test_a_table_that_streams_from_one_that_is_computed_anew_must_be_so_too(world: World) -> None:
    world.checkpoint(0, 0)
    world.data(0)
    follower = replace(world.kept, name="follower", flows=("follower",), location=f"{world.kept.location}-follower")
    world.known.add("follower")
    log = Path(follower.checkpoint(str(world.storage), "follower")) / "0" / "sources" / "0"
    log.mkdir(parents=True)
    (log / "0").write_text(f'v1\n{{"path":"file://{world.kept.location}/part-0.parquet","batchId":0}}\n')
    declared, both = [world.kept, follower], (world.kept.full_name, follower.full_name)
    world.consistency.check(declared, ours=(), cleared=())
    world.consistency.check(declared, ours=(), cleared=both)
    with pytest.raises(InvalidInput, match=r"follower streams from kept .* --recompute kept --recompute follower"):
        world.consistency.check(declared, ours=(), cleared=both[:1])


def test_tables_are_called_by_short_and_long_names(world: World) -> None:
    declared = [world.kept, replace(world.kept, name="more")]
    assert full_names(declared, ["kept", "default.more"], unfinished=()) == [
        "spark_catalog.default.kept",
        "spark_catalog.default.more",
    ]
    with pytest.raises(InvalidInput, match="no table keptt; there are kept, more"):
        full_names(declared, ["keptt"], unfinished=())
    dropped = ["spark_catalog.default.dropped"]
    assert full_names(declared, dropped, unfinished=dropped) == [], "a killed run was to compute it anew"


def test_only_tables_of_files_are_bound_to_one_flow(world: World) -> None:
    two = replace(world.kept, flows=("one", "other"))
    with pytest.raises(InvalidInput, match=r"2 flows write to the table kept \(one, other\)"):
        check_flows([two])
    check_flows([replace(two, format="delta"), world.kept, replace(two, is_streaming=False)])


# --- what is remembered ---------------------------------------------------------------------------------------------


def test_memory_is_there_in_the_next_process(tmp_path: Path) -> None:
    file = tmp_path / "tables.json"
    memory = Memory(file)
    assert (memory.tables, memory.making, memory.refreshing) == ([], [], [])
    memory.keep(making={"b", "a"}, refreshing=[ALL_TABLES])
    memory.keep(tables=[{"table": "kept"}])
    again = Memory(file)
    assert (again.tables, again.making, again.refreshing) == ([{"table": "kept"}], ["a", "b"], [ALL_TABLES])
    again.keep(making=(), refreshing=())
    assert (Memory(file).making, Memory(file).refreshing) == ([], [])


def test_memory_of_older_versions_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "tables.json"
    file.write_text(json.dumps([{"table": "kept"}]))
    assert Memory(file).tables == [{"table": "kept"}]


def test_what_a_killed_run_was_to_compute_anew_comes_before_the_rest() -> None:
    assert engine._passes(False, []) == [[]]
    assert engine._passes(False, {"b", "a"}) == [["a", "b"], []]
    assert engine._passes(True, {"a"}) == [[ALL_TABLES]]
    assert engine._passes(False, {"a", ALL_TABLES}) == [[ALL_TABLES]]


def test_advice_about_files_that_a_catalog_does_not_know_never_is_to_remove_them_alone() -> None:
    said = (
        "[LOCATION_ALREADY_EXISTS] Cannot name the managed table as `spark_catalog`.`default`.`kept`, as its "
        "associated location 'file:/w/kept' already exists. Please pick a different table name, or remove the "
        "existing location first. SQLSTATE: 42710"
    )
    advice = engine._essence(said)
    assert "file:/w/kept has files of the table" in advice
    assert "`default`.`kept`" in advice
    assert "move away both these files and its checkpoints" in advice
    assert "remove" not in advice


# --- one run at a time ----------------------------------------------------------------------------------------------

_HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a+")
file.write("4711\\n"); file.flush()
fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))
print("locked", flush=True)
sys.stdin.read()
"""


def holder(file: Path, byte: int) -> "subprocess.Popen[str]":
    program = [sys.executable, "-c", _HOLDER, str(file), str(byte)]
    process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_a_project_that_another_process_runs_is_left_alone(tmp_path: Path) -> None:
    with holder(tmp_path / "lock", 0) as other:
        with pytest.raises(InvalidInput, match=r"another run of this project is active \(process 4711\)"):
            RunLock(tmp_path / "lock")
        other.communicate()
    with RunLock(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_the_jvm_of_a_killed_run_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with holder(tmp_path / "lock", 1) as other:
        # It ends while it is waited for. Only the lock's own clock is replaced: other threads sleep, too.
        clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: other.communicate())
        monkeypatch.setattr("tidelog.spark.pipelines.lock.time", clock)
        with RunLock(tmp_path / "lock"):
            assert other.returncode is not None
