"""ListConfigResources (74), v0 to v1: the resources with configs: topics, brokers and their loggers, and groups for
which configs are set. v0 asks for client metrics only, of which there are none."""

from tidelog.gateways.kafka.config_resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

KNOWN = {TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP}


def handle(request: Request, message: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if request.version == 0:
        return ListConfigResourcesResponse()
    wanted = set(message.resource_types) or KNOWN
    if not wanted <= KNOWN:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    broker = broker_of(request)
    resources = []
    if TOPIC in wanted:
        resources += [ConfigResource(topic.name, TOPIC) for topic in broker.topics]
    brokers = broker.ownership.brokers(request.session.listener.name)
    for kind in (BROKER, BROKER_LOGGER):
        if kind in wanted:
            resources += [ConfigResource(str(each.broker_id), kind) for each in brokers]
    if GROUP in wanted:
        resources += [ConfigResource(group, GROUP) for group in broker.groups.configs.groups()]
    return ListConfigResourcesResponse(config_resources=resources)
