"""Committed offsets: a copy of the store's rows in memory.

A commit is decided at once, but enters this table only when its write has returned (`apply`). So a fetch never
returns an offset that could be lost, and a failed write leaves nothing to undo. Writes return in the order of the
calls, so the table goes through the same states as the store.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tidelog.broker.coordination.bounds import Bound
from tidelog.broker.coordination.groups.config import GroupConfig
from tidelog.broker.coordination.groups.environment import TopicCatalog
from tidelog.broker.coordination.groups.errors import (
    NO_ERROR,
    GroupSubscribedToTopic,
    InvalidCommitOffsetSize,
    OffsetMetadataTooLarge,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from tidelog.broker.coordination.groups.messages import (
    NO_TOPIC_ID,
    FetchedOffsetsTopic,
    OffsetCommit,
    OffsetDelete,
    PartitionOffset,
    PartitionResult,
    TopicOffsets,
    TopicResult,
)
from tidelog.metadata.rows import OffsetRow
from tidelog.metadata.store import Change, Delete, Put

_OFFSET_BYTES = 350  # memory of the row, its entry in the dictionary, and its numbers

IsUnstable: TypeAlias = Callable[[str, str, int], bool]  # group, topic, partition -> in an open transaction


class Offsets:
    def __init__(self, config: GroupConfig, topics: TopicCatalog, bound: Bound, is_unstable: IsUnstable) -> None:
        """`bound` counts approximately the bytes that the offsets take in memory."""
        self._config = config
        self._bound = bound
        self._topics = topics
        self._is_unstable = is_unstable
        self._rows: dict[str, dict[str, dict[int, OffsetRow]]] = {}  # group -> topic -> partition
        self._in_flight: Counter[str] = Counter()  # commits per group whose write has not returned

    def apply(self, change: Change) -> str | None:
        """The change is durable. Returns the group whose offsets it changed, if it changed any."""
        if isinstance(change, Put):
            row = change.row
            if not isinstance(row, OffsetRow):
                return None
            partitions = self._rows.setdefault(row.group, {}).setdefault(row.topic, {})
            self._uncount(partitions.get(row.partition))
            self._bound.used += _weight(row.group, row.metadata)
            partitions[row.partition] = row
            return row.group
        if not isinstance(change, Delete) or change.table is not OffsetRow:
            return None
        group_id, *rest = change.key
        self._forget(str(group_id), rest)
        return str(group_id)

    def _forget(self, group_id: str, rest: list[str | int | bytes]) -> None:
        topics = self._rows.get(group_id, {})
        if len(rest) == 2:
            partitions = topics.get(str(rest[0]), {})
            self._uncount(partitions.pop(int(rest[1]), None))
            if not partitions:
                topics.pop(str(rest[0]), None)
        elif len(rest) == 1:
            self._uncount(*topics.pop(str(rest[0]), {}).values())
        else:
            for partitions in topics.values():
                self._uncount(*partitions.values())
            topics.clear()
        if not topics:
            self._rows.pop(group_id, None)

    def _uncount(self, *rows: OffsetRow | None) -> None:
        self._bound.used -= sum(_weight(row.group, row.metadata) for row in rows if row is not None)

    def has(self, group_id: str) -> bool:
        return group_id in self._rows

    def committed(self, group_id: str, topic: str, partition: int) -> int | None:
        row = self._rows.get(group_id, {}).get(topic, {}).get(partition)
        return None if row is None else row.offset

    def topics(self) -> set[str]:
        return {topic for topics in self._rows.values() for topic in topics}

    def is_being_committed(self, group_id: str) -> bool:
        return group_id in self._in_flight

    def commit_began(self, group_id: str) -> None:
        self._in_flight[group_id] += 1

    def commit_ended(self, group_id: str) -> None:
        self._in_flight[group_id] -= 1
        if not self._in_flight[group_id]:
            del self._in_flight[group_id]

    def commit(self, request: OffsetCommit, wall_ms: int) -> tuple[tuple[TopicResult, ...], list[Change]]:
        """The sender has been checked. Each partition is accepted or refused by itself."""
        expires_ms = None if request.retention_time_ms < 0 else wall_ms + request.retention_time_ms
        limit = self._config.offset_metadata_max_bytes
        group_id = request.group_id
        known = self._rows.get(group_id, {})
        more = 0
        changes: list[Change] = []
        results = []
        for name, partitions, topic_id in request.topics:
            topic = self._topics.by_name(name) if name else self._topics.by_id(topic_id)
            if topic is None:
                code = (UnknownTopicOrPartition if name else UnknownTopicId).kafka_code
                results.append(
                    TopicResult(name, topic_id, tuple(PartitionResult(p.partition, code) for p in partitions))
                )
                continue
            answers = []
            committed = known.get(topic.name, {})
            for partition, offset, leader_epoch, metadata in partitions:
                if not 0 <= partition < topic.partitions:
                    code = UnknownTopicOrPartition.kafka_code
                elif metadata and len(metadata) > limit:
                    code = OffsetMetadataTooLarge.kafka_code
                elif partition not in committed and not self._bound.has_room(
                    more + _weight(group_id, metadata or "")
                ):
                    code = InvalidCommitOffsetSize.kafka_code
                else:
                    code = NO_ERROR
                    if partition not in committed:
                        more += _weight(group_id, metadata or "")
                    changes.append(
                        Put(
                            OffsetRow(
                                group_id,
                                topic.name,
                                partition,
                                offset,
                                leader_epoch,
                                metadata or "",
                                wall_ms,
                                expires_ms,
                            )
                        )
                    )
                answers.append(PartitionResult(partition, code))
            results.append(TopicResult(name, topic_id, tuple(answers)))
        return tuple(results), changes

    def fetch(
        self, group_id: str, topics: tuple[FetchedOffsetsTopic, ...] | None, *, require_stable: bool
    ) -> tuple[TopicOffsets, ...]:
        rows = self._rows.get(group_id, {})
        if topics is None:
            topics = tuple(
                FetchedOffsetsTopic(name, tuple(sorted(partitions)), topic.topic_id if topic else NO_TOPIC_ID)
                for name, partitions in sorted(rows.items())
                for topic in (self._topics.by_name(name),)
            )
        return tuple(self._fetch_topic(group_id, rows, wanted, require_stable=require_stable) for wanted in topics)

    def _fetch_topic(
        self,
        group_id: str,
        rows: Mapping[str, Mapping[int, OffsetRow]],
        wanted: FetchedOffsetsTopic,
        *,
        require_stable: bool,
    ) -> TopicOffsets:
        name, partitions, topic_id = wanted
        if not name:
            topic = self._topics.by_id(topic_id)
            if topic is None:
                code = UnknownTopicId.kafka_code
                return TopicOffsets(name, topic_id, tuple(PartitionOffset(p, error_code=code) for p in partitions))
            name = topic.name
        committed = rows.get(name, {})
        answers = []
        for partition in partitions:
            row = committed.get(partition)
            if require_stable and self._is_unstable(group_id, name, partition):
                answers.append(PartitionOffset(partition, error_code=UnstableOffsetCommit.kafka_code))
            elif row is None:
                answers.append(PartitionOffset(partition))
            else:
                answers.append(PartitionOffset(partition, row.offset, row.leader_epoch, row.metadata))
        return TopicOffsets(name, topic_id, tuple(answers))

    def delete(
        self, request: OffsetDelete, subscribed: frozenset[str] | None
    ) -> tuple[tuple[TopicResult, ...], list[Change]]:
        """Refuses offsets of topics that the group subscribes to; `subscribed` is None if those are unknown, and all
        are refused."""
        changes: list[Change] = []
        results = []
        for name, partitions in request.topics:
            refused = subscribed is None or name in subscribed
            code = GroupSubscribedToTopic.kafka_code if refused else NO_ERROR
            if not refused:
                changes += [Delete(OffsetRow, (request.group_id, name, partition)) for partition in partitions]
            results.append(TopicResult(name, NO_TOPIC_ID, tuple(PartitionResult(p, code) for p in partitions)))
        return tuple(results), changes

    def delete_topics(self, names: frozenset[str]) -> list[Change]:
        """The deletion of all offsets of these topics. Includes every group with a commit in progress, because its
        offsets are not known here yet."""
        return [
            Delete(OffsetRow, (group_id, name))
            for group_id in self._rows.keys() | self._in_flight.keys()
            for name in names
            if group_id in self._in_flight or name in self._rows[group_id]
        ]

    def expired(
        self,
        group_id: str,
        subscribed: frozenset[str] | None,
        retention_began: Callable[[int], int | None],
        wall_ms: int,
    ) -> Iterator[OffsetRow]:
        """The expired offsets of a group: of topics that it does not subscribe to, past their retention.
        `retention_began` returns the start of the retention for the time of a commit, or None while the offset may
        not expire.

        A group with a commit in progress has no expired offsets: its offsets are about to change.
        """
        if subscribed is None or group_id in self._in_flight:
            return
        for name, partitions in self._rows.get(group_id, {}).items():
            if name in subscribed:
                continue
            for partition, row in partitions.items():
                began_ms = retention_began(row.committed_ms)
                if began_ms is None or self._is_unstable(group_id, name, partition):
                    continue
                ends_ms = row.expires_ms
                if ends_ms is None:
                    ends_ms = began_ms + self._config.offsets_retention_ms
                if ends_ms <= wall_ms:
                    yield row

    def count(self, group_id: str) -> int:
        return sum(len(partitions) for partitions in self._rows.get(group_id, {}).values())


def _weight(group_id: str, metadata: str) -> int:
    """About how many bytes an offset takes in memory."""
    return _OFFSET_BYTES + len(group_id) + len(metadata)
