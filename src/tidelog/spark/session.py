"""A Spark session for Tidelog: with the right Java and Python, few messages, on the loopback, and a fast start.

    from tidelog.spark.session import spark_session
    spark = spark_session("my report")
    spark.read.format("tidelog").option("subscribe", "orders").load().count()

`prepare` does the same without a session: it sets the environment and returns the confs. A user's `conf` takes
precedence over the confs set here.

A JVM spends most of its start on loading classes. When the JVM of the first session exits, it writes an archive of
its classes (AppCDS) to the user's cache, and later sessions start from it. The JVM ignores an archive that does not
fit, and a missing one is not an error.
"""

import atexit
import hashlib
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.errors import TidelogError
from tidelog.spark import clusters
from tidelog.spark.java import Java, cache_dir, find_java, java_home, put_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGING = Path(__file__).with_name("log4j2.properties")
_ARCHIVE_MAGIC = b"\xa8\xab\x0b\xf0"  # of a dynamic archive (0xf00baba8); the JVM writes the header last
_DRAFT_SECONDS = 600  # no JVM takes longer to write its archive


def spark_session(
    app_name: str = "tidelog",
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    log_file: str | os.PathLike[str] | None = None,
    long_lived: bool = False,
) -> "SparkSession":
    """The session of this process, created if there is none yet.

    `master` defaults to `local[*]`. With `long_lived` the JVM optimizes fully, which makes it slower at first and
    faster after a minute or so. With `log_file`, Spark's warnings and errors go to that file.
    """
    _need_pyspark()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    confs = prepare(master, conf, log_file=log_file, long_lived=long_lived)
    builder = SparkSession.builder.appName(app_name)
    for name, value in confs.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if not clusters.is_local(confs["spark.master"]):
        clusters.watch_for_room(session.sparkContext)
    return session


def prepare(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    log_file: str | os.PathLike[str] | None = None,
    long_lived: bool = False,
    profile: str = "classic",
) -> dict[str, str]:
    """Set up this process's environment for Spark, and return the confs for a session.

    `profile` names the use of the JVM; each has its own archive of classes.
    """
    _need_pyspark()
    java = find_java()
    os.environ["JAVA_HOME"] = str(java_home(java))
    master = master or "local[*]"
    clusters.reach_master(master)
    if clusters.is_on_this_machine(master):  # otherwise workers must reach the driver at the address that Spark finds
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    _show_workers_the_way()
    _choose_python(master, conf or {})
    wanted = {**_confs(master), **(conf or {})}
    options = _java_options(java, Path(log_file) if log_file else None, long_lived=long_lived, profile=profile)
    wanted["spark.driver.extraJavaOptions"] = " ".join([*options, wanted.get("spark.driver.extraJavaOptions", "")])
    return {"spark.master": master, **wanted}


def _choose_python(master: str, conf: Mapping[str, str]) -> None:
    """One Python for all: Spark uses the same path for planning a source next to the driver and for the workers. (It
    reads the conf `spark.pyspark.python` from `spark-submit` only.)"""
    told = conf.get("spark.pyspark.python")
    if told:
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = told
    if "PYSPARK_PYTHON" not in os.environ:
        here = clusters.is_on_this_machine(master)
        os.environ["PYSPARK_PYTHON"] = _worker_python() if here else sys.executable
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", os.environ["PYSPARK_PYTHON"])


def _need_pyspark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise TidelogError("Spark is not installed; run pip install 'tidelog[spark]'") from None


def _confs(master: str) -> dict[str, str]:
    scratch = scratch_dir()
    confs = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
    }
    if clusters.is_on_this_machine(master):
        confs |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(_cores(master)),
            "spark.python.daemon.module": "tidelog.spark.daemon",
            "spark.sql.streaming.stateStore.maintenanceInterval": "60s",
        }
    return confs


def _cores(master: str) -> int:
    if not clusters.is_local(master):
        return len(os.sched_getaffinity(0))
    told = master.removeprefix("local").strip("[]").split(",")[0]
    return int(told) if told.isdigit() else len(os.sched_getaffinity(0)) if told == "*" else 1


def scratch_dir() -> Path:
    """A folder that is deleted when this process ends, for temporary tables and the files of Derby."""
    global _scratch
    if _scratch is None or not _scratch.exists():
        _scratch = Path(tempfile.mkdtemp(prefix="tidelog-spark-"))
        atexit.register(shutil.rmtree, _scratch, ignore_errors=True)
    return _scratch


_scratch: Path | None = None


def _show_workers_the_way() -> None:
    """Make Python workers find `tidelog` where this process found it, installed or not."""
    import tidelog

    source = str(Path(tidelog.__file__).parent.parent)
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if source not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([source, *known])


_PYTHON = """\
#!/bin/sh
# Python for Spark's workers; see tidelog/spark/session.py
kept=
set -f
IFS=:
for entry in $PYTHONPATH; do
  case "$entry" in */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;; *) kept="$kept${kept:+:}$entry" ;; esac
done
export PYTHONPATH="$kept"
exec %s "$@"
"""


def _worker_python() -> str:
    """A script that runs this process's Python without the zip of pyspark's sources, which Spark puts first in its
    path: nothing in it is compiled, so every process would spend most of a second on compiling it. The installed
    pyspark is the same."""
    try:
        return str(put_script("python", "python", _PYTHON % shlex.quote(sys.executable)))
    except (OSError, TidelogError):
        return sys.executable


# --- the JVM --------------------------------------------------------------------------------------------------------


def _java_options(java: Java, log_file: Path | None, *, long_lived: bool, profile: str) -> list[str]:
    options = [
        f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        f"-Dderby.system.home={scratch_dir()}",
        "-Djava.net.preferIPv4Stack=true",
    ]
    if log_file is not None:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        options += [f"-Dtidelog.log.file={log_file.absolute()}", "-Dtidelog.console.level=off"]
    if not long_lived:
        options.append("-XX:TieredStopAtLevel=1")
    return options + class_archive_options(java, profile)


def class_archive_options(java: Java, profile: str) -> list[str]:
    """Use the archive of classes; if there is none, let the JVM write one when it exits.

    Each JVM writes its archive under a name of its own, and the header last: a file with a header is complete. The
    next session renames it.
    """
    quiet = ["-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"]
    try:
        archive = _archive_path(java, profile)
        archive.parent.mkdir(parents=True, exist_ok=True)
        _adopt_finished(archive)
        if archive.exists():
            return [f"-XX:SharedArchiveFile={archive}", *quiet]
        return [f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()}", *quiet]
    except (OSError, TidelogError):
        return []


def _archive_path(java: Java, profile: str) -> Path:
    import pyspark

    jars = os.stat(os.path.join(os.path.dirname(pyspark.__file__), "jars"))
    runtime = os.stat(java.binary)
    about = (str(java.binary), java.version, runtime.st_mtime_ns, pyspark.__file__, pyspark.__version__)
    text = repr((*about, jars.st_mtime_ns, os.environ.get("SPARK_HOME"), profile))
    return cache_dir() / "classes" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsa"


def _adopt_finished(archive: Path) -> None:
    """Rename the first complete draft to the archive; delete other complete ones, and incomplete ones that are
    old."""
    for draft in archive.parent.glob(f"{archive.name}.*"):
        with draft.open("rb") as file:
            whole = file.read(4) == _ARCHIVE_MAGIC
        if whole and not archive.exists():
            os.replace(draft, archive)
        elif whole or time.time() - draft.stat().st_mtime > _DRAFT_SECONDS:
            draft.unlink(missing_ok=True)
