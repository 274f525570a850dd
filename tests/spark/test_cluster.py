"""Pipelines, jobs and SQL on a Spark standalone cluster and through a Spark Connect server, by the command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.test_pipeline import SECONDS, Shop, command, run_pipeline, values
from tests.spark.topics import fill, numbered
from tests.support.brokers import BrokerProcess, eventually
from tests.support.spark_cluster import connect_server, standalone
from tests.support.spark_tables import rows_in_table
from tidelog.cli.main import run
from tidelog.client import Client
from tidelog.spark import clusters

BAD = [b"{broken", b'{"id": "minus", "amount": -7}']
QUICK = {"spark.sql.shuffle.partitions": "2", "spark.python.daemon.module": "tidelog.spark.daemon"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture
def shop(tmp_path: Path, broker: BrokerProcess, client: Client) -> Shop:
    """Its storage is a folder that the cluster shares."""
    shop = Shop(tmp_path / "shop", broker.bootstrap)
    with (shop.folder / "spark-pipeline.yml").open("a") as spec:
        spec.write(f"storage: {(tmp_path / 'shared').as_uri()}\n")
    for topic in (shop.orders, shop.large, shop.dead):
        client.create_topic(topic, partitions=2)
    for number in range(10):
        client.produce(shop.orders, json.dumps({"id": f"{number}", "amount": number * 200.0 + 1}))
    for value in BAD:
        client.produce(shop.orders, value, partition=1)
    return shop


def committed(client: Client, topic: str) -> int:
    """Records that a reader of committed ones sees."""
    from tidelog.client import FetchOptions

    fetch = FetchOptions(read_committed=True)
    return len(list(client.consume(topic, follow=False, fetch=fetch)))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_pipeline_runs_on_a_standalone_cluster(master: str, shop: Shop, client: Client, tmp_path: Path) -> None:
    output = shop.folder / "watch.txt"
    arguments = ["watch", str(shop.folder), "--json", "--every", "0.2", "--master", master]
    with output.open("w") as file:
        watching = subprocess.Popen(command(*arguments), cwd=tmp_path, stdout=file, stderr=file)
    try:
        eventually(lambda: shop.runs() or watching.poll() is not None, within=SECONDS)
        assert shop.completed(), output.read_text()
        assert {flow["flow"]: flow["lag"] for flow in shop.completed()[0]["flows"]}["kept"] == {shop.orders: 0}
        warehouse = tmp_path / "shared" / "warehouse"
        assert sorted(row["id"] for row in rows_in_table(warehouse / "kept")) == [f"{number}" for number in range(10)]
        assert rows_in_table(warehouse / "totals")[0]["orders"] == 10
        assert committed(client, shop.large) == 5
        assert sorted(value or b"" for value in values(client, shop.dead)) == sorted(BAD)

        client.produce(shop.orders, b'{"id": "later", "amount": 5000}')
        eventually(lambda: committed(client, shop.large), until=lambda count: count == 6, within=SECONDS)
        eventually(lambda: len(shop.completed()), until=lambda count: count >= 2, within=SECONDS)
    finally:
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(SECONDS) == 0, output.read_text()
    assert len(rows_in_table(warehouse / "kept")) == 11
    assert committed(client, shop.large) == 6
    assert not list((shop.folder / ".tidelog").glob("warehouse")), "nothing that only this machine has"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_jobs_and_sql_run_on_a_standalone_cluster(
    master: str, broker: BrokerProcess, client: Client, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    for partition in (0, 1):
        fill(client, topic, numbered("v", 1000), partition=partition)
    there = ["-b", broker.bootstrap, "--master", master, "--json"]
    commands = [
        ["archive", topic, "--to", "lake", *there],  # in this folder, wherever workers are
        ["audit", topic, *there],
        ["audit", topic, "--data-dir", str(broker.data_dir), *there],
        ["profile", topic, *there],
        ["sql", f"SELECT count(DISTINCT value) AS number FROM `{topic}`", *there],
    ]
    program = "import json, sys; from tidelog.cli.main import run; print([run(c) for c in json.loads(sys.argv[1])])"
    ran = subprocess.run(  # one driver for all: a JVM and its executors take their time
        [sys.executable, "-c", program, json.dumps(commands)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.stdout.endswith("[0, 0, 0, 0, 0]\n"), ran.stdout + ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()[:-1]]
    (archived,) = [row for row in rows if row["type"] == "archived"]
    assert archived["records"] == 2000
    assert len(rows_in_table(tmp_path / "lake")) == 2000
    checked = [row for row in rows if row["type"] == "partition"]
    assert [(row["records"], row["errors"]) for row in checked] == [(1000, 0)] * 4
    assert [row["records"] for row in rows if row["type"] == "profile"] == [2000]
    assert rows[-1]["number"] == 1000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_pipeline_runs_on_a_connect_server(shop: Shop, client: Client, tmp_path: Path) -> None:
    confs = {**QUICK, "spark.sql.warehouse.dir": str(tmp_path / "tables")}
    with connect_server(tmp_path / "server", "local[2]", confs) as remote:
        done = run_pipeline("run", str(shop.folder), "--json", "--remote", remote)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(rows_in_table(tmp_path / "tables" / "kept")) == 10
        assert committed(client, shop.large) == 5
        assert sorted(value or b"" for value in values(client, shop.dead)) == sorted(BAD)
        assert (tmp_path / "shared" / "_checkpoints").is_dir()
        again = run_pipeline("run", str(shop.folder), "--json", "--remote", remote, "--conf", "spark.cores.max=1")
        assert again.returncode == 1
        assert "where the server is started" in again.stderr


def test_a_master_that_does_not_answer_is_said_at_once(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "run", str(shop.folder), "--master", "spark://127.0.0.1:1"]) == 1
    assert "no Spark master answers at spark://127.0.0.1:1" in capsys.readouterr().err


def test_a_connect_server_that_does_not_answer_is_said_soon(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "run", str(shop.folder), "--remote", "sc://127.0.0.1:1"]) == 1
    assert "no Spark Connect server answers at sc://127.0.0.1:1" in capsys.readouterr().err
    assert run(["pipeline", "run", str(shop.folder), "--remote", "127.0.0.1:1"]) == 1
    assert "such as sc://host:15002" in capsys.readouterr().err


@pytest.mark.parametrize("where", [["--master", "spark://cluster.example:7077"], ["--remote", "sc://127.0.0.1:1"]])
def test_storage_of_this_machine_is_refused_for_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], where: list[str]
) -> None:
    run(["pipeline", "init", str(tmp_path / "p")])
    assert run(["pipeline", "run", str(tmp_path / "p"), *where]) == 1
    assert "s3a://bucket/path, or file:///path" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("master", "is_here"),
    [
        ("local[*]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://[::1]:7077", True),
        ("spark://127.0.0.1:7077,10.0.0.2:7077", False),
        ("spark://spark.example", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_only_the_loopback_is_this_machine(master: str, is_here: bool) -> None:
    assert clusters.is_on_this_machine(master) is is_here


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Caused by: ModuleNotFoundError: No module named 'tidelog'", 'pip install "tidelog[spark]"'),
        ("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: tidelog. Make", "PYSPARK_PYTHON"),
        ('java.io.IOException: Cannot run program "/opt/python3": error=2', "have no /opt/python3; name the Python"),
        ("tidelog.client.errors.Unreachable: nobody answers at 127.0.0.1:9092", "what the broker advertises"),
    ],
)
def test_what_machines_of_a_cluster_lack_is_said_with_what_to_do(said: str, words: str) -> None:
    error = RuntimeError(f"Job aborted due to stage failure\n{said}\n\tat org.apache.spark.Foo")
    assert words in clusters.in_short(error)


def test_an_error_of_a_task_is_told_in_a_line() -> None:
    trace = "Traceback (most recent call last):\n  File x\n{}\n\n\tat org.apache.spark.Foo"
    assert clusters.in_short(RuntimeError(trace.format("tidelog.errors.InvalidInput: it is so"))) == "it is so"
    assert clusters.in_short(RuntimeError(trace.format("OSError: disk full"))) == "OSError: disk full"
    assert clusters.in_short(RuntimeError("first\nsecond")) == "first"


class _Waiting:
    """A SparkContext with a job and without executors."""

    master = "spark://127.0.0.1:7077"

    @property
    def _jsc(self) -> "_Waiting":
        return self

    def sc(self) -> "_Waiting":
        return self

    def statusTracker(self) -> "_Waiting":  # noqa: N802
        return self

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802
        return [1]

    def getExecutorMemoryStatus(self) -> "_Waiting":  # noqa: N802
        return self

    def size(self) -> int:
        return 1  # the driver


def test_a_cluster_without_room_is_not_waited_for_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clusters, "_ROOM_SECONDS", 1)
    clusters.watch_for_room(_Waiting())
    said = eventually(lambda: capsys.readouterr().err)
    assert "spark://127.0.0.1:7077 has given no executor" in said
    assert "spark.cores.max" in said


def test_an_archive_counts_only_what_is_seen_from_here(
    broker: BrokerProcess,
    client: Client,
    make_topic: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker whose folder is another one, though its path is the same."""
    from tidelog.errors import TidelogError
    from tidelog.spark.jobs import archive

    topic = make_topic()
    fill(client, topic, numbered("v", 10))

    def elsewhere(work: Callable[[archive.Unit], archive.UnitDone], units: list[archive.Unit], **_: object) -> Any:
        for unit in units:
            done = work(unit)
            for file in done.files:
                (tmp_path / "lake" / file.path).unlink()
            yield done

    monkeypatch.setattr(archive, "run_units", elsewhere)
    monkeypatch.setattr(archive, "_SHARED_SECONDS", 0.1)
    job = archive.Archive(client, archive.ArchiveSettings(broker.bootstrap, topic, str(tmp_path / "lake")))
    try:
        with pytest.raises(TidelogError, match="every machine of the cluster"):
            list(job.run(job.plan(), master="spark://elsewhere:7077"))
    finally:
        job.close()
    monkeypatch.undo()
    assert run(["archive", topic, "--to", str(tmp_path / "lake"), "-b", broker.bootstrap]) == 0
    assert len(rows_in_table(tmp_path / "lake")) == 10


def test_the_python_of_a_conf_runs_beside_the_driver_and_in_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark runs a source by one path on all machines."""
    from tidelog.spark import session

    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "/unset")  # so that it is put back
        monkeypatch.delenv(name)
    session._choose_python("spark://cluster.example:7077", {})
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    session._choose_python("spark://cluster.example:7077", {"spark.pyspark.python": "/opt/python"})
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == "/opt/python"
