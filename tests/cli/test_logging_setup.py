"""Lines about the broker itself, on stderr."""

import subprocess
import sys

import pytest

PROGRAM = """
import structlog
from tidelog.cli.logging_setup import configure_logs

configure_logs("info", {form!r})
def handle():
    record = "what a client sent"
    raise ValueError("not foreseen")
try:
    handle()
except ValueError:
    structlog.get_logger("tidelog").exception("a request failed", api="Produce")
"""


@pytest.mark.parametrize("form", ["human", "json"])
def test_a_traceback_tells_where_and_why_but_nothing_of_the_data(form: str) -> None:
    program = PROGRAM.format(form=form)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    for said in ("a request failed", "Produce", "in handle", "ValueError: not foreseen"):
        assert said in done.stderr
    assert "what a client sent" not in done.stderr
