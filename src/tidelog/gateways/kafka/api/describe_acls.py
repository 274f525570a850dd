"""DescribeAcls (29), v1 to v3: answered with SECURITY_DISABLED, as by a Kafka without an authorizer."""

from tidelog.broker.admission import NO_AUTHORIZER
from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(_request: Request, _message: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
