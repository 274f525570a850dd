"""The clients of a run, all at work at the same time; how they end, and what a run found."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support import watchdog
from tests.torture.apart import Apart
from tests.torture.checker import Finding
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

TOPICS = ("plain", "paid", "copy")  # no record of these may be removed
SETTINGS = {
    "shutdown-grace-ms": "5000",  # connections that were cut may delay requests
    "kafka.auto.create.topics.enable": "false",  # only the operator creates topics
    "kafka.log.cleaner.backoff.ms": "100",
    "kafka.log.segment.delete.delay.ms": "100",
}
_END_SECONDS = 90.0
_COPY_SECONDS = 60.0  # without a copy


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


def new_history() -> History:
    return History(copies={"plain": "copy"}, remade={REMADE: []}, shrinking={TRIMMED: {}, COMPACTED: {}})


def complaints(log: str) -> list[str]:
    """What the log of a broker must not contain."""
    return [
        f"the broker's log says {said!r}:\n{log[log.index(said) :][:3000]}"
        for said in ("request failed", "Traceback", watchdog.LINE)
        if said in log
    ]


class Crew:
    """All clients of a run. The operator must have created the topics."""

    def __init__(self, bootstrap: str, history: History, seed: int, operator: Operator) -> None:
        self._bootstrap, self._history, self._seed = bootstrap, history, seed
        self._operator = operator
        self._writers = [
            self._apart(TransactionalProducer, f"paid-{n}", topic="paid", partitions=PARTITIONS) for n in range(2)
        ]
        self._copier = self._apart(Copier, "copier", source="plain", target="copy")
        self._members = [
            self._apart(OtherMember, "mixed-kafka-python", library="kafka-python", group="mixed", topic=GROWN),
            self._apart(OtherMember, "mixed-aiokafka", library="aiokafka", group="mixed", topic=GROWN),
            self._apart(TidelogMember, "mixed-tidelog", group="mixed", topic=GROWN),
        ]
        self._threads = [operator, *self._in_threads()]

    @property
    def apart(self) -> list[Apart]:
        """Those in separate processes, which may be killed."""
        return [*self._writers, self._copier, *self._members]

    @property
    def deaths(self) -> int:
        return sum(client.deaths for client in self.apart)

    def start(self) -> None:
        everybody: list[Client | Apart] = [*self.apart, *self._threads]
        for client in everybody:
            client.start()

    def end(self, bootstrap: str) -> list[str]:
        """What went wrong. The copier runs until it has copied everything that the producers wrote. Then the final
        contents of the topics are in the history."""
        errors = _end([*self._writers, *self._members, *self._threads])
        errors += _wait_for_copies(bootstrap)
        errors += _end([self._copier])
        history = self._history
        topics = {
            **dict.fromkeys((*TOPICS, REMADE, TRIMMED, COMPACTED), PARTITIONS),
            GROWN: self._operator.grown,
        }
        history.final_committed = read_all(bootstrap, topics, committed=True)
        history.final = read_all(bootstrap, topics, committed=False)
        for topic in history.shrinking:
            history.shrinking[topic] = starts_of(bootstrap, {topic: PARTITIONS})
        return errors

    def kill(self) -> None:
        """End the processes, whatever state they are in."""
        for client in self.apart:
            client.stop()
            client.kill()

    def _apart(self, kind: type[Client], name: str, **more: object) -> Apart:
        return Apart(kind, name, self._bootstrap, self._history, self._seed, **more)

    def _in_threads(self) -> list[Client]:
        def of(kind: type[Client], name: str, **more: Any) -> Client:
            return kind(name, self._bootstrap, self._history, self._seed, **more)

        def some() -> int:
            return PARTITIONS

        return [
            *(of(PlainProducer, f"plain-{n}", topic="plain", partitions=some) for n in range(2)),
            of(PlainProducer, "grown", topic=GROWN, partitions=lambda: self._operator.grown),
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
        if not client.join(_END_SECONDS):
            errors.append(f"{client.name} hangs:\n{client.stack}")
        elif client.error is not None:
            errors.append(f"{client.name}: {client.error}")
    return errors


def _wait_for_copies(bootstrap: str) -> list[str]:
    """On a busy machine it takes long; what must not happen is that nothing more is copied."""
    copied, deadline = -1, now() + _COPY_SECONDS
    while now() < deadline:
        sizes = {
            topic: sum(map(len, read_all(bootstrap, {topic: PARTITIONS}, committed=True).values()))
            for topic in ("plain", "copy")
        }
        if sizes["plain"] == sizes["copy"]:
            return []
        if sizes["copy"] > copied:
            copied, deadline = sizes["copy"], now() + _COPY_SECONDS
        time.sleep(0.5)
    with connect(bootstrap) as client:  # the checker reports what is missing; this shows what the copier waits for
        committed = client.committed("copier")
        return [f"the copier does not finish: {client.group('copier')}, {committed}, {sizes}"]
