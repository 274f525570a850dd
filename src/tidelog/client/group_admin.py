"""Groups seen from outside: who is in them, what they have committed, and changing that."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.client.assignor import PROTOCOL_TYPE, decode_assignment
from tidelog.client.cluster import Cluster
from tidelog.client.coordinator import Coordinator
from tidelog.client.errors import check
from tidelog.client.membership import LAST_VERSION_WITH_NAMES, NO_GENERATION
from tidelog.model import Offset, TopicPartition
from tidelog.wire.apis import BY_NAME
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from tidelog.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from tidelog.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tidelog.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tidelog.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

_CONSUMER_TYPE = "consumer"  # the groups of KIP-848, described by an API of their own
_FIRST_FETCH_OF_MANY = 8


class GroupListing(NamedTuple):
    group: str
    protocol_type: str
    state: str
    type: str


class GroupMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: Sequence[TopicPartition]


class GroupDescription(NamedTuple):
    group: str
    state: str
    protocol_type: str
    assignor: str
    members: Sequence[GroupMember]


class CommittedOffset(NamedTuple):
    offset: Offset
    leader_epoch: int
    metadata: str


class GroupAdmin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def groups(self) -> list[GroupListing]:
        """The groups of all brokers: each knows only those that it coordinates."""

        async def attempt() -> list[GroupListing]:
            found = {}
            if not self._cluster.nodes:
                await self._cluster.start()
            for node in list(self._cluster.nodes):
                response: ListGroupsResponse = await self._cluster.request(
                    "ListGroups", ListGroupsRequest(), node=node
                )
                check(response.error_code, "listing groups")
                for row in response.groups:
                    found[row.group_id] = GroupListing(
                        row.group_id, row.protocol_type, row.group_state, row.group_type.lower()
                    )
            return [found[name] for name in sorted(found)]

        return await self._cluster.retrying(attempt)

    async def describe(self, group: str) -> GroupDescription:
        """Of a group that does not exist, brokers say that it is dead and empty."""
        listed = {row.group: row for row in await self.groups()}.get(group)
        if listed is not None and listed.type == _CONSUMER_TYPE:
            return await self._describe_consumer_group(group)
        coordinator = Coordinator(self._cluster, group)

        async def attempt() -> GroupDescription:
            request = DescribeGroupsRequest(groups=[group])
            response: DescribeGroupsResponse = await coordinator.request("DescribeGroups", request)
            row = response.groups[0]
            if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                return GroupDescription(group, "Dead", "", "", [])
            coordinator.check(row.error_code, f"describing group {group!r}", row.error_message)
            members = []
            for member in row.members:
                known = row.protocol_type == PROTOCOL_TYPE
                partitions = decode_assignment(member.member_assignment) if known else []
                members.append(
                    GroupMember(
                        member.member_id, member.group_instance_id, member.client_id, member.client_host, partitions
                    )
                )
            return GroupDescription(group, row.group_state, row.protocol_type, row.protocol_data, members)

        return await self._cluster.retrying(attempt)

    async def _describe_consumer_group(self, group: str) -> GroupDescription:
        coordinator = Coordinator(self._cluster, group)

        async def attempt() -> GroupDescription:
            request = ConsumerGroupDescribeRequest(group_ids=[group])
            response: ConsumerGroupDescribeResponse = await coordinator.request("ConsumerGroupDescribe", request)
            row = response.groups[0]
            coordinator.check(row.error_code, f"describing group {group!r}", row.error_message)
            members = []
            for member in row.members:
                partitions = [
                    TopicPartition(topic.topic_name, number)
                    for topic in member.assignment.topic_partitions
                    for number in topic.partitions
                ]
                members.append(
                    GroupMember(
                        member.member_id, member.instance_id, member.client_id, member.client_host, partitions
                    )
                )
            return GroupDescription(group, row.group_state, PROTOCOL_TYPE, row.assignor_name, members)

        return await self._cluster.retrying(attempt)

    async def delete(self, group: str) -> None:
        coordinator = Coordinator(self._cluster, group)

        async def attempt() -> None:
            request = DeleteGroupsRequest(groups_names=[group])
            response: DeleteGroupsResponse = await coordinator.request("DeleteGroups", request)
            for row in response.results:
                coordinator.check(row.error_code, f"deleting group {group!r}")

        await self._cluster.retrying(attempt, repeatable=False)

    # --- committed offsets ----------------------------------------------------------------------------------------

    async def committed(
        self, group: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, of these partitions or of all; those without are not in it. `stable` waits
        for transactions that are about to commit some of them."""
        topics: dict[str, list[int]] | None = None
        if partitions is not None:
            topics = {}
            for topic, number in partitions:
                topics.setdefault(topic, []).append(number)
            if not topics:
                return {}
        coordinator = Coordinator(self._cluster, group)

        async def attempt() -> dict[TopicPartition, CommittedOffset]:
            request = await self._offset_fetch(group, topics)
            request.require_stable = stable
            response: OffsetFetchResponse = await coordinator.request(
                "OffsetFetch", request, at_most=LAST_VERSION_WITH_NAMES
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

        return await self._cluster.retrying(attempt)

    async def _offset_fetch(self, group: str, topics: dict[str, list[int]] | None) -> OffsetFetchRequest:
        connection = await self._cluster.connection()
        if connection.version_of(BY_NAME["OffsetFetch"]) < _FIRST_FETCH_OF_MANY:
            rows = [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in (topics or {}).items()
            ]
            return OffsetFetchRequest(group_id=group, topics=None if topics is None else rows)
        asked = [
            OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in (topics or {}).items()
        ]
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=None if topics is None else asked)]
        )

    async def set_committed(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Commit offsets in the group's name, from outside. The group must have no members, or not exist yet."""
        coordinator = Coordinator(self._cluster, group)
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, number), offset in offsets.items():
            row = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic))
            row.partitions.append(
                OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
            )
        request = OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=NO_GENERATION, member_id="", topics=list(topics.values())
        )

        async def attempt() -> None:
            response: OffsetCommitResponse = await coordinator.request(
                "OffsetCommit", request, at_most=LAST_VERSION_WITH_NAMES
            )
            for topic in response.topics:
                for row in topic.partitions:
                    tried = f"setting the offset of group {group!r} on {topic.name}-{row.partition_index}"
                    coordinator.check(row.error_code, tried)

        if offsets:
            await self._cluster.retrying(attempt)

    async def delete_committed(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        coordinator = Coordinator(self._cluster, group)
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for topic, number in partitions:
            row = topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic))
            row.partitions.append(OffsetDeleteRequestPartition(partition_index=number))
        request = OffsetDeleteRequest(group_id=group, topics=list(topics.values()))

        async def attempt() -> None:
            response: OffsetDeleteResponse = await coordinator.request("OffsetDelete", request)
            coordinator.check(response.error_code, f"deleting offsets of group {group!r}")
            for topic in response.topics:
                for row in topic.partitions:
                    tried = f"deleting the offset of group {group!r} on {topic.name}-{row.partition_index}"
                    coordinator.check(row.error_code, tried)

        if topics:
            await self._cluster.retrying(attempt)
