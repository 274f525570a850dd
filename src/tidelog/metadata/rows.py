"""The tables of the metadata store, a frozen dataclass for each.

A row's fields are its columns: str, int, bytes, bool, or one of those or None. `KEY` names the fields that identify a
row, in order. Times are milliseconds since the epoch. Never rename or reuse a field: add one with a default.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """Facts about the cluster as a whole: its id, the next producer id, ..."""

    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TopicRow:
    KEY: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    topic_id: bytes  # 16 bytes
    partitions: int
    created_ms: int


@dataclass(frozen=True, slots=True)
class DeletedTopicRow:
    """A deleted topic whose logs may still be on disk. The row is removed when the logs are."""

    KEY: ClassVar[tuple[str, ...]] = ("topic_id",)

    topic_id: bytes
    name: str


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """A config that was set explicitly; defaults have no rows. `kind` is "topic", "broker" or "group"."""

    KEY: ClassVar[tuple[str, ...]] = ("kind", "resource", "name")

    kind: str
    resource: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """A committed offset of a consumer group."""

    KEY: ClassVar[tuple[str, ...]] = ("group", "topic", "partition")

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int | None = None  # only if the client asked for its own retention


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A consumer group. `kind` is "classic" or "consumer"; `epoch` is the generation of a classic group, the group
    epoch of a consumer group."""

    KEY: ClassVar[tuple[str, ...]] = ("group",)

    group: str
    kind: str
    protocol_type: str
    protocol: str | None
    epoch: int
    leader: str | None
    state: str
    state_since_ms: int
    assignment_epoch: int = -1
    details: str = "{}"  # JSON: what only one kind of group needs


@dataclass(frozen=True, slots=True)
class GroupMemberRow:
    KEY: ClassVar[tuple[str, ...]] = ("group", "member_id")

    group: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    epoch: int
    subscription: bytes  # classic: the metadata of the chosen protocol; consumer: JSON
    assignment: bytes  # classic: as the leader sent it; consumer: JSON
    details: str = "{}"  # JSON: what only one kind of group needs


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id: its producer and its newest transaction. `state` is Kafka's name of the state."""

    KEY: ClassVar[tuple[str, ...]] = ("transactional_id",)

    transactional_id: str
    producer_id: int
    epoch: int
    last_epoch: int
    previous_producer_id: int
    next_producer_id: int
    timeout_ms: int
    state: str
    partitions: str  # JSON: {"topic": [0, 1]}
    groups: str  # JSON: ["group"]
    started_ms: int
    updated_ms: int


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """The last batch of work whose transactions were committed together (`DecideTransactions`). The client of a scope
    numbers its batches; `number` is the highest that is committed."""

    KEY: ClassVar[tuple[str, ...]] = ("scope",)

    scope: str
    number: int
    decided_ms: int


@dataclass(frozen=True, slots=True)
class TransactionOffsetRow:
    """An offset that becomes the group's committed offset when the transaction commits."""

    KEY: ClassVar[tuple[str, ...]] = ("transactional_id", "group", "topic", "partition")

    transactional_id: str
    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int


Row: TypeAlias = (
    ClusterRow
    | TopicRow
    | DeletedTopicRow
    | ConfigRow
    | OffsetRow
    | GroupRow
    | GroupMemberRow
    | TransactionRow
    | TransactionOffsetRow
    | DecisionRow
)
TABLES: tuple[type[Row], ...] = (
    ClusterRow,
    TopicRow,
    DeletedTopicRow,
    ConfigRow,
    OffsetRow,
    GroupRow,
    GroupMemberRow,
    TransactionRow,
    TransactionOffsetRow,
    DecisionRow,
)
SHARED: frozenset[type[Row]] = frozenset({TopicRow, ConfigRow})
"""Tables that every broker of a cluster keeps in memory, and follows in the store's change feed."""
