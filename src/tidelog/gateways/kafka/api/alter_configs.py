"""AlterConfigs (33), v0 to v2: the configs of a resource, all of them: what is not named goes back to its default."""

from tidelog.broker.configs import Edit, Replace
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.api.describe_configs import BROKER, GROUP, TOPIC, refused
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
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


async def altered(
    request: Request, kind: int, name: str, edit: Edit, *, validate_only: bool
) -> tuple[int, str | None]:
    """Error code and message of one change."""
    broker = broker_of(request)
    try:
        if kind == TOPIC:
            await broker.topics.alter_configs(name, edit, validate_only=validate_only)
        elif kind == BROKER:
            await broker.config.alter(broker.metadata, name, edit, validate_only=validate_only)
        elif kind == GROUP:
            await broker.groups.configs.alter(name, edit, validate_only=validate_only)
        else:
            raise refused(kind)
    except TidelogError as error:
        return code_of(error), str(error)
    return 0, None
