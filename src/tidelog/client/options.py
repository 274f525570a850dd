"""Options of clients: frozen values, validated once. Times are in milliseconds, sizes in bytes."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tidelog.errors import InvalidSettings
from tidelog.records.compression import Codec

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_PORT = 9092

Acks: TypeAlias = Literal[0, 1, "all"]
OutOfRange: TypeAlias = Literal["earliest", "latest", "error"]

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d{1,5}))?")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str) -> list[Address]:
    """`host`, `host:port`, `[::1]:port`, several separated by commas."""
    addresses, problems = [], []
    for part in filter(None, (part.strip() for part in bootstrap.split(","))):
        match = _ADDRESS.fullmatch(part)
        if match is None or not 0 < (port := int(match["port"] or DEFAULT_PORT)) < 65536:
            problems.append(f"{part!r} is not an address; write host:port, for example {DEFAULT_BOOTSTRAP}")
        else:
            addresses.append(Address(match["v6"] or match["host"], port))
    if problems or not addresses:
        raise InvalidSettings(problems or ["no bootstrap address was given"])
    return addresses


@dataclass(frozen=True, slots=True)
class ClientOptions:
    client_id: str = "tidelog"
    timeout_ms: int = 30_000
    """How long an operation may take, its retries included."""
    connect_timeout_ms: int = 5_000
    request_timeout_ms: int = 30_000
    unknown_topic_ms: int = 500
    """How long an unknown topic is looked up again: it may just have been created."""
    metadata_max_age_ms: int = 300_000
    retry_backoff_ms: int = 50
    """The first pause between tries; it doubles up to `retry_backoff_max_ms`."""
    retry_backoff_max_ms: int = 1_000
    max_in_flight: int = 16
    """Maximum number of requests in flight on one connection."""
    max_frame_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        _at_least(
            self,
            timeout_ms=1,
            connect_timeout_ms=1,
            request_timeout_ms=1,
            unknown_topic_ms=0,
            metadata_max_age_ms=1,
            retry_backoff_ms=1,
            retry_backoff_max_ms=1,
            max_in_flight=1,
            max_frame_bytes=1024,
        )


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    acks: Acks = "all"
    compression: Codec = Codec.NONE
    idempotent: bool | None = None
    """A retry never writes a batch twice. Needs acks="all", with which it is the default."""
    linger_ms: int = 5
    """How long a batch may wait for more records."""
    batch_bytes: int = 256 << 10
    buffer_bytes: int = 32 << 20
    """Memory for records that are not delivered yet; `send` waits when it is full."""
    request_bytes: int = 8 << 20
    delivery_timeout_ms: int = 120_000

    def __post_init__(self) -> None:
        _at_least(self, linger_ms=0, batch_bytes=1, buffer_bytes=1, request_bytes=1, delivery_timeout_ms=1)
        if self.acks not in (0, 1, "all"):
            raise InvalidSettings([f"acks must be 0, 1 or 'all', not {self.acks!r}"])
        if self.idempotent and self.acks != "all":
            raise InvalidSettings([f"an idempotent producer needs acks='all', not {self.acks!r}"])

    @property
    def is_idempotent(self) -> bool:
        return self.acks == "all" if self.idempotent is None else self.idempotent

    @property
    def acks_code(self) -> int:
        return -1 if self.acks == "all" else int(self.acks)


@dataclass(frozen=True, slots=True)
class FetchOptions:
    max_wait_ms: int = 500
    """How long the broker may hold a fetch while there is less than `min_bytes` to read."""
    min_bytes: int = 1
    max_bytes: int = 16 << 20
    partition_max_bytes: int = 4 << 20
    read_committed: bool = False
    check_crcs: bool = True
    out_of_range: OutOfRange = "earliest"
    """Where to continue if an offset is not in the log, or `error` to raise."""

    def __post_init__(self) -> None:
        _at_least(self, max_wait_ms=0, min_bytes=0, max_bytes=1, partition_max_bytes=1)
        if self.out_of_range not in ("earliest", "latest", "error"):
            raise InvalidSettings([f"out.of.range must be earliest, latest or error, not {self.out_of_range!r}"])


@dataclass(frozen=True, slots=True)
class GroupOptions:
    session_timeout_ms: int = 45_000
    """How long a member may send no heartbeat before the group removes it."""
    heartbeat_ms: int = 3_000
    max_poll_ms: int = 300_000
    """How long a member may not poll before it leaves the group: it is taken to be stuck."""
    auto_commit_ms: int = 5_000
    """How often consumed offsets are committed; 0: only by calls of `commit()`."""
    instance_id: str | None = None
    """Name of a static member: when it restarts, it gets its partitions back without a rebalance."""

    def __post_init__(self) -> None:
        _at_least(self, session_timeout_ms=1, heartbeat_ms=1, max_poll_ms=1, auto_commit_ms=0)
        if self.heartbeat_ms >= self.session_timeout_ms:
            raise InvalidSettings(["heartbeat.ms must be below session.timeout.ms"])


def _at_least(options: object, **least: int) -> None:
    problems = [
        f"{name.replace('_', '.')} must be at least {low}, not {value}"
        for name, low in least.items()
        if (value := getattr(options, name)) < low
    ]
    if problems:
        raise InvalidSettings(problems)
