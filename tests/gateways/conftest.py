"""Brokers of both engines for every worker that runs tests, and plain sockets to them.

A test that uses `engine`, itself or by a fixture such as `client`, runs with the local engine and over a cluster.
What takes long over a cluster does so only with TIDELOG_TEST_CLUSTER=1. These have brokers of their own, with the
local engine: test_cold_fetch.py and test_unreadable.py, which are about its files, and test_two_brokers.py, which
plants an ownership; tests/storage/shared and tests/cluster have their like.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.gateways.raw import RawClient
from tests.support.brokers import BrokerProcess, unique
from tests.support.engines import WHOLE, Engine, SharedBrokers, broker_process, run_with_engines

StartBroker = Callable[..., BrokerProcess]

# Modules whose tests take little time over a cluster, as far as they share a broker.
_QUICK = ("test_fetch", "test_fetch_sessions", "test_topics", "test_transactions")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_quick = metafunc.module.__name__.endswith(_QUICK) and "start_broker" not in metafunc.fixturenames
    run_with_engines(metafunc, cluster=WHOLE or is_quick)


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


@pytest.fixture(scope="session")
def shared_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBrokers]:
    with SharedBrokers.started(tmp_path_factory, forbidden="request failed") as brokers:
        yield brokers


@pytest.fixture
def broker(engine: Engine, shared_brokers: SharedBrokers) -> BrokerProcess:
    """Shared: a test makes its own topics and groups, and never stops it."""
    return shared_brokers.get(engine)


@pytest.fixture
def start_broker(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartBroker]:
    """A broker with settings, and options of `BrokerProcess`, of its own."""
    started = []

    def start(settings: dict[str, str] | None = None, **options: Any) -> BrokerProcess:
        process = broker_process(engine, tmp_path_factory.mktemp("broker"), settings, **options)
        started.append(process)
        return process.start()

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
