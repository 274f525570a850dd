"""IncrementalAlterConfigs (44), v0 to v1: change single configs: set, delete, append to or subtract from a list."""

from tidelog.broker.configs import Alter, Alteration
from tidelog.gateways.kafka.config_resources import altered
from tidelog.gateways.kafka.connection import Request
from tidelog.wire.generated.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(request: Request, message: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    results = []
    for resource in message.resources:
        edit = Alter([Alteration(each.name, each.config_operation, each.value) for each in resource.configs])
        code, text = await altered(
            request, resource.resource_type, resource.resource_name, edit, validate_only=message.validate_only
        )
        results.append(AlterConfigsResourceResponse(code, text, resource.resource_type, resource.resource_name))
    return IncrementalAlterConfigsResponse(responses=results)
