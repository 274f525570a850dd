"""Heartbeat (12), v0 to v4: a member of a classic group is alive; the reply says whether it has to join again."""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.group_requests import ask
from tidelog.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: Request, message: HeartbeatRequest) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    question = m.Heartbeat(message.group_id, message.generation_id, message.member_id, message.group_instance_id)
    return ask(request, question, _translate)


def _translate(reply: m.HeartbeatReply) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=reply.error_code)
