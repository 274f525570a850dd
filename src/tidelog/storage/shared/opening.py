"""Opens the log store of a cluster: its object store, its database, and what a broker keeps of them in memory."""

from collections.abc import Callable

from tidelog.errors import TidelogError
from tidelog.model import TopicPartition
from tidelog.settings import ClusterSettings, StorageSettings
from tidelog.storage.log import LogStore
from tidelog.storage.shared.claim import claim
from tidelog.storage.shared.garbage import GarbageSettings
from tidelog.storage.shared.merging import MergeSettings
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.store import SharedStore
from tidelog.storage.shared.upkeep import UpkeepSettings
from tidelog.storage.shared.writer import WriterSettings


async def open_shared_store(
    cluster: ClusterSettings, settings: StorageSettings, broker_id: int, is_collector: Callable[[], bool]
) -> LogStore:
    """`is_collector`: whether this broker removes garbage at the moment, for the cluster. Returns also while the
    database or the object store is down: logs can be opened when they are back. Raises if an operator has to correct
    something."""
    from tidelog.postgres.settings import PostgresSettings
    from tidelog.storage.shared.postgres.order import PostgresOrder

    objects = open_object_store(cluster.storage)
    try:
        order = await PostgresOrder.open(PostgresSettings.parse(cluster.metadata))
    except BaseException:
        await objects.close()
        raise
    writing = WriterSettings(
        linger_ms=cluster.linger_ms,
        bundle_bytes=cluster.bundle_bytes,
        uploads=cluster.uploads,
        buffer_bytes=cluster.buffer_bytes,
        append_timeout_ms=cluster.append_timeout_ms,
    )
    return _OwningStore(
        order,
        objects,
        broker_id,
        settings,
        writing,
        upkeep=UpkeepSettings(
            merge_interval_ms=cluster.merge_interval_ms,
            garbage_interval_ms=cluster.garbage_interval_ms,
            sweep_interval_ms=cluster.orphan_interval_ms,
        ),
        merging=MergeSettings(fan_in=cluster.merge_fan_in).up_to(cluster.segment_bytes),
        collecting=garbage_settings(cluster),
        block_cache_bytes=cluster.cache_bytes,
        is_collector=is_collector,
    )


def garbage_settings(cluster: ClusterSettings) -> GarbageSettings:
    return GarbageSettings(grace_ms=cluster.garbage_grace_ms, orphan_ms=cluster.orphan_age_ms)


async def claim_storage(cluster: ClusterSettings, cluster_id: str) -> None:
    """See `claim`."""
    objects = open_object_store(cluster.storage)
    try:
        await claim(objects, cluster_id)
    finally:
        await objects.close()


class _OwningStore(SharedStore):
    """Closes what it was opened with."""

    async def close(self) -> dict[TopicPartition, TidelogError]:
        failures = await super().close()
        await self._order.close()
        await self._objects.close()
        return failures
