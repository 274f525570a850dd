"""Archives a topic to Parquet files or a Delta table, each record once, even if the job is killed and restarted.

    PATH/day=2026-11-15/orders-3-00000000000000500000-00000000000001000000.parquet
    PATH/_tidelog/progress.json     the offsets before which everything is archived, and the settings
    PATH/_tidelog/plan.json         the ranges of offsets of the current run, written before anything else
    PATH/_tidelog/drafts/           files being written

A file has the records of one range of one partition and one day, and is named after them. An unfinished plan is
repeated unchanged: the same ranges make the same files, which replace the earlier ones by rename. In a Delta table,
files count when they are committed. Each plan is one commit with the plan's number as its application transaction,
which the table stores; a plan that the table has is not committed again. Progress is written last.

Finally the offsets are committed for a consumer group, so that retention can wait for the archive (the topic's config
`tidelog.retention.wait.for.group`).
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tidelog.client import Client
from tidelog.errors import InvalidInput, TidelogError
from tidelog.model import Offset, TopicPartition
from tidelog.spark.clients import connect_patiently
from tidelog.spark.jobs.ranges import Range, cut, ends, read_columns
from tidelog.spark.jobs.workers import SMALL_RECORDS, run_units

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Format = Literal["parquet", "delta"]
_COLUMNS = ("key", "value", "headers", "offset", "timestamp", "timestampType")
_FILE_RECORDS = 1_000_000
_ROW_GROUP = 262_144
_STATE_FORMAT = 1
_DAY_US = 86_400_000_000
_DAY_NAME = "%Y-%m-%d"
_SHARED_SECONDS = 30.0  # how long a file of another machine may take to appear here


@dataclass(frozen=True)
class ArchiveSettings:
    bootstrap: str
    topic: str
    path: str
    format: Format = "parquet"
    value_schema: str | None = None
    """DDL. If set, values are decoded as JSON; those that cannot be decoded are stored as bytes in `_corrupt`."""
    compression: str = "zstd"
    file_records: int = _FILE_RECORDS
    group: str | None = None

    @property
    def group_name(self) -> str:
        return self.group or f"tidelog-archive.{self.topic}"

    def kept(self) -> dict[str, Any]:
        """The settings that must be the same in every run."""
        return {"topic": self.topic, "format": self.format, "value_schema": self.value_schema}


class Unit(NamedTuple):
    settings: ArchiveSettings
    range: Range


class WrittenFile(NamedTuple):
    path: str
    """Relative to the archive's path."""
    day: str
    rows: int
    size_bytes: int


class UnitDone(NamedTuple):
    range: Range
    files: list[WrittenFile]


class Archive:
    """One run: `plan`, then `run`. Holds a lock on the archive until `close` is called."""

    def __init__(self, client: Client, settings: ArchiveSettings) -> None:
        self._client = client
        self._root = Path(settings.path).absolute()
        self._settings = replace(settings, path=str(self._root))  # workers may have other working directories
        self._state = self._root / "_tidelog"
        self._state.mkdir(parents=True, exist_ok=True)
        self._lock = (self._state / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InvalidInput(f"another archive run is active in {settings.path}; wait for it to end") from None
        try:
            self._progress = self._read_progress()
            self.is_resumed = self._pending() is not None
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        self._lock.close()

    # --- state ------------------------------------------------------------------------------------------------------

    def _read_progress(self) -> dict[str, Any]:
        settings, file = self._settings, self._state / "progress.json"
        new = {"format": _STATE_FORMAT, "settings": settings.kept(), "plan": 0, "offsets": {}, "topic_id": ""}
        progress: dict[str, Any] = json.loads(file.read_text()) if file.exists() else new
        if progress["format"] != _STATE_FORMAT:
            raise InvalidInput(f"{file} was written by another version of Tidelog")
        if progress["settings"] != settings.kept():
            raise InvalidInput(
                f"{settings.path} is an archive with other settings ({_say(progress['settings'])}); "
                "use the same ones or another path"
            )
        topic_id = self._client.topic(settings.topic).topic_id.hex()
        if progress["topic_id"] not in ("", topic_id):
            raise InvalidInput(
                f"{settings.topic} was deleted and created again since the first run to {settings.path}; "
                "use another path"
            )
        return {**progress, "topic_id": topic_id}

    def _pending(self) -> dict[str, Any] | None:
        """The unfinished plan of an earlier run, if there is one."""
        file = self._state / "plan.json"
        if not file.exists():
            return None
        plan = json.loads(file.read_text())
        return plan if plan["number"] > self._progress["plan"] else None

    # --- a run ------------------------------------------------------------------------------------------------------

    def plan(self) -> list[Unit]:
        """The units to do. If an earlier run left a plan unfinished, only that plan is done in this run."""
        pending = self._pending()
        if pending is not None:
            ranges = [Range(*part) for part in pending["ranges"]]
        else:
            ranges = []
            offsets: dict[str, Offset] = self._progress["offsets"]
            for partition, (first, last) in sorted(ends(self._client, self._settings.topic).items()):
                start = offsets.get(str(partition), first)
                if start < first:
                    raise TidelogError(
                        f"{self._settings.topic}-{partition}: offsets {start} to {first - 1} were deleted before "
                        "they were archived. To continue without them, use --skip-lost; to prevent this, set the "
                        f"topic's config tidelog.retention.wait.for.group={self._settings.group_name}"
                    )
                ranges += cut(Range(self._settings.topic, partition, start, last), self._settings.file_records)
        return [Unit(self._settings, part) for part in ranges]

    def skip_lost(self) -> int:
        """Accept that records were deleted before they were archived; returns their number."""
        lost = 0
        for partition, (first, _) in ends(self._client, self._settings.topic).items():
            start = self._progress["offsets"].get(str(partition), first)
            if start < first and self._pending() is None:
                lost += first - start
                self._progress["offsets"][str(partition)] = first
        return lost

    def run(
        self,
        units: list[Unit],
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        processes: int | None = None,
        at: Callable[[str], None] = lambda _: None,
    ) -> Iterator[UnitDone]:
        """Carry out the units. `at` is called between any two effects, for tests that stop there."""
        done: list[UnitDone] = []
        if units:
            number = self._progress["plan"] + 1
            if self._pending() is None:
                ranges = [list(unit.range) for unit in units]
                _write_json(self._state / "plan.json", {"number": number, "ranges": ranges})
                at("planned")
            is_small = sum(unit.range.size for unit in units) < SMALL_RECORDS
            for result in run_units(
                write_unit, units, master=master, conf=conf, processes=processes, is_small=is_small
            ):
                if master is not None:
                    self._see_here(result)
                done.append(result)
                at("unit written")
                yield result
            if self._settings.format == "delta":
                self._commit_delta(number, [file for result in done for file in result.files])
                at("committed")
            for result in done:
                key = str(result.range.partition)
                before = self._progress["offsets"].get(key, 0)
                self._progress["offsets"][key] = max(before, result.range.end)
            self._progress["plan"] = number
            _write_json(self._state / "progress.json", self._progress)
            at("progress kept")
            (self._state / "plan.json").unlink(missing_ok=True)
        shutil.rmtree(self._state / "drafts", ignore_errors=True)
        self._tell_group()
        at("group told")

    def _see_here(self, done: UnitDone) -> None:
        """Files of other machines count when this machine sees them in full size. A network file system may need some
        time for that."""
        for file in done.files:
            place, deadline = self._root / file.path, time.monotonic() + _SHARED_SECONDS
            while not _has_size(place, file.size_bytes):
                if time.monotonic() > deadline:
                    raise TidelogError(
                        f"a worker has written {place}, but this machine does not see it; with --master, --to must "
                        "be a folder that every machine of the cluster has mounted at the same path. Nothing was "
                        "archived"
                    )
                time.sleep(0.1)

    def _tell_group(self) -> None:
        offsets = {
            TopicPartition(self._settings.topic, int(partition)): offset
            for partition, offset in self._progress["offsets"].items()
        }
        if offsets:
            self._client.set_committed(self._settings.group_name, offsets)

    def _commit_delta(self, number: int, files: list[WrittenFile]) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.transaction import AddAction, create_table_with_add_actions

        application = f"tidelog-archive.{self._settings.topic}"
        properties = CommitProperties(app_transactions=[Transaction(application, number)])
        actions: list[Any] = [
            AddAction(
                file.path,
                file.size_bytes,
                {"day": file.day},
                int(time.time() * 1000),
                True,
                json.dumps({"numRecords": file.rows}),
            )
            for file in files
        ]
        schema = _delta_schema(self._settings)
        if not DeltaTable.is_deltatable(str(self._root)):
            create_table_with_add_actions(
                str(self._root),
                schema,
                actions,
                mode="append",
                partition_by=["day"],
                name=self._settings.topic,
                commit_properties=properties,
            )
            return
        table = DeltaTable(str(self._root))
        if (table.transaction_version(application) or 0) >= number:
            return
        table.create_write_transaction(
            actions, mode="append", schema=schema, partition_by=["day"], commit_properties=properties
        )


def _say(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items() if value is not None)


def _write_json(path: Path, content: Any) -> None:  # noqa: ANN401  (JSON)
    """Write atomically and durably: rename and fsync."""
    draft = path.with_suffix(f".{uuid.uuid4().hex[:8]}")
    with draft.open("w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    _sync_folder(path.parent)


def _has_size(path: Path, size_bytes: int) -> bool:
    try:
        os.listdir(path.parent)  # makes NFS refresh its cache
        return path.stat().st_size == size_bytes
    except FileNotFoundError:
        return False


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# --- in a worker ----------------------------------------------------------------------------------------------------


def file_schema(settings: ArchiveSettings) -> "pa.Schema":
    import pyarrow as pa

    from tidelog.records.columnar import COLUMN_TYPES

    value = [pa.field("value", pa.binary())]
    if settings.value_schema is not None:
        from pyspark.sql.pandas.types import to_arrow_type

        from tidelog.spark.jobs.ddl import parse_ddl

        decoded = to_arrow_type(parse_ddl(settings.value_schema), timezone="UTC")
        value = [pa.field("value", decoded), pa.field("_corrupt", pa.binary())]
    return pa.schema(
        [
            pa.field("partition", pa.int32()),
            pa.field("offset", pa.int64()),
            pa.field("timestamp", pa.timestamp("us", tz="UTC")),
            pa.field("key", pa.binary()),
            *value,
            pa.field("headers", COLUMN_TYPES["headers"]),
            pa.field("timestampType", pa.int32()),
        ]
    )


def _delta_schema(settings: ArchiveSettings) -> Any:  # noqa: ANN401  (a schema of deltalake's)
    import pyarrow as pa
    from deltalake import Schema

    return Schema.from_arrow(file_schema(settings).append(pa.field("day", pa.string())))


def write_unit(unit: Unit) -> UnitDone:
    """Write the files of a range; they have their final names when this returns."""
    import pyarrow as pa

    settings, part = unit.settings, unit.range
    root = Path(settings.path).absolute()
    drafts = root / "_tidelog" / "drafts" / uuid.uuid4().hex
    drafts.mkdir(parents=True)
    shape = _Shape(settings, part.partition)
    writers: dict[str, pq.ParquetWriter] = {}
    rows: dict[str, int] = {}
    with connect_patiently(settings.bootstrap) as client, contextlib.ExitStack() as open_files:
        for columns in read_columns(client, part, _COLUMNS):
            shaped = shape(columns)
            for day, mine in _by_day(shaped):
                if day not in writers:
                    writers[day] = open_files.enter_context(
                        _writer(drafts / f"{day}.parquet", shape.schema, settings)
                    )
                    rows[day] = 0
                writers[day].write_table(pa.Table.from_batches([mine]), row_group_size=_ROW_GROUP)
                rows[day] += mine.num_rows
    files = [_move(drafts / f"{day}.parquet", root, day, rows[day], part) for day in sorted(writers)]
    shutil.rmtree(drafts, ignore_errors=True)
    return UnitDone(part, files)


def _by_day(rows: "pa.RecordBatch") -> "Iterator[tuple[str, pa.RecordBatch]]":
    """The rows of each day. Days are compared as numbers: formatting each row would take longer than the file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not rows.num_rows:
        return
    times = rows.column("timestamp")
    numbers = times.cast(pa.int64()).to_numpy() // _DAY_US
    if numbers.min() == numbers.max():
        yield pc.strftime(times[0], _DAY_NAME).as_py(), rows
        return
    for number, first in zip(*np.unique(numbers, return_index=True), strict=True):
        yield pc.strftime(times[int(first)], _DAY_NAME).as_py(), rows.filter(pa.array(numbers == number))


def _writer(path: Path, schema: "pa.Schema", settings: ArchiveSettings) -> "pq.ParquetWriter":
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        path,
        schema,
        compression=settings.compression,
        use_dictionary=["key", "timestampType", "partition"],
        column_encoding={"offset": "DELTA_BINARY_PACKED"},  # most are consecutive: they take almost no space
    )


def _move(draft: Path, root: Path, day: str, rows: int, part: Range) -> WrittenFile:
    stem = re.sub(r"[^\w.-]", "_", part.topic)
    name = f"day={day}/{stem}-{part.partition}-{part.start:020}-{part.end:020}.parquet"
    target = root / name
    target.parent.mkdir(exist_ok=True)
    descriptor = os.open(draft, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    size = draft.stat().st_size
    os.replace(draft, target)
    _sync_folder(target.parent)
    return WrittenFile(name, day, rows, size)


class _Shape:
    """Converts the columns that are read to those of the archive's files."""

    def __init__(self, settings: ArchiveSettings, partition: int) -> None:
        self.schema = file_schema(settings)
        self._partition = partition
        self._decode: Any = None
        if settings.value_schema is not None:
            from tidelog.spark.jobs.ddl import parse_ddl
            from tidelog.spark.values import JsonDecoder

            self._decode = JsonDecoder(parse_ddl(settings.value_schema), strict=False)

    def __call__(self, columns: "pa.RecordBatch") -> "pa.RecordBatch":
        import pyarrow as pa

        found = dict(zip(columns.schema.names, columns.columns, strict=True))
        found["partition"] = pa.repeat(pa.scalar(self._partition, pa.int32()), columns.num_rows)
        if self._decode is not None:
            found["value"], found["_corrupt"] = self._decode(found["value"])
        return pa.RecordBatch.from_arrays([found[name] for name in self.schema.names], schema=self.schema)
