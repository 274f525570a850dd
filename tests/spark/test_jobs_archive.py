import json
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from tests.support.brokers import BrokerProcess
from tidelog.cli.main import run
from tidelog.client import Client, connect
from tidelog.errors import InvalidInput
from tidelog.spark.jobs.archive import Archive, ArchiveSettings
from tidelog.spark.jobs.ddl import parse_ddl

DAY = 86_400_000
FIRST_DAY = 1_700_006_400_000  # a midnight, UTC
POINTS = ["planned", "unit written", "committed", "progress kept", "group told"]


class Crash(Exception):
    pass


def fill(client: Client, topic: str, records: int, first: int = 0) -> None:
    with client.producer() as producer:
        for number in range(first, first + records):
            at = FIRST_DAY + number % 3 * DAY
            producer.send(topic, json.dumps({"id": number}), key=f"k{number % 5}", partition=number % 2, timestamp=at)


def archive_once(settings: ArchiveSettings, crash_at: str | None = None, after: int = 1) -> int:
    """How many records were written; a crash leaves everything as it was at that point."""
    left = [after]

    def at(point: str) -> None:
        if point == crash_at:
            left[0] -= 1
            if left[0] == 0:
                raise Crash(point)

    with connect(settings.bootstrap) as client:
        archive = Archive(client, settings)
        try:
            done = list(archive.run(archive.plan(), processes=1, at=at))
        finally:
            archive.close()
    return sum(file.rows for unit in done for file in unit.files)


def content(settings: ArchiveSettings) -> pa.Table:
    if settings.format == "delta":
        return deltalake.DeltaTable(settings.path).to_pyarrow_table()
    return ds.dataset(settings.path, format="parquet", partitioning="hive").to_table()


def places(table: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


@pytest.mark.parametrize("format_", ["parquet", "delta"])
def test_every_record_is_archived_once_wherever_it_crashed(
    broker: BrokerProcess, client: Client, make_topic: Callable[..., str], tmp_path: Path, format_: str
) -> None:
    points = [point for point in POINTS if format_ == "delta" or point != "committed"]
    for point in points:
        for after in (1, 3) if point == "unit written" else (1,):
            topic = make_topic(2)
            path = str(tmp_path / f"{point}-{after}")
            settings = ArchiveSettings(broker.bootstrap, topic, path, format_, file_records=10)  # type: ignore[arg-type]
            fill(client, topic, 60)
            with pytest.raises(Crash):
                archive_once(settings, point, after)
            fill(client, topic, 30, first=60)
            for _ in range(3):
                archive_once(settings)
            table = content(settings)
            assert places(table) == [(p, o) for p in (0, 1) for o in range(45)], point
            committed = client.committed(settings.group_name)
            assert {place.partition: row.offset for place, row in committed.items()} == {0: 45, 1: 45}
            assert not (Path(path) / "_tidelog" / "drafts").exists()


def test_records_lie_under_their_day_with_everything_that_they_had(
    broker: BrokerProcess, client: Client, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(2)
    fill(client, topic, 6)
    client.produce(topic, None, key="gone", headers=[("why", b"test")], partition=0, timestamp=FIRST_DAY)
    assert run(["archive", topic, "--to", str(tmp_path), "-b", broker.bootstrap]) == 0
    days = sorted(path.name for path in tmp_path.glob("day=*"))
    assert days == ["day=2023-11-15", "day=2023-11-16", "day=2023-11-17"]
    table = ds.dataset(tmp_path, format="parquet", partitioning="hive").to_table()
    rows = {(row["partition"], row["offset"]): row for row in table.to_pylist()}
    assert rows[0, 1]["value"] == b'{"id": 2}'
    assert rows[0, 1]["key"] == b"k2"
    assert str(rows[0, 1]["day"]) == "2023-11-17"
    assert rows[0, 3]["value"] is None
    assert rows[0, 3]["headers"] == [{"key": "why", "value": b"test"}]


def test_json_values_become_columns_and_bad_ones_are_kept(
    broker: BrokerProcess, client: Client, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic()
    client.produce(topic, '{"id": 7, "tags": ["a", "b"]}')
    client.produce(topic, b"{broken")
    command = ["archive", topic, "--to", str(tmp_path), "-b", broker.bootstrap, "--format", "delta"]
    assert run([*command, "--value-format", "json", "--schema", "id bigint, tags array<string>"]) == 0
    rows = sorted(deltalake.DeltaTable(tmp_path).to_pyarrow_table().to_pylist(), key=lambda row: row["offset"])
    assert rows[0]["value"] == {"id": 7, "tags": ["a", "b"]}
    assert rows[0]["_corrupt"] is None
    assert rows[1]["value"] is None
    assert rows[1]["_corrupt"] == b"{broken"


def test_an_archive_keeps_its_settings_and_its_topic(
    broker: BrokerProcess,
    client: Client,
    make_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic()
    client.produce(topic, "one")
    command = ["archive", topic, "--to", str(tmp_path), "-b", broker.bootstrap]
    assert run(command) == 0
    assert run([*command, "--format", "delta"]) == 1
    assert "is an archive with other settings" in capsys.readouterr().err
    client.delete_topic(topic)
    client.create_topic(topic)
    assert run(command) == 1
    assert "deleted and created again" in capsys.readouterr().err


def test_two_runs_do_not_work_in_one_place(
    broker: BrokerProcess, client: Client, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    settings = ArchiveSettings(broker.bootstrap, make_topic(), str(tmp_path))
    first = Archive(client, settings)
    with pytest.raises(InvalidInput, match="another archive run"):
        Archive(client, settings)
    first.close()
    Archive(client, settings).close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id", "ends where more is expected"),
        ("id wrong", "unknown type 'wrong'"),
        ("id int id2 int", "has 'id2' where ',' is expected"),
        ("a array<int", "ends where > is expected"),
        ("a int, a int", "has a twice"),
        ("a decimal(99)", "decimal(99,0)"),
        ("a int;", "cannot be parsed at ';'"),
        ("a " + "array<" * 40 + "int", "nested too deeply"),
    ],
)
def test_a_wrong_schema_says_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_ddl(text)
    assert problem in str(refused.value)


@pytest.mark.slow
def test_schemas_mean_what_spark_says_they_mean(spark: object) -> None:
    from pyspark.sql.types import StructType

    for text in (
        "id bigint NOT NULL, name string",
        "`a b` int, c struct<d: double, e: array<map<string, timestamp>>>, f decimal(10,2), g date",
        "a BOOLEAN, b tinyint, c smallint, d float, e binary, f decimal",
    ):
        assert parse_ddl(text) == StructType.fromDDL(text)
