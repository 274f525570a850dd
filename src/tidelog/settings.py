"""Settings: frozen values that are passed down. They are validated once, and all problems are reported together.

Nothing below the command line reads files or the environment. Names and defaults follow Kafka's topic configs.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tidelog.errors import InvalidSettings

DAY_MS = 86_400_000
UNLIMITED = -1


class FlushPolicy(StrEnum):
    """When appended bytes are forced to the device.

    ACKS: an append that asks for durability waits for a group-commit fdatasync; others do not wait.
    ALWAYS: every append waits for a group-commit fdatasync.
    INTERVAL: no append waits; a flush runs every `flush_ms` or after `flush_messages`, whichever comes first.
    OS: no append waits; the operating system decides when to write. Sealed segments are still flushed, so that
        recovery after a crash reads no more than the active segment.
    """

    ACKS = "acks"
    ALWAYS = "always"
    INTERVAL = "interval"
    OS = "os"


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """How a compacted partition is compacted."""

    delete_retention_ms: int = DAY_MS
    min_lag_ms: int = 0
    max_lag_ms: int = 2**63 - 1
    min_dirty_ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """Resources that compaction may use, over all partitions."""

    dedupe_buffer_bytes: int = 128 << 20
    load_factor: float = 0.9
    bytes_per_second: float = float("inf")
    backoff_ms: int = 15_000


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings of one partition's log."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    max_message_bytes: int = 1_048_588
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = UNLIMITED
    flush: FlushPolicy = FlushPolicy.ACKS
    flush_ms: int = 1000
    flush_messages: int = 10_000
    producer_id_expiration_ms: int = DAY_MS
    compaction: CompactionSettings | None = None

    def __post_init__(self) -> None:
        problems = []

        def at_least(name: str, least: int) -> None:
            value = getattr(self, name)
            if value < least:
                problems.append(f"{name.replace('_', '.')} must be at least {least}, not {value}")

        at_least("segment_bytes", 1024)
        at_least("segment_ms", 1)
        at_least("index_interval_bytes", 0)
        at_least("segment_index_bytes", 24)
        at_least("max_message_bytes", 0)
        at_least("retention_ms", UNLIMITED)
        at_least("retention_bytes", UNLIMITED)
        at_least("flush_ms", 1)
        at_least("flush_messages", 1)
        at_least("producer_id_expiration_ms", 1)
        if self.segment_bytes > 0x7FFF_FFFF:
            problems.append(f"segment.bytes must be below 2 GiB, not {self.segment_bytes}")
        if problems:
            raise InvalidSettings(problems)


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Settings that all partitions of one data directory share."""

    tail_cache_bytes: int = 64 << 20
    open_segments: int = 8192
    flush_threads: int = 4

    def __post_init__(self) -> None:
        problems = [
            f"{name.replace('_', '.')} must be at least {least}, not {getattr(self, name)}"
            for name, least in (("tail_cache_bytes", 0), ("open_segments", 1), ("flush_threads", 1))
            if getattr(self, name) < least
        ]
        if problems:
            raise InvalidSettings(problems)


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the host. An address is parsed, because a host name may begin with "127."
    and resolve to anything."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class ListenerSettings:
    """An address to listen on, and the address that clients are told to connect to (by default the same)."""

    host: str
    port: int
    advertised_host: str = ""
    advertised_port: int = 0

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def __str__(self) -> str:
        return _address(self.host, self.port)

    @property
    def advertised(self) -> str:
        return _address(self.advertised_host or self.host, self.advertised_port or self.port)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


AUTO = -1
"""As a node id: take one that no other broker of the cluster has."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A cluster of brokers that share a database and an object store."""

    metadata: str = field(repr=False)  # it may contain a password
    """URL of the database: postgresql://..."""
    storage: str
    """URL of the object store: s3://bucket/prefix, gs://..., az://..., file:///directory."""
    linger_ms: int = 5
    bundle_bytes: int = 4 << 20
    buffer_bytes: int = 64 << 20
    cache_bytes: int = 64 << 20
    uploads: int = 4
    append_timeout_ms: int = 30_000
    heartbeat_ms: int = 1_000
    """A broker beats, and looks for changes, this often."""
    fence_after_ms: int = 5_000
    """A broker without a successful beat for this long serves nothing: by its own clock."""
    dead_after_ms: int = 8_000
    """A broker without a beat for this long is presumed dead: by the database's clock."""
    hand_over_ms: int = 5_000
    """A broker that stops waits at most this long for others to take over."""
    segment_bytes: int = 64 << 20
    merge_fan_in: int = 32
    merge_interval_ms: int = 5_000
    garbage_grace_ms: int = 600_000
    """An object that nothing refers to is kept this long: longer than any fetch that may still read it."""
    garbage_interval_ms: int = 60_000
    orphan_age_ms: int = 3_600_000
    """Objects of this age that the database does not know are garbage."""
    orphan_interval_ms: int = 3_600_000

    def __post_init__(self) -> None:
        problems = [
            f"cluster.{name.replace('_', '-')} must be at least {least}, not {getattr(self, name)}"
            for name, least in _LEAST_IN_CLUSTER.items()
            if getattr(self, name) < least
        ]
        problems += self._contradictions()
        for name, is_set in (("metadata", self.metadata), ("storage", self.storage)):
            if not is_set:
                problems.append(f"cluster.{name} is not set: a cluster needs cluster.metadata and cluster.storage")
        if problems:
            raise InvalidSettings(problems)

    def _contradictions(self) -> list[str]:
        problems = []
        if self.segment_bytes > 1 << 30:
            problems.append(f"cluster.segment-bytes must be at most {1 << 30}, not {self.segment_bytes}")
        if self.fence_after_ms < 2 * self.heartbeat_ms:
            problems.append(
                f"cluster.fence-after-ms ({self.fence_after_ms}) must be at least twice cluster.heartbeat-ms"
                f" ({self.heartbeat_ms}): a broker may miss one beat"
            )
        if 4 * self.dead_after_ms < 5 * self.fence_after_ms:
            problems.append(
                f"cluster.dead-after-ms ({self.dead_after_ms}) must be at least 5/4 of cluster.fence-after-ms"
                f" ({self.fence_after_ms}): a broker must stop serving before others take over"
            )
        if self.orphan_age_ms < self.append_timeout_ms:
            problems.append(
                f"cluster.orphan-age-ms ({self.orphan_age_ms}) must be at least cluster.append-timeout-ms"
                f" ({self.append_timeout_ms}): an object that is not committed yet is no orphan"
            )
        return problems


_LEAST_IN_CLUSTER = {
    "linger_ms": 0,
    "bundle_bytes": 1024,
    "buffer_bytes": 1 << 20,
    "cache_bytes": 0,
    "uploads": 1,
    "append_timeout_ms": 1_000,
    "heartbeat_ms": 50,
    "fence_after_ms": 100,
    "dead_after_ms": 125,
    "hand_over_ms": 0,
    "segment_bytes": 1 << 20,
    "merge_fan_in": 2,
    "merge_interval_ms": 100,
    "garbage_grace_ms": 1_000,
    "garbage_interval_ms": 1_000,
    "orphan_age_ms": 1_000,
    "orphan_interval_ms": 1_000,
}


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """All settings of one broker process, validated."""

    data_dir: str = "tidelog-data"
    node_id: int = 0
    cluster: ClusterSettings | None = None
    listeners: tuple[ListenerSettings, ...] = (ListenerSettings("127.0.0.1", 9092),)
    allow_anonymous: bool = False
    max_pending_bytes: int = 32 << 20
    max_total_pending_bytes: int = 512 << 20
    max_total_reply_bytes: int = 256 << 20
    memory_budget_bytes: int = 3 << 30
    """Upper limit for the sum of all memory bounds of the broker; see docs/limits.md."""
    shutdown_grace_ms: int = 5_000
    storage: StorageSettings = StorageSettings()
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Broker configs by their Kafka names, as text."""

    def __post_init__(self) -> None:
        problems = [
            f"{name.replace('_', '-')} must be at least {least}, not {getattr(self, name)}"
            for name, least in (
                ("node_id", 0 if self.cluster is None else AUTO),
                ("max_pending_bytes", 1024),
                ("max_total_pending_bytes", 1 << 20),
                ("max_total_reply_bytes", 1 << 20),
                ("memory_budget_bytes", 1 << 20),
                ("shutdown_grace_ms", 0),
            )
            if getattr(self, name) < least
        ]
        if not self.data_dir:
            problems.append("data-dir is empty")
        if not self.listeners:
            problems.append("no listener is set: name at least one")
        for listener in self.listeners:
            if not 0 <= listener.port <= 65535:
                problems.append(f"listener {listener}: the port must be between 0 and 65535")
            if not listener.is_loopback and not self.allow_anonymous:
                problems.append(
                    f"listener {listener} is reachable from other machines and there is no authentication; "
                    "listen on 127.0.0.1, or set allow-anonymous = true to let anybody connect"
                )
        if problems:
            raise InvalidSettings(problems)
