"""SaslHandshake (17), v0 to v1: refused, as by Kafka on a listener without authentication, so that a client that is
configured for SASL learns why it cannot connect."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(_request: Request, _message: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
