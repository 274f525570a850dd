"""`tidelog cluster import` and `export`, with real brokers and clients on both sides."""

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.cli.conftest import Command, tidelog  # noqa: F401  (a fixture)
from tests.e2e.clients.confluent import common
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.clusters import ClusterProcesses
from tidelog.client import Client, connect
from tidelog.client.admin.transactions import ProducerInPartition
from tidelog.model import TopicPartition as Place
from tidelog.records.batch import iterate

pytestmark = pytest.mark.slow

SECONDS = 60.0
CLEANING = {"kafka.log.cleaner.backoff.ms": "50", "kafka.log.retention.check.interval.ms": "100"}
SMALL = {"segment.bytes": "20000"}
TOPICS = {"plain": 3, "transactions": 2, "compacted": 1, "cut": 1, "empty": 2}


class Log(NamedTuple):
    start: int
    end: int
    batches: list[bytes]
    """With their offsets, without their leader epochs."""
    epochs: set[int]
    committed: list[tuple[Any, ...]]


def produce(bootstrap: str, topic: str, count: int, **configs: object) -> None:
    producer = Producer({**common(bootstrap), "linger.ms": 2, "batch.num.messages": 20, **configs})
    for number in range(count):
        headers: dict[str, str | bytes | None] = {"number": b"%d" % number, "nothing": None} if number % 3 else {}
        partition = number % TOPICS[topic]
        producer.produce(topic, b"value %d " % number * 20, b"key %d" % (number % 50), partition, headers=headers)
    assert producer.flush(SECONDS) == 0


def read_committed(bootstrap: str, topic: str, partition: int, start: int) -> list[tuple[Any, ...]]:
    quiet = {"enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({**common(bootstrap), "group.id": unique("x"), "isolation.level": "read_committed", **quiet})
    found: list[tuple[Any, ...]] = []
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None, "the end was never reached"
            error = message.error()
            if error is not None:
                assert error.name() == "_PARTITION_EOF", error
                return found
            found.append((message.offset(), message.timestamp(), message.key(), message.value(), message.headers()))
    finally:
        consumer.close()


def look(bootstrap: str) -> dict[Place, Log]:
    """Everything that clients can see of the logs."""
    logs = {}
    with connect(bootstrap) as client:
        for topic, count in TOPICS.items():
            for info in client.partitions(topic):
                chunks = client.read_range(topic, info.partition, info.start_offset, info.end_offset)
                batches = [batch for chunk in chunks for batch in iterate(bytes(chunk.records))]
                logs[Place(topic, info.partition)] = Log(
                    info.start_offset,
                    info.end_offset,
                    [bytes(batch.view[:12]) + bytes(batch.view[16:]) for batch in batches],
                    {batch.header.leader_epoch for batch in batches},
                    read_committed(bootstrap, topic, info.partition, info.start_offset),
                )
            assert len(client.partitions(topic)) == count
    return logs


def comparable(logs: dict[Place, Log]) -> dict[Place, Any]:
    return {place: log._replace(epochs=set()) for place, log in logs.items()}


def producers(client: Client) -> list[ProducerInPartition]:
    places = [Place(topic, number) for topic, count in TOPICS.items() for number in range(count)]
    return sorted(each._replace(coordinator_epoch=0) for each in client.producers(places))


class Old(NamedTuple):
    """A single broker that was stopped, and what its clients knew."""

    broker: BrokerProcess
    logs: dict[Place, Log]
    producers: list[ProducerInPartition]
    topic_ids: dict[str, bytes]
    configs: dict[str, str]
    idempotent: Producer
    """It goes on where it was."""
    transactional: Producer
    """It has an open transaction."""


def fill(broker: BrokerProcess) -> None:
    with connect(broker.bootstrap) as client:
        for topic, count in TOPICS.items():
            client.create_topic(topic, partitions=count, configs=SMALL)
        compaction = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
        client.alter_topic_configs("compacted", compaction)
        for codec in ("none", "gzip", "zstd", "lz4"):
            produce(broker.bootstrap, "plain", 90, **{"compression.type": codec})
        produce(broker.bootstrap, "compacted", 300, acks="all")
        produce(broker.bootstrap, "cut", 300)
        client.delete_records({Place("cut", 0): 217})
    transactional = Producer({**common(broker.bootstrap), "transactional.id": "ended"})
    transactional.init_transactions(SECONDS)
    for number in range(6):
        transactional.begin_transaction()
        for each in range(20):
            transactional.produce("transactions", b"%d.%d" % (number, each), partition=each % 2)
        transactional.commit_transaction(SECONDS) if number % 2 else transactional.abort_transaction(SECONDS)
    with connect(broker.bootstrap) as client:
        eventually(
            lambda: len(read_committed(broker.bootstrap, "compacted", 0, 0)), until=lambda n: n <= 60, within=SECONDS
        )
        client.set_committed("readers", {Place("plain", 0): 17, Place("plain", 1): 5, Place("cut", 0): 250})
        client.alter_topic_configs("compacted", {"segment.ms": "604800000"})


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Old]:
    broker = BrokerProcess(tmp_path / "single", CLEANING)
    patient = {"message.timeout.ms": 300_000}
    idempotent = Producer({**common(broker.bootstrap), "enable.idempotence": True, **patient})
    transactional = Producer(
        {**common(broker.bootstrap), "transactional.id": "open", "transaction.timeout.ms": 300_000}
    )
    with broker:
        fill(broker)
        for number in range(7):
            idempotent.produce("plain", b"idempotent %d" % number, partition=2)
            assert idempotent.flush(SECONDS) == 0
        transactional.init_transactions(SECONDS)
        transactional.begin_transaction()
        transactional.produce("transactions", b"open", partition=0)
        assert transactional.flush(SECONDS) == 0
        logs = look(broker.bootstrap)
        with connect(broker.bootstrap) as client:
            known = producers(client)
            ids = {topic.name: topic.topic_id for topic in client.topics() if topic.name in TOPICS}
            configs = {each.name: each.value for each in client.topic_configs("compacted") if each.value}
        broker.stop()
        yield Old(broker, logs, known, ids, configs, idempotent, transactional)
    for producer in (idempotent, transactional):
        producer.purge()
        producer.flush(0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ClusterProcesses]:
    """One broker, which is not started."""
    processes = ClusterProcesses(tmp_path / "cluster", 1, CLEANING, f"file://{tmp_path}/objects")
    try:
        yield processes
    finally:
        for broker in processes.brokers:
            broker.end()


@pytest.fixture
def command(tidelog: Command, cluster: ClusterProcesses, monkeypatch: pytest.MonkeyPatch) -> Command:  # noqa: F811
    monkeypatch.setenv("TIDELOG_CLUSTER_STORAGE", cluster.storage)
    monkeypatch.setenv("TIDELOG_CLUSTER_METADATA", cluster.brokers[0].environment["TIDELOG_CLUSTER_METADATA"])
    return tidelog


@pytest.mark.timeout(600)
def test_a_round_trip_keeps_every_byte_and_clients_go_on(
    old: Old, cluster: ClusterProcesses, command: Command, tmp_path: Path
) -> None:
    outcome = command("cluster", "import", old.broker.data_dir, "--dry-run", "--json")
    assert outcome.code == 0, outcome
    assert {(row["topic"], row["state"]) for row in outcome.rows_of("partition")} == {
        (topic, "to import") for topic in TOPICS
    }
    outcome = command("cluster", "import", old.broker.data_dir, "--json")
    assert outcome.code == 0, outcome
    (summary,) = outcome.rows_of("summary")
    assert (summary["topics"], summary["groups"]) == (len(TOPICS), 1)
    assert (summary["transactional_ids"], summary["forgotten_producers"]) == (2, 0)
    counted = {Place(row["topic"], row["partition"]): row for row in outcome.rows_of("partition")}
    assert {place: row["end_offset"] for place, row in counted.items()} == {
        place: log.end for place, log in old.logs.items()
    }
    assert counted[Place("plain", 0)]["batches"] == len(old.logs[Place("plain", 0)].batches)
    again = command("cluster", "import", old.broker.data_dir)
    assert again.code == 0, again
    assert "already there" in again.out
    assert "nothing to import" in again.out

    broker = cluster.brokers[0]
    broker.port = old.broker.port
    broker.start()
    assert look(broker.bootstrap) == old.logs, "every byte, with leader epochs"
    with connect(broker.bootstrap) as client:
        assert producers(client) == old.producers
        assert {topic.name: topic.topic_id for topic in client.topics()} == old.topic_ids
        configs = {each.name: each.value for each in client.topic_configs("compacted")}
        assert configs.items() >= old.configs.items()
        assert client.transaction("open").state == "Ongoing"
    check = command("cluster", "check", "--deep")
    assert (check.code, "nothing is wrong" in check.out) == (0, True), check

    # The clients of the old broker find the cluster at its address.
    old.idempotent.produce("plain", b"idempotent 7", partition=2)
    assert old.idempotent.flush(SECONDS) == 0
    old.transactional.produce("transactions", b"in the cluster", partition=1)
    old.transactional.commit_transaction(SECONDS)
    values = [each[3] for each in read_committed(broker.bootstrap, "plain", 2, 0)]
    assert values[-8:] == [b"idempotent %d" % number for number in range(8)]
    assert read_committed(broker.bootstrap, "transactions", 0, 0)[-1][3] == b"open"
    assert read_committed(broker.bootstrap, "transactions", 1, 0)[-1][3] == b"in the cluster"
    consumer = Consumer({**common(broker.bootstrap), "group.id": "readers", "auto.offset.reset": "error"})
    consumer.subscribe(["cut"])
    message = consumer.poll(SECONDS)
    assert message is not None
    assert message.error() is None, message.error()
    assert message.offset() == 250
    consumer.close()
    fresh = Producer({**common(broker.bootstrap), "enable.idempotence": True})
    fresh.produce("plain", b"fresh", partition=2)
    assert fresh.flush(SECONDS) == 0
    with connect(broker.bootstrap) as client:
        ids = [each.producer_id for each in client.producers([Place("plain", 2)])]
        assert len(set(ids)) == len(ids)
        assert max(ids) > max(each.producer_id for each in old.producers), "the cluster gives new ids"

    # And back again, while the broker runs.
    seen = look(broker.bootstrap)
    with connect(broker.bootstrap) as client:
        known = producers(client)
        committed = client.committed("readers")
    target = tmp_path / "back"
    outcome = command("cluster", "export", target)
    assert outcome.code == 0, outcome
    assert "exported 5 topics" in outcome.out
    assert command("log", "verify", target).code == 0
    broker.stop()
    single = BrokerProcess(tmp_path / "served", CLEANING)
    single.data_dir = target
    with single:
        assert comparable(look(single.bootstrap)) == comparable(seen)
        with connect(single.bootstrap) as client:
            assert producers(client) == known
            assert {place: each.offset for place, each in client.committed("readers").items()} == {
                place: each.offset for place, each in committed.items()
            }
            assert {topic.name: topic.topic_id for topic in client.topics()} == old.topic_ids
            assert client.transaction("open").state == "CompleteCommit"
        single.stop()
    assert command("log", "verify", target).code == 0


@pytest.mark.skipif("TIDELOG_TEST_CLUSTER" not in os.environ, reason="make test-cluster")
@pytest.mark.timeout(600)
def test_a_running_cluster_takes_topics_in_and_what_cannot_be_right_is_refused(
    cluster: ClusterProcesses, command: Command, tmp_path: Path
) -> None:
    broker = cluster.brokers[0].start()
    with connect(broker.bootstrap) as client:
        client.create_topic("cut")
        own = Producer({**common(broker.bootstrap), "enable.idempotence": True})
        own.produce("cut", b"own", partition=0)
        assert own.flush(SECONDS) == 0
    single = BrokerProcess(tmp_path / "single", CLEANING)
    with single:
        fill(single)
        refused = command("cluster", "import", single.data_dir)
        assert refused.code == 1
        assert f"in use by process {single.pid}" in refused.err
        seen = look(single.bootstrap)
        single.stop()
    refused = command("cluster", "import", tmp_path)
    assert (refused.code, "is not a data directory" in refused.err) == (1, True), refused
    refused = command("cluster", "import", single.data_dir, "--topic", "wrong")
    assert (refused.code, "has no topic wrong" in refused.err) == (1, True), refused
    refused = command("cluster", "import", single.data_dir)
    assert (refused.code, "the cluster has another topic cut" in refused.err) == (1, True), refused
    wanted = [option for topic in TOPICS if topic != "cut" for option in ("--topic", topic)]
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "cluster-id").write_text("somebody")
    refused = command("cluster", "import", single.data_dir, *wanted, "--set", f"cluster.storage=file://{foreign}")
    assert (refused.code, "belongs to the cluster 'somebody'" in refused.err) == (1, True), refused

    outcome = command("cluster", "import", single.data_dir, *wanted)
    assert outcome.code == 0, outcome
    assert "imported 4 topics" in outcome.out
    assert "restart producers" in outcome.out, "the cluster has given ids of its own"

    def has_leaders(client: Client) -> bool:
        known = {topic.name for topic in client.topics()}
        return all(topic in known for topic in TOPICS) and all(
            info.leader >= 0 for topic in TOPICS for info in client.partitions(topic)
        )

    with connect(broker.bootstrap) as client:
        eventually(lambda: has_leaders(client), within=SECONDS)
        assert client.committed("readers").keys() == {Place("plain", 0), Place("plain", 1)}
        found = look(broker.bootstrap)
        assert {place: log for place, log in found.items() if place.topic != "cut"} == {
            place: log for place, log in seen.items() if place.topic != "cut"
        }
        client.produce("plain", "more", partition=0)
    for options in (["--deep"], []):
        check = command("cluster", "check", *options)
        assert (check.code, "nothing is wrong" in check.out) == (0, True), check
    filled = tmp_path / "filled"
    filled.mkdir()
    (filled / "file").touch()
    refused = command("cluster", "export", filled)
    assert (refused.code, "is not empty" in refused.err) == (1, True), refused
    assert command("cluster", "export", tmp_path / "some", "--topic", "plain", "--json").code == 0
    with connect(broker.bootstrap) as client:
        end = client.partitions("plain")[0].end_offset
    single.data_dir = tmp_path / "some"
    with single, connect(single.bootstrap) as client:
        assert [topic.name for topic in client.topics()] == ["plain"]
        assert client.partitions("plain")[0].end_offset == end


LARGE = "large"


def fill_large(bootstrap: str) -> None:
    """60 MB in segments of 2 MB."""
    with connect(bootstrap) as client:
        client.create_topic(LARGE, partitions=3, configs={"segment.bytes": "2000000"})
    producer = Producer({**common(bootstrap), "linger.ms": 20, "batch.size": 200_000})
    chance = random.Random(7)
    for number in range(600):
        while producer.poll(0.01) or len(producer) > 200:
            pass
        producer.produce(LARGE, chance.randbytes(100_000), partition=number % 3)
    assert producer.flush(SECONDS) == 0


def digests(bootstrap: str) -> list[str]:
    """Of all batches of the large topic, without their leader epochs."""
    found = []
    with connect(bootstrap) as client:
        for info in client.partitions(LARGE):
            digest = hashlib.sha256()
            for chunk in client.read_range(LARGE, info.partition, info.start_offset, info.end_offset):
                for batch in iterate(chunk.records, verify=False):
                    digest.update(batch.view[:12])
                    digest.update(batch.view[16:])
            found.append(digest.hexdigest())
    return found


def killed_until_it_succeeds(*arguments: object) -> int:
    """Run a command, kill it after ever longer times, and run it again until it succeeds. Returns how often it was
    killed."""
    seconds, kills = 0.5, 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-m", "tidelog", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            seconds, kills = 1.1 * seconds, kills + 1
        else:
            # It may have been killed after its work was complete.
            is_complete = process.returncode == 0 or b"has no unfinished export" in output
            assert is_complete, output.decode()
            return kills


@pytest.mark.skipif("TIDELOG_TEST_CLUSTER" not in os.environ, reason="make test-cluster")
@pytest.mark.timeout(900)
def test_an_import_and_an_export_that_are_killed_again_and_again_lose_and_repeat_nothing(
    cluster: ClusterProcesses, command: Command, tmp_path: Path
) -> None:
    single = BrokerProcess(tmp_path / "single", CLEANING)
    with single:
        fill(single)
        fill_large(single.bootstrap)
        seen, large = look(single.bootstrap), digests(single.bootstrap)
        single.stop()
    assert killed_until_it_succeeds("cluster", "import", single.data_dir) > 2
    broker = cluster.brokers[0].start()
    assert (look(broker.bootstrap), digests(broker.bootstrap)) == (seen, large)
    check = command("cluster", "check", "--deep")
    assert (check.code, "nothing is wrong" in check.out) == (0, True), check
    target = tmp_path / "back"
    assert killed_until_it_succeeds("cluster", "export", target) > 2
    broker.stop()
    assert command("log", "verify", target).code == 0
    back = BrokerProcess(tmp_path / "served", CLEANING)
    back.data_dir = target
    with back:
        assert comparable(look(back.bootstrap)) == comparable(seen)
        assert digests(back.bootstrap) == large
        back.stop()
