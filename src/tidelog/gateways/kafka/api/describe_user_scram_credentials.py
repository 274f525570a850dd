"""DescribeUserScramCredentials (50), v0: there are no users. A null or empty list of names means all users."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(_request: Request, message: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[
            DescribeUserScramCredentialsResult(user.name, ErrorCode.RESOURCE_NOT_FOUND, "this user does not exist")
            for user in message.users or ()
        ],
    )
