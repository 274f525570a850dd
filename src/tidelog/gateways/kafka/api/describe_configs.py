"""DescribeConfigs (32), v1 to v4: the configs in force for topics, brokers and groups, and their sources. Loggers and
subscriptions to client metrics have no configs, and none can be set: the broker accepts no metrics from clients, so a
subscription would have no effect."""

from tidelog.broker.configs import ConfigEntry
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, refused
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
    if resource.resource_type in (BROKER_LOGGER, CLIENT_METRICS):
        return []
    raise refused(resource.resource_type)


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
