"""ConsumerGroupDescribe (69), v0 to v1: groups of the new consumer protocol with their members and assignments."""

from collections.abc import Awaitable, Iterable

from tidelog.broker.admission import ResourceKind
from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.gateways.kafka.permissions import authorized_operations
from tidelog.wire.generated.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)


def handle(
    request: Request, message: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | Awaitable[ConsumerGroupDescribeResponse]:
    typed = request.version >= 1
    is_asked = message.include_authorized_operations

    def translate(reply: m.ConsumerGroupDescribeReply) -> ConsumerGroupDescribeResponse:
        return ConsumerGroupDescribeResponse(
            groups=[
                _described(
                    group,
                    authorized_operations(
                        request, ResourceKind.GROUP, group.group_id, is_asked=is_asked and group.error_code == 0
                    ),
                    typed=typed,
                )
                for group in reply.groups
            ]
        )

    return ask_groups(request, m.ConsumerGroupDescribe(tuple(message.group_ids)), translate)


def _described(group: m.DescribedConsumerGroup, operations: int, *, typed: bool) -> DescribedGroup:
    return DescribedGroup(
        error_code=group.error_code,
        error_message=group.error_message,
        group_id=group.group_id,
        group_state=group.group_state,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor_name,
        members=[
            Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                member_epoch=member.member_epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=list(member.subscribed_topic_names),
                subscribed_topic_regex=member.subscribed_topic_regex,
                assignment=_assignment(member.assignment),
                target_assignment=_assignment(member.target_assignment),
                member_type=member.member_type if typed else -1,
            )
            for member in group.members
        ],
        authorized_operations=operations,
    )


def _assignment(topics: Iterable[m.NamedTopicPartitions]) -> Assignment:
    return Assignment([TopicPartitions(each.topic_id, each.topic_name, list(each.partitions)) for each in topics])
