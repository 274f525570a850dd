"""The broker over a store that many brokers share: outcomes that nobody knows, and scopes that another broker has
taken over. Groups, transactions and topics, with a store whose faults the test chooses."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, cast

import pytest
import structlog

from tests.broker.groups.world import Catalog
from tests.broker.test_shell import in_loop
from tests.support.metadata_store import Database, FakeStore, Fault, unknown
from tidelog.broker import transactions as transactions_module
from tidelog.broker import writes as writes_module
from tidelog.broker.configs import Alter, Alteration, BrokerConfig, Operation
from tidelog.broker.coordination.groups import GroupConfig, GroupCoordinator
from tidelog.broker.coordination.groups import messages as g
from tidelog.broker.coordination.groups.errors import NotCoordinator as NotGroupCoordinator
from tidelog.broker.coordination.transactions import TransactionConfig, TransactionCoordinator
from tidelog.broker.coordination.transactions import messages as t
from tidelog.broker.coordination.transactions.errors import NotCoordinator
from tidelog.broker.group_configs import GroupConfigs
from tidelog.broker.groups import Groups
from tidelog.broker.ownership import SoleOwnership
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.shell import monotonic_ms, now_ms
from tidelog.broker.topics import NewTopic, Topic, TopicAlreadyExists, Topics
from tidelog.broker.transactions import Transactions
from tidelog.errors import Conflict, Fenced, OutcomeUnknown, StorageUnavailable
from tidelog.metadata.rows import (
    ConfigRow,
    DecisionRow,
    GroupMemberRow,
    GroupRow,
    OffsetRow,
    TopicRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.metadata.store import Delete, Fence, Put
from tidelog.model import TopicPartition
from tidelog.promise import Promise

NOT_AVAILABLE, NOT_COORDINATOR = 15, 16
GROUPS, TRANSACTIONS, CONTROLLER = "groups", "transactions", "controller"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes_module, "REPEAT_S", 0.002)


async def answer(reply: Any) -> Any:
    return await reply if isinstance(reply, Promise) else reply


async def until(happened: Callable[[], object]) -> None:
    while not happened():
        await asyncio.sleep(0.001)


both_ways = pytest.mark.parametrize("takes_effect", [True, False])


# Groups


class GroupBroker:
    """One of the brokers; it owns the groups from its `start` on."""

    def __init__(self, database: Database) -> None:
        self.store = FakeStore(database)

    async def start(self) -> "GroupBroker":
        ids, store = count(), self.store
        fence = await store.acquire(GROUPS)
        self.coordinator = GroupCoordinator(
            GroupConfig(group_initial_rebalance_delay_ms=60_000), Catalog(t=2), lambda: f"#{next(ids)}", now_ms
        )
        groups, members, offsets = (
            await store.load(GroupRow),
            await store.load(GroupMemberRow),
            await store.load(OffsetRow),
        )
        self.coordinator.restore(groups, members, offsets, monotonic_ms())
        self.groups = Groups(self.coordinator, store, cast("Any", None), fence)
        return self

    def heartbeat(self, member: str = "m", epoch: int = 0) -> Any:
        joining: dict[str, Any] = {} if epoch else {"rebalance_timeout_ms": 1000, "topic_partitions": ()}
        if not epoch:
            joining["subscribed_topic_names"] = ("t",)
        return self.groups.ask(g.ConsumerGroupHeartbeat("g", member, epoch, **joining))

    def commit(self, offset: int, group: str = "free") -> Any:
        topics = (g.CommittedTopic("t", (g.CommittedPartition(0, offset),)),)
        return self.groups.ask(g.OffsetCommit(group, topics))

    async def committed(self, group: str = "free") -> tuple[int, int]:
        wanted = g.GroupOffsetsRequest(group, (g.FetchedOffsetsTopic("t", (0,)),))
        (found,) = (await answer(self.groups.ask(g.OffsetFetch((wanted,))))).groups
        return (found.error_code, found.topics[0].partitions[0].offset if found.topics else -1)

    async def delete_offset(self) -> int:
        reply = await answer(self.groups.ask(g.OffsetDelete("free", (("t", (0,)),))))
        code: int = reply.error_code or reply.topics[0].partitions[0].error_code
        return code


def code_of(reply: Any) -> int:
    code: int = reply.topics[0].partitions[0].error_code
    return code


@both_ways
def test_a_member_whose_join_has_an_unknown_outcome_is_told_when_it_is_decided(takes_effect: bool) -> None:
    async def run() -> None:
        broker = await GroupBroker(Database()).start()
        broker.store.faults.extend([unknown(takes_effect=takes_effect)] * 3)
        joined = await answer(broker.heartbeat())
        assert (joined.error_code, joined.member_epoch) == (0, 1)
        assert [row.member_id for row in broker.store.database.table(GroupMemberRow)] == ["m"]
        again = await GroupBroker(broker.store.database).start()
        assert (await answer(again.heartbeat(epoch=1))).error_code == 0, "what it was told is durable"

    assert in_loop(run) == []


@both_ways
def test_offsets_in_memory_and_in_the_store_agree_after_unknown_outcomes(takes_effect: bool) -> None:
    async def run() -> None:
        broker = await GroupBroker(Database()).start()
        assert code_of(await answer(broker.commit(5))) == 0
        broker.store.faults.append(unknown(takes_effect=takes_effect))
        first, second = broker.commit(6), broker.commit(7)
        assert await broker.committed() == (0, 5), "nothing is told that is not durable"
        assert (code_of(await first), code_of(await second)) == (0, 0)
        assert await broker.committed() == (0, 7)
        assert [row.offset for row in broker.store.database.table(OffsetRow)] == [7]
        broker.store.faults.append(unknown(takes_effect=takes_effect))
        assert await broker.delete_offset() == 0
        assert await broker.committed() == (0, -1)
        assert broker.store.database.table(OffsetRow) == []

    assert in_loop(run) == []


def test_who_comes_while_an_outcome_is_unknown_is_told_to_ask_again() -> None:
    async def run() -> None:
        broker = await GroupBroker(Database()).start()
        broker.store.always = unknown(takes_effect=True)
        with structlog.testing.capture_logs():
            waiting = broker.commit(6)
            await until(lambda: len(broker.store.written) > 3)
            assert code_of(await answer(broker.commit(7))) == NOT_AVAILABLE
            assert (await answer(broker.heartbeat())).error_code == NOT_AVAILABLE
            assert not waiting.is_kept
            broker.store.always = None
            assert code_of(await waiting) == 0
            assert await broker.committed() == (0, 6)
            assert (await answer(broker.heartbeat())).error_code == 0

    assert in_loop(run) == []


def test_a_stop_does_not_wait_for_a_store_that_never_tells() -> None:
    async def run() -> None:
        broker = await GroupBroker(Database()).start()
        broker.store.always = unknown(takes_effect=False)
        with structlog.testing.capture_logs():
            reply = broker.commit(6)
            await broker.groups.close()
        assert code_of(await reply) == NOT_AVAILABLE

    assert in_loop(run) == []


def test_a_broker_that_has_not_heard_that_it_was_replaced_tells_no_old_offsets() -> None:
    async def run() -> None:
        database = Database()
        old = await GroupBroker(database).start()
        assert code_of(await answer(old.commit(50))) == 0
        assert await old.committed() == (0, 50)
        new = await GroupBroker(database).start()
        assert code_of(await answer(new.commit(71))) == 0
        with structlog.testing.capture_logs():
            assert await old.committed() == (NOT_COORDINATOR, -1)
        assert await new.committed() == (0, 71)

    assert in_loop(run) == []


def test_offsets_are_not_told_while_the_store_cannot_confirm_who_owns_the_groups() -> None:
    async def run() -> None:
        broker = await GroupBroker(Database()).start()
        assert code_of(await answer(broker.commit(5))) == 0
        broker.store.faults.append(Fault(StorageUnavailable("away")))
        with structlog.testing.capture_logs():
            assert await broker.committed() == (NOT_AVAILABLE, -1)
        assert await broker.committed() == (0, 5)

    assert in_loop(run) == []


def test_groups_that_another_broker_has_taken_over_are_not_answered_for() -> None:
    async def run() -> None:
        database = Database()
        old = await GroupBroker(database).start()
        assert (await answer(old.heartbeat())).error_code == 0
        assert code_of(await answer(old.commit(5))) == 0
        offers = (g.Protocol("range", b""),)
        join = g.JoinGroup("c", 10_000, 10_000, "", None, "consumer", offers, member_id_required=False)
        waiting = old.groups.ask(join)
        new = await GroupBroker(database).start()
        assert (await answer(new.heartbeat(epoch=1))).error_code == 0
        with structlog.testing.capture_logs() as logged:
            assert code_of(await answer(old.commit(6))) == NOT_COORDINATOR
            assert (await waiting).error_code == NOT_COORDINATOR, "who waits for other members is told, too"
        assert "another broker has taken over; this broker stops writing metadata" in [
            each["event"] for each in logged
        ]
        attempts = len(old.store.written)
        assert (await answer(old.heartbeat(epoch=1))).error_code == NOT_COORDINATOR, (
            "it was answered from memory before"
        )
        assert await old.committed() == (NOT_COORDINATOR, -1)
        assert code_of(old.commit(7)) == NOT_COORDINATOR
        assert await old.delete_offset() == NOT_COORDINATOR
        requests: list[tuple[Any, Callable[[Any], int]]] = [
            (join, lambda reply: reply.error_code),
            (g.SyncGroup("c", 1, "m"), lambda reply: reply.error_code),
            (g.Heartbeat("c", 1, "m"), lambda reply: reply.error_code),
            (g.LeaveGroup("c", ()), lambda reply: reply.error_code),
            (g.DescribeGroups(("g",)), lambda reply: reply.groups[0].error_code),
            (g.DeleteGroups(("g",)), lambda reply: reply.results[0].error_code),
            (g.ConsumerGroupDescribe(("g",)), lambda reply: reply.groups[0].error_code),
        ]
        assert [code(old.groups.ask(request)) for request, code in requests] == [NOT_COORDINATOR] * len(requests)
        assert old.groups.ask(g.ListGroups()) == g.ListGroupsReply(), "it coordinates none"
        with pytest.raises(NotGroupCoordinator):
            old.coordinator.check_transactional(g.OffsetCommit("free", ()), monotonic_ms())
        old.groups.tick()
        old.groups.topic_deleted(cast("Any", Topic("t", bytes(16), 1, 0, {}, cast("Any", None))))
        await old.groups.close()
        assert len(old.store.written) == attempts, "nothing is written any more"
        assert await new.committed() == (0, 5)

    assert in_loop(run) == []


# Transactions


class Log:
    def __init__(self) -> None:
        self.markers: list[bool] = []
        self.failure: StorageUnavailable | None = None
        self.attempts = 0

    def end_transaction(self, *_: Any, committed: bool, **__: Any) -> Any:
        self.attempts += 1
        if self.failure is not None:
            raise self.failure
        self.markers.append(committed)
        return DONE


class Marked:
    done = True


DONE = Marked()


class TransactionBroker:
    """One of the brokers; it owns the transactions from its `start` on. All brokers see the same logs."""

    def __init__(self, database: Database, logs: dict[int, Log] | None = None) -> None:
        self.store = FakeStore(database)
        self.logs = {} if logs is None else logs

    async def start(self) -> "TransactionBroker":
        store = self.store
        fence = await store.acquire(TRANSACTIONS)
        ids = ProducerIds(store)
        await ids.reserve()
        self.coordinator = TransactionCoordinator(TransactionConfig(), ids.take, now_ms)
        rows, offsets, decisions = (
            await store.load(TransactionRow),
            await store.load(TransactionOffsetRow),
            await store.load(DecisionRow),
        )
        restored = self.coordinator.restore(rows, offsets, decisions, monotonic_ms())
        self.transactions = Transactions(self.coordinator, store, ids, cast("Any", self), SoleOwnership(0), fence)
        self.transactions.begin(cast("Any", lambda _topic, index: self.logs.setdefault(index, Log())), restored)
        return self

    def offsets_committed(self, _changes: Any) -> None:
        pass

    async def ask(self, request: t.Request) -> Any:
        return await answer(self.transactions.ask(request))

    async def begin(self) -> None:
        reply = await self.ask(t.InitProducerId("id", 60_000))
        assert reply.error_code == 0
        self.producer_id, self.epoch = reply.producer_id, reply.epoch
        added = await self.ask(t.AddPartitions("id", self.producer_id, self.epoch, (TopicPartition("t", 0),)))
        assert added.error_code == 0

    def end(self) -> Any:
        return self.transactions.ask(t.EndTransaction("id", self.producer_id, self.epoch, True))

    @property
    def markers(self) -> list[bool]:
        return [marker for log in self.logs.values() for marker in log.markers]

    def stored_state(self) -> str:
        (row,) = self.store.database.table(TransactionRow, ("id",))
        return row.state


@both_ways
def test_a_decision_with_an_unknown_outcome_has_no_marker_before_it_is_known_and_stays_decided(
    takes_effect: bool,
) -> None:
    async def run() -> None:
        broker = await TransactionBroker(Database()).start()
        await broker.begin()
        broker.store.always = unknown(takes_effect=takes_effect)
        with structlog.testing.capture_logs():
            reply = broker.end()
            await until(lambda: len(broker.store.written) > 5)
            assert broker.stored_state() == ("PrepareCommit" if takes_effect else "Ongoing")
            assert (broker.markers, reply.is_kept) == ([], False)
            other = await broker.ask(t.InitProducerId("other", 60_000))
            assert other.error_code == NOT_AVAILABLE
            broker.store.always = None
            assert (await reply).error_code == 0
        assert broker.markers == [True], "committed, as it was decided, once"
        assert broker.stored_state() == "PrepareCommit"
        await broker.transactions.close()
        assert broker.stored_state() == "CompleteCommit"

    assert in_loop(run) == []


@both_ways
def test_a_broker_that_ends_while_its_decision_is_unknown_leaves_a_transaction_that_is_whole(
    takes_effect: bool,
) -> None:
    async def run() -> None:
        logs: dict[int, Log] = {}
        database = Database()
        broker = await TransactionBroker(database, logs).start()
        await broker.begin()
        broker.store.always = unknown(takes_effect=takes_effect)
        with structlog.testing.capture_logs():
            reply = broker.end()
            await until(lambda: len(broker.store.written) > 3)
            await broker.transactions.close()
        assert (await reply).error_code == NOT_AVAILABLE, "the client asks again"
        assert not broker.markers
        with structlog.testing.capture_logs():
            successor = await TransactionBroker(database, logs).start()
            successor.producer_id, successor.epoch = broker.producer_id, broker.epoch
            ended = await answer(successor.end())
            assert ended.error_code == 0
        assert (ended.producer_id, ended.epoch) == (broker.producer_id, broker.epoch + 1)
        assert successor.markers == [True]

    assert in_loop(run) == []


def test_transactions_that_another_broker_has_taken_over_are_neither_answered_for_nor_marked() -> None:
    async def run() -> None:
        logs: dict[int, Log] = {}
        database = Database()
        old = await TransactionBroker(database, logs).start()
        await old.begin()
        new = await TransactionBroker(database, logs).start()
        new.producer_id, new.epoch = old.producer_id, old.epoch
        with structlog.testing.capture_logs():
            first, held = old.end(), old.transactions.ask(t.InitProducerId("id", 60_000))
            assert (await first).error_code == NOT_COORDINATOR
            assert (await answer(held)).error_code == NOT_COORDINATOR, "it waited for the end of the transaction"
        attempts = len(old.store.written)
        token: Promise[Any] = Promise()
        await old.transactions._ask_with_ids(t.InitProducerId("id", 60_000), token)  # it waited for ids meanwhile
        assert (await token).error_code == NOT_COORDINATOR
        asked: list[t.Request] = [
            t.InitProducerId("id", 60_000),
            t.AddPartitions("id", old.producer_id, old.epoch, (TopicPartition("t", 1),)),
            t.AddOffsets("id", old.producer_id, old.epoch, "g"),
            t.EndTransaction("id", old.producer_id, old.epoch, True),
            t.DescribeDecision("s"),
        ]
        assert {(await old.ask(each)).error_code for each in asked} == {NOT_COORDINATOR}
        assert await old.ask(t.ListTransactions()) == t.ListTransactionsReply(), "it coordinates none"
        (described,) = (await old.ask(t.DescribeTransactions(("id",)))).transactions
        assert described.error_code == NOT_COORDINATOR
        with pytest.raises(NotCoordinator):
            old.coordinator.is_open_for("id", old.producer_id, old.epoch, TopicPartition("t", 0))
        old.transactions.tick()
        await old.transactions.close()
        assert (len(old.store.written), old.markers) == (attempts, [])
        assert (await answer(new.end())).error_code == 0
        assert new.markers == [True]

    assert in_loop(run) == []


@pytest.mark.parametrize("verify_only", [True, False])
def test_a_broker_that_was_replaced_lets_nobody_write_to_a_transaction_that_has_ended(verify_only: bool) -> None:
    async def run() -> None:
        logs: dict[int, Log] = {}
        database = Database()
        old = await TransactionBroker(database, logs).start()
        await old.begin()
        partitions = (TopicPartition("t", 0),)
        question = t.AddPartitions("id", old.producer_id, old.epoch, partitions, verify_only)
        assert await old.ask(question) == t.AddPartitionsReply(), "its memory says that the partition is in it"
        new = await TransactionBroker(database, logs).start()
        new.producer_id, new.epoch = old.producer_id, old.epoch
        assert (await answer(new.end())).error_code == 0
        with structlog.testing.capture_logs():
            assert (await old.ask(question)).error_code == NOT_COORDINATOR

    assert in_loop(run) == []


def test_markers_that_could_not_be_written_yet_are_left_to_the_broker_that_takes_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions_module, "MARKER_RETRY_S", 0.005)

    async def run() -> None:
        logs = {0: Log()}
        database = Database()
        old = await TransactionBroker(database, logs).start()
        await old.begin()
        logs[0].failure = StorageUnavailable("the log cannot be written to")
        with structlog.testing.capture_logs():
            assert (await answer(old.end())).error_code == 0, "it is decided"
            await until(lambda: logs[0].attempts > 2)
            await FakeStore(database).acquire(TRANSACTIONS)
            assert (await old.ask(t.InitProducerId("other", 60_000))).error_code == NOT_COORDINATOR
            logs[0].failure = None
            await asyncio.sleep(0.02)
            assert old.markers == []
            new = await TransactionBroker(database, logs).start()
            assert new.markers == [True]
            await new.transactions.close()
        assert new.stored_state() == "CompleteCommit"

    assert in_loop(run) == []


# Topics and configs


class Prepared:
    def __init__(self) -> None:
        self.events: list[str] = []

    async def prepare(self, topic: Topic) -> None:
        self.events.append(f"prepare {topic.name} {topic.partitions}")

    def discard(self, topic: Topic) -> None:
        self.events.append(f"discard {topic.name} {topic.partitions}")


class Controller:
    def __init__(self, store: FakeStore, fence: Fence | None = None) -> None:
        self.store = store
        self.config = BrokerConfig({})
        self.topics = Topics(store, self.config, fence=fence)
        self.prepared = self.topics.preparation = Prepared()

    async def create(self, name: str = "t", partitions: int = 1) -> Topic:
        return await self.topics.create(NewTopic(name, partitions, configs=[("retention.ms", "5")]), 0)

    def stored(self) -> list[tuple[str, int]]:
        return [(row.name, row.partitions) for row in self.store.database.table(TopicRow)]


RETENTION = Alter([Alteration("retention.ms", Operation.SET, "7")])


@both_ways
def test_changes_of_topics_with_an_unknown_outcome_are_decided_and_then_in_force(takes_effect: bool) -> None:
    async def run() -> None:
        controller = Controller(FakeStore())

        async def doubtful(change: Awaitable[Topic]) -> Topic:
            controller.store.faults.extend([unknown(takes_effect=takes_effect), Fault(StorageUnavailable("down"))])
            return await change

        topics = controller.topics
        topic = await doubtful(controller.create())
        assert topics.get("t") is topic
        assert (await doubtful(topics.add_partitions("t", 3))).partitions == 3
        assert (await doubtful(topics.alter_configs("t", RETENTION))).config.retention_ms == 7
        assert controller.stored() == [("t", 3)]
        assert [row.value for row in controller.store.database.table(ConfigRow)] == ["7"]
        assert controller.prepared.events == ["prepare t 1", "prepare t 3"]
        again = Controller(controller.store)
        await again.topics.load()
        assert again.topics.get("t") == topics.get("t")
        assert await doubtful(topics.delete("t")) is not None
        assert (controller.stored(), topics.find("t")) == ([], None)

    assert in_loop(run) == []


def test_a_name_is_taken_while_nobody_knows_whether_its_topic_was_created() -> None:
    async def run() -> None:
        controller = Controller(FakeStore())
        controller.store.always = unknown(takes_effect=True)
        first = asyncio.ensure_future(controller.create("t", 2))
        await until(lambda: len(controller.store.written) > 3)
        second = asyncio.ensure_future(controller.create("t", 5))
        await asyncio.sleep(0.005)
        assert not first.done()
        assert not second.done()
        controller.store.always = None
        assert (await first).partitions == 2
        with pytest.raises(TopicAlreadyExists):
            await second
        assert controller.stored() == [("t", 2)]

    assert in_loop(run) == []


def test_what_was_prepared_stays_if_the_store_is_closed_before_it_tells() -> None:
    async def run() -> None:
        controller = Controller(FakeStore())
        controller.store.always = unknown(takes_effect=True)
        creating = asyncio.ensure_future(controller.create())
        await until(lambda: controller.store.written)
        await controller.store.close()
        with pytest.raises(OutcomeUnknown):
            await creating
        assert controller.prepared.events == ["prepare t 1"], "its logs may be needed: the next start finds the topic"

    assert in_loop(run) == []


def test_a_topic_that_another_broker_creates_at_the_same_time_is_there_already() -> None:
    async def run() -> None:
        database = Database()
        one, other = Controller(FakeStore(database)), Controller(FakeStore(database))
        await one.create("t", 2)
        with pytest.raises(TopicAlreadyExists, match="another broker"):
            await other.create("t", 3)
        assert one.stored() == [("t", 2)]
        assert other.prepared.events == ["prepare t 3", "discard t 3"]

    assert in_loop(run) == []


def test_a_topic_that_another_broker_has_changed_does_not_grow_by_mistake() -> None:
    async def run() -> None:
        database = Database()
        one, other = Controller(FakeStore(database)), Controller(FakeStore(database))
        await one.create("t", 2)
        await other.topics.load()
        await one.topics.add_partitions("t", 4)
        with pytest.raises(Conflict):
            await other.topics.add_partitions("t", 3)
        assert one.stored() == [("t", 4)]
        assert other.topics.get("t").partitions == 2
        assert other.prepared.events == ["prepare t 3", "discard t 3"]

    assert in_loop(run) == []


def test_who_is_not_the_controller_any_more_changes_no_topic() -> None:
    async def run() -> None:
        store = FakeStore()
        controller = Controller(store, await store.acquire(CONTROLLER))
        topic = await controller.create()
        await FakeStore(store.database).acquire(CONTROLLER)
        groups = GroupConfigs(controller.topics.writes, controller.config, lambda _group, _pace: None)
        changes: list[Callable[[], Awaitable[Any]]] = [
            lambda: controller.create("u"),
            lambda: controller.topics.delete("t"),
            lambda: controller.topics.add_partitions("t", 3),
            lambda: controller.topics.alter_configs("t", RETENTION),
            lambda: groups.alter("g", Alter([Alteration("consumer.session.timeout.ms", Operation.SET, "50000")])),
        ]
        with structlog.testing.capture_logs():
            for change in changes:
                with pytest.raises(Fenced) as fenced:
                    await change()
                assert (fenced.value.kafka_code, fenced.value.retriable) == (41, True)
        assert len(store.written) == 2, "it asks once, and knows"
        assert controller.topics.get("t") == topic
        assert controller.stored() == [("t", 1)]
        assert controller.prepared.events[1:] == ["prepare u 1", "discard u 1", "prepare t 3", "discard t 3"]

    assert in_loop(run) == []


@both_ways
def test_configs_of_brokers_and_groups_with_an_unknown_outcome_are_decided(takes_effect: bool) -> None:
    async def run() -> None:
        controller, paces = Controller(FakeStore()), dict[str, Any]()
        store = controller.store
        groups = GroupConfigs(controller.topics.writes, controller.config, paces.__setitem__)
        store.faults.append(unknown(takes_effect=takes_effect))
        edit = Alter([Alteration("log.retention.ms", Operation.SET, "77")])
        await controller.config.alter(controller.topics.writes, "0", edit)
        assert controller.config.topic_config({}).retention_ms == 77
        store.faults.append(unknown(takes_effect=takes_effect))
        await groups.alter("g", Alter([Alteration("consumer.session.timeout.ms", Operation.SET, "50000")]))
        assert paces["g"].session_timeout_ms == 50_000
        rows = {(row.kind, row.resource, row.value) for row in store.database.table(ConfigRow)}
        assert rows == {("broker", "0", "77"), ("group", "g", "50000")}

    assert in_loop(run) == []


def test_a_broker_follows_what_another_one_changed_by_the_change_feed() -> None:
    async def run() -> None:
        database = Database()
        controller, follower = Controller(FakeStore(database)), FakeStore(database)
        seen = (await follower.changes_since(-1)).version
        topic = await controller.create("t", 2)
        await controller.topics.delete("t")
        news = await follower.changes_since(seen)
        row = TopicRow("t", topic.topic_id, 2, 0)
        assert news.changes is not None
        assert [change for change in news.changes if change == Put(row)] == [Put(row)]
        assert Delete(TopicRow, ("t",)) in news.changes

    assert in_loop(run) == []
