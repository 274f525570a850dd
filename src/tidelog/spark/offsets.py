"""Which partitions a query reads, from where to where, and how that is shared out over tasks.

This runs in Spark's planning processes. Offsets are kept in Spark's checkpoints as its Kafka source keeps them:
`{"orders": {"0": 23, "1": 45}}`, the offset that is read next of each partition.
"""

import ipaddress
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from tidelog.client import Client
from tidelog.client.errors import is_unknown_topic
from tidelog.client.offsets import EARLIEST as EARLIEST_TIME
from tidelog.client.offsets import LATEST as LATEST_TIME
from tidelog.errors import InvalidInput, TidelogError
from tidelog.model import Offset, TimestampMs, TopicPartition
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

Offsets: TypeAlias = dict[TopicPartition, Offset]

_ROWS_WORTH_A_TASK = 250_000  # below it, what a task costs by itself is more than what another core saves


class DataLoss(TidelogError):
    """Records that the query was to read are gone."""


def data_loss(what: str) -> DataLoss:
    return DataLoss(
        f"{what}. Some data may have been lost: it aged out before it was read, or the topic was deleted. To go on "
        "with what is left, set the option failOnDataLoss to false"
    )


class KnownTopics(NamedTuple):
    partitions: list[TopicPartition]
    ids: dict[str, bytes]


@dataclass(frozen=True)
class OffsetRange:
    """What one task reads; `directory` is where the partition's files may be looked for."""

    topic: str
    partition: int
    start: Offset
    end: Offset
    topic_id: bytes
    directory: str | None = None

    @property
    def size(self) -> int:
        return self.end - self.start


# --- as JSON -------------------------------------------------------------------------------------------------------


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """In one order always: Spark compares offsets as text."""
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
    """The partitions that there are now. A topic that does not exist has none."""
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
    """For a query's first look: what was named must be there."""
    there = set(known.partitions)
    if subscription.assigned is not None:
        named = [TopicPartition(topic, n) for topic, numbers in subscription.assigned.items() for n in numbers]
        missing = [str(partition) for partition in named if partition not in there]
    else:
        topics = {topic for topic, _ in there}
        missing = [topic for topic in subscription.topics if topic not in topics]
    if missing:
        raise InvalidInput(
            f"there is no {', '.join(missing)}; list what there is with: tidelog topic list, "
            f"or create it with: tidelog topic create {missing[0]}"
        )


def earliest(client: Client, partitions: Iterable[TopicPartition]) -> Offsets:
    return _ask(client, dict.fromkeys(partitions, EARLIEST_TIME), read_committed=False)


def latest(client: Client, partitions: Iterable[TopicPartition], *, read_committed: bool) -> Offsets:
    return _ask(client, dict.fromkeys(partitions, LATEST_TIME), read_committed=read_committed)


def _ask(client: Client, times: Mapping[TopicPartition, TimestampMs], *, read_committed: bool) -> Offsets:
    """Partitions that vanish meanwhile are left out."""
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
    if limit.timestamp is None and limit.timestamps is None:
        return _by_offsets(client, settings, limit, partitions)
    times = _times(limit, partitions)
    found = _ask(client, times, read_committed=settings.fetch.read_committed)
    later = [partition for partition, offset in found.items() if offset < 0]
    if later and settings.no_match == "error":
        raise InvalidInput(
            f"{limit.option}: {', '.join(map(str, later))} has no record at or after that time; give an earlier "
            "time, or startingOffsetsByTimestampStrategy=latest to begin at the end there"
        )
    return found | latest(client, later, read_committed=settings.fetch.read_committed)


def ending(client: Client, settings: ReadSettings, partitions: list[TopicPartition]) -> Offsets:
    limit = settings.end
    if limit.timestamp is None and limit.timestamps is None:
        return _by_offsets(client, settings, limit, partitions)
    found = _ask(client, _times(limit, partitions), read_committed=settings.fetch.read_committed)
    later = [partition for partition, offset in found.items() if offset < 0]
    return found | latest(client, later, read_committed=settings.fetch.read_committed)


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
        problem = (
            f"it lacks {', '.join(missing)}" if missing else f"there is no {', '.join(extra)} in the subscription"
        )
        raise InvalidInput(f"{option} must name every partition that is read and no other: {problem}")
    return flat


# --- how much at a time --------------------------------------------------------------------------------------------


def limited(start: Offsets, end: Offsets, most: int) -> Offsets:
    """Of each partition its share of `most` records, in proportion to what it has; at least one if it has any."""
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
    """Cut large ranges so that there are tasks enough.

    `maxRecordsPerPartition` bounds a task, `minPartitions` asks for so many, as with Kafka's source. If neither is
    given there are as many tasks as this machine has cores, as far as they have enough to do.
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
        OffsetRange(part.topic, part.partition, start, end, part.topic_id, part.directory)
        for start, end in pairwise(bounds)
    ]


def directories(
    client: Client, settings: ReadSettings, partitions: list[TopicPartition]
) -> dict[TopicPartition, str]:
    """Where tasks may look for files: of leaders on this machine, and where this process can read them."""
    if settings.read == "broker" or not partitions:
        return {}
    nodes = {node.id: node.address.host for node in client.cluster_info().nodes}
    found = {}
    for partition, place in client.log_places(partitions).items():
        directory = f"{place.directory}/logs/{partition.topic}/{partition.partition}"
        is_here = _is_loopback(nodes.get(place.node, "")) or settings.read == "files"
        if is_here and (settings.read == "files" or os.access(directory, os.R_OK | os.X_OK)):
            found[partition] = directory
    return found


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
