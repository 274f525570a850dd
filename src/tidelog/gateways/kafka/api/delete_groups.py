"""DeleteGroups (42), v0 to v2: remove empty groups with their offsets."""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.wire.generated.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(request: Request, message: DeleteGroupsRequest) -> DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]:
    return ask_groups(request, m.DeleteGroups(tuple(message.groups_names)), _translate)


def _translate(reply: m.DeleteGroupsReply) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[DeletableGroupResult(*result) for result in reply.results])
