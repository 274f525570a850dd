"""FindCoordinator (10), v0 to v6: who looks after a group or a transactional id. Here that is always this broker."""

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import context_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1


def handle(request: Request, message: FindCoordinatorRequest) -> FindCoordinatorResponse:
    context = context_of(request)
    node = (context.broker.node_id, context.advertised_host, context.advertised_port)
    if message.key_type not in (GROUP, TRANSACTION):
        node, code = (-1, "", -1), int(ErrorCode.INVALID_REQUEST)
    else:
        code = 0
    if request.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key, *node, code, None) for key in message.coordinator_keys]
        )
    return FindCoordinatorResponse(error_code=code, error_message=None, node_id=node[0], host=node[1], port=node[2])
