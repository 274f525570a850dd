"""Real Kafka clients against three brokers that share a database and an object store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.support.brokers import eventually, unique
from tests.support.clusters import ClusterProcesses, cluster_of

SECONDS = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    with cluster_of(3, tmp_path_factory.mktemp("cluster")) as running:
        yield running


def make_topic(cluster: ClusterProcesses, partitions: int) -> str:
    name = unique("topic")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        made.result(SECONDS)
    return name


def produce(cluster: ClusterProcesses, topic: str, values: list[str], **settings: str | int | bool) -> None:
    delivered: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **settings})
    for number, value in enumerate(values):
        producer.produce(topic, value, key=str(number), on_delivery=lambda error, _: delivered.append(error))
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    assert delivered == [None] * len(values)


def consume(cluster: ClusterProcesses, topic: str, count: int, **settings: str | int | bool) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": unique("group"),
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            **settings,
        }
    )
    try:
        consumer.subscribe([topic])
        found: list[str] = []

        def read() -> int:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append((message.value() or b"").decode())
            return len(found)

        eventually(read, within=SECONDS, until=lambda size: size >= count, every=0)
        return found
    finally:
        consumer.close()


def test_partitions_are_led_by_all_brokers_and_everything_comes_back(cluster: ClusterProcesses) -> None:
    topic = make_topic(cluster, 6)
    values = [f"value {number}" for number in range(600)]
    produce(cluster, topic, values)
    assert sorted(consume(cluster, topic, 600)) == sorted(values)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def leaders() -> set[int]:
        described = admin.list_topics(topic, SECONDS)
        assert set(described.brokers) == {1, 2, 3}
        return {partition.leader for partition in described.topics[topic].partitions.values()}

    eventually(leaders, within=SECONDS, until=lambda found: found == {1, 2, 3})
    assert sorted(consume(cluster, topic, 600)) == sorted(values)  # also from their new leaders


def test_a_topic_is_created_by_whoever_writes_to_it(cluster: ClusterProcesses) -> None:
    for broker in cluster.brokers:
        topic = unique("auto")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce(topic, "first")
        assert producer.flush(SECONDS) == 0
        assert consume(cluster, topic, 1) == ["first"]


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_a_transaction_over_partitions_of_all_brokers_is_all_or_nothing(
    cluster: ClusterProcesses, ending: str
) -> None:
    topic = make_topic(cluster, 6)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": unique("transaction")})
    producer.init_transactions(SECONDS)
    for round_ in range(3):
        producer.begin_transaction()
        for number in range(60):
            producer.produce(topic, f"{round_} {number}", partition=number % 6)
        if ending == "abort" and round_ == 1:
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)
    rounds = (0, 2) if ending == "abort" else (0, 1, 2)
    wanted = sorted(f"{round_} {number}" for round_ in rounds for number in range(60))
    assert sorted(consume(cluster, topic, len(wanted))) == wanted


def test_offsets_are_kept_by_the_group(cluster: ClusterProcesses) -> None:
    topic, group = make_topic(cluster, 3), unique("group")
    produce(cluster, topic, [f"{number}" for number in range(30)])
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False})
    positions = [TopicPartition(topic, number, 5 + number) for number in range(3)]
    consumer.commit(offsets=positions, asynchronous=False)
    assert [each.offset for each in consumer.committed(positions, SECONDS)] == [5, 6, 7]
    consumer.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_broker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    with cluster_of(3, tmp_path) as cluster:
        topic = make_topic(cluster, 6)
        for number, broker in enumerate(cluster.brokers):
            values = [f"{number} {each}" for each in range(100)]
            produce(cluster, topic, values)
            broker.kill()
            produce(cluster, topic, [f"after {number} {each}" for each in range(100)])
            broker.start()
        found = consume(cluster, topic, 600)
        assert len(found) == len(set(found)) == 600


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_broker_that_stops_hands_over_first(tmp_path: Path) -> None:
    with cluster_of(2, tmp_path) as cluster:
        topic = make_topic(cluster, 4)
        produce(cluster, topic, [f"{each}" for each in range(100)])
        for broker in cluster.brokers:
            broker.stop()
            produce(cluster, topic, [f"{broker.port} {each}" for each in range(100)])
            broker.start()
        assert len(consume(cluster, topic, 300)) == 300


def test_a_prefix_of_another_cluster_is_not_touched(cluster: ClusterProcesses, tmp_path: Path) -> None:
    other = ClusterProcesses(tmp_path, 1, {}, cluster.storage).brokers[0]
    with pytest.raises(AssertionError, match="belongs to the cluster"):
        other.start()
