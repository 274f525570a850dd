"""A leader asks the coordinator before it appends the first batch of a transaction, and appends nothing if the answer
may be out of date by then."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from tests.broker.test_shell import in_loop
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.ownership import Coordinated, Owner, PeerUnavailable
from tidelog.broker.partition import Partition as Real
from tidelog.broker.remote_transactions import Verification
from tidelog.broker.transactional_produce import Part, Refusals, in_transaction
from tidelog.broker.transactions import PlaceInLine
from tidelog.model import TopicPartition
from tidelog.promise import Promise
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

HERE, ELSEWHERE = 1, 2
PLACE = TopicPartition("t", 0)
PART = Part(PLACE, 7, 3)


class Partition:
    """The guards are those of the broker's partitions."""

    def __init__(self) -> None:
        self._verifying: dict[int, object] = {}
        self.begin_verification = lambda producer_id: Real.begin_verification(cast("Any", self), producer_id)
        self.end_verification = lambda producer_id, guard: Real.end_verification(
            cast("Any", self), producer_id, guard
        )
        self.is_open = False
        self.log = self

    def is_in_transaction(self, _producer_id: int, _epoch: int) -> bool:
        return self.is_open

    def marker(self) -> None:
        self._verifying.pop(PART.producer_id, None)


class World:
    """One leader; the coordinator is the broker itself, or another one, which answers when the test says so."""

    node_id = HERE

    def __init__(self, coordinator: int) -> None:
        self._coordinator = coordinator
        self.partition: Partition | None = Partition()
        self.asked: list[Any] = []
        self.answers: list[asyncio.Future[int]] = []
        self.produced: list[Refusals] = []
        self.lines: dict[int, asyncio.Future[None]] = {}
        self.verification = Verification(cast("Any", self), cast("Any", self), cast("Any", lambda *_: self.partition))

    def coordinator(self, kind: Coordinated, _key: str) -> Owner:
        assert kind is Coordinated.TRANSACTIONAL_ID
        return Owner(self._coordinator, 1)

    def produce(self, *parts: Part, adds: bool = False) -> Awaitable[Refusals] | Refusals:
        return in_transaction(
            cast("Any", self.Here(self)),
            "id",
            parts or (PART,),
            self._produced,
            adds=adds,
            verification=self.verification,
        )

    def _produced(self, refusals: Refusals) -> Refusals:
        self.produced.append(refusals)
        return refusals

    class Here:
        """`Transactions` of this broker."""

        def __init__(self, world: "World") -> None:
            self._world = world

        def ask(self, request: m.AddPartitions) -> Promise[m.AddPartitionsReply]:
            reply: Promise[m.AddPartitionsReply] = Promise()

            def told(code: int) -> None:
                if code == ErrorCode.TRANSACTION_ABORTABLE:
                    reply.settle(m.AddPartitionsReply(missing=request.partitions))
                else:
                    reply.settle(m.AddPartitionsReply(code))

            self._world._ask(("here", request.verify_only)).add_done_callback(lambda done: told(done.result()))
            return reply

        def wait_in_line(self, producer_id: int) -> PlaceInLine | None:
            return PlaceInLine(self._world.lines, producer_id) if producer_id in self._world.lines else None

        def start_line(self, producer_id: int) -> PlaceInLine:
            return PlaceInLine(self._world.lines, producer_id)

    def _ask(self, what: Any) -> "asyncio.Future[int]":
        self.asked.append(what)
        self.answers.append(asyncio.get_running_loop().create_future())
        return self.answers[-1]

    async def ask(self, broker_id: int, api: str, message: AddPartitionsToTxnRequest, *, lane: Any) -> Any:
        """As `Peers`."""
        assert (broker_id, api) == (ELSEWHERE, "AddPartitionsToTxn")
        assert 0 <= lane < 8
        code = await self._ask((broker_id, message.transactions[0].verify_only))
        topics = [AddPartitionsToTxnTopicResult("t", [AddPartitionsToTxnPartitionResult(0, code)])]
        return AddPartitionsToTxnResponse(results_by_transaction=[AddPartitionsToTxnResult("id", topics)])


def play(script: Callable[[World], Awaitable[None]], coordinator: int) -> None:
    async def run() -> None:
        await script(World(coordinator))

    assert in_loop(run) == []


async def asked(world: World, count: int) -> None:
    while len(world.answers) < count:
        await asyncio.sleep(0)


wherever = pytest.mark.parametrize("coordinator", [HERE, ELSEWHERE])


@wherever
@pytest.mark.parametrize("adds", [True, False])
def test_the_coordinator_is_asked_before_the_first_batch_and_not_again(coordinator: int, adds: bool) -> None:
    async def script(world: World) -> None:
        first = asyncio.ensure_future(cast("Any", world.produce(adds=adds)))
        await asked(world, 1)
        assert world.asked == [("here" if coordinator == HERE else ELSEWHERE, not adds)]
        assert not world.produced
        world.answers[0].set_result(0)
        assert await first == {}
        assert world.partition is not None
        world.partition.is_open = True
        assert world.produce(adds=adds) == {}, "the log shows it: at once, and nobody is asked"
        assert len(world.asked) == 1

    play(script, coordinator)


@wherever
@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, ErrorCode.PRODUCER_FENCED),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_what_the_coordinator_refuses_is_not_appended(coordinator: int, code: int, told: int) -> None:
    async def script(world: World) -> None:
        refusals = asyncio.ensure_future(cast("Any", world.produce()))
        await asked(world, 1)
        world.answers[0].set_result(code)
        assert {each.kafka_code for each in (await refusals).values()} == {told}

    play(script, coordinator)


@wherever
def test_a_marker_that_comes_between_the_answer_and_the_append_refuses_the_batch(coordinator: int) -> None:
    async def script(world: World) -> None:
        refusals = asyncio.ensure_future(cast("Any", world.produce()))
        await asked(world, 1)
        assert world.partition is not None
        world.partition.marker()
        world.answers[0].set_result(0)
        assert (await refusals)[PLACE].kafka_code == ErrorCode.CONCURRENT_TRANSACTIONS

    play(script, coordinator)


@wherever
def test_a_partition_that_has_moved_away_and_back_meanwhile_refuses_the_batch(coordinator: int) -> None:
    async def script(world: World) -> None:
        refusals = asyncio.ensure_future(cast("Any", world.produce()))
        await asked(world, 1)
        world.partition = Partition()  # opened anew: a marker may have come to the leader in between
        world.answers[0].set_result(0)
        assert (await refusals)[PLACE].kafka_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        world.partition = None
        later = cast("Any", world.produce())
        assert (await later)[PLACE].kafka_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(world.asked) == 1

    play(script, coordinator)


def test_a_coordinator_that_does_not_answer_refuses_the_batch_and_clients_retry() -> None:
    async def script(world: World) -> None:
        refusals = asyncio.ensure_future(cast("Any", world.produce()))
        await asked(world, 1)
        world.answers[0].set_exception(PeerUnavailable("gone"))
        (error,) = (await refusals).values()
        assert (error.kafka_code, error.retriable) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, True)

    play(script, ELSEWHERE)


@wherever
def test_later_batches_wait_for_the_first_one_and_stay_in_order(coordinator: int) -> None:
    async def script(world: World) -> None:
        first = asyncio.ensure_future(cast("Any", world.produce()))
        await asked(world, 1)
        assert world.partition is not None
        world.partition.is_open = True
        second = asyncio.ensure_future(cast("Any", world.produce()))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not world.produced
        world.answers[0].set_result(ErrorCode.CONCURRENT_TRANSACTIONS)
        await asyncio.gather(first, second)
        assert [bool(each) for each in world.produced] == [True, False]

    play(script, coordinator)


def test_a_request_with_batches_of_two_producers_is_refused_even_if_both_transactions_are_open() -> None:
    async def script(world: World) -> None:
        assert world.partition is not None
        world.partition.is_open = True
        other = Part(TopicPartition("t", 1), 8, 0)
        refusals = await cast("Any", world.produce(PART, other))
        assert {each: error.kafka_code for each, error in refusals.items()} == {
            other.partition: ErrorCode.INVALID_REQUEST
        }

    play(script, HERE)
