"""DescribeClientQuotas (48), v0 to v1: there are no quotas, so the list is empty."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.generated.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse


def handle(_request: Request, _message: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_message=None, entries=[])
