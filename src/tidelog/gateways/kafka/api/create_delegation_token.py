"""CreateDelegationToken (38), v1 to v3: refused, as Kafka does where clients are not authenticated."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


def handle(_request: Request, _message: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
