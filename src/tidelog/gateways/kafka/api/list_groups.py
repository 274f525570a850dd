"""ListGroups (16), v0 to v5: the groups there are, filtered by state from v4 and by type from v5."""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.group_requests import ask
from tidelog.wire.generated.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(request: Request, message: ListGroupsRequest) -> ListGroupsResponse | Awaitable[ListGroupsResponse]:
    version = request.version

    def translate(reply: m.ListGroupsReply) -> ListGroupsResponse:
        return ListGroupsResponse(
            error_code=reply.error_code,
            groups=[
                ListedGroup(
                    group.group_id,
                    group.protocol_type,
                    group.group_state if version >= 4 else "",
                    group.group_type if version >= 5 else "",
                )
                for group in reply.groups
            ],
        )

    return ask(request, m.ListGroups(tuple(message.states_filter), tuple(message.types_filter)), translate)
