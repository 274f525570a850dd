"""FindCoordinator (10), v0 to v6: the broker that coordinates a group or a transactional id. Many per request from
v4."""

from tidelog.broker.ownership import NO_ADDRESS, Coordinated
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

_KINDS = {0: Coordinated.GROUP, 1: Coordinated.TRANSACTIONAL_ID}


def handle(request: Request, message: FindCoordinatorRequest) -> FindCoordinatorResponse:
    kind = _KINDS.get(message.key_type)
    if request.version >= 4:
        return FindCoordinatorResponse(coordinators=[_found(request, kind, key) for key in message.coordinator_keys])
    found = _found(request, kind, message.key)
    return FindCoordinatorResponse(
        error_code=found.error_code, error_message=None, node_id=found.node_id, host=found.host, port=found.port
    )


def _found(request: Request, kind: Coordinated | None, key: str) -> Coordinator:
    address, code = NO_ADDRESS, int(ErrorCode.INVALID_REQUEST)
    if kind is not None:
        ownership = broker_of(request).ownership
        owner = ownership.coordinator(kind, key).broker_id
        address = ownership.address(owner, request.session.listener.name)
        code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE) if address is NO_ADDRESS else 0
    return Coordinator(key, address.broker_id, address.host, address.port, code, None)
