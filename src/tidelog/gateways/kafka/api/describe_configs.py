"""DescribeConfigs (32), v1 to v4: what is in force for topics and brokers, and where it comes from."""

from tidelog.broker.configs import ConfigEntry
from tidelog.errors import InvalidInput, TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TOPIC, BROKER = 2, 4


def handle(request: Request, message: DescribeConfigsRequest) -> DescribeConfigsResponse:
    results = []
    for resource in message.resources:
        try:
            entries = _entries(request, resource)
        except TidelogError as error:
            results.append(
                DescribeConfigsResult(code_of(error), str(error), resource.resource_type, resource.resource_name)
            )
            continue
        configs = [_shown(entry, message, request.version) for entry in entries]
        results.append(DescribeConfigsResult(0, None, resource.resource_type, resource.resource_name, configs))
    return DescribeConfigsResponse(results=results)


def _entries(request: Request, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    broker = broker_of(request)
    names = resource.configuration_keys
    if resource.resource_type == TOPIC:
        return broker.topics.describe(resource.resource_name, names)
    if resource.resource_type == BROKER:
        return broker.config.describe(resource.resource_name, names)
    raise InvalidInput(
        f"configs of resource type {resource.resource_type} are not supported; topics (2), brokers (4) are"
    )


def _shown(entry: ConfigEntry, message: DescribeConfigsRequest, version: int) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if message.include_synonyms else ()
    return DescribeConfigsResourceResult(
        entry.name,
        entry.value,
        entry.read_only,
        entry.source,
        entry.is_sensitive,
        [DescribeConfigsSynonym(each.name, each.value, each.source) for each in synonyms],
        entry.type if version >= 3 else 0,
        entry.documentation if version >= 3 and message.include_documentation else None if version >= 3 else "",
    )
