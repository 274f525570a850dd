"""Transactions that commit offsets of groups which another broker coordinates: messages that are lost or late, and
coordinators that move, at every step. Offsets are told neither too early nor too late, and are never lost."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Any, cast

import pytest
import structlog

from tests.broker.groups.world import Catalog
from tests.broker.test_shell import in_loop
from tests.support.metadata_store import Database, FakeStore
from tidelog.broker import offsets_in_transactions, transactions
from tidelog.broker.coordination.groups import GroupConfig, GroupCoordinator
from tidelog.broker.coordination.groups import messages as g
from tidelog.broker.coordination.groups.pending import PendingOffsets
from tidelog.broker.coordination.transactions import Ending, TransactionConfig, TransactionCoordinator
from tidelog.broker.coordination.transactions import messages as t
from tidelog.broker.coordination.transactions.transaction import EndedGroup
from tidelog.broker.groups import Groups
from tidelog.broker.ownership import PeerUnavailable, SoleOwnership
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.shell import monotonic_ms, now_ms
from tidelog.broker.transactions import Transactions
from tidelog.errors import StorageUnavailable
from tidelog.metadata.rows import (
    DecisionRow,
    GroupMemberRow,
    GroupRow,
    OffsetRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.promise import Promise

NOT_AVAILABLE, NOT_COORDINATOR, FENCED, UNSTABLE = 15, 16, 90, 88
GROUPS, TRANSACTIONS = "group/0", "transaction/0"
Deliver = Callable[[], Awaitable[Any]]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MARKER_RETRY_S", 0.005)
    monkeypatch.setattr(offsets_in_transactions, "LOOK_AGAIN_S", 0.005)


async def answer(reply: Any) -> Any:
    return await reply if isinstance(reply, Promise) else reply


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not happened():
            await asyncio.sleep(0.001)


class GroupBroker:
    """G."""

    def __init__(self, database: Database, catalog: Catalog) -> None:
        self.store = FakeStore(database)
        self.catalog = catalog

    async def start(self) -> "GroupBroker":
        ids, store = count(), self.store
        fence = await store.acquire(GROUPS)
        pending = PendingOffsets()
        self.coordinator = GroupCoordinator(
            GroupConfig(), self.catalog, lambda: f"#{next(ids)}", now_ms, pending.has, pending.has_any
        )
        for row in await store.load(TransactionOffsetRow):
            pending.found(
                row.transactional_id,
                row.group,
                [*pending.of(row.transactional_id, row.group), (row.topic, row.partition)],
            )
        rows = await store.load(GroupRow), await store.load(GroupMemberRow), await store.load(OffsetRow)
        self.coordinator.restore(*rows, monotonic_ms())
        self.groups = Groups(self.coordinator, store, cast("Any", None), fence, pending)
        self.groups.begin()
        return self

    async def commit(self, offset: int) -> int:
        reply = await answer(self.groups.ask(_commit(offset)))
        code: int = reply.topics[0].partitions[0].error_code
        return code

    async def committed(self, *, stable: bool = True) -> int:
        """The offset, or the negative error code."""
        wanted = g.GroupOffsetsRequest("g", (g.FetchedOffsetsTopic("t", (0,)),))
        (found,) = (await answer(self.groups.ask(g.OffsetFetch((wanted,), stable)))).groups
        if found.error_code:
            return -int(found.error_code)
        (place,) = found.topics[0].partitions
        return -int(place.error_code) if place.error_code else int(place.offset)


def _commit(offset: int) -> g.OffsetCommit:
    return g.OffsetCommit("g", (g.CommittedTopic("t", (g.CommittedPartition(0, offset),)),))


class TransactionBroker:
    """T."""

    def __init__(self, cluster: "Cluster") -> None:
        self.store = FakeStore(cluster.database)
        self._cluster = cluster

    async def start(self) -> "TransactionBroker":
        store = self.store
        fence = await store.acquire(TRANSACTIONS)
        ids = ProducerIds(store)
        await ids.reserve()
        self.coordinator = TransactionCoordinator(TransactionConfig(), ids.take, now_ms)
        rows = await store.load(TransactionRow), await store.load(TransactionOffsetRow), await store.load(DecisionRow)
        restored = self.coordinator.restore(*rows, monotonic_ms())
        self.transactions = Transactions(
            self.coordinator,
            store,
            ids,
            None,
            SoleOwnership(0),
            fence,
            cast("Any", object()),
            cast("Any", self._cluster),
        )
        self.transactions.begin(cast("Any", None), restored)
        return self

    def state(self) -> str:
        (described,) = self.transactions.ask(t.DescribeTransactions(("id",))).transactions
        return str(described.state)


class Cluster:
    """The brokers, and what becomes of the messages between them: `asking` and `telling` deliver them or not."""

    def __init__(self) -> None:
        self.database = Database()
        self.catalog = Catalog(t=2)
        self.asking: list[Callable[[Deliver], Awaitable[Any]]] = []  # for the next messages; then all are delivered
        self.telling: list[Callable[[Deliver], Awaitable[Any]]] = []
        self.told = 0

    async def start(self) -> "Cluster":
        self.g = await GroupBroker(self.database, self.catalog).start()
        self.t = await TransactionBroker(self).start()
        await self.init()
        return self

    async def init(self) -> None:
        reply = await answer(self.t.transactions.ask(t.InitProducerId("id", 60_000)))
        assert reply.error_code == 0
        self.producer_id, self.epoch = reply.producer_id, reply.epoch

    async def move_g(self) -> GroupBroker:
        """Returns the former one, which has not heard of it."""
        former, self.g = self.g, await GroupBroker(self.database, self.catalog).start()
        return former

    async def move_t(self) -> None:
        self.t.transactions.resign()
        self.t = await TransactionBroker(self).start()

    def txn_commit(self, offset: int, by: GroupBroker | None = None, epoch: int | None = None) -> Promise[Any]:
        """What the client asks of the coordinator of the group."""
        groups = (by or self.g).groups
        _, rows = groups.check_transactional(_commit(offset))
        epoch = self.epoch if epoch is None else epoch
        question = t.CommitOffsets("id", self.producer_id, epoch, "g", tuple(rows))
        return groups.commit_in_transaction(question, self._ask)

    async def _ask(self, question: t.CommitOffsets) -> Any:
        async def deliver() -> Any:
            return await answer(self.t.transactions.ask(question))

        return await (self.asking.pop(0)(deliver) if self.asking else deliver())

    def tell(self, ending: Ending, ended: EndedGroup) -> Promise[None]:
        """As `EndNotices`."""
        promise: Promise[None] = Promise()
        self._telling = asyncio.ensure_future(self._tell(ending.transactional_id, ended, promise))
        return promise

    async def _tell(self, id_: str, ended: EndedGroup, promise: Promise[None]) -> None:
        async def deliver() -> Any:
            code = await self.g.groups.transaction_ended(id_, *ended)
            if code:
                raise PeerUnavailable(f"told {code}")

        self.told += 1
        try:
            await (self.telling.pop(0)(deliver) if self.telling else deliver())
        except PeerUnavailable as error:
            promise.fail(error)
        else:
            promise.settle(None)

    async def end(self, committed: bool = True) -> int:
        reply = await answer(self.t.transactions.ask(t.EndTransaction("id", self.producer_id, self.epoch, committed)))
        if not reply.error_code:
            self.producer_id, self.epoch = reply.producer_id, reply.epoch
        code: int = reply.error_code
        return code

    async def completed(self) -> None:
        await until(lambda: self.t.state().startswith("Complete"))


async def lost_request(_deliver: Deliver) -> Any:
    raise PeerUnavailable("the request was lost")


async def lost_reply(deliver: Deliver) -> Any:
    await deliver()
    raise PeerUnavailable("the reply was lost")


class Held:
    """A message whose delivery, or whose reply, waits."""

    def __init__(self, *, is_reply: bool = False) -> None:
        self._is_reply = is_reply
        self.is_there = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, deliver: Deliver) -> Any:
        result = await deliver() if self._is_reply else None
        self.is_there.set()
        await self.go_on.wait()
        return result if self._is_reply else await deliver()


def play(script: Callable[[Cluster], Awaitable[None]]) -> None:
    async def run() -> None:
        with structlog.testing.capture_logs():
            await script(await Cluster().start())

    assert in_loop(run) == []


@pytest.mark.parametrize("commits", [True, False])
def test_an_offset_is_unstable_from_the_request_on_until_the_end(commits: bool) -> None:
    async def script(cluster: Cluster) -> None:
        assert await cluster.g.commit(5) == 0
        reply = cluster.txn_commit(7)
        assert await cluster.g.committed() == -UNSTABLE, "although T has not even been asked"
        assert (await reply).error_code == 0
        assert await cluster.g.committed() == -UNSTABLE
        assert await cluster.g.committed(stable=False) == 5
        assert await cluster.end(commits) == 0
        assert await cluster.g.committed() == (7 if commits else 5)
        await cluster.completed()
        assert cluster.told == 1

    play(script)


@pytest.mark.parametrize("fault", [lost_request, lost_reply])
def test_a_client_whose_offsets_may_not_have_arrived_retries(fault: Any) -> None:
    async def script(cluster: Cluster) -> None:
        cluster.asking = [fault]
        assert (await cluster.txn_commit(7)).error_code == NOT_AVAILABLE
        assert await cluster.g.committed() == (-UNSTABLE if fault is lost_reply else -1), "as T knows it"
        assert (await cluster.txn_commit(7)).error_code == 0
        assert await cluster.g.committed() == -UNSTABLE
        assert await cluster.end() == 0
        assert await cluster.g.committed() == 7

    play(script)


def test_what_the_transaction_refuses_is_told_and_is_not_unstable() -> None:
    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7, epoch=cluster.epoch - 1)).error_code == FENCED
        assert await cluster.g.committed() == -1

    play(script)


@pytest.mark.parametrize("fault", [lost_request, lost_reply])
@pytest.mark.parametrize("commits", [True, False])
def test_the_end_is_told_until_it_is_answered_and_the_transaction_is_not_complete_before(
    fault: Any, commits: bool
) -> None:
    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        cluster.telling = [fault, fault, Held()]
        held = cluster.telling[-1]
        ended = asyncio.ensure_future(cluster.end(commits))
        await held.is_there.wait()  # type: ignore[attr-defined]
        assert cluster.t.state().startswith("Prepare")
        heard = 7 if commits else -1
        assert await cluster.g.committed() == (heard if fault is lost_reply else -UNSTABLE)
        held.go_on.set()  # type: ignore[attr-defined]
        assert await ended == 0
        await cluster.completed()
        assert await cluster.g.committed() == heard

    play(script)


def test_a_client_does_not_wait_longer_for_a_coordinator_that_is_down_than_for_a_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "VISIBLE_WITHIN_S", 0.01)

    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        held = Held()
        cluster.telling = [held]
        assert await cluster.end() == 0
        assert await cluster.g.committed() == -UNSTABLE, "nobody is told the old offset"
        held.go_on.set()
        await cluster.completed()
        assert await cluster.g.committed() == 7

    play(script)


def test_a_group_that_moves_while_the_transaction_is_asked_refuses_and_the_retry_is_taken() -> None:
    async def script(cluster: Cluster) -> None:
        held = Held()
        cluster.asking = [held]
        reply = cluster.txn_commit(7)
        await held.is_there.wait()
        former = await cluster.move_g()
        assert await cluster.g.committed() == -1, "it does not know yet what T is about to store"
        held.go_on.set()
        assert (await reply).error_code == NOT_COORDINATOR, "so the client must not be told that it is done"
        assert await former.committed() == -NOT_COORDINATOR
        assert (await cluster.txn_commit(7)).error_code == 0
        assert await cluster.g.committed() == -UNSTABLE
        assert await cluster.end() == 0
        assert await cluster.g.committed() == 7

    play(script)


@pytest.mark.parametrize("commits", [True, False])
def test_a_group_that_moves_before_the_end_still_has_its_offsets_unstable(commits: bool) -> None:
    async def script(cluster: Cluster) -> None:
        assert await cluster.g.commit(5) == 0
        assert (await cluster.txn_commit(7)).error_code == 0
        await cluster.move_g()
        assert await cluster.g.committed() == -UNSTABLE
        assert await cluster.end(commits) == 0
        await cluster.completed()
        assert await cluster.g.committed() == (7 if commits else 5)

    play(script)


def test_a_coordinator_that_was_replaced_cannot_swallow_the_end() -> None:
    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        former = await cluster.move_g()
        current, cluster.g = cluster.g, former  # T has not heard that the group has moved
        cluster.telling = [partial(_then, lambda: setattr(cluster, "g", current))]
        assert await cluster.end() == 0
        await cluster.completed()
        assert cluster.told == 2
        assert await current.committed() == 7

    play(script)


async def _then(after: Callable[[], None], deliver: Deliver) -> Any:
    try:
        return await deliver()
    finally:
        after()


def test_a_group_that_moves_between_the_decision_and_the_news_has_the_new_offsets() -> None:
    async def script(cluster: Cluster) -> None:
        assert await cluster.g.commit(5) == 0
        assert (await cluster.txn_commit(7)).error_code == 0
        held = Held()
        cluster.telling = [held]
        ended = asyncio.ensure_future(cluster.end())
        await held.is_there.wait()
        await cluster.move_g()
        assert await cluster.g.committed() == 7
        held.go_on.set()
        assert await ended == 0

    play(script)


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_that_moves_before_its_end_keeps_its_offsets(commits: bool) -> None:
    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        await cluster.move_t()
        assert await cluster.g.committed() == -UNSTABLE
        assert await cluster.end(commits) == 0
        assert await cluster.g.committed() == (7 if commits else -1)

    play(script)


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_that_moves_after_its_decision_is_told_by_its_new_coordinator(commits: bool) -> None:
    async def script(cluster: Cluster) -> None:
        assert await cluster.g.commit(5) == 0
        assert (await cluster.txn_commit(7)).error_code == 0
        cluster.telling = [lost_request] * 3
        ended = asyncio.ensure_future(cluster.end(commits))
        await until(lambda: len(cluster.telling) < 3)
        await cluster.move_t()
        await ended
        await cluster.completed()
        assert await cluster.g.committed() == (7 if commits else 5)

    play(script)


def test_a_producer_that_is_fenced_leaves_no_unstable_offset() -> None:
    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        await cluster.init()
        assert await cluster.g.committed() == -1

    play(script)


def test_an_answer_that_comes_after_the_end_of_the_transaction_marks_nothing() -> None:
    async def script(cluster: Cluster) -> None:
        held = Held(is_reply=True)
        cluster.asking = [held]
        reply = cluster.txn_commit(7)
        await held.is_there.wait()
        assert await cluster.end() == 0, "somebody else has ended it"
        await cluster.completed()
        assert await cluster.g.committed() == -UNSTABLE, "G still waits for the answer"
        held.go_on.set()
        assert (await reply).error_code == 0
        assert await cluster.g.committed() == 7

    play(script)


def test_what_an_answer_shows_to_have_ended_is_read_before_it_is_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "VISIBLE_WITHIN_S", 0.01)

    async def script(cluster: Cluster) -> None:
        assert await cluster.g.commit(5) == 0
        answered, told = Held(is_reply=True), Held()
        cluster.asking, cluster.telling = [answered], [told]
        reply = cluster.txn_commit(7)
        await answered.is_there.wait()
        assert await cluster.end() == 0
        assert await cluster.g.committed() == -UNSTABLE
        answered.go_on.set()
        assert (await reply).error_code == 0
        assert await cluster.g.committed() == 7, "although G has not been told of the end"
        told.go_on.set()
        await cluster.completed()

    play(script)


def test_old_news_do_not_make_offsets_of_the_next_transaction_stable() -> None:
    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        assert await cluster.end() == 0
        await cluster.completed()
        held = Held()
        cluster.asking = [held]
        reply = cluster.txn_commit(9)
        await held.is_there.wait()
        for topics in (("t",), None):
            assert await cluster.g.groups.transaction_ended("id", "g", topics) == 0
            assert await cluster.g.committed() == -UNSTABLE, "it is being asked for"
        held.go_on.set()
        assert (await reply).error_code == 0
        for topics in (("t",), None):
            assert await cluster.g.groups.transaction_ended("id", "g", topics) == 0
            assert await cluster.g.committed() == -UNSTABLE
        assert await cluster.end() == 0
        assert await cluster.g.committed() == 9

    play(script)


def test_the_next_transaction_waits_until_the_group_has_heard_of_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "VISIBLE_WITHIN_S", 0.01)

    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        held = Held()
        cluster.telling = [held]
        assert await cluster.end() == 0
        following = cluster.txn_commit(9)
        await asyncio.sleep(0.02)
        assert not following.is_kept
        held.go_on.set()
        assert (await following).error_code == 0
        assert await cluster.g.committed(stable=False) == 7
        assert await cluster.end() == 0
        assert await cluster.g.committed() == 9

    play(script)


def test_commits_of_the_group_itself_are_in_memory_as_in_the_store_whatever_their_order() -> None:
    async def script(cluster: Cluster) -> None:
        store, groups = cluster.g.store, cluster.g.groups
        for number in range(40):
            assert (await cluster.txn_commit(1000 + number)).error_code == 0
            ended = asyncio.ensure_future(cluster.end())
            for turn in range(number % 8):
                await asyncio.sleep(0)
                groups.ask(_commit(10 * number + turn))
            assert await ended == 0
            await cluster.completed()
            last = await cluster.g.commit(5) if number % 3 == 0 else 0
            assert last == 0
            await until(lambda: not store.waiting)
            (row,) = cluster.database.table(OffsetRow)
            assert await cluster.g.committed() == row.offset

    play(script)


@pytest.mark.parametrize("failures", [1, 3])
def test_while_the_store_cannot_be_read_nothing_is_stable_and_the_client_and_t_retry(failures: int) -> None:
    async def script(cluster: Cluster) -> None:
        load, left = cluster.g.store.load, failures

        def failing(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                return load(*arguments)
            failed: Promise[Any] = Promise()
            failed.fail(StorageUnavailable("away"))
            return failed

        cast("Any", cluster.g.store).load = failing
        assert (await cluster.txn_commit(7)).error_code == NOT_AVAILABLE
        await asyncio.sleep(0.03)
        assert await cluster.g.committed() == -UNSTABLE
        assert (await cluster.txn_commit(7)).error_code == 0
        left = failures
        assert await cluster.end() == 0
        await cluster.completed()
        assert cluster.told == failures + 1
        assert await cluster.g.committed() == 7

    play(script)


def test_offsets_of_a_topic_that_was_deleted_meanwhile_are_dropped() -> None:
    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        cluster.catalog.delete("t")
        cluster.g.groups._drop_deleted(["t"])
        assert await cluster.end() == 0, "T has not heard of it"
        await cluster.completed()
        await until(lambda: not cluster.database.table(OffsetRow))
        assert cluster.g.groups.committed("g", "t", 0) is None

    play(script)


def test_a_coordinator_drops_what_belongs_to_topics_that_were_deleted_when_there_was_none() -> None:
    async def script(cluster: Cluster) -> None:
        assert await cluster.g.commit(5) == 0
        cluster.catalog.delete("t")
        await cluster.move_g()
        await until(lambda: not cluster.database.table(OffsetRow))

    play(script)


def test_a_group_without_members_is_kept_while_a_transaction_has_an_offset_of_it() -> None:
    async def script(cluster: Cluster) -> None:
        assert (await cluster.txn_commit(7)).error_code == 0
        pending = cast("Any", cluster.g.coordinator)._is_in_transaction
        assert pending("g")
        assert await cluster.end() == 0
        await cluster.completed()
        assert not pending("g")

    play(script)
