"""Settings are frozen values, validated once, with all problems shown together, and passed down.

Nothing below the command line reads files or the environment. Names and defaults follow Kafka's topic configs.
"""

from dataclasses import dataclass
from enum import StrEnum

from tidelog.errors import InvalidSettings

DAY_MS = 86_400_000
UNLIMITED = -1


class FlushPolicy(StrEnum):
    """When appended bytes are forced to the device.

    ACKS: an append that asks for durability waits for a group-commit fdatasync; others do not wait.
    ALWAYS: every append waits for it.
    INTERVAL: nobody waits; a flush runs every `flush_ms` or after `flush_messages`, whichever comes first.
    OS: nobody waits; the operating system writes back when it likes. Sealed segments are still flushed, so that
        recovery after a crash reads no more than the active segment.
    """

    ACKS = "acks"
    ALWAYS = "always"
    INTERVAL = "interval"
    OS = "os"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """How one partition's log is kept."""

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
    """What all partitions of one data directory share."""

    tail_cache_bytes: int = 64 << 20
    open_segments: int = 512
    flush_threads: int = 4

    def __post_init__(self) -> None:
        problems = [
            f"{name.replace('_', '.')} must be at least {least}, not {getattr(self, name)}"
            for name, least in (("tail_cache_bytes", 0), ("open_segments", 1), ("flush_threads", 1))
            if getattr(self, name) < least
        ]
        if problems:
            raise InvalidSettings(problems)
