"""A short run of what `make torture` does for ten minutes."""

import random
from pathlib import Path

import pytest

from tests.torture.run import torture


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_lost_repeated_or_torn_while_the_broker_is_killed(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    result = torture(tmp_path, 12, seed)
    said = "\n".join((f"seed {seed}", *result.lines()))
    assert not result.findings, said
    assert not result.errors, said
    history = result.history
    assert len(history.writes) > 100, said
    assert min(len(history.transactions), len(history.reads), len(history.commits), history.done["copier"]) > 0, said
