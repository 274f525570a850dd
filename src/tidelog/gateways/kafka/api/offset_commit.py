"""OffsetCommit (8), v2 to v10: store the offsets of a group. Durable when answered. Topic ids from v10."""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def handle(request: Request, message: OffsetCommitRequest) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    question = m.OffsetCommit(
        group_id=message.group_id,
        topics=tuple(
            m.CommittedTopic(
                topic.name,
                tuple(
                    m.CommittedPartition(
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.committed_metadata,
                    )
                    for each in topic.partitions
                ),
                topic.topic_id,
            )
            for topic in message.topics
        ),
        generation_id_or_member_epoch=message.generation_id_or_member_epoch,
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
        retention_time_ms=message.retention_time_ms,
        understands_member_epochs=request.version >= 9,
    )
    by_id = request.version >= 10

    def translate(reply: m.OffsetCommitReply) -> OffsetCommitResponse:
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name="" if by_id else topic.name,
                    topic_id=topic.topic_id if by_id else m.NO_TOPIC_ID,
                    partitions=[OffsetCommitResponsePartition(*each) for each in topic.partitions],
                )
                for topic in reply.topics
            ]
        )

    return ask_groups(request, question, translate)
