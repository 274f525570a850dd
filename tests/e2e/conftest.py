"""Brokers for every worker that runs tests, and the clients to ask them with."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.e2e.clients import CLIENTS, Client
from tests.e2e.clients.base import SECONDS
from tests.e2e.clients.confluent import common
from tests.e2e.clients.confluent_admin import AdminClient, NewTopic
from tests.support.brokers import BrokerProcess, unique
from tests.support.engines import WHOLE, Engine, SharedBrokers, broker_process, run_with_engines

MakeTopic = Callable[..., str]


# With TIDELOG_TEST_CLUSTER=1 these are run over a cluster of one broker, too. tests/cluster/test_clients.py has those
# of records, transactions, groups and idempotence, over three brokers; torture and simulation have those of crashes.
_OVER_A_CLUSTER = (
    "test_admin_confluent",
    "test_admin_kafka_python",
    "test_compaction",
    "test_compaction_transactions",
    "test_group_configs",
    "test_kcat",
    "test_tables",
    "test_topic_configs",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    run_with_engines(metafunc, cluster=WHOLE and metafunc.module.__name__.endswith(_OVER_A_CLUSTER))


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


@pytest.fixture(scope="session")
def shared_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBrokers]:
    with SharedBrokers.started(tmp_path_factory, forbidden="Traceback") as brokers:
        yield brokers


@pytest.fixture
def broker(engine: Engine, shared_brokers: SharedBrokers) -> BrokerProcess:
    """Shared: a test makes its own topics and groups, and never stops it."""
    return shared_brokers.get(engine)


@pytest.fixture
def own_broker(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """For tests that stop it or want it for themselves."""
    with broker_process(engine, tmp_path_factory.mktemp("broker"), is_killed=True) as process:
        yield process
        assert "Traceback" not in process.log, process.log


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest, broker: BrokerProcess) -> Client:
    return CLIENTS[request.param](broker.bootstrap)


@pytest.fixture
def make_topic(broker: BrokerProcess) -> MakeTopic:
    return topic_maker(broker)


def topic_maker(broker: BrokerProcess) -> MakeTopic:
    def make(partitions: int = 1, configs: Mapping[str, str] | None = None, *, name: str = "topic") -> str:
        topic = unique(name)
        admin = AdminClient(common(broker.bootstrap))
        new = NewTopic(topic, partitions, 1, config=dict(configs or {}))
        admin.create_topics([new], operation_timeout=SECONDS)[topic].result(SECONDS)
        return topic

    return make
