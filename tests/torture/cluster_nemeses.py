"""The faults of a torture run of a cluster. Each nemesis is a thread that causes faults of one kind, one after
another, with pauses in between; so faults of different kinds happen at the same time."""

import os
import random
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.brokers import BrokerProcess
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.postgres import PostgresServer
from tests.support.stepping_clock import StepClock
from tests.torture.apart import Apart
from tidelog.client import ClientOptions, connect
from tidelog.errors import TidelogError
from tidelog.model import TopicPartition
from tidelog.storage.shared.objects import ObjectStore

BROKERS = 3  # that run at the end; further ones come and go
_STOP_SECONDS = 60.0  # the database may be down meanwhile
_CLOCK_HOURS = (-3.0, -0.01, 0.0, 0.01, 5.0)  # less than retention, expiry and transactional ids tolerate
_PATIENCE_MS = 5_000
_OPTIONS = ClientOptions(timeout_ms=_PATIENCE_MS, request_timeout_ms=_PATIENCE_MS)
_HEALING_ATTEMPTS = 12


@dataclass
class Target:
    """What the nemeses attack."""

    brokers: Sequence[BrokerProcess]  # node ids from 1; the first `BROKERS` of them run at the beginning
    clocks: Sequence[StepClock]
    postgres: PostgresServer
    database: FaultyProxy  # before PostgreSQL
    store: FaultyProxy | None  # before the S3 server, if there is one
    objects: ObjectStore  # without the proxy
    clients: Sequence[Apart]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)


class _Over(Exception):
    """The run ends."""


class _Nemesis(NamedTuple):
    troubles: Sequence[Callable[[random.Random], None]]
    calm_s: tuple[float, float]  # range of the pauses between them


@dataclass
class Nemeses:
    """`calm` multiplies the pauses: with 2 there are about half as many faults."""

    target: Target
    seed: int
    calm: float = 1.0
    troubles: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ending = threading.Event()
        self._held = [threading.Lock() for _ in self.target.brokers]  # one fault at a time for each broker

    def run(self, seconds: float, passed: Callable[[int], object]) -> None:
        """Returns when everything runs again. `passed` is called every second."""
        nemeses = {
            "brokers": _Nemesis((self._kill, self._kill, self._restart, self._resize), (2, 10)),
            "pauses": _Nemesis((self._pause,), (4, 15)),
            "database": _Nemesis(
                (
                    self._kill_database,
                    self._pause_database,
                    self._cut_database,
                    self._lose_commits,
                    self._lose_commits,
                ),
                (3, 12),
            ),
            "store": _Nemesis((self._fail_store,) if self.target.store else (), (1, 8)),
            "leaders": _Nemesis((self._move,), (0.3, 3)),
            "drains": _Nemesis((self._drain,), (4, 15)),
            "clocks": _Nemesis((self._step_clock,), (4, 15)),
            "clients": _Nemesis((self._kill_client,), (3, 12)),
        }
        threads = [
            threading.Thread(target=self._haunt, args=(name, each), name=f"nemesis of {name}", daemon=True)
            for name, each in nemeses.items()
            if each.troubles
        ]
        for thread in threads:
            thread.start()
        for _ in range(round(seconds)):
            self._ending.wait(1)
            passed(1)
        self._ending.set()
        for thread in threads:
            thread.join()
        self._heal()

    def _haunt(self, name: str, nemesis: _Nemesis) -> None:
        chance = random.Random(f"{self.seed} {name}")
        while not self._ending.wait(chance.uniform(*nemesis.calm_s) * self.calm):
            trouble = chance.choice(nemesis.troubles)
            try:
                trouble(chance)
            except _Over:
                return
            except Exception:  # a broker that does not start or stop
                self.errors.append(f"{trouble.__name__.lstrip('_')}: {traceback.format_exc()}")

    def _heal(self) -> None:
        self.target.postgres.make_sure_it_runs()
        for broker in self.target.brokers[:BROKERS]:
            if not broker.is_running:
                broker.start()
        for _ in range(_HEALING_ATTEMPTS):
            if self._take_drains_back():
                return
        self.errors.append("drains could not be taken back")

    def _count(self, trouble: str) -> None:
        self.troubles[trouble] += 1

    # Brokers

    @contextmanager
    def _some_broker(self, chance: random.Random, trouble: str) -> Iterator[BrokerProcess]:
        """A broker that runs, and meets no other fault meanwhile; waits until there is one."""
        while True:
            index = chance.randrange(len(self.target.brokers))
            broker = self.target.brokers[index]
            with self._held[index]:
                if broker.is_running:
                    self._count(trouble)
                    yield broker
                    return
            if self._ending.wait(0.05):
                raise _Over

    def _kill(self, chance: random.Random) -> None:
        with self._some_broker(chance, "kill") as broker:
            broker.kill()
            self._ending.wait(chance.choice([0, 1, 3, 15]))
            broker.start()

    def _restart(self, chance: random.Random) -> None:
        with self._some_broker(chance, "restart") as broker:
            broker.stop(_STOP_SECONDS)
            self._ending.wait(chance.choice([0, 0, 2, 10]))
            broker.start()

    def _resize(self, chance: random.Random) -> None:
        """Add a broker, or remove one that was added."""
        index = chance.randrange(BROKERS, len(self.target.brokers))
        with self._held[index]:
            broker = self.target.brokers[index]
            self._count("remove" if broker.is_running else "add")
            if broker.is_running:
                broker.stop(_STOP_SECONDS)
            else:
                broker.start()

    def _pause(self, chance: random.Random) -> None:
        with self._some_broker(chance, "pause") as broker:
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                self._ending.wait(chance.uniform(*chance.choice([(1, 4), (4, 12), (12, 30)])))
            finally:
                os.kill(broker.pid, signal.SIGCONT)

    def _step_clock(self, chance: random.Random) -> None:
        self._count("step clock")
        chance.choice(self.target.clocks).step(chance.choice(_CLOCK_HOURS))

    def _move(self, chance: random.Random) -> None:
        """What `tidelog cluster move` does. It fails while there is no controller, or if the broker is down."""
        try:
            with connect(self.target.bootstrap, _OPTIONS) as client:
                topic = chance.choice(client.topics())
                up = [node.id for node in client.cluster_info().nodes]
                place = TopicPartition(topic.name, chance.randrange(len(topic.partitions)))
                client.move_leader(place, chance.choice(up))
                self._count("move")
        except TidelogError:
            self._count("move refused")

    def _drain(self, chance: random.Random) -> None:
        """What `tidelog cluster drain` does: partitions, groups and transactions move away, and some of them back."""
        try:
            with connect(self.target.bootstrap, _OPTIONS) as client:
                client.drain_broker(chance.choice([node.id for node in client.cluster_info().nodes]), True)
                self._count("drain")
        except TidelogError:
            self._count("drain refused")
        self._ending.wait(chance.uniform(0.5, 6))
        self._take_drains_back()

    def _take_drains_back(self) -> bool:
        try:
            with connect(self.target.bootstrap, _OPTIONS) as client:
                for broker_id in client.drained_brokers():
                    client.drain_broker(broker_id, False)
        except TidelogError:
            return False
        return True

    # What they depend on

    def _kill_database(self, chance: random.Random) -> None:
        self._count("kill database")
        self.target.postgres.kill()
        try:
            self._ending.wait(chance.choice([0, 1, 3, 9]))
        finally:
            self.target.postgres.restart()

    def _pause_database(self, chance: random.Random) -> None:
        self._count("pause database")
        with self.target.postgres.paused():
            self._ending.wait(chance.uniform(0.5, 8))

    def _cut_database(self, chance: random.Random) -> None:
        for _ in range(chance.randint(1, 5)):
            self._count("cut database")
            self.target.database.cut_all()
            self._ending.wait(chance.uniform(0, 0.5))

    def _lose_commits(self, chance: random.Random) -> None:
        """Statements or their outcomes are lost; most of them are commits and beats."""
        faults = chance.choice([[Fault.REPLY_LOST], [Fault.LATE], list(Fault)[:4]])
        self._for_a_while(chance, self.target.database, faults, chance.choice([0.01, 0.1]))

    def _fail_store(self, chance: random.Random) -> None:
        assert self.target.store is not None
        faults = chance.choice([[Fault.REFUSED], [Fault.SLOW], [Fault.REPLY_LOST], list(Fault)])
        self._for_a_while(chance, self.target.store, faults, chance.choice([0.05, 0.3, 1.0]))

    def _for_a_while(self, chance: random.Random, proxy: FaultyProxy, faults: Sequence[Fault], share: float) -> None:
        self._count("faults of the store" if proxy is self.target.store else "faults of the database")
        proxy.trouble(faults, share)
        self._ending.wait(chance.uniform(1, 8))
        proxy.calm()

    def _kill_client(self, chance: random.Random) -> None:
        self._count("kill client")
        chance.choice(self.target.clients).kill()
