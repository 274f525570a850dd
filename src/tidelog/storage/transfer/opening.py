"""Opens both sides of an import or an export: the data directory, the object store, the database."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from tidelog.postgres.settings import PostgresSettings
from tidelog.settings import ClusterSettings
from tidelog.storage.local.store import LocalStore
from tidelog.storage.shared.claim import need_claim
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.postgres.intake import PostgresIntake
from tidelog.storage.shared.store import wall_clock_ms
from tidelog.storage.transfer.exporting import ExportStorage, begin_export
from tidelog.storage.transfer.importing import ImportStorage

PATIENCE_S = 120.0  # for one statement: these may read or write many rows


@asynccontextmanager
async def open_import(cluster: ClusterSettings, data_dir: str) -> AsyncIterator[ImportStorage]:
    """DirectoryInUse if a broker runs on the data directory."""
    async with AsyncExitStack() as opened:
        local = LocalStore(data_dir, inline=True)
        opened.callback(local.close_now)
        objects = open_object_store(cluster.storage)
        opened.push_async_callback(objects.close)
        intake = await PostgresIntake.open(PostgresSettings.parse(cluster.metadata, deadline_s=PATIENCE_S))
        opened.push_async_callback(intake.close)
        yield ImportStorage(local, objects, intake, clock=wall_clock_ms)


@asynccontextmanager
async def open_export(cluster: ClusterSettings, cluster_id: str, data_dir: str) -> AsyncIterator[ExportStorage]:
    """InvalidInput if the object store is not the cluster's, or the directory cannot be used: see `begin_export`."""
    async with AsyncExitStack() as opened:
        objects = open_object_store(cluster.storage)
        opened.push_async_callback(objects.close)
        await need_claim(objects, cluster_id)
        storage = begin_export(data_dir, cluster_id, objects, clock=wall_clock_ms)
        opened.callback(storage.close)
        yield storage
