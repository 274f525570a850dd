"""Ports of tests: `tidelog.testing.ports`."""

import subprocess
import sys

import pytest

from tidelog.testing.ports import lasting_port


def test_no_other_process_gets_a_port_that_is_reserved_and_not_yet_used() -> None:
    mine = [lasting_port() for _ in range(3)]
    if not all(mine):
        pytest.skip("this system does not tell which ports outgoing connections get")
    assert len(set(mine)) == 3
    program = f"from tidelog.testing import ports; print([ports._reserve(port) for port in {mine}])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "[False, False, False]"
