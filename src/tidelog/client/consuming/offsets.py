"""Where to start reading: offsets found by name (earliest, latest), by number or by time."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from tidelog.client.cluster import Cluster
from tidelog.client.content import as_timestamp
from tidelog.client.errors import check
from tidelog.errors import InvalidInput
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

Start: TypeAlias = Literal["earliest", "latest"] | int | datetime
"""An offset; -n for the last n offsets of each partition; a time for the first record at or after it."""

LATEST: TimestampMs = -1
EARLIEST: TimestampMs = -2
READ_COMMITTED = 1


class OffsetAtTime(NamedTuple):
    offset: Offset
    timestamp: TimestampMs


async def list_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, TimestampMs],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, OffsetAtTime]:
    """For each partition the first offset at or after a timestamp, or `EARLIEST` or `LATEST`; -1 if there is none."""

    async def attempt() -> dict[TopicPartition, OffsetAtTime]:
        groups = await cluster.by_leader(timestamps)
        answers = await asyncio.gather(*(ask(node, partitions) for node, partitions in groups.items()))
        return {partition: found for answer in answers for partition, found in answer.items()}

    async def ask(node: int, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetAtTime]:
        topics: dict[str, ListOffsetsTopic] = {}
        for partition in partitions:
            topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic))
            topic.partitions.append(
                ListOffsetsPartition(partition_index=partition.partition, timestamp=timestamps[partition])
            )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=READ_COMMITTED if read_committed else 0,
            topics=list(topics.values()),
            timeout_ms=cluster.options.request_timeout_ms,
        )
        response: ListOffsetsResponse = await cluster.request("ListOffsets", request, node=node)
        found = {}
        for answer in response.topics:
            for row in answer.partitions:
                partition = TopicPartition(answer.name, row.partition_index)
                check(row.error_code, f"looking up offsets of {partition}")
                found[partition] = OffsetAtTime(row.offset, row.timestamp)
        return found

    return await cluster.retrying(attempt) if timestamps else {}


async def end_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, read_committed: bool = False
) -> dict[TopicPartition, Offset]:
    asked = dict.fromkeys(partitions, LATEST)
    found = await list_offsets(cluster, asked, read_committed=read_committed)
    return {partition: at.offset for partition, at in found.items()}


async def start_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], start: Start, *, read_committed: bool = False
) -> dict[TopicPartition, Offset]:
    """The offsets that `start` means. Offsets found by name, time or -n are in the log; a number is returned as it
    is."""
    partitions = list(partitions)
    if isinstance(start, datetime):
        return await _offsets_at(cluster, partitions, as_timestamp(start), read_committed=read_committed)
    if start == "earliest":
        found = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
        return {partition: at.offset for partition, at in found.items()}
    if start == "latest":
        return await end_offsets(cluster, partitions, read_committed=read_committed)
    if not isinstance(start, int):
        raise InvalidInput(f"start must be earliest, latest, an offset, -n or a datetime, not {start!r}")
    if start >= 0:
        return dict.fromkeys(partitions, start)
    first = await list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    end = await end_offsets(cluster, partitions, read_committed=read_committed)
    return {partition: max(first[partition].offset, end[partition] + start) for partition in partitions}


async def _offsets_at(
    cluster: Cluster, partitions: list[TopicPartition], timestamp: TimestampMs, *, read_committed: bool
) -> dict[TopicPartition, Offset]:
    found = await list_offsets(cluster, dict.fromkeys(partitions, timestamp), read_committed=read_committed)
    offsets = {partition: at.offset for partition, at in found.items() if at.offset >= 0}
    later = [partition for partition in partitions if partition not in offsets]
    return offsets | await end_offsets(cluster, later, read_committed=read_committed)
