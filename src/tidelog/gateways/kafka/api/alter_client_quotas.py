"""AlterClientQuotas (49), v0 to v1: client quotas are not supported. Removing one succeeds; setting one is refused,
because it would have no effect."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)


def handle(_request: Request, message: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=[_altered(entry) for entry in message.entries])


def _altered(entry: RequestEntryData) -> ResponseEntryData:
    entity = [ResponseEntityData(each.entity_type, each.entity_name) for each in entry.entity]
    if all(operation.remove for operation in entry.ops):
        return ResponseEntryData(0, None, entity)
    return ResponseEntryData(ErrorCode.INVALID_REQUEST, "client quotas are not supported", entity)
