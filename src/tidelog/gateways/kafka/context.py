"""What the handlers of one listener share, and small functions that most of them need."""

from dataclasses import dataclass, field
from typing import Protocol

from tidelog.broker.broker import Broker
from tidelog.broker.memory import MemoryPart
from tidelog.broker.sessions import Endpoint
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.fetch_sessions import FetchSessions
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.metadata import MetadataResponsePartition
from tidelog.wire.writing import Unchanging


class Memory(Protocol):
    """The broker's memory budget and its use."""

    budget_bytes: int

    def parts(self) -> list[MemoryPart]: ...


@dataclass(slots=True)
class Context:
    """The broker, and the listener that clients come through."""

    broker: Broker
    fetch_sessions: FetchSessions
    fetch_max_bytes: int
    listener: Endpoint
    memory: Memory
    described_partitions: dict[tuple[bytes, int, int], Unchanging[MetadataResponsePartition]] = field(
        default_factory=dict
    )
    """The partitions of a topic as Metadata describes them, by topic id, number of partitions and version of the
    ownership."""


def context_of(request: Request) -> Context:
    return request.connection.context


def broker_of(request: Request) -> Broker:
    return request.connection.context.broker


def code_of(error: Exception | None) -> int:
    """The Kafka error code of an error; UNKNOWN_SERVER_ERROR for a bug of ours."""
    code = error.kafka_code if isinstance(error, TidelogError) else 0
    return int(ErrorCode.UNKNOWN_SERVER_ERROR) if code == 0 else code
