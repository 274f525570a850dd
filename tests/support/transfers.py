"""Data directories to move into a cluster and back, and calls that end the process that makes them."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.logs import NOW_MS, batch, stored
from tests.support.postgres import fresh_schema, server
from tidelog.broker.producer_ids import NEXT_PRODUCER_ID
from tidelog.broker.topic_logs import BY_ID, LAYOUT
from tidelog.metadata.intake import MetadataIntake
from tidelog.metadata.opening import open_intake, open_store
from tidelog.metadata.rows import ClusterRow, ConfigRow, GroupMemberRow, GroupRow, OffsetRow, Row, TopicRow
from tidelog.metadata.store import MetadataStore, Put
from tidelog.model import LeaderEpoch, ProducerEpoch, ProducerId
from tidelog.node.importing import ClusterImport
from tidelog.node.parts import CLUSTER_ID
from tidelog.postgres import PostgresSettings
from tidelog.settings import ClusterSettings, LogSettings
from tidelog.storage.engines import cluster_tables
from tidelog.storage.local.layout import LOGS, partition_directory
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore
from tidelog.storage.shared.claim import claim
from tidelog.storage.shared.intake import Intake
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.postgres.intake import PostgresIntake
from tidelog.storage.shared.store import wall_clock_ms
from tidelog.storage.transfer.importing import ImportStorage

SMALL = LogSettings(segment_bytes=1024)
ID, EPOCH = ProducerId(3), ProducerEpoch(0)


def put(log: LocalLog, *values: bytes, **about: Any) -> None:
    log.append(batch(*values, **about), now_ms=NOW_MS, leader_epoch=LeaderEpoch(0), durable=True)


def end(log: LocalLog, *, committed: bool, producer_id: ProducerId = ID) -> None:
    log.end_transaction(
        producer_id, EPOCH, committed=committed, coordinator_epoch=0, now_ms=NOW_MS, leader_epoch=LeaderEpoch(0)
    )


def fill(log: LocalLog) -> None:
    """Three segments: plain batches, transactions of both ends, an idempotent producer."""
    for number in range(8):
        put(log, b"plain %d" % number * 30)
    for number, committed in enumerate((True, False, False)):
        put(log, b"x" * 100, producer_id=ID, producer_epoch=EPOCH, sequence=number, transactional=True)
        end(log, committed=committed)
    put(log, b"last", producer_id=5, producer_epoch=0, sequence=0)


async def write_directory(
    directory: Path, topics: Iterable[str], contents: Mapping[str, Callable[[LocalLog], None]] | None = None
) -> None:
    """A data directory as a broker leaves it; topics have one partition each."""
    directory.mkdir(parents=True)
    store = LocalStore(str(directory), inline=True)
    rows: list[Row] = [ClusterRow(LAYOUT, BY_ID), ClusterRow(CLUSTER_ID, str(directory))]
    rows += [ClusterRow(NEXT_PRODUCER_ID, "1000")]
    for topic in topics:
        partition = stored(topic)
        (contents or {}).get(topic, fill)(store.open(partition, SMALL, NOW_MS))
        rows += [
            TopicRow(topic, partition.topic.topic_id, 1, NOW_MS),
            ConfigRow("topic", topic, "segment.bytes", "1024"),
            GroupRow(f"group of {topic}", "classic", "consumer", "range", 3, "me", "Stable", NOW_MS),
            GroupMemberRow(f"group of {topic}", "me", None, "", "", 10_000, 10_000, 3, b"", b""),
            OffsetRow(f"group of {topic}", topic, 0, 4, 0, "", NOW_MS),
        ]
    assert not store.close_now()
    metadata = await open_store(str(directory))
    await metadata.write([Put(row) for row in rows])
    await metadata.close()


def batches_in(directory: Path, topic: str) -> bytes:
    """All batches of a topic's partition 0 in a data directory."""
    files = sorted((directory / LOGS / partition_directory(stored(topic))).glob("*.log"))
    return b"".join(file.read_bytes() for file in files)


class Killed(Exception):
    """In its place the process would have ended."""


class Life:
    """Ends at a step: before that call takes effect, or after it, without its reply."""

    def __init__(self, dies_at: int = 0, *, with_effect: bool = False) -> None:
        self._dies_at = dies_at
        self._with_effect = with_effect
        self.steps = 0
        self.is_over = False
        """What is called from now on is no step."""

    async def through(self, work: Callable[[], Awaitable[Any]]) -> Any:
        self.steps += not self.is_over
        is_last = self.steps == self._dies_at and not self.is_over
        if is_last and not self._with_effect:
            raise Killed
        result = await work()
        if is_last:
            raise Killed
        return result

    def at_once(self, work: Callable[[], Any]) -> Any:
        """The same without an event loop."""
        self.steps += not self.is_over
        is_last = self.steps == self._dies_at and not self.is_over
        if is_last and not self._with_effect:
            raise Killed
        result = work()
        if is_last:
            raise Killed
        return result


class Mortal:
    """Passes calls on, each of which is a step of a life. Give the methods' names of plain calls that count too."""

    def __init__(self, inner: Any, life: Life, *plain: str) -> None:
        self._inner = inner
        self._life = life
        self._plain = plain

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if inspect.iscoroutinefunction(found):
            return lambda *a, **k: self._life.through(lambda: found(*a, **k))
        if name in self._plain:
            return lambda *a, **k: self._life.at_once(lambda: found(*a, **k))
        return found


class Cluster(NamedTuple):
    """The database and the store of a cluster without brokers."""

    settings: ClusterSettings
    objects: ObjectStore
    logs: Intake
    rows: MetadataIntake
    metadata: MetadataStore

    @asynccontextmanager
    async def importing(self, directory: Path, life: Life | None = None) -> AsyncIterator[ClusterImport]:
        life = life or Life()
        local = LocalStore(str(directory), inline=True)
        metadata = await open_store(str(directory))
        objects: Any = Mortal(self.objects, life)
        logs: Any = Mortal(self.logs, life)
        rows: Any = Mortal(self.rows, life)
        try:
            storage = ImportStorage(local, objects, logs, clock=wall_clock_ms)
            yield ClusterImport(str(directory), storage, metadata, self.metadata, rows)
        finally:
            await metadata.close()
            local.close_now()

    async def take_in(self, directory: Path, *topics: str, life: Life | None = None) -> None:
        async with self.importing(directory, life) as importing:
            await importing.run(topics, lambda _: None)


def with_cluster(directory: Path, test: Callable[[Cluster], Awaitable[None]]) -> None:
    """Run a test with a new cluster, whose objects are in this directory."""

    async def whole() -> None:
        url = f"{server().url()}?schema={fresh_schema()}"
        settings = PostgresSettings.parse(url, deadline_s=60)
        objects = open_object_store(f"file://{directory}/objects")
        logs = await PostgresIntake.open(settings)
        rows = await open_intake(url, cluster_tables())
        metadata = await open_store(url)
        try:
            await metadata.write([Put(ClusterRow(CLUSTER_ID, "the cluster"))])
            await claim(objects, "the cluster")
            cluster = ClusterSettings(metadata=url, storage=f"file://{directory}/objects")
            await test(Cluster(cluster, objects, logs, rows, metadata))
        finally:
            for each in (metadata, rows, logs, objects):
                await each.close()

    asyncio.run(whole())
