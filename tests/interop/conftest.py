"""Clients of other languages, opt-in (`TIDELOG_INTEROP=1`): they come from registries that Tidelog never needs."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.brokers import BrokerProcess

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidelog-interop"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("TIDELOG_INTEROP") != "1":
        here = Path(__file__).parent
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="set TIDELOG_INTEROP=1 to try clients from other registries"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process
        process.stop()
        assert "request failed" not in process.log, process.log


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name}")
    return path


def run(command: list[str], *, cwd: Path | None = None, seconds: float = 300) -> str:
    """What it printed; a failure shows all of it."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
