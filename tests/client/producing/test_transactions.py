"""The client's transactions against a real broker, with what it speaks now (version 2) and what older ones speak."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.brokers import BrokerProcess, eventually, unique
from tidelog.client import (
    AsyncClient,
    BrokerError,
    Client,
    ClientOptions,
    FetchOptions,
    GroupOptions,
    OpenTransaction,
    TransactionalProducer,
    TransactionFailed,
    connect,
    id_of_task,
)
from tidelog.client.connection import BrokerConnection
from tidelog.errors import InvalidInput
from tidelog.model import TopicPartition, shard_of
from tidelog.wire.error_codes import ErrorCode

COMMITTED = FetchOptions(read_committed=True)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(Path(tmp_path_factory.mktemp("transactions"))) as broker:
        yield broker.bootstrap


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """With 1 the client believes that the cluster has not finalized the feature."""
    if request.param == 1:
        remember = BrokerConnection._remember

        def without_features(connection: BrokerConnection, response: object) -> None:
            remember(connection, response)  # type: ignore[arg-type]
            connection.features = {}

        monkeypatch.setattr(BrokerConnection, "_remember", without_features)
    return int(request.param)


@pytest.fixture
def client(bootstrap: str, version: int) -> Iterator[Client]:
    with connect(bootstrap) as client:
        yield client


@pytest.fixture
def topic(client: Client) -> str:
    name = unique("topic")
    client.create_topic(name, partitions=2)
    return name


def values(client: Client, topic: str, fetch: FetchOptions = COMMITTED) -> list[bytes | None]:
    return sorted(
        [record.value for record in client.consume(topic, follow=False, fetch=fetch)], key=lambda value: value or b""
    )


def test_commits_and_aborts(client: Client, topic: str) -> None:
    with client.transactional_producer(unique("id")) as producer:
        producer.init()
        for number in range(6):
            producer.begin()
            for partition in (0, 1):
                producer.send(topic, f"{number}.{partition}", partition=partition)
            producer.commit() if number % 2 else producer.abort()
    assert values(client, topic) == [b"1.0", b"1.1", b"3.0", b"3.1", b"5.0", b"5.1"]
    assert len(values(client, topic, FetchOptions())) == 12


def test_a_block_commits_and_an_exception_in_it_aborts(client: Client, topic: str) -> None:
    with client.transactional_producer(unique("id")) as producer:
        producer.init()
        with producer.transaction():
            producer.send(topic, "kept")

        def fail() -> None:
            with producer.transaction():
                producer.send(topic, "dropped")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        with producer.transaction():
            pass
    assert values(client, topic) == [b"kept"]


def test_a_record_that_was_not_delivered_spoils_the_transaction(client: Client) -> None:
    topic = unique("small")
    client.create_topic(topic, configs={"max.message.bytes": "1000"})
    with client.transactional_producer(unique("id")) as producer:
        producer.init()
        producer.begin()
        producer.send(topic, "small")
        producer.flush()
        producer.send(topic, b"x" * 5000)
        with pytest.raises(TransactionFailed, match="abort it"):
            producer.commit()
        producer.abort()
        with producer.transaction():
            producer.send(topic, "after")
    assert values(client, topic) == [b"after"]


def test_a_successor_fences_and_aborts_what_was_left_open(client: Client, topic: str) -> None:
    id_ = unique("id")
    zombie, successor = client.transactional_producer(id_), client.transactional_producer(id_)
    zombie.init()
    zombie.begin()
    zombie.send(topic, "zombie").result(10)
    successor.init()
    with pytest.raises(BrokerError) as refused:
        zombie.send(topic, "late").result(10)
    assert refused.value.kafka_code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    with pytest.raises(TransactionFailed):
        zombie.commit()
    with successor.transaction():
        successor.send(topic, "successor")
    assert values(client, topic) == [b"successor"]


def test_offsets_count_with_the_transaction(client: Client, topic: str, bootstrap: str) -> None:
    group, source = unique("group"), TopicPartition(topic, 0)
    with client.transactional_producer(unique("id")) as producer:
        producer.init()
        producer.begin()
        producer.send(topic, "a")
        producer.send_offsets({source: 5}, group)
        assert client.committed(group) == {}
        with connect(bootstrap, ClientOptions(timeout_ms=200)) as impatient, pytest.raises(BrokerError) as refused:
            impatient.committed(group, [source], stable=True)
        assert refused.value.kafka_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        producer.commit()
        assert client.committed(group)[source].offset == 5
        producer.begin()
        producer.send_offsets({source: 9}, group)
        producer.abort()
    assert client.committed(group)[source].offset == 5


def test_a_member_that_the_group_has_lost_cannot_commit_offsets(client: Client, topic: str) -> None:
    group = unique("group")
    client.produce(topic, "record", partition=0)
    with (
        client.consume(topic, group=group, group_options=GroupOptions(auto_commit_ms=0)) as stream,
        client.transactional_producer(unique("id")) as producer,
    ):
        record = next(stream)
        member = stream.member
        assert member is not None
        producer.init()
        with producer.transaction():
            producer.send_offsets({TopicPartition(record.topic, record.partition): record.offset + 1}, member)
        assert client.committed(group)[TopicPartition(topic, 0)].offset == 1
        producer.begin()
        with pytest.raises(BrokerError) as refused:
            producer.send_offsets({TopicPartition(topic, 0): 7}, member._replace(generation=99))
        assert refused.value.kafka_code == ErrorCode.ILLEGAL_GENERATION
        with pytest.raises(TransactionFailed):
            producer.commit()
        producer.abort()
    assert client.committed(group)[TopicPartition(topic, 0)].offset == 1


def test_another_client_ends_a_transaction_that_was_handed_over(client: Client, topic: str, bootstrap: str) -> None:
    """As a Spark driver does for its executors, also if it does not know whether it has done it."""
    outcomes = {unique("task"): commit for commit in (True, False)}
    handed: dict[str, OpenTransaction] = {}
    for id_ in outcomes:
        with connect(bootstrap) as executor, executor.transactional_producer(id_) as producer:
            producer.init()
            producer.begin()
            producer.send(topic, f"of {outcomes[id_]}")
            handed[id_] = producer.hand_over()
    assert values(client, topic) == []
    for id_, commit in outcomes.items():
        assert client.transaction(id_).state == "Ongoing"
        client.end_transaction(handed[id_], commit=commit)
        client.end_transaction(handed[id_], commit=commit)
        assert client.transaction(id_).state == ("CompleteCommit" if commit else "CompleteAbort")
        with pytest.raises(BrokerError) as refused:
            client.end_transaction(handed[id_], commit=not commit)
        assert refused.value.kafka_code == ErrorCode.INVALID_TXN_STATE
    assert values(client, topic) == [b"of True"]


def test_transactions_of_many_producers_are_committed_with_one_decision(
    client: Client, topic: str, bootstrap: str
) -> None:
    query = unique("query")
    assert client.decision(query) == -1

    def write(number: int) -> list[OpenTransaction]:
        handed = []
        for task in range(3):
            with connect(bootstrap) as executor, executor.transactional_producer(f"{query}-{task}") as producer:
                producer.init()
                producer.begin()
                producer.send(topic, f"batch {number} of task {task}")
                handed.append(producer.hand_over())
        return handed

    first = write(0)
    assert values(client, topic) == []
    assert client.decide_transactions(query, 0, first)
    assert not client.decide_transactions(query, 0, first)  # the reply was lost, say
    assert client.decision(query) == 0
    assert not client.decide_transactions(query, 0, write(0))  # a driver that does not know what its predecessor did
    for task in range(3):
        client.fence_producer(f"{query}-{task}")
    broken = write(1)
    client.fence_producer(f"{query}-1")
    with pytest.raises(BrokerError) as refused:
        client.decide_transactions(query, 1, broken)
    assert refused.value.kafka_code == ErrorCode.PRODUCER_FENCED
    assert client.decision(query) == 0
    assert client.decide_transactions(query, 1, write(1))
    assert sorted(value or b"" for value in values(client, topic)) == [
        b"batch %d of task %d" % (n, task) for n in range(2) for task in range(3)
    ]


def test_the_ids_of_a_scope_have_one_coordinator_and_no_two_tasks_the_same() -> None:
    scopes = ["job", "job-1", "job-1.5", "日本", unique("scope")]
    ids = {(scope, task): id_of_task(scope, task) for scope in scopes for task in range(200)}
    assert len(set(ids.values())) == len(ids)
    assert all(shard_of(id_) == shard_of(scope) for (scope, _), id_ in ids.items())
    for (scope, task), id_ in ids.items():
        assert re.fullmatch(rf"{re.escape(scope)}-{task}(\.\d+)?", id_), "told apart by the last dash"


def test_a_fenced_transaction_cannot_be_ended(client: Client, topic: str) -> None:
    id_ = unique("id")
    producer = client.transactional_producer(id_)
    producer.init()
    producer.begin()
    producer.send(topic, "never")
    handed = producer.hand_over()
    client.fence_producer(id_)
    with pytest.raises(BrokerError) as refused:
        client.end_transaction(handed, commit=True)
    assert refused.value.kafka_code == ErrorCode.PRODUCER_FENCED
    assert values(client, topic) == []


def test_a_transaction_that_takes_too_long_is_aborted_by_the_broker(client: Client, topic: str) -> None:
    id_ = unique("id")
    producer = client.transactional_producer(id_, transaction_timeout_ms=300)
    producer.init()
    producer.begin()
    producer.send(topic, "slow").result(10)
    client.produce(topic, "behind it", partition=0)
    client.produce(topic, "behind it", partition=1)
    stream = client.consume(topic, fetch=COMMITTED, limit=2)  # waits for the broker to give up
    assert {record.value for record in stream} == {b"behind it"}
    eventually(lambda: client.transaction(id_).state, until=lambda state: state == "CompleteAbort")
    with pytest.raises(BrokerError):
        producer.commit()
    with pytest.raises(InvalidInput, match="fenced"):
        producer.begin()


def test_what_is_not_in_order_is_said(client: Client, topic: str) -> None:
    producer = client.transactional_producer(unique("id"))
    with pytest.raises(InvalidInput, match="init"):
        producer.begin()
    producer.init()
    with pytest.raises(InvalidInput, match="begin"):
        producer.send(topic, "x")
    with pytest.raises(InvalidInput, match="begin"):
        producer.commit()
    with pytest.raises(InvalidInput, match="empty"):
        client.transactional_producer("")
    with pytest.raises(BrokerError) as refused:
        client.transactional_producer("id", transaction_timeout_ms=10**9).init()
    assert refused.value.kafka_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


async def produced(client: AsyncClient, topic: str) -> AsyncIterator[TransactionalProducer]:
    producer = client.transactional_producer(unique("id"))
    await producer.init()
    async with producer.transaction():
        await producer.send(topic, "asynchronous")
        yield producer


def test_the_same_with_an_event_loop(bootstrap: str, topic: str, client: Client) -> None:
    async def run() -> None:
        async with AsyncClient(bootstrap) as asynchronous:
            async for _ in produced(asynchronous, topic):
                pass

    asyncio.run(run())
    assert values(client, topic) == [b"asynchronous"]
