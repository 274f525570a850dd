"""How tests are shared out among the processes of pytest-xdist, and what they inherit."""

import signal

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]


class OneByOneButSpark(LoadScopeScheduling):  # type: ignore[misc]
    """Test by test, which suits tests of such different length; but those with Spark go, first, to one process: a
    session is dear, and two Sparks at once take longer on two cores than one after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith("tests/spark/") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return OneByOneButSpark(config, log)


def pytest_configure() -> None:
    """A shell lets what it runs in the background ignore Ctrl-C, and so would every program that a test starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
