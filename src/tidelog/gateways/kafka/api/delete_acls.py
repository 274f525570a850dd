"""DeleteAcls (31), v1 to v3: refused, as Kafka does without an authorizer."""

from tidelog.broker.admission import NO_AUTHORIZER
from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


def handle(_request: Request, message: DeleteAclsRequest) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return DeleteAclsResponse(filter_results=[refused] * len(message.filters))
