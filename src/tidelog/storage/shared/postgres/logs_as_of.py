"""Reads all logs of a cluster in a transaction of the caller, which sees the database as of one moment."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple

from tidelog.model import PartitionIdentity, TopicIdentity
from tidelog.postgres import Connection
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.shared.order import Cleaned, Extent, KnownLog, LogId, ProducerSnapshot

_LOGS = """
    SELECT log_id, topic_id, topic, partition, start_offset, high_watermark, clean_offset, next_horizon FROM logs
    WHERE topic_id = ANY ($1::bytea[]) ORDER BY topic, partition"""
_EXTENTS = """
    SELECT extents.log_id, base_offset, last_offset, key, extents.position, extents.size, max_timestamp, producers
    FROM extents JOIN logs ON logs.log_id = extents.log_id JOIN objects ON objects.object_id = extents.object_id
    WHERE topic_id = ANY ($1::bytea[]) AND last_offset >= start_offset ORDER BY extents.log_id, last_offset"""
_SNAPSHOTS = """
    SELECT snapshots.log_id, "offset", facts FROM snapshots JOIN logs ON logs.log_id = snapshots.log_id
    WHERE topic_id = ANY ($1::bytea[])"""
_ABORTED = """
    SELECT aborted.log_id, producer_id, first_offset, last_offset, aborted.stable_offset
    FROM aborted JOIN logs ON logs.log_id = aborted.log_id
    WHERE topic_id = ANY ($1::bytea[]) AND last_offset >= start_offset ORDER BY aborted.log_id, last_offset"""


class LogAsOf(NamedTuple):
    partition: PartitionIdentity
    known: KnownLog
    """Without epochs."""


async def logs_as_of(connection: Connection, topic_ids: Collection[bytes]) -> list[LogAsOf]:
    """The logs of these topics, in the order of names and partitions."""
    wanted = list(topic_ids)
    rows = await connection.fetch(_LOGS, wanted)
    extents: defaultdict[LogId, list[Extent]] = defaultdict(list)
    aborted: defaultdict[LogId, list[AbortedTransaction]] = defaultdict(list)
    for row in await connection.fetch(_EXTENTS, wanted):
        extents[row["log_id"]].append(Extent(*row[1:]))
    for row in await connection.fetch(_ABORTED, wanted):
        aborted[row["log_id"]].append(AbortedTransaction(*row[1:]))
    snapshots = {row["log_id"]: ProducerSnapshot(*row[1:]) for row in await connection.fetch(_SNAPSHOTS, wanted)}
    return [_log(row, extents, aborted, snapshots) for row in rows]


def _log(
    row: Any,  # noqa: ANN401
    extents: defaultdict[LogId, list[Extent]],
    aborted: defaultdict[LogId, list[AbortedTransaction]],
    snapshots: dict[LogId, ProducerSnapshot],
) -> LogAsOf:
    log_id = LogId(row["log_id"])
    known = KnownLog(
        log_id,
        row["start_offset"],
        row["high_watermark"],
        extents[log_id],
        snapshots.get(log_id),
        aborted[log_id],
        (),
        Cleaned(row["clean_offset"], row["next_horizon"]),
    )
    return LogAsOf(PartitionIdentity(TopicIdentity(row["topic"], row["topic_id"]), row["partition"]), known)
