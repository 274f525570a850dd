"""Pipelines by the command, in a process of its own: bad records, new data, retries, the next process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.spark_tables import rows_in_table
from tidelog.cli.main import run
from tidelog.client import Client

SECONDS = 200  # on a machine that has other things to do

DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from tidelog.spark.pipelines import to_topic, topic

spark = SparkSession.active()

topic(
    "{orders}",
    schema="id string NOT NULL, amount double, timestamp bigint",
    expect={{"amount is positive": "{condition}"}},
    view="orders",
    dead_letters="{dead}",
)

@dp.table
def kept():
    return spark.readStream.table("orders").select("id", "amount", "_record.offset")

@to_topic("{large}", key="id")
def announce():
    return spark.readStream.table("orders").where("amount >= 1000").select("id", "amount")
"""


def command(*arguments: str, **options: Any) -> list[str]:
    return [sys.executable, "-m", "tidelog", "pipeline", *arguments]


def run_pipeline(*arguments: str) -> "subprocess.CompletedProcess[str]":
    # A session through Spark Connect that a test has had in this process leaves its token here, not for others.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_CONNECT_")}
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=SECONDS, env=environment)


def rows_of(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


class Shop:
    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder = folder
        self.orders, self.large = unique("orders"), unique("large")
        self.dead = f"{self.orders}-dead"
        (folder / "definitions").mkdir(parents=True)
        (folder / "spark-pipeline.yml").write_text(
            "name: shop\nlibraries:\n  - glob:\n      include: definitions/**\nconfiguration:\n"
            f'  spark.tidelog.bootstrap.servers: "{bootstrap}"\n'
        )
        (folder / "definitions" / "totals.sql").write_text(
            "CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS orders, sum(amount) AS amount FROM kept;\n"
        )
        self.define("amount > 0")

    def define(self, condition: str) -> None:
        names = {"orders": self.orders, "large": self.large, "dead": self.dead, "condition": condition}
        (self.folder / "definitions" / "orders.py").write_text(DEFINITIONS.format(**names))

    def runs(self) -> list[dict[str, Any]]:
        file = self.folder / ".tidelog" / "runs.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def completed(self) -> list[dict[str, Any]]:
        return [run for run in self.runs() if run["state"] == "completed"]

    def table(self, name: str) -> list[dict[str, Any]]:
        return rows_in_table(self.folder / ".tidelog" / "warehouse" / name)


@pytest.fixture
def shop(tmp_path: Path, broker: BrokerProcess, client: Client) -> Shop:
    shop = Shop(tmp_path / "shop", broker.bootstrap)
    client.create_topic(shop.orders, partitions=2)
    client.create_topic(shop.large)
    client.create_topic(shop.dead)
    return shop


def values(client: Client, topic: str) -> list[bytes | None]:
    return [record.value for record in client.consume(topic, follow=False)]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_pipeline_from_the_first_record_to_the_retried_one(
    shop: Shop, broker: BrokerProcess, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [b"{broken", b'{"amount": 5}', b'{"id": "minus", "amount": -7}', b"\xff\xfe"]
    for number in range(10):
        client.produce(shop.orders, json.dumps({"id": f"{number}", "amount": number * 200.0 + 1}))
    for value in bad:
        client.produce(shop.orders, value, key="k", headers=[("trace", b"abc")], partition=1)

    # watch: what is there, then what comes
    output = shop.folder / "watch.txt"
    with output.open("w") as file:
        watching = subprocess.Popen(
            command("watch", str(shop.folder), "--json", "--every", "0.2"), stdout=file, stderr=file
        )
    try:
        eventually(lambda: shop.completed() or watching.poll() is not None, within=SECONDS)
        assert watching.poll() is None, output.read_text()
        flows = {flow["flow"]: flow for flow in shop.completed()[0]["flows"]}
        assert flows["kept"]["rows"] == 14
        assert flows["kept"]["lag"] == {shop.orders: 0}
        assert len(shop.table("kept")) == 10
        assert len(values(client, shop.large)) == 5
        letters = list(client.consume(shop.dead, follow=False))
        assert sorted(letter.value or b"" for letter in letters) == sorted(bad)
        said = {letter.value: dict(letter.headers) for letter in letters}
        assert said[b"{broken"]["tidelog.error"] == b"the value is not JSON of this schema"
        assert said[b'{"amount": 5}']["tidelog.error"] == b"id is missing"
        assert said[bad[2]]["tidelog.error"] == b"expectation failed: amount is positive"
        assert said[b"\xff\xfe"]["tidelog.error"] == b"the value is not UTF-8"
        origin = said[b"{broken"]
        assert origin["trace"] == b"abc"
        assert (origin["tidelog.topic"], origin["tidelog.partition"]) == (shop.orders.encode(), b"1")
        assert letters[0].key == b"k"

        client.produce(shop.orders, b'{"id": "later", "amount": 5000}')
        eventually(lambda: len(values(client, shop.large)), until=lambda count: count == 6, within=SECONDS)
        eventually(lambda: len(shop.table("kept")), until=lambda count: count == 11, within=SECONDS)
    finally:
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(SECONDS) == 0, output.read_text()

    # status: everything is read, four letters wait
    assert run(["pipeline", "status", str(shop.folder), "--json"]) == 0
    rows_shown = rows_of(capsys.readouterr().out)
    assert {row["lag"] for row in rows_shown if row["type"] == "position"} == {0}
    (dead,) = [row for row in rows_shown if row["type"] == "dead_letters"]
    assert (dead["letters"], dead["waiting"]) == (4, 4)

    # retry with mended definitions: only what can be good now becomes good; a second retry does nothing
    shop.define("amount > 0 OR id = 'minus'")
    assert run(["pipeline", "retry", str(shop.folder), "--json"]) == 0
    assert rows_of(capsys.readouterr().out)[0]["played_back"] == 4
    assert run(["pipeline", "retry", str(shop.folder), "--json"]) == 0
    assert rows_of(capsys.readouterr().out)[0]["played_back"] == 0

    # the next process knows the tables, and goes on where the last one ended
    done = run_pipeline("run", str(shop.folder), "--json")
    assert done.returncode == 0, done.stderr
    assert len(shop.table("kept")) == 12
    (totals,) = shop.table("totals")
    assert totals["orders"] == 12
    again = [dict(letter.headers) for letter in client.consume(shop.dead, follow=False)][4:]
    assert len(again) == 3
    assert {letter["tidelog.retries"] for letter in again} == {b"1"}
    assert (shop.folder / ".tidelog" / "pipeline.log").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_wrong_definition_is_told_by_check_in_a_line(shop: Shop, broker: BrokerProcess) -> None:
    shop.define("no_such_column > 0")
    checked = run_pipeline("check", str(shop.folder))
    assert checked.returncode == 1
    assert "no_such_column" in checked.stderr
    assert "Traceback" not in checked.stderr
    assert len(checked.stderr.splitlines()) == 1
    assert shop.runs() == []


def test_a_new_project_is_complete_and_never_overwrites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    assert run(["pipeline", "init", str(folder), "-b", "127.0.0.1:1"]) == 0
    assert "tidelog pipeline run" in capsys.readouterr().out
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"spark-pipeline.yml", "definitions/orders.py", "definitions/customers.sql", ".gitignore"}
    assert run(["pipeline", "init", str(folder)]) == 1
    assert "has a pipeline already" in capsys.readouterr().err
    assert run(["pipeline", "status", str(folder / "definitions")]) == 0
    assert "has not run yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("name: x\n", "libraries is missing"),
        ("name: [", "is not YAML"),
        ("- x\n", "has no settings"),
        ("name: x\nlibraries: [1]\nstorge: y\n", "unknown setting storge"),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: str, problem: str
) -> None:
    (tmp_path / "spark-pipeline.yml").write_text(spec)
    assert run(["pipeline", "run", str(tmp_path)]) == 1
    assert problem in capsys.readouterr().err


def test_without_a_project_it_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pipeline", "run", str(tmp_path)]) == 1
    assert "tidelog pipeline init" in capsys.readouterr().err


def test_storage_of_this_machine_is_refused_for_a_remote_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["pipeline", "init", str(tmp_path / "p")])
    assert run(["pipeline", "run", str(tmp_path / "p"), "--remote", "sc://127.0.0.1:1"]) == 1
    assert "s3a://" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_shows_what_it_promises(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-m", "tidelog", "demo", "--exit", "--events", "2000"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stderr
    for words in (
        "enriched_orders, by category",
        "revenue-per-minute",
        "expectation failed: quantity is positive",
        "Done in",
    ):
        assert words in ran.stdout
    assert not list(tmp_path.glob("tidelog-demo-*"))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["run", "demo"])
def test_ctrl_c_ends_a_pipeline_without_a_stack_trace(shop: Shop, client: Client, tmp_path: Path, what: str) -> None:
    with client.producer() as producer:
        for number in range(2000):
            producer.send(shop.orders, json.dumps({"id": f"{number}", "amount": 1.0}))
    keep = tmp_path / "demo"
    program, folder = {
        "run": (command("run", str(shop.folder)), shop.folder),
        "demo": ([sys.executable, "-m", "tidelog", "demo", "--events", "2000", "--keep", str(keep)], keep / "shop"),
    }[what]
    log, output = folder / ".tidelog" / "pipeline.log", tmp_path / "output.txt"
    with output.open("w") as file:
        # As in a terminal: Ctrl-C reaches all processes of the group.
        environment = os.environ | {"PYTHONFAULTHANDLER": "1"}
        running = subprocess.Popen(program, stdout=file, stderr=file, start_new_session=True, env=environment)
    try:
        eventually(
            lambda: running.poll() is not None or (log.exists() and " is RUNNING" in log.read_text()), within=SECONDS
        )
        os.killpg(running.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(SECONDS / 2)
        if running.poll() is None:
            running.send_signal(signal.SIGABRT)  # it writes the stacks of its threads
        assert running.wait() == (130 if what == "run" else 0), output.read_text()
    finally:
        running.kill()
        running.wait()
    said = output.read_text()
    for trace in ("Exception", "Traceback", "\tat "):
        assert trace not in said, said


def test_what_ends_a_thread_of_grpc_is_in_the_log_and_not_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gRPC's thread for a channel fails like this if Ctrl-C closes the channel while a call is being set up."""
    import grpc._channel  # type: ignore[import-untyped]

    from tidelog.spark.pipelines.engine import _log_failures_in_threads
    from tidelog.spark.pipelines.project import load_project

    others: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", others.append)
    run(["pipeline", "init", str(tmp_path / "p")])
    project = load_project(next((tmp_path / "p").glob("*.yml")))
    _log_failures_in_threads(project)

    def wait_for_all_but(known: set[threading.Thread]) -> None:
        for thread in set(threading.enumerate()) - known:
            thread.join(SECONDS)

    known = set(threading.enumerate())
    closed = SimpleNamespace(completion_type=None, tag=None)
    grpc._channel._run_channel_spin_thread(SimpleNamespace(channel=SimpleNamespace(next_call_event=lambda: closed)))
    wait_for_all_but(known)
    assert "'NoneType' object is not callable" in project.log_file.read_text()
    assert not others

    ours = threading.Thread(target=lambda: [][1])
    ours.start()
    ours.join(SECONDS)
    assert [args.exc_type for args in others] == [IndexError]


def test_helpers_can_be_used_without_pyspark_being_imported(make_topic: Callable[..., str]) -> None:
    program = "import tidelog.spark.pipelines, sys; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ)
