"""OffsetDelete (47), v0: delete committed offsets of topics that the group does not subscribe to."""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(request: Request, message: OffsetDeleteRequest) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
    topics = tuple((topic.name, tuple(each.partition_index for each in topic.partitions)) for topic in message.topics)
    return ask_groups(request, m.OffsetDelete(message.group_id, topics), _translate)


def _translate(reply: m.OffsetDeleteReply) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        error_code=reply.error_code,
        topics=[
            OffsetDeleteResponseTopic(topic.name, [OffsetDeleteResponsePartition(*each) for each in topic.partitions])
            for topic in reply.topics
        ],
    )
