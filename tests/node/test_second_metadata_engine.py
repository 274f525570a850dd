"""Kafka clients on a broker whose metadata is behind another engine: one that answers late, and of every few writes
does not say whether it took effect."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

import tidelog
from tests.support.metadata_store import Database, FakeStore, Fault, unknown
from tidelog.broker import writes
from tidelog.client import FetchOptions, connect
from tidelog.embedding import EmbeddedBroker
from tidelog.metadata.rows import OffsetRow, TransactionRow
from tidelog.metadata.store import MetadataStore

TRANSACTIONS = 30


class Engine:
    """What the broker finds when it opens its metadata."""

    def __init__(self, seed: int) -> None:
        self.database = Database()
        self.unknown = 0
        self._rng = random.Random(seed)

    async def open(self, _data_dir: str) -> MetadataStore:
        store = FakeStore(self.database, delay_turns=4)
        store.choose = self._choose
        return store

    def _choose(self) -> Fault | None:
        if self._rng.random() < 0.7:
            return None
        self.unknown += 1
        return unknown(takes_effect=self._rng.random() < 0.5)


@pytest.fixture(params=[1, 2])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    made = Engine(request.param)
    monkeypatch.setattr("tidelog.node.node.open_store", made.open)
    monkeypatch.setattr(writes, "REPEAT_S", 0.005)
    yield made
    assert made.unknown > 10, "there was something to get over"


def write_transactions(broker: EmbeddedBroker, topic: str) -> list[bytes]:
    """What was committed."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "writer"})
    producer.init_transactions(30)
    committed = []
    for number in range(TRANSACTIONS):
        value = f"{number}".encode()
        producer.begin_transaction()
        producer.produce(topic, value, partition=number % 2)
        if number % 3:
            producer.commit_transaction(30)
            committed.append(value)
        else:
            producer.abort_transaction(30)
    return sorted(committed)


def read_some(broker: EmbeddedBroker, topic: str, count: int) -> list[bytes | None]:
    """As a member of a group, which commits what it has read."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    values: list[bytes | None] = []
    while len(values) < count:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None, message.error()
        values.append(message.value())
        position = Position(topic, message.partition() or 0, (message.offset() or 0) + 1)
        consumer.commit(offsets=[position], asynchronous=False)
    consumer.close()
    return values


def test_clients_notice_nothing_and_a_restart_finds_what_they_were_told(engine: Engine, tmp_path: Path) -> None:
    topic = "orders"
    with tidelog.embedded(str(tmp_path)) as broker:
        with connect(broker.bootstrap_servers) as client:
            client.create_topic(topic, partitions=2, configs={"retention.ms": "3600000"})
        committed = write_transactions(broker, topic)
        half = len(committed) // 2
        first = read_some(broker, topic, half)
    with tidelog.embedded(str(tmp_path)) as broker:
        rest = read_some(broker, topic, len(committed) - half)
        assert sorted(first + rest, key=lambda value: value or b"") == committed, "each once: no offset went back"
        with connect(broker.bootstrap_servers) as client:
            fetch = FetchOptions(read_committed=True)
            everything = [record.value for record in client.consume(topic, follow=False, fetch=fetch)]
            assert sorted(everything, key=lambda value: value or b"") == committed
            (entry,) = (each for each in client.topic_configs(topic) if each.name == "retention.ms")
            assert entry.value == "3600000"
    (row,) = engine.database.table(TransactionRow)
    assert row.state == "CompleteCommit"
    assert {row.group for row in engine.database.table(OffsetRow)} == {"readers"}
