"""`tidelog serve` that dies, as by SIGKILL, when it comes to a step of a transaction for the nth time.

The step is in FAULT_STEP, the number in FAULT_COUNT; without them it is an ordinary broker.
"""

import os
import signal
import sys

from tidelog.broker import transactions
from tidelog.cli.main import run

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
    sys.exit(run(sys.argv[1:]))
