"""JoinGroup (11), v0 to v9: join a group that uses the classic protocol. The reply waits for the rebalance.

From v4 on, a new dynamic member first gets its id and joins again with it. From v9 on, the reply may tell a static
leader that rejoins to skip the assignment.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups, client_of
from tidelog.wire.generated.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember


def handle(request: Request, message: JoinGroupRequest) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    version = request.version
    question = m.JoinGroup(
        group_id=message.group_id,
        session_timeout_ms=message.session_timeout_ms,
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
        protocol_type=message.protocol_type,
        protocols=tuple(m.Protocol(protocol.name, bytes(protocol.metadata)) for protocol in message.protocols),
        reason=message.reason,
        member_id_required=version >= 4,
        understands_skip_assignment=version >= 9,
        **client_of(request),
    )

    def translate(reply: m.JoinGroupReply) -> JoinGroupResponse:
        return JoinGroupResponse(
            error_code=reply.error_code,
            generation_id=reply.generation_id,
            protocol_type=reply.protocol_type if version >= 7 else None,
            protocol_name=reply.protocol_name if version >= 7 else reply.protocol_name or "",
            leader=reply.leader,
            skip_assignment=reply.skip_assignment,
            member_id=reply.member_id,
            members=[
                JoinGroupResponseMember(
                    member.member_id, member.group_instance_id if version >= 5 else None, member.metadata
                )
                for member in reply.members
            ],
        )

    return ask_groups(request, question, translate)
