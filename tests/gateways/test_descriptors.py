"""A broker that runs out of file descriptors: it logs that once, serves the clients
that are connected, and accepts others later."""

import contextlib
from pathlib import Path

import pytest

from tests.gateways.conftest import StartBroker
from tests.gateways.raw import RawClient, all_closed
from tests.support.brokers import BrokerProcess, eventually, unique

LIMIT = 256
TAKEN = 60  # descriptors that the broker has without knowing it


@pytest.fixture
def poor_broker(start_broker: StartBroker) -> BrokerProcess:
    """With few descriptors, of which many are open already, so that the limit of connections does not help."""
    script = f'for i in $(seq {TAKEN}); do exec {{fd}}</dev/null; done; ulimit -n {LIMIT}; exec "$0" "$@"'
    settings = {"kafka.max.connections": "10000", "open-segments": "8"}
    return start_broker(settings, under=("bash", "-c", script))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_running_out_of_descriptors_is_said_once_and_ends_with_the_connections(poor_broker: BrokerProcess) -> None:
    with RawClient(poor_broker.port) as steady:
        name = unique("topic")
        steady.create_topic(name)
        before = cpu_seconds(poor_broker.pid)
        crowd: list[RawClient] = []
        with contextlib.suppress(OSError):
            crowd.extend(RawClient(poor_broker.port) for _ in range(LIMIT))
        eventually(lambda: "out of file descriptors" in poor_broker.log)
        # Files can still be opened, and who is connected is served.
        assert steady.produce(name, b"value", acks=-1).error_code == 0
        for _ in range(3):
            steady.create_topic(unique("topic"), 3)
        assert poor_broker.log.count("out of file descriptors") == 1
        assert "Traceback" not in poor_broker.log
        all_closed(crowd)

        def another_is_served() -> bool:
            with contextlib.suppress(OSError), RawClient(poor_broker.port) as another:
                return another.is_answered()
            return False

        eventually(another_is_served)
        eventually(lambda: "file descriptors are available again" in poor_broker.log)
        assert poor_broker.log.count("out of file descriptors") == 1
        assert cpu_seconds(poor_broker.pid) - before < 5
        assert poor_broker.log.count("\n") < 50


@pytest.mark.local_engine(reason="so few files are not enough for a burst of connections in a cluster")
def test_connections_are_bounded_below_the_limit_of_files(start_broker: StartBroker) -> None:
    script = f'ulimit -n {LIMIT}; exec "$0" "$@"'
    process = start_broker(under=("bash", "-c", script))
    with RawClient(process.port) as steady:
        crowd: list[RawClient] = []
        with contextlib.suppress(OSError):
            crowd.extend(RawClient(process.port) for _ in range(LIMIT - 20))
        eventually(lambda: "connection refused" in process.log)
        assert steady.is_answered()
        assert "out of file descriptors" not in process.log
        assert process.log.count("connection refused") == 1
        all_closed(crowd)
