"""ConsumerGroupHeartbeat (68), v0 to v1: the one request of the new consumer protocol (KIP-848).

Members join, stay alive, report what they subscribe to and own, receive their assignment, and leave with it. From v1
on members choose their own ids and may subscribe by regex.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups, client_of
from tidelog.wire.generated.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)


def handle(
    request: Request, message: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    names, owned = message.subscribed_topic_names, message.topic_partitions
    question = m.ConsumerGroupHeartbeat(
        group_id=message.group_id,
        member_id=message.member_id,
        member_epoch=message.member_epoch,
        instance_id=message.instance_id,
        rack_id=message.rack_id,
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        subscribed_topic_names=None if names is None else tuple(names),
        subscribed_topic_regex=message.subscribed_topic_regex,
        server_assignor=message.server_assignor,
        topic_partitions=None
        if owned is None
        else tuple(m.TopicPartitions(each.topic_id, tuple(each.partitions)) for each in owned),
        **client_of(request),
    )
    return ask_groups(request, question, _translate)


def _translate(reply: m.ConsumerGroupHeartbeatReply) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if reply.assignment is not None:
        assignment = Assignment(
            [ResponseTopicPartitions(each.topic_id, list(each.partitions)) for each in reply.assignment]
        )
    return ConsumerGroupHeartbeatResponse(
        error_code=reply.error_code,
        error_message=reply.error_message,
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )
