"""CreateAcls (30), v1 to v3: refused, because nothing would enforce the ACLs."""

from tidelog.broker.admission import NO_AUTHORIZER
from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def handle(_request: Request, message: CreateAclsRequest) -> CreateAclsResponse:
    refused = AclCreationResult(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return CreateAclsResponse(results=[refused] * len(message.creations))
