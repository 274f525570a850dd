"""Many transactions, one decision."""

import pytest

from tests.broker.transactions.world import A0, A1, B0, Client, World
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.coordination.transactions.coordinator import DECISION_KEPT_MS
from tidelog.metadata.rows import DecisionRow, TransactionRow

NONE, NOT_AVAILABLE, INVALID_REQUEST, INVALID_STATE, MAPPING, FENCED = 0, 15, 42, 48, 49, 90


def writers(world: World, count: int = 3) -> list[Client]:
    clients = [Client(world, f"writer-{number}") for number in range(count)]
    for client, partition in zip(clients, [A0, A1, B0], strict=False):
        client.init()
        client.add(partition)
    return clients


def decide(
    world: World, number: int, clients: list[Client], scope: str = "query"
) -> m.DecideTransactionsReply | None:
    ended = tuple(m.EndedTransaction(each.id, each.producer_id, each.epoch) for each in clients)
    reply: m.DecideTransactionsReply | None = world.ask(m.DecideTransactions(scope, number, ended))
    return reply


def decided(world: World, scope: str = "query") -> int | None:
    reply = world.ask(m.DescribeDecision(scope))
    return None if reply is None else reply.number


def states(world: World) -> set[str]:
    return {row.state for row in world.table(TransactionRow)}


def test_all_are_committed_with_one_write_and_the_number_is_known(world: World) -> None:
    clients = writers(world)
    world.writes_hang = True
    assert decide(world, 7, clients) is None
    assert len(world.hanging) == 1
    assert world.markers == []
    world.writes_hang = False
    world.settle()
    assert world.later() == m.DecideTransactionsReply(is_new=True)
    assert {(partition, committed) for partition, _, _, committed in world.markers} == {
        (A0, True),
        (A1, True),
        (B0, True),
    }
    assert decided(world) == 7
    assert [client.state() for client in clients] == ["CompleteCommit"] * 3


def test_a_number_is_decided_once(world: World) -> None:
    assert decide(world, 7, writers(world)) == m.DecideTransactionsReply(is_new=True)
    again = writers(world)
    for number in (7, 3):
        assert decide(world, number, again) == m.DecideTransactionsReply(is_new=False)
    assert {client.state() for client in again} == {"Ongoing"}
    assert decide(world, 7, again, scope="other") == m.DecideTransactionsReply(is_new=True)
    assert decide(world, 8, writers(world)) == m.DecideTransactionsReply(is_new=True)
    assert (decided(world), decided(world, "other"), decided(world, "nobody")) == (8, 7, -1)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda clients: clients[1].end(False), FENCED),
        (lambda clients: Client(clients[1].world, clients[1].id).init(), FENCED),
        (lambda clients: setattr(clients[2], "producer_id", 5), MAPPING),
        (lambda clients: setattr(clients[2], "id", "unknown"), MAPPING),
        (lambda clients: clients[2].init(), INVALID_STATE),
        (lambda clients: clients[0].world.pass_time(60_001), FENCED),
        (lambda clients: clients.append(clients[0]), INVALID_REQUEST),
        (lambda clients: clients.clear(), INVALID_REQUEST),
    ],
    ids=["ended", "fenced", "other producer", "unknown", "not begun", "timed out", "twice", "none"],
)
def test_one_that_cannot_be_committed_keeps_all_from_it(world: World, spoil: object, code: int) -> None:
    clients = writers(world)
    told = [(client.id, client.epoch) for client in clients]
    assert callable(spoil)
    spoil(clients)
    for client, (_, epoch) in zip(clients, told, strict=False):
        if code == FENCED:
            client.epoch = epoch
    reply = decide(world, 1, clients)
    assert reply is not None
    assert (reply.error_code, reply.is_new) == (code, False)
    assert decided(world) == -1
    assert not [marker for marker in world.markers if marker[3]]


def test_a_crash_before_the_write_leaves_all_open_and_after_it_all_are_committed(world: World) -> None:
    clients = writers(world)
    world.writes_hang = True
    decide(world, 1, clients)
    world.writes_hang = False
    world.start()  # the write was lost
    assert states(world) == {"Ongoing"}
    assert decided(world) == -1
    world.markers_fail = True
    decide(world, 1, clients)
    world.markers_fail = False
    assert world.markers == []
    world.start()
    assert len(world.markers) == 3
    assert all(committed for _, _, _, committed in world.markers)
    assert decided(world) == 1
    assert decide(world, 1, writers(world)) == m.DecideTransactionsReply(is_new=False)


def test_after_a_failed_write_the_decision_is_stored_as_a_whole_or_not_at_all(world: World) -> None:
    clients = writers(world)
    world.writes_fail = True
    reply = decide(world, 1, clients)
    assert reply is not None
    assert reply.error_code == NOT_AVAILABLE
    assert states(world) == {"Ongoing"}
    assert not world.table(DecisionRow)
    world.writes_fail = False
    # Anything that touches one of them stores all.
    assert decide(world, 1, clients) is None
    world.pass_time(1_000)
    assert world.later() == m.DecideTransactionsReply(is_new=False)
    assert len(world.markers) == 3
    assert decided(world) == 1
    assert len(world.table(DecisionRow)) == 1


def test_who_asks_while_the_decision_is_being_stored_waits_for_it(world: World) -> None:
    clients = writers(world)
    world.writes_hang = True
    decide(world, 1, clients)
    assert decided(world) is None
    world.writes_hang = False
    world.settle()
    assert world.later().number == 1


def test_decisions_are_forgotten_after_a_long_time(world: World) -> None:
    decide(world, 1, writers(world))
    world.pass_time(DECISION_KEPT_MS + world.config.transaction_remove_expired_transaction_cleanup_interval_ms)
    assert not world.table(DecisionRow)
    assert decided(world) == -1


@pytest.fixture
def world() -> World:
    return World()
