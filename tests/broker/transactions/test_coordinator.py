import pytest

from tests.broker.transactions.world import A0, A1, B0, Client, World
from tidelog.broker.coordination.transactions import TransactionConfig
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.coordination.transactions.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    ProducerFenced,
)
from tidelog.metadata.rows import TransactionOffsetRow, TransactionRow

NONE, NOT_AVAILABLE, INVALID_REQUEST, INVALID_STATE, MAPPING, TIMEOUT, CONCURRENT = 0, 15, 42, 48, 49, 50, 51
NOT_AUTHORIZED, FENCED, NOT_FOUND, UNSUPPORTED, BAD_PATTERN = 53, 90, 105, 35, 128


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def client(world: World, request: pytest.FixtureRequest) -> Client:
    client = Client(world, version=request.param)
    client.init()
    return client


def test_the_first_producer_of_an_id_begins_with_epoch_0_and_the_next_fences_it(world: World) -> None:
    first, second = Client(world), Client(world)
    assert (first.init(), first.epoch) == (m.InitProducerIdReply(0, 100, 0), 0)
    second.init()
    assert (second.producer_id, second.epoch) == (first.producer_id, 1)
    assert first.add(A0).error_code == FENCED
    assert second.add(A0).error_code == NONE


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_timeout_has_bounds(world: World, timeout_ms: int) -> None:
    assert Client(world, timeout_ms=timeout_ms).init().error_code == TIMEOUT
    assert Client(world, timeout_ms=900_000).init().error_code == NONE


def test_two_phase_commit_is_refused(world: World) -> None:
    asked = m.InitProducerId("id", 1000, enable_two_phase_commit=True)
    assert world.ask(asked).error_code == NOT_AUTHORIZED
    assert world.ask(m.InitProducerId("id", 1000, keep_prepared=True)).error_code == UNSUPPORTED
    assert world.ask(m.InitProducerId("", 1000)).error_code == INVALID_REQUEST


def test_a_commit_is_stored_before_its_markers_and_ends_complete(world: World, client: Client) -> None:
    client.add(A0, B0)
    client.add(A1)
    assert client.state() == "Ongoing"
    epoch = client.epoch
    reply = client.end()
    assert reply is not None
    assert reply.error_code == NONE
    marked = epoch + 1 if client.version == 2 else epoch
    assert world.markers == [(each, client.producer_id, marked, True) for each in (A0, B0, A1)]
    assert client.state() == "CompleteCommit"


def test_version_2_takes_a_new_epoch_for_every_transaction_and_version_1_does_not(world: World) -> None:
    for version, epochs in ((1, [0, 0, 0]), (2, [1, 2, 3])):
        client = Client(world, f"id-{version}", version=version)
        client.init()
        seen = []
        for _ in epochs:
            client.add(A0)
            client.end()
            seen.append(client.epoch)
        assert seen == epochs


def test_a_producer_that_introduces_itself_aborts_what_is_open_before_it_is_answered(
    world: World, client: Client
) -> None:
    client.add(A0)
    world.writes_hang = True
    successor = Client(world)
    assert successor.init() is None
    assert world.markers == []
    world.settle()  # the decision
    world.settle()  # the new epoch
    assert world.markers == [(A0, client.producer_id, client.epoch + 1, False)]
    assert world.later() == m.InitProducerIdReply(0, client.producer_id, client.epoch + 2)
    world.writes_hang = False
    assert client.end().error_code == FENCED  # type: ignore[union-attr]


def test_who_comes_while_a_transaction_is_being_completed_waits_for_it(world: World, client: Client) -> None:
    client.add(A0)
    world.writes_hang = True
    assert client.end() is None
    if client.version == 2:
        client.epoch += 1
    assert client.add(B0) is None
    world.writes_hang = False
    world.settle()
    assert world.later() == m.AddPartitionsReply()
    assert client.state() == "Ongoing"


def test_they_are_told_to_come_again_if_markers_cannot_be_written(world: World, client: Client) -> None:
    client.add(A0)
    world.markers_fail = True
    assert client.end().error_code == NONE  # type: ignore[union-attr]  # it is decided
    assert client.state() == "PrepareCommit"
    assert client.add(B0).error_code == CONCURRENT
    assert Client(world).init().error_code == CONCURRENT
    world.markers_fail = False
    world.retry_markers()
    assert client.state() == "CompleteCommit"
    assert client.add(B0).error_code == NONE


def test_ending_a_transaction_again_is_answered_the_same_way(world: World, client: Client) -> None:
    client.add(A0)
    again = Client(world, version=client.version)
    again.producer_id, again.epoch = client.producer_id, client.epoch
    first = client.end(committed=True)
    assert again.end(committed=True) == first
    assert len(world.markers) == 1
    again.producer_id, again.epoch = client.producer_id, client.epoch - (client.version == 2)
    assert again.end(committed=False).error_code == INVALID_STATE  # type: ignore[union-attr]


def test_a_commit_without_a_transaction_is_refused(world: World, client: Client) -> None:
    assert client.end(committed=True).error_code == INVALID_STATE  # type: ignore[union-attr]
    client.add(A0)
    client.end()
    if client.version == 2:  # a client of version 1 would be repeating itself
        assert client.end(committed=True).error_code == INVALID_STATE  # type: ignore[union-attr]


def test_an_abort_of_nothing_only_takes_an_epoch(world: World) -> None:
    client = Client(world)
    client.init()
    assert client.end(committed=False) == m.EndTransactionReply(0, client.producer_id, 1)
    assert world.markers == []
    old = Client(world, "old", version=1)
    old.init()
    assert old.end(committed=False).error_code == INVALID_STATE  # type: ignore[union-attr]


def test_others_cannot_end_or_extend_a_transaction(world: World, client: Client) -> None:
    client.add(A0)
    stranger = Client(world, version=client.version)
    stranger.producer_id, stranger.epoch = client.producer_id + 1, client.epoch
    assert stranger.end().error_code == MAPPING  # type: ignore[union-attr]
    assert stranger.add(A1).error_code == MAPPING
    stranger.producer_id, stranger.epoch = client.producer_id, client.epoch + 1
    assert stranger.end().error_code == FENCED  # type: ignore[union-attr]
    assert Client(world, "unknown").add(A1).error_code == MAPPING
    assert Client(world, "").add(A1).error_code == INVALID_REQUEST
    assert world.markers == []


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(world: World) -> None:
    client = Client(world, timeout_ms=5_000)
    client.init()
    client.add(A0)
    world.pass_time(4_999)
    assert client.state() == "Ongoing"
    world.pass_time(1)
    assert client.state() == "CompleteAbort"
    assert world.markers == [(A0, client.producer_id, 1, False)]
    assert client.add(A1).error_code == FENCED
    assert client.end().error_code == FENCED  # type: ignore[union-attr]


def test_the_timeout_counts_from_the_transactions_own_beginning(world: World) -> None:
    client = Client(world, timeout_ms=5_000)
    client.init()
    for _ in range(3):
        world.pass_time(3_000)
        client.add(A0)
        world.pass_time(3_000)
        assert client.end().error_code == NONE  # type: ignore[union-attr]
    client.add(A0)
    world.start()
    world.pass_time(5_000)
    assert client.state() == "CompleteAbort"


def test_epochs_that_run_out_make_a_new_producer_id(world: World) -> None:
    for version in (1, 2):
        client = Client(world, f"id-{version}", version=version)
        client.init()
        first_id = client.producer_id
        world.coordinator._transactions[client.id].epoch = client.epoch = 0x7FFE
        client.add(A0)
        client.end()
        if version == 1:
            assert (client.producer_id, client.epoch) == (first_id, 0x7FFE)
            client.init()
        assert (client.producer_id, client.epoch) == (world.last_id, 0)
        assert client.producer_id != first_id
        assert client.add(A0).error_code == NONE
    assert world.markers[-1][2] == 0x7FFF


def test_a_retry_of_the_end_that_used_up_the_epochs_is_told_the_new_id(world: World) -> None:
    client = Client(world)
    client.init()
    world.coordinator._transactions["id"].epoch = client.epoch = 0x7FFE
    client.add(A0)
    again = Client(world)
    again.producer_id, again.epoch = client.producer_id, client.epoch
    assert client.end() == again.end() == m.EndTransactionReply(0, world.last_id, 0)


def test_a_producer_that_goes_on_after_an_error_keeps_its_id_unless_it_was_replaced(world: World) -> None:
    client = Client(world)
    client.init()
    goes_on = m.InitProducerId("id", 1000, client.producer_id, client.epoch)
    assert world.ask(goes_on) == m.InitProducerIdReply(0, client.producer_id, 1)
    assert world.ask(goes_on) == m.InitProducerIdReply(0, client.producer_id, 1)  # it did not hear the answer
    Client(world).init()
    assert world.ask(goes_on).error_code == FENCED
    assert world.ask(m.InitProducerId("id", 1000, 4711, 0)).error_code == FENCED
    assert world.ask(m.InitProducerId("new", 1000, 4711, 3)).epoch == 0


def test_without_a_reserved_producer_id_the_client_tries_again(world: World) -> None:
    world.has_ids = False
    client = Client(world)
    assert client.init().error_code == NOT_AVAILABLE
    world.has_ids = True
    assert client.init().error_code == NONE


# Offsets


def test_offsets_become_the_groups_with_the_commit_and_are_unstable_until_then(world: World, client: Client) -> None:
    if client.version == 1:
        assert client.commit_offsets(7) == INVALID_STATE
        asked = m.AddOffsets(client.id, client.producer_id, client.epoch, "group")
        assert world.ask(asked).error_code == NONE
    assert client.commit_offsets(7) == NONE
    assert client.commit_offsets(8) == NONE
    assert world.offsets() == {}
    assert world.coordinator.is_unstable("group", *A0)
    assert not world.coordinator.is_unstable("group", *A1)
    client.end(committed=True)
    assert world.offsets() == {("group", *A0): 8}
    assert world.table(TransactionOffsetRow) == []
    assert not world.coordinator.is_unstable("group", *A0)


def test_offsets_of_an_aborted_transaction_are_dropped(world: World, client: Client) -> None:
    world.ask(m.AddOffsets(client.id, client.producer_id, client.epoch, "group"))
    client.commit_offsets(7)
    client.end(committed=False)
    assert world.offsets() == {}
    assert world.table(TransactionOffsetRow) == []
    assert not world.coordinator.is_unstable("group", *A0)


def test_offsets_survive_a_restart_with_their_transaction(world: World, client: Client) -> None:
    world.ask(m.AddOffsets(client.id, client.producer_id, client.epoch, "group"))
    client.commit_offsets(7)
    world.start()
    assert world.coordinator.is_unstable("group", *A0)
    client.end()
    assert world.offsets() == {("group", *A0): 7}


def test_offsets_of_a_deleted_topic_are_not_committed(world: World, client: Client) -> None:
    world.ask(m.AddOffsets(client.id, client.producer_id, client.epoch, "group"))
    client.commit_offsets(7, partition=A0)
    client.commit_offsets(9, partition=B0)
    world._carry_out(world.coordinator.topics_deleted(["a"]))
    assert not world.coordinator.is_unstable("group", *A0)
    client.end()
    assert world.offsets() == {("group", *B0): 9}


# Produce asks


def test_a_partition_may_be_written_once_it_is_durably_in_the_transaction(world: World, client: Client) -> None:
    def may_write(epoch: int = client.epoch, producer_id: int = client.producer_id) -> bool:
        return world.coordinator.is_open_for(client.id, producer_id, epoch, A0)

    assert not may_write()
    world.writes_hang = True
    client.add(A0)
    assert not may_write()
    world.settle()
    assert may_write()
    with pytest.raises(ProducerFenced):
        may_write(epoch=client.epoch + 1)
    with pytest.raises(InvalidProducerIdMapping):
        may_write(producer_id=1)
    client.end()
    with pytest.raises((ConcurrentTransactions, ProducerFenced)):
        may_write()
    world.settle()
    world.settle()
    if client.version == 1:
        assert not may_write()
    else:
        with pytest.raises(ProducerFenced):
            may_write()


def test_verifying_tells_what_is_not_in_the_transaction(world: World, client: Client) -> None:
    client.add(A0)
    assert client.add(A0, B0, verify=True) == m.AddPartitionsReply(missing=(B0,))
    client.end()
    assert client.add(A0, verify=True) == m.AddPartitionsReply(missing=(A0,))


# Crashes and failures


def test_what_was_decided_is_completed_by_the_next_start(world: World, client: Client) -> None:
    world.ask(m.AddOffsets(client.id, client.producer_id, client.epoch, "group"))
    client.commit_offsets(7)
    client.add(A0)
    world.markers_fail = True
    client.end()
    world.markers_fail = False
    world.start()
    assert [(marker[0], marker[3]) for marker in world.markers] == [(A0, True)]
    assert client.state() == "CompleteCommit"
    assert world.offsets() == {("group", *A0): 7}


def test_what_was_not_stored_did_not_happen(world: World, client: Client) -> None:
    client.add(A0)
    world.writes_hang = True
    assert client.end() is None
    world.writes_hang = False
    world.start()
    assert client.state() == "Ongoing"
    assert world.markers == []


def test_a_decision_that_could_not_be_stored_stays_and_is_stored_later(world: World, client: Client) -> None:
    world.ask(m.AddOffsets(client.id, client.producer_id, client.epoch, "group"))
    client.commit_offsets(7)
    client.add(A0)
    world.writes_fail = True
    assert client.end().error_code == NOT_AVAILABLE  # type: ignore[union-attr]
    assert world.markers == []
    assert world.coordinator.is_unstable("group", *A0)
    world.pass_time(1_000)
    assert world.markers == []
    world.writes_fail = False
    world.pass_time(1_000)
    assert [marker[3] for marker in world.markers] == [True]
    assert world.offsets() == {("group", *A0): 7}
    assert client.end().error_code == NONE  # type: ignore[union-attr]
    assert len(world.markers) == 1


def test_partitions_that_could_not_be_stored_are_stored_with_the_next(world: World, client: Client) -> None:
    world.writes_fail = True
    assert client.add(A0).error_code == NOT_AVAILABLE
    assert not world.coordinator.is_open_for(client.id, client.producer_id, client.epoch, A0)
    world.writes_fail = False
    assert client.add(A1).error_code == NONE
    assert world.coordinator.is_open_for(client.id, client.producer_id, client.epoch, A0)
    (row,) = world.table(TransactionRow)
    assert row.partitions == '{"a":[0,1]}'


def test_a_completed_row_is_stored_without_anybody_waiting_for_it(world: World, client: Client) -> None:
    client.add(A0)
    client.end()
    (row,) = world.table(TransactionRow)
    assert row.state == "PrepareCommit"
    world.pass_time(1_000)
    (row,) = world.table(TransactionRow)
    assert row.state == "CompleteCommit"


# Administration


def test_ids_that_nobody_uses_are_forgotten(world: World) -> None:
    world.config = TransactionConfig(transactional_id_expiration_ms=10_000_000)
    world.start()
    idle, busy = Client(world, "idle"), Client(world, "busy", timeout_ms=900_000)
    for client in (idle, busy):
        client.init()
    for _ in range(4):
        busy.add(A0)
        world.pass_time(890_000)
        busy.end()
        world.pass_time(3_600_000)
    assert [row.transactional_id for row in world.table(TransactionRow)] == ["busy"]
    assert idle.add(A0).error_code == MAPPING
    assert idle.init().epoch == 0


def test_transactions_are_listed_by_state_producer_duration_and_pattern(world: World) -> None:
    clients = {name: Client(world, name) for name in ("one", "two", "three")}
    for client in clients.values():
        client.init()
    clients["one"].add(A0)
    world.pass_time(5_000)
    clients["two"].add(A0)
    world.pass_time(1)

    def listed(**filters: object) -> list[str]:
        reply = world.ask(m.ListTransactions(**filters))  # type: ignore[arg-type]
        return [each.transactional_id for each in reply.transactions]

    assert listed() == ["one", "two", "three"]
    assert listed(states=("Ongoing",)) == ["one", "two"]
    assert listed(producer_ids=(clients["two"].producer_id,)) == ["two"]
    assert listed(longer_than_ms=5_000) == ["one"]
    assert listed(longer_than_ms=0) == ["one", "two"]
    assert listed(pattern="t.*") == ["two", "three"]
    assert world.ask(m.ListTransactions(states=("Odd", "Empty"))).unknown_states == ("Odd",)
    assert world.ask(m.ListTransactions(pattern="(")).error_code == BAD_PATTERN


def test_a_transaction_is_described(world: World, client: Client) -> None:
    client.add(A0)
    (described, unknown, empty) = world.ask(m.DescribeTransactions((client.id, "unknown", ""))).transactions
    assert described == m.DescribedTransaction(
        client.id, 0, "Ongoing", 60_000, world.now_ms, client.producer_id, client.epoch, (A0,)
    )
    assert (unknown.error_code, empty.error_code) == (NOT_FOUND, INVALID_REQUEST)
