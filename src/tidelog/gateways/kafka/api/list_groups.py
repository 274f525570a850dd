"""ListGroups (16), v0 to v5: the groups that the client may describe, filtered by state from v4, by type from v5."""

from collections.abc import Awaitable

from tidelog.broker.admission import Operation, ResourceKind
from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_groups
from tidelog.gateways.kafka.permissions import may, visible
from tidelog.wire.generated.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(request: Request, message: ListGroupsRequest) -> ListGroupsResponse | Awaitable[ListGroupsResponse]:
    version = request.version
    sees_all = may(request, Operation.DESCRIBE, ResourceKind.CLUSTER)

    def translate(reply: m.ListGroupsReply) -> ListGroupsResponse:
        groups = reply.groups
        if not sees_all:
            groups = tuple(visible(request, ResourceKind.GROUP, groups, lambda group: group.group_id))
        return ListGroupsResponse(
            error_code=reply.error_code,
            groups=[
                ListedGroup(
                    group.group_id,
                    group.protocol_type,
                    group.group_state if version >= 4 else "",
                    group.group_type if version >= 5 else "",
                )
                for group in groups
            ],
        )

    return ask_groups(request, m.ListGroups(tuple(message.states_filter), tuple(message.types_filter)), translate)
