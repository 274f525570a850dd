"""Consumer groups: members come, go and crash; no record is lost, and none is seen again that was committed."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError

from tests.e2e.clients import CLIENTS, AioKafka, Client, Confluent, KafkaPython, Message
from tests.e2e.clients.base import Place
from tests.e2e.clients.confluent import common
from tests.e2e.conftest import MakeTopic, topic_maker
from tests.e2e.members import Group, MemberProcess, Worker
from tests.support.brokers import BrokerProcess, eventually, unique

PARTITIONS = 6
ASSIGNORS = [(name, assignor) for name, kind in CLIENTS.items() for assignor in kind.assignors]


def send(bootstrap: str, topic: str, count: int = 120) -> list[Place]:
    return Confluent(bootstrap).produce(topic, [Message(b"%d" % n, partition=n % PARTITIONS) for n in range(count)])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "assignor"), ASSIGNORS)
def test_a_group_grows_and_shrinks(broker: BrokerProcess, make_topic: MakeTopic, name: str, assignor: str) -> None:
    topic, id_ = make_topic(PARTITIONS), unique("group")
    client = CLIENTS[name](broker.bootstrap)

    def worker() -> Worker:
        return Worker(lambda: client.reader(topic, group=id_, assignor=assignor))

    sent = send(broker.bootstrap, topic)
    with Group() as group:
        first = group.add(worker())
        group.wait_for(sent)
        for _ in range(2):
            group.add(worker())
            sent += send(broker.bootstrap, topic)
            group.wait_until_shared(PARTITIONS)
            sent += send(broker.bootstrap, topic)
            group.wait_for(sent)
        assert {len(share) for share in group.shares()} == {2}
        group.remove(first)
        sent += send(broker.bootstrap, topic)
        group.wait_until_shared(PARTITIONS)
        group.wait_for(sent)


def test_a_new_member_goes_on_where_the_group_stopped(client: Client, make_topic: MakeTopic) -> None:
    topic, id_ = make_topic(), unique("group")
    client.produce(topic, [Message(b"%d" % number) for number in range(10)])
    with client.reader(topic, group=id_) as reader:
        assert [record.offset for record in reader.read(10)] == list(range(10))
        reader.commit({0: 4})
        assert reader.committed(0) == 4
    with client.reader(topic, group=id_) as reader:
        assert [record.offset for record in reader.read(6)] == list(range(4, 10))
        reader.commit()
        assert reader.committed(0) == 10
    with client.reader(topic, group=unique("other")) as reader:
        assert reader.committed(0) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CLIENTS))
def test_a_killed_member_is_replaced_when_its_session_is_over(
    broker: BrokerProcess, make_topic: MakeTopic, name: str
) -> None:
    topic, id_ = make_topic(PARTITIONS), unique("group")
    client = CLIENTS[name](broker.bootstrap)
    sent = send(broker.bootstrap, topic)
    with Group() as group:
        doomed = group.add(MemberProcess(name, broker.bootstrap, topic, id_, 1000))
        group.add(Worker(lambda: client.reader(topic, group=id_, session_ms=2000)))
        group.wait_until_shared(PARTITIONS)
        sent += send(broker.bootstrap, topic)
        eventually(lambda: doomed.seen)
        group.remove(doomed)
        sent += send(broker.bootstrap, topic)
        group.wait_until_shared(PARTITIONS)
        group.wait_for(sent)


@pytest.mark.slow
def test_different_clients_share_a_group(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    topic, id_ = make_topic(PARTITIONS), unique("group")
    with Group() as group:
        for kind in (Confluent, KafkaPython, AioKafka):
            client: Client = kind(broker.bootstrap)
            group.add(Worker(lambda client=client: client.reader(topic, group=id_)))  # type: ignore[misc]
        group.wait_until_shared(PARTITIONS)
        sent = send(broker.bootstrap, topic)
        group.wait_for(sent)
        group.remove(group.members[0])
        group.wait_until_shared(PARTITIONS)
        group.wait_for(sent + send(broker.bootstrap, topic))


@pytest.mark.slow
def test_a_static_member_comes_back_without_a_rebalance(client: Client, make_topic: MakeTopic) -> None:
    topic, id_ = make_topic(PARTITIONS), unique("group")
    with Group() as group:
        staying = group.add(Worker(lambda: client.reader(topic, group=id_, instance="staying", session_ms=20_000)))
        returning = group.add(
            Worker(lambda: client.reader(topic, group=id_, instance="returning", session_ms=20_000))
        )
        group.wait_until_shared(PARTITIONS)
        assert isinstance(staying, Worker)
        rebalances, share = staying.assignments, returning.partitions
        group.remove(returning)
        sent = send(client.bootstrap, topic)
        returned = group.add(Worker(lambda: client.reader(topic, group=id_, instance="returning", session_ms=20_000)))
        group.wait_until_shared(PARTITIONS)
        group.wait_for(sent)
        assert returned.partitions == share
        assert staying.assignments == rebalances


def test_a_second_process_with_the_same_instance_id_fences_the_first(
    broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic, id_ = make_topic(), unique("group")
    client = Confluent(broker.bootstrap)
    with client.reader(topic, group=id_, instance="one") as first:
        eventually(lambda: first.poll(0.05) or first.assignment())
        with client.reader(topic, group=id_, instance="one") as second:
            eventually(lambda: second.poll(0.05) or second.assignment())

            def fenced() -> bool:
                message = first.consumer.poll(0.05)
                error = None if message is None else message.error()
                return error is not None and error.code() in (KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL)

            eventually(fenced)


@pytest.mark.slow
def test_cooperative_members_keep_what_need_not_move(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    topic, id_ = make_topic(PARTITIONS), unique("group")
    revoked: list[int] = []
    config = {
        **common(broker.bootstrap),
        "group.id": id_,
        "partition.assignment.strategy": "cooperative-sticky",
        "heartbeat.interval.ms": 100,
    }
    first, second = Consumer(config), Consumer(config)
    try:
        first.subscribe([topic], on_revoke=lambda _, gone: revoked.extend(each.partition for each in gone))
        eventually(lambda: first.poll(0.05) or len(first.assignment()) == PARTITIONS)
        assert revoked == []
        second.subscribe([topic])

        def halves() -> bool:
            first.poll(0.02)
            second.poll(0.02)
            return len(first.assignment()) == len(second.assignment()) == PARTITIONS // 2

        eventually(halves, within=20)
        assert sorted(revoked) == sorted(each.partition for each in second.assignment())
    finally:
        first.close()
        second.close()


def test_an_unknown_group_has_nothing_committed(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with client.reader(topic, group=unique("group")) as reader:
        assert reader.committed(0) is None


@pytest.mark.slow
def test_a_member_that_does_not_poll_gives_its_partitions_away(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    """It still sends heartbeats, so it leaves by itself; the others go on."""
    topic, id_ = make_topic(PARTITIONS), unique("group")
    client = Confluent(broker.bootstrap)
    lazy = client.reader(topic, group=id_, session_ms=500, config={"max.poll.interval.ms": 1000})
    try:
        eventually(lambda: lazy.poll(0.05) or len(lazy.assignment()) == PARTITIONS)
        with Group() as group:
            group.add(Worker(lambda: client.reader(topic, group=id_)))
            group.wait_until_shared(PARTITIONS, within=10)
            group.wait_for(send(broker.bootstrap, topic))
        # librdkafka's close has waited for ever, once in hundreds of runs, when the application had not polled since
        # its partitions were taken away.
        eventually(lambda: (lazy.poll(0.05), lazy.assignments > 1 or not lazy.assignment())[1])
    finally:
        lazy.close()


# The consumer protocol (KIP-848)


@pytest.mark.slow
def test_a_group_of_the_consumer_protocol_grows_and_shrinks(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    topic, id_ = make_topic(PARTITIONS), unique("group")
    client = Confluent(broker.bootstrap)

    def worker() -> Worker:
        return Worker(lambda: client.reader(topic, group=id_, config={"group.protocol": "consumer"}))

    sent = send(broker.bootstrap, topic)
    with Group() as group:
        first = group.add(worker())
        group.wait_for(sent)
        group.add(worker())
        group.add(worker())
        sent += send(broker.bootstrap, topic)
        group.wait_until_shared(PARTITIONS)
        sent += send(broker.bootstrap, topic)
        group.wait_for(sent)
        group.remove(first)
        sent += send(broker.bootstrap, topic)
        group.wait_until_shared(PARTITIONS)
        group.wait_for(sent)


@pytest.mark.slow
def test_a_killed_member_of_the_consumer_protocol_is_replaced(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    topic, id_ = make_topic(PARTITIONS), unique("group")
    client, new = Confluent(broker.bootstrap), {"group.protocol": "consumer"}
    sent = send(broker.bootstrap, topic)
    with Group() as group:
        doomed = group.add(MemberProcess("confluent", broker.bootstrap, topic, id_, 1000, config=new))
        group.add(Worker(lambda: client.reader(topic, group=id_, config=new)))
        group.wait_until_shared(PARTITIONS)
        sent += send(broker.bootstrap, topic)
        eventually(lambda: doomed.seen)
        group.remove(doomed)
        sent += send(broker.bootstrap, topic)
        group.wait_until_shared(PARTITIONS)
        group.wait_for(sent)


@pytest.mark.slow
def test_static_members_of_the_consumer_protocol_come_back_after_a_kill_of_the_broker(tmp_path: Path) -> None:
    """Some run on, others end while the broker is away, so that nobody hears of it: none may be refused for having an
    instance id that is in use, and nobody has to wait for the end of a session, which is long after the test."""
    members = 12
    settings = {
        "kafka.group.consumer.session.timeout.ms": "45000",
        "kafka.group.consumer.heartbeat.interval.ms": "5000",
    }
    with BrokerProcess(tmp_path, settings) as broker:
        topic, id_ = topic_maker(broker)(members), unique("group")
        failures: list[KafkaError] = []

        def consumer(number: int) -> Consumer:
            made = Consumer(
                {
                    **common(broker.bootstrap),
                    "group.id": id_,
                    "group.protocol": "consumer",
                    "group.instance.id": f"instance-{number}",
                    "reconnect.backoff.max.ms": 500,
                }
            )
            made.subscribe([topic])
            return made

        def owned() -> list[list[int]]:
            for each in consumers:
                message = each.poll(0)
                error = None if message is None else message.error()
                if error is not None and error.code() == KafkaError._FATAL:
                    failures.append(error)
            assert not failures, failures
            return [[place.partition for place in each.assignment()] for each in consumers]

        def is_shared(owned: list[list[int]]) -> bool:
            return sorted(partition for share in owned for partition in share) == list(range(members)) and all(owned)

        consumers = [consumer(number) for number in range(members)]
        try:
            before = eventually(owned, until=is_shared)
            broker.kill()
            for number in range(0, members, 2):
                consumers[number].close()
            broker.start()
            for number in range(0, members, 2):
                consumers[number] = consumer(number)
            assert eventually(owned, until=is_shared, within=30) == before
        finally:
            for each in consumers:
                each.close()


@pytest.mark.slow
def test_a_classic_group_moves_to_the_consumer_protocol_while_it_works(
    broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    """One member after the other is started anew with the other protocol; nothing is lost on the way."""
    topic, id_ = make_topic(PARTITIONS), unique("group")
    client = Confluent(broker.bootstrap)
    sent = send(broker.bootstrap, topic)
    with Group() as group:
        for _ in range(2):
            group.add(Worker(lambda: client.reader(topic, group=id_)))
        group.wait_until_shared(PARTITIONS)
        for old in list(group.members):
            group.add(Worker(lambda: client.reader(topic, group=id_, config={"group.protocol": "consumer"})))
            sent += send(broker.bootstrap, topic)
            group.wait_until_shared(PARTITIONS)
            group.remove(old)
            sent += send(broker.bootstrap, topic)
            group.wait_until_shared(PARTITIONS)
        group.wait_for(sent)
