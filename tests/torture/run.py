"""Many clients, one broker that is killed, paused, restarted and cut off, and a check of everything afterwards.

python -m tests.torture.run [--seconds 600] [--seed N]
"""

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.support.brokers import BrokerProcess, unique
from tests.support.faulty_spark import kill_session
from tests.support.proxy import CuttingProxy
from tests.torture.checker import Finding, check
from tests.torture.clients import (
    Client,
    Copier,
    GroupMember,
    PlainProducer,
    Reader,
    TransactionalProducer,
    read_all,
)
from tests.torture.history import History, now

PARTITIONS = 3
ROUND_SECONDS = 20.0
SETTINGS = {"shutdown-grace-ms": "5000"}  # connections that were cut may hold requests up


@dataclass
class Result:
    history: History
    findings: list[Finding]
    troubles: Counter[str]
    errors: list[str]
    work: dict[str, int] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        history = self.history
        yield "troubles: " + ", ".join(f"{count} {name}" for name, count in sorted(self.troubles.items()))
        yield (
            f"{len(history.writes):,} writes, {len(history.transactions):,} transactions, "
            f"{len(history.reads):,} reads, {len(history.commits):,} offset commits"
        )
        yield "done: " + ", ".join(f"{name} {count:,}" for name, count in self.work.items())
        yield from self.errors
        yield from (f"{finding.kind}: {finding.text}" for finding in self.findings[:100])
        yield f"{len(self.findings)} findings"


class Nemesis:
    """Makes trouble at random, one at a time, and leaves the broker running."""

    def __init__(self, broker: BrokerProcess, proxy: CuttingProxy, seed: int) -> None:
        self._broker, self._proxy = broker, proxy
        self._random = random.Random(seed)
        self.troubles: Counter[str] = Counter()

    def run(self, seconds: float) -> None:
        end = now() + seconds
        while now() < end:
            calm = now() + self._random.uniform(0.2, 2.5)
            while now() < min(calm, end):
                time.sleep(0.05)
            trouble = self._random.choice([self._kill, self._kill, self._restart, self._pause, self._cut, self._tear])
            self.troubles[trouble.__name__.lstrip("_")] += 1
            trouble()

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


def torture(directory: Path, seconds: float, seed: int) -> Result:
    history = History(copies={"plain": "copy"})
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(CuttingProxy(seed, bytes_from=500, bytes_to=20_000))
        broker = stack.enter_context(BrokerProcess(directory, SETTINGS, advertised_port=proxy.port))
        proxy.target = broker.second_port
        _create_topics(broker.bootstrap)
        nemesis = Nemesis(broker, proxy, seed)
        clients = _clients(f"127.0.0.1:{proxy.port}", history, seed)
        for client in clients:
            client.start()
        nemesis.run(seconds)
        # The copier goes on until it has copied everything that the producers wrote.
        errors = _end([client for client in clients if not isinstance(client, Copier)])
        copiers: list[Client] = [client for client in clients if isinstance(client, Copier)]
        _wait_for_copies(broker.bootstrap)
        errors += _end(copiers)
        topics = ["plain", "paid", "copy"]
        history.final_committed = read_all(broker.bootstrap, topics, PARTITIONS, committed=True)
        history.final = read_all(broker.bootstrap, topics, PARTITIONS, committed=False)
        broker.stop()
        for said in ("request failed", "Traceback"):
            if said in broker.log:
                errors.append(f"the broker's log says {said!r}:\n" + broker.log[broker.log.index(said) :][:3000])
    work = {client.name: client.done for client in clients}
    return Result(history, check(history), nemesis.troubles, errors, work)


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in ("plain", "paid", "copy")]).values():
        future.result(20)


def _clients(bootstrap: str, history: History, seed: int) -> list[Client]:
    def of(kind: type[Client], name: str, **more: object) -> Client:
        return kind(name, bootstrap, history, seed, **more)

    return [
        *(of(PlainProducer, f"plain-{n}", topic="plain", partitions=PARTITIONS) for n in range(2)),
        *(of(TransactionalProducer, f"paid-{n}", topic="paid", partitions=PARTITIONS) for n in range(2)),
        of(Copier, "copier", source="plain", target="copy", partitions=PARTITIONS),
        of(Reader, "reads-committed", topics=["paid", "copy"], partitions=PARTITIONS, committed=True),
        of(Reader, "reads-all", topics=["plain", "paid"], partitions=PARTITIONS, committed=False),
        *(of(GroupMember, f"classic-{n}", group="classic", topic="plain") for n in range(2)),
        *(of(GroupMember, f"new-{n}", group="new", topic="plain", protocol="consumer") for n in range(2)),
    ]


def _end(clients: list[Client]) -> list[str]:
    for client in clients:
        client.stop()
    errors = []
    for client in clients:
        if not client.join(90):
            errors.append(f"{client.name} hangs:\n{client.stack}")
        elif client.error is not None:
            errors.append(f"{client.name}: {client.error}")
    return errors


def _wait_for_copies(bootstrap: str) -> None:
    deadline = now() + 60
    while now() < deadline:
        sizes = {
            topic: sum(map(len, read_all(bootstrap, [topic], PARTITIONS, committed=True).values()))
            for topic in ("plain", "copy")
        }
        if sizes["plain"] == sizes["copy"]:
            return
        time.sleep(0.5)
    # The checker tells what is missing.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("TORTURE_SECONDS", "600")))
    parser.add_argument("--seed", type=int, default=None, help="one round with this seed, for so many seconds")
    options = parser.parse_args()
    if options.seed is not None:
        sys.exit(one_round(options.seconds, options.seed))
    sys.exit(rounds(options.seconds))


def rounds(seconds: float) -> int:
    """One after the other, each in a process of its own, which librdkafka may end: such a round does not count."""
    left, void = seconds, 0
    while left > 0:
        ran = round_apart(min(left, ROUND_SECONDS), random.randrange(1 << 30))
        if is_of_the_library(ran):
            void += 1
            print("this round does not count: an assertion of librdkafka failed", flush=True)
            if void > 2 + seconds / ROUND_SECONDS * 4:
                print("librdkafka ends nearly every round")
                return 1
            continue
        print(ran.stdout, flush=True)
        if ran.returncode:
            print(ran.stderr, flush=True)
            return ran.returncode
        left -= ROUND_SECONDS
        print(f"{seconds - max(0.0, left):.0f} of {seconds:.0f} s\n", flush=True)
    print(f"{seconds:.0f} s without a finding; {void} rounds did not count")
    return 0


def round_apart(seconds: float, seed: int) -> "subprocess.CompletedProcess[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.torture.run", "--seconds", str(seconds), "--seed", str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=180 + seconds)
    finally:
        kill_session(process.pid)  # with the broker of a run that ended too early
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def is_of_the_library(ran: "subprocess.CompletedProcess[str]") -> bool:
    """An assertion of librdkafka 2.16 fails now and then when connections are cut. It ends the clients, not the
    broker."""
    return ran.returncode < 0 and re.search(r"rdkafka_\w+\.c:\d+: \w+: Assertion", ran.stderr) is not None


def one_round(seconds: float, seed: int) -> int:
    print(f"seed {seed}, {seconds:.0f} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="tidelog-torture-") as directory:
        result = torture(Path(directory) / unique("run"), seconds, seed)
    for line in result.lines():
        print(line)
    return 1 if result.findings or result.errors else 0


if __name__ == "__main__":
    main()
