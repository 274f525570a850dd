"""`tidelog demo`: a broker, a stream of sample events, a Spark pipeline on them, and its results, in one command."""

import contextlib
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.output import record_progress
from tidelog.cli.pipeline import live_progress
from tidelog.client import Client, connect
from tidelog.errors import TidelogError

if TYPE_CHECKING:
    from tidelog.embedding import EmbeddedBroker
    from tidelog.spark.pipelines.engine import Engine

_PORT = 9092
_MINUTES = 20
_TRICKLE_S = 0.2


@click.command("demo")
@click.option(
    "--events",
    "count",
    type=click.IntRange(min=100),
    default=25_000,
    show_default=True,
    help="Number of sample events.",
)
@click.option("--exit", "leaves", is_flag=True, help="Stop the broker and exit when the pipeline is done.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    help="Keep data and project in this directory. [default: a temporary directory]",
)
def command(count: int, leaves: bool, keep: Path | None) -> None:
    """Run a broker and a Spark pipeline on sample events: a table, a topic and dead letters come out.

    Everything runs in one process and a temporary directory, which is removed at the end.
    """
    folder = keep or Path(tempfile.mkdtemp(prefix="tidelog-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    # The JVM and the directory must be cleaned up on SIGTERM too, and also if a shell had Ctrl-C ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        _demo(folder, count, leaves=leaves)
    except KeyboardInterrupt:
        click.echo("\nStopped.")
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _demo(folder: Path, count: int, *, leaves: bool) -> None:
    from tidelog.spark.pipelines import demo
    from tidelog.spark.pipelines.engine import Engine

    began = time.monotonic()
    with _broker(folder / "data") as broker, connect(broker.bootstrap_servers) as client:
        servers = broker.bootstrap_servers
        _say(f"A broker listens on {servers}.")
        for topic in (demo.CLICKS, demo.ORDERS):
            client.create_topic(topic, partitions=2)
        for topic in (demo.REVENUE, f"{demo.ORDERS}.dead-letters"):
            client.create_topic(topic, partitions=1)
        project = demo.write_project(folder / "shop", servers)
        with ThreadPoolExecutor(1) as starter:
            starting = starter.submit(
                lambda: Engine(project)
            )  # a JVM takes a few seconds to start; events are produced meanwhile
            try:
                _stream_in(client, count)
                engine = starting.result()
            except BaseException:
                with contextlib.suppress(Exception):
                    starting.result().close()
                raise
        with engine:
            _say("The pipeline runs: orders to a Parquet table and to revenue per minute, bad ones to dead letters.")
            with live_progress(engine):
                run = engine.run()
            for flow in run["flows"]:
                _say(f"  {flow['flow']:<26} {flow['rows']:>8,} rows  {flow['seconds']:>5.1f} s")
            _show(engine, client)
        _say(f"\nDone in {time.monotonic() - began:.0f} s.")
        if not leaves:
            _stay(client, servers, folder)


def _broker(data_dir: Path) -> "EmbeddedBroker":
    from tidelog.embedding import EmbeddedBroker

    try:
        return EmbeddedBroker(str(data_dir), port=_PORT)
    except (TidelogError, OSError):
        return EmbeddedBroker(str(data_dir))  # the port is in use


def _stream_in(client: Client, count: int) -> None:
    from tidelog.spark.pipelines import demo

    now = int(time.time() * 1000)
    began = time.monotonic()
    with client.producer() as producer, record_progress("streaming events", count) as advance:
        for number, event in enumerate(demo.events(7, now - _MINUTES * 60_000, now, count), 1):
            producer.send(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)
            if number % 500 == 0:
                advance(500)
    rate = count / (time.monotonic() - began)
    _say(f"{count:,} click and order events of the last {_MINUTES} minutes produced ({rate:,.0f} events/s).")


def _show(engine: "Engine", client: Client) -> None:
    """Show the results: a table, asked with SQL, and topics."""
    import json

    from tidelog.spark.pipelines import demo, letters

    top = engine.query(
        "SELECT category, count(*) AS orders, round(sum(total), 2) AS revenue, count(DISTINCT customer) AS customers "
        "FROM enriched_orders GROUP BY category ORDER BY revenue DESC"
    )
    _table("The table enriched_orders, by category", ("category", "orders", "revenue", "customers"), top)
    minutes = [json.loads(record.value or b"{}") for record in client.consume(demo.REVENUE, follow=False)]
    shown = [(row["minute"], row["orders"], row["revenue"]) for row in sorted(minutes, key=lambda row: row["minute"])]
    _table(f"The topic {demo.REVENUE}, last minutes of {len(shown)}", ("minute", "orders", "revenue"), shown[-5:])
    dead = []
    reasons: dict[str, int] = {}
    for record in client.consume(f"{demo.ORDERS}.dead-letters", follow=False):
        headers = {name: (value or b"").decode() for name, value in record.headers}
        reasons[headers[letters.ERROR]] = reasons.get(headers[letters.ERROR], 0) + 1
        dead.append((headers[letters.ERROR], f"{headers[letters.PARTITION]}/{headers[letters.OFFSET]}"))
    found = sorted(reasons.items(), key=lambda item: -item[1])
    _table(f"The topic {demo.ORDERS}.dead-letters", ("reason", "letters"), found)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row))
    Console(file=sys.stdout, highlight=False).print("", table)


def _stay(client: Client, servers: str, folder: Path) -> None:
    """Until Ctrl-C, with a few new events every second."""
    from tidelog.spark.pipelines import demo

    at = "" if servers.endswith(f":{_PORT}") else f" -b {servers}"
    _say("\nThe broker keeps running, with new events, until Ctrl-C. Try in another terminal:\n")
    for line in (
        f"tidelog consume orders --from -3{at}",
        f"tidelog consume orders.dead-letters --json{at}",
        f"tidelog pipeline watch {folder / 'shop'}",
        f"tidelog profile --html topics.html{at}",
    ):
        _say(f"  {line}")
    stop, seed = threading.Event(), 100
    with client.producer() as producer:
        while not stop.wait(_TRICKLE_S):
            now, seed = int(time.time() * 1000), seed + 1
            for event in demo.events(seed, now - 1, now, 2):
                producer.send(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)


def _say(line: str) -> None:
    click.echo(line)
    sys.stdout.flush()
