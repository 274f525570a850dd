"""`tidelog serve` that dies, as by SIGKILL, when it reaches a step of a transaction for the nth time.

The step is in FAULT_STEP, the number in FAULT_COUNT; without them it is an ordinary broker.
"""

import os
import runpy
import signal
from pathlib import Path

from tidelog.broker import transactions

STEP, COUNT = os.environ.get("FAULT_STEP", ""), int(os.environ.get("FAULT_COUNT", "1"))
_seen = 0


def die_at_the_step(step: str) -> None:
    global _seen
    if step == STEP:
        _seen += 1
        if _seen == COUNT:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    transactions.reached = die_at_the_step
    runpy.run_path(str(Path(__file__).with_name("watchdog.py")), run_name="__main__")
