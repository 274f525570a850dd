"""The authorization checks that handlers make themselves: what to list, and which operations a client may do."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from tidelog.broker.admission import CLUSTER_NAME, Operation, ResourceKind
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of

T = TypeVar("T")
NOT_ASKED = -(1 << 31)


def may(request: Request, operation: Operation, kind: ResourceKind, name: str = CLUSTER_NAME) -> bool:
    return broker_of(request).admission.admits(request.session, operation, kind, name)


def visible(request: Request, kind: ResourceKind, items: Iterable[T], name: Callable[[T], str]) -> Iterable[T]:
    """The items that the client may describe: lists must not reveal others."""
    if broker_of(request).admission.authorizer is None:
        return items
    return [item for item in items if not name(item) or may(request, Operation.DESCRIBE, kind, name(item))]


def authorized_operations(
    request: Request, kind: ResourceKind, name: str = CLUSTER_NAME, *, is_asked: bool = True
) -> int:
    """The operations that the client may do, as a set of bits: 1 << code of the operation."""
    return broker_of(request).admission.operations(request.session, kind, name) if is_asked else NOT_ASKED
