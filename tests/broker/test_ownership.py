"""Who owns what: the answers of a broker that is alone, and what a broker says of things that are another's."""

import pytest

from tidelog.broker.ownership import (
    NO_ADDRESS,
    NOBODY,
    BrokerAddress,
    Coordinated,
    NotController,
    NotCoordinator,
    NotLeader,
    Owner,
    SoleOwnership,
    WrongEpoch,
    check_epoch,
)
from tidelog.broker.sessions import Endpoint
from tidelog.errors import fresh
from tidelog.model import LeaderEpoch

TOPIC_ID = bytes(range(16))


class Elsewhere(SoleOwnership):
    """Everything belongs to another broker, or to nobody."""

    owner = Owner(9, 4)

    def controller(self) -> Owner:
        return self.owner

    def leader(self, topic_id: bytes, index: int) -> Owner:
        return self.owner

    def coordinator(self, kind: Coordinated, key: str) -> Owner:
        return self.owner


def test_a_broker_that_is_alone_owns_everything_from_the_beginning() -> None:
    sole = SoleOwnership(3)
    assert sole.is_sole
    assert sole.controller() == sole.leader(TOPIC_ID, 5) == sole.coordinator(Coordinated.GROUP, "g") == Owner(3, 0)
    assert sole.check_leader(TOPIC_ID, 5) == 0
    sole.check_controller()
    for kind in Coordinated:
        sole.check_coordinator(kind, "key")


def test_clients_of_a_listener_are_told_the_address_of_that_listener() -> None:
    sole = SoleOwnership(3)
    sole.advertise(Endpoint("PLAINTEXT", "inside", 9092))
    sole.advertise(Endpoint("PLAINTEXT_2", "outside", 19092))
    assert list(sole.brokers("PLAINTEXT")) == [BrokerAddress(3, "inside", 9092)]
    assert sole.address(3, "PLAINTEXT_2") == BrokerAddress(3, "outside", 19092)
    assert sole.address(4, "PLAINTEXT") is NO_ADDRESS
    assert sole.address(3, "SSL") is NO_ADDRESS


def test_what_is_anothers_is_refused_with_its_own_error() -> None:
    other = Elsewhere(3)
    with pytest.raises(NotLeader, match="broker 9 does"):
        other.check_leader(TOPIC_ID, 0)
    with pytest.raises(NotController, match="broker 9 does"):
        other.check_controller()
    for kind in Coordinated:
        with pytest.raises(NotCoordinator, match=f"this {kind.value}; broker 9 does"):
            other.check_coordinator(kind, "key")
    other.owner = Owner(NOBODY, 4)
    with pytest.raises(NotLeader, match="nobody does") as refused:
        other.check_leader(TOPIC_ID, 0)
    assert refused.value.retriable


@pytest.mark.parametrize(("epoch", "code"), [(-1, None), (4, None), (3, 74), (0, 74), (5, 75)])
def test_a_client_that_names_an_epoch_must_name_ours(epoch: int, code: int | None) -> None:
    if code is None:
        check_epoch(epoch, LeaderEpoch(4))
        return
    with pytest.raises(WrongEpoch, match=f"leader epoch {epoch}, ours is 4") as refused:
        check_epoch(epoch, LeaderEpoch(4))
    assert refused.value.kafka_code == fresh(refused.value).kafka_code == code
