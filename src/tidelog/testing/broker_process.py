"""`tidelog serve` in a process of its own, for tests that kill and restart it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tidelog.testing.ports import lasting_port

_LISTENS = re.compile(r"^Tidelog listens on 127.0.0.1:([0-9]+)(?:, 127.0.0.1:([0-9]+))?, data in ", re.MULTILINE)
START_SECONDS = 60.0  # on a busy machine
STOP_SECONDS = 20.0


class BrokerProcess:
    """A broker on a free port of 127.0.0.1, which it keeps across restarts. As a context manager it always ends the
    process. What a test cannot have meant, and a broker that does not do as it is told, is an AssertionError with the
    broker's output."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        advertised_port: int | None = None,
        under: Sequence[str] = (),
        program: Sequence[str] = ("-m", "tidelog"),
    ) -> None:
        """`advertised_port` adds a second listener, `second_port`, which advertises that port to clients; `under` is
        a command that runs the broker, `program` what Python runs; `environment` may be changed between starts."""
        self.directory = directory
        self.data_dir = directory / "data"
        self.settings = dict(settings or {})
        self.port = lasting_port()
        self.second_port = 0 if advertised_port is None else lasting_port()
        self._advertised_port = advertised_port
        self._under = list(under)
        self._program = list(program)
        self.environment: dict[str, str] = {}
        self._output = directory / "output.txt"
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
        """Returns when the broker listens."""
        self.begin()
        return self.until_it_listens()

    def begin(self) -> None:
        """Start the process, and do not wait for it: several brokers start faster at the same time."""
        assert not self.is_running, "the broker runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        self._said_before = len(self.log)
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

    def until_it_listens(self) -> Self:
        deadline = time.monotonic() + START_SECONDS
        while (listening := _LISTENS.search(self.log[self._said_before :])) is None:
            if not self.is_running or time.monotonic() > deadline:
                self.end()
                raise AssertionError(f"the broker did not start:\n{self.log[self._said_before :]}")
            time.sleep(0.005)
        self.port, self.second_port = int(listening[1]), int(listening[2] or 0)
        return self

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
