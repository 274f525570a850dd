"""Two brokers over PostgreSQL and a directory, which take a log from each other while it is written to."""

import asyncio
from pathlib import Path

from tests.support.logs import NOW_MS, batch, stored
from tests.support.orders import postgres_settings
from tidelog.errors import TidelogError
from tidelog.model import LeaderEpoch
from tidelog.promise import result_of
from tidelog.records.batch import iterate
from tidelog.records.record import decode
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.log import PartitionLog
from tidelog.storage.shared.merging import MergeSettings
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.postgres.order import PostgresOrder
from tidelog.storage.shared.store import SharedStore
from tidelog.storage.shared.writer import WriterSettings

A = stored("a")
BATCHES, MOVES = 150, 12
NO_TAIL = StorageSettings(tail_cache_bytes=0)


async def opened(store: SharedStore, epoch: LeaderEpoch) -> PartitionLog:
    log: PartitionLog = await result_of(store.open(A, LogSettings(), NOW_MS, leader_epoch=epoch))
    return log


def test_nothing_is_lost_or_doubled_when_leaders_change_under_a_writer(tmp_path: Path) -> None:
    async def main() -> None:
        settings, url = postgres_settings(), f"file://{tmp_path}"
        orders = [await PostgresOrder.open(settings) for _ in range(2)]
        objects = [open_object_store(url) for _ in range(2)]
        stores = [
            SharedStore(
                order,
                place,
                broker_id,
                NO_TAIL,
                WriterSettings(linger_ms=1),
                merging=MergeSettings(fan_in=4),
            )
            for broker_id, (order, place) in enumerate(zip(orders, objects, strict=True))
        ]
        try:
            await orders[0].create([A])
            [first] = await orders[0].take_over([A], 0)
            leading = [(stores[0], await opened(stores[0], first), first)]
            writing = asyncio.ensure_future(write(leading))
            for number in range(1, MOVES + 1):
                await asyncio.sleep(0.02)
                [epoch] = await orders[0].take_over([A], number % 2)
                log = await opened(stores[number % 2], epoch)
                leading.append((stores[number % 2], log, epoch))
                await stores[number % 2].merger.merge(log)  # type: ignore[arg-type]  # it is a SharedLog
            await writing
            _, log, _ = leading[-1]
            found: list[bytes | None] = []
            while len(found) < log.end_offset:
                for view in iterate((await result_of(log.read(len(found), 3000))).read()):
                    found += [record.value for record in decode(view)]
            assert found == [b"%d" % number for number in range(BATCHES)]
        finally:
            for store in stores:
                await store.close()
            for order in orders:
                await order.close()
            for place in objects:
                await place.close()

    async def write(leading: list[tuple[SharedStore, PartitionLog, LeaderEpoch]]) -> None:
        """As an idempotent producer does: again, until it is acknowledged."""
        for number in range(BATCHES):
            while True:
                _, log, epoch = leading[-1]
                data = batch(b"%d" % number, producer_id=7, producer_epoch=0, sequence=number)
                try:
                    await result_of(log.append(data, now_ms=NOW_MS, leader_epoch=epoch, durable=True))
                    break
                except TidelogError:
                    await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(main(), 100))
