"""Idempotent producers over a network that breaks: every record once, and in order."""

import pytest
from confluent_kafka import KafkaError
from confluent_kafka import Message as Delivered

from tests.e2e.clients import Confluent
from tests.e2e.clients.base import SECONDS, Place
from tests.e2e.conftest import topic_maker
from tests.support.brokers import BrokerProcess
from tests.support.proxy import CuttingProxy

PARTITIONS = 3
COUNT = 3000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_every_record_is_stored_once_and_in_order(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    acknowledged: dict[int, Place] = {}
    failures: list[str] = []
    with (
        CuttingProxy(seed) as proxy,
        BrokerProcess(tmp_path_factory.mktemp("broker"), advertised_port=proxy.port) as broker,
    ):
        proxy.target = broker.second_port
        topic = topic_maker(broker)(PARTITIONS)
        producer = Confluent(f"127.0.0.1:{proxy.port}").producer(idempotent=True, config={"batch.num.messages": 50})
        proxy.cutting.set()
        for number in range(COUNT):

            def delivered(error: KafkaError | None, message: Delivered, number: int = number) -> None:
                if error is not None:
                    failures.append(error.str())
                else:
                    acknowledged[number] = (message.partition() or 0, message.offset() or 0)

            producer.produce(topic, b"%0200d" % number, partition=number % PARTITIONS, on_delivery=delivered)
            producer.poll(0.001 if number % 50 == 0 else 0)
        left = producer.flush(SECONDS)
        assert (left, failures) == (0, [])
        assert proxy.cuts >= 10, "the network was too good for this test"
        records = Confluent(broker.bootstrap).read(topic, COUNT, PARTITIONS)
        with Confluent(broker.bootstrap).reader(topic) as reader:
            assert [reader.watermarks(partition) for partition in range(PARTITIONS)] == [(0, COUNT // 3)] * 3
        for partition in range(PARTITIONS):
            values = [int(record.value or b"") for record in records if record.partition == partition]
            assert values == list(range(partition, COUNT, PARTITIONS))
        assert {int(record.value or b""): record.place for record in records} == acknowledged
