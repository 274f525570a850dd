"""ExpireDelegationToken (40), v1 to v2: refused, as Kafka does where clients are not authenticated."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def handle(_request: Request, _message: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
