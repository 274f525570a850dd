"""Engines of `Order` for tests: the fake, and PostgreSQL. And short ways to say what a bundle holds."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from itertools import count

import asyncpg

from tests.support.fake_order import FakeDatabase, FakeOrder
from tests.support.postgres import fresh_schema, server
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, TopicIdentity
from tidelog.postgres import Connection, PostgresSettings
from tidelog.storage.shared.order import Extent, KnownLog, Leader, LogId, LogPart, Order
from tidelog.storage.shared.postgres.order import PostgresOrder

Scenario = Callable[["Brokers"], Awaitable[None]]
EXTENT_BYTES = 10


class Brokers:
    """Opens an `Order` for each broker, on one database, and closes all of them at the end."""

    def __init__(self, settings: PostgresSettings | None) -> None:
        self.settings = settings
        self.database = FakeDatabase()
        self._opened: list[Order] = []

    async def order(self) -> Order:
        order: Order
        if self.settings is None:
            order = FakeOrder(self.database)
        else:
            order = await PostgresOrder.open(self.settings)
        self._opened.append(order)
        return order

    async def close(self) -> None:
        for order in self._opened:
            await order.close()
        self.database.check()


def postgres_settings(url: str | None = None) -> PostgresSettings:
    """A schema of its own. The deadline is longer than a busy machine may take."""
    return PostgresSettings.parse(url or server().url(), schema=fresh_schema(), deadline_s=60)


def run(engine: str, scenario: Scenario) -> None:
    """Run a scenario on a new, empty database of that engine: "fake" or "postgres"."""

    async def whole() -> None:
        brokers = Brokers(postgres_settings() if engine == "postgres" else None)
        try:
            await scenario(brokers)
        finally:
            await brokers.close()

    asyncio.run(whole())


_numbers = count()


def new_topic(name: str = "topic") -> TopicIdentity:
    return TopicIdentity(name, os.urandom(8) + next(_numbers).to_bytes(8, "big"))


async def led(order: Order, partitions: Sequence[PartitionIdentity], broker_id: int = 1) -> list[LogId]:
    """Create the logs, make the broker their leader, and return their numbers."""
    await order.create(partitions)
    epochs = await order.take_over(partitions, broker_id)
    logs = [
        await order.load(partition, Leader(broker_id, epoch))
        for partition, epoch in zip(partitions, epochs, strict=True)
    ]
    return [log.log_id for log in logs]


def part(log_id: LogId, base: Offset, last: Offset, epoch: int = 0, position: int = 0) -> LogPart:
    """An extent of `EXTENT_BYTES`. Its facts tell its offsets."""
    facts = f"{base}-{last}".encode()
    return LogPart(log_id, LeaderEpoch(epoch), base, last, position, EXTENT_BYTES, 1000 + last, last + 1, facts)


def extent_of(key: str, one: LogPart) -> Extent:
    return Extent(one.base_offset, one.last_offset, key, one.position, one.size, one.max_timestamp, one.producers)


async def connected(settings: PostgresSettings) -> Connection:
    """A plain connection, to look at the tables and to hold locks."""
    connection: Connection = await asyncpg.connect(
        settings.url, password=settings.password, server_settings={"search_path": settings.schema}
    )
    return connection


_INCONSISTENT = """
    SELECT 'a log does not begin where it should, or has a gap or an overlap: ' || log_id FROM (
        SELECT log_id, base_offset, start_offset,
            lag(last_offset) OVER (PARTITION BY log_id ORDER BY last_offset) AS before
        FROM extents JOIN logs USING (log_id)
    ) AS ordered
    WHERE base_offset <= before OR ($1 AND base_offset > start_offset AND base_offset <> coalesce(before + 1, 0))
    UNION ALL
    SELECT 'a log does not end at its high watermark: ' || log_id FROM logs
    WHERE $1 AND high_watermark > start_offset
        AND high_watermark <> (SELECT max(last_offset) + 1 FROM extents WHERE extents.log_id = logs.log_id)
    UNION ALL
    SELECT 'an extent after the high watermark: ' || log_id FROM extents JOIN logs USING (log_id)
    WHERE last_offset >= high_watermark
    UNION ALL
    SELECT 'the size of a log is wrong: ' || log_id FROM logs
    WHERE bytes <> (SELECT coalesce(sum(size), 0) FROM extents WHERE extents.log_id = logs.log_id)
    UNION ALL
    SELECT 'an extent of an object that is dead, unknown, or too small: ' || extents.object_id
    FROM extents LEFT JOIN objects USING (object_id)
    WHERE objects.object_id IS NULL OR dead_since IS NOT NULL OR extents.position + extents.size > objects.size
        OR log_id <> ALL (counted)
    UNION ALL
    SELECT 'an object without extents is not dead: ' || key FROM objects
    WHERE dead_since IS NULL AND NOT EXISTS (SELECT FROM extents WHERE extents.object_id = objects.object_id)
    UNION ALL
    SELECT 'something belongs to a log that does not exist: ' || log_id FROM (
        SELECT log_id FROM extents UNION SELECT log_id FROM epochs UNION SELECT log_id FROM aborted
        UNION SELECT log_id FROM snapshots UNION SELECT log_id FROM deleted_logs
    ) AS owners WHERE NOT EXISTS (SELECT FROM logs WHERE logs.log_id = owners.log_id)
    UNION ALL
    SELECT 'epochs do not increase: ' || log_id FROM (
        SELECT log_id, leader_epoch, first_offset,
            lag(first_offset) OVER (PARTITION BY log_id ORDER BY leader_epoch) AS before
        FROM epochs
    ) AS ordered JOIN logs USING (log_id)
    WHERE first_offset <= before OR ordered.leader_epoch > logs.leader_epoch OR first_offset >= high_watermark
"""


async def assert_consistent(connection: Connection, *, is_compacted: bool = False) -> None:
    """`is_compacted`: gaps between extents are allowed."""
    found = await connection.fetch(_INCONSISTENT, not is_compacted)
    assert not found, "\n".join(row[0] for row in found)


def offsets(log: KnownLog) -> list[tuple[Offset, Offset]]:
    return [(extent.base_offset, extent.last_offset) for extent in log.extents]
