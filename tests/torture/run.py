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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tests.support import watchdog
from tests.support.brokers import BrokerProcess, unique
from tests.support.proxy import CuttingProxy
from tests.support.stepping_clock import StepClock
from tests.torture.apart import Apart
from tests.torture.checker import Finding, check
from tests.torture.clients import (
    Client,
    Copier,
    GroupMember,
    PlainProducer,
    Reader,
    TransactionalProducer,
    read_all,
    starts_of,
)
from tests.torture.history import History, now
from tests.torture.members import OtherMember, TidelogMember
from tests.torture.operator import COMPACTED, GROWN, PARTITIONS, REMADE, TRIMMED, Operator
from tidelog.client import connect

SETTINGS = {
    "shutdown-grace-ms": "5000",  # connections that were cut may delay requests
    "kafka.auto.create.topics.enable": "false",  # only the operator creates topics
    "kafka.log.cleaner.backoff.ms": "100",
    "kafka.log.segment.delete.delay.ms": "100",
}
TOPICS = ("plain", "paid", "copy")  # no record of these may be removed
_CLOCK_HOURS = (-3.0, -0.01, 0.0, 0.01, 5.0)  # less than retention, expiry and transactional ids tolerate


@dataclass
class Result:
    history: History
    findings: list[Finding]
    troubles: Counter[str]
    errors: list[str]
    deaths: int

    def lines(self) -> Iterator[str]:
        history = self.history
        yield "troubles: " + ", ".join(f"{count} {name}" for name, count in sorted(self.troubles.items()))
        yield (
            f"{len(history.writes):,} writes, {len(history.transactions):,} transactions, "
            f"{len(history.reads):,} reads, {len(history.commits):,} offset commits"
        )
        yield "done: " + ", ".join(f"{name} {count:,}" for name, count in sorted(history.done.items()))
        yield f"librdkafka ended {self.deaths} clients"
        yield from self.errors
        yield from (f"{finding.kind}: {finding.text}" for finding in self.findings[:100])
        yield f"{len(self.findings)} findings"


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
    history = History(copies={"plain": "copy"}, remade={REMADE: []}, shrinking={TRIMMED: {}, COMPACTED: {}})
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
        bootstrap = f"127.0.0.1:{proxy.port}"
        producers, copier, members = _apart(bootstrap, history, seed)
        apart = [*producers, copier, *members]
        others: list[Client] = [operator, *_others(bootstrap, history, seed, operator)]
        nemesis = Nemesis(broker, proxy, clock, apart, seed)
        stack.callback(_kill, apart)
        everybody: list[Client | Apart] = [*apart, *others]
        for client in everybody:
            client.start()
        nemesis.run(seconds, passed)
        # The copier runs until it has copied everything that the producers wrote.
        errors = _end([*producers, *members, *others])
        errors += _wait_for_copies(broker.bootstrap)
        errors += _end([copier])
        topics = {**dict.fromkeys((*TOPICS, REMADE, TRIMMED, COMPACTED), PARTITIONS), GROWN: operator.grown}
        history.final_committed = read_all(broker.bootstrap, topics, committed=True)
        history.final = read_all(broker.bootstrap, topics, committed=False)
        for topic in history.shrinking:
            history.shrinking[topic] = starts_of(broker.bootstrap, {topic: PARTITIONS})
        broker.stop()
        for said in ("request failed", "Traceback", watchdog.LINE):
            if said in broker.log:
                errors.append(f"the broker's log says {said!r}:\n" + broker.log[broker.log.index(said) :][:3000])
    return Result(history, check(history), nemesis.troubles, errors, sum(client.deaths for client in apart))


def _apart(bootstrap: str, history: History, seed: int) -> tuple[list[Apart], Apart, list[Apart]]:
    def of(kind: type[Client], name: str, **more: object) -> Apart:
        return Apart(kind, name, bootstrap, history, seed, **more)

    return (
        [of(TransactionalProducer, f"paid-{n}", topic="paid", partitions=PARTITIONS) for n in range(2)],
        of(Copier, "copier", source="plain", target="copy"),
        [
            of(OtherMember, "mixed-kafka-python", library="kafka-python", group="mixed", topic=GROWN),
            of(OtherMember, "mixed-aiokafka", library="aiokafka", group="mixed", topic=GROWN),
            of(TidelogMember, "mixed-tidelog", group="mixed", topic=GROWN),
        ],
    )


def _others(bootstrap: str, history: History, seed: int, operator: Operator) -> list[Client]:
    def of(kind: type[Client], name: str, **more: Any) -> Client:
        return kind(name, bootstrap, history, seed, **more)

    def some() -> int:
        return PARTITIONS

    return [
        *(of(PlainProducer, f"plain-{n}", topic="plain", partitions=some) for n in range(2)),
        of(PlainProducer, "grown", topic=GROWN, partitions=lambda: operator.grown),
        of(PlainProducer, "trimmed", topic=TRIMMED, partitions=some, keys=50),
        of(PlainProducer, "compacted", topic=COMPACTED, partitions=some, keys=50),
        of(PlainProducer, "remade", topic=REMADE, partitions=some, topic_may_go=True),
        of(Reader, "reads-committed", topics=["paid", "copy"], partitions=PARTITIONS, committed=True),
        of(Reader, "reads-all", topics=["plain", "paid"], partitions=PARTITIONS, committed=False),
        of(Reader, "reads-shrinking", topics=[TRIMMED, COMPACTED], partitions=PARTITIONS, committed=False),
        *(of(GroupMember, f"classic-{n}", group="classic", topic="plain") for n in range(2)),
        *(of(GroupMember, f"new-{n}", group="new", topic="plain", protocol="consumer") for n in range(2)),
        of(GroupMember, "mixed-confluent", group="mixed", topic=GROWN, assignor="range"),
    ]


def _end(clients: Sequence[Client | Apart]) -> list[str]:
    for client in clients:
        client.stop()
    errors = []
    for client in clients:
        if not client.join(90):
            errors.append(f"{client.name} hangs:\n{client.stack}")
        elif client.error is not None:
            errors.append(f"{client.name}: {client.error}")
    return errors


def _kill(clients: Sequence[Apart]) -> None:
    for client in clients:
        client.stop()
        client.kill()


def _wait_for_copies(bootstrap: str) -> list[str]:
    deadline = now() + 60
    while now() < deadline:
        sizes = {
            topic: sum(map(len, read_all(bootstrap, {topic: PARTITIONS}, committed=True).values()))
            for topic in ("plain", "copy")
        }
        if sizes["plain"] == sizes["copy"]:
            return []
        time.sleep(0.5)
    with connect(bootstrap) as client:  # the checker reports what is missing; this shows what the copier waits for
        committed = client.committed("copier")
        return [f"the copier does not finish: {client.group('copier')}, {committed}, {sizes}"]


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
