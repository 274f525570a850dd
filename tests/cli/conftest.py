"""The command line as the tests use it: `tidelog("log", "dump", path)` in this process, and a sample to use it on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from tidelog.cli.main import run
from tidelog.storage.local.inspect import with_topic_id


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What --json wrote."""
        return [json.loads(line) for line in self.out.splitlines()]

    def rows_of(self, type_: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["type"] == type_]

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What verify --json found wrong."""
        return [row for row in self.rows_of("finding") if row["severity"] == "error"]


Command: TypeAlias = Callable[..., Outcome]


@pytest.fixture
def tidelog(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.delenv("TIDELOG_TEST_CLUSTER", raising=False)  # it is ours, and would be taken for a setting

    def command(*arguments: str | Path) -> Outcome:
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return command


@pytest.fixture(scope="session")
def written_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "data"
    assert run(["log", "sample", str(path)]) == 0
    return path


@pytest.fixture
def data(written_sample: Path, tmp_path: Path) -> Path:
    """A data directory that a test may damage."""
    shutil.copytree(written_sample, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def orders(data: Path) -> Path:
    """A partition of several segments in it, written by an idempotent producer."""
    return Path(with_topic_id(f"{data}/logs/orders/0"))
