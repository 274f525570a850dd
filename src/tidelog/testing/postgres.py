"""A real PostgreSQL for tests, run by us.

`server()` is the one server of this process; it starts when it is first asked for, and is stopped when the process
ends. If the process is killed, a second one (`postgres_lifeline.py`) stops the server and removes its files.
"""

import atexit
import functools
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from tidelog.testing.ports import free_port
from tidelog.testing.postgres_lifeline import postmaster, resume
from tidelog.testing.postgres_programs import USER, as_other_user, programs, template

_ATTEMPTS = 5
START_SECONDS = 60.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "on",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "io_method": "sync",  # no further processes
    "jit": "off",
    "log_timezone": "UTC",
}


class PostgresServer:
    """A server with its own data directory, on a port of its own that it keeps when it is restarted."""

    def __init__(self) -> None:
        prepared = template()
        self._directory = Path(tempfile.mkdtemp(prefix="tidelog-postgres-"))
        self._directory.chmod(0o755)
        self._data = self._directory / "data"
        subprocess.run(["cp", "-Rp", str(prepared / "data"), str(self._data)], check=True)
        self.password = (prepared / "password").read_text()
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("postgres_lifeline.py")), str(self._directory)],
            stdin=subprocess.PIPE,
        )
        try:
            self._start_somewhere()
        except BaseException:
            self.close()
            raise

    def url(self, database: str = "postgres", *, port: int | None = None, password: str | None = None) -> str:
        secret = quote(self.password if password is None else password, safe="")
        return f"postgresql://{USER}:{secret}@127.0.0.1:{port or self.port}/{database}"

    @property
    def log(self) -> str:
        return (self._directory / "log").read_text(errors="replace")

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            resume(self._process.pid)
            self._process.send_signal(signal.SIGQUIT)  # nobody needs the data: no checkpoint
            self._process.wait()
        assert self._lifeline.stdin is not None
        self._lifeline.stdin.close()
        self._lifeline.wait()

    def _start_somewhere(self) -> None:
        for attempt in range(_ATTEMPTS):
            self.port = free_port()
            try:
                self._start()
            except RuntimeError:  # another process took the port in between
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def _start(self) -> None:
        settings = {**_SETTINGS, "port": str(self.port)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        deadline = time.monotonic() + START_SECONDS
        while True:
            with (self._directory / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [str(programs() / "bin" / "postgres"), "-D", str(self._data), *options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    **as_other_user(),
                )
            while self._process.poll() is None and time.monotonic() < deadline:
                if postmaster(self._data) == (self._process.pid, "ready"):
                    return
                time.sleep(0.01)
            self._process.kill()
            self._process.wait()
            # After a kill -9 the shared memory may still be in use for a moment.
            if time.monotonic() > deadline or "still in use" not in self.log[-2000:]:
                raise RuntimeError(f"PostgreSQL does not start:\n{self.log[-4000:]}")


@functools.cache
def server() -> PostgresServer:
    started = PostgresServer()
    atexit.register(started.close)
    return started


def fresh_schema() -> str:
    """The name of a schema that no other test uses."""
    return f"test_{secrets.token_hex(6)}"
