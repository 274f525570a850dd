"""Engines of `Order` for tests: the fake, and PostgreSQL. And short ways to say what a bundle holds."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from itertools import count

from tests.support.fake_order import FakeDatabase, FakeOrder
from tests.support.postgres import fresh_schema, server
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, TopicIdentity
from tidelog.postgres import PostgresSettings
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


def postgres_settings(schema: str | None = None, **options: float) -> PostgresSettings:
    return PostgresSettings.parse(server().url(), schema=schema or fresh_schema(), deadline_s=60, **options)


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


def offsets(log: KnownLog) -> list[tuple[Offset, Offset]]:
    return [(extent.base_offset, extent.last_offset) for extent in log.extents]
