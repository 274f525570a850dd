import time

import pytest

from tidelog.broker.membership.ownership import ClusterOwnership, Owned, steady_clock
from tidelog.broker.ownership import (
    NO_ADDRESS,
    NOBODY,
    BrokerAddress,
    Coordinated,
    NotController,
    NotCoordinator,
    NotLeader,
    Owner,
)
from tidelog.broker.sessions import Endpoint
from tidelog.metadata.registry import (
    CONTROLLER,
    SHARD_LEASES,
    Address,
    Changes,
    Leadership,
    Lease,
    Membership,
    group_shard,
    transaction_shard,
)
from tidelog.metadata.store import Fence
from tidelog.model import shard_of

TOPIC, OTHER = b"first topic id..", b"second topic id."
ME, PEER = 1, 2
NOTHING = Owned({}, {})
BROKERS = [
    Membership(ME, "mine", {"PLAINTEXT": Address("me", 1)}),
    Membership(PEER, "other", {"PLAINTEXT": Address("peer", 2), "OTHER": Address("peer", 3)}, rack="b"),
]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def changes(
    version: int,
    *leaderships: Leadership,
    brokers: list[Membership] = BROKERS,
    leases: list[Lease] | None = None,
    deleted: list[bytes] | None = None,
    is_whole: bool = False,
) -> Changes:
    return Changes(version, brokers, leases or [], leaderships, deleted or [], is_whole)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ownership(clock: Clock) -> ClusterOwnership:
    made = ClusterOwnership(ME, clock)
    made.incarnation = "mine"
    made.trust(105)
    return made


def test_everything_is_answered_from_memory(ownership: ClusterOwnership) -> None:
    assert ownership.leader(TOPIC, 0) == Owner(NOBODY, -1)
    assert ownership.controller().broker_id == NOBODY
    mine, others = shard_of("mine"), shard_of("others")
    leases = [Lease(CONTROLLER, ME, 3)]
    for shard in (group_shard, transaction_shard):
        leases += [Lease(shard(mine), ME, 5), Lease(shard(others), PEER, 4)]
    version = ownership.version
    ownership.apply(changes(7, Leadership(TOPIC, 0, ME, 8), Leadership(TOPIC, 1, PEER, 9), leases=leases))
    assert ownership.version > version
    assert ownership.known_version == 7
    assert ownership.check_leader(TOPIC, 0) == 8
    assert ownership.leader(TOPIC, 1) == Owner(PEER, 9)
    with pytest.raises(NotLeader, match="broker 2 does"):
        ownership.check_leader(TOPIC, 1)
    assert ownership.controller() == Owner(ME, 3)
    ownership.check_controller()
    for kind in Coordinated:
        assert ownership.coordinator(kind, "mine") == Owner(ME, 5)
        ownership.check_coordinator(kind, "mine")
        assert ownership.coordinator(kind, "others") == Owner(PEER, 4)
        with pytest.raises(NotCoordinator, match="broker 2 does"):
            ownership.check_coordinator(kind, "others")
    assert not ownership.has_coordinators()
    assert ownership.fence(CONTROLLER) == Fence(CONTROLLER, 3)
    assert ownership.fence(group_shard(mine)) == Fence(group_shard(mine), 5)
    assert ownership.fence(group_shard(others)) is None
    ownership.apply(changes(8, leases=[Lease(CONTROLLER, PEER, 4), *(Lease(each, ME, 6) for each in SHARD_LEASES)]))
    assert ownership.has_coordinators()
    for kind in Coordinated:
        assert ownership.coordinator(kind, "others") == Owner(ME, 6)
    with pytest.raises(NotController):
        ownership.check_controller()


def test_the_trust_in_the_memory_ends_by_the_clock(ownership: ClusterOwnership, clock: Clock) -> None:
    ownership.apply(
        changes(1, Leadership(TOPIC, 0, ME, 8), Leadership(TOPIC, 1, PEER, 9), leases=[Lease(CONTROLLER, ME, 3)])
    )
    version = ownership.version
    clock.now = 105
    for check, error in (
        (lambda: ownership.check_leader(TOPIC, 0), NotLeader),
        (lambda: ownership.check_coordinator(Coordinated.GROUP, "key"), NotCoordinator),
        (ownership.check_controller, NotController),
    ):
        with pytest.raises(error, match="no contact"):
            check()
    assert ownership.leader(TOPIC, 0) == Owner(NOBODY, 8)
    assert ownership.leader(TOPIC, 1) == Owner(PEER, 9)  # what it heard last
    assert ownership.fence(CONTROLLER) is None
    assert ownership.version > version
    untrusted = ownership.version
    ownership.trust(110)
    assert ownership.check_leader(TOPIC, 0) == 8
    assert ownership.version > untrusted
    ownership.distrust()
    with pytest.raises(NotLeader):
        ownership.check_leader(TOPIC, 0)


def test_what_belongs_to_a_broker_that_is_down_has_no_owner(ownership: ClusterOwnership) -> None:
    ownership.apply(changes(1, Leadership(TOPIC, 1, 3, 9)))
    assert ownership.leader(TOPIC, 1) == Owner(NOBODY, 9)
    assert ownership.address(3, "PLAINTEXT") == NO_ADDRESS


def test_brokers_are_told_by_listener_and_this_one_even_if_it_is_not_registered(ownership: ClusterOwnership) -> None:
    called = []
    ownership.on_advertise = lambda: called.append(1)
    assert ownership.brokers("PLAINTEXT") == []
    ownership.advertise(Endpoint("PLAINTEXT", "me", 1))
    assert called == [1]
    assert ownership.brokers("PLAINTEXT") == [BrokerAddress(ME, "me", 1)]
    ownership.apply(changes(1))
    assert ownership.brokers("PLAINTEXT") == [BrokerAddress(ME, "me", 1), BrokerAddress(PEER, "peer", 2, "b")]
    assert ownership.brokers("OTHER") == [BrokerAddress(PEER, "peer", 3, "b")]


def test_losses_and_gains_are_told(ownership: ClusterOwnership) -> None:
    def apply(given: Changes) -> tuple[Owned, Owned]:
        return ownership.apply(given)

    lease = group_shard(1)
    assert apply(
        changes(1, Leadership(TOPIC, 0, ME, 1), Leadership(TOPIC, 1, PEER, 1), leases=[Lease(lease, ME, 1)])
    ) == (NOTHING, Owned({lease: 1}, {(TOPIC, 0): 1}))
    assert apply(changes(2, leases=[Lease(lease, ME, 1)])) == (NOTHING, NOTHING)
    # A thing may be reported twice, and what is reported last counts.
    twice = [Leadership(TOPIC, 0, PEER, 2), Leadership(TOPIC, 0, ME, 3), Leadership(TOPIC, 1, ME, 2)]
    assert apply(changes(3, *twice, leases=[Lease(lease, ME, 2)])) == (
        Owned({lease: 1}, {(TOPIC, 0): 1}),
        Owned({lease: 2}, {(TOPIC, 0): 3, (TOPIC, 1): 2}),
    )
    assert apply(changes(4, Leadership(OTHER, 0, ME, 0), deleted=[TOPIC])) == (
        Owned({lease: 2}, {(TOPIC, 0): 3, (TOPIC, 1): 2}),
        Owned({}, {(OTHER, 0): 0}),
    )
    assert ownership.leader(TOPIC, 0) == Owner(NOBODY, -1)
    assert apply(changes(5, Leadership(TOPIC, 0, ME, 4), is_whole=True)) == (
        Owned({}, {(OTHER, 0): 0}),
        Owned({}, {(TOPIC, 0): 4}),
    )


def test_what_another_process_owns_under_this_id_is_not_ours(ownership: ClusterOwnership) -> None:
    ownership.apply(changes(1, Leadership(TOPIC, 0, ME, 1), leases=[Lease(CONTROLLER, ME, 1)]))
    twin = [BROKERS[0]._replace(incarnation="twin"), BROKERS[1]]
    lost, gained = ownership.apply(
        changes(2, Leadership(TOPIC, 0, ME, 2), leases=[Lease(CONTROLLER, ME, 2)], brokers=twin)
    )
    assert (lost, gained) == (Owned({CONTROLLER: 1}, {(TOPIC, 0): 1}), NOTHING)
    assert ownership.leader(TOPIC, 0) == Owner(NOBODY, 2)
    assert ownership.fence(CONTROLLER) is None
    # It registers again, and has the things at the next epoch.
    lost, gained = ownership.apply(changes(3, Leadership(TOPIC, 0, ME, 3), leases=[Lease(CONTROLLER, ME, 3)]))
    assert (lost, gained) == (NOTHING, Owned({CONTROLLER: 3}, {(TOPIC, 0): 3}))


def test_the_clock_is_steady() -> None:
    before = steady_clock()
    time.sleep(0.001)
    assert 0 < steady_clock() - before < 60
