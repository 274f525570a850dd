"""Steps of starting and stopping that a broker has in common, alone or in a cluster."""

import uuid
from base64 import urlsafe_b64encode

import structlog

from tidelog.broker.writes import Writes
from tidelog.errors import Conflict
from tidelog.metadata.rows import ClusterRow
from tidelog.metadata.store import Insert, MetadataStore
from tidelog.storage.log import LogStore

CLUSTER_ID = "cluster.id"

log = structlog.get_logger("tidelog")


async def close_logs(logs: LogStore) -> None:
    for partition, error in (await logs.close()).items():
        log.error("a partition could not be closed cleanly", partition=str(partition), reason=str(error))


async def cluster_id(metadata: MetadataStore) -> str:
    """The id of the cluster, which its first broker chooses."""
    for fact in await metadata.load(ClusterRow, (CLUSTER_ID,)):
        return fact.value
    chosen = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    try:
        await Writes(metadata).decided([Insert(ClusterRow(CLUSTER_ID, chosen))])
    except Conflict:  # a broker that shares the store was faster
        (fact,) = await metadata.load(ClusterRow, (CLUSTER_ID,))
        return fact.value
    return chosen
