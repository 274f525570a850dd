"""SaslAuthenticate (36), v0 to v2: refused, like SaslHandshake."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(_request: Request, _message: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message="this broker does not authenticate clients"
    )
