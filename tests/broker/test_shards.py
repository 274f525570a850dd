"""A broker of a cluster coordinates some shards of groups and transactions: requests find their shard, and what names
many is put together again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

import pytest
import structlog

from tests.broker.groups.world import Catalog
from tests.broker.test_shell import in_loop
from tests.support.metadata_store import Database, FakeStore
from tidelog.broker.configs import Alter, Alteration, BrokerConfig, Operation
from tidelog.broker.coordination.groups import GroupConfig
from tidelog.broker.coordination.groups import messages as g
from tidelog.broker.coordination.groups.environment import GroupBounds
from tidelog.broker.coordination.groups.errors import CoordinatorLoading, NotCoordinator
from tidelog.broker.coordination.transactions import TransactionConfig
from tidelog.broker.coordination.transactions import messages as t
from tidelog.broker.coordination.transactions.coordinator import TransactionBounds
from tidelog.broker.group_shards import GroupShards
from tidelog.broker.ownership import SoleOwnership
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.topics import Topic
from tidelog.broker.transaction_shards import TransactionShards
from tidelog.broker.writes import Writes
from tidelog.errors import StorageUnavailable
from tidelog.metadata.registry import group_shard, transaction_shard
from tidelog.metadata.rows import OffsetRow, TransactionOffsetRow, TransactionRow
from tidelog.metadata.store import Put
from tidelog.model import shard_of
from tidelog.node import shard_loading
from tidelog.node.shard_loading import Cooperation, ShardLoading
from tidelog.promise import Promise

LOADING, NOT_COORDINATOR, INVALID_REQUEST, GROUP_MAX_SIZE = 14, 16, 42, 81
CONFIG = {"tidelog.max.groups": "4"}


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_loading, "_RETRY_S", 0.002)


async def answer(reply: Any) -> Any:
    return await reply if isinstance(reply, Promise) else reply


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not happened():
            await asyncio.sleep(0.001)


def ids(count: int, but: Iterable[int] = ()) -> list[str]:
    """Ids of different shards, none of them one of these."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < count:
        id_ = f"id{number}"
        if shard_of(id_) not in but:
            found.setdefault(shard_of(id_), id_)
        number += 1
    return list(found.values())


A, B, C = ids(3)
NOBODYS = ids(1, map(shard_of, (A, B, C)))[0]


class Topics:
    """As `Topics` and their catalog."""

    def __init__(self) -> None:
        self.catalog = Catalog(t=2)

    def find(self, name: str) -> Topic | None:
        known = self.catalog.by_name(name)
        return None if known is None else Topic(name, known.topic_id, known.partitions, 0, {}, cast("Any", None))

    def find_id(self, topic_id: bytes) -> Topic | None:
        known = self.catalog.by_id(topic_id)
        return None if known is None else self.find(known.name)

    def __iter__(self) -> Any:
        return (self.find(name) for name in self.catalog.names())


class Node:
    """A broker, as far as its coordinators need it."""

    def __init__(self, database: Database | None = None) -> None:
        self.store = FakeStore(database)
        self.database = self.store.database
        self.config = BrokerConfig(CONFIG)
        self.topics = Topics()
        self.producer_ids = ProducerIds(self.store)
        self.groups = GroupShards(GroupBounds(GroupConfig(tidelog_max_groups=4)), Writes(self.store), self.config)
        self.transactions = TransactionShards(TransactionBounds(TransactionConfig()))
        self.followed = 0
        cooperation = Cooperation(SoleOwnership(0), cast("Any", object()), cast("Any", self))
        self.loading = ShardLoading(
            cast("Any", self),
            self.groups,
            self.transactions,
            self.store,
            self.producer_ids,
            cooperation,
            self._follow,
        )
        self.partition = None

    async def _follow(self) -> None:
        self.followed += 1

    def tell(self, *_: Any) -> Promise[None]:
        """As `EndNotices`."""
        told: Promise[None] = Promise()
        told.settle(None)
        return told

    async def gain(self, *keys: str, until_loaded: bool = True) -> None:
        leases = {}
        for shard in (group_shard, transaction_shard):
            for key in keys:
                fence = await self.store.acquire(shard(shard_of(key)))
                leases[fence.scope] = fence.epoch
        self.loading.gained(leases)
        if until_loaded:
            await until(lambda: self.loading.is_done)

    def lose(self, *keys: str) -> None:
        self.loading.lost([shard(shard_of(key)) for shard in (group_shard, transaction_shard) for key in keys])

    async def commit(self, group: str, offset: int = 7) -> int:
        topics = (g.CommittedTopic("t", (g.CommittedPartition(0, offset),)),)
        reply = await answer(self.groups.ask(g.OffsetCommit(group, topics)))
        return int(reply.topics[0].partitions[0].error_code)

    async def committed(self, *groups: str) -> list[tuple[str, int, int]]:
        wanted = tuple(g.GroupOffsetsRequest(each, (g.FetchedOffsetsTopic("t", (0,)),)) for each in groups)
        reply = await answer(self.groups.ask(g.OffsetFetch(wanted)))
        return [
            (each.group_id, each.error_code, each.topics[0].partitions[0].offset if each.topics else -1)
            for each in reply.groups
        ]

    async def init(self, id_: str) -> tuple[int, int, int]:
        reply = await answer(self.transactions.ask(t.InitProducerId(id_, 60_000)))
        return reply.error_code, reply.producer_id, reply.epoch


def play(script: Callable[[Node], Awaitable[None]]) -> None:
    async def run() -> None:
        with structlog.testing.capture_logs():
            node = Node()
            await node.producer_ids.reserve()
            await script(node)
            await node.loading.close()

    assert in_loop(run) == []


def test_each_request_goes_to_the_shard_of_its_id_and_is_written_with_that_fence() -> None:
    async def script(node: Node) -> None:
        await node.gain(A, B)
        node.store.fences.clear()
        assert await node.commit(A) == await node.commit(B) == 0
        assert [each.scope for each in node.store.fences if each] == [group_shard(shard_of(id_)) for id_ in (A, B)]
        node.store.fences.clear()
        assert (await node.init(A))[0] == (await node.init(B))[0] == 0
        assert [each.scope for each in node.store.fences if each] == [
            transaction_shard(shard_of(id_)) for id_ in (A, B)
        ]
        assert await node.commit(NOBODYS) == NOT_COORDINATOR
        assert (await node.init(NOBODYS))[0] == NOT_COORDINATOR
        with pytest.raises(NotCoordinator):
            node.groups.check_transactional(g.OffsetCommit(NOBODYS, ()))
        assert await node.groups.transaction_ended("id", NOBODYS, None) == NOT_COORDINATOR

    play(script)


def test_a_request_that_names_many_is_answered_in_its_order() -> None:
    async def script(node: Node) -> None:
        await node.gain(A, B)
        assert await node.commit(A, 1) == await node.commit(B, 2) == 0
        assert await node.committed(B, NOBODYS, A, B) == [
            (B, 0, 2),
            (NOBODYS, NOT_COORDINATOR, -1),
            (A, 0, 1),
            (B, 0, 2),
        ]
        described = node.groups.ask(g.DescribeGroups((NOBODYS, B, A))).groups
        assert [(each.group_id, each.error_code) for each in described] == [
            (NOBODYS, NOT_COORDINATOR),
            (B, 0),
            (A, 0),
        ]
        deleted = (await answer(node.groups.ask(g.DeleteGroups((B, NOBODYS, A))))).results
        assert [(each.group_id, each.error_code) for each in deleted] == [(B, 0), (NOBODYS, NOT_COORDINATOR), (A, 0)]
        assert node.groups.ask(g.DescribeGroups(())).groups == ()
        await node.init(A)
        about = (await answer(node.transactions.ask(t.DescribeTransactions((NOBODYS, A))))).transactions
        assert [(each.transactional_id, each.error_code) for each in about] == [(NOBODYS, NOT_COORDINATOR), (A, 0)]

    play(script)


def test_lists_are_those_of_all_shards_or_an_error_while_one_is_being_loaded() -> None:
    async def script(node: Node) -> None:
        assert node.groups.ask(g.ListGroups()) == g.ListGroupsReply()
        assert node.transactions.ask(t.ListTransactions()) == t.ListTransactionsReply()
        await node.gain(A, B)
        for id_ in (A, B):
            await node.commit(id_)
            await node.init(id_)
        assert {each.group_id for each in node.groups.ask(g.ListGroups()).groups} == {A, B}
        listed = node.transactions.ask(t.ListTransactions(states=("Empty", "Odd")))
        assert {each.transactional_id for each in listed.transactions} == {A, B}
        assert listed.unknown_states == ("Odd",)
        assert node.transactions.ask(t.ListTransactions(pattern="(")).error_code == 128
        node.store.is_held = True
        node.loading.gained({group_shard(shard_of(C)): 1, transaction_shard(shard_of(C)): 1})
        assert node.groups.ask(g.ListGroups()).error_code == LOADING
        assert node.transactions.ask(t.ListTransactions()).error_code == LOADING
        assert await node.commit(C) == LOADING
        assert (await node.init(C))[0] == LOADING
        with pytest.raises(CoordinatorLoading):
            node.groups.check_transactional(g.OffsetCommit(C, ()))
        node.store.is_held = False
        while node.store.waiting or not node.loading.is_done:
            node.store.step(node.store.waiting)
            await asyncio.sleep(0)
        assert not node.groups.ask(g.ListGroups()).error_code

    play(script)


def test_a_shard_that_is_gained_has_its_rows_and_no_others_and_one_that_is_lost_is_not_answered_for() -> None:
    async def script(node: Node) -> None:
        await node.gain(A, B)
        for id_ in (A, B):
            await node.commit(id_, 5)
        _, producer_id, epoch = await node.init(A)
        other = Node(node.database)
        await other.gain(A)
        assert await other.committed(A, B) == [(A, 0, 5), (B, NOT_COORDINATOR, -1)]
        assert await other.init(A) == (0, producer_id, epoch + 1)
        node.lose(A)
        assert await node.committed(A, B) == [(A, NOT_COORDINATOR, -1), (B, 0, 5)]
        assert (await node.init(A))[0] == NOT_COORDINATOR
        node.lose(B)
        await node.gain(B)
        assert await node.committed(B) == [(B, 0, 5)]
        assert node.followed > 0, "which topics there are is known before"
        await other.loading.close()

    play(script)


def test_loading_is_repeated_until_it_succeeds_or_the_shard_is_lost() -> None:
    async def script(node: Node) -> None:
        load = node.store.load
        attempts = 0

        def failing(*_: Any) -> Any:
            nonlocal attempts
            attempts += 1
            failed: Promise[Any] = Promise()
            failed.fail(StorageUnavailable("away"))
            return failed

        cast("Any", node.store).load = failing
        await node.gain(A, B, until_loaded=False)
        await until(lambda: attempts > 10)
        node.lose(B)
        cast("Any", node.store).load = load
        await until(lambda: node.loading.is_done)
        assert await node.committed(A, B) == [(A, 0, -1), (B, NOT_COORDINATOR, -1)]
        before = attempts
        await asyncio.sleep(0.01)
        assert attempts == before

    play(script)


def test_limits_are_for_the_broker_as_a_whole_and_what_is_lost_is_not_counted() -> None:
    async def script(node: Node) -> None:
        await node.gain(A, B)
        joining = {"rebalance_timeout_ms": 1000, "topic_partitions": (), "subscribed_topic_names": ("t",)}

        async def join(group: str) -> int:
            reply = await answer(node.groups.ask(g.ConsumerGroupHeartbeat(group, "m", 0, **cast("Any", joining))))
            return int(reply.error_code)

        here = [f"group {number}" for number in range(300) if shard_of(f"group {number}") in map(shard_of, (A, B))]
        of_a = [each for each in here if shard_of(each) == shard_of(A)]
        of_b = [each for each in here if shard_of(each) == shard_of(B)]
        codes = [await join(each) for each in (*of_a[:2], *of_b[:2], of_a[2], of_b[2])]
        assert codes == [0, 0, 0, 0, GROUP_MAX_SIZE, GROUP_MAX_SIZE]
        used = {bound.config: bound.used_bytes // bound.bytes_each for bound in node.groups.bounds}
        assert (used["tidelog.max.groups"], used["tidelog.max.group.members"]) == (4, 4)
        node.lose(A)
        used = {bound.config: bound.used_bytes // bound.bytes_each for bound in node.groups.bounds}
        assert (used["tidelog.max.groups"], used["tidelog.max.group.members"]) == (2, 2)
        assert await join(of_b[2]) == 0

    play(script)


def test_configs_of_groups_reach_their_shard_now_and_when_it_is_loaded() -> None:
    async def script(node: Node) -> None:
        await node.gain(A)
        edit = Alter([Alteration("consumer.session.timeout.ms", Operation.SET, "50000")])
        for group in (A, B):
            await node.groups.configs.alter(group, edit)
        await node.gain(B)
        for group in (A, B):
            shard = cast("Any", node.groups)._shard(group)
            assert shard.coordinator._env.pace(group).session_timeout_ms == 50_000
        node.groups.configs.reload([])
        assert cast("Any", node.groups)._shard(A).coordinator._env.pace(A).session_timeout_ms == 45_000

    play(script)


def test_offsets_in_transactions_are_unstable_from_the_loading_on_and_deleted_topics_are_dropped() -> None:
    async def script(node: Node) -> None:
        offset = OffsetRow(A, "t", 0, 5, -1, "", 0)
        gone = OffsetRow(A, "deleted", 0, 5, -1, "", 0)
        row = TransactionRow(B, 3, 0, -1, -1, -1, 60_000, "Ongoing", "{}", f'["{A}"]', 1, 1)
        of_transaction = [TransactionOffsetRow(B, A, topic, 0, 6, -1, "", 0) for topic in ("t", "deleted")]
        node.database.write([Put(offset), Put(gone), Put(row), *map(Put, of_transaction)])
        await node.gain(A, B)
        wanted = (g.GroupOffsetsRequest(A, (g.FetchedOffsetsTopic("t", (0, 1)),)),)
        (found,) = (await answer(node.groups.ask(g.OffsetFetch(wanted, True)))).groups
        assert [each.error_code for each in found.topics[0].partitions] == [88, 0]
        await until(lambda: len(node.database.table(OffsetRow)) == 1)
        await until(lambda: len(node.database.table(TransactionOffsetRow)) == 1)
        node.groups.topic_deleted(cast("Any", node.topics.find("t")))
        node.transactions.topic_deleted(cast("Any", node.topics.find("t")))
        await until(lambda: not node.database.table(OffsetRow))
        await until(lambda: not node.database.table(TransactionOffsetRow))

    play(script)


def test_one_decision_is_for_ids_of_one_shard() -> None:
    async def script(node: Node) -> None:
        await node.gain(A, B)
        decide = node.transactions.ask(t.DecideTransactions(A, 1, (t.EndedTransaction(B, 1, 0),)))
        assert decide.error_code == INVALID_REQUEST
        beside = next(id_ for id_ in (f"{A}-{n}" for n in range(1000)) if shard_of(id_) == shard_of(A))
        _, producer_id, epoch = await node.init(beside)
        added = await answer(node.transactions.ask(t.AddOffsets(beside, producer_id, epoch, "group")))
        assert added.error_code == 0
        ended = (t.EndedTransaction(beside, producer_id, epoch),)
        assert (await answer(node.transactions.ask(t.DecideTransactions(A, 1, ended)))).is_new
        assert node.transactions.ask(t.DescribeDecision(A)) == t.DescribeDecisionReply(number=1)
        assert node.transactions.ask(t.DescribeDecision(NOBODYS)).error_code == NOT_COORDINATOR

    play(script)


def test_members_that_wait_are_answered_when_the_broker_stops_in_all_shards_also_in_those_to_come() -> None:
    async def script(node: Node) -> None:
        await node.gain(A)
        node.groups.stop_waiting()
        await node.gain(B)
        for group in (A, B):
            join = g.JoinGroup(group, 10_000, 10_000, "", None, "consumer", (g.Protocol("range", b""),))
            assert node.groups.ask(join).error_code == 15

    play(script)
