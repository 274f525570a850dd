"""Requests and replies of the group coordinator: one frozen dataclass each per Kafka API, with the fields of its
newest version. A gateway translates them field by field. Flags stand for differences of older versions.

The gateway adds throttle times and authorized operations. `error_code` 0 means no error.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

from tidelog.broker.coordination.groups.errors import NO_ERROR

NO_TOPIC_ID = bytes(16)
NO_MEMBER_ID = ""
NO_OFFSET = -1

# Member epochs of ConsumerGroupHeartbeat that are commands, not epochs.
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


@dataclass(frozen=True, slots=True)
class _ErrorReply:
    """A reply with a top-level error code."""

    error_code: int = NO_ERROR

    def failed(self, error_code: int) -> Self:
        """The reply to send instead if the decision could not be stored."""
        return type(self)(error_code=error_code)


# JoinGroup (11)


class Protocol(NamedTuple):
    """An assignment strategy that a member offers, with the member's metadata for the leader."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroup:
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int  # below 0: as the session timeout (version 0)
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: tuple[Protocol, ...]
    reason: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_id_required: bool = True  # versions 4+: a new dynamic member first learns its id and joins again with it
    understands_skip_assignment: bool = True  # versions 9+


class JoinedMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupReply(_ErrorReply):
    """Versions below 7 have no null: send "" for a missing protocol name."""

    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = NO_MEMBER_ID
    members: tuple[JoinedMember, ...] = ()


# SyncGroup (14)


@dataclass(frozen=True, slots=True)
class SyncGroup:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()  # (member id, assignment), from the leader only


@dataclass(frozen=True, slots=True)
class SyncGroupReply(_ErrorReply):
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


# Heartbeat (12)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatReply(_ErrorReply):
    pass


# LeaveGroup (13)


class LeavingMember(NamedTuple):
    """By member id, or by instance id alone (an operator removes a static member)."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    group_id: str
    members: tuple[LeavingMember, ...]


class LeftMember(NamedTuple):
    member_id: str
    group_instance_id: str | None
    error_code: int


@dataclass(frozen=True, slots=True)
class LeaveGroupReply(_ErrorReply):
    """Versions below 3 have one member: send its error as the top-level error."""

    members: tuple[LeftMember, ...] = ()


# OffsetCommit (8)


class CommittedPartition(NamedTuple):
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None


class CommittedTopic(NamedTuple):
    name: str  # "" in versions 10+, which name topics by id
    partitions: tuple[CommittedPartition, ...]
    topic_id: bytes = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    group_id: str
    topics: tuple[CommittedTopic, ...]
    generation_id_or_member_epoch: int = -1
    member_id: str = NO_MEMBER_ID
    group_instance_id: str | None = None
    retention_time_ms: int = -1  # versions 2 to 4
    understands_member_epochs: bool = True  # versions 9+


class PartitionResult(NamedTuple):
    partition: int
    error_code: int


class TopicResult(NamedTuple):
    name: str
    topic_id: bytes
    partitions: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True)
class OffsetCommitReply:
    topics: tuple[TopicResult, ...]

    def failed(self, error_code: int) -> "OffsetCommitReply":
        """The same with this error for every partition that has none yet."""
        return OffsetCommitReply(
            tuple(
                topic._replace(
                    partitions=tuple(
                        PartitionResult(partition, refused or error_code) for partition, refused in topic.partitions
                    )
                )
                for topic in self.topics
            )
        )


# OffsetFetch (9)


class FetchedOffsetsTopic(NamedTuple):
    name: str
    partitions: tuple[int, ...]
    topic_id: bytes = NO_TOPIC_ID


class GroupOffsetsRequest(NamedTuple):
    group_id: str
    topics: tuple[FetchedOffsetsTopic, ...] | None  # None: everything the group has committed
    member_id: str | None = None
    member_epoch: int = -1


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """Versions below 8 ask for one group."""

    groups: tuple[GroupOffsetsRequest, ...]
    require_stable: bool = False


class PartitionOffset(NamedTuple):
    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error_code: int = NO_ERROR


class TopicOffsets(NamedTuple):
    name: str
    topic_id: bytes
    partitions: tuple[PartitionOffset, ...]


class GroupOffsets(NamedTuple):
    group_id: str
    topics: tuple[TopicOffsets, ...]
    error_code: int = NO_ERROR


@dataclass(frozen=True, slots=True)
class OffsetFetchReply:
    """Versions below 2 have no error per group: give it to every partition."""

    groups: tuple[GroupOffsets, ...]

    def failed(self, error_code: int) -> "OffsetFetchReply":
        return OffsetFetchReply(tuple(GroupOffsets(group.group_id, (), error_code) for group in self.groups))


# OffsetDelete (47)


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    group_id: str
    topics: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class OffsetDeleteReply(_ErrorReply):
    topics: tuple[TopicResult, ...] = ()


# ListGroups (16)


@dataclass(frozen=True, slots=True)
class ListGroups:
    """Names of states and types are compared without regard to case; no names: no filter."""

    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


@dataclass(frozen=True, slots=True)
class ListGroupsReply(_ErrorReply):
    groups: tuple[ListedGroup, ...] = ()


# DescribeGroups (15)


@dataclass(frozen=True, slots=True)
class DescribeGroups:
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DescribedClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedClassicGroup:
    """An unknown group is "Dead" with GROUP_ID_NOT_FOUND; versions below 6 say error 0 instead."""

    group_id: str
    group_state: str
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedClassicMember, ...] = ()
    error_code: int = NO_ERROR
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class DescribeGroupsReply:
    groups: tuple[DescribedClassicGroup, ...]

    def failed(self, error_code: int) -> "DescribeGroupsReply":
        return DescribeGroupsReply(
            tuple(DescribedClassicGroup(group.group_id, "", error_code=error_code) for group in self.groups)
        )


# DeleteGroups (42)


@dataclass(frozen=True, slots=True)
class DeleteGroups:
    groups: tuple[str, ...]


class DeletedGroup(NamedTuple):
    group_id: str
    error_code: int


@dataclass(frozen=True, slots=True)
class DeleteGroupsReply:
    results: tuple[DeletedGroup, ...]

    def failed(self, error_code: int) -> "DeleteGroupsReply":
        return DeleteGroupsReply(
            tuple(result._replace(error_code=result.error_code or error_code) for result in self.results)
        )


# ConsumerGroupHeartbeat (68)


class TopicPartitions(NamedTuple):
    topic_id: bytes
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeat:
    """None means: unchanged since the last heartbeat. Version 0 has no regex, and the coordinator chooses the
    member's id."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatReply(_ErrorReply):
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[TopicPartitions, ...] | None = None


# ConsumerGroupDescribe (69)


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribe:
    group_ids: tuple[str, ...]


class NamedTopicPartitions(NamedTuple):
    topic_id: bytes
    topic_name: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribedConsumerMember:
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assignment: tuple[NamedTopicPartitions, ...]
    target_assignment: tuple[NamedTopicPartitions, ...]
    member_type: int  # 0: classic protocol, 1: consumer protocol


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    group_id: str
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedConsumerMember, ...] = ()
    error_code: int = NO_ERROR
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeReply:
    groups: tuple[DescribedConsumerGroup, ...]

    def failed(self, error_code: int) -> "ConsumerGroupDescribeReply":
        return ConsumerGroupDescribeReply(
            tuple(DescribedConsumerGroup(group.group_id, error_code=error_code) for group in self.groups)
        )


Request: TypeAlias = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | OffsetCommit
    | OffsetFetch
    | OffsetDelete
    | ListGroups
    | DescribeGroups
    | DeleteGroups
    | ConsumerGroupHeartbeat
    | ConsumerGroupDescribe
)
Reply: TypeAlias = (
    JoinGroupReply
    | SyncGroupReply
    | HeartbeatReply
    | LeaveGroupReply
    | OffsetCommitReply
    | OffsetFetchReply
    | OffsetDeleteReply
    | ListGroupsReply
    | DescribeGroupsReply
    | DeleteGroupsReply
    | ConsumerGroupHeartbeatReply
    | ConsumerGroupDescribeReply
)

_REPLIES: dict[type[Request], type[_ErrorReply]] = {
    JoinGroup: JoinGroupReply,
    SyncGroup: SyncGroupReply,
    Heartbeat: HeartbeatReply,
    LeaveGroup: LeaveGroupReply,
    OffsetDelete: OffsetDeleteReply,
    ListGroups: ListGroupsReply,
    ConsumerGroupHeartbeat: ConsumerGroupHeartbeatReply,
}


def refusal(request: Request, error_code: int) -> "Reply":
    """The reply to a request that is refused as a whole: the error, for everything that it asks for."""
    match request:
        case OffsetCommit(topics=topics):
            unanswered = tuple(
                TopicResult(name, topic_id, tuple(PartitionResult(each.partition, NO_ERROR) for each in partitions))
                for name, partitions, topic_id in topics
            )
            return OffsetCommitReply(unanswered).failed(error_code)
        case OffsetFetch(groups=wanted):
            return OffsetFetchReply(tuple(GroupOffsets(each.group_id, (), error_code) for each in wanted))
        case DescribeGroups(groups=ids):
            return DescribeGroupsReply(tuple(DescribedClassicGroup(id_, "", error_code=error_code) for id_ in ids))
        case DeleteGroups(groups=ids):
            return DeleteGroupsReply(tuple(DeletedGroup(id_, error_code) for id_ in ids))
        case ConsumerGroupDescribe(group_ids=ids):
            described = tuple(DescribedConsumerGroup(id_, error_code=error_code) for id_ in ids)
            return ConsumerGroupDescribeReply(described)
        case _:
            reply: Any = _REPLIES[type(request)](error_code)
            return reply  # type: ignore[no-any-return]
