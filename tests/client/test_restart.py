"""A real broker that is killed and comes back: nothing acknowledged is lost, nothing is written twice."""

import threading
import time
from pathlib import Path

from tests.support.brokers import BrokerProcess
from tidelog.client import ClientOptions, ProducerOptions, connect

RECORDS = 3000


def test_a_producer_and_a_reader_get_over_a_broker_that_is_killed(tmp_path: Path) -> None:
    seen: list[int] = []

    def read(bootstrap: str) -> None:
        with connect(bootstrap) as client, client.consume("t", limit=RECORDS) as stream:
            seen.extend(int(record.value or b"") for record in stream)

    with BrokerProcess(tmp_path) as broker, connect(broker.bootstrap, ClientOptions(timeout_ms=60_000)) as client:
        client.create_topic("t")
        reader = threading.Thread(target=read, args=(broker.bootstrap,))
        reader.start()
        with client.producer(ProducerOptions(linger_ms=0, batch_bytes=500)) as producer:
            receipts = []
            for number in range(RECORDS):
                receipts.append(producer.send("t", str(number)))
                if number in (1000, 2000):
                    receipts[number - 500].result(30)  # it is in the middle of its work
                    broker.kill()
                    broker.start()
        offsets = [receipt.result(30).offset for receipt in receipts]
        reader.join(30)
        assert not reader.is_alive()
        stored = [int(record.value or b"") for record in client.consume("t", follow=False)]
    assert stored == list(range(RECORDS))
    assert seen == stored
    assert [offset for offset in offsets if offset >= 0] == sorted(set(offsets) - {-1})


def test_a_group_goes_on_after_a_restart(tmp_path: Path) -> None:
    settings = {"kafka.group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path, settings) as broker, connect(broker.bootstrap) as client:
        client.create_topic("t")
        with client.consume("t", group="g", limit=4) as stream:
            client.produce("t", "0")
            assert next(stream).value == b"0"
            client.produce("t", "1")
            broker.restart()
            began = time.monotonic()
            client.produce("t", "2")
            client.produce("t", "3")
            assert [record.value for record in stream] == [b"1", b"2", b"3"]
            assert time.monotonic() - began < 20
        assert [row.offset for row in client.committed("g").values()] == [4]
