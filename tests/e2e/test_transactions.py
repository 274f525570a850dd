"""Transactions with the real clients: what counts, what does not, and who may not go on."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from tests.e2e.clients import Confluent
from tests.e2e.clients.base import SECONDS, ClientError, Message
from tests.e2e.clients.confluent import common
from tests.e2e.clients.transactional import TRANSACTIONAL, Transactional
from tests.e2e.conftest import MakeTopic
from tests.support.brokers import BrokerProcess, eventually, unique
from tidelog.client import FetchOptions, connect
from tidelog.model import TopicPartition

Make = Callable[..., Transactional]
READERS = list(TRANSACTIONAL)


@pytest.fixture(params=list(TRANSACTIONAL))
def make(request: pytest.FixtureRequest, broker: BrokerProcess) -> Iterator[Make]:
    """Producers of one of the libraries; all are closed in the end."""
    made: list[Transactional] = []

    def one(id_: str | None = None, timeout_ms: int = 60_000) -> Transactional:
        made.append(TRANSACTIONAL[request.param](broker.bootstrap, id_ or unique("id"), timeout_ms))
        return made[-1]

    yield one
    for each in made:
        each.close()


def test_committed_records_are_read_and_aborted_ones_are_not(make: Make, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    producer = make()
    producer.init()
    for number in range(6):
        producer.begin()
        for partition in (0, 1):
            producer.send(topic, b"%d.%d" % (number, partition), partition)
        producer.commit() if number % 2 == 0 else producer.abort()
    committed = sorted(b"%d.%d" % (number, partition) for number in (0, 2, 4) for partition in (0, 1))
    assert sorted(producer.read(topic, 2)) == committed
    assert len(producer.read(topic, 2, committed=False)) == 12


def test_commits_and_aborts_take_turns_over_many_partitions(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    """The next transaction begins, and ends, while the markers of the last one are still being written."""
    partitions, turns = 50, 25
    topic = make_topic(partitions)
    producer = Producer({**common(broker.bootstrap), "transactional.id": unique("id"), "linger.ms": 20})
    producer.init_transactions(SECONDS)
    for _ in range(turns):
        for value, end in ((b"in", producer.commit_transaction), (b"out", producer.abort_transaction)):
            producer.begin_transaction()
            for partition in range(partitions):
                producer.produce(topic, value, partition=partition)
            end(SECONDS)
    with TRANSACTIONAL["confluent-kafka"](broker.bootstrap, unique("id")) as reader:
        assert reader.read(topic, partitions) == [b"in"] * (partitions * turns)


@pytest.mark.parametrize("reader", READERS)
def test_every_library_reads_what_another_one_left(
    make: Make, make_topic: MakeTopic, broker: BrokerProcess, reader: str
) -> None:
    topic = make_topic()
    producer = make()
    producer.init()
    for number in range(4):
        producer.begin()
        producer.send(topic, b"in %d" % number)
        producer.abort() if number % 2 else producer.commit()
    with TRANSACTIONAL[reader](broker.bootstrap, unique("id")) as other:
        other.init()
        assert other.read(topic) == [b"in 0", b"in 2"]


def test_an_open_transaction_holds_readers_of_committed_records_back(make: Make, make_topic: MakeTopic) -> None:
    topic = make_topic()
    producer, other = make(), make()
    producer.init()
    other.init()
    producer.begin()
    producer.send(topic, b"first")
    other.begin()
    other.send(topic, b"second")
    other.commit()
    assert producer.read(topic) == []
    assert producer.read(topic, committed=False) == [b"first", b"second"]
    producer.commit()
    assert producer.read(topic) == [b"first", b"second"]


def test_a_zombie_is_fenced_and_what_it_left_open_does_not_count(make: Make, make_topic: MakeTopic) -> None:
    topic, id_ = make_topic(), unique("id")
    zombie = make(id_)
    zombie.init()
    zombie.begin()
    zombie.send(topic, b"zombie")
    successor = make(id_)
    successor.init()
    with pytest.raises(ClientError):
        zombie.commit()
    successor.begin()
    successor.send(topic, b"successor")
    successor.commit()
    assert successor.read(topic) == [b"successor"]


def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    make: Make, make_topic: MakeTopic, broker: BrokerProcess
) -> None:
    topic, group = make_topic(), unique("group")
    producer = make()
    producer.init()
    with Confluent(broker.bootstrap).reader(topic, group=group) as reader:
        for offset, commit, seen in ((3, True, 3), (5, False, 3), (7, True, 7)):
            producer.begin()
            producer.send(topic, b"%d" % offset)
            producer.send_offsets(topic, {0: offset}, group)
            producer.commit() if commit else producer.abort()
            assert reader.committed(0) == seen


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_commits_in_a_transaction_and_one_that_has_left_may_not(
    broker: BrokerProcess, make_topic: MakeTopic, protocol: str
) -> None:
    source, target, group = make_topic(), make_topic(), unique("group")
    Confluent(broker.bootstrap).produce(source, [Message(b"%d" % number, partition=0) for number in range(4)])

    def member() -> Consumer:
        settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer({**common(broker.bootstrap), **settings, "enable.auto.commit": False})
        consumer.subscribe([source])
        return consumer

    def copied(consumer: Consumer, count: int) -> list[bytes]:
        values: list[bytes] = []

        def more() -> int:
            values.extend(message.value() or b"" for message in consumer.consume(count - len(values), 0.2))
            return len(values)

        eventually(more, until=count.__eq__, within=SECONDS)
        for value in values:
            producer.produce(target, value)
        return values

    producer = Producer({**common(broker.bootstrap), "transactional.id": unique("id"), "linger.ms": 0})
    producer.init_transactions(SECONDS)
    first = member()
    producer.begin_transaction()
    assert copied(first, 2) == [b"0", b"1"]
    identity = first.consumer_group_metadata()
    producer.send_offsets_to_transaction(first.position(first.assignment()), identity, SECONDS)
    producer.commit_transaction(SECONDS)
    first.close()

    second = member()
    producer.begin_transaction()
    assert copied(second, 1) == [b"2"]
    with pytest.raises(KafkaException) as refused:
        producer.send_offsets_to_transaction(second.position(second.assignment()), identity, SECONDS)
    assert refused.value.args[0].txn_requires_abort()
    producer.abort_transaction(SECONDS)
    second.close()

    third = member()
    producer.begin_transaction()
    assert copied(third, 2) == [b"2", b"3"], "the offset did not move with what was aborted"
    producer.send_offsets_to_transaction(third.position(third.assignment()), third.consumer_group_metadata(), SECONDS)
    producer.commit_transaction(SECONDS)
    third.close()
    with connect(broker.bootstrap) as client:
        assert client.committed(group)[TopicPartition(source, 0)].offset == 4
        seen = client.consume(target, follow=False, fetch=FetchOptions(read_committed=True))
        assert [record.value for record in seen] == [b"0", b"1", b"2", b"3"]


def test_an_abandoned_transaction_is_aborted_after_its_timeout(make: Make, make_topic: MakeTopic) -> None:
    topic = make_topic()
    producer, other = make(timeout_ms=1000), make()
    producer.init()
    producer.begin()
    producer.send(topic, b"abandoned")
    other.init()
    other.begin()
    other.send(topic, b"behind it")
    other.commit()
    assert eventually(lambda: other.read(topic), until=bool, within=SECONDS) == [b"behind it"]
    with pytest.raises(ClientError):
        producer.commit()


def test_the_states_of_transactions_are_seen(make: Make, make_topic: MakeTopic, broker: BrokerProcess) -> None:
    topic, id_ = make_topic(), unique("id")
    producer = make(id_)
    producer.init()
    with connect(broker.bootstrap) as client:
        assert client.transaction(id_).state == "Empty"
        producer.begin()
        producer.send(topic, b"record")
        described = client.transaction(id_)
        assert (described.state, [str(each) for each in described.partitions]) == ("Ongoing", [f"{topic}-0"])
        (active,) = [each for each in client.producers(described.partitions) if each.transaction_start >= 0]
        assert (active.producer_id, active.transaction_start) == (described.producer_id, 0)
        producer.commit()
        eventually(lambda: client.transaction(id_).state, until=lambda state: state == "CompleteCommit")
