"""A broker for every worker that runs tests, and the clients to ask it with."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.e2e.clients import CLIENTS, Client
from tests.e2e.clients.base import SECONDS
from tests.e2e.clients.confluent import common
from tests.e2e.clients.confluent_admin import AdminClient, NewTopic
from tests.support.brokers import BrokerProcess, unique

MakeTopic = Callable[..., str]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Shared: a test makes its own topics and groups, and never stops it."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process
        assert process.is_running, f"the broker died:\n{process.log[-4000:]}"
        process.stop()
        assert "Traceback" not in process.log, process.log


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """For tests that stop it or want it for themselves."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
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
