"""What operators do to the storage of a cluster while it runs, without a broker: check it, remove garbage."""

from collections.abc import AsyncIterator, Callable, Container
from contextlib import AsyncExitStack, asynccontextmanager
from typing import NamedTuple

from tidelog.model import TimestampMs
from tidelog.postgres.settings import PostgresSettings
from tidelog.settings import ClusterSettings
from tidelog.storage.shared.checking import Checker, Count, Finding, Tally, classify
from tidelog.storage.shared.claim import need_claim
from tidelog.storage.shared.garbage import Garbage
from tidelog.storage.shared.inventory import Compared, Inventory, compared
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.opening import garbage_settings
from tidelog.storage.shared.postgres.inventory import PostgresInventory
from tidelog.storage.shared.postgres.order import PostgresOrder
from tidelog.storage.shared.store import wall_clock_ms

_PATIENCE_S = 120.0  # for one statement: these may read many rows, and nobody waits for them
_PAGE = 500


class Collected(NamedTuple):
    removed: Count
    declared_dead: Count
    """Orphans, which are removed after the grace."""
    recent: Count
    """Objects that nothing refers to, and that are not old enough."""


class StorageTools:
    """Use `open_storage_tools`."""

    def __init__(self, cluster: ClusterSettings, inventory: Inventory, objects: ObjectStore) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._objects = objects
        self._settings = garbage_settings(cluster)

    async def used_bytes(self) -> int:
        """The size of all objects that logs use."""
        return (await self._inventory.totals()).size_bytes

    async def check(
        self,
        compacted: Container[str],
        *,
        deep: bool,
        found: Callable[[Finding], None],
        progress: Callable[[int], None],
    ) -> Tally:
        """See `Checker`."""
        checker = Checker(
            self._inventory,
            self._objects,
            self._settings,
            compacted=compacted,
            clock=wall_clock_ms,
            found=found,
            progress=progress,
        )
        return await checker.check(deep=deep)

    async def collect(self, *, dry_run: bool) -> Collected:
        """Do now what the brokers do in the background; or only tell what that would be."""
        now_ms = wall_clock_ms()
        tally, sizes = await self._survey(now_ms)
        if dry_run:
            return Collected(tally.removable, tally.orphans, tally.recent)
        removed = Count()

        def note(keys: list[str]) -> None:
            nonlocal removed
            for key in keys:
                removed = removed.plus(sizes.get(key, 0))

        order = await PostgresOrder.open(PostgresSettings.parse(self._cluster.metadata))
        try:
            garbage = Garbage(order, self._objects, self._settings, clock=wall_clock_ms)
            await garbage.collect(lambda keys: note(list(keys)))
            orphans = await garbage.sweep()
        finally:
            await order.close()
        return Collected(removed, Count(orphans, tally.orphans.size_bytes), tally.recent)

    async def _survey(self, now_ms: TimestampMs) -> tuple[Tally, dict[str, int]]:
        """Also the sizes of the objects that are removed now."""
        tally, sizes = Tally(), {}
        unknown: list[Compared] = []

        async def count_unknown() -> None:
            known = await self._inventory.look(each.key for each in unknown)
            for each in unknown:
                classify(Compared(each.stored, known.get(each.key)), tally, self._settings, now_ms)
            unknown.clear()

        async for each in compared(self._inventory, self._objects):
            if each.known is None:
                unknown.append(each)
                if len(unknown) >= _PAGE:
                    await count_unknown()
                continue
            before = tally.removable
            classify(each, tally, self._settings, now_ms)
            if each.stored is not None and tally.removable != before:
                sizes[each.key] = each.stored.size
        await count_unknown()
        return tally, sizes


@asynccontextmanager
async def open_storage_tools(cluster: ClusterSettings, cluster_id: str) -> AsyncIterator[StorageTools]:
    """Changes nothing. InvalidInput if the database has no cluster, or nobody uses the object store; ClaimedByAnother
    if it belongs to another cluster."""
    async with AsyncExitStack() as opened:
        objects = open_object_store(cluster.storage)
        opened.push_async_callback(objects.close)
        settings = PostgresSettings.parse(cluster.metadata, deadline_s=_PATIENCE_S)
        inventory = await PostgresInventory.open(settings)
        opened.push_async_callback(inventory.close)
        await need_claim(objects, cluster_id)
        yield StorageTools(cluster, inventory, objects)
