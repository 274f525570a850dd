"""A real PostgreSQL that a test can kill, pause and ask: `tidelog.testing.postgres` with an operator's means.

`server()` is the one server of this test process. A test takes a schema of its own (`fresh_schema`, free: a name) or
a database of its own (`new_database`).
"""

import atexit
import functools
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidelog.testing import postgres
from tidelog.testing.postgres import fresh_schema
from tidelog.testing.postgres_lifeline import backends, resume, stop
from tidelog.testing.postgres_programs import programs

__all__ = ["PostgresServer", "fresh_schema", "server"]


class PostgresServer(postgres.PostgresServer):
    def new_database(self) -> str:
        """The name of a new, empty database."""
        name = f"test_{secrets.token_hex(6)}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement as an operator would, and return what psql prints, without headings."""
        run = subprocess.run(
            [
                str(programs() / "bin" / "psql"),
                "-XAtq",
                "-v",
                "ON_ERROR_STOP=1",
                "-c",
                statement,
                self.url(database),
            ],
            env={**os.environ, "PGCONNECT_TIMEOUT": "30"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    # Faults

    def kill(self) -> None:
        """kill -9 all its processes, as a loss of power does."""
        assert self._process is not None
        processes = [self._process.pid, *backends(self._process.pid)]
        for pid in processes:
            _signal(pid, signal.SIGKILL)
        self._process.wait()
        _wait_until_gone(processes)

    def restart(self) -> None:
        """Start again after `kill` or `shut_down`, on the same port."""
        self._start()

    def shut_down(self) -> None:
        """Stop as an operator does: connections are ended."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def make_sure_it_runs(self) -> None:
        """For tests that may fail between `kill` and `restart`."""
        if self._process is None or self._process.poll() is not None:
            self._start()

    @contextmanager
    def paused(self, *, only: int | None = None) -> Iterator[None]:
        """All its processes are stopped meanwhile, or only that of one connection: connections stay open, nothing
        answers."""
        assert self._process is not None
        if only is None:
            stop(self._process.pid)
        else:
            os.kill(only, signal.SIGSTOP)
        try:
            yield
        finally:
            resume(self._process.pid)


@functools.cache
def server() -> PostgresServer:
    started = PostgresServer()
    atexit.register(started.close)
    return started


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + postgres.START_SECONDS
    while any(map(_runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # ended, but its parent has not asked yet
