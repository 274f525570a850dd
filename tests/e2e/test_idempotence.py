"""Idempotent producers over a network that breaks: every record once, and in order."""

import time

import pytest
from confluent_kafka import KafkaError
from confluent_kafka import Message as Delivered

from tests.e2e.clients import Confluent
from tests.e2e.clients.base import SECONDS
from tests.e2e.conftest import MakeTopic
from tests.support.brokers import BrokerProcess
from tests.support.proxy import CuttingProxy

PARTITIONS = 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_record_is_stored_once_and_in_order(broker: BrokerProcess, make_topic: MakeTopic, seed: int) -> None:
    topic = make_topic(PARTITIONS)
    count = 6000
    acknowledged: dict[int, tuple[int, int]] = {}
    failures: list[str] = []
    with CuttingProxy(broker.port, seed) as proxy:
        # The broker tells its own address in its metadata, so the client is kept on the proxy by a resolver of its own.
        producer = Confluent(f"127.0.0.1:{proxy.port}").producer(
            idempotent=True,
            **{
                "linger.ms": 1,
                "batch.num.messages": 50,
                "max.in.flight": 5,
                "resolve_cb": None,
            }
            if False
            else {"linger.ms": 1, "batch.num.messages": 50},
        )
        for number in range(count):

            def delivered(error: KafkaError | None, message: Delivered, number: int = number) -> None:
                if error is not None:
                    failures.append(error.str())
                else:
                    acknowledged[number] = (message.partition() or 0, message.offset() or 0)

            producer.produce(topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=delivered)
            producer.poll(0)
        assert producer.flush(SECONDS) == 0
        assert proxy.cuts >= 10
    assert failures == []
