"""Drivers, tasks and brokers die at every step of a query that writes exactly once: a reader of committed records
sees each row of its input once, at the end, and never twice before."""

import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import faulty_broker
from tests.support.brokers import BrokerProcess, eventually
from tests.support.faulty_spark import Faults, kill_session
from tidelog.client import Client, ClientOptions, FetchOptions, connect

pytestmark = pytest.mark.slow

COMMITTED = FetchOptions(read_committed=True, max_wait_ms=50)
OPTIONS = ClientOptions(timeout_ms=60_000, retry_backoff_ms=10, retry_backoff_max_ms=100)
PARTITIONS, RUN_SECONDS = 2, 180


class Query:
    """`copying_query`, started as often as it takes."""

    def __init__(self, directory: Path, broker: BrokerProcess, batch: int) -> None:
        self._directory = directory
        self._broker = broker
        self._batch = batch
        self.faults = Faults.made(directory / "faults")

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """In a session of its own, which is gone in the end."""
        folder = self._directory
        words = [self._broker.bootstrap, str(folder / "checkpoint"), str(folder / "spark.log"), str(self._batch)]
        with (folder / "driver.txt").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.copying_query", *words],
                cwd=folder,
                env=self.faults.environment(self._broker.bootstrap),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill_session(process.pid)
            process.wait()

    def run(self) -> int:
        """Until it ends, however; its return code."""
        with self.running() as process:
            return process.wait(RUN_SECONDS)

    def run_until(self, is_time: Callable[[], bool]) -> None:
        """Then it is killed; it must not have ended by itself."""
        with self.running() as process:
            eventually(lambda: is_time() or process.poll() is not None, within=RUN_SECONDS, every=0.001)
            assert process.poll() is None, self.said

    @property
    def said(self) -> str:
        return (self._directory / "driver.txt").read_text(errors="replace")[-6000:]


def rows_of(client: Client, topic: str = "out") -> Counter[bytes]:
    return Counter(record.value or b"" for record in client.consume(topic, follow=False, fetch=COMMITTED))


def fill(client: Client, count: int) -> Counter[bytes]:
    """`count` rows in each partition of the input."""
    client.create_topic("in", partitions=PARTITIONS)
    client.create_topic("out", partitions=3)
    with client.producer() as producer:
        for number in range(count):
            for partition in range(PARTITIONS):
                producer.send("in", f"{partition}.{number}", key=f"{number}", partition=partition)
    return rows_of(client, "in")


def assert_settled(client: Client, expected: Counter[bytes]) -> None:
    """Everything is there once, and nothing is left open that would hold readers back."""
    eventually(
        lambda: client.transactions(states=["Ongoing", "PrepareCommit", "PrepareAbort"]), until=lambda x: not x
    )
    seen = rows_of(client)
    assert seen == expected, f"missing {expected - seen}, too many {seen - expected}"
    assert client.hanging_transactions() == []


@contextmanager
def reviving(broker: BrokerProcess, faults: list[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """The broker, started, and again whenever it has died at a fault, to die at the next; those at which it did."""
    died: list[tuple[str, int]] = []
    stopping = threading.Event()

    def start() -> None:
        left = faults[len(died) :]
        broker.environment = {"FAULT_STEP": left[0][0], "FAULT_COUNT": str(left[0][1])} if left else {}
        broker.start()

    def watch() -> None:
        while not stopping.wait(0.005):
            if not broker.is_running:
                died.append(faults[len(died)])
                with suppress(AssertionError):  # it may come to the step, and die, while it starts
                    start()

    start()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield died
    finally:
        stopping.set()
        watcher.join()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """One that may die; it runs."""
    process = BrokerProcess(tmp_path, program=[faulty_broker.__file__])
    try:
        yield process.start()
    finally:
        process.end()


@pytest.mark.timeout(900)
def test_a_driver_that_dies_at_a_step_goes_on_from_its_checkpoint(tmp_path: Path, broker: BrokerProcess) -> None:
    """With all that it started: tasks in the middle of their work, and the process that decides. And with its broker,
    as a machine does that has both."""
    batch = 20
    deaths = [
        # The step, how often it is passed before (once by each task of a batch, or once a batch), and how many
        # batches more than before are there after it.
        ("sent", PARTITIONS, 1),
        ("deciding", 1, 1),
        ("decided", 1, 2),
        ("flushed", 1, 0),
    ]
    with connect(broker.bootstrap, OPTIONS) as client:
        expected = fill(client, 70)
        query = Query(tmp_path, broker, batch)
        there = 0
        for step, after, batches in deaths:
            query.faults.arm(step, "driver", after=after)
            code = query.run()
            assert code == -signal.SIGKILL, f"{step}: ended with {code}\n{query.said}"
            assert query.faults.left == []
            seen = rows_of(client)
            there += batches
            assert (sum(seen.values()), seen - expected) == (there * batch, Counter()), step
        for step, batches in (("deciding", 0), ("decided", 1)):
            broker.stop()
            # What the tasks of the last run have left open is aborted first: decisions too.
            broker.environment = {"FAULT_STEP": step, "FAULT_COUNT": str(PARTITIONS + 1)}
            broker.start()
            query.run_until(lambda: not broker.is_running)
            broker.environment = {}
            broker.start()
            there += batches
            eventually(lambda: sum(rows_of(client).values()), until=(there * batch).__eq__)
        assert query.run() == 0, query.said
        assert_settled(client, expected)


@pytest.mark.timeout(900)
def test_tasks_and_brokers_that_die_at_a_step_cost_nothing(tmp_path: Path, broker: BrokerProcess) -> None:
    """Tasks after they introduced themselves, in the middle, and when all is written; brokers while tasks introduce
    themselves and begin transactions, and while they carry a decision out."""
    steps = [
        *(("storing", count) for count in (1, 3)),
        *(("stored", count) for count in (2, 4)),
        *((step, 1) for step in ("deciding", "decided", "completed")),
        *(("marked", count) for count in (1, 2, 4)),
    ]
    with connect(broker.bootstrap, OPTIONS) as client:
        expected = fill(client, 100)
        broker.stop()
        query = Query(tmp_path, broker, 20)
        for step, after in (("introduced", 0), ("sent", 3), ("flushed", 6)):
            query.faults.arm(step, "task", after=after)
        with reviving(broker, steps) as died:
            assert query.run() == 0, query.said
            assert died == steps
            assert query.faults.left == []
            assert_settled(client, expected)
