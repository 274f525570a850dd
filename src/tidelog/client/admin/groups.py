"""Administration of groups: their members and their committed offsets."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.consuming.assignor import PROTOCOL_TYPE, decode_assignment
from tidelog.client.consuming.committed import CommittedOffset, Member, commit_offsets, committed_offsets
from tidelog.client.coordinator import Coordinator
from tidelog.client.errors import check
from tidelog.model import Offset, TopicPartition
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from tidelog.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from tidelog.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from tidelog.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

_CONSUMER_TYPE = "consumer"  # the groups of KIP-848, described by an API of their own


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


class GroupAdmin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def groups(self) -> list[GroupListing]:
        """The groups of all brokers, sorted by name; each broker is asked for those that it coordinates."""

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
        """The group's state and its members. A group that does not exist is described as dead."""
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
        """Delete a group and its committed offsets. It must have no members."""
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
        """The group's committed offsets, of these partitions or of all; partitions without one are left out.
        `stable` waits for transactions that are about to commit some of them."""
        return await committed_offsets(self._cluster, group, partitions, stable=stable)

    async def set_committed(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Set the group's committed offsets. The group must have no members; it need not exist yet."""
        coordinator = Coordinator(self._cluster, group)
        await commit_offsets(self._cluster, coordinator, Member.outsider(group), offsets, "setting the offset")

    async def delete_committed(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete the group's committed offsets of these partitions."""
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
