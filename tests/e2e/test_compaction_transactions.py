"""A compacted topic that transactions write to: with real clients, a broker that compacts all the time, and kills."""

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.e2e.clients.confluent import common
from tests.e2e.clients.transactional import TRANSACTIONAL
from tests.e2e.conftest import topic_maker
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.engines import Engine, assert_sound, broker_process

SETTINGS = {"kafka.log.cleaner.backoff.ms": "20", "kafka.log.retention.check.interval.ms": "50"}
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "300",
    "tidelog.table": "true",
}
KEYS = [b"key-%d" % number for number in range(40)]
Found = list[tuple[int, bytes, bytes | None]]


@pytest.fixture
def cleaning(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_process(engine, tmp_path_factory.mktemp("cleaning"), SETTINGS, is_killed=True) as process:
        yield process
        assert "Traceback" not in process.log, process.log
        assert "compaction failed" not in process.log, process.log
        assert "a table could not be updated" not in process.log, process.log


def read(bootstrap: str, topic: str, isolation: str) -> Found:
    consumer = Consumer(
        {
            **common(bootstrap),
            "group.id": unique("reader"),
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    found: Found = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(30)
            assert message is not None, "the end was never reached"
            error = message.error()
            if error is None:
                found.append((message.offset() or 0, message.key() or b"", message.value()))
            elif error.name() == "_PARTITION_EOF":
                return found
            else:
                assert error.retriable() or error.name() in ("_TRANSPORT", "_ALL_BROKERS_DOWN"), error
    finally:
        consumer.close()


class Writers:
    """Two producers with transactions and one without; what they wrote, by its offset. A record says of itself
    that it will be aborted: "no"."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self.history: dict[int, tuple[bytes, bytes | None]] = {}
        self.counted: set[int] = set()
        self._rng = random.Random(4)
        self._plain = Producer({**common(bootstrap), "enable.idempotence": True})
        self._producers = [
            Producer({**common(bootstrap), "transactional.id": unique("writer"), "linger.ms": 0}) for _ in range(2)
        ]
        for producer in self._producers:
            producer.init_transactions(30)

    def send(self, producer: Producer, *, counts: bool) -> None:
        key, value = self._rng.choice(KEYS), (b"yes-" if counts else b"no-") + b"x" * self._rng.randint(10, 200)
        content = None if self._rng.random() < 0.1 else value

        def delivered(error: object, message: object) -> None:
            assert error is None, error
            offset: int = message.offset()  # type: ignore[attr-defined]
            self.history[offset] = (key, content)
            if counts:
                self.counted.add(offset)

        producer.produce(self._topic, content, key, partition=0, on_delivery=delivered)
        assert producer.flush(60) == 0

    def round(self) -> None:
        """Two transactions, in each other, and something that belongs to none."""
        first, second = self._rng.sample(self._producers, 2)
        fates = [self._rng.random() < 0.5 for _ in range(2)]
        first.begin_transaction()
        self.send(first, counts=fates[0])
        second.begin_transaction()
        self.send(second, counts=fates[1])
        self.send_plain()
        self.send(first, counts=fates[0])
        self._end(first, fates[0])
        self.send(second, counts=fates[1])
        self._end(second, fates[1])

    def send_plain(self) -> None:
        self.send(self._plain, counts=True)

    def open_transaction(self) -> Producer:
        producer = self._producers[0]
        producer.begin_transaction()
        self.send(producer, counts=False)
        return producer

    def _end(self, producer: Producer, committed: bool) -> None:
        producer.commit_transaction(60) if committed else producer.abort_transaction(60)

    @property
    def last(self) -> Found:
        """The last committed value of every key that has one, in order."""
        values = {self.history[offset][0]: offset for offset in sorted(self.counted)}
        left = sorted(offset for offset in values.values() if self.history[offset][1] is not None)
        return [(offset, *self.history[offset]) for offset in left]


def look_up(broker: BrokerProcess, topic: str) -> dict[bytes, bytes]:
    """By `tidelog topic get`."""
    arguments = ["topic", "get", topic, *(key.decode() for key in KEYS), "--partition", "0", "--latest", "--json"]
    command = [sys.executable, "-m", "tidelog", *arguments, "--bootstrap", broker.bootstrap]
    done = subprocess.run(command, capture_output=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(KEYS), done.stderr
    return {row["key"].encode(): row["value"].encode() for row in rows if row["value"] is not None}


@pytest.mark.slow
def test_everybody_sees_exactly_what_was_committed_last(cleaning: BrokerProcess) -> None:
    topic = topic_maker(cleaning)(configs=CONFIGS)
    writers = Writers(cleaning.bootstrap, topic)
    bootstrap, over = cleaning.bootstrap, threading.Event()
    wrong: list[str] = []
    looks = 0

    def look() -> None:
        nonlocal looks
        while not over.is_set():
            try:
                for offset, key, value in read(bootstrap, topic, "read_committed"):
                    if value is not None and not value.startswith(b"yes"):
                        wrong.append(f"{key!r} at {offset} was aborted")
            except Exception as error:
                wrong.append(repr(error))
            looks += 1

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for number in range(60):
            writers.round()
            if number == 20:
                cleaning.kill()
                cleaning.start()
            elif number == 40:
                # What is written after the beginning of an open transaction is neither seen nor compacted.
                hanging = writers.open_transaction()
                committed = {key: value for _, key, value in writers.last}
                writers.send_plain()
                assert look_up(cleaning, topic) == committed
                cleaning.restart()
                assert look_up(cleaning, topic) == committed
                hanging.abort_transaction(60)
    finally:
        over.set()
        looking.join()
    assert not wrong, wrong[:3]
    assert looks > 2

    last = writers.last
    assert len(writers.history) - len(writers.counted) > 50, "there was something to abort"
    assert look_up(cleaning, topic) == {key: value for _, key, value in last}
    seen = read(bootstrap, topic, "read_committed")
    assert {key: value for _, key, value in seen if value is not None}.items() >= {(k, v) for _, k, v in last}
    # When the cleaner has come to the end nothing else is left.
    assert eventually(lambda: read(bootstrap, topic, "read_committed"), until=lambda f: f == last, within=40) == last
    left = read(bootstrap, topic, "read_uncommitted")
    assert all(writers.history[offset] == (key, value) for offset, key, value in left), "offsets never change"
    assert {offset for offset, _, _ in left} <= writers.counted, "and nothing that was aborted"
    for library, make in TRANSACTIONAL.items():
        with make(bootstrap, unique("id")) as reader:
            reader.init()
            assert reader.read(topic) == [value for _, _, value in last], library

    writers.round()  # producers go on after all that
    assert look_up(cleaning, topic) == {key: value for _, key, value in writers.last}
    assert_sound(cleaning)
    cleaning.stop()
    assert_sound(cleaning)
