"""DescribeConfigs (32), v1 to v4: what is in force for topics, brokers and groups, and where it comes
from. Client metrics are refused: no API here takes them, so that a subscription would not be what it says."""

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

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


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
    if resource.resource_type == GROUP:
        return broker.groups.configs.describe(resource.resource_name, names)
    raise refused(resource.resource_type)


def refused(kind: int) -> InvalidInput:
    """What is to be said of configs of other resources."""
    if kind == CLIENT_METRICS:
        return InvalidInput(
            "there are no client metrics here: this broker takes no telemetry from clients (PushTelemetry), so a "
            "subscription would have no effect; read the metrics at the clients themselves"
        )
    return InvalidInput(
        f"configs of resource type {kind} are not supported; topics (2), brokers (4) and groups (32) are"
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
