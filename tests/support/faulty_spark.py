"""A Spark whose processes die, as by SIGKILL, at steps of an exactly-once write.

Faults are files in a folder, so that they can be set for any process and happen once each: see `Faults`. Every Python
process of that Spark loads a `sitecustomize` from the folder, which installs them where rows are written and
committed.
"""

import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITES = "pyspark.worker"
DECIDES = "pyspark.sql.worker.python_streaming_sink_runner"


class Faults:
    """Files are named `step.n`. A process that reaches the step removes the file with the highest number; if that is
    number 0, a process dies. The file's text says which: `task`, the process itself, or `driver`, its whole
    session."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def made(cls, folder: Path) -> "Faults":
        folder.mkdir()
        (folder / "sitecustomize.py").write_text("from tests.support import faulty_spark\nfaulty_spark.install()\n")
        return cls(folder)

    def environment(self, bootstrap: str) -> dict[str, str]:
        """The environment of a process that has the faults, and of its children."""
        path = os.pathsep.join([str(self._folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
        return {**os.environ, "FAULTS": str(self._folder), "FAULTS_BOOTSTRAP": bootstrap, "PYTHONPATH": path}

    def arm(self, step: str, who: str, *, after: int = 0) -> None:
        """The step succeeds `after` times before the fault."""
        for number in range(after + 1):
            (self._folder / f"{step}.{number}").write_text(who)

    def arrived(self, step: str) -> None:
        for number in range(len(list(self._folder.glob(f"{step}.*"))) - 1, -1, -1):
            file = self._folder / f"{step}.{number}"
            try:
                who = file.read_text()
                file.unlink()
            except FileNotFoundError:
                continue
            if number == 0:
                if who == "driver":
                    kill_session(os.getsid(0))
                os.kill(os.getpid(), signal.SIGKILL)
            return

    @property
    def left(self) -> list[str]:
        return sorted(file.name for file in self._folder.iterdir() if file.suffix[1:].isdigit())


def kill_session(session: int) -> None:
    """Kill all processes of the session except for the caller."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                # After the name, which may have any character: state, parent, group, session.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session:
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, IndexError):
                continue


def _wait_for_records() -> None:
    """Wait until the broker has an open transaction: rows given to a sender are not at the broker yet."""
    from tests.support.brokers import eventually
    from tidelog.client import connect

    with connect(os.environ["FAULTS_BOOTSTRAP"]) as client:
        eventually(lambda: client.transactions(states=["Ongoing"]))


def install() -> None:
    if sys.orig_argv[-1] not in (WRITES, DECIDES):
        return
    from tidelog.spark import exactly_once

    faults = Faults(Path(os.environ["FAULTS"]))

    def die_at_the_step(step: str) -> None:
        if step == "sent":
            _wait_for_records()
        faults.arrived(step)

    exactly_once.reached = die_at_the_step
