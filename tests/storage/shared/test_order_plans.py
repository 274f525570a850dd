"""The plans of the order's statements when the tables are large: only index scans, on the expected indexes, with a
condition on the index; and no sorting of what an index has in order. With TIDELOG_TEST_CLUSTER=1 also with 10 million
extents, which takes minutes and some gigabytes in the directory for temporary files.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.engines import WHOLE
from tests.support.orders import EXTENT_BYTES, connected, led, new_topic, offsets, part, postgres_settings
from tests.support.postgres import fresh_schema, server
from tidelog.model import LeaderEpoch, TopicIdentity
from tidelog.postgres import Connection, PostgresSettings
from tidelog.storage.shared.order import Cleaned, Extent, Leader, LogId, ProducerSnapshot
from tidelog.storage.shared.postgres import order as postgres_order
from tidelog.storage.shared.postgres import statements
from tidelog.storage.shared.postgres.functions import FUNCTIONS
from tidelog.storage.shared.postgres.order import PostgresOrder

LARGE, HUGE = 300_000, 10_000_000
EXTENTS_OF_A_LOG = 100
EXTENTS_OF_AN_OBJECT = 32
PARTITIONS = 100
BIG_TOPIC = b"\x01" * 16
NOW = 1_700_000_000_000

# The indexes that each statement uses.
EXPECTED: dict[str, set[str]] = {
    "ADD_BUNDLE": set(),
    "ANSWER_OF": {"objects_key_key"},
    "LOCK_LOGS": {"logs_pkey"},
    "ADD_EXTENTS": {"logs_pkey"},
    "ADD_ABORTED": set(),
    "CORRECT_ANSWER": {"objects_pkey"},
    "LOCK_WANTED": {"logs_topic_id_partition_key"},
    "BEGIN_EPOCHS": {"logs_pkey"},
    "EPOCHS_OF_WANTED": {"logs_topic_id_partition_key"},
    "LOCK_PARTITION": {"logs_topic_id_partition_key"},
    "EXTENTS_OF_LOG": {"extents_pkey", "objects_pkey"},
    "SNAPSHOT_OF_LOG": {"snapshots_pkey"},
    "ABORTED_OF_LOG": {"aborted_pkey"},
    "EPOCHS_OF_LOG": {"epochs_pkey"},
    "ADD_SEGMENT": set(),
    "LOCK_LOG": {"logs_pkey"},
    "FIND_OLD": {"extents_pkey", "objects_pkey"},
    "LOCK_OBJECTS": {"objects_pkey"},
    "BURY_OBJECTS": {"objects_pkey", "extents_of_object"},
    "REMOVE_OLD": {"extents_pkey"},
    "ADD_NEW": set(),
    "KEEP_SNAPSHOT": set(),
    "FORGET_VOID": {"aborted_pkey"},
    "FIND_BEFORE_START": {"extents_pkey"},
    "REMOVE_BEFORE_START": {"extents_pkey"},
    "FORGET_ABORTED": {"aborted_pkey"},
    "FORGET_EPOCHS": {"epochs_pkey"},
    "LOCK_TOPIC": {"logs_topic_id_partition_key", "logs_pkey"},
    "FIND_DELETED": {"deleted_logs_pkey", "extents_pkey"},
    "REMOVE_DELETED": {"extents_pkey"},
    "FORGET_DELETED_ABORTED": {"deleted_logs_pkey", "aborted_pkey"},
    "DEAD_OBJECTS": {"objects_dead", "extents_of_object"},
    "LOCK_FORGOTTEN": {"objects_key_key"},
    "MARK_FORGOTTEN": {"objects_pkey"},
    "PURGE_FORGOTTEN": {"objects_removed", "objects_pkey"},
}
# These sort the few rows that the call names, to lock them in order. No other statement sorts.
MAY_SORT = {"LOCK_WANTED", "EPOCHS_OF_WANTED", "LOCK_FORGOTTEN"}


def filling(extents: int) -> str:
    logs = extents // EXTENTS_OF_A_LOG
    return f"""
    TRUNCATE logs, epochs, objects, extents, snapshots, aborted;
    INSERT INTO logs (topic_id, topic, partition, leader, leader_epoch, high_watermark)
    SELECT CASE WHEN number < {PARTITIONS} THEN '\\x{BIG_TOPIC.hex()}'::bytea
            ELSE sha256((number / {PARTITIONS})::text::bytea) END,
        'big', number % {PARTITIONS}, 1, 0, {EXTENTS_OF_A_LOG * 10}
    FROM generate_series(0, {logs} - 1) AS number;
    INSERT INTO epochs SELECT log_id, 0, 0 FROM logs;
    INSERT INTO objects (key, size, counted, dead_since, removed_since)
    SELECT 'b/' || number, 1000, '{{}}', CASE WHEN number % 50 < 2 THEN number END,
        CASE WHEN number % 50 = 1 THEN number END
    FROM generate_series(0, {extents} / {EXTENTS_OF_AN_OBJECT} * 2) AS number;
    INSERT INTO extents
    SELECT first + number % {logs}, number / {logs} * 10 + 9, number / {logs} * 10,
        object + number / {EXTENTS_OF_AN_OBJECT}, 0, {EXTENT_BYTES}, number, ''
    FROM generate_series(0, {extents} - 1) AS number, (SELECT min(log_id) AS first FROM logs) AS logs,
        (SELECT min(object_id) AS object FROM objects) AS objects;
    INSERT INTO aborted SELECT log_id, last_offset, base_offset, 1, 0 FROM extents WHERE last_offset % 100 = 9;
    INSERT INTO snapshots SELECT log_id, 0, '' FROM logs;
    INSERT INTO deleted_logs SELECT '\\x00', number FROM generate_series(1, 3000) AS number;
    """


async def fill(where: PostgresSettings, extents: int) -> None:
    await (await PostgresOrder.open(where)).close()  # creates the tables
    connection = await connected(where)
    try:
        async with connection.transaction():  # a table that is emptied in a transaction is filled without WAL
            await connection.execute(filling(extents))
        await connection.execute("ANALYZE logs, epochs, objects, extents, snapshots, aborted, deleted_logs")
    finally:
        await connection.close()


_VARIABLE = re.compile(r"\b[pv]_\w+\b")
_DECLARED = re.compile(r"\b([pv]_\w+) ((?:bigint|integer|text|bytea|boolean)(?:\[\])?)")


def with_parameters(statement: str) -> str:
    """The statement as PL/pgSQL gives it to the planner: with parameters for its variables."""
    types = {**dict(_DECLARED.findall(FUNCTIONS)), "p_before": "bigint"}
    names = sorted(set(_VARIABLE.findall(statement)))
    return _VARIABLE.sub(lambda name: f"(${names.index(name[0]) + 1}::{types[name[0]]})", statement)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part_ in plan.get("Plans", ()):
        yield from nodes(part_)


async def planned(connection: Connection, statement: str) -> list[dict[str, Any]]:
    await connection.execute(f"PREPARE looked_at AS {statement}")
    values = ", ".join("NULL" for _ in set(re.findall(r"\$\d+", statement)))
    text = await connection.fetchval(f"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE looked_at({values})")
    await connection.execute("DEALLOCATE looked_at")
    return list(nodes(json.loads(text)[0]["Plan"]))


SETTINGS = re.findall(r"SET (\w+) = (\w+)", FUNCTIONS.split("AS $$", 1)[0])


def used(plan: list[dict[str, Any]], statement: str) -> set[str]:
    found = set()
    for node in plan:
        kind = node["Node Type"]
        assert "Seq Scan" not in kind, f"{statement} reads all of {node['Relation Name']}"
        assert not node.get("Disabled"), f"{statement}: {kind}"
        assert "Bitmap" not in kind
        if "Index" in kind:
            assert "Index Cond" in node, f"{statement} reads all of the index {node['Index Name']}"
            found.add(node["Index Name"])
        assert "Sort" not in kind or statement in MAY_SORT, f"{statement} sorts"
    return found


def test_every_statement_is_looked_at() -> None:
    assert {name for name in vars(statements) if name.isupper()} == EXPECTED.keys()
    assert {name for name, _ in SETTINGS} >= {"plan_cache_mode", "enable_seqscan"}


async def indexes(where: PostgresSettings) -> dict[str, set[str]]:
    """The indexes that the statements use, with the settings that the functions have."""
    connection = await connected(where)
    try:
        for name, value in SETTINGS:
            await connection.execute(f"SET {name} = {value}")
        return {
            name: used(await planned(connection, with_parameters(getattr(statements, name))), name)
            for name in EXPECTED
        }
    finally:
        await connection.close()


def test_plans_that_are_made_while_the_tables_are_empty_suit_large_tables() -> None:
    async def look() -> dict[str, set[str]]:
        where = postgres_settings()
        await (await PostgresOrder.open(where)).close()
        return await indexes(where)

    assert asyncio.run(look()) == EXPECTED


@pytest.mark.parametrize(
    "extents",
    [
        LARGE,
        pytest.param(
            HUGE,
            marks=[
                pytest.mark.slow,
                pytest.mark.timeout(3600),
                pytest.mark.skipif(not WHOLE, reason="takes minutes: run make test-cluster"),
            ],
        ),
    ],
)
def test_with_large_tables_statements_use_the_expected_indexes_and_no_call_reads_a_whole_table(extents: int) -> None:
    async def look(where: PostgresSettings) -> None:
        await fill(where, extents)
        assert await indexes(where) == EXPECTED
        connection = await connected(where)
        order = await PostgresOrder.open(where)
        try:
            before = await whole_reads(connection, where.schema)
            await call_everything(order)
            await order.close()
            async with asyncio.timeout(60):  # the counts of a session are complete when it has ended
                while await connection.fetchval(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name ~ '^tidelog (order|commits)$'"
                ):
                    await asyncio.sleep(0.01)
            assert await whole_reads(connection, where.schema) == before
        finally:
            await order.close()
            await connection.close()

    # A database of its own: brokers of other tests may use the same server.
    database = fresh_schema()
    asyncio.run(do(f'CREATE DATABASE "{database}"'))
    try:
        asyncio.run(look(postgres_settings(server().url(database))))
    finally:
        asyncio.run(do(f'DROP DATABASE "{database}" WITH (FORCE)'))  # 10 million extents take a gigabyte


async def do(statement: str) -> None:
    connection = await connected(postgres_settings())
    await connection.execute(statement)
    await connection.close()


async def whole_reads(connection: Connection, schema: str) -> dict[str, int]:
    """How often each table was read from its beginning to its end."""
    rows = await connection.fetch(
        "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = $1 AND relname <> 'tidelog_schema'",
        schema,
    )
    return {row["relname"]: row["seq_scan"] for row in rows}


async def call_everything(order: PostgresOrder) -> None:
    big = TopicIdentity("big", BIG_TOPIC)
    leader = Leader(2, (await order.take_over(big.partitions(20), 2))[0])
    log = await order.load(big.partition(5), leader)
    assert len(log.extents) == EXTENTS_OF_A_LOG
    topic = new_topic()
    logs = await led(order, topic.partitions(20))
    for number in range(3):
        parts = [part(log_id, number, number) for log_id in logs]
        assert await order.commit(f"b/new-{number}", EXTENT_BYTES, 1, parts, NOW) == set(logs)
    assert await order.commit("b/refused", EXTENT_BYTES, 1, [part(LogId(1), 0, 0)], NOW) == frozenset()
    new = Extent(0, 499, "s/new", 0, 5, 1)
    assert await order.replace(log.log_id, leader, "s/new", 5, log.extents[:50], [new], None, NOW)
    await order.keep_snapshot(log.log_id, leader, ProducerSnapshot(900, b""))
    await order.keep_cleaned(log.log_id, leader, Cleaned(500, NOW), [109, 209])
    await order.move_start(log.log_id, leader, 900, NOW)
    assert offsets(await order.load(big.partition(5), leader))[0] == (900, 909)
    await order.delete(topic.topic_id, NOW)
    await order.declare_dead(["b/orphan"], NOW)
    dead = await order.dead_objects(NOW, 100)
    assert len(dead) == 100
    await order.forget_objects(dead, NOW)
    assert await order.take_over([big.partition(5)], 3) == [LeaderEpoch(leader.epoch + 1)]


def test_the_statement_that_lists_dead_objects_is_the_one_that_was_looked_at() -> None:
    assert with_parameters(statements.DEAD_OBJECTS).replace("(", "").replace(")", "") == (
        postgres_order._DEAD_OBJECTS.replace("(", "").replace(")", "")
    )
