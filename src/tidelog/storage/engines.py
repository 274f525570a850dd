"""Which engine stores the logs. This is the only module outside an engine that names one."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from tidelog.model import PartitionIdentity
from tidelog.settings import ClusterSettings, StorageSettings
from tidelog.storage.direct import DirectLog, KeptLog
from tidelog.storage.local.direct import local_log, local_logs
from tidelog.storage.log import LogStore

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from tidelog.postgres import Component, Connection, PostgresSettings
    from tidelog.storage.shared.postgres.logs_as_of import LogAsOf
    from tidelog.storage.shared.tools import StorageTools
    from tidelog.storage.transfer.exporting import ExportStorage
    from tidelog.storage.transfer.importing import ImportStorage


def open_log_store(data_dir: str, settings: StorageSettings) -> LogStore:
    """Must be called inside a running event loop. Raises a StorageError, for example if another process uses the
    directory."""
    from tidelog.storage.local.store import LocalStore  # tasks that only read need not load its imports

    return LocalStore(data_dir, settings)


async def open_cluster_store(
    cluster: ClusterSettings, settings: StorageSettings, broker_id: int, is_collector: Callable[[], bool]
) -> LogStore:
    """The log store of a broker in a cluster. `is_collector`: whether this broker removes garbage at the moment, for
    all brokers. Returns also while the database or the object store is down."""
    from tidelog.storage.shared.opening import open_shared_store  # only brokers of a cluster have its libraries

    return await open_shared_store(cluster, settings, broker_id, is_collector)


async def claim_cluster_storage(cluster: ClusterSettings, cluster_id: str) -> None:
    """Make sure that the object store belongs to this cluster and no other. Raises a StorageError."""
    from tidelog.storage.shared.opening import claim_storage

    await claim_storage(cluster, cluster_id)


def open_cluster_tools(cluster: ClusterSettings, cluster_id: str) -> "AbstractAsyncContextManager[StorageTools]":
    """For operators: check the storage of a cluster, and remove garbage, without a broker."""
    from tidelog.storage.shared.tools import open_storage_tools

    return open_storage_tools(cluster, cluster_id)


def open_cluster_import(cluster: ClusterSettings, data_dir: str) -> "AbstractAsyncContextManager[ImportStorage]":
    """For operators: copy the logs of a data directory, which is locked meanwhile, into a cluster."""
    from tidelog.storage.transfer.opening import open_import

    return open_import(cluster, data_dir)


def open_cluster_export(
    cluster: ClusterSettings, cluster_id: str, data_dir: str
) -> "AbstractAsyncContextManager[ExportStorage]":
    """For operators: copy the logs of a cluster into a new data directory."""
    from tidelog.storage.transfer.opening import open_export

    return open_export(cluster, cluster_id, data_dir)


async def cluster_logs_as_of(connection: "Connection", topic_ids: Collection[bytes]) -> "list[LogAsOf]":
    """The logs of these topics, in a transaction of the caller, which sees the database as of one moment."""
    from tidelog.storage.shared.postgres.logs_as_of import logs_as_of

    return await logs_as_of(connection, topic_ids)


async def check_cluster_tables(connection: "Connection", settings: "PostgresSettings") -> None:
    """InvalidInput if the database has no cluster, or one whose tables are of another version."""
    from tidelog.storage.shared.postgres.inventory import check_tables

    await check_tables(connection, settings)


def cluster_tables() -> "Component":
    """The tables of logs in a cluster's database. The registry assigns leaders in them."""
    from tidelog.storage.shared.postgres.order import COMPONENT

    return COMPONENT


def direct_log(place: str, partition: PartitionIdentity, *, with_tail: bool = False) -> DirectLog:
    """The log of a partition in a place whose name a broker gave (`LogStore.place`). `with_tail`: also read what the
    broker has in memory, where that makes a difference."""
    if "://" in place:
        from tidelog.storage.shared.direct import SharedDirectLog

        return SharedDirectLog(place, with_tail)
    return local_log(place, partition)


def kept_logs(place: str) -> list[KeptLog]:
    """All logs that are stored in a place. Raises a StorageError if there are none."""
    return local_logs(place)
