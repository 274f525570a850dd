"""The README's commands are run, in order, in one empty directory, and must do and print what it says.

In a block of the language console or bash, lines with a prompt are commands and what follows them is their output, in
which `...` stands for anything; without prompts every line is a command. A make target must exist; it is not run,
because this test is part of one. The broker that `make run` would start runs beside them, on a port of its own.
Python is run, too. A block that must not be run says why, in a comment above it: <!-- not run: reason -->
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tidelog.embedding import EmbeddedBroker

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

_BLOCK = re.compile(
    r"(?:^<!-- not run: *(?P<reason>.*?) *-->\n)?^```(?:console|bash)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_PROMPT = "$ "


class Example(NamedTuple):
    command: str
    output: str | None
    """None where the README does not show it."""


def examples() -> Iterator[Example]:
    for block in _BLOCK.finditer(README):
        if block["reason"] is not None:
            assert block["reason"], "a block that is not run must say why"
            continue
        yield from _examples_of(block["text"].splitlines())


def _examples_of(lines: list[str]) -> Iterator[Example]:
    if not any(line.startswith(_PROMPT) for line in lines):
        yield from (Example(line, None) for line in lines if line)
        return
    command, output = "", []
    for line in [*lines, _PROMPT]:
        if not line.startswith(_PROMPT):
            output.append(line)
            continue
        if command:
            yield Example(command, "\n".join(output))
        command, output = line.removeprefix(_PROMPT), []


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def test_the_commands_of_the_readme_do_what_it_says(tmp_path: Path, broker: EmbeddedBroker) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    binaries = os.path.dirname(sys.executable)
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PYTHONUTF8": "1",
        "TIDELOG_BOOTSTRAP": broker.bootstrap_servers,
    }
    ran = 0
    for command, expected in examples():
        make = re.match(r"make +([a-z-]+)", command)
        if make is not None:
            assert make[1] in targets, f"{command}: the Makefile has no such target"
            continue
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert done.stderr == "", command
        if expected is not None:
            assert matches(expected, done.stdout), (
                f"{command}\n{done.stdout}\nis not what the README shows:\n{expected}"
            )
        ran += 1
    assert ran > 5


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "0 b'user-1' b'hello'\n"


def matches(expected: str, actual: str) -> bool:
    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.rstrip().splitlines())

    pattern = ".*".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(actual), re.DOTALL) is not None


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\nb", "a  \nb\n\n", True),
        ("a ... c", "a b\nb c", True),
        ("a", "a\nb", False),
        ("", "a", False),
        ("a.c", "abc", False),
    ],
)
def test_output_is_compared_without_trailing_space_and_with_gaps(expected: str, actual: str, same: bool) -> None:
    assert matches(expected, actual) is same


def test_the_readme_names_the_three_commands() -> None:
    commands = [command for command, _ in examples()]
    assert [command.split("#")[0].strip() for command in commands if command.startswith("make")] == [
        "make demo",
        "make run",
        "make test",
    ]


def test_the_links_of_the_readme_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
