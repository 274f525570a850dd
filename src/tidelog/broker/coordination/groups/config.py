"""The settings of group coordination, with the names and defaults of Kafka's broker configs."""

from dataclasses import dataclass

from tidelog.errors import InvalidSettings

UNBOUNDED_SIZE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class GroupConfig:
    # The classic protocol.
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = UNBOUNDED_SIZE
    new_member_join_timeout_ms: int = 300_000
    # The consumer protocol.
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = UNBOUNDED_SIZE
    group_consumer_default_assignor: str = "uniform"
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_max_regex_length: int = 10_000
    # Committed offsets.
    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 7 * 24 * 60
    offsets_retention_check_interval_ms: int = 600_000
    # Bounds of what is kept in memory, over all groups.
    tidelog_max_groups: int = 50_000
    tidelog_max_group_members: int = 50_000
    tidelog_max_group_bytes: int = 128 << 20
    tidelog_max_group_offset_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        problems = [
            f"{name.replace('_', '.')} must be at least {least}, not {getattr(self, name)}"
            for name, least in (
                ("group_min_session_timeout_ms", 1),
                ("group_initial_rebalance_delay_ms", 0),
                ("group_max_size", 1),
                ("new_member_join_timeout_ms", 1),
                ("group_consumer_session_timeout_ms", 1),
                ("group_consumer_heartbeat_interval_ms", 1),
                ("group_consumer_max_size", 1),
                ("group_consumer_max_regex_length", 1),
                ("offset_metadata_max_bytes", 0),
                ("offsets_retention_minutes", 1),
                ("offsets_retention_check_interval_ms", 1),
                ("tidelog_max_groups", 1),
                ("tidelog_max_group_members", 1),
                ("tidelog_max_group_bytes", 1),
                ("tidelog_max_group_offset_bytes", 1),
            )
            if getattr(self, name) < least
        ]
        if self.group_max_session_timeout_ms < self.group_min_session_timeout_ms:
            problems.append("group.max.session.timeout.ms must not be below group.min.session.timeout.ms")
        if self.group_consumer_heartbeat_interval_ms >= self.group_consumer_session_timeout_ms:
            problems.append("group.consumer.heartbeat.interval.ms must be below group.consumer.session.timeout.ms")
        if self.group_consumer_default_assignor not in ("uniform", "range"):
            problems.append(f"there is no assignor {self.group_consumer_default_assignor!r}: use uniform or range")
        if self.group_consumer_migration_policy not in ("disabled", "upgrade", "downgrade", "bidirectional"):
            problems.append(
                "group.consumer.migration.policy must be disabled, upgrade, downgrade or bidirectional,"
                f" not {self.group_consumer_migration_policy!r}"
            )
        if problems:
            raise InvalidSettings(problems)

    @property
    def allows_upgrade(self) -> bool:
        return self.group_consumer_migration_policy in ("upgrade", "bidirectional")

    @property
    def allows_downgrade(self) -> bool:
        return self.group_consumer_migration_policy in ("downgrade", "bidirectional")

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000
