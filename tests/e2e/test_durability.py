"""What was acknowledged stays, whether the broker is killed or stopped; and clients carry on by themselves."""

import random
import threading
import time

import pytest
from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka import Message as Delivered

from tests.e2e.clients import CLIENTS, Confluent, Message
from tests.e2e.clients.base import SECONDS, Place
from tests.e2e.clients.confluent import common
from tests.e2e.clients.confluent_admin import AdminClient, ConfigResource, ResourceType
from tests.e2e.conftest import topic_maker
from tests.e2e.members import Group, Worker
from tests.gateways.raw import RawClient
from tests.support.brokers import BrokerProcess, eventually, unique
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest
from tidelog.wire.generated.heartbeat import HeartbeatRequest
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest

PARTITIONS = 3


class Writer:
    """Sends numbers until it is told to stop, and knows where each one was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.places: dict[bytes, Place] = {}
        self.failed: list[str] = []
        self.sent = 0
        self._producer = Confluent(bootstrap).producer(idempotent=True, config={"linger.ms": 1})
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            value = b"%d" % self.sent
            self._producer.produce(
                self._topic, value, partition=self.sent % PARTITIONS, on_delivery=self._acknowledged
            )
            self.sent += 1
            self._producer.poll(0.001)

    def _acknowledged(self, error: KafkaError | None, message: Delivered) -> None:
        if error is not None:
            self.failed.append(error.str())
        else:
            self.places[message.value() or b""] = (message.partition() or 0, message.offset() or 0)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(SECONDS)
        left = self._producer.flush(SECONDS)
        assert (left, self.failed) == (0, [])


class CommitWatch:
    """Reads the committed offsets again and again: they never go back."""

    def __init__(self, broker: BrokerProcess, topic: str, group: str) -> None:
        self._reader = Confluent(broker.bootstrap).reader(topic, config={"group.id": group})
        self._highest: dict[int, int] = {}

    def look(self) -> dict[int, int]:
        for partition in range(PARTITIONS):
            committed = self._reader.committed(partition) or 0
            assert committed >= self._highest.get(partition, 0), f"partition {partition} went back"
            self._highest[partition] = committed
        return self._highest

    def close(self) -> None:
        self._reader.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_broker_comes_back_with_everything_acknowledged(own_broker: BrokerProcess, seed: int) -> None:
    """Several rounds: kill in the middle of producing, consuming and committing, start again, go on."""
    rng = random.Random(seed)
    topic, id_ = topic_maker(own_broker)(PARTITIONS, {"segment.bytes": "20000"}), unique("group")
    client = Confluent(own_broker.bootstrap)
    writer = Writer(own_broker.bootstrap, topic)
    watch = CommitWatch(own_broker, topic, id_)
    with Group() as group:
        for _ in range(2):
            group.add(Worker(lambda: client.reader(topic, group=id_, session_ms=10_000)))
        group.wait_until_shared(PARTITIONS)
        for _ in range(4):
            wanted = len(writer.places) + rng.randint(50, 400)
            eventually(lambda wanted=wanted: len(writer.places) >= wanted, within=20)  # type: ignore[misc]
            watch.look()
            time.sleep(rng.random() * 0.05)  # anywhere in the middle of what it does
            own_broker.kill()
            own_broker.start()
            watch.look()
        writer.stop()
        group.wait_for(writer.places.values(), within=25)
        eventually(lambda: sum(watch.look().values()) == writer.sent, within=20)
    watch.close()
    records = client.read(topic, writer.sent, PARTITIONS)
    assert {record.value: record.place for record in records} == writer.places
    assert len(records) == writer.sent


@pytest.mark.slow
def test_everything_is_there_after_a_clean_restart(own_broker: BrokerProcess) -> None:
    topic = topic_maker(own_broker)(3, {"retention.ms": "123456789", "segment.bytes": "20000"})
    client = Confluent(own_broker.bootstrap)
    group = unique("group")
    sent = [Message(b"%d" % number * 100, partition=number % 3) for number in range(900)]
    places = client.produce(topic, sent, codec="lz4", idempotent=True)
    with client.reader(topic, group=group) as reader:
        reader.read(900)
        reader.commit({0: 300, 1: 7, 2: 0})

    def described() -> tuple[object, ...]:
        admin = AdminClient(common(own_broker.bootstrap))
        (found,) = admin.describe_topics(TopicCollection([topic])).values()
        (configs,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        (offsets,) = admin.describe_consumer_groups([group]).values()
        return (
            str(found.result(SECONDS).topic_id),
            len(found.result(SECONDS).partitions),
            {name: entry.value for name, entry in configs.result(SECONDS).items()},
            offsets.result(SECONDS).state,
            admin.describe_cluster().result(SECONDS).cluster_id,
        )

    before = described()
    own_broker.stop()
    own_broker.start()
    assert described() == before
    assert "recovered" not in own_broker.log
    records = client.read(topic, 900, 3)
    assert sorted(record.place for record in records) == sorted(places)
    with client.reader(topic, group=group) as reader:
        assert [reader.committed(partition) for partition in range(3)] == [300, 7, 0]
        assert len(reader.read(593)) == 593


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CLIENTS))
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_members_carry_on_over_a_restart_without_a_rebalance(own_broker: BrokerProcess, name: str, how: str) -> None:
    topic, id_ = topic_maker(own_broker)(PARTITIONS), unique("group")
    client = CLIENTS[name](own_broker.bootstrap)
    writer = Confluent(own_broker.bootstrap)

    def send() -> list[Place]:
        return writer.produce(topic, [Message(b"x", partition=number % PARTITIONS) for number in range(30)])

    with Group() as group:
        workers = [Worker(lambda: client.reader(topic, group=id_, session_ms=20_000)) for _ in range(2)]
        for worker in workers:
            group.add(worker)
        group.wait_until_shared(PARTITIONS)
        sent = send()
        group.wait_for(sent)
        before = [(worker.partitions, worker.assignments) for worker in workers]
        generation = generation_of(own_broker, id_)
        own_broker.stop() if how == "stopped" else own_broker.kill()
        own_broker.start()
        sent += send()
        group.wait_for(sent)
        assert [(worker.partitions, worker.assignments) for worker in workers] == before
        assert generation_of(own_broker, id_) == generation


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_members_of_the_consumer_protocol_carry_on_over_a_restart(
    tmp_path_factory: pytest.TempPathFactory, how: str
) -> None:
    patient = {"kafka.group.consumer.session.timeout.ms": "20000"}
    messages = [Message(b"x", partition=number % PARTITIONS) for number in range(30)]
    with BrokerProcess(tmp_path_factory.mktemp("broker"), patient) as broker, Group() as group:
        topic, id_ = topic_maker(broker)(PARTITIONS), unique("group")
        client = Confluent(broker.bootstrap)
        workers = [
            Worker(lambda: client.reader(topic, group=id_, config={"group.protocol": "consumer"})) for _ in range(2)
        ]
        for worker in workers:
            group.add(worker)
        group.wait_until_shared(PARTITIONS)
        sent = client.produce(topic, messages)
        group.wait_for(sent)
        before = [(worker.partitions, worker.assignments) for worker in workers]
        broker.stop() if how == "stopped" else broker.kill()
        broker.start()
        sent += client.produce(topic, messages)
        group.wait_for(sent)
        assert [(worker.partitions, worker.assignments) for worker in workers] == before


def generation_of(broker: BrokerProcess, group: str) -> int:
    """No API tells it to those who are not members; but a heartbeat says whether a guess is right."""
    with RawClient(broker.port) as client:
        member = client.ask("DescribeGroups", 4, DescribeGroupsRequest([group])).groups[0].members[0].member_id
        for generation in range(100):
            if client.ask("Heartbeat", 3, HeartbeatRequest(group, generation, member)).error_code == 0:
                return generation
    raise AssertionError("no generation was right")


@pytest.mark.slow
def test_producer_ids_are_never_given_out_twice(own_broker: BrokerProcess) -> None:
    given = []
    for _ in range(3):
        with RawClient(own_broker.port) as client:
            for _ in range(5):
                answer = client.ask("InitProducerId", 4, InitProducerIdRequest(None, 0))
                assert (answer.error_code, answer.producer_epoch) == (0, 0)
                given.append(answer.producer_id)
        own_broker.kill()
        own_broker.start()
    assert len(set(given)) == 15


@pytest.mark.slow
def test_an_idempotent_producer_goes_on_over_a_restart(own_broker: BrokerProcess) -> None:
    topic = topic_maker(own_broker)()
    producer = Confluent(own_broker.bootstrap).producer(idempotent=True)
    offsets: list[int] = []
    for number in range(3):
        for each in range(10):
            producer.produce(
                topic, b"%d" % (10 * number + each), on_delivery=lambda _, sent: offsets.append(sent.offset() or 0)
            )
        assert producer.flush(SECONDS) == 0
        own_broker.kill()
        own_broker.start()
    assert offsets == list(range(30))
    records = Confluent(own_broker.bootstrap).read(topic, 30)
    assert [record.value for record in records] == [b"%d" % number for number in range(30)]


@pytest.mark.slow
def test_it_stops_soon_also_with_clients_that_wait(own_broker: BrokerProcess) -> None:
    topic = topic_maker(own_broker)(PARTITIONS)
    with Group() as group:
        for kind in CLIENTS.values():
            client = kind(own_broker.bootstrap)
            group.add(Worker(lambda client=client: client.reader(topic, group="waiting")))  # type: ignore[misc]
        group.wait_until_shared(PARTITIONS)
        own_broker.stop()  # long before the grace for open requests is over
        own_broker.start()


@pytest.mark.slow
def test_a_broker_that_is_gone_is_an_error_and_not_silence(own_broker: BrokerProcess) -> None:
    topic = topic_maker(own_broker)()
    producer = Confluent(own_broker.bootstrap).producer(config={"message.timeout.ms": 1000})
    own_broker.stop()
    errors: list[KafkaError | None] = []
    producer.produce(topic, b"value", on_delivery=lambda error, _: errors.append(error))
    producer.flush(SECONDS)
    assert [error is not None and error.code() for error in errors] == [KafkaError._MSG_TIMED_OUT]
