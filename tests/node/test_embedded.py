"""A broker in this process: `tidelog.embedded()` and the pytest fixtures."""

import socket
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped,unused-ignore]

import tidelog
from tidelog.embedding import EmbeddedBroker
from tidelog.errors import DirectoryInUse, InvalidSettings, TidelogError
from tidelog.testing.ports import lasting_port


def produce(bootstrap: str, topic: str, *values: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for value in values:
        producer.send(topic, value).get(timeout=20)
    producer.close()


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    values = []
    for message in consumer:
        values.append(message.value)
        if len(values) == count:
            break
    consumer.close()
    return values


def test_an_embedded_broker_serves_any_client_and_goes_with_its_data() -> None:
    with tidelog.embedded() as broker:
        directory = Path(broker.data_dir)
        produce(broker.bootstrap_servers, "hello", b"one", b"two")
        assert consume(broker.bootstrap_servers, "hello", 2) == [b"one", b"two"]
        assert directory.exists()
    assert not directory.exists()
    host, port = broker.bootstrap_servers.split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_with_a_directory_the_data_stays(tmp_path: Path) -> None:
    with tidelog.embedded(str(tmp_path / "data")) as broker:
        produce(broker.bootstrap_servers, "hello", b"kept")
    with tidelog.embedded(str(tmp_path / "data")) as broker:
        assert consume(broker.bootstrap_servers, "hello", 1) == [b"kept"]


def test_what_keeps_it_from_starting_is_raised_where_it_is_made(tmp_path: Path) -> None:
    with tidelog.embedded(str(tmp_path)), pytest.raises(DirectoryInUse, match="in use by process"):
        tidelog.embedded(str(tmp_path))
    with pytest.raises(InvalidSettings, match="retention"):
        tidelog.embedded(kafka={"log.retentionn.ms": "1"})


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", lasting_port())) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TidelogError, match=rf"cannot listen on 127.0.0.1:{port}"):
            tidelog.embedded(str(tmp_path), port=port)
    tidelog.embedded(str(tmp_path), port=port).stop()


def test_stopping_twice_is_fine() -> None:
    broker = tidelog.embedded()
    broker.stop()
    broker.stop()


def test_broker_configs_take_effect() -> None:
    with tidelog.embedded(kafka={"num.partitions": "7"}) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        assert len(producer.partitions_for("made-by-metadata")) == 7
        producer.close()


def test_the_fixtures_give_a_broker_and_a_topic(tidelog_broker: EmbeddedBroker, tidelog_topic: str) -> None:
    produce(tidelog_broker.bootstrap_servers, tidelog_topic, b"mine")
    assert consume(tidelog_broker.bootstrap_servers, tidelog_topic, 1) == [b"mine"]
    assert tidelog_topic.startswith("test_the_fixtures_give_a_broker_and_a_topic")


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tidelog.nonsense  # noqa: B018
