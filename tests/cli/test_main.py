"""The command itself: help, version, and how it fails."""

import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Command
from tidelog import __version__
from tidelog.cli import main as cli_main
from tidelog.errors import StorageFull

TIDELOG = [sys.executable, "-m", "tidelog"]


def test_help_names_the_command_groups(tidelog: Command) -> None:
    code, out, err = tidelog("--help")
    assert (code, err) == (0, "")
    assert "log" in out
    assert out == tidelog().out


def test_version_is_the_packages(tidelog: Command) -> None:
    assert tidelog("--version").out == f"tidelog {__version__}\n"


@pytest.mark.parametrize("arguments", [["frobnicate"], ["log", "frobnicate"], ["--frobnicate"], ["log", "dump"]])
def test_a_command_that_is_not_understood_is_one_line_and_exit_code_2(tidelog: Command, arguments: list[str]) -> None:
    code, out, err = tidelog(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("tidelog: error: ")
    assert err.count("\n") == 1
    assert "--help" in err


def test_a_missing_path_is_named(tidelog: Command, tmp_path: Path) -> None:
    code, _, err = tidelog("log", "dump", tmp_path / "nowhere")
    assert code == 2
    assert "nowhere" in err


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (StorageFull("cannot append:\nno space"), "tidelog: error: cannot append: no space\n"),
        (
            PermissionError(13, "Permission denied", "/data"),
            "tidelog: error: Permission denied: /data; check the path",
        ),
        (click.ClickException("nothing was changed"), "tidelog: error: nothing was changed\n"),
    ],
)
def test_a_failure_is_one_line_and_exit_code_1(
    tidelog: Command, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    monkeypatch.setattr(cli_main.cli, "main", _raising(error))
    code, out, err = tidelog("log")
    assert (code, out) == (1, "")
    assert err.startswith(line)
    assert err.count("\n") == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_quiet_and_exit_code_130(
    tidelog: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(cli_main.cli, "main", _raising(error))
    assert tidelog("log") == (130, "", "")


def _raising(error: BaseException) -> object:
    def main(*_: object, **__: object) -> None:
        raise error

    return main


def test_help_imports_neither_rich_nor_the_storage() -> None:
    script = "import sys; from tidelog.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert not [name for name in loaded if name.split(".")[0] in ("rich", "asyncio", "cramjam", "numpy")]
    assert not [name for name in loaded if name.startswith("tidelog.storage")]


def test_a_broker_without_a_cluster_imports_no_client_and_no_library_of_a_cluster() -> None:
    """They would add a tenth of a second to its start, and 6 MB."""
    script = "import sys; import tidelog.cli.serve, tidelog.node; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ours = ("tidelog.client", "tidelog.postgres", "tidelog.storage.shared", "tidelog.node.cluster")
    assert not [name for name in done.stdout.split() if name.startswith((*ours, "asyncpg", "obstore", "pyarrow"))]


def test_the_real_command_shows_and_verifies_a_log(data: Path) -> None:
    dump = subprocess.run([*TIDELOG, "log", "dump", data], capture_output=True, text=True, check=True)
    assert "orders" in dump.stdout
    verify = subprocess.run([*TIDELOG, "log", "verify", data], capture_output=True, text=True, check=True)
    assert verify.stdout.endswith(": sound\n")
    assert verify.stderr == ""


@pytest.mark.parametrize("option", ["--json", "--limit=0"])
def test_a_reader_that_has_seen_enough_is_no_error(data: Path, option: str) -> None:
    dump = subprocess.Popen(
        [*TIDELOG, "log", "dump", data, "--records", option],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pipesize=4096,  # less than there is to say
    )
    assert dump.stdout is not None
    dump.stdout.read(1)
    dump.stdout.close()
    _, err = dump.communicate()
    assert (err, dump.returncode) == (b"", 1)


def test_ctrl_c_ends_the_real_command_quietly(data: Path) -> None:
    dump = subprocess.Popen(
        [*TIDELOG, "log", "dump", data, "--records", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pipesize=4096,  # it is stuck in the middle of its work
    )
    assert dump.stdout is not None
    dump.stdout.read(1)
    dump.send_signal(signal.SIGINT)
    _, err = dump.communicate()
    assert (err.strip(), dump.returncode) == (b"", 130)
