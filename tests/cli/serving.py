"""A real `tidelog serve` for the commands that talk to a broker; a plugin that the tests of those commands name.

Not to be imported: pytest does that.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.processes import Put, Shown
from tests.support.brokers import BrokerProcess, unique
from tidelog.client import connect


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker of these tests' own, as long as they run."""
    settings = {"kafka.auto.create.topics.enable": "false", "kafka.group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(Path(tmp_path_factory.mktemp("served")), settings) as broker:
        yield broker.bootstrap


@pytest.fixture
def broker(served: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Commands of the test find the broker by themselves."""
    monkeypatch.setenv("TIDELOG_BOOTSTRAP", served)
    return served


@pytest.fixture
def topic(broker: str, tidelog: Command) -> str:
    """A topic with three partitions."""
    name = unique("topic")
    assert tidelog("topic", "create", name, "--partitions", "3").code == 0
    return name


@pytest.fixture
def put(broker: str) -> Iterator[Put]:
    """Writes values to a partition, without a command: `put(topic, "a", "b", partition=1)`."""
    with connect(broker) as client:

        def values(topic: str, *values: str, partition: int = 0) -> None:
            with client.producer() as producer:
                for value in values:
                    producer.send(topic, value, partition=partition)

        yield values


@pytest.fixture
def shown(tidelog: Command) -> Shown:
    """What `tidelog consume --exit` writes."""

    def consume(topic: str, *options: str) -> str:
        code, out, err = tidelog("consume", topic, "--exit", *options)
        assert (code, err) == (0, "")
        return out

    return consume
