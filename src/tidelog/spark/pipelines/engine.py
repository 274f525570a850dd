"""Starts Spark for pipelines, and runs a project on it.

Spark Declarative Pipelines are controlled through Spark Connect. Locally, and with `--master`, the server runs in a
JVM of this process, on a free port of the loopback, with a token that only this process knows; it serves all runs of
this process. With `--remote` an existing server is used.
"""

import contextlib
import os
import re
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tidelog.errors import InvalidInput, TidelogError
from tidelog.spark import clusters
from tidelog.spark.pipelines import tables
from tidelog.spark.pipelines.consistency import Consistency
from tidelog.spark.pipelines.declared import DeclaredTable, check_flows, declared_tables, full_names
from tidelog.spark.pipelines.definitions import BOOTSTRAP_CONF, DECLARED
from tidelog.spark.pipelines.lock import RunLock
from tidelog.spark.pipelines.progress import RunProgress
from tidelog.spark.pipelines.project import Project
from tidelog.spark.pipelines.shield import Shield
from tidelog.spark.session import prepare

# Spark retries a failed flow soon: the client has already retried temporary errors.
_FLOWS = {
    "spark.sql.pipelines.execution.watchdog.minRetryTime": "1",
    "spark.sql.pipelines.execution.watchdog.maxRetryTime": "10",
}
# On one machine only: each flow starts processes, and Spark allows them ten seconds to start.
_CONCURRENT_FLOWS_CONF = "spark.sql.pipelines.execution.maxConcurrentFlows"
_FLOW_EVENT = re.compile(r"Flow (?P<flow>\S+) (?:is |has )?(?P<state>[A-Z]{4,})", re.DOTALL)
_UNRESOLVED = re.compile(r"Failed to resolve flow: '(?P<flow>.+?)'\.\s*(?:Error: )?(?P<why>.+)", re.DOTALL)
_REPORT_SECONDS = 1.0
_STOP_SECONDS = 10.0


def reached(step: str) -> None:
    """A point at which a crash must do no harm. Tests replace this function to kill the process here."""


class PipelineFailed(TidelogError):
    """A run failed; the message says why in a line or two."""


class Engine:
    """A context manager. Only one per process."""

    def __init__(
        self,
        project: Project,
        *,
        master: str | None = None,
        remote: str | None = None,
        bootstrap: str | None = None,
        conf: Mapping[str, str] | None = None,
        long_lived: bool = False,
    ) -> None:
        self._is_on_cluster = remote is not None or not clusters.is_on_this_machine(master or "local")
        if self._is_on_cluster and project.has_own_storage:
            raise InvalidInput(
                f"{project.spec_path.name}: storage is a folder of this machine; for a cluster, set it to a place "
                "that all machines can reach, such as s3a://bucket/path, or file:///path of a shared folder"
            )
        if remote is not None:
            _refuse_confs_of_the_server(conf or {})
            clusters.reach_connect_server(remote)
        self._project = project
        self._remote = remote
        here = {} if remote else {_CONCURRENT_FLOWS_CONF: str(max(2, len(os.sched_getaffinity(0))))}
        self._conf = {**_FLOWS, **here, **project.configuration, **(conf or {})}
        if bootstrap is not None:
            self._conf[BOOTSTRAP_CONF] = bootstrap
        project.state.mkdir(exist_ok=True)
        self._lock: RunLock | None = None
        self._memory = tables.Memory(project.state / "tables.json")
        self._keeps_tables = False
        self._is_closed = False
        self._shield = Shield()
        _log_failures_in_threads(project)
        self._classic: Any = None  # the session of the local JVM
        if remote is None:
            self._classic = self._shield.call(lambda: self._start_local(master, long_lived=long_lived))
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # so that `SparkSession.active()` of definitions finds it
        self.progress = RunProgress()
        try:
            self._shield.call(lambda: self._connect(remote or self._url))
        except Exception as error:
            self.close()
            raise PipelineFailed(explain(error, project.folder)) from error

    @property
    def bootstrap(self) -> str | None:
        return self._conf.get(BOOTSTRAP_CONF)

    def query(self, sql: str) -> list[Any]:
        """The rows of a query of the pipeline's tables."""
        return self._shield.call(lambda: list(self._spark.sql(sql).collect()))

    def _connect(self, url: str) -> None:
        self._spark = self._open_session(url)
        self._listener = self._listen()

    def _open_session(self, url: str) -> Any:  # noqa: ANN401
        from pyspark.sql.connect.session import SparkSession

        session = SparkSession.builder.remote(url).getOrCreate()
        for name, value in self._conf.items():
            if not _is_static(name):
                session.conf.set(name, value)
        session.conf.set("spark.sql.connect.serverStacktrace.enabled", "false")
        return session

    def _start_local(self, master: str | None, *, long_lived: bool) -> Any:  # noqa: ANN401
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        port = _free_port()
        self._url = f"sc://localhost:{port}"
        os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = secrets.token_hex(16)
        confs = prepare(
            master,
            {
                "spark.sql.catalogImplementation": "in-memory",
                "spark.sql.warehouse.dir": self._project.warehouse,
                "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                "spark.connect.grpc.binding.address": "127.0.0.1",
                "spark.connect.grpc.binding.port": str(port),
                "spark.sql.artifact.isolation.enabled": "true",
                "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
                **self._conf,
            },
            log_file=self._project.log_file,
            long_lived=long_lived,
            profile="connect",
        )
        context = SparkContext.getOrCreate(SparkConf().setAll(list(confs.items())))
        context.setLogLevel("WARN")
        self._send_stack_traces_to_the_log(context._jvm)
        if not clusters.is_local(confs["spark.master"]):
            clusters.watch_for_room(context)
        classic = SparkSession(context)
        self._keeps_tables = confs["spark.sql.catalogImplementation"] == "in-memory"
        if self._keeps_tables:
            place = confs["spark.sql.warehouse.dir"] if self._is_on_cluster else None
            tables.recall(classic, self._memory, within=place)
        self._owns_warehouse = confs["spark.sql.warehouse.dir"] == self._project.warehouse
        os.environ["SPARK_LOCAL_REMOTE"] = "1"
        return classic

    def _send_stack_traces_to_the_log(self, jvm: Any) -> None:  # noqa: ANN401
        """Redirect the JVM's stderr: Spark's threads print the exceptions that end them, as when a run is stopped."""
        log = jvm.java.io.FileOutputStream(str(self._project.log_file), True)
        jvm.java.lang.System.setErr(jvm.java.io.PrintStream(log, True))

    def _listen(self) -> Any:  # noqa: ANN401
        from pyspark.sql.streaming.listener import StreamingQueryListener

        engine = self

        class Listener(StreamingQueryListener):
            def onQueryStarted(self, event: Any) -> None:  # noqa: ANN401, ARG002, N802
                engine.progress.heard_query(began=True)

            def onQueryIdle(self, event: Any) -> None: ...  # noqa: ANN401, N802
            def onQueryTerminated(self, event: Any) -> None:  # noqa: ANN401, ARG002, N802
                engine.progress.heard_query(began=False)

            def onQueryProgress(self, event: Any) -> None:  # noqa: ANN401, N802
                import json

                engine.progress.heard_rows(json.loads(event.progress.json))

        listener = Listener()
        self._spark.streams.addListener(listener)
        return listener

    def run(
        self,
        *,
        dry: bool = False,
        full_refresh: bool = False,
        recompute: Sequence[str] = (),
        on_declared: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Process all data that is available now, once. Returns the run's report, as stored in the project's runs.

        With `full_refresh` everything is recomputed; with `recompute` these tables are, before the rest runs. If an
        earlier run that should recompute tables was killed before it had cleared them, this run does it.
        `on_declared` is called when the definitions are read, before anything runs. PipelineFailed has the report,
        too, as its `run`."""
        self.progress = RunProgress()
        self._unresolved: dict[str, str] = {}
        began, clock = datetime.now(UTC), time.monotonic()
        failure: str | None = None
        if not dry:
            self._claim_project()
        unfinished = self._memory.refreshing
        try:
            passes = _passes(full_refresh, {*recompute, *unfinished})
            self._shield.call(lambda: self._run_passes(passes, dry=dry, on_declared=on_declared))
        except Exception as error:
            failure = explain(error, self._project.folder)
            if self._unresolved:  # Spark's own error does not give the reasons
                reasons = sorted(set(self._unresolved.values()))
                flows = {why: [flow for flow, one in self._unresolved.items() if one == why] for why in reasons}
                failure = "; ".join(f"{', '.join(sorted(flows[why]))}: {why}" for why in reasons)
            if not dry and (self._unresolved or isinstance(error, InvalidInput)):  # then nothing was cleared
                self._memory.keep(refreshing=unfinished)
            self._project.note("failed: " + "".join(traceback.format_exception(error)))
        reached("ended")
        if self._keeps_tables and not dry:
            with contextlib.suppress(Exception):  # Spark has ended; the tables were stored when the flows began
                self._memory.keep(tables=tables.facts(self._classic), making=())
        self._wait_for_reports()
        run = {
            "started": began.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - clock, 3),
            "state": "failed" if failure else "completed",
            "error": failure,
            "flows": [flow.as_row() for flow in self.progress.flows()],
            "sources": sorted({topic for _, topic in DECLARED.sources}),
            "dead_letters": sorted({topic for _, topic in DECLARED.dead_letters}),
            "sinks": sorted({topic for _, topic in DECLARED.sinks}),
            "bootstrap": self.bootstrap,
        }
        if not dry:
            self._project.keep_run(run)
        if failure:
            problem = PipelineFailed(failure)
            problem.run = run  # type: ignore[attr-defined]
            raise problem
        return run

    def _run_passes(self, passes: list[list[str]], *, dry: bool, on_declared: Callable[[], None]) -> None:
        for cleared in passes:
            self._is_materialized = dry
            for message in self._events(dry=dry, cleared=cleared, on_declared=on_declared):
                if self._is_closed:  # after Ctrl-C
                    return
                self._heard(message)

    def _claim_project(self) -> None:
        if self._lock is None:
            self._lock = RunLock(self._project.state / "lock", self._classic._jvm if self._classic else None)
            self._memory = tables.Memory(self._memory.file)  # another run may have ended since it was read

    def _events(self, *, dry: bool, cleared: list[str], on_declared: Callable[[], None]) -> Iterator[str]:
        import yaml
        from pyspark.pipelines.cli import register_definitions, unpack_pipeline_spec
        from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
        from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run

        content = yaml.safe_load(self._project.spec_path.read_text())
        content["storage"] = self._project.storage
        content["configuration"] = {name: value for name, value in self._conf.items() if not _is_static(name)}
        spec = unpack_pipeline_spec(content)
        graph = create_dataflow_graph(
            self._spark, default_catalog=spec.catalog, default_database=spec.database, sql_conf=spec.configuration
        )
        DECLARED.clear()
        with contextlib.redirect_stdout(_NoteStream(self._project)):
            registry = SparkConnectGraphElementRegistry(self._spark, graph)
            register_definitions(self._project.spec_path, registry, spec, self._spark, graph)
        on_declared()
        reached("declared")
        is_all = tables.ALL_TABLES in cleared
        if self._classic is not None:
            declared = declared_tables(self._classic, self._spark, graph)
            check_flows(declared)
            if not is_all:
                cleared = full_names(declared, cleared, unfinished=self._memory.refreshing)
            self._prepare(declared, cleared, dry=dry)
        elif cleared and not dry:
            self._memory.keep(refreshing=cleared)
        reached("prepared")
        results = start_run(
            self._spark,
            graph,
            full_refresh=[] if is_all else cleared,
            full_refresh_all=is_all,
            refresh=[],
            dry=dry,
            storage=spec.storage,
        )
        for result in results:
            if "pipeline_event_result" in result:
                yield result["pipeline_event_result"].event.message

    def _prepare(self, declared: list[DeclaredTable], refreshed: list[str], *, dry: bool) -> None:
        """Prepare tables and checkpoints for a run. What the run will create and clear is stored first."""
        here = [table for table in declared if table.is_in_session_catalog]
        consistency = Consistency(
            self._classic, self._project.storage, f"tidelog pipeline run {self._project.folder}"
        )
        is_all = tables.ALL_TABLES in refreshed
        cleared = [t.full_name for t in here if t.is_resettable and (is_all or t.full_name in refreshed)]
        places = {table.location for table in here}
        own = self._project.warehouse if self._owns_warehouse else None
        ours = {place for place in places if own is not None and tables.is_within(place, own)}
        consistency.check(here, ours={*ours, *self._memory.making}, cleared=cleared)
        if dry:
            return
        self._memory.keep(refreshing=refreshed, making={*places, *self._memory.making} if self._keeps_tables else ())
        reached("remembered what is to be made")
        consistency.take_over(here, cleared=cleared)

    def _materialized(self) -> None:
        """Called at the first event of a flow: Spark has cleared the recomputed tables and created all tables."""
        self._is_materialized = True
        reached("materialized")
        if self._keeps_tables:
            self._memory.keep(tables=tables.facts(self._classic), making=(), refreshing=())
        elif self._memory.refreshing:
            self._memory.keep(refreshing=())
        reached("remembered what was made")

    def _heard(self, message: str) -> None:
        self._project.note(message.splitlines()[0] if message else "")
        unresolved = _UNRESOLVED.match(message)
        if unresolved is not None:
            self._unresolved[unresolved["flow"]] = _essence(unresolved["why"])
        found = _FLOW_EVENT.match(message)
        if found is not None:
            if not self._is_materialized:
                self._materialized()
            reached(message.splitlines()[0])
            name = found["flow"].strip("`'").replace("`", "")
            state = found["state"].lower()
            self.progress.heard_state(name, state, _essence(message) if state == "failed" else None)

    def _wait_for_reports(self) -> None:
        """Wait for the last reports of rows, which arrive shortly after the flows have ended."""
        deadline = time.monotonic() + _REPORT_SECONDS
        while time.monotonic() < deadline and not self.progress.is_settled:
            time.sleep(0.02)

    def close(self) -> None:
        """Stop everything: first the flows, then Spark. A step of a flow that cannot be interrupted, or a Spark that
        does not answer, is not waited for."""
        self._is_closed = True
        self._shield.has_ended(self._end_session, _STOP_SECONDS)
        if self._classic is not None and not self._shield.has_ended(self._classic.sparkContext.stop, _STOP_SECONDS):
            _kill_jvm()
        self._shield.join(_STOP_SECONDS)
        if self._lock is not None:
            with contextlib.suppress(Exception):
                self._lock.close()
            self._lock = None

    def _end_session(self) -> None:
        with contextlib.suppress(Exception):
            self._spark.interruptAll()
        with contextlib.suppress(Exception):
            self._spark.streams.removeListener(self._listener)
        with contextlib.suppress(Exception):
            self._spark.client.release_session()
        with contextlib.suppress(Exception):
            self._spark.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _passes(full_refresh: bool, recomputed: Collection[str]) -> list[list[str]]:
    """The tables that each pass over the pipeline clears first. A pass that clears some tables runs only those."""
    if full_refresh or tables.ALL_TABLES in recomputed:
        return [[tables.ALL_TABLES]]
    return [sorted(recomputed), []] if recomputed else [[]]


def _kill_jvm() -> None:
    from pyspark import SparkContext

    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.proc.kill()


class _NoteStream:
    """Writes the output of Spark's loader to the log."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def write(self, text: str) -> int:
        if text.strip():
            self._project.note(text.strip())
        return len(text)

    def flush(self) -> None: ...


def _log_failures_in_threads(project: Project) -> None:
    """Write to the log what ends threads of gRPC, Py4J and PySpark.

    gRPC's thread for a channel can fail if the channel is closed while a call is being set up, as after Ctrl-C. The
    threads may outlive the engine, so the hook stays."""
    before = threading.excepthook

    def note_or_pass_on(args: threading.ExceptHookArgs) -> None:
        frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(args.exc_traceback)]
        if any(name.split(".")[0] in ("grpc", "py4j", "pyspark") for name in frames):
            trace = traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback)
            with contextlib.suppress(OSError):  # the demo's project has been removed
                project.note("a thread of Spark's client ended: " + "".join(trace))
        else:
            before(args)

    threading.excepthook = note_or_pass_on


def _refuse_confs_of_the_server(conf: Mapping[str, str]) -> None:
    static = sorted(name for name in conf if _is_static(name))
    if static:
        raise InvalidInput(
            f"--conf {', '.join(static)}: cannot be changed on a running Spark Connect server; set it where the "
            "server is started, or use --master"
        )


def _is_static(name: str) -> bool:
    """True for confs of the process, which can be set only at its start, not for a session."""
    return name.startswith(
        (
            "spark.driver",
            "spark.executor",
            "spark.master",
            "spark.plugins",
            "spark.connect",
            "spark.local",
            "spark.ui",
            "spark.cores",
            "spark.pyspark",
            "spark.submit",
            "spark.archives",
            "spark.jars",
            "spark.python.daemon",
        )
    ) or name in ("spark.sql.warehouse.dir", "spark.sql.catalogImplementation", "spark.app.name")


def explain(error: BaseException, folder: Path) -> str:
    """The error in a line or two: without stack traces and class names, and with the line in a file of the project,
    if it was raised there."""
    if type(error).__module__.startswith(("pyspark", "grpc")):
        return _essence(str(error))
    where = ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}: "
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).is_relative_to(folder):
            where = f"{frame.filename}:{frame.lineno}: "
    name = "" if isinstance(error, TidelogError) else f"{type(error).__name__}: "
    return f"{where}{name}{error}"


def _essence(text: str) -> str:
    """The useful part of a message of Spark."""
    known = clusters.advice(text) or _about_lost_tables(text)
    if known:
        return known
    text = text.split("\n\nJVM stacktrace")[0].split("=== Streaming Query ===")[0]
    text = re.split(r"\n\s*(?:\+- |['~:]|[A-Z]\w+ \[)", text)[0]  # a query plan
    by_us = re.findall(r"^\S*tidelog\.\S+: (.+)$", text, re.MULTILINE)  # the end of a Python traceback
    if by_us:
        return str(by_us[-1])
    lines = [
        line for line in text.splitlines() if line.strip() and not re.match(r"\s+(at|File) |Traceback|\.\.\.", line)
    ]
    kept = " ".join(lines[:6])
    for noise in (
        r"^Flow \S+ has FAILED[^.]*\.\s*(Error: )?",
        r"\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ",
        r"^\((?:\w+\.)+[\w$]+\)\s*",
        r"(?:[a-z]\w*\.){2,}\w+(?:Exception|Error): ",
        r"\s*SQLSTATE: \w+(; line \d+ pos \d+;?)?",
    ):
        kept = re.sub(noise, "", kept)
    return kept.strip() or "Spark gives no reason; see .tidelog/pipeline.log"


def _about_lost_tables(text: str) -> str | None:
    """Replaces Spark's own advice, which is to remove the files: their rows would not be read again."""
    found = re.search(
        r"LOCATION_ALREADY_EXISTS\] Cannot name the managed table as (\S+),.*?location '?([^' ]+)'?", text
    )
    if found is None:
        return None
    return (
        f"{found[2]} has files of the table {found[1]}, but the catalog does not know the table; use a persistent "
        "catalog, such as spark.sql.catalogImplementation=hive. To recompute the table, move away both these files "
        "and its checkpoints, in _checkpoints of the project's storage"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
