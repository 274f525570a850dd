"""PostgreSQL against the fake: the same random calls of several brokers, right and wrong ones, get the same answers
and lead to the same state."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.fake_order import FakeDatabase, FakeOrder
from tests.support.orders import EXTENT_BYTES, assert_consistent, connected, new_topic, part, postgres_settings
from tidelog.errors import TidelogError
from tidelog.model import LeaderEpoch, PartitionIdentity, ProducerId, TopicIdentity
from tidelog.postgres import Connection
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.shared.order import (
    FORGOTTEN_AFTER_MS,
    Extent,
    KnownLog,
    Leader,
    LogId,
    LogPart,
    Order,
    ProducerSnapshot,
)
from tidelog.storage.shared.postgres import order as postgres_order
from tidelog.storage.shared.postgres.order import PostgresOrder

BROKERS = (1, 2, 3)
TABLES = ("logs", "epochs", "objects", "extents", "snapshots", "aborted", "deleted_logs")
brokers = st.sampled_from(BROKERS)
wrong_sometimes = st.sampled_from((0, 0, 0, 0, -1, 1))


class TwoOrders(RuleBasedStateMachine):
    runner: asyncio.Runner
    real: list[PostgresOrder]  # of each broker
    tables: Connection

    def __init__(self) -> None:
        super().__init__()
        self.database = FakeDatabase()
        self.fake = FakeOrder(self.database)
        self.topics: list[TopicIdentity] = []
        self.leaders: dict[PartitionIdentity, Leader] = {}
        self.real_id: dict[LogId, LogId] = {}
        self.fake_id: dict[LogId, LogId] = {}
        self.keys: list[str] = []
        self.repeatable: list[tuple[str, tuple[Any, ...]]] = []
        self.now = 1_000_000

    def wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    def same(self, name: str, *arguments: Any, broker: int = 1) -> Any:
        """Make the call on both, with the same answer or the same error. Logs are known by their numbers in the
        fake."""
        theirs = arguments
        if name == "commit":
            key, size, by, parts, now = arguments
            theirs = (key, size, by, [one._replace(log_id=self.real_id[one.log_id]) for one in parts], now)
        elif name in ("replace", "move_start", "keep_snapshot"):
            theirs = (self.real_id[arguments[0]], *arguments[1:])
        expected = self.wait(_outcome(getattr(self.fake, name), arguments))
        found = self.wait(_outcome(getattr(self.real[broker - 1], name), theirs))
        if isinstance(found, frozenset):
            found = frozenset(self.fake_id[log_id] for log_id in found)
        if isinstance(found, KnownLog) and isinstance(expected, KnownLog):
            self.real_id[expected.log_id], self.fake_id[found.log_id] = found.log_id, expected.log_id
            found = found._replace(log_id=expected.log_id)
        assert found == expected, f"{name}{arguments}"
        return expected

    def new_key(self, kind: str) -> str:
        self.keys.append(f"{kind}/{len(self.keys):04d}")
        return self.keys[-1]

    def loaded(self) -> list[KnownLog]:
        return [self.database.load(partition, leader) for partition, leader in self.leaders.items()]

    # The calls

    @initialize(partitions=st.integers(1, 3))
    def begin(self, partitions: int) -> None:
        self.create(partitions)
        self.same("take_over", self.topics[0].partitions(partitions), 1)
        for partition in self.topics[0].partitions(partitions):
            self.leaders[partition] = Leader(1, LeaderEpoch(0))

    @precondition(lambda self: len(self.topics) < 3)
    @rule(partitions=st.integers(1, 3))
    def create(self, partitions: int) -> None:
        topic = new_topic(f"topic-{len(self.topics)}")
        self.topics.append(topic)
        self.same("create", topic.partitions(partitions))

    @rule(data=st.data(), broker=brokers)
    def take_over(self, data: st.DataObject, broker: int) -> None:
        topic = data.draw(st.sampled_from(self.topics))
        partitions = [topic.partition(number) for number in data.draw(st.lists(st.integers(0, 3), max_size=3))]
        epochs = self.same("take_over", partitions, broker, broker=broker)
        if isinstance(epochs, list):
            for partition, epoch in zip(partitions, epochs, strict=True):
                self.leaders[partition] = Leader(broker, epoch)

    @rule(data=st.data(), count=st.integers(1, 4), is_leader=st.booleans(), broker=brokers)
    def commit(self, data: st.DataObject, count: int, is_leader: bool, broker: int) -> None:
        parts: list[LogPart] = []
        logs = data.draw(st.permutations(list(self.leaders)))[:count]
        for partition in logs:
            leader = self.leaders[partition]
            if is_leader and not parts:
                broker = leader.broker_id
            log = self.database.load(partition, leader)
            base = max(0, log.high_watermark + data.draw(wrong_sometimes))
            last = base + data.draw(st.integers(0, 5))
            epoch = leader.epoch + data.draw(wrong_sometimes)
            aborted = [
                AbortedTransaction(ProducerId(7), base, marker, base)
                for marker in range(base, last + 1)
                if data.draw(st.integers(0, 3)) == 0
            ]
            position = len(parts) * EXTENT_BYTES
            parts.append(part(log.log_id, base, last, epoch, position)._replace(aborted=aborted))
        if parts:
            arguments = (self.new_key("b"), EXTENT_BYTES * len(parts), broker, parts, self.now)
            self.same("commit", *arguments, broker=broker)
            self.repeatable.append(("commit", arguments))

    @precondition(lambda self: self.repeatable)
    @rule(data=st.data(), broker=brokers)
    def repeat(self, data: st.DataObject, broker: int) -> None:
        name, arguments = data.draw(st.sampled_from(self.repeatable))
        self.same(name, *arguments, broker=broker)

    @precondition(lambda self: any(log.extents for log in self.loaded()))
    @rule(data=st.data(), broker=brokers, is_wrong=wrong_sometimes, form=st.sampled_from(("merge", "gap", "nothing")))
    def replace(self, data: st.DataObject, broker: int, is_wrong: int, form: str) -> None:
        partition = data.draw(
            st.sampled_from(
                [each for each, leader in self.leaders.items() if self.database.load(each, leader).extents]
            )
        )
        leader = self.leaders[partition]
        log = self.database.load(partition, leader)
        first = data.draw(st.integers(0, len(log.extents) - 1))
        old = list(log.extents[first : first + data.draw(st.integers(1, 4))])
        if is_wrong < 0:
            leader = leader._replace(epoch=LeaderEpoch(leader.epoch - 1))
        elif is_wrong > 0:
            old[0] = old[0]._replace(position=old[0].position + 1)
        key = self.new_key("s")
        base, last = old[0].base_offset, old[-1].last_offset
        if form == "gap":
            base, last = (base + last) // 2, (base + last) // 2
        new = [] if form == "nothing" else [Extent(base, last, key, 0, 5, 1, b"")]
        snapshot = data.draw(st.none() | st.builds(ProducerSnapshot, st.integers(0, last + 1), st.binary(max_size=3)))
        arguments = (log.log_id, leader, key, 5, old, new, snapshot, self.now)
        self.same("replace", *arguments, broker=broker)
        self.repeatable.append(("replace", arguments))

    @rule(data=st.data(), broker=brokers, is_wrong=wrong_sometimes)
    def move_start(self, data: st.DataObject, broker: int, is_wrong: int) -> None:
        if not self.leaders:
            return
        partition = data.draw(st.sampled_from(list(self.leaders)))
        leader = self.leaders[partition]
        log = self.database.load(partition, leader)
        to = data.draw(st.integers(max(0, log.start_offset - 2), log.high_watermark + 1))
        leader = leader._replace(epoch=LeaderEpoch(leader.epoch + is_wrong))
        self.same("move_start", log.log_id, leader, to, self.now, broker=broker)

    @rule(data=st.data(), broker=brokers, is_wrong=wrong_sometimes)
    def keep_snapshot(self, data: st.DataObject, broker: int, is_wrong: int) -> None:
        if not self.leaders:
            return
        partition = data.draw(st.sampled_from(list(self.leaders)))
        leader = self.leaders[partition]
        log = self.database.load(partition, leader)
        snapshot = ProducerSnapshot(data.draw(st.integers(0, log.high_watermark)), data.draw(st.binary(max_size=3)))
        leader = leader._replace(epoch=LeaderEpoch(leader.epoch + is_wrong))
        self.same("keep_snapshot", log.log_id, leader, snapshot, broker=broker)

    @rule(data=st.data(), broker=brokers)
    def delete(self, data: st.DataObject, broker: int) -> None:
        if data.draw(st.integers(0, 3)):
            return  # rarely, or there would be nothing left
        topic = data.draw(st.sampled_from(self.topics))
        self.same("delete", topic.topic_id, self.now, broker=broker)
        self.leaders = {each: leader for each, leader in self.leaders.items() if each.topic != topic}

    @rule(data=st.data(), broker=brokers, new=st.integers(0, 3))
    def declare_dead(self, data: st.DataObject, broker: int, new: int) -> None:
        known = data.draw(st.lists(st.sampled_from(self.keys), max_size=3)) if self.keys else []
        self.same("declare_dead", [*known, *(self.new_key("b") for _ in range(new))], self.now, broker=broker)

    @rule(data=st.data(), broker=brokers)
    def forget_objects(self, data: st.DataObject, broker: int) -> None:
        keys = data.draw(st.lists(st.sampled_from(self.keys), max_size=5)) if self.keys else []
        self.same("forget_objects", keys, self.now, broker=broker)

    @rule(ms=st.sampled_from((1, FORGOTTEN_AFTER_MS // 2)))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @invariant()
    def the_states_are_the_same(self) -> None:
        self.database.check()
        for partition, leader in self.leaders.items():
            self.same("load", partition, leader)
        self.same("topics")
        self.same("dead_objects", self.now + 1, 1000)
        self.same("dead_objects", self.now, 2)

    def teardown(self) -> None:
        self.wait(assert_consistent(self.tables, is_compacted=True))
        self.wait(self.tables.execute("; ".join(f"DELETE FROM {table}" for table in TABLES)))


async def _outcome(call: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> Any:
    try:
        return await call(*arguments)
    except TidelogError as error:
        return type(error)


def test_postgres_answers_as_the_fake_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_order, "_STEP", 2)  # so that removing takes several steps
    where = postgres_settings()

    async def close(orders: list[Order], tables: Connection) -> None:
        for order in orders:
            await order.close()
        await tables.close()

    with asyncio.Runner() as runner:

        class Machine(TwoOrders):
            pass

        Machine.runner = runner
        Machine.real = [runner.run(PostgresOrder.open(where)) for _ in BROKERS]
        Machine.tables = runner.run(connected(where))
        try:
            run_state_machine_as_test(Machine, settings=settings(max_examples=25, stateful_step_count=25))
        finally:
            runner.run(close([*Machine.real], Machine.tables))
