"""The broker dies at every step of a transaction, and at random under load: each outcome is the one that was decided,
once."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.clients.base import ClientError
from tests.e2e.clients.transactional import TRANSACTIONAL, Transactional, Values
from tests.support import faulty_broker
from tests.support.brokers import BrokerProcess, eventually
from tidelog.client import ClientOptions, FetchOptions, connect
from tidelog.client.connection import BrokerConnection
from tidelog.errors import TidelogError
from tidelog.model import TopicPartition
from tidelog.records.batch import BatchView
from tidelog.records.record import read_marker
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.inspect import list_partition, log_name, walk_segment, with_topic_id
from tidelog.storage.local.verify import PartitionCheck

IN, OUT, GROUP = "in", "out", "group"
COMMITTED = FetchOptions(read_committed=True)
OPTIONS = ClientOptions(timeout_ms=30_000, retry_backoff_ms=10, retry_backoff_max_ms=100)
TRANSACTIONS = 4
# What happens, in this order: the producer introduces itself, then for every transaction partitions are added (twice,
# or once for both), offsets are added, the end is decided, two partitions are marked, all is complete.
STEPS = [
    *(("storing", count) for count in range(1, 7)),
    *(("stored", count) for count in range(1, 7)),
    *((step, count) for step in ("deciding", "decided", "completed") for count in (1, 2)),
    *(("marked", count) for count in (1, 2, 3, 4)),
]


@contextmanager
def reviving(broker: BrokerProcess) -> Iterator[Callable[[], int]]:
    """Starts the broker again when it has died; says how often that was."""
    deaths = 0
    stopping = threading.Event()

    def watch() -> None:
        nonlocal deaths
        while not stopping.wait(0.005):
            if not broker.is_running:
                deaths += 1
                broker.environment = {}
                broker.start()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield lambda: deaths
    finally:
        stopping.set()
        watcher.join()


def markers(data_dir: Path, topic: str, partition: int) -> list[str]:
    directory = with_topic_id(f"{data_dir}/logs/{topic}/{partition}")
    files = OsFiles()
    listing = list_partition(files, directory)
    return [
        read_marker(part).name
        for base, size in listing.segments.items()
        for part in walk_segment(files.open(listing.path(log_name(base)), writable=False), size, base)
        if isinstance(part, BatchView) and part.header.is_control
    ]


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2], ids=["v1", "v2"])
@pytest.mark.parametrize(("step", "count"), STEPS, ids=[f"{step}-{count}" for step, count in STEPS])
def test_a_broker_that_dies_at_a_step_completes_what_was_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, count: int, version: int
) -> None:
    if version == 1:
        remember = BrokerConnection._remember

        def without_features(connection: BrokerConnection, response: object) -> None:
            remember(connection, response)  # type: ignore[arg-type]
            connection.features = {}

        monkeypatch.setattr(BrokerConnection, "_remember", without_features)
    expected: list[bytes] = []
    broker = BrokerProcess(tmp_path, program=[faulty_broker.__file__])
    broker.environment = {"FAULT_STEP": step, "FAULT_COUNT": str(count)}
    with broker, reviving(broker) as deaths, connect(broker.bootstrap, OPTIONS) as client:
        for topic in (IN, OUT):
            client.create_topic(topic, partitions=2)
        producer = client.transactional_producer("id")
        producer.init()
        for number in range(TRANSACTIONS):
            commit = number % 2 == 0
            producer.begin()
            for partition in (0, 1):
                producer.send(OUT, f"{number}.{partition}", partition=partition)
            producer.send_offsets({TopicPartition(IN, 0): number + 1}, GROUP)
            if commit:
                producer.commit()
                expected += [b"%d.%d" % (number, partition) for partition in (0, 1)]
            else:
                producer.abort()
            stable = client.committed(GROUP, stable=True)
            assert stable[TopicPartition(IN, 0)].offset == (number + 1 if commit else number)
        eventually(deaths)
        seen = sorted(record.value or b"" for record in client.consume(OUT, follow=False, fetch=COMMITTED))
        assert seen == sorted(expected)
        assert len(list(client.consume(OUT, follow=False))) == 2 * TRANSACTIONS
        assert deaths() == 1
        eventually(lambda: client.transaction("id").state, until=lambda state: state == "CompleteAbort")
        assert client.hanging_transactions() == []
    for partition in (0, 1):
        assert markers(broker.data_dir, OUT, partition) == ["commit", "abort"] * (TRANSACTIONS // 2)
        findings = PartitionCheck(OsFiles(), with_topic_id(f"{broker.data_dir}/logs/{OUT}/{partition}"))
        assert [finding for finding in findings if finding.is_error and finding.kind != "torn-tail"] == []


class TidelogTransactional(Transactional):
    name = "tidelog"

    def __init__(self, bootstrap: str, id_: str, timeout_ms: int = 60_000) -> None:
        super().__init__(bootstrap, id_, timeout_ms)
        self._client = connect(bootstrap, OPTIONS)
        self._producer = self._client.transactional_producer(id_, transaction_timeout_ms=timeout_ms)

    def init(self) -> None:
        self._producer.init()

    def begin(self) -> None:
        self._producer.begin()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._producer.send(topic, value, partition=partition)

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None:
        self._producer.send_offsets({TopicPartition(topic, each): at for each, at in offsets.items()}, group)

    def commit(self) -> None:
        self._producer.commit()

    def abort(self) -> None:
        self._producer.abort()

    def close(self) -> None:
        try:
            self._producer.close()
        finally:
            self._client.close()

    def read(self, topic: str, partitions: int = 1, *, committed: bool = True) -> Values:
        fetch = FetchOptions(read_committed=committed)
        return [record.value or b"" for record in self._client.consume(topic, follow=False, fetch=fetch)]


LOOPS: dict[str, type[Transactional]] = {**TRANSACTIONAL, TidelogTransactional.name: TidelogTransactional}


def copy_everything(make: type[Transactional], bootstrap: str, count: int, chunk: int) -> int:
    """Read, process, write, until all input is done; after any error with a new producer. How often that was."""
    source = TopicPartition(IN, 0)
    attempts = 0
    while True:
        attempts += 1
        try:
            with connect(bootstrap, OPTIONS) as client, make(bootstrap, "copier") as producer:
                producer.init()
                known = client.committed(GROUP, [source], stable=True).get(source)
                position = known.offset if known else 0
                while position < count:
                    stream = client.consume(IN, start={source: position}, partitions=[0], follow=False, limit=chunk)
                    records = list(stream)
                    stream.close()
                    producer.begin()
                    for record in records:
                        producer.send(OUT, b"copy of " + (record.value or b""), partition=record.offset % 2)
                    position = records[-1].offset + 1
                    producer.send_offsets(IN, {0: position}, GROUP)
                    producer.commit()
                return attempts
        except (ClientError, TidelogError, TimeoutError):
            time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.timeout(360)
@pytest.mark.parametrize("library", list(LOOPS))
def test_each_input_has_one_output_although_the_broker_is_killed_at_random(tmp_path: Path, library: str) -> None:
    count, chunk, kills = 600, 6, 5
    rng = random.Random(library)
    with BrokerProcess(tmp_path) as broker, connect(broker.bootstrap, OPTIONS) as client:
        for topic in (IN, OUT):
            client.create_topic(topic, partitions=2)
        with client.producer() as producer:
            for number in range(count):
                producer.send(IN, f"{number}", partition=0)
        with ThreadPoolExecutor(1) as pool:
            copy = pool.submit(copy_everything, LOOPS[library], broker.bootstrap, count, chunk)
            killed = 0
            while not wait([copy], rng.uniform(0.1, 0.6)).done and killed < kills:
                broker.kill()
                broker.start()
                killed += 1
            copy.result()
        assert killed >= 2, "the copy was too fast for this test"
        seen = [record.value or b"" for record in client.consume(OUT, follow=False, fetch=COMMITTED)]
        assert sorted(seen) == sorted(b"copy of %d" % number for number in range(count))
        assert client.committed(GROUP, stable=True)[TopicPartition(IN, 0)].offset == count
        assert client.hanging_transactions() == []
