"""Pipelines that are killed at every step: the next run completes, and every row is there once.

`make test` tries a few steps; `make pipeline-kills` tries all of them, which takes about half an hour.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.brokers import BrokerProcess, unique
from tests.support.spark_tables import rows_in_table
from tidelog.client import Client, FetchOptions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
SECONDS = 300  # on a machine that has other things to do
ALL_STEPS = os.environ.get("TIDELOG_PIPELINE_KILLS") == "1"
only_in_whole_runs = pytest.mark.skipif(not ALL_STEPS, reason="make pipeline-kills")

HEAD = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from tidelog.spark.pipelines import to_topic, topic

spark = SparkSession.active()
topic("{orders}", view="orders", options={{"maxOffsetsPerTrigger": "40"}})
"""
TABLE = """
@dp.table
def {name}():
    return spark.readStream.table("orders").selectExpr("cast(value AS string) AS id")
"""
SINK = """
@to_topic("{copies}", key="id")
def announce():
    return spark.readStream.table("orders").selectExpr("cast(value AS string) AS id")
"""
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS orders FROM kept;\n"


class Shop:
    """A project on a topic of its own: a table, a topic and a materialized view of the table."""

    def __init__(self, folder: Path, broker: BrokerProcess, client: Client) -> None:
        self.folder, self._client = folder, client
        self.orders, self.copies = unique("orders"), unique("copies")
        client.create_topic(self.orders, partitions=2)
        client.create_topic(self.copies)
        self.ids: list[str] = []
        (folder / "definitions").mkdir(parents=True)
        (folder / "spark-pipeline.yml").write_text(
            "name: shop\nlibraries:\n  - glob:\n      include: definitions/**\nconfiguration:\n"
            f'  spark.tidelog.bootstrap.servers: "{broker.bootstrap}"\n'
        )
        (folder / "definitions" / "totals.sql").write_text(TOTALS)
        self.define("kept")

    @property
    def warehouse(self) -> Path:
        return self.folder / ".tidelog" / "warehouse"

    def checkpoint(self, table: str) -> Path:
        return self.folder / ".tidelog" / "storage" / "_checkpoints" / "spark_catalog" / "default" / table / table

    def define(self, *tables: str) -> None:
        parts = [HEAD.format(orders=self.orders), SINK.format(copies=self.copies)]
        parts += [TABLE.format(name=name) for name in tables]
        (self.folder / "definitions" / "orders.py").write_text("".join(parts))

    def produce(self, count: int) -> None:
        new = [f"{len(self.ids) + number}" for number in range(count)]
        with self._client.producer() as producer:
            for number, value in enumerate(new):
                producer.send(self.orders, value, partition=number % 2)
        self.ids += new

    def is_killed(self, when: str, *options: str) -> None:
        places = {"warehouse": self.warehouse, "kept": self.checkpoint("kept"), "more": self.checkpoint("more")}
        ran = self._run(
            [sys.executable, "-m", "tests.spark.dying", when.format(**places), "pipeline", "run"], options
        )
        assert ran.returncode == -signal.SIGKILL, f"it never came to {when}: {ran.stdout}{ran.stderr}"

    def completes(self, *options: str) -> None:
        ran = self._run([sys.executable, "-m", "tidelog", "pipeline", "run"], options)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def fails(self, *options: str) -> str:
        ran = self._run([sys.executable, "-m", "tidelog", "pipeline", "run"], options)
        assert ran.returncode == 1, ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr
        return ran.stderr

    def _run(self, command: list[str], options: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
        # A session through Spark Connect that a test has had in this process leaves its token here, not for others.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_CONNECT_")}
        return subprocess.run(
            [*command, str(self.folder), *options],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment,
            cwd=ROOT,
            start_new_session=True,  # with its JVM in a process group of its own
        )

    def table(self, name: str) -> list[str]:
        """The ids in it: what its log of committed files names, as Spark reads it."""
        return sorted((row["id"] for row in rows_in_table(self.warehouse / name)), key=int)

    def expect(self, *tables: str) -> None:
        for name in tables:
            assert self.table(name) == self.ids, name
        assert rows_in_table(self.warehouse / "totals") == [{"orders": len(self.ids)}]
        assert sorted(self.copied(), key=int) == self.ids

    def copied(self) -> list[str]:
        """The ids in the topic that the pipeline writes, as readers of committed records see them."""
        records = self._client.consume(self.copies, follow=False, fetch=FetchOptions(read_committed=True))
        return [json.loads(record.value or b"")["id"] for record in records]


@pytest.fixture
def shop(tmp_path: Path, broker: BrokerProcess, client: Client) -> Shop:
    made = Shop(tmp_path / "shop", broker, client)
    made.produce(100)
    return made


def steps(few: list[str], others: list[str]) -> pytest.MarkDecorator:
    """`few` always, each after the one before; all of them, each by itself, if all are to be tried."""
    cases = [[when] for when in few + others] if ALL_STEPS else [few] if few else []
    return pytest.mark.parametrize("kills", cases, ids=str)


IN_FLOWS = [
    "path {warehouse}/kept/*.parquet",
    "path {kept}/0/offsets/0",
    "path {kept}/0/commits/0",
    "path {kept}/0/commits/1",
    "step Flow announce is RUNNING",
    "alone step Flow announce has COMPLETED",
    "step Flow spark_catalog.default.kept has COMPLETED",
    "step Flow spark_catalog.default.totals is RUNNING",
    "alone path {warehouse}/totals/_temporary",
    "step ended",
]


@steps(
    ["step materialized", "alone path {warehouse}/kept/_spark_metadata/0"],
    [
        "step declared",
        "step remembered what is to be made",
        "step prepared",
        "path {warehouse}/kept",
        "alone path {warehouse}/totals",
        "step remembered what was made",
        *IN_FLOWS,
    ],
)
def test_a_first_run_that_is_killed(shop: Shop, kills: list[str]) -> None:
    for when in kills:
        shop.is_killed(when)
    shop.completes()
    shop.expect("kept")


@steps(
    [],
    [
        "step remembered what is to be made",
        "path {warehouse}/more",
        "step materialized",
        "step remembered what was made",
        "path {more}/0/offsets/0",
        "alone path {warehouse}/more/_spark_metadata/0",
        "path {more}/0/commits/1",
        "step ended",
    ],
)
def test_a_run_that_adds_a_table_and_is_killed(shop: Shop, kills: list[str]) -> None:
    shop.completes()
    shop.define("kept", "more")
    shop.produce(60)
    for when in kills:
        shop.is_killed(when)
    shop.completes()
    shop.expect("kept", "more")


@steps([], ["step prepared", "step materialized", "alone path {warehouse}/more/_spark_metadata/0", "step ended"])
def test_a_run_that_renames_a_table_and_is_killed_and_one_that_names_it_back(shop: Shop, kills: list[str]) -> None:
    shop.define("kept", "old")
    shop.completes()
    shop.define("kept", "more")  # and drops the old one
    shop.produce(60)
    for when in kills:
        shop.is_killed(when)
    shop.completes()
    shop.expect("kept", "more")
    shop.define("kept", "old")
    shop.completes()
    shop.expect("kept", "old")


@steps(
    ["path {kept}/1"],  # the checkpoint is new, the table is not empty yet
    [
        "step remembered what is to be made",
        "step prepared",
        "step materialized",
        "step remembered what was made",
        "path {kept}/1/offsets/0",
        "alone path {kept}/1/commits/0",
        "step Flow spark_catalog.default.totals is RUNNING",
        "step ended",
    ],
)
def test_a_full_refresh_that_is_killed(shop: Shop, kills: list[str]) -> None:
    shop.completes()
    shop.produce(60)
    for when in kills:
        shop.is_killed(when, "--full-refresh")
    shop.produce(10)
    shop.completes()
    assert shop.table("kept") == shop.ids
    assert sorted(shop.copied(), key=int) == sorted(shop.ids[:100] + shop.ids, key=int), (
        "written once more, and not twice"
    )


@steps([], ["path {kept}/1", "step materialized", "alone path {warehouse}/kept/_spark_metadata/0"])
def test_one_table_that_is_computed_anew_by_a_run_that_is_killed(shop: Shop, kills: list[str]) -> None:
    shop.completes()
    shop.produce(60)
    for when in kills:
        shop.is_killed(when, "--recompute", "kept")
    shop.completes()
    shop.expect("kept")


def test_data_that_is_gone_is_said_and_the_advice_works(shop: Shop) -> None:
    shop.completes()
    shutil.rmtree(shop.warehouse / "kept")
    said = shop.fails()
    assert "data of the table kept is missing" in said
    assert f"tidelog pipeline run {shop.folder} --recompute kept" in said
    assert not (shop.warehouse / "kept").exists(), "nothing was done"
    shop.completes("--recompute", "kept")
    shop.expect("kept")


@only_in_whole_runs
def test_a_checkpoint_that_is_gone_is_said_and_the_advice_works(shop: Shop) -> None:
    shop.completes()
    shutil.rmtree(shop.checkpoint("kept"))
    shop.produce(20)
    said = shop.fails()
    assert "the checkpoint of its flow kept is missing" in said
    assert f"tidelog pipeline run {shop.folder} --recompute kept" in said
    shop.completes("--recompute", "kept")
    shop.expect("kept")


@only_in_whole_runs
def test_a_project_whose_memory_of_tables_is_lost_goes_on(shop: Shop) -> None:
    """As one of a version that remembered tables at the end of a run only, and was killed."""
    shop.completes()
    (shop.folder / ".tidelog" / "tables.json").unlink()
    shop.produce(60)
    shop.completes()
    shop.expect("kept")
    (shop.folder / ".tidelog" / "tables.json").unlink()
    shop.completes("--full-refresh")
    assert shop.table("kept") == shop.ids


@only_in_whole_runs
def test_two_flows_into_a_table_of_files_are_refused(shop: Shop) -> None:
    (shop.folder / "definitions" / "both.py").write_text(
        HEAD.replace("topic(", "# ").format(orders="")
        + "dp.create_streaming_table('both')\n"
        + "".join(
            f"@dp.append_flow(target='both', name='{name}')\n"
            f"def {name}():\n    return spark.readStream.table('orders')\n"
            for name in ("one", "other")
        )
    )
    assert "2 flows write to the table both (one, other)" in shop.fails()
