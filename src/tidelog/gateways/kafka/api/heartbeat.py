"""Heartbeat (12), v0 to v4: keep a member of a classic group alive; the reply says whether it must join again."""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: Request, message: HeartbeatRequest) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    question = m.Heartbeat(message.group_id, message.generation_id, message.member_id, message.group_instance_id)
    return ask_groups(request, question, _translate)


def _translate(reply: m.HeartbeatReply) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=reply.error_code)
