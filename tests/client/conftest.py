"""A real broker for tests of the blocking client and of the page that shows how it is used."""

from collections.abc import Iterator

import pytest

import tidelog
from tidelog.client import Client, connect


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    with tidelog.embedded(kafka={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with connect(bootstrap) as client:
        yield client
