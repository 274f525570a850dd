"""The offsets that a group has committed: reading them and setting them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.coordinator import Coordinator
from tidelog.model import Offset, TopicPartition
from tidelog.wire.apis import BY_NAME
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tidelog.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

NO_GENERATION = -1
_LAST_VERSION_WITH_NAMES = 9  # of OffsetCommit and OffsetFetch; later ones know topics only by their ids
_FIRST_FETCH_OF_MANY = 8


class Member(NamedTuple):
    """A member of a group as its coordinator knows it. Offsets are also committed by `outsider`s: only while the
    group has no members."""

    group: str
    generation: int
    member_id: str
    instance_id: str | None = None

    @classmethod
    def outsider(cls, group: str) -> "Member":
        return cls(group, NO_GENERATION, "")


class CommittedOffset(NamedTuple):
    offset: Offset
    leader_epoch: int
    metadata: str


async def committed_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
) -> dict[TopicPartition, CommittedOffset]:
    """The group's offsets of these partitions or of all; partitions without one are left out. `stable` waits for
    transactions that are about to commit some of them."""
    topics: dict[str, list[int]] | None = None
    if partitions is not None:
        topics = {}
        for topic, number in partitions:
            topics.setdefault(topic, []).append(number)
        if not topics:
            return {}
    coordinator = Coordinator(cluster, group)

    async def attempt() -> dict[TopicPartition, CommittedOffset]:
        request = await _offset_fetch(cluster, group, topics)
        request.require_stable = stable
        response: OffsetFetchResponse = await coordinator.request(
            "OffsetFetch", request, at_most=_LAST_VERSION_WITH_NAMES
        )
        tried = f"reading the offsets of group {group!r}"
        answer = response.groups[0] if response.groups else response
        coordinator.check(answer.error_code, tried)
        found = {}
        for topic in answer.topics:
            for row in topic.partitions:
                coordinator.check(row.error_code, tried)
                if row.committed_offset >= 0:
                    found[TopicPartition(topic.name, row.partition_index)] = CommittedOffset(
                        row.committed_offset, row.committed_leader_epoch, row.metadata or ""
                    )
        return found

    return await cluster.retrying(attempt)


async def _offset_fetch(cluster: Cluster, group: str, topics: dict[str, list[int]] | None) -> OffsetFetchRequest:
    connection = await cluster.connection()
    if connection.version_of(BY_NAME["OffsetFetch"]) < _FIRST_FETCH_OF_MANY:
        rows = [
            OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in (topics or {}).items()
        ]
        return OffsetFetchRequest(group_id=group, topics=None if topics is None else rows)
    asked = [
        OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in (topics or {}).items()
    ]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=None if topics is None else asked)]
    )


async def commit_offsets(
    cluster: Cluster,
    coordinator: Coordinator,
    member: Member,
    offsets: Mapping[TopicPartition, Offset],
    doing: str = "committing the offset",
) -> None:
    """Raises an error that is not retriable if the group no longer has this member. `doing` is for error messages."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, number), offset in offsets.items():
        row = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic))
        row.partitions.append(
            OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
        )
    request = OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        topics=list(topics.values()),
    )

    async def attempt() -> None:
        response: OffsetCommitResponse = await coordinator.request(
            "OffsetCommit", request, at_most=_LAST_VERSION_WITH_NAMES
        )
        for topic in response.topics:
            for row in topic.partitions:
                tried = f"{doing} of group {member.group!r} on {topic.name}-{row.partition_index}"
                coordinator.check(row.error_code, tried)

    if offsets:
        await cluster.retrying(attempt)
