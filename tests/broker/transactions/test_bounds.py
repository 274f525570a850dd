"""What transactions keep in memory has bounds over all clients."""

from tests.broker.transactions.world import A0, A1, B0, Client, World
from tidelog.broker.coordination.transactions import TransactionConfig
from tidelog.broker.coordination.transactions import messages as m

OK, INVALID_REQUEST, POLICY = 0, 42, 44


def test_one_transactional_id_more_is_refused_until_another_is_forgotten() -> None:
    world = World(TransactionConfig(tidelog_max_transactional_ids=2))
    one, two = Client(world, "one"), Client(world, "two")
    assert (one.init().error_code, two.init().error_code) == (OK, OK)
    assert Client(world, "three").init().error_code == POLICY
    assert one.init().error_code == OK, "who is known goes on"
    assert world.coordinator.bounds.news == [
        "the broker has 2 of at most 2 transactional ids (tidelog.max.transactional.ids); more are refused"
    ]
    world.start()
    assert Client(world, "three").init().error_code == POLICY
    world.pass_time(8 * 86_400_000)
    assert Client(world, "three").init().error_code == OK


def test_a_long_id_counts_as_several() -> None:
    world = World(TransactionConfig(tidelog_max_transactional_ids=10))
    assert Client(world, "x" * 32_000).init().error_code == POLICY
    assert Client(world, "x").init().error_code == OK


def test_what_is_in_open_transactions_is_bounded_and_free_again_when_they_end() -> None:
    world = World(TransactionConfig(tidelog_max_transaction_entries=3))
    one, two = Client(world, "one"), Client(world, "two")
    one.init()
    two.init()
    assert one.add(A0, A1).error_code == OK
    assert two.add(B0, A0).error_code == POLICY
    assert two.commit_offsets(5) == POLICY
    assert world.ask(m.AddOffsets("two", two.producer_id, two.epoch, "x" * 2_000)).error_code == OK
    assert world.ask(m.AddOffsets("one", one.producer_id, one.epoch, "group")).error_code == POLICY
    assert one.add(A0).error_code == OK, "what is in it already"
    two.end(committed=False)
    assert world.ask(m.AddOffsets("one", one.producer_id, one.epoch, "group")).error_code == OK
    one.end()
    assert world.coordinator.bounds.entries.used == 0


def test_a_scope_of_decisions_is_not_a_novel() -> None:
    world = World()
    client = Client(world)
    client.init()
    client.add(A0)
    ended = (m.EndedTransaction(client.id, client.producer_id, client.epoch),)
    assert world.ask(m.DecideTransactions("x" * 5_000, 1, ended)).error_code == INVALID_REQUEST
    assert world.ask(m.DecideTransactions("x", 1, ended)).error_code == OK
