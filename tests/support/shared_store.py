"""The engine of a cluster without a cluster: a store that makes its broker the leader of every log that it opens."""

from tests.support.fake_order import FakeDatabase, FakeOrder
from tests.support.faulty_objects import MemoryObjects
from tests.support.object_server import shared_server
from tests.support.orders import postgres_settings
from tidelog.errors import TidelogError
from tidelog.model import LeaderEpoch, PartitionIdentity, TopicPartition
from tidelog.settings import StorageSettings
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.order import KnownLog, Leader
from tidelog.storage.shared.postgres.order import PostgresOrder
from tidelog.storage.shared.store import SharedStore
from tidelog.storage.shared.writer import WriterSettings

AT_ONCE = WriterSettings(linger_ms=0)


class LeadingStore(SharedStore):
    """Takes a log over when it is opened, whatever the leader epoch of the caller. Closes what it uses."""

    async def _load(self, partition: PartitionIdentity, leader: Leader) -> tuple[LeaderEpoch, KnownLog]:
        await self._order.create([partition])
        [epoch] = await self._order.take_over([partition], leader.broker_id)
        return await super()._load(partition, leader._replace(epoch=epoch))

    async def close(self) -> dict[TopicPartition, TidelogError]:
        failures = await super().close()
        await self._order.close()
        await self._objects.close()
        return failures


class Services:
    """A database and an object store, which stores can be opened on again and again: "memory", "files" (PostgreSQL
    and a directory) or "s3" (PostgreSQL and an S3 server)."""

    def __init__(self, kind: str, directory: str) -> None:
        self._kind = kind
        if kind == "memory":
            self._database, self._objects = FakeDatabase(), MemoryObjects()
        else:
            self._settings = postgres_settings()
            self._url = shared_server().new_url() if kind == "s3" else f"file://{directory}"
            self._options = shared_server().options if kind == "s3" else None

    async def open(self, settings: StorageSettings | None = None) -> LeadingStore:
        if self._kind == "memory":
            return LeadingStore(FakeOrder(self._database), self._objects, 1, settings, AT_ONCE)
        order = await PostgresOrder.open(self._settings)
        return LeadingStore(order, open_object_store(self._url, self._options), 1, settings, AT_ONCE)
