"""Every state of a transaction and every request: Kafka's rules as tables.

Kafka answers CONCURRENT_TRANSACTIONS to everything but a verification while an end is being completed, before looking
at the producer id, the epoch or the decision. Here such a request waits for that, and is then answered as one that
Kafka's client would have sent again; if the markers cannot be written it is told CONCURRENT_TRANSACTIONS too.
"""

from dataclasses import replace

import pytest

from tests.broker.transactions.world import A0, B0, Client, World
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.coordination.transactions.transaction import LAST_EPOCH
from tidelog.metadata.rows import OffsetRow, TransactionRow

NONE, STATE, MAPPING, CONCURRENT, FENCED = 0, 48, 49, 51, 90
WAITS = None
BUMPED = "no error, and the next epoch"
PREPARED = ["PrepareCommit", "PrepareAbort"]


def client_in(world: World, state: str, version: int) -> Client:
    """The client of an id in this state. One whose end is being completed has heard of the decision."""
    client = Client(world, version=version)
    client.init()
    if state == "Empty":
        client.init()  # so that there is an epoch before this one
        return client
    client.add(A0)
    if state == "Ongoing":
        return client
    world.markers_hang = state in PREPARED
    client.end(committed=state.endswith("Commit"))
    assert client.state() == state
    return client


def end(client: Client, *, committed: bool, epoch: int | None = None) -> m.EndTransaction:
    return m.EndTransaction(
        client.id,
        client.producer_id,
        client.epoch if epoch is None else epoch,
        committed,
        bumps_epoch=client.version == 2,
    )


# Kafka's own table of EndTxn. "retry" is the epoch before the current one: a client that did not hear of its end.
ENDS = [
    # version, state, abort: retry, current; commit: retry, current
    (2, "Empty", FENCED, BUMPED, FENCED, STATE),
    (2, "Ongoing", FENCED, BUMPED, FENCED, BUMPED),
    (2, "CompleteAbort", NONE, BUMPED, STATE, STATE),
    (2, "CompleteCommit", STATE, BUMPED, NONE, STATE),
    (1, "Empty", FENCED, STATE, FENCED, STATE),
    (1, "Ongoing", FENCED, NONE, FENCED, NONE),
    (1, "CompleteAbort", FENCED, NONE, FENCED, STATE),
    (1, "CompleteCommit", FENCED, STATE, FENCED, NONE),
]


@pytest.mark.parametrize(("version", "state", "abort_retry", "abort", "commit_retry", "commit"), ENDS)
def test_an_end_is_answered_by_state_epoch_and_decision(
    version: int, state: str, abort_retry: object, abort: object, commit_retry: object, commit: object
) -> None:
    for committed, is_retry, expected in (
        (False, True, abort_retry),
        (False, False, abort),
        (True, True, commit_retry),
        (True, False, commit),
    ):
        world = World()
        client = client_in(world, state, version)
        reply = world.ask(end(client, committed=committed, epoch=client.epoch - is_retry))
        if expected is BUMPED:
            assert (reply.error_code, reply.epoch) == (NONE, client.epoch + 1)
        else:
            assert reply.error_code == expected
            if expected == NONE and version == 2:
                assert (reply.producer_id, reply.epoch) == (client.producer_id, client.epoch), "what it missed"


@pytest.mark.parametrize("state", PREPARED)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("epochs_back", [-1, 0, 1, 5])
@pytest.mark.parametrize("is_stuck", [False, True])
def test_any_end_waits_while_one_is_being_completed(
    state: str, version: int, committed: bool, epochs_back: int, is_stuck: bool
) -> None:
    world = World()
    client = client_in(world, state, version)
    request = end(client, committed=committed, epoch=client.epoch - epochs_back)
    if is_stuck:
        world.markers_hang, world.markers_fail = False, True
        world.retry_markers()
        assert world.ask(request).error_code == CONCURRENT
        assert world.ask(replace(request, producer_id=77)).error_code == CONCURRENT
    else:
        assert world.ask(request) is WAITS
    assert client.state() == state


@pytest.mark.parametrize(("version", "code"), [(1, STATE), (2, NONE)])
def test_the_next_transaction_can_be_aborted_before_the_commit_of_the_last_is_complete(
    version: int, code: int
) -> None:
    """begin, send, commit, begin, send, abort with linger: nothing of the second has been sent when it is aborted."""
    world = World()
    client = client_in(world, "PrepareCommit", version)
    assert client.end(committed=False) is WAITS
    world.markers_hang = False
    world.retry_markers()
    assert world.later().error_code == code, "as if it had been asked now; version 1 clients know there is nothing"
    if version == 2:
        assert world.later().epoch == client.epoch + 1
        assert client.state() == "CompleteAbort"


def offsets(client: Client) -> tuple[OffsetRow, ...]:
    return (OffsetRow("group", *A0, 5, -1, "", client.world.now_ms),)


def requests(client: Client) -> dict[str, m.Request]:
    id_, producer_id, epoch = client.id, client.producer_id, client.epoch
    return {
        "init": m.InitProducerId(id_, 1000),
        "init with what it has": m.InitProducerId(id_, 1000, producer_id, epoch),
        "init with an old epoch": m.InitProducerId(id_, 1000, producer_id, epoch - 5),
        "init of another producer": m.InitProducerId(id_, 1000, 77, 0),
        "add": m.AddPartitions(id_, producer_id, epoch, (B0,)),
        "add by an old epoch": m.AddPartitions(id_, producer_id, epoch - 1, (B0,)),
        "add by another producer": m.AddPartitions(id_, 77, epoch, (B0,)),
        "verify": m.AddPartitions(id_, producer_id, epoch, (A0,), verify_only=True),
        "verify by an old epoch": m.AddPartitions(id_, producer_id, epoch - 1, (A0,), verify_only=True),
        "add offsets": m.AddOffsets(id_, producer_id, epoch, "group"),
        "add offsets by an old epoch": m.AddOffsets(id_, producer_id, epoch - 1, "group"),
        "commit offsets": m.CommitOffsets(id_, producer_id, epoch, "group", offsets(client), client.version == 2),
        "commit offsets by an old epoch": m.CommitOffsets(
            id_, producer_id, epoch - 1, "group", offsets(client), client.version == 2
        ),
    }


STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
# Whoever introduces itself while a transaction is open has it aborted first; here everything is instant.
OTHERS: dict[str, tuple[object, ...]] = {
    "init": (NONE, NONE, WAITS, WAITS, NONE, NONE),
    "init with what it has": (NONE, FENCED, WAITS, WAITS, NONE, NONE),
    "init with an old epoch": (FENCED, FENCED, WAITS, WAITS, FENCED, FENCED),
    "init of another producer": (FENCED, FENCED, WAITS, WAITS, FENCED, FENCED),
    "add": (NONE, NONE, WAITS, WAITS, NONE, NONE),
    "add by an old epoch": (FENCED, FENCED, WAITS, WAITS, FENCED, FENCED),
    "add by another producer": (MAPPING, MAPPING, WAITS, WAITS, MAPPING, MAPPING),
    "verify": (NONE, NONE, WAITS, WAITS, NONE, NONE),
    "verify by an old epoch": (FENCED, FENCED, FENCED, FENCED, FENCED, FENCED),
    "add offsets": (NONE, NONE, WAITS, WAITS, NONE, NONE),
    "add offsets by an old epoch": (FENCED, FENCED, WAITS, WAITS, FENCED, FENCED),
    "commit offsets by an old epoch": (FENCED, FENCED, WAITS, WAITS, FENCED, FENCED),
}
COMMITS = {1: (STATE, STATE, WAITS, WAITS, STATE, STATE), 2: (NONE, NONE, WAITS, WAITS, NONE, NONE)}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("state", STATES)
def test_every_request_is_answered_by_the_state(version: int, state: str) -> None:
    table = {**OTHERS, "commit offsets": COMMITS[version]}
    answers = {}
    for name in table:
        world = World()
        reply = world.ask(requests(client_in(world, state, version))[name])
        answers[name] = WAITS if reply is None else reply.error_code
    assert answers == {name: row[STATES.index(state)] for name, row in table.items()}


@pytest.mark.parametrize("state", PREPARED)
def test_every_request_is_told_to_come_again_while_markers_cannot_be_written(state: str) -> None:
    answers = {}
    for name in (*OTHERS, "commit offsets"):
        world = World()
        client = client_in(world, state, 2)
        world.markers_hang, world.markers_fail = False, True
        world.retry_markers()
        answers[name] = world.ask(requests(client)[name]).error_code
    assert answers == {name: FENCED if name == "verify by an old epoch" else CONCURRENT for name in answers}


def test_a_producer_that_used_up_its_epochs_goes_on_while_its_last_end_is_being_completed() -> None:
    """It is told its new producer id with the decision, before the transaction has that id."""
    world = World()
    client = Client(world)
    client.init()
    (row,) = world.table(TransactionRow)
    world.rows[TransactionRow, client.id] = replace(row, epoch=LAST_EPOCH)
    world.start()
    client.epoch = LAST_EPOCH
    client.add(A0)
    world.markers_hang = True
    before = client.producer_id
    assert client.end() is not None
    assert (client.producer_id != before, client.epoch) == (True, 0)
    for name in ("add", "add offsets", "commit offsets"):
        assert world.ask(requests(client)[name]) is WAITS, name
    assert client.end(committed=False) is WAITS
    with pytest.raises(Exception, match="being completed"):
        world.coordinator.is_open_for(client.id, client.producer_id, client.epoch, A0)
    world.markers_hang = False
    world.retry_markers()
    assert world.later().error_code == NONE
