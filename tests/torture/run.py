"""Many clients of four libraries, one broker that is killed, paused, restarted and disconnected and whose clock
steps, an operator that changes its topics, and a check of everything afterwards.

python -m tests.torture.run [--seconds 600] [--seed N]
"""

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from tests.support.brokers import BrokerProcess, unique
from tests.support.proxy import CuttingProxy
from tests.support.stepping_clock import StepClock
from tests.torture.apart import Apart
from tests.torture.checker import check
from tests.torture.crew import SETTINGS, TOPICS, Crew, Result, complaints, new_history
from tests.torture.history import now
from tests.torture.operator import Operator

_CLOCK_HOURS = (-3.0, -0.01, 0.0, 0.01, 5.0)  # less than retention, expiry and transactional ids tolerate


class Nemesis:
    """Causes random faults, one at a time, and leaves the broker running at the end."""

    def __init__(
        self, broker: BrokerProcess, proxy: CuttingProxy, clock: StepClock, clients: Sequence[Apart], seed: int
    ) -> None:
        self._broker, self._proxy, self._clock, self._clients = broker, proxy, clock, clients
        self._random = random.Random(seed)
        self.troubles: Counter[str] = Counter()

    def run(self, seconds: float, passed: Callable[[int], object]) -> None:
        """`passed` is called every second."""
        troubles = [self._kill, self._kill, self._restart, self._pause, self._cut, self._tear, self._kill_client]
        troubles += [self._step_clock]
        start, told = now(), 0
        while now() < start + seconds:
            calm = now() + self._random.uniform(0.2, 2.5)
            while now() < min(calm, start + seconds):
                time.sleep(0.05)
            trouble = self._random.choice(troubles)
            self.troubles[trouble.__name__.lstrip("_")] += 1
            trouble()
            elapsed = min(int(now() - start), round(seconds))
            passed(elapsed - told)
            told = elapsed

    def _kill(self) -> None:
        self._broker.kill()
        time.sleep(self._random.choice([0, 0.2, 1]))
        self._broker.start()

    def _restart(self) -> None:
        self._broker.stop()
        self._broker.start()

    def _pause(self) -> None:
        os.kill(self._broker.pid, signal.SIGSTOP)
        time.sleep(self._random.uniform(0.1, 3))
        os.kill(self._broker.pid, signal.SIGCONT)

    def _cut(self) -> None:
        self._proxy.cut_all()

    def _tear(self) -> None:
        """Connections end in the middle of requests and replies."""
        self._proxy.cutting.set()
        time.sleep(self._random.uniform(0.3, 1))
        self._proxy.cutting.clear()
        self._proxy.cut_all()

    def _step_clock(self) -> None:
        self._clock.step(self._random.choice(_CLOCK_HOURS))

    def _kill_client(self) -> None:
        self._random.choice(self._clients).kill()


def torture(directory: Path, seconds: float, seed: int, passed: Callable[[int], object] = bool) -> Result:
    history = new_history()
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(CuttingProxy(seed, bytes_from=500, bytes_to=20_000))
        directory.mkdir(parents=True, exist_ok=True)
        clock = StepClock(directory / "clock")
        broker = BrokerProcess(directory, SETTINGS, advertised_port=proxy.port, program=clock.program)
        broker.environment |= clock.environment
        stack.enter_context(broker)
        proxy.target = broker.second_port
        operator = Operator("operator", broker.bootstrap, history, seed)
        operator.create_topics(*TOPICS)
        crew = Crew(f"127.0.0.1:{proxy.port}", history, seed, operator)
        nemesis = Nemesis(broker, proxy, clock, crew.apart, seed)
        stack.callback(crew.kill)
        crew.start()
        nemesis.run(seconds, passed)
        errors = crew.end(broker.bootstrap)
        broker.stop()
        errors += complaints(broker.log)
    return Result(history, check(history), nemesis.troubles, errors, crew.deaths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("TORTURE_SECONDS", "600")))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.seconds:.0f} s", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="tidelog-torture-") as directory,
        click.progressbar(length=round(options.seconds), label="making trouble") as bar,
    ):
        result = torture(Path(directory) / unique("run"), options.seconds, options.seed, bar.update)
    for line in result.lines():
        print(line)
    sys.exit(1 if result.findings or result.errors else 0)


if __name__ == "__main__":
    main()
