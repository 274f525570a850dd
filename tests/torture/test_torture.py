"""A short run of what `make torture` does for ten minutes, in a process of its own, which librdkafka may end."""

import random
import re

import pytest

from tests.torture.run import is_of_the_library, round_apart


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_repeated_or_torn_while_the_broker_is_killed() -> None:
    for _ in range(3):
        ran = round_apart(12, random.SystemRandom().randrange(1 << 30))
        if not is_of_the_library(ran):
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
