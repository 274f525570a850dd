"""Settings of group coordination."""

import pytest

from tidelog.broker.coordination.groups import GroupConfig
from tidelog.errors import InvalidSettings


def test_all_problems_are_shown_together() -> None:
    with pytest.raises(InvalidSettings) as refused:
        GroupConfig(
            group_max_size=0,
            group_min_session_timeout_ms=10,
            group_max_session_timeout_ms=5,
            group_consumer_heartbeat_interval_ms=90_000,
            group_consumer_default_assignor="mine",
            group_consumer_migration_policy="sometimes",
        )
    assert len(refused.value.problems) == 5
    assert "group.max.size must be at least 1, not 0" in refused.value.problems


@pytest.mark.parametrize(
    ("policy", "up", "down"),
    [("disabled", False, False), ("upgrade", True, False), ("downgrade", False, True), ("bidirectional", True, True)],
)
def test_what_a_migration_policy_allows(policy: str, up: bool, down: bool) -> None:
    config = GroupConfig(group_consumer_migration_policy=policy)
    assert (config.allows_upgrade, config.allows_downgrade) == (up, down)
