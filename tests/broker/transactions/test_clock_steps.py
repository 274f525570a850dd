"""Somebody sets the clock: by hours, back or forward. Only the stamps of what is stored follow it."""

import pytest

from tests.broker.transactions.world import A0, Client, World
from tidelog.broker.coordination.transactions import messages as m
from tidelog.metadata.rows import TransactionRow

HOUR_MS = 3_600_000
STEPS = pytest.mark.parametrize("step_ms", [-3 * HOUR_MS, 5 * HOUR_MS], ids=["-3h", "+5h"])
RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])


def begun(world: World, timeout_ms: int = 60_000) -> Client:
    client = Client(world, timeout_ms=timeout_ms)
    client.init()
    client.add(A0)
    return client


@STEPS
@RESTARTS
def test_a_transaction_ends_after_its_timeout_and_not_before(step_ms: int, restarts: bool) -> None:
    world = World()
    client = begun(world)
    world.step_ms = step_ms
    if restarts:
        world.start()
    world.pass_time(59_999)
    assert client.state() == "Ongoing"
    world.pass_time(1)
    assert client.state() == "CompleteAbort"


@STEPS
@RESTARTS
def test_its_producer_can_commit_it(step_ms: int, restarts: bool) -> None:
    world = World()
    client = begun(world)
    world.step_ms = step_ms
    if restarts:
        world.start()
    world.pass_time(1_000)
    reply = client.end()
    assert reply is not None
    assert reply.error_code == 0
    assert client.state() == "CompleteCommit"


@STEPS
def test_its_start_is_shown_by_the_wall_clock_and_its_age_is_not(step_ms: int) -> None:
    world = World()
    before_ms = world.now_ms
    client = begun(world)
    world.pass_time(10_000)
    world.step_ms = step_ms

    def lasts_longer_than(ms: int) -> bool:
        return bool(world.ask(m.ListTransactions(longer_than_ms=ms)).transactions)

    assert lasts_longer_than(9_999)
    assert not lasts_longer_than(10_000)
    (described,) = world.ask(m.DescribeTransactions((client.id,))).transactions
    assert described.started_ms == before_ms
    client.end()
    client.add(A0)
    (row,) = world.table(TransactionRow)
    assert row.started_ms == row.updated_ms == world.now_ms + step_ms


def test_after_a_restart_its_age_is_told_as_well_as_it_can_be() -> None:
    world = World()
    begun(world)
    world.pass_time(10_000)
    world.start()
    assert world.ask(m.ListTransactions(longer_than_ms=9_999)).transactions
    world.step_ms = -3 * HOUR_MS
    world.start()
    world.pass_time(1_000)
    assert world.ask(m.ListTransactions(longer_than_ms=999)).transactions
