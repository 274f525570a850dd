"""A real broker in a separate process, for tests with real clients."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import pytest

from tests.support import watchdog
from tests.support.ports import lasting_port

T = TypeVar("T")

_LISTENS = re.compile(r"^Tidelog listens on 127.0.0.1:([0-9]+)(?:, 127.0.0.1:([0-9]+))?, data in ", re.MULTILINE)
START_SECONDS = 60.0  # on a busy machine
STOP_SECONDS = 20.0

# Settings that make tests fast: short timeouts of members, and frequent retention. And strict: a broker that lets
# requests wait until the end of the grace time does not stop in time.
TEST_SETTINGS = {
    "shutdown-grace-ms": "60000",
    "kafka.group.min.session.timeout.ms": "100",
    "kafka.group.consumer.heartbeat.interval.ms": "200",
    "kafka.group.consumer.session.timeout.ms": "2000",
    "kafka.log.retention.check.interval.ms": "200",
}


class BrokerProcess:
    """`tidelog serve` on a free port, which it keeps across restarts. As a context manager it always ends the
    process."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        advertised_port: int | None = None,
        under: Sequence[str] = (),
        program: Sequence[str] = ("-P", watchdog.__file__),
    ) -> None:
        """`advertised_port` adds a second listener, `second_port`, which advertises that port to clients; `under` is
        a command that runs the broker, `program` what Python runs (default: the `tidelog` command with a watchdog);
        `environment` may be changed between starts."""
        self.directory = directory
        self.data_dir = directory / "data"
        self.settings = {**TEST_SETTINGS, **(settings or {})}
        self.port = lasting_port()
        self.second_port = 0 if advertised_port is None else lasting_port()
        self._advertised_port = advertised_port
        self._under = list(under)
        self._program = list(program)
        self.environment: dict[str, str] = {}
        self._output = directory / "output.txt"
        self._watched_to = 0  # position up to which the output was searched for stalls
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """The whole output, of all starts."""
        return self._output.read_text(errors="replace") if self._output.exists() else ""

    @property
    def memory_bytes(self) -> int:
        """The resident memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def start(self) -> Self:
        assert not self.is_running, "the broker runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        said_before = len(self.log)
        command = [*self._under, sys.executable, *self._program, "serve", "--data-dir", str(self.data_dir)]
        command += ["--listen", f"127.0.0.1:{self.port}"]
        if self._advertised_port is not None:
            command += ["--listen", f"127.0.0.1:{self.second_port}=127.0.0.1:{self._advertised_port}"]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDELOG_")}
        environment |= {"PYTHONFAULTHANDLER": "1"} | self.environment
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=self.directory, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + START_SECONDS
        while (listening := _LISTENS.search(self.log[said_before:])) is None:
            if not self.is_running or time.monotonic() > deadline:
                self.end()
                raise AssertionError(f"the broker did not start:\n{self.log[said_before:]}")
            time.sleep(0.005)
        self.port, self.second_port = int(listening[1]), int(listening[2] or 0)
        if self not in _started:
            _started.append(self)
        return self

    def take_stalls(self) -> list[str]:
        """The stalls that the watchdog has reported since the last call."""
        if not self._output.exists():
            return []
        with self._output.open("rb") as output:
            output.seek(self._watched_to)
            said = output.read()
        said = said[: said.rfind(b"\n") + 1]
        self._watched_to += len(said)
        return [line for line in said.decode(errors="replace").splitlines() if line.startswith(watchdog.LINE)]

    def kill(self) -> None:
        """End it by SIGKILL."""
        assert self._process is not None
        assert self.is_running, f"the broker was gone already:\n{self.log}"
        self._process.kill()
        self._process.wait()

    def stop(self, within: float = STOP_SECONDS) -> float:
        """End it by SIGTERM: it must end cleanly and soon. Returns the seconds it took."""
        assert self._process is not None
        assert self.is_running, f"the broker was gone already:\n{self.log}"
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(within)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # it writes the stacks of its threads
            self._process.wait()
            raise AssertionError(f"the broker did not stop within {within} s:\n{self.log}") from None
        assert code == 0, f"the broker ended with {code}:\n{self.log}"
        return time.monotonic() - began

    def restart(self) -> Self:
        """A clean stop and a start on the same port."""
        self.stop()
        return self.start()

    def end(self) -> None:
        """End it, whatever state it is in."""
        if self._process is not None:
            if self.is_running:
                for child in self._children():
                    os.kill(child, signal.SIGKILL)
                self._process.kill()
            self._process.wait()

    def _children(self) -> list[int]:
        """The process id of the broker itself if another command runs it: it would outlive that command."""
        if not self._under:
            return []
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        died = not self.is_running
        self.end()
        if error is not None:
            error.add_note(f"The broker{' was dead; it' if died else ''} wrote:\n{self.log[-4000:]}")


_started: list[BrokerProcess] = []  # brokers whose output may still grow


def take_stalls() -> list[str]:
    """The stalls of all brokers inside this process or started by it, since the last call."""
    found = [str(watchdog.stalls.pop(0)) for _ in range(len(watchdog.stalls))]
    for broker in list(_started):
        is_running = broker.is_running
        found += broker.take_stalls()
        if not is_running:
            _started.remove(broker)
    return found


def hide_modules(directory: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Processes started from now on do not find these modules, as if they were not installed."""
    hidden = directory / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {names!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hide)\n"
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        f"util.find_spec = lambda name, package=None: None if name in {names!r} else found(name, package)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{hidden}:{os.environ.get('PYTHONPATH', '')}")


def unique(prefix: str) -> str:
    """A unique name for a topic or a group."""
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def eventually(
    look: Callable[[], T],
    *,
    within: float = 15.0,
    until: Callable[[T], object] = bool,
    every: float = 0.02,
) -> T:
    """Calls `look` until its result is as wanted, and returns it; AssertionError with the last result after the
    timeout."""
    deadline = time.monotonic() + within
    while True:
        seen = look()
        if until(seen):
            return seen
        assert time.monotonic() < deadline, f"not within {within} s; last seen: {seen!r}"
        time.sleep(every)


def children(pid: int) -> list[int]:
    """The running child processes of a process."""
    found = (path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for some in found for child in some]
