"""Stops a PostgreSQL for tests when the process that started it is gone, also when that was killed.

    python postgres_lifeline.py DIRECTORY    with a pipe as standard input, which ends with the test process

Uses the standard library only: it runs beside each test process for as long as that lives.
"""

import os
import shutil
import signal
import sys
import time
from pathlib import Path


def postmaster(data: Path) -> tuple[int, str]:
    """The process id and the state ("ready") that the server wrote into its data directory; (0, "") if none runs."""
    try:
        lines = (data / "postmaster.pid").read_text().split("\n")
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    except (OSError, ValueError):
        return 0, ""


def backends(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)  # first, so that it starts no further process
    for child in backends(pid):
        _signal(child, signal.SIGSTOP)


def resume(pid: int) -> None:
    for child in backends(pid):
        _signal(child, signal.SIGCONT)
    _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _end(data: Path) -> None:
    pid, _ = postmaster(data)
    while pid and _runs_in(pid, data):
        resume(pid)
        _signal(pid, signal.SIGQUIT)
        time.sleep(0.05)


def _runs_in(pid: int, data: Path) -> bool:
    """False if another process has the number by now."""
    try:
        return Path(f"/proc/{pid}/cwd").resolve() == data.resolve()
    except OSError:
        return False


def main() -> None:
    directory = Path(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests, which end first
    while sys.stdin.buffer.read(1):
        pass
    _end(directory / "data")
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
