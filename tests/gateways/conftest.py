"""A broker for every worker that runs tests, and plain sockets to it."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.gateways.raw import RawClient
from tests.support.brokers import BrokerProcess, unique

StartBroker = Callable[[Mapping[str, str]], BrokerProcess]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process
        process.stop()
        assert "request failed" not in process.log, process.log


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartBroker]:
    """A broker with settings of its own."""
    started = []

    def start(settings: Mapping[str, str]) -> BrokerProcess:
        process = BrokerProcess(tmp_path_factory.mktemp("broker"), settings).start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.end()


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as connected:
        yield connected


@pytest.fixture
def topic(client: RawClient) -> str:
    name = unique("topic")
    client.create_topic(name)
    return name
