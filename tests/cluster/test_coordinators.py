"""Groups and transactions of a cluster are coordinated by all of its brokers, and go on when their coordinators are
killed, drained and restarted."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.gateways.raw import RawClient
from tests.support.brokers import eventually, unique
from tests.support.clusters import ClusterProcesses, cluster_of
from tidelog.client import BrokerError, Client, FetchOptions, OpenTransaction, connect, id_of_task
from tidelog.model import TopicPartition as Place
from tidelog.model import shard_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.find_coordinator import FindCoordinatorRequest

SECONDS = 60.0
GROUP, TRANSACTION = 0, 1
BROKERS = (1, 2, 3)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    with cluster_of(3, tmp_path_factory.mktemp("cluster")) as running:
        until_spread(running)
        yield running


@pytest.fixture
def client(cluster: ClusterProcesses) -> Iterator[Client]:
    with connect(cluster.bootstrap) as connected:
        yield connected


def coordinators(cluster: ClusterProcesses, kind: int, keys: list[str], asked: int = 1) -> list[int]:
    """As one of the brokers tells it."""
    with RawClient(cluster.broker(asked).port) as raw:
        found = raw.ask("FindCoordinator", 6, FindCoordinatorRequest("", kind, keys)).coordinators
    return [each.node_id for each in found]


def until_spread(cluster: ClusterProcesses) -> None:
    """Returns when each broker has its share of the shards, and all know it."""
    keys = [f"key {number}" for number in range(100)]

    def told() -> list[list[int]]:
        return [coordinators(cluster, kind, keys, asked) for kind in (GROUP, TRANSACTION) for asked in BROKERS]

    def is_spread(answers: list[list[int]]) -> bool:
        of_groups, of_transactions = answers[:3], answers[3:]
        return all(
            each == some[0] and min(map(each.count, BROKERS)) >= 20
            for some in (of_groups, of_transactions)
            for each in some
        )

    eventually(told, within=SECONDS, until=is_spread)


def keys_of(cluster: ClusterProcesses, kind: int, broker_id: int, count: int = 1) -> list[str]:
    keys = [unique("key") for _ in range(60 * count)]
    found = coordinators(cluster, kind, keys)
    return [key for key, coordinator in zip(keys, found, strict=True) if coordinator == broker_id][:count]


def produce(cluster: ClusterProcesses, topic: str, count: int, partitions: int = 3) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(count):
        producer.produce(topic, f"{number}", partition=number % partitions)
    assert producer.flush(SECONDS) == 0


def values(client: Client, topic: str) -> list[str]:
    fetch = FetchOptions(read_committed=True)
    return [(record.value or b"").decode() for record in client.consume(topic, follow=False, fetch=fetch)]


def test_every_broker_coordinates_and_lists_are_complete(cluster: ClusterProcesses, client: Client) -> None:
    topic = unique("topic")
    client.create_topic(topic, partitions=1)
    groups = [key for each in BROKERS for key in keys_of(cluster, GROUP, each, 3)]
    for number, group in enumerate(groups):
        client.set_committed(group, {Place(topic, 0): number})
    assert [client.committed(group)[Place(topic, 0)].offset for group in groups] == list(range(9))
    assert {each.group for each in client.groups()} >= set(groups)
    ids = [key for each in BROKERS for key in keys_of(cluster, TRANSACTION, each, 3)]
    for id_ in ids:
        with client.transactional_producer(id_) as producer:
            producer.init()
    listed = {each.transactional_id: each.node for each in client.transactions()}
    assert {listed[id_] for id_ in ids} == set(BROKERS)


@pytest.mark.parametrize("g", BROKERS)
@pytest.mark.parametrize("t", BROKERS)
@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_commits_offsets_of_a_group_wherever_both_are(
    cluster: ClusterProcesses, client: Client, g: int, t: int, commits: bool
) -> None:
    topic = unique("topic")
    client.create_topic(topic, partitions=3)
    (group,), (id_,) = keys_of(cluster, GROUP, g), keys_of(cluster, TRANSACTION, t)
    produce(cluster, topic, 30)
    common = {"bootstrap.servers": cluster.bootstrap}
    consumer = Consumer({**common, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    producer = Producer({**common, "transactional.id": id_})
    try:
        consumer.subscribe([topic])
        eventually(lambda: consumer.poll(0.2) and consumer.assignment(), within=SECONDS)
        producer.init_transactions(SECONDS)
        for number in (4, 7):
            producer.begin_transaction()
            producer.produce(topic, f"copy {number}", partition=0)
            places = [TopicPartition(topic, each, number) for each in range(3)]
            producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), SECONDS)
            if number == 7 and not commits:
                producer.abort_transaction(SECONDS)
            else:
                producer.commit_transaction(SECONDS)
            found = [each.offset for each in consumer.committed(places, SECONDS)]
            assert found == [7 if number == 7 and commits else 4] * 3, "at once, not a moment later"
    finally:
        consumer.close()
    copies = [value for value in values(client, topic) if value.startswith("copy")]
    assert sorted(copies) == (["copy 4", "copy 7"] if commits else ["copy 4"])


def test_one_decision_for_transactions_of_many_tasks(cluster: ClusterProcesses, client: Client) -> None:
    topic = unique("topic")
    client.create_topic(topic, partitions=3)
    for broker_id in BROKERS:
        (scope,) = keys_of(cluster, TRANSACTION, broker_id)

        def write(ids: list[str]) -> list[OpenTransaction]:
            handed = []
            for id_ in ids:
                with client.transactional_producer(id_) as producer:
                    producer.init()
                    producer.begin()
                    producer.send(topic, id_)
                    handed.append(producer.hand_over())
            return handed

        ids = [id_of_task(scope, task) for task in range(5)]
        assert client.decision(scope) == -1
        handed = write(ids)
        assert client.decide_transactions(scope, 0, handed)
        assert not client.decide_transactions(scope, 0, handed)
        assert client.decision(scope) == 0
        assert {value for value in values(client, topic) if value.startswith(scope)} == set(ids)
        strange = next(
            key for key in (f"{scope}-{number}" for number in range(99)) if shard_of(key) != shard_of(scope)
        )
        with pytest.raises(BrokerError) as refused:
            client.decide_transactions(scope, 1, write([strange]))
        assert refused.value.kafka_code == ErrorCode.INVALID_REQUEST
        client.fence_producer(strange)


def test_offsets_of_a_deleted_topic_are_deleted_by_every_coordinator(
    cluster: ClusterProcesses, client: Client
) -> None:
    topic, other = unique("topic"), unique("topic")
    client.create_topic(topic, partitions=1)
    client.create_topic(other, partitions=1)
    groups = [key for each in BROKERS for key in keys_of(cluster, GROUP, each)]
    for group in groups:
        client.set_committed(group, {Place(topic, 0): 5, Place(other, 0): 6})
    client.delete_topic(topic)

    def left() -> list[list[str]]:
        return [[place.topic for place in client.committed(group)] for group in groups]

    eventually(left, within=SECONDS, until=lambda found: found == [[other]] * 3)


def test_a_group_whose_coordinator_is_drained_neither_rebalances_nor_forgets(
    cluster: ClusterProcesses, client: Client
) -> None:
    topic = unique("topic")
    client.create_topic(topic, partitions=3)
    (group,) = keys_of(cluster, GROUP, 2)
    assigned: list[int] = []
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic], on_assign=lambda _, places: assigned.append(len(places)))
    try:
        read = _reader(consumer)
        produce(cluster, topic, 30)
        eventually(read, within=SECONDS, until=lambda count: count == 30, every=0)
        consumer.commit(asynchronous=False)
        client.drain_broker(2, True)
        try:
            eventually(
                lambda: coordinators(cluster, GROUP, [group]), within=SECONDS, until=lambda found: found != [2]
            )
            produce(cluster, topic, 30)
            eventually(read, within=SECONDS, until=lambda count: count == 60, every=0)
            eventually(lambda: _commits(consumer), within=SECONDS)
            places = [TopicPartition(topic, number) for number in range(3)]
            assert [each.offset for each in consumer.committed(places, SECONDS)] == [20, 20, 20]
            assert assigned == [3], "the members of the group did not notice"
        finally:
            client.drain_broker(2, False)
    finally:
        consumer.close()
    until_spread(cluster)


def _commits(consumer: Consumer) -> bool:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException:
        return False
    return True


def _reader(consumer: Consumer) -> Callable[[], int]:
    count = 0

    def read() -> int:
        nonlocal count
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            count += 1
        return count

    return read


class Copier(threading.Thread):
    """Reads one topic and writes another, each record exactly once, with the offsets of its group in the same
    transactions. It begins anew, as a restarted program does, after an error that says so."""

    def __init__(self, bootstrap: str, source: str, target: str, group: str, id_: str) -> None:
        super().__init__(name=id_, daemon=True)
        self._servers = bootstrap
        self._from, self._to, self._of, self._id = source, target, group, id_
        self.stopping = threading.Event()
        self.lives = 0

    def run(self) -> None:
        while not self.stopping.is_set():
            self.lives += 1
            common = {"bootstrap.servers": self._servers, "socket.timeout.ms": 6_000}
            consumer = Consumer(
                {
                    **common,
                    "group.id": self._of,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "session.timeout.ms": 10_000,
                }
            )
            producer = Producer({**common, "transactional.id": self._id, "transaction.timeout.ms": 20_000})
            try:
                producer.init_transactions(SECONDS)
                consumer.subscribe([self._from])
                while not self.stopping.is_set():
                    self._copy(consumer, producer)
            except KafkaException:
                time.sleep(0.2)
            finally:
                consumer.close()

    def _copy(self, consumer: Consumer, producer: Producer) -> None:
        messages = [each for each in consumer.consume(20, 0.2) if each.error() is None]
        if not messages:
            return
        producer.begin_transaction()
        try:
            for each in messages:
                producer.produce(self._to, each.value(), partition=each.partition() or 0)
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 20)
            while True:
                try:
                    producer.commit_transaction(20)
                    return
                except KafkaException as error:
                    if not error.args[0].retriable():
                        raise
        except KafkaException:
            producer.abort_transaction(20)
            raise


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_everything_is_copied_exactly_once_while_coordinators_die_and_move(tmp_path: Path) -> None:
    with cluster_of(3, tmp_path) as cluster, connect(cluster.bootstrap) as client:
        until_spread(cluster)
        source, target = unique("source"), unique("target")
        for topic in (source, target):
            client.create_topic(topic, partitions=3)
        (group,), ids = keys_of(cluster, GROUP, 1), [keys_of(cluster, TRANSACTION, each)[0] for each in (1, 2, 3)]
        copiers = [Copier(cluster.bootstrap, source, target, group, id_) for id_ in ids]
        for copier in copiers:
            copier.start()
        written = 0
        try:
            for broker_id in (1, 2, 3):
                for trouble in ("drain", "kill", "stop"):
                    produce(cluster, source, 150)
                    written += 150
                    if trouble == "drain":
                        client.drain_broker(broker_id, True)
                        produce(cluster, source, 150)
                        written += 150
                        client.drain_broker(broker_id, False)
                        continue
                    if trouble == "kill":
                        cluster.kill(broker_id)
                    else:
                        cluster.stop(broker_id)
                    produce(cluster, source, 150)
                    written += 150
                    cluster.start(broker_id)
            wanted = sorted(f"{number}" for number in range(150)) * (written // 150)
            eventually(lambda: len(values(client, target)), within=120, until=lambda count: count >= written, every=1)
        finally:
            for copier in copiers:
                copier.stopping.set()
            for copier in copiers:
                copier.join(SECONDS)
        assert sorted(values(client, target)) == sorted(wanted)
