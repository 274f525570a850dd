"""A real broker in a separate process, for tests with real clients."""

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support import watchdog
from tidelog.testing import broker_process

T = TypeVar("T")

# Settings that make tests fast: short timeouts of members, and frequent retention. And strict: a broker that lets
# requests wait until the end of the grace time does not stop in time.
TEST_SETTINGS = {
    "shutdown-grace-ms": "60000",
    "kafka.group.min.session.timeout.ms": "100",
    "kafka.group.consumer.heartbeat.interval.ms": "200",
    "kafka.group.consumer.session.timeout.ms": "2000",
    "kafka.log.retention.check.interval.ms": "200",
}


class BrokerProcess(broker_process.BrokerProcess):
    """`tidelog serve` with the settings of tests, and with a watchdog that reports stalls of its event loop."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        advertised_port: int | None = None,
        under: Sequence[str] = (),
        program: Sequence[str] = ("-P", watchdog.__file__),
    ) -> None:
        super().__init__(
            directory,
            {**TEST_SETTINGS, **(settings or {})},
            advertised_port=advertised_port,
            under=under,
            program=program,
        )
        self._watched_to = 0  # position up to which the output was searched for stalls

    def begin(self) -> None:
        super().begin()
        if self not in _started:
            _started.append(self)

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
