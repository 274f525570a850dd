"""What a cluster is made of, without brokers; part of `benchmarks.cluster`.

The limits that a broker is compared with: uploads whose commits are made in order, as many at once as a broker makes;
ranges that are read from the store; and commits alone. And how commits grow with the number of extents.
"""

import asyncio
import os
import statistics
import time
import uuid
from collections.abc import Sequence

from benchmarks.report import Report
from tidelog.model import LeaderEpoch, PartitionIdentity, TopicIdentity
from tidelog.postgres import PostgresSettings
from tidelog.storage.shared.bundle import new_key
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import Leader, LogId, LogPart
from tidelog.storage.shared.postgres.order import PostgresOrder

BUNDLE_BYTES, UPLOADS = 4 << 20, 4  # as a broker has them by default
RANGE_BYTES, RANGES_AT_ONCE = 1 << 20, 4
PARTITIONS, LINGER_S = 16, 0.005
_BROKER = 1


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Logs:
    """Logs of a topic of its own that grow by one extent each with every commit."""

    def __init__(self, order: PostgresOrder, log_ids: Sequence[LogId], epoch: LeaderEpoch) -> None:
        self._order, self._log_ids, self._epoch = order, log_ids, epoch
        self._end = 0
        self.keys: list[str] = []

    @classmethod
    async def create(cls, order: PostgresOrder, count: int) -> "Logs":
        topic = TopicIdentity("raw", os.urandom(16))
        partitions = [PartitionIdentity(topic, number) for number in range(count)]
        await order.create(partitions)
        epochs = await order.take_over(partitions, _BROKER)
        known = [
            await order.load(partition, Leader(_BROKER, epoch))
            for partition, epoch in zip(partitions, epochs, strict=True)
        ]
        return cls(order, [each.log_id for each in known], epochs[0])

    async def commit(self, key: str, size: int) -> None:
        each = size // len(self._log_ids)
        parts = [
            LogPart(log_id, self._epoch, self._end, self._end, number * each, each, _now_ms(), self._end + 1, b"")
            for number, log_id in enumerate(self._log_ids)
        ]
        counted = await self._order.commit(key, size, _BROKER, parts, _now_ms())
        assert counted == frozenset(self._log_ids), "the commit was refused"
        self._end += 1
        self.keys.append(key)


async def pipeline(
    objects: ObjectStore, order: PostgresOrder, bundles: int, partitions: int
) -> tuple[float, list[str]]:
    """Bytes per second of uploads with ordered commits, and the keys of the objects."""
    logs = await Logs.create(order, partitions)
    content = os.urandom(BUNDLE_BYTES)
    slots = asyncio.Semaphore(UPLOADS)
    began = time.perf_counter()

    async def deliver(before: asyncio.Event, done: asyncio.Event) -> None:
        key = new_key(_now_ms(), uuid.uuid4())
        await objects.put(key, [content])
        await before.wait()
        await logs.commit(key, BUNDLE_BYTES)
        done.set()
        slots.release()

    before = asyncio.Event()
    before.set()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(bundles):
            await slots.acquire()
            done = asyncio.Event()
            tasks.create_task(deliver(before, done))
            before = done
    taken = time.perf_counter() - began
    assert len(logs.keys) == bundles
    return BUNDLE_BYTES * bundles / taken, logs.keys


async def ranges(objects: ObjectStore, keys: Sequence[str]) -> float:
    """Bytes per second of range reads, several at once."""
    slots = asyncio.Semaphore(RANGES_AT_ONCE)

    async def read(key: str, position: int) -> int:
        async with slots:
            return len(await objects.read_up_to(key, position, RANGE_BYTES))

    began = time.perf_counter()
    sizes = await asyncio.gather(*(read(key, at) for key in keys for at in range(0, BUNDLE_BYTES, RANGE_BYTES)))
    taken = time.perf_counter() - began
    assert sum(sizes) == BUNDLE_BYTES * len(keys)
    return sum(sizes) / taken


async def delivery_times(
    objects: ObjectStore, orders: Sequence[PostgresOrder], size: int, seconds: float
) -> list[float]:
    """Sorted milliseconds from the begin of an upload to its commit: one at a time for each order, with pauses of
    `LINGER_S`, as brokers deliver small bundles."""
    content = os.urandom(size)
    times: list[float] = []

    async def deliver(order: PostgresOrder) -> None:
        logs = await Logs.create(order, max(1, PARTITIONS // len(orders)))
        until = time.perf_counter() + seconds
        while (began := time.perf_counter()) < until:
            key = new_key(_now_ms(), uuid.uuid4())
            await objects.put(key, [content])
            await logs.commit(key, size)
            times.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(LINGER_S)

    await asyncio.gather(*map(deliver, orders))
    return sorted(times)


async def commit_times(order: PostgresOrder, count: int, partitions: int) -> list[float]:
    """Sorted milliseconds of commits, one at a time."""
    logs = await Logs.create(order, partitions)
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await logs.commit(new_key(_now_ms(), uuid.uuid4()), partitions * 1000)
        times.append((time.perf_counter() - began) * 1000)
    return sorted(times)


def measure_commits(settings: PostgresSettings, report: Report, share: int) -> None:
    async def measure() -> None:
        order = await PostgresOrder.open(settings)
        try:
            for partitions in (1, 16, 64):
                times = await commit_times(order, 1000 // share, partitions)
                p50, p99 = statistics.median(times), times[int(len(times) * 0.99)]
                report.figures |= {
                    f"commit_{partitions}_p50_ms": round(p50, 2),
                    f"commit_{partitions}_p99_ms": round(p99, 2),
                }
                goal = ("p50 3 ms", p50 <= 3) if partitions == 16 else ("", None)
                report.add(
                    f"commit of {partitions} partitions", f"p50 {p50:.2f}, p99 {p99:.2f} ms", "", goal[0], met=goal[1]
                )
        finally:
            await order.close()

    asyncio.run(measure())


_OLD_EXTENTS = """
    WITH bundles AS (
        INSERT INTO objects (key, size, counted)
        SELECT 'b/old/' || $1::bigint || '-' || number, 1600, array_agg(1000000 + $1::bigint * 1000000 + log)
        FROM generate_series(1, $2::bigint / 16) AS number, generate_series(1, 16) AS log GROUP BY number
        RETURNING object_id, counted, split_part(key, '-', 2)::bigint AS number
    )
    INSERT INTO extents (log_id, last_offset, base_offset, object_id, position, size, max_timestamp, producers)
    SELECT log_id, number, number, object_id, 0, 100, 0, ''
    FROM bundles, unnest(counted) AS log_id"""


def measure_extents(settings: PostgresSettings, report: Report, powers: Sequence[int]) -> None:
    """The tables get rows of logs that nobody opens; the commits of other logs must not notice."""
    import asyncpg

    async def measure() -> None:
        order = await PostgresOrder.open(settings)
        connection = await asyncpg.connect(
            settings.url, password=settings.password, server_settings={"search_path": settings.schema}
        )
        there = 0
        try:
            for power in powers:
                await connection.execute(_OLD_EXTENTS, power, 10**power - there, timeout=3600)
                there = 10**power
                await connection.execute("ANALYZE")
                p50 = statistics.median(await commit_times(order, 200, 16))
                report.figures[f"commit_16_at_1e{power}_extents_p50_ms"] = round(p50, 2)
                report.add(f"commit of 16 partitions beside 10^{power} extents", f"p50 {p50:.2f} ms")
            await connection.execute(
                "DELETE FROM extents WHERE object_id IN (SELECT object_id FROM objects WHERE key LIKE 'b/old/%')"
            )
        finally:
            await connection.close()
            await order.close()

    asyncio.run(measure())
