"""LeaveGroup (13), v0 to v5: remove members without waiting for their sessions to time out. Many per request from
v3."""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.wire.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse


def handle(request: Request, message: LeaveGroupRequest) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    many = request.version >= 3
    members = (
        tuple(m.LeavingMember(each.member_id, each.group_instance_id, each.reason) for each in message.members)
        if many
        else (m.LeavingMember(message.member_id),)
    )

    def translate(reply: m.LeaveGroupReply) -> LeaveGroupResponse:
        if not many:
            code = reply.error_code or (reply.members[0].error_code if reply.members else 0)
            return LeaveGroupResponse(error_code=code)
        return LeaveGroupResponse(
            error_code=reply.error_code, members=[MemberResponse(*each) for each in reply.members]
        )

    return ask_groups(request, m.LeaveGroup(message.group_id, members), translate)
