"""How tests are shared out among the processes of pytest-xdist, what they inherit, and what holds for all of them."""

import re
import signal
from collections.abc import Iterator

import hypothesis
import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.support import client_libraries, object_server, watchdog
from tests.support.brokers import take_stalls

# Tests that start Sparks of their own and mostly wait for them. Larger units are handed out first, so these modules
# are run before single tests, and the last process to end is not one that has just begun with the longest test.
OWN_SPARKS = frozenset(
    f"tests/spark/test_{name}.py" for name in ("cluster", "pipeline", "pipeline_kills", "sink_crash")
)


_S3 = "S3"


def _unit_of(nodeid: str) -> str:
    """The name of the tests that are run in one process, one after another."""
    module = nodeid.split("::")[0]
    if module in OWN_SPARKS:
        return module
    if nodeid.startswith("tests/spark/"):
        return "spark"
    return _S3 if module.endswith("/test_cloud_objects.py") or "s3" in nodeid.partition("[")[2] else nodeid


class UnitScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Test by test, which suits tests of such different length; but those that share a Spark session or an S3 server
    go, first, to one process: a session is dear, and a server takes much of a core even when it has nothing to do."""

    def _split_scope(self, nodeid: str) -> str:
        return _unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return UnitScheduling(config, log)


# Timings decide no test: a busy machine may be as slow as it likes.
hypothesis.settings.register_profile(
    "tidelog", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tidelog")


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or _unit_of(nextitem.nodeid) != _S3:
        object_server.end_shared_server()


def pytest_configure() -> None:
    watchdog.watch_this_process()
    # A shell lets what it runs in the background ignore Ctrl-C, and so would every program that a test starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_broker_stands_still(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails the test during which the event loop of a broker was blocked: see `tests.support.watchdog`."""
    take_stalls()  # of what ran between the tests
    yield
    marker = request.node.get_closest_marker("may_stall")
    allowed = marker.args[0] if marker is not None else 0
    found = [stall for stall in take_stalls() if int(re.findall("blocked for ([0-9]+) ms", stall)[0]) > allowed]
    assert not found, "\n".join(found)


@pytest.fixture(autouse=True)
def client_libraries_leave_nothing() -> Iterator[None]:
    """What they leak belongs to the test that used them."""
    client_libraries.remember_sockets()
    yield
    client_libraries.clear_up()
