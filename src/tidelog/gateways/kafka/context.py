"""What the handlers of one listener work with, and small things that most of them need."""

from dataclasses import dataclass, field
from typing import cast

from tidelog.broker.broker import Broker
from tidelog.broker.shell import now_ms
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.fetch_sessions import FetchSessions
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.metadata import MetadataResponsePartition
from tidelog.wire.writing import Unchanging


@dataclass(slots=True)
class Context:
    """The broker, and the address under which clients of this listener reach it."""

    broker: Broker
    fetch_sessions: FetchSessions
    fetch_max_bytes: int
    advertised_host: str
    advertised_port: int
    described_partitions: dict[tuple[bytes, int], Unchanging[MetadataResponsePartition]] = field(default_factory=dict)
    """Of topics by id and number of partitions, as Metadata tells of them."""


def context_of(request: Request) -> Context:
    return cast("Context", request.connection.context)


def broker_of(request: Request) -> Broker:
    return cast("Context", request.connection.context).broker


def code_of(error: TidelogError) -> int:
    code = error.kafka_code
    return int(ErrorCode.UNKNOWN_SERVER_ERROR) if code == 0 else code


__all__ = ["Context", "broker_of", "code_of", "context_of", "now_ms"]
