"""A short run of what `make torture` does for ten minutes, in a process of its own, which librdkafka may end."""

import random
import re
import subprocess
import sys

import pytest

from tests.support.faulty_spark import kill_session

# An assertion of librdkafka 2.16 fails now and then when connections are cut. It ends the clients, not the broker.
OF_THE_LIBRARY = re.compile(r"rdkafka_\w+\.c:\d+: \w+: Assertion")


def run(seed: int) -> "subprocess.CompletedProcess[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.torture.run", "--seconds", "12", "--seed", str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=180)
    finally:
        kill_session(process.pid)  # with the broker of a run that ended too early
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_repeated_or_torn_while_the_broker_is_killed() -> None:
    for _ in range(3):
        ran = run(random.SystemRandom().randrange(1 << 30))
        if ran.returncode >= 0 or not OF_THE_LIBRARY.search(ran.stderr):
            break
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert "\n0 findings" in ran.stdout, said
    amounts = re.search(
        r"([\d,]+) writes, ([\d,]+) transactions, ([\d,]+) reads, ([\d,]+) offset commits", ran.stdout
    )
    copied = re.search(r"copier ([\d,]+)", ran.stdout)
    assert amounts, said
    assert copied, said
    writes, transactions, reads, commits, copies = (int(n.replace(",", "")) for n in (*amounts.groups(), copied[1]))
    assert writes > 100, said
    assert min(transactions, reads, commits, copies) > 0, said
