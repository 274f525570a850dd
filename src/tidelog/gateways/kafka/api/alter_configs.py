"""AlterConfigs (33), v0 to v2: replace all configs of a resource; those that are not named return to their
default."""

from tidelog.broker.configs import Replace
from tidelog.gateways.kafka.config_resources import altered
from tidelog.gateways.kafka.connection import Request
from tidelog.wire.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: Request, message: AlterConfigsRequest) -> AlterConfigsResponse:
    results = []
    for resource in message.resources:
        edit = Replace([(config.name, config.value) for config in resource.configs])
        code, text = await altered(
            request, resource.resource_type, resource.resource_name, edit, validate_only=message.validate_only
        )
        results.append(AlterConfigsResourceResponse(code, text, resource.resource_type, resource.resource_name))
    return AlterConfigsResponse(responses=results)
