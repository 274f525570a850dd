"""Authorization: whether a session may do what it requests. Every gateway checks here before it serves a request.

Operations and kinds of resources are Kafka's, with Kafka's numbers. An `Authorizer` knows the rules. Without one
everything is allowed, and a check costs next to nothing. With one, each decision is made once per session, operation
and resource, and cached in the session until the rules change.

    NotAuthorized                           a subclass of `errors.InvalidInput`
    ├── TopicAuthorizationFailed            29
    ├── GroupAuthorizationFailed            30
    ├── ClusterAuthorizationFailed          31
    ├── TransactionalIdAuthorizationFailed  53
    └── TokenAuthorizationFailed            65
"""

from enum import IntEnum
from typing import Protocol

from tidelog.broker.sessions import Session
from tidelog.errors import InvalidInput

CLUSTER_NAME = "kafka-cluster"
NO_AUTHORIZER = "no authorizer is configured: there is no access control on this broker"
MOST_DECISIONS = 10_000  # cached per session


class Operation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class ResourceKind(IntEnum):
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6


_O = Operation
_OPERATIONS: dict[ResourceKind, tuple[Operation, ...]] = {
    ResourceKind.TOPIC: (
        _O.READ,
        _O.WRITE,
        _O.CREATE,
        _O.DELETE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
    ),
    ResourceKind.GROUP: (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ResourceKind.CLUSTER: (
        _O.CREATE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.CLUSTER_ACTION,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
        _O.IDEMPOTENT_WRITE,
    ),
    ResourceKind.TRANSACTIONAL_ID: (_O.WRITE, _O.DESCRIBE),
    ResourceKind.DELEGATION_TOKEN: (_O.DESCRIBE,),
}
_EVERYTHING = {kind: sum(1 << operation for operation in of_kind) for kind, of_kind in _OPERATIONS.items()}


class NotAuthorized(InvalidInput):
    pass


class TopicAuthorizationFailed(NotAuthorized):
    kafka_code = 29


class GroupAuthorizationFailed(NotAuthorized):
    kafka_code = 30


class ClusterAuthorizationFailed(NotAuthorized):
    kafka_code = 31


class TransactionalIdAuthorizationFailed(NotAuthorized):
    kafka_code = 53


class TokenAuthorizationFailed(NotAuthorized):
    kafka_code = 65


_REFUSALS: dict[ResourceKind, type[NotAuthorized]] = {
    ResourceKind.TOPIC: TopicAuthorizationFailed,
    ResourceKind.GROUP: GroupAuthorizationFailed,
    ResourceKind.CLUSTER: ClusterAuthorizationFailed,
    ResourceKind.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
    ResourceKind.DELEGATION_TOKEN: TokenAuthorizationFailed,
}


class Authorizer(Protocol):
    """Knows who may do what."""

    version: int
    """Grows with every change of the rules; never negative."""

    def allows(self, session: Session, operation: Operation, kind: ResourceKind, name: str) -> bool:
        """Must answer from memory: it is called for every request, in the event loop."""


class Admission:
    """One per broker. `authorizer` may be set while the broker runs; None: there is no access control."""

    __slots__ = ("authorizer",)

    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self.authorizer = authorizer

    def admits(self, session: Session, operation: Operation, kind: ResourceKind, name: str = CLUSTER_NAME) -> bool:
        authorizer = self.authorizer
        if authorizer is None:
            return True
        decisions = session.decisions
        if session.decided_at != authorizer.version or len(decisions) > MOST_DECISIONS:
            decisions.clear()
            session.decided_at = authorizer.version
        key = (operation, kind, name)
        decision = decisions.get(key)
        if decision is None:
            decision = decisions[key] = authorizer.allows(session, operation, kind, name)
        return decision

    def check(self, session: Session, operation: Operation, kind: ResourceKind, name: str = CLUSTER_NAME) -> None:
        """Raises the subclass of `NotAuthorized` for this kind, unless the session is admitted."""
        if not self.admits(session, operation, kind, name):
            raise refusal(session, operation, kind, name)

    def operations(self, session: Session, kind: ResourceKind, name: str = CLUSTER_NAME) -> int:
        """All operations that the session may do on a resource, as a set of bits: 1 << operation."""
        if self.authorizer is None:
            return _EVERYTHING[kind]
        admitted = (each for each in _OPERATIONS[kind] if self.admits(session, each, kind, name))
        return sum(1 << operation for operation in admitted)


def refusal(session: Session, operation: Operation, kind: ResourceKind, name: str) -> NotAuthorized:
    what = "the cluster" if kind is ResourceKind.CLUSTER else f"{kind.name.lower().replace('_', ' ')} {name!r:.260}"
    return _REFUSALS[kind](f"{session.principal} may not {operation.name.lower().replace('_', ' ')} {what}")
