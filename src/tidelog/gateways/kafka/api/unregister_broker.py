"""UnregisterBroker (64), v0: always refused: registered brokers are in use, and others cannot be unregistered."""

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(request: Request, message: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    brokers = broker_of(request).ownership.brokers(request.session.listener.name)
    if message.broker_id in [each.broker_id for each in brokers]:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"broker {message.broker_id} is in use and cannot be unregistered",
        )
    return UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=f"broker {message.broker_id} is not registered"
    )
