"""Kafka's clients over an engine on which nothing is at once: the broker is as right over it as over local files.

The tests of records, groups and transactions run again, against a broker whose appends are kept later, whose reads
come later and whose logs take a while to be opened; and against one that loses appends, or does not say whether it
has them.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.clients import CLIENTS, Message
from tests.e2e.clients.transactional import TRANSACTIONAL
from tests.e2e.conftest import topic_maker
from tests.e2e.test_groups import *  # noqa: F403
from tests.e2e.test_idempotence import *  # noqa: F403
from tests.e2e.test_records import *  # noqa: F403
from tests.e2e.test_transactions import *  # noqa: F403
from tests.support import slow_engine
from tests.support.brokers import BrokerProcess, unique

pytestmark = pytest.mark.slow


def slow_broker(directory: pytest.TempPathFactory, failing: float = 0.0) -> BrokerProcess:
    process = BrokerProcess(directory.mktemp("slow"), program=[slow_engine.__file__])
    process.environment = {"SLOW_FAILING": str(failing)}
    return process


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with slow_broker(tmp_path_factory) as process:
        yield process
        process.stop()
        assert "Traceback" not in process.log, process.log


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with slow_broker(tmp_path_factory) as process:
        yield process
        assert "Traceback" not in process.log, process.log


@pytest.fixture(scope="module")
def unreliable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with slow_broker(tmp_path_factory, failing=0.2) as process:
        yield process
        process.stop()
        assert "Traceback" not in process.log, process.log


@pytest.mark.parametrize("library", list(CLIENTS))
def test_an_idempotent_producer_loses_and_repeats_nothing_although_appends_fail(
    unreliable: BrokerProcess, library: str
) -> None:
    client, topic = CLIENTS[library](unreliable.bootstrap), topic_maker(unreliable)()
    sent = [b"%d" % number for number in range(200)]
    for first in range(0, len(sent), 10):
        client.produce(topic, [Message(value, partition=0) for value in sent[first : first + 10]], idempotent=True)
    assert [record.value for record in client.read(topic, len(sent))] == sent


@pytest.mark.parametrize("library", list(TRANSACTIONAL))
def test_transactions_are_all_or_nothing_although_appends_and_markers_fail(
    unreliable: BrokerProcess, library: str
) -> None:
    topic = topic_maker(unreliable)(2)
    expected = []
    with TRANSACTIONAL[library](unreliable.bootstrap, unique("id")) as producer:
        producer.init()
        for number in range(10):
            producer.begin()
            for partition in (0, 1):
                producer.send(topic, b"%d.%d" % (number, partition), partition)
            if number % 3:
                producer.commit()
                expected += [b"%d.%d" % (number, partition) for partition in (0, 1)]
            else:
                producer.abort()
        assert sorted(producer.read(topic, 2)) == sorted(expected)
