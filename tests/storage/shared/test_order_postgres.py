"""The order in PostgreSQL when several brokers use it at the same time, and when connections are lost.

A test that needs a certain interleaving holds a transaction open over a connection of its own, and waits until the
call that it tests is seen to wait for a lock.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.support.orders import (
    EXTENT_BYTES,
    Brokers,
    assert_consistent,
    connected,
    extent_of,
    led,
    new_topic,
    offsets,
    part,
    postgres_settings,
)
from tests.support.postgres import server
from tidelog.errors import OutcomeUnknown, StorageUnavailable
from tidelog.model import LeaderEpoch, PartitionIdentity, TopicIdentity
from tidelog.postgres import Component, Connection, PostgresSettings
from tidelog.storage.shared.order import Cleaned, Extent, Leader, LogId, LogPart, NotTheLeader, Order, UnknownLog
from tidelog.storage.shared.postgres import order as postgres_order
from tidelog.storage.shared.postgres.order import PostgresOrder
from tidelog.storage.shared.postgres.schema import TABLES

NOW = 1_700_000_000_000
LATER = NOW + 1
FIRST = Leader(1, LeaderEpoch(0))
ROUNDS = 20
Test = Callable[[Brokers, Connection], Awaitable[None]]


def run(test: Test) -> None:
    async def whole() -> None:
        where = postgres_settings()
        brokers = Brokers(where)
        connection = await connected(where)
        try:
            await test(brokers, connection)
            await assert_consistent(connection)
        finally:
            await brokers.close()
            await connection.close()

    asyncio.run(whole())


async def one_log(brokers: Brokers) -> tuple[Order, PartitionIdentity, LogId]:
    order = await brokers.order()
    partition = new_topic().partition(0)
    [log_id] = await led(order, [partition])
    return order, partition, log_id


async def someone_waits(connection: Connection, function: str = "") -> None:
    """Returns when a call of the tested brokers, of that function, waits for a lock that this connection holds."""
    waiting = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
        " AND query LIKE '%' || $1 || '%')"
    )
    async with asyncio.timeout(60):
        while not await connection.fetchval(waiting, function):
            await asyncio.sleep(0.01)
            await connection.execute("SELECT pg_stat_clear_snapshot()")  # a transaction would see the same again


async def commit_by_hand(connection: Connection, key: str, one: LogPart, broker_id: int = 1) -> None:
    """The statement of a commit, in the transaction of that connection."""
    await connection.fetchval(
        "SELECT commit_bundle($1, $2, $3, $4, ARRAY[$5::bigint], ARRAY[$6::integer], ARRAY[$7::bigint],"
        " ARRAY[$8::bigint], '{0}', ARRAY[$2::bigint], '{1}', '{0}', ARRAY[''::bytea], '{}', '{}', '{}', '{}', '{}')",
        *(key, EXTENT_BYTES, broker_id, NOW, one.log_id, one.leader_epoch, one.base_offset, one.last_offset),
    )


@asynccontextmanager
async def open_transaction(connection: Connection) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """Gives a function that ends the transaction by COMMIT or ROLLBACK."""
    await connection.execute("BEGIN")

    async def end(how: str) -> None:
        await connection.execute(how)

    try:
        yield end
    finally:
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK")


# Interleavings


def test_of_two_commits_at_the_same_place_exactly_one_counts() -> None:
    async def test(brokers: Brokers, _: Connection) -> None:
        first, partition, log_id = await one_log(brokers)
        second = await brokers.order()
        for number in range(30):
            one = part(log_id, number, number)
            answers = await asyncio.gather(
                first.commit(f"b/{number}a", EXTENT_BYTES, 1, [one], NOW),
                second.commit(f"b/{number}b", EXTENT_BYTES, 1, [one], NOW),
            )
            assert sorted(map(len, answers)) == [0, 1]
        log = await first.load(partition, FIRST)
        assert (len(log.extents), len(await first.dead_objects(LATER, 100))) == (30, 30)

    run(test)


def test_of_a_commit_and_its_repetition_at_the_same_time_both_are_answered_alike() -> None:
    async def test(brokers: Brokers, _: Connection) -> None:
        first, partition, log_id = await one_log(brokers)
        second = await brokers.order()
        for number in range(30):
            bundle = [part(log_id, number, number)]
            said = (f"b/{number}", EXTENT_BYTES, 1, bundle, NOW)
            answers = await asyncio.gather(first.commit(*said), second.commit(*said))
            assert set(answers) == {frozenset([log_id])}
        assert len((await first.load(partition, FIRST)).extents) == 30

    run(test)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_take_over_waits_for_a_commit_that_is_under_way(end: str) -> None:
    async def test(brokers: Brokers, connection: Connection) -> None:
        order, partition, log_id = await one_log(brokers)
        async with open_transaction(connection) as finish:
            await commit_by_hand(connection, "b/1", part(log_id, 0, 9))
            taking = asyncio.ensure_future(order.take_over([partition], 2))
            await someone_waits(connection)
            await finish(end)
        assert await taking == [1]
        log = await order.load(partition, Leader(2, LeaderEpoch(1)))
        assert offsets(log) == ([(0, 9)] if end == "COMMIT" else [])
        assert await order.commit("b/2", EXTENT_BYTES, 1, [part(log_id, log.high_watermark, 19)], NOW) == frozenset()

    run(test)


def test_a_commit_that_waits_for_a_take_over_is_refused() -> None:
    async def test(brokers: Brokers, connection: Connection) -> None:
        order, partition, log_id = await one_log(brokers)
        async with open_transaction(connection) as finish:
            await connection.fetchval("SELECT take_over_logs($1, '{0}', 2)", [partition.topic.topic_id])
            committing = asyncio.ensure_future(order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW))
            await someone_waits(connection)
            await finish("COMMIT")
        assert await committing == frozenset()
        assert await order.dead_objects(LATER, 10) == ["b/1"]

    run(test)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_loading_waits_for_what_is_under_way(end: str) -> None:
    async def test(brokers: Brokers, connection: Connection) -> None:
        order, partition, log_id = await one_log(brokers)
        async with open_transaction(connection) as finish:
            await commit_by_hand(connection, "b/1", part(log_id, 0, 9))
            loading = asyncio.ensure_future(order.load(partition, FIRST))
            await someone_waits(connection)
            await finish(end)
        log = await loading
        assert (log.high_watermark, len(log.extents)) == ((10, 1) if end == "COMMIT" else (0, 0))

    run(test)


def test_loading_comes_after_the_commits_that_were_called_before() -> None:
    async def test(brokers: Brokers, _: Connection) -> None:
        order, partition, log_id = await one_log(brokers)
        commits = [
            asyncio.ensure_future(order.commit(f"b/{number}", EXTENT_BYTES, 1, [part(log_id, number, number)], NOW))
            for number in range(20)
        ]
        await asyncio.sleep(0)
        assert (await order.load(partition, FIRST)).high_watermark == 20
        assert await asyncio.gather(*commits) == [{log_id}] * 20

    run(test)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_an_object_is_not_declared_dead_while_its_commit_is_under_way(end: str) -> None:
    async def test(brokers: Brokers, connection: Connection) -> None:
        order, _, log_id = await one_log(brokers)
        async with open_transaction(connection) as finish:
            await commit_by_hand(connection, "b/1", part(log_id, 0, 9))
            declaring = asyncio.ensure_future(order.declare_dead(["b/0", "b/1"], NOW))
            await someone_waits(connection)
            await finish(end)
        counted = end == "COMMIT"
        assert await declaring == (["b/0"] if counted else ["b/0", "b/1"])
        answer = await order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW)
        assert answer == ({log_id} if counted else frozenset())

    run(test)


def test_a_commit_that_waits_for_the_sweeper_is_refused() -> None:
    async def test(brokers: Brokers, connection: Connection) -> None:
        order, partition, log_id = await one_log(brokers)
        async with open_transaction(connection) as finish:
            await connection.execute(
                "INSERT INTO objects (key, size, counted, dead_since) VALUES ('b/1', 0, '{}', $1)", NOW
            )
            committing = asyncio.ensure_future(order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW))
            await someone_waits(connection)
            await finish("COMMIT")
        assert await committing == frozenset()
        assert (await order.load(partition, FIRST)).extents == ()

    run(test)


def test_of_two_that_remove_the_last_extents_of_an_object_one_declares_it_dead() -> None:
    async def test(brokers: Brokers, connection: Connection) -> None:
        order = await brokers.order()
        first, second = await led(order, new_topic().partitions(2))
        await order.commit("b/1", 20, 1, [part(first, 0, 9), part(second, 0, 9, position=10)], NOW)
        async with open_transaction(connection) as finish:
            await connection.fetchval("SELECT move_start_of_log($1, 1, 0, 10, $2, 10)", first, NOW)
            moving = asyncio.ensure_future(order.move_start(second, FIRST, 10, NOW))
            await someone_waits(connection)
            await finish("COMMIT")
        await moving
        assert await order.dead_objects(LATER, 10) == ["b/1"]

    run(test)


def test_a_commit_that_waits_for_the_deletion_of_the_topic_is_refused() -> None:
    async def test(brokers: Brokers, connection: Connection) -> None:
        order, partition, log_id = await one_log(brokers)
        async with open_transaction(connection) as finish:
            await connection.fetchval("SELECT delete_logs($1)", partition.topic.topic_id)
            committing = asyncio.ensure_future(order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW))
            await someone_waits(connection)
            await finish("COMMIT")
        assert await committing == frozenset()
        await order.delete(partition.topic.topic_id, NOW)
        assert await order.dead_objects(LATER, 10) == ["b/1"]

    run(test)


def test_brokers_that_do_everything_at_once_meet_no_deadlock() -> None:
    """Bundles name the same logs in different orders, while leaders change, extents are merged, starts move, and the
    sweeper declares the keys of some bundles dead."""

    async def test(brokers: Brokers, connection: Connection) -> None:
        met_before = server().log.count("deadlock detected")
        topic = new_topic()
        partitions = topic.partitions(12)
        orders = [await brokers.order() for _ in range(3)]
        await led(orders[0], partitions)
        await asyncio.gather(
            *(_busy_broker(order, partitions, number) for number, order in enumerate(orders)),
            *map(_sweeper, orders),
        )
        assert server().log.count("deadlock detected") == met_before
        assert await connection.fetchval("SELECT count(*) FROM extents") > 0
        leaders = await orders[0].take_over(partitions, 9)
        for partition, epoch in zip(partitions, leaders, strict=True):
            await orders[0].load(partition, Leader(9, epoch))

    run(test)


async def _busy_broker(order: Order, partitions: list[PartitionIdentity], broker_id: int) -> None:
    chance = random.Random(broker_id)
    for round_ in range(ROUNDS):
        taken = chance.sample(partitions, 8)
        epochs = await order.take_over(taken, broker_id)
        leaders = [Leader(broker_id, epoch) for epoch in epochs]
        loads = await asyncio.gather(*map(order.load, taken, leaders), return_exceptions=True)
        known = {}
        for partition, epoch, log in zip(taken, epochs, loads, strict=True):
            if isinstance(log, BaseException):
                assert isinstance(log, NotTheLeader), log
            else:
                known[partition] = (epoch, log)
        parts = [
            part(log.log_id, log.high_watermark, log.high_watermark + 2, epoch, number * EXTENT_BYTES)
            for number, (epoch, log) in enumerate(known.values())
        ]
        chance.shuffle(parts)
        working: list[Awaitable[object]] = []
        if parts:
            size = EXTENT_BYTES * len(parts)
            working.append(order.commit(f"b/{broker_id}-{round_}", size, broker_id, parts, NOW))
        for number, (epoch, log) in enumerate(known.values()):
            leader = Leader(broker_id, epoch)
            if len(log.extents) > 2:
                old = log.extents[:2]
                key = f"s/{broker_id}-{round_}-{number}"
                new = Extent(old[0].base_offset, old[-1].last_offset, key, 0, EXTENT_BYTES, 1)
                working.append(order.replace(log.log_id, leader, key, EXTENT_BYTES, old, [new], None, NOW))
            elif log.extents:
                working.append(order.move_start(log.log_id, leader, log.extents[0].last_offset + 1, NOW))
        for answer in await asyncio.gather(*working, return_exceptions=True):
            assert not isinstance(answer, BaseException) or isinstance(answer, NotTheLeader), answer


async def _sweeper(order: Order) -> None:
    for round_ in range(ROUNDS):
        keys = [f"b/{broker_id}-{round_ // 4 * 4}" for broker_id in range(3)]
        await order.declare_dead(keys, NOW)
        await order.forget_objects(await order.dead_objects(LATER, 10), NOW)


def test_logs_that_are_loaded_at_the_same_time_are_loaded_with_few_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
    fetch = asyncpg.Connection.fetch

    def spied(connection: Any, query: str, *arguments: Any, **more: Any) -> Any:
        sent.append(query)
        return fetch(connection, query, *arguments, **more)

    async def test(brokers: Brokers, connection: Connection) -> None:
        order = await brokers.order()
        partitions = new_topic().partitions(40)
        log_ids = await led(order, partitions)
        for number, log_id in enumerate(log_ids):
            assert await order.commit(f"b/{number}", EXTENT_BYTES, 1, [part(log_id, 0, number)], NOW) == {log_id}
        [epoch] = await order.take_over(partitions[7:8], 2)
        unknown = new_topic().partition(3)
        wanted = [*reversed(partitions), unknown, partitions[0]]
        monkeypatch.setattr(asyncpg.Connection, "fetch", spied)
        loads = await asyncio.gather(*(order.load(each, FIRST) for each in wanted), return_exceptions=True)
        assert len([query for query in sent if "load_log" in query]) == 3
        *found, none, again = loads
        found.reverse()
        assert isinstance(none, UnknownLog)
        assert unknown.name.topic in str(none)
        assert again == found[0]
        assert isinstance(found.pop(7), NotTheLeader)
        assert [log.high_watermark for log in found if not isinstance(log, BaseException)] == [
            number + 1 for number in range(40) if number != 7
        ]
        assert (await order.load(partitions[7], Leader(2, epoch))).high_watermark == 8

    run(test)


# Lost connections


class Wire:
    """A proxy before PostgreSQL that can lose replies and cut connections."""

    def __init__(self) -> None:
        self.loses_replies = False
        self._open: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.gather(*self._pumps)

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", server().port)
        for reader, writer, is_reply in ((from_client, to_server, False), (from_server, to_client, True)):
            self._open.add(writer)
            pump = asyncio.ensure_future(self._pump(reader, writer, is_reply))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_reply: bool) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if is_reply and self.loses_replies:
                    self.loses_replies = False
                    self.cut()
                    break
                writer.write(data)
        writer.transport.abort()
        self._open.discard(writer)


def over_a_wire(test: Callable[[Brokers, Connection, Wire], Awaitable[None]]) -> None:
    async def whole() -> None:
        wire = Wire()
        port = await wire.listen()
        where = postgres_settings(server().url(port=port))
        brokers = Brokers(where)
        direct = PostgresSettings.parse(server().url(), schema=where.schema)
        connection = await connected(direct)
        try:
            await test(brokers, connection, wire)
            await assert_consistent(connection)
        finally:
            await brokers.close()
            await connection.close()
            await wire.close()

    asyncio.run(whole())


def test_a_lost_reply_is_answered_by_saying_the_same_again() -> None:
    async def test(brokers: Brokers, _: Connection, wire: Wire) -> None:
        order, partition, log_id = await one_log(brokers)
        for number in range(3):
            said = (f"b/{number}", EXTENT_BYTES, 1, [part(log_id, number, number)], NOW)
            wire.loses_replies = True
            with pytest.raises(OutcomeUnknown):
                await order.commit(*said)
            assert await order.commit(*said) == {log_id}
        log = await order.load(partition, FIRST)
        assert offsets(log) == [(0, 0), (1, 1), (2, 2)]
        segment = Extent(0, 2, "s/1", 0, 5, 1)
        exchange = (log_id, FIRST, "s/1", 5, log.extents, [segment], None, NOW)
        wire.loses_replies = True
        with pytest.raises(OutcomeUnknown):
            await order.replace(*exchange)
        assert await order.replace(*exchange)
        assert (await order.load(partition, FIRST)).extents == (segment,)

    over_a_wire(test)


def test_a_commit_that_was_under_way_when_its_connection_was_cut_takes_no_effect_later() -> None:
    async def test(brokers: Brokers, connection: Connection, wire: Wire) -> None:
        order, partition, log_id = await one_log(brokers)
        async with open_transaction(connection) as finish:
            await connection.execute("SELECT FROM logs FOR UPDATE")
            committing = asyncio.ensure_future(order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW))
            await someone_waits(connection)
            wire.cut()
            with pytest.raises(OutcomeUnknown):
                await committing
            # On the server the commit still waits for the log. It is ended before anything is loaded.
            loading = asyncio.ensure_future(order.load(partition, FIRST))
            await someone_waits(connection, "load_log")
            await finish("ROLLBACK")
        assert (await loading).high_watermark == 0
        assert await order.commit("b/2", EXTENT_BYTES, 1, [part(log_id, 0, 4)], NOW) == {log_id}
        assert await order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW) == frozenset()

    over_a_wire(test)


def test_a_call_that_is_given_up_is_still_decided_before_the_log_is_loaded() -> None:
    async def test(brokers: Brokers, connection: Connection) -> None:
        order, partition, log_id = await one_log(brokers)
        async with open_transaction(connection) as finish:
            await connection.execute("SELECT FROM logs FOR UPDATE")
            committing = asyncio.ensure_future(order.commit("b/1", EXTENT_BYTES, 1, [part(log_id, 0, 9)], NOW))
            await someone_waits(connection)
            committing.cancel()
            loading = asyncio.ensure_future(order.load(partition, FIRST))
            await asyncio.wait([committing])
            await finish("ROLLBACK")
        assert (await loading).high_watermark == 10

    run(test)


def test_a_removal_that_stops_between_two_steps_is_completed_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(brokers: Brokers, _: Connection) -> None:
        order, partition, log_id = await one_log(brokers)
        made = []
        for number in range(7):
            one = part(log_id, number, number)
            await order.commit(f"b/{number}", EXTENT_BYTES, 1, [one], NOW)
            made.append(extent_of(f"b/{number}", one))

        async def fail(*_: object) -> None:
            raise OutcomeUnknown("the connection was lost")

        with monkeypatch.context() as patch:
            patch.setattr(order, "_go_on", fail)
            with pytest.raises(OutcomeUnknown):
                await order.move_start(log_id, FIRST, 6, NOW)
        log = await order.load(partition, FIRST)
        assert (log.start_offset, log.extents) == (6, (made[6],)), "nothing before the start is seen any more"
        assert not await order.replace(log_id, FIRST, "s/1", 5, made[4:], [made[4]._replace(key="s/1")], None, NOW)
        await order.move_start(log_id, FIRST, 6, NOW)
        assert await order.dead_objects(LATER, 10) == [*(f"b/{number}" for number in range(6)), "s/1"]
        with monkeypatch.context() as patch:
            patch.setattr(order, "_go_on", fail)
            with pytest.raises(OutcomeUnknown):
                await order.delete(partition.topic.topic_id, NOW)
        assert await order.topics() == []
        await order.delete(partition.topic.topic_id, NOW)
        assert "b/6" in await order.dead_objects(LATER, 10)

    monkeypatch.setattr(postgres_order, "_STEP", 2)
    run(test)


def test_without_postgres_calls_fail_and_work_again_by_themselves_when_it_is_back() -> None:
    async def test(brokers: Brokers, _: Connection, wire: Wire) -> None:
        order, partition, log_id = await one_log(brokers)
        wire.cut()
        for number in range(3):
            said = (f"b/{number}", EXTENT_BYTES, 1, [part(log_id, number, number)], NOW)
            while True:
                try:
                    assert await order.commit(*said) == {log_id}
                    break
                except (OutcomeUnknown, StorageUnavailable):
                    pass
            wire.cut()
        assert len((await order.load(partition, FIRST)).extents) == 3

    over_a_wire(test)


def test_tables_of_version_1_are_brought_up_to_date_with_their_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def first_version(connection: Connection, _stored: int) -> None:
        await connection.execute(TABLES)
        await connection.execute(
            "CREATE FUNCTION load_log(bytea, integer, integer, integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'"
        )
        await connection.execute("INSERT INTO logs (topic_id, topic, partition) VALUES ($1, 'old', 0)", b"i" * 16)

    async def whole() -> None:
        where = postgres_settings()
        with monkeypatch.context() as patch:
            patch.setattr(postgres_order, "COMPONENT", Component("order", 1, first_version))
            await (await PostgresOrder.open(where)).close()
        order = await PostgresOrder.open(where)
        try:
            partition = TopicIdentity("old", b"i" * 16).partition(0)
            [epoch] = await order.take_over([partition], 1)
            log = await order.load(partition, Leader(1, epoch))
            await order.keep_cleaned(log.log_id, Leader(1, epoch), Cleaned(0, NOW), [])
            assert (await order.load(partition, Leader(1, epoch))).cleaned == Cleaned(0, NOW)
        finally:
            await order.close()

    asyncio.run(whole())
