"""The group coordinator of the fake cluster: the classic protocol, just enough of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from tidelog.wire.primitives import Struct

Handler: TypeAlias = Callable[[Any, int, int, int], Awaitable[Struct]]


class FakeGroup:
    def __init__(self) -> None:
        self.generation = 0
        self.members: dict[str, bytes] = {}
        self.joining: dict[str, asyncio.Future[None]] = {}
        self.is_rebalancing = False
        self.assignments: asyncio.Future[dict[str, bytes]] = asyncio.get_running_loop().create_future()
        self.offsets: dict[tuple[str, int], int] = {}

    @property
    def leader(self) -> str:
        return min(self.members)

    def complete_if_all_joined(self) -> None:
        if self.joining and self.joining.keys() >= self.members.keys():
            self.generation += 1
            self.is_rebalancing = False
            self.assignments = asyncio.get_running_loop().create_future()
            joined, self.joining = self.joining, {}
            for future in joined.values():
                future.set_result(None)


class FakeGroups:
    def __init__(self) -> None:
        self.groups: dict[str, FakeGroup] = {}
        self.heartbeats = 0
        self._members = 0

    def group(self, name: str) -> FakeGroup:
        return self.groups.setdefault(name, FakeGroup())

    def handlers(self) -> dict[str, Handler]:
        return {
            "FindCoordinator": self._find,
            "JoinGroup": self._join,
            "SyncGroup": self._sync,
            "Heartbeat": self._heartbeat,
            "LeaveGroup": self._leave,
            "OffsetCommit": self._commit,
            "OffsetFetch": self._fetch,
            "OffsetDelete": self._delete_offsets,
            "ListGroups": self._list,
            "DescribeGroups": self._describe,
            "DeleteGroups": self._delete,
        }

    async def _find(
        self, request: find_coordinator.FindCoordinatorRequest, node: int, port: int, code: int
    ) -> Struct:
        rows = [
            find_coordinator.Coordinator(
                key=key, node_id=node, host="127.0.0.1", port=port, error_code=code, error_message=None
            )
            for key in request.coordinator_keys
        ]
        return find_coordinator.FindCoordinatorResponse(coordinators=rows)

    async def _join(self, request: join_group.JoinGroupRequest, node: int, port: int, code: int) -> Struct:
        group = self.group(request.group_id)
        member = request.member_id
        if code:
            return join_group.JoinGroupResponse(error_code=code, protocol_name="")
        if not member:
            self._members += 1
            member = f"member-{self._members}"
            code = ErrorCode.MEMBER_ID_REQUIRED
            return join_group.JoinGroupResponse(error_code=code, member_id=member, protocol_name="")
        group.members[member] = bytes(request.protocols[0].metadata)
        group.is_rebalancing = True
        done = group.joining[member] = asyncio.get_running_loop().create_future()
        group.complete_if_all_joined()
        await done
        rows = [
            join_group.JoinGroupResponseMember(member_id=name, metadata=data) for name, data in group.members.items()
        ]
        return join_group.JoinGroupResponse(
            generation_id=group.generation,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader=group.leader,
            member_id=member,
            members=rows if member == group.leader else [],
        )

    async def _sync(self, request: sync_group.SyncGroupRequest, node: int, port: int, code: int) -> Struct:
        group = self.group(request.group_id)
        code = code or self._standing(group, request.member_id, request.generation_id)
        if code:
            return sync_group.SyncGroupResponse(error_code=code, assignment=b"")
        if request.member_id == group.leader:
            shares = {row.member_id: bytes(row.assignment) for row in request.assignments}
            group.assignments.set_result(shares)
        shares = await group.assignments
        return sync_group.SyncGroupResponse(assignment=shares.get(request.member_id, b""))

    def _standing(self, group: FakeGroup, member: str, generation: int) -> int:
        if member not in group.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if group.is_rebalancing else 0

    async def _heartbeat(self, request: heartbeat.HeartbeatRequest, node: int, port: int, code: int) -> Struct:
        self.heartbeats += 1
        group = self.group(request.group_id)
        code = code or self._standing(group, request.member_id, request.generation_id)
        return heartbeat.HeartbeatResponse(error_code=code)

    async def _leave(self, request: leave_group.LeaveGroupRequest, node: int, port: int, code: int) -> Struct:
        group = self.group(request.group_id)
        for row in request.members:
            group.members.pop(row.member_id, None)
        group.is_rebalancing = bool(group.members)
        group.complete_if_all_joined()
        return leave_group.LeaveGroupResponse()

    async def _commit(self, request: offset_commit.OffsetCommitRequest, node: int, port: int, code: int) -> Struct:
        group = self.group(request.group_id)
        generation = request.generation_id_or_member_epoch
        if not code and (generation >= 0 or group.members):
            code = self._standing(group, request.member_id, generation)
            code = 0 if code == ErrorCode.REBALANCE_IN_PROGRESS else code
        topics = []
        for topic in request.topics:
            answer = offset_commit.OffsetCommitResponseTopic(name=topic.name)
            for row in topic.partitions:
                if not code:
                    group.offsets[topic.name, row.partition_index] = row.committed_offset
                answer.partitions.append(
                    offset_commit.OffsetCommitResponsePartition(partition_index=row.partition_index, error_code=code)
                )
            topics.append(answer)
        return offset_commit.OffsetCommitResponse(topics=topics)

    async def _fetch(self, request: offset_fetch.OffsetFetchRequest, node: int, port: int, code: int) -> Struct:
        groups = []
        for asked in request.groups:
            offsets = self.group(asked.group_id).offsets
            if asked.topics is None:
                wanted = list(offsets)
            else:
                wanted = [(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]
            topics: dict[str, offset_fetch.OffsetFetchResponseTopics] = {}
            for name, index in wanted:
                topic = topics.setdefault(name, offset_fetch.OffsetFetchResponseTopics(name=name))
                topic.partitions.append(
                    offset_fetch.OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=offsets.get((name, index), -1), metadata=""
                    )
                )
            groups.append(
                offset_fetch.OffsetFetchResponseGroup(
                    group_id=asked.group_id, topics=list(topics.values()), error_code=code
                )
            )
        return offset_fetch.OffsetFetchResponse(groups=groups)

    async def _delete_offsets(
        self, request: offset_delete.OffsetDeleteRequest, node: int, port: int, code: int
    ) -> Struct:
        offsets = self.group(request.group_id).offsets
        for topic in request.topics:
            for row in topic.partitions:
                offsets.pop((topic.name, row.partition_index), None)
        return offset_delete.OffsetDeleteResponse(error_code=code)

    async def _list(self, request: list_groups.ListGroupsRequest, node: int, port: int, code: int) -> Struct:
        rows = [
            list_groups.ListedGroup(
                group_id=name, protocol_type="consumer", group_state=self._state(group), group_type="classic"
            )
            for name, group in self.groups.items()
        ]
        return list_groups.ListGroupsResponse(error_code=code, groups=rows)

    async def _describe(
        self, request: describe_groups.DescribeGroupsRequest, node: int, port: int, code: int
    ) -> Struct:
        rows = []
        for name in request.groups:
            group = self.groups.get(name)
            shares = group.assignments.result() if group and group.assignments.done() else {}
            members = [
                describe_groups.DescribedGroupMember(
                    member_id=member,
                    client_id="client",
                    client_host="/127.0.0.1",
                    member_metadata=data,
                    member_assignment=shares.get(member, b""),
                )
                for member, data in (group.members.items() if group else ())
            ]
            rows.append(
                describe_groups.DescribedGroup(
                    error_code=code if group else ErrorCode.GROUP_ID_NOT_FOUND,
                    group_id=name,
                    group_state=self._state(group) if group else "Dead",
                    protocol_type="consumer",
                    protocol_data="range",
                    members=members,
                )
            )
        return describe_groups.DescribeGroupsResponse(groups=rows)

    async def _delete(self, request: delete_groups.DeleteGroupsRequest, node: int, port: int, code: int) -> Struct:
        rows = []
        for name in request.groups_names:
            if name not in self.groups:
                code = ErrorCode.GROUP_ID_NOT_FOUND
            elif self.groups[name].members:
                code = ErrorCode.NON_EMPTY_GROUP
            else:
                del self.groups[name]
            rows.append(delete_groups.DeletableGroupResult(group_id=name, error_code=code))
        return delete_groups.DeleteGroupsResponse(results=rows)

    @staticmethod
    def _state(group: FakeGroup) -> str:
        if group.is_rebalancing:
            return "PreparingRebalance"
        return "Stable" if group.members else "Empty"
