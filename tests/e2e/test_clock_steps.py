"""The machine's clock is set while the broker runs, or is away: nobody is thrown out, and nobody stays for ever."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.e2e.clients.base import SECONDS
from tests.e2e.clients.confluent import common
from tests.e2e.conftest import topic_maker
from tests.gateways.raw import RawClient
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.stepping_clock import StepClock
from tidelog.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tidelog.wire.generated.list_transactions import ListTransactionsRequest

STEPS = pytest.mark.parametrize("hours", [-3, 5], ids=["-3h", "+5h"])


@pytest.fixture
def clock(tmp_path: Path) -> StepClock:
    return StepClock(tmp_path / "step")


@pytest.fixture
def broker(tmp_path: Path, clock: StepClock) -> Iterator[BrokerProcess]:
    """Sessions of members last two seconds."""
    process = BrokerProcess(tmp_path / "broker", program=clock.program)
    process.environment |= clock.environment
    with process:
        yield process


class Member:
    """A living member of a group. `lost` counts how often it was told that it is none any more."""

    def __init__(self, broker: BrokerProcess, topic: str, group: str) -> None:
        self.lost = 0
        self.consumer = Consumer(
            {
                **common(broker.bootstrap),
                "group.id": group,
                "group.protocol": "consumer",
                "reconnect.backoff.max.ms": 200,
            }
        )
        self.consumer.subscribe([topic], on_lost=self._on_lost)

    def _on_lost(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.lost += 1

    def owned(self) -> list[int]:
        self.consumer.poll(0)
        return sorted(each.partition for each in self.consumer.assignment())


def join_and_die(broker: BrokerProcess, topic: str, group: str) -> None:
    """A member that joins, and is never heard from again."""
    with RawClient(broker.port) as raw:
        joined = raw.ask(
            "ConsumerGroupHeartbeat",
            0,
            ConsumerGroupHeartbeatRequest(
                group_id=group,
                member_id=unique("dead"),
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[topic],
                topic_partitions=[],
            ),
        )
        assert joined.error_code == 0


@pytest.mark.slow
@STEPS
def test_members_stay_as_long_as_they_live(broker: BrokerProcess, clock: StepClock, hours: int) -> None:
    topic, group = topic_maker(broker)(2), unique("group")
    member = Member(broker, topic, group)
    try:
        eventually(member.owned, until=[0, 1].__eq__)
        join_and_die(broker, topic, group)
        eventually(member.owned, until=lambda owned: len(owned) == 1)
        clock.step(hours)
        eventually(member.owned, until=[0, 1].__eq__)  # when the session of the dead one is over
        join_and_die(broker, topic, group)
        eventually(member.owned, until=lambda owned: len(owned) == 1)
        broker.kill()
        clock.step(0)  # back again, while the broker is away
        broker.start()
        eventually(member.owned, until=[0, 1].__eq__)
        assert member.lost == 0
    finally:
        member.consumer.close()


@pytest.mark.slow
@STEPS
def test_transactions_end_when_their_time_is_over(broker: BrokerProcess, clock: StepClock, hours: int) -> None:
    topic = topic_maker(broker)(configs={"message.timestamp.type": "LogAppendTime"})  # clients have the right time

    def begun(timeout_ms: int) -> tuple[Producer, str]:
        id_ = unique("id")
        producer = Producer(
            {
                **common(broker.bootstrap),
                "transactional.id": id_,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "socket.timeout.ms": timeout_ms,
                "reconnect.backoff.max.ms": 200,
            }
        )
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        producer.produce(topic, id_)
        assert producer.flush(SECONDS) == 0
        return producer, id_

    def state_of(id_: str) -> str | None:
        with RawClient(broker.port) as raw:
            listed = raw.ask("ListTransactions", 0, ListTransactionsRequest([], []))
            states = {each.transactional_id: each.transaction_state for each in listed.transaction_states}
        return states.get(id_)

    patient, _ = begun(60_000)
    _, abandoned = begun(2_000)
    clock.step(hours)
    eventually(lambda: state_of(abandoned), until="CompleteAbort".__eq__)
    patient.commit_transaction(SECONDS)
    patient.begin_transaction()
    patient.produce(topic, b"next")
    assert patient.flush(SECONDS) == 0
    _, abandoned = begun(2_000)
    broker.kill()
    clock.step(0)  # back again, while the broker is away
    broker.start()
    eventually(lambda: state_of(abandoned), until="CompleteAbort".__eq__)
    patient.commit_transaction(SECONDS)
