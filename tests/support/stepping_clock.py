"""A wall clock that steps, for a broker in a separate process; the monotonic clock is not changed.

`StepClock` writes the error of the wall clock to a file. A broker whose `program` is this module and whose
environment names that file (CLOCK_FILE) reads it whenever it needs the time.
"""

import mmap
import os
import runpy
import struct
import time
from pathlib import Path

_OFFSET = struct.Struct("d")
VARIABLE = "CLOCK_FILE"


class StepClock:
    program = ("-P", __file__)

    def __init__(self, path: Path) -> None:
        self._path = path
        self.environment = {VARIABLE: str(path)}
        self.step(0)

    def step(self, hours: float) -> None:
        """From now on the clock is this far ahead of the real time."""
        if not self._path.exists():
            self._path.write_bytes(_OFFSET.pack(0.0))
        with self._path.open("r+b") as file:
            file.write(_OFFSET.pack(hours * 3600))


def _step_with(path: str) -> None:
    """Replaces `time.time` and `time.time_ns` of this process; must be called before other modules import them."""
    with open(path, "rb") as file:
        offset = mmap.mmap(file.fileno(), _OFFSET.size, access=mmap.ACCESS_READ)
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + _OFFSET.unpack_from(offset)[0]
    time.time_ns = lambda: real_ns() + int(_OFFSET.unpack_from(offset)[0] * 1e9)


if __name__ == "__main__":
    _step_with(os.environ[VARIABLE])
    runpy.run_path(str(Path(__file__).with_name("watchdog.py")), run_name="__main__")
