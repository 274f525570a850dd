"""franz-go, the Go client."""

import shutil
from pathlib import Path

import pytest

from tests.interop.conftest import CACHE, run, tool
from tests.support.brokers import BrokerProcess

MODULES = ["github.com/twmb/franz-go@v1.19.5", "github.com/twmb/franz-go/pkg/kadm@v1.16.1"]


@pytest.fixture(scope="session")
def program() -> str:
    folder = CACHE / "franz-go"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).parent / "go" / "main.go", folder)
    if not (folder / "go.mod").exists():
        run([tool("go"), "mod", "init", "interop"], cwd=folder)
        run([tool("go"), "get", *MODULES], cwd=folder)
    run([tool("go"), "build", "-o", "interop", "."], cwd=folder)
    return str(folder / "interop")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_go_client(broker: BrokerProcess, program: str) -> None:
    printed = run([program, broker.bootstrap])
    assert printed.splitlines() == ["OK none", "OK gzip", "OK snappy", "OK lz4", "OK zstd"]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_go_client_commits_and_aborts_in_turns(broker: BrokerProcess, program: str) -> None:
    assert run([program, broker.bootstrap, "turns"]).splitlines() == ["OK turns"]
