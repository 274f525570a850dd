"""A pipeline's folder: `spark-pipeline.yml`, definitions, and the state of its runs in `.tidelog`.

spark-pipeline.yml      name, storage (checkpoints), configuration, paths of the definitions
definitions/            Python and SQL files
.tidelog/storage        checkpoints, unless the spec names another place
.tidelog/warehouse      the tables; if the spec names another place for checkpoints, they are there
.tidelog/tables.json    the existing tables, and what a run is about to create or clear
.tidelog/lock           held by the active run
.tidelog/runs.jsonl     a line for each run
.tidelog/pipeline.log   messages of Spark and of the runs
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import yaml

from tidelog.errors import InvalidInput

SPEC_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
_KEPT_RUNS = 200


@dataclass(frozen=True)
class Project:
    spec_path: Path
    name: str
    storage: str
    """A URI."""
    configuration: dict[str, str]
    has_own_storage: bool
    """The storage is a folder of the project; the spec names no place that other machines could reach."""

    @property
    def folder(self) -> Path:
        return self.spec_path.parent

    @property
    def state(self) -> Path:
        return self.folder / ".tidelog"

    @property
    def log_file(self) -> Path:
        return self.state / "pipeline.log"

    @property
    def runs_file(self) -> Path:
        return self.state / "runs.jsonl"

    @property
    def storage_path(self) -> Path | None:
        """The folder of checkpoints, if it is on this machine or mounted."""
        place = urlparse(self.storage)
        return Path(unquote(place.path)) if place.scheme == "file" else None

    @property
    def warehouse(self) -> str:
        """The default folder of tables: next to the checkpoints, so that the same machines can reach both."""
        return str(self.state / "warehouse") if self.has_own_storage else f"{self.storage.rstrip('/')}/warehouse"

    def keep_run(self, run: dict[str, Any]) -> None:
        self.state.mkdir(exist_ok=True)
        lines = self.runs_file.read_text().splitlines()[-_KEPT_RUNS:] if self.runs_file.exists() else []
        draft = self.runs_file.with_suffix(f".{os.getpid()}")
        draft.write_text("\n".join([*lines, json.dumps(run)]) + "\n")
        os.replace(draft, self.runs_file)

    def runs(self) -> list[dict[str, Any]]:
        """The last runs, oldest first."""
        if not self.runs_file.exists():
            return []
        return [json.loads(line) for line in self.runs_file.read_text().splitlines() if line]

    def note(self, line: str) -> None:
        """Append a line to the log file, which also has Spark's messages."""
        self.state.mkdir(exist_ok=True)
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        with self.log_file.open("a") as file:
            file.write(f"{moment}.000 INFO tidelog: {line}\n")


def find_project(where: str | os.PathLike[str]) -> Project:
    """The project that a path names: its spec, its folder, or any folder in it."""
    start = Path(where).absolute()
    if start.is_file():
        return load_project(start)
    if not start.is_dir():
        raise InvalidInput(f"{where} does not exist; create a project there with: tidelog pipeline init {where}")
    for folder in (start, *start.parents):
        found = [folder / name for name in SPEC_NAMES if (folder / name).is_file()]
        if len(found) > 1:
            raise InvalidInput(f"{folder} has two specs, {' and '.join(path.name for path in found)}; remove one")
        if found:
            return load_project(found[0])
    raise InvalidInput(
        f"there is no {SPEC_NAMES[0]} in {start} or above; create a project with: tidelog pipeline init"
    )


def load_project(spec_path: Path) -> Project:
    try:
        spec = yaml.safe_load(spec_path.read_text())
    except yaml.YAMLError as error:
        raise InvalidInput(f"{spec_path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(spec, dict):
        raise InvalidInput(f"{spec_path} has no settings; it needs at least name and libraries")
    problems = [f"{name} is missing" for name in ("name", "libraries") if not spec.get(name)]
    known = {"name", "storage", "catalog", "database", "schema", "configuration", "libraries"}
    problems += [f"unknown setting {name}; known are {', '.join(sorted(known))}" for name in set(spec) - known]
    configuration = spec.get("configuration") or {}
    if not isinstance(configuration, dict):
        problems.append("configuration must be a list of NAME: VALUE")
        configuration = {}
    if problems:
        raise InvalidInput(f"{spec_path}: {'; '.join(problems)}")
    storage = str(spec.get("storage") or ".tidelog/storage")
    is_own = "://" not in storage and not storage.startswith("file:")
    uri = (spec_path.parent / storage).absolute().as_uri() if is_own else storage
    return Project(
        spec_path.absolute(), str(spec["name"]), uri, {str(k): str(v) for k, v in configuration.items()}, is_own
    )


_SPEC = """\
# A pipeline on Spark Declarative Pipelines; run it with: tidelog pipeline run
name: {name}
libraries:
  - glob:
      include: definitions/**
# Checkpoints. On a cluster, name a place that it can reach: s3a://bucket/path, hdfs://..., or a shared file:///...
storage: .tidelog/storage
configuration:
  spark.tidelog.bootstrap.servers: "{bootstrap}"
"""

_PYTHON = '''\
"""Checks incoming orders, stores them in a table, and writes the large ones to a topic."""

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

from tidelog.spark.pipelines import to_topic, topic

spark = SparkSession.active()

# The view `orders` has the good records of the topic; the others go to the topic `orders.dead-letters`.
topic(
    "orders",
    schema="id string NOT NULL, customer string, amount double NOT NULL",
    expect={"amount is positive": "amount > 0"},
)


@dp.table(comment="Every order.")
def all_orders():
    return spark.readStream.table("orders").selectExpr("id", "customer", "amount", "_record.timestamp AS received")


@to_topic("large-orders", key="id")
def announce_large_orders():
    return spark.readStream.table("orders").where("amount >= 1000").select("id", "customer", "amount")
'''

_SQL = """\
-- What each customer has spent, recomputed in each run.
CREATE MATERIALIZED VIEW spent_by_customer AS
SELECT customer, count(*) AS orders, sum(amount) AS spent FROM all_orders GROUP BY customer;
"""


def init_project(folder: Path, bootstrap: str) -> Project:
    """Create a small working project. Never overwrites files."""
    if any((folder / name).exists() for name in SPEC_NAMES):
        raise InvalidInput(f"{folder} has a pipeline already; choose another folder")
    name = folder.absolute().name
    (folder / "definitions").mkdir(parents=True, exist_ok=True)
    files = {
        folder / SPEC_NAMES[0]: _SPEC.format(name=name, bootstrap=bootstrap),
        folder / "definitions" / "orders.py": _PYTHON,
        folder / "definitions" / "customers.sql": _SQL,
    }
    there = [str(path) for path in files if path.exists()]
    if there:
        raise InvalidInput(f"{', '.join(there)} would be overwritten; choose another folder")
    for path, content in files.items():
        path.write_text(content)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text(".tidelog/\n")
    return load_project(folder / SPEC_NAMES[0])
