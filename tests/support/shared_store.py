"""The engine of a cluster without a cluster: a store that makes its broker the leader of every log that it opens."""

from tidelog.model import LeaderEpoch, PartitionIdentity
from tidelog.storage.shared.order import KnownLog, Leader
from tidelog.storage.shared.store import SharedStore
from tidelog.storage.shared.writer import WriterSettings

AT_ONCE = WriterSettings(linger_ms=0)


class LeadingStore(SharedStore):
    """Takes a log over when it is opened, whatever the leader epoch of the caller."""

    async def _load(self, partition: PartitionIdentity, leader: Leader) -> tuple[LeaderEpoch, KnownLog]:
        await self._order.create([partition])
        [epoch] = await self._order.take_over([partition], leader.broker_id)
        return await super()._load(partition, leader._replace(epoch=epoch))
