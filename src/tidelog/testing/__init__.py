"""Pytest fixtures for your own tests: a real broker in the test process, one per worker; a real cluster of broker
processes; and a new topic per test.

Pytest finds the plugin when Tidelog is installed; it costs nothing until a fixture is used. See docs/testing.md.
"""

import itertools
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tidelog.embedding import EmbeddedBroker
    from tidelog.testing.local_cluster import LocalCluster, SharedCluster

_NUMBERS = itertools.count(1)
_CLUSTER = "tidelog_cluster"
_BROKERS = 3
_SETTINGS = {  # so that tests need not wait long for what happens to a killed broker
    "cluster.heartbeat-ms": "500",
    "cluster.fence-after-ms": "2500",
    "cluster.dead-after-ms": "4000",
    "kafka.group.initial.rebalance.delay.ms": "0",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_CLUSTER}(brokers={_BROKERS}, settings={{}}): the number of brokers and the settings of the fixture"
        f" {_CLUSTER}; see docs/testing.md of Tidelog",
    )


@pytest.fixture(scope="session")
def tidelog_broker() -> "Iterator[EmbeddedBroker]":
    """A running broker. Its `bootstrap_servers` goes into any Kafka client."""
    from tidelog.embedding import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def tidelog_topic_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """A function that returns a topic name no other test uses, a new one each time."""
    stem = re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)[:100]
    return lambda: f"{stem}-{next(_NUMBERS)}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def tidelog_topic(tidelog_broker: "EmbeddedBroker", tidelog_topic_name: Callable[[], str]) -> str:
    """The name of a new topic with one partition."""
    name = tidelog_topic_name()
    tidelog_broker.create_topic(name)
    return name


@pytest.fixture(scope="session")
def _tidelog_shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SharedCluster]":
    from tidelog.testing.local_cluster import SharedCluster

    shared = SharedCluster(lambda: tmp_path_factory.mktemp("tidelog-cluster"))
    yield shared
    shared.end()


@pytest.fixture
def tidelog_cluster(request: pytest.FixtureRequest, _tidelog_shared_cluster: "SharedCluster") -> "LocalCluster":
    """A cluster of three brokers, all of which run when the test begins."""
    from tidelog.errors import MissingExtra

    marker = request.node.get_closest_marker(_CLUSTER)
    brokers, settings = _asked_for(**(marker.kwargs if marker is not None else {}))
    try:
        return _tidelog_shared_cluster.get(brokers, {**_SETTINGS, **settings})
    except MissingExtra as error:
        pytest.fail(str(error), pytrace=False)


def _asked_for(brokers: int = _BROKERS, settings: Mapping[str, str] | None = None) -> tuple[int, Mapping[str, str]]:
    """The arguments of the marker."""
    return brokers, settings or {}
