"""RenewDelegationToken (39), v1 to v2: refused, as Kafka does where clients are not authenticated."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(_request: Request, _message: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
