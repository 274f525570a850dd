"""A Spark cluster on this machine, from the files that pip installs: a standalone master with a worker, and a Spark
Connect server.

Each is a separate JVM on the loopback, with ports of its own choice, and is ended by its process id.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.brokers import eventually

START_SECONDS = 120.0  # on a busy machine
_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex{3}
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


class Node:
    """A JVM of Spark; `end` must be called."""

    def __init__(self, name: str, folder: Path, program: list[str], environment: dict[str, str]) -> None:
        self.name = name
        folder.mkdir(parents=True, exist_ok=True)
        self._output = folder / f"{name}.log"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                program, cwd=folder, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )

    @property
    def log(self) -> str:
        return self._output.read_text(errors="replace")

    def said(self, pattern: str) -> str:
        """Waits for a line of its output that matches, and returns the first group."""

        def look() -> "re.Match[str] | None":
            assert self._process.poll() is None, f"the {self.name} has ended:\n{self.log[-4000:]}"
            return re.search(pattern, self.log)

        found = eventually(look, within=START_SECONDS)
        assert found is not None
        return found[1]

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _environment(folder: Path) -> dict[str, str]:
    """The environment of a cluster's node on which Tidelog is installed: a Java, and a Python that finds Tidelog."""
    import pyspark

    from tidelog.spark.java import find_java, java_home

    logging = folder / "conf" / "log4j2.properties"
    logging.parent.mkdir(parents=True, exist_ok=True)
    logging.write_text(_LOGGING)
    dropped = ("SPARK_", "PYSPARK_", "TIDELOG_")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(dropped)},
        "JAVA_HOME": str(java_home(find_java())),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONF_DIR": str(logging.parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_DAEMON_MEMORY": "1g",
    }


def _bin(name: str) -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / name)


@contextmanager
def standalone(folder: Path, *, cores: int = 4) -> Iterator[str]:
    """A master with one worker; its address, for `--master`."""
    environment = _environment(folder)
    loopback = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    spark_class = [_bin("spark-class")]
    master = Node("master", folder, [*spark_class, "org.apache.spark.deploy.master.Master", *loopback], environment)
    try:
        url = master.said(r"Starting Spark master at (spark://\S+)")
        size = ["--cores", str(cores), "--memory", "2g", "--work-dir", str(folder / "work")]
        program = [*spark_class, "org.apache.spark.deploy.worker.Worker", *loopback, *size, url]
        worker = Node("worker", folder, program, environment)
        try:
            worker.said(r"(Successfully registered with master)")
            yield url
        finally:
            worker.end()
    finally:
        master.end()


@contextmanager
def connect_server(folder: Path, master: str, confs: dict[str, str]) -> Iterator[str]:
    """A Spark Connect server; its address, for `--remote`."""
    wanted = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        **confs,
    }
    environment = {**_environment(folder), "PYSPARK_PYTHON": sys.executable}
    program = [_bin("spark-submit"), "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in wanted.items():
        program += ["--conf", f"{name}={value}"]
    server = Node("connect", folder, [*program, "spark-internal"], environment)
    try:
        port = server.said(r"Spark Connect server started at: \S*:(\d+)")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.end()
