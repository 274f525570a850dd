"""Which partitions a query reads, from which offset to which, and how they are divided among tasks.

This runs in Spark's planning processes. Offsets have the same form in Spark's checkpoints as those of its Kafka
source: `{"orders": {"0": 23, "1": 45}}`, the next offset to read of each partition.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from tidelog.client import Client
from tidelog.client.consuming.offsets import EARLIEST as EARLIEST_TIME
from tidelog.client.consuming.offsets import LATEST as LATEST_TIME
from tidelog.client.errors import is_unknown_topic
from tidelog.errors import InvalidInput, TidelogError
from tidelog.model import Offset, TimestampMs, TopicIdentity, TopicPartition
from tidelog.settings import is_loopback
from tidelog.spark.options import (
    EARLIEST,
    EARLIEST_OFFSET,
    LATEST,
    LATEST_OFFSET,
    Limit,
    PerPartition,
    ReadSettings,
    Subscription,
)
from tidelog.storage.direct import DirectLog
from tidelog.storage.engines import direct_log

Offsets: TypeAlias = dict[TopicPartition, Offset]

_ROWS_WORTH_A_TASK = 250_000  # for fewer rows, a task costs more than another core saves


class DataLoss(TidelogError):
    """Records that the query should read no longer exist."""


def data_loss(what: str) -> DataLoss:
    return DataLoss(
        f"{what}. Some data may have been lost: retention deleted it before it was read, or the topic was deleted. "
        "To continue with the remaining data, set the option failOnDataLoss to false"
    )


class KnownTopics(NamedTuple):
    partitions: list[TopicPartition]
    ids: dict[str, bytes]


@dataclass(frozen=True)
class OffsetRange:
    """The offsets that one task reads; `direct` is the partition's log, if it can be read without the broker."""

    topic: str
    partition: int
    start: Offset
    end: Offset
    topic_id: bytes
    direct: DirectLog | None = None

    @property
    def size(self) -> int:
        return self.end - self.start


# --- as JSON -------------------------------------------------------------------------------------------------------


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Always in the same order: Spark compares offsets as text."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return nested


def from_json(nested: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in nested.items()
        for partition, offset in partitions.items()
    }


# --- which partitions, from where to where -------------------------------------------------------------------------


def subscribed(client: Client, subscription: Subscription) -> KnownTopics:
    """The partitions that exist now. A topic that does not exist has none."""
    topics = {topic.name: topic for topic in client.topics()}
    if subscription.assigned is not None:
        names: Iterable[str] = subscription.assigned
    elif subscription.pattern is not None:
        pattern = re.compile(subscription.pattern)
        names = [name for name, topic in topics.items() if not topic.is_internal and pattern.fullmatch(name)]
    else:
        names = subscription.topics
    found = []
    for name in names:
        if name in topics:
            numbers = [row.partition for row in topics[name].partitions]
            if subscription.assigned is not None:
                numbers = [number for number in numbers if number in subscription.assigned[name]]
            found += [TopicPartition(name, number) for number in numbers]
    return KnownTopics(sorted(found), {topic: topics[topic].topic_id for topic in {name for name, _ in found}})


def expect_all(subscription: Subscription, known: KnownTopics) -> None:
    """Raises if a topic or partition does not exist that the query names; for the start of a query."""
    there = set(known.partitions)
    if subscription.assigned is not None:
        named = [TopicPartition(topic, n) for topic, numbers in subscription.assigned.items() for n in numbers]
        missing = [str(partition) for partition in named if partition not in there]
    else:
        topics = {topic for topic, _ in there}
        missing = [topic for topic in subscription.topics if topic not in topics]
    if missing:
        raise InvalidInput(
            f"{', '.join(missing)} does not exist; list all topics with: tidelog topic list, "
            f"or create it with: tidelog topic create {missing[0]}"
        )


def earliest(client: Client, partitions: Iterable[TopicPartition]) -> Offsets:
    return _ask(client, dict.fromkeys(partitions, EARLIEST_TIME), read_committed=False)


def latest(client: Client, partitions: Iterable[TopicPartition], *, read_committed: bool) -> Offsets:
    return _ask(client, dict.fromkeys(partitions, LATEST_TIME), read_committed=read_committed)


def _ask(client: Client, times: Mapping[TopicPartition, TimestampMs], *, read_committed: bool) -> Offsets:
    """Partitions that are deleted meanwhile are left out."""
    try:
        found = client.offsets(times, read_committed=read_committed)
    except TidelogError as error:
        if not is_unknown_topic(error):
            raise
        found = {}
        for partition, time in times.items():
            try:
                found |= client.offsets({partition: time}, read_committed=read_committed)
            except TidelogError as inner:
                if not is_unknown_topic(inner):
                    raise
    return {partition: at.offset for partition, at in found.items()}


def starting(client: Client, settings: ReadSettings, partitions: list[TopicPartition]) -> Offsets:
    limit = settings.start
    if not _by_time(limit):
        return _by_offsets(client, settings, limit, partitions)
    times = _times(limit, partitions)
    found = _ask(client, times, read_committed=settings.fetch.read_committed)
    later = [partition for partition, offset in found.items() if offset < 0]
    if later and settings.no_match == "error":
        raise InvalidInput(
            f"{limit.option}: {', '.join(map(str, later))} has no record at or after that time; give an earlier "
            "time, or set startingOffsetsByTimestampStrategy=latest to start at its end"
        )
    return found | latest(client, later, read_committed=settings.fetch.read_committed)


def ending(client: Client, settings: ReadSettings, partitions: list[TopicPartition]) -> Offsets:
    limit = settings.end
    if not _by_time(limit):
        return _by_offsets(client, settings, limit, partitions)
    found = _ask(client, _times(limit, partitions), read_committed=settings.fetch.read_committed)
    later = [partition for partition, offset in found.items() if offset < 0]
    return found | latest(client, later, read_committed=settings.fetch.read_committed)


def within_log(
    settings: ReadSettings, start: Offsets, end: Offsets, first: Offsets, last: Offsets
) -> tuple[Offsets, Offsets, list[str]]:
    """The range of a batch query, cut to what the log has (`first` to `last`), and descriptions of what is missing.

    Spark's Kafka connector fails in the same cases. A query that starts after its own end is an error, whatever
    `failOnDataLoss` is. Earliest, latest and times have just been looked up: if the log has changed since, nothing
    that the query names is missing.
    """
    limits = settings.start, settings.end
    missing, begins, stops = [], {}, {}
    for partition, begin in start.items():
        if any(partition not in known for known in (end, first, last)):
            missing.append(f"{partition} was deleted while the query was planned")
            continue
        stop, low, high = end[partition], first[partition], last[partition]
        begin_is_told, stop_is_told = (_is_told(limit, partition) for limit in limits)
        if begin > stop and (begin_is_told or _by_time(limits[0])) and (stop_is_told or _by_time(limits[1])):
            raise InvalidInput(
                f"{partition}: the query starts at offset {begin}, by {limits[0].option}, which is after its end at "
                f"offset {stop}, by {limits[1].option}"
            )
        if begin_is_told and begin < low:
            missing.append(f"{limits[0].option}: {partition} begins at {low}, not {begin}")
        elif stop_is_told and stop < low:
            missing.append(f"{limits[1].option}: {partition} begins at {low}, after {stop}")
        if begin_is_told and begin > high:
            missing.append(f"{limits[0].option}: {partition} ends at {high}, before {begin}")
        elif stop_is_told and stop > high:
            missing.append(f"{limits[1].option}: {partition} ends at {high}, not {stop}")
        begins[partition] = min(max(begin, low), high)
        stops[partition] = min(max(stop, low), high)
    return begins, stops, missing


def _is_told(limit: Limit, partition: TopicPartition) -> bool:
    """True if the limit of this partition is a given offset, not earliest, latest or a time."""
    return limit.offsets is not None and limit.offsets[partition.topic][partition.partition] >= 0


def _by_time(limit: Limit) -> bool:
    return limit.timestamp is not None or limit.timestamps is not None


def _times(limit: Limit, partitions: list[TopicPartition]) -> dict[TopicPartition, TimestampMs]:
    if limit.timestamp is not None:
        return dict.fromkeys(partitions, limit.timestamp)
    assert limit.timestamps is not None
    return _for_each(limit.option, limit.timestamps, partitions)


def _by_offsets(client: Client, settings: ReadSettings, limit: Limit, partitions: list[TopicPartition]) -> Offsets:
    committed = settings.fetch.read_committed
    if limit.word == EARLIEST:
        return earliest(client, partitions)
    if limit.word == LATEST:
        return latest(client, partitions, read_committed=committed)
    assert limit.offsets is not None
    told = _for_each(limit.option, limit.offsets, partitions)
    first = earliest(client, [partition for partition, at in told.items() if at == EARLIEST_OFFSET])
    last = latest(
        client, [partition for partition, at in told.items() if at == LATEST_OFFSET], read_committed=committed
    )
    return {partition: first.get(partition, last.get(partition, at)) for partition, at in told.items()}


def _for_each(option: str, told: PerPartition, partitions: list[TopicPartition]) -> Offsets:
    flat = {TopicPartition(topic, number): at for topic, numbers in told.items() for number, at in numbers.items()}
    missing = [str(partition) for partition in partitions if partition not in flat]
    extra = [str(partition) for partition in flat if partition not in set(partitions)]
    if missing or extra:
        problem = f"it lacks {', '.join(missing)}" if missing else f"the query does not read {', '.join(extra)}"
        raise InvalidInput(f"{option} must name every partition that is read and no other: {problem}")
    return flat


# --- how much at a time --------------------------------------------------------------------------------------------


def limited(start: Offsets, end: Offsets, most: int) -> Offsets:
    """End offsets for at most about `most` records: each partition gets a share in proportion to its records, and at
    least one if it has any."""
    sizes = {partition: max(0, offset - start.get(partition, offset)) for partition, offset in end.items()}
    total = sum(sizes.values())
    if total <= most:
        return end
    cut = {}
    for partition, offset in end.items():
        share = most * sizes[partition] / total
        wanted = math.ceil(share) if share < 1 else math.floor(share)
        cut[partition] = min(offset, offset - sizes[partition] + wanted)
    return cut


def available(start: Offsets, end: Offsets) -> int:
    return sum(max(0, offset - start.get(partition, 0)) for partition, offset in end.items())


# --- over tasks ----------------------------------------------------------------------------------------------------


def share_out(ranges: list[OffsetRange], settings: ReadSettings, cores: int | None = None) -> list[OffsetRange]:
    """Cut large ranges so that there are enough tasks.

    `maxRecordsPerPartition` limits the size of a task and `minPartitions` is the least number of tasks, as with
    Spark's Kafka source. If neither is set, there are up to as many tasks as this machine has cores, each with
    at least about `_ROWS_WORTH_A_TASK` rows.
    """
    ranges = [part for part in ranges if part.size > 0]
    if settings.max_records_per_partition is not None:
        most = settings.max_records_per_partition
        ranges = [cut for part in ranges for cut in _cut(part, math.ceil(part.size / most))]
    wanted = settings.min_partitions
    if wanted is None and settings.max_records_per_partition is None:
        total = sum(part.size for part in ranges)
        wanted = min(cores or os.cpu_count() or 1, total // _ROWS_WORTH_A_TASK)
    if wanted is None or len(ranges) >= wanted:
        return ranges
    total = sum(part.size for part in ranges)
    per_task = total / wanted
    return [cut for part in ranges for cut in _cut(part, max(1, round(part.size / per_task)))]


def _cut(part: OffsetRange, pieces: int) -> list[OffsetRange]:
    pieces = min(pieces, part.size)
    bounds = [part.start + part.size * piece // pieces for piece in range(pieces + 1)]
    return [
        OffsetRange(part.topic, part.partition, start, end, part.topic_id, part.direct)
        for start, end in pairwise(bounds)
    ]


def direct_logs(
    client: Client, settings: ReadSettings, known: KnownTopics, partitions: list[TopicPartition]
) -> dict[TopicPartition, DirectLog]:
    """The logs that tasks may read without the broker: files of this machine, and objects of a cluster."""
    if settings.read == "broker" or not partitions:
        return {}
    nodes = {node.id: node.address.host for node in client.cluster_info().nodes}
    found = {}
    for partition, place in client.log_places(partitions).items():
        topic = TopicIdentity(partition.topic, known.ids[partition.topic])
        is_wished = settings.read == "files"
        log = direct_log(place.directory, topic.partition(partition.partition), with_tail=is_wished)
        if is_wished or log.is_worth_a_try(leader_is_here=is_loopback(nodes.get(place.node, ""))):
            found[partition] = log
    return found
