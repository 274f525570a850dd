"""Pytest fixtures for your own tests: a real broker in the test process, one per worker, and a new topic per test.

Pytest finds the plugin when Tidelog is installed; it costs nothing until a fixture is used. See docs/testing.md.
"""

import itertools
import re
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tidelog.embedding import EmbeddedBroker

_NUMBERS = itertools.count(1)


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
