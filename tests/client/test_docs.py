"""What docs/client.md shows works as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tidelog

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_python_examples_run_from_top_to_bottom(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = "\n".join(blocks("python")).replace("127.0.0.1:9092", bootstrap)
    exec(compile(program, str(PAGE), "exec"), {"__name__": "__main__"})
    assert "one coffee" in capsys.readouterr().out


def test_the_shell_examples_run_from_top_to_bottom(bootstrap: str, tmp_path: Path) -> None:
    command = tmp_path / "tidelog"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tidelog "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e"],
        input="\n".join(blocks("sh")),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, "TIDELOG_BOOTSTRAP": bootstrap},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "table 7=one coffee" in done.stdout
    assert "orders deleted" in done.stdout


def test_importing_the_package_is_instant() -> None:
    script = "import sys, tidelog; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "tidelog.client" not in loaded
    assert "asyncio" not in loaded
    assert tidelog.connect.__module__ == "tidelog.client.blocking"
