"""AlterUserScramCredentials (51), v0: this broker does not authenticate clients, so there are no users, and none can
be added."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def handle(_request: Request, message: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    removed = {each.name: (ErrorCode.RESOURCE_NOT_FOUND, "this user does not exist") for each in message.deletions}
    added = {
        each.name: (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "this broker does not authenticate clients")
        for each in message.upsertions
    }
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(name, *reason) for name, reason in (removed | added).items()]
    )
