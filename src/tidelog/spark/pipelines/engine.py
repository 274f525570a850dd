"""A Spark that pipelines run on, and runs of a project on it.

Spark Declarative Pipelines are driven over Spark Connect. Locally (and with `--master`) the server is started in a
JVM of this process, on the loopback, on a free port, with a token that only this process knows; it stays for as many
runs as there are. With `--remote` it is somebody else's.
"""

import contextlib
import os
import re
import secrets
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tidelog.errors import InvalidInput, TidelogError
from tidelog.spark import clusters
from tidelog.spark.pipelines import tables
from tidelog.spark.pipelines.definitions import BOOTSTRAP_CONF, DECLARED
from tidelog.spark.pipelines.progress import RunProgress
from tidelog.spark.pipelines.project import Project
from tidelog.spark.session import prepare

# A flow that fails is tried again soon: the client has waited already for what passes with time.
_FLOWS = {
    "spark.sql.pipelines.execution.watchdog.minRetryTime": "1",
    "spark.sql.pipelines.execution.watchdog.maxRetryTime": "10",
}
# On one machine: each flow starts processes of its own, and Spark gives them ten seconds to come up.
_CONCURRENT_FLOWS_CONF = "spark.sql.pipelines.execution.maxConcurrentFlows"
_FLOW_EVENT = re.compile(r"Flow (?P<flow>\S+) (?:is |has )?(?P<state>[A-Z]{4,})", re.DOTALL)
_UNRESOLVED = re.compile(r"Failed to resolve flow: '(?P<flow>.+?)'\.\s*(?:Error: )?(?P<why>.+)", re.DOTALL)
_REPORT_SECONDS = 1.0


class PipelineFailed(TidelogError):
    """A run did not succeed; the text says why, in a line or two."""


class Engine:
    """Use it as a context manager. One in a process."""

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
                f"{project.spec_path.name}: storage is a folder of this machine; for a cluster name a place that all "
                "of it can reach, such as s3a://bucket/path, or file:///path of a folder that every machine has"
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
        self._classic: Any = None if remote else self._start_local(master, long_lived=long_lived)
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # so that `SparkSession.active()` of definitions finds it
        try:
            self._spark = self._open_session(remote or self._url)
            self.progress = RunProgress()
            self._listener = self._listen()
        except Exception as error:
            self.close()
            raise PipelineFailed(explain(error, project.folder)) from error

    @property
    def bootstrap(self) -> str | None:
        return self._conf.get(BOOTSTRAP_CONF)

    @property
    def session(self) -> Any:  # noqa: ANN401  (a session of Spark Connect)
        return self._spark

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
        if not clusters.is_local(confs["spark.master"]):
            clusters.watch_for_room(context)
        classic = SparkSession(context)
        self._keeps_tables = confs["spark.sql.catalogImplementation"] == "in-memory"
        if self._keeps_tables:
            place = confs["spark.sql.warehouse.dir"] if self._is_on_cluster else None
            tables.recall(classic, self._tables_file, within=place)
        os.environ["SPARK_LOCAL_REMOTE"] = "1"
        return classic

    @property
    def _tables_file(self) -> Any:  # noqa: ANN401
        return self._project.state / "tables.json"

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
        refresh: list[str] | None = None,
        on_declared: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Everything that there is now, once through; what happened, as kept among the project's runs.

        `on_declared` is called when the definitions are read, before anything runs. PipelineFailed carries what
        happened too, as its `run`."""
        self.progress = RunProgress()
        self._unresolved: dict[str, str] = {}
        began, clock = datetime.now(UTC), time.monotonic()
        failure: str | None = None
        try:
            for message in self._events(
                dry=dry, full_refresh=full_refresh, refresh=refresh or [], on_declared=on_declared
            ):
                self._heard(message)
        except Exception as error:
            failure = explain(error, self._project.folder)
            if self._unresolved:  # then Spark only says that there are such
                reasons = sorted(set(self._unresolved.values()))
                flows = {why: [flow for flow, one in self._unresolved.items() if one == why] for why in reasons}
                failure = "; ".join(f"{', '.join(sorted(flows[why]))}: {why}" for why in reasons)
            self._project.note("failed: " + "".join(traceback.format_exception(error)))
        if self._classic is not None and self._keeps_tables and not dry:
            with contextlib.suppress(Exception):
                tables.remember(self._classic, self._tables_file)
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

    def _events(
        self, *, dry: bool, full_refresh: bool, refresh: list[str], on_declared: Callable[[], None]
    ) -> Iterator[str]:
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
        results = start_run(
            self._spark,
            graph,
            full_refresh=[],
            full_refresh_all=full_refresh,
            refresh=refresh,
            dry=dry,
            storage=spec.storage,
        )
        for result in results:
            if "pipeline_event_result" in result:
                yield result["pipeline_event_result"].event.message

    def _heard(self, message: str) -> None:
        self._project.note(message.splitlines()[0] if message else "")
        unresolved = _UNRESOLVED.match(message)
        if unresolved is not None:
            self._unresolved[unresolved["flow"]] = _essence(unresolved["why"])
        found = _FLOW_EVENT.match(message)
        if found is not None:
            name = found["flow"].strip("`'").replace("`", "")
            state = found["state"].lower()
            self.progress.heard_state(name, state, _essence(message) if state == "failed" else None)

    def _wait_for_reports(self) -> None:
        """The last reports of rows come a moment after the flows have ended."""
        deadline = time.monotonic() + _REPORT_SECONDS
        while time.monotonic() < deadline and not self.progress.is_settled:
            time.sleep(0.02)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._spark.streams.removeListener(self._listener)
        with contextlib.suppress(Exception):
            self._spark.client.close()
        if self._classic is not None:
            with contextlib.suppress(Exception):
                self._classic.sparkContext.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _NoteStream:
    """What Spark's loader prints goes to the log."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def write(self, text: str) -> int:
        if text.strip():
            self._project.note(text.strip())
        return len(text)

    def flush(self) -> None: ...


def _refuse_confs_of_the_server(conf: Mapping[str, str]) -> None:
    static = sorted(name for name in conf if _is_static(name))
    if static:
        raise InvalidInput(
            f"--conf {', '.join(static)}: a Spark Connect server has this from its start; set it where the server is "
            "started, or use --master"
        )


def _is_static(name: str) -> bool:
    """Of the process, not of a session: set at the start or not at all."""
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
    """What went wrong, in a line or two: without stack traces and class names, and with the place in a file of the
    project, if it was there."""
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
    """The part of a message of Spark's that helps."""
    known = clusters.advice(text)
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
    return kept.strip() or "Spark does not say why; see the log"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
