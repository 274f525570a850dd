"""DescribeGroups (15), v0 to v6: classic groups with their members. A group that does not exist is "Dead"."""

from collections.abc import Awaitable

from tidelog.broker.admission import ResourceKind
from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.gateways.kafka.permissions import authorized_operations
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def handle(
    request: Request, message: DescribeGroupsRequest
) -> DescribeGroupsResponse | Awaitable[DescribeGroupsResponse]:
    version = request.version

    def described(group: m.DescribedClassicGroup) -> DescribedGroup:
        unknown = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND and version < 6
        return DescribedGroup(
            error_code=0 if unknown else group.error_code,
            error_message=group.error_message if version >= 6 else None,
            group_id=group.group_id,
            group_state=group.group_state,
            protocol_type=group.protocol_type,
            protocol_data=group.protocol_data,
            members=[
                DescribedGroupMember(
                    member.member_id,
                    member.group_instance_id if version >= 4 else None,
                    member.client_id,
                    member.client_host,
                    member.member_metadata,
                    member.member_assignment,
                )
                for member in group.members
            ],
            authorized_operations=authorized_operations(
                request,
                ResourceKind.GROUP,
                group.group_id,
                is_asked=message.include_authorized_operations and group.error_code == 0,
            ),
        )

    def translate(reply: m.DescribeGroupsReply) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(groups=[described(group) for group in reply.groups])

    return ask_groups(request, m.DescribeGroups(tuple(message.groups)), translate)
