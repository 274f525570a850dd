"""SyncGroup (14), v0 to v5: get a member's assignment; the leader sends those of all members. The reply waits for the
leader."""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.wire.generated.sync_group import SyncGroupRequest, SyncGroupResponse


def handle(request: Request, message: SyncGroupRequest) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    named = request.version >= 5
    question = m.SyncGroup(
        group_id=message.group_id,
        generation_id=message.generation_id,
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
        protocol_type=message.protocol_type,
        protocol_name=message.protocol_name,
        assignments=tuple((each.member_id, bytes(each.assignment)) for each in message.assignments),
    )

    def translate(reply: m.SyncGroupReply) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_code=reply.error_code,
            protocol_type=reply.protocol_type if named else None,
            protocol_name=reply.protocol_name if named else None,
            assignment=reply.assignment,
        )

    return ask_groups(request, question, translate)
