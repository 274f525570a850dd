"""OffsetFetch (9), v1 to v10: the committed offsets of groups. Many groups from v8, topic ids from v10.

A request for all topics is answered with those that the client may describe.
"""

from collections.abc import Awaitable, Iterable

from tidelog.broker.admission import ResourceKind
from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.gateways.kafka.permissions import visible
from tidelog.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)


def handle(request: Request, message: OffsetFetchRequest) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    version = request.version
    if version >= 8:
        return ask_groups(request, _many(message), lambda reply: _groups(request, reply, by_id=version >= 10))
    return ask_groups(request, _one(message), lambda reply: _single(request, reply.groups[0], message))


def _many(message: OffsetFetchRequest) -> m.OffsetFetch:
    def topics_of(group: object) -> tuple[m.FetchedOffsetsTopic, ...] | None:
        topics = group.topics  # type: ignore[attr-defined]
        if topics is None:
            return None
        return tuple(
            m.FetchedOffsetsTopic(each.name, tuple(each.partition_indexes), each.topic_id) for each in topics
        )

    return m.OffsetFetch(
        tuple(
            m.GroupOffsetsRequest(group.group_id, topics_of(group), group.member_id, group.member_epoch)
            for group in message.groups
        ),
        message.require_stable,
    )


def _one(message: OffsetFetchRequest) -> m.OffsetFetch:
    topics = (
        None
        if message.topics is None
        else tuple(m.FetchedOffsetsTopic(each.name, tuple(each.partition_indexes)) for each in message.topics)
    )
    return m.OffsetFetch((m.GroupOffsetsRequest(message.group_id, topics),), message.require_stable)


def _told(request: Request, group: m.GroupOffsets) -> Iterable[m.TopicOffsets]:
    return visible(request, ResourceKind.TOPIC, group.topics, lambda topic: topic.name)


def _groups(request: Request, reply: m.OffsetFetchReply, *, by_id: bool) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group.group_id,
                [
                    OffsetFetchResponseTopics(
                        "" if by_id else topic.name,
                        topic.topic_id if by_id else m.NO_TOPIC_ID,
                        [OffsetFetchResponsePartitions(*each) for each in topic.partitions],
                    )
                    for topic in _told(request, group)
                ],
                group.error_code,
            )
            for group in reply.groups
        ]
    )


def _single(request: Request, group: m.GroupOffsets, message: OffsetFetchRequest) -> OffsetFetchResponse:
    version = request.version
    if group.error_code and version < 2:  # these versions have error codes in the partitions only
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    topic.name,
                    [
                        OffsetFetchResponsePartition(index, -1, -1, "", group.error_code)
                        for index in topic.partition_indexes
                    ],
                )
                for topic in message.topics or ()
            ]
        )
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(
                        each.partition,
                        each.offset,
                        each.leader_epoch if version >= 5 else -1,
                        each.metadata,
                        each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in _told(request, group)
        ],
        error_code=group.error_code,
    )
