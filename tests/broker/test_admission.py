"""Whether a session may do what it asks for, and what that costs."""

import time

import pytest

from tidelog.broker.admission import (
    MOST_DECISIONS,
    Admission,
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    NotAuthorized,
    Operation,
    ResourceKind,
    TokenAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from tidelog.broker.sessions import Endpoint, Principal, Session

READ, WRITE, ALTER = Operation.READ, Operation.WRITE, Operation.ALTER
TOPIC, CLUSTER = ResourceKind.TOPIC, ResourceKind.CLUSTER


class Rules:
    """Everybody may read, nobody else anything; unless it is turned round."""

    def __init__(self) -> None:
        self.version = 0
        self.allowed = {READ}
        self.asked = 0

    def allows(self, _session: Session, operation: Operation, _kind: ResourceKind, _name: str) -> bool:
        self.asked += 1
        return operation in self.allowed


@pytest.fixture
def session() -> Session:
    return Session(Endpoint("PLAINTEXT", "localhost", 9092), "10.0.0.1", Principal("User", "alice"))


def test_without_an_authorizer_everybody_may_do_everything(session: Session) -> None:
    admission = Admission()
    for operation in Operation:
        for kind in ResourceKind:
            admission.check(session, operation, kind, "name")
    assert not session.decisions, "nothing is kept for it"


@pytest.mark.parametrize(
    ("kind", "error", "code"),
    [
        (ResourceKind.TOPIC, TopicAuthorizationFailed, 29),
        (ResourceKind.GROUP, GroupAuthorizationFailed, 30),
        (ResourceKind.CLUSTER, ClusterAuthorizationFailed, 31),
        (ResourceKind.TRANSACTIONAL_ID, TransactionalIdAuthorizationFailed, 53),
        (ResourceKind.DELEGATION_TOKEN, TokenAuthorizationFailed, 65),
    ],
)
def test_each_kind_of_resource_is_refused_with_kafkas_code(
    session: Session, kind: ResourceKind, error: type[NotAuthorized], code: int
) -> None:
    admission = Admission(Rules())
    with pytest.raises(error, match="User:alice may not describe configs") as refused:
        admission.check(session, Operation.DESCRIBE_CONFIGS, kind, "name")
    assert refused.value.kafka_code == code
    admission.check(session, READ, kind, "name")


def test_a_decision_is_kept_until_the_rules_change(session: Session) -> None:
    rules = Rules()
    admission = Admission(rules)
    for _ in range(3):
        assert admission.admits(session, READ, TOPIC, "t")
        assert not admission.admits(session, WRITE, TOPIC, "t")
    assert rules.asked == 2
    rules.allowed, rules.version = {WRITE}, 1
    assert not admission.admits(session, READ, TOPIC, "t")
    assert admission.admits(session, WRITE, TOPIC, "t")


def test_decisions_that_are_kept_are_bounded(session: Session) -> None:
    admission = Admission(Rules())
    for number in range(3 * MOST_DECISIONS):
        admission.admits(session, READ, TOPIC, f"topic-{number}")
        assert len(session.decisions) <= MOST_DECISIONS + 1


def test_what_a_session_may_do_is_told_as_kafkas_bits(session: Session) -> None:
    rules = Rules()
    assert Admission(rules).operations(session, TOPIC, "t") == 1 << READ
    assert Admission(rules).operations(session, CLUSTER) == 0
    assert Admission().operations(session, CLUSTER) == sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
    assert (
        Admission().operations(session, ResourceKind.TRANSACTIONAL_ID, "id") == 1 << WRITE | 1 << Operation.DESCRIBE
    )


def test_asking_again_takes_well_under_a_microsecond(session: Session) -> None:
    """The produce path asks for every request; the best of many rounds, for the machine has other things to do."""
    admission = Admission(Rules())

    def seconds() -> float:
        began = time.perf_counter()
        for _ in range(1000):
            admission.check(session, READ, TOPIC, "t")
        return (time.perf_counter() - began) / 1000

    assert min(seconds() for _ in range(50)) < 1e-6
