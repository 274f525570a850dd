"""`python -m tests.spark.dying WHEN pipeline run ...`: the command, which is killed on the way.

WHEN is `step TEXT`, when the engine has reached a step that begins so, or `path GLOB`, as soon as there is such a
path. With `alone ` before it only the process itself is killed, and its JVM notices; else all of its processes are,
at once. (The parent gives it a process group of its own.)
"""

import glob
import os
import signal
import sys
import threading
import time

from tidelog.cli.main import run
from tidelog.spark.pipelines import engine


def main(when: str, arguments: list[str]) -> int:
    is_alone = when.startswith("alone ")
    kind, _, what = when.removeprefix("alone ").partition(" ")

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL) if is_alone else os.killpg(0, signal.SIGKILL)

    def watch() -> None:
        while not glob.glob(what):
            time.sleep(0.001)
        die()

    def reached(step: str) -> None:
        if step.startswith(what):
            die()

    if kind == "path":
        threading.Thread(target=watch, daemon=True).start()
    else:
        assert kind == "step", when
        engine.reached = reached
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
