"""A short run of what `make torture-cluster` does for ten minutes, with few faults."""

import os
import random
from pathlib import Path

import pytest

from tests.torture.cluster import torture


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_is_lost_repeated_or_torn_while_a_cluster_fails(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    seconds = 20 if "TIDELOG_TEST_CLUSTER" in os.environ else 8
    # Other tests may keep the machine busy: how soon everything serves again does not decide this test.
    result = torture(tmp_path, seconds, seed, calm=1.5, recovery_seconds=150)
    said = "\n".join((f"seed {seed}", *result.lines()))
    assert not result.findings, said
    assert not result.errors, said
    history = result.history
    assert len(history.writes) > 100, said
    assert min(len(history.reads), len(history.commits), sum(result.troubles.values())) > 0, said
