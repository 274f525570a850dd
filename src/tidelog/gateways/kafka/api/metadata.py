"""Metadata (3), v0 to v13: brokers, topics, partitions and their leaders. May create topics that are asked for.

Topics: null (an empty list in v0) asks for all, an empty list for none. By id from v10 on, with id and no name.
"""

from collections.abc import Awaitable

from tidelog.broker.broker import Broker
from tidelog.broker.partition import LEADER_EPOCH
from tidelog.broker.topics import Topic
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of, context_of, now_ms
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.wire.primitives import NO_UUID
from tidelog.wire.writing import Unchanging


def handle(request: Request, message: MetadataRequest) -> MetadataResponse | Awaitable[MetadataResponse]:
    broker = broker_of(request)
    topics = message.topics
    if topics is None or (request.version == 0 and not topics):
        return _response(request, [described(request, topic) for topic in broker.topics])
    auto_create = message.allow_auto_topic_creation or request.version < 4
    missing = [topic.name for topic in topics if topic.name and broker.topics.find(topic.name) is None]
    if missing and auto_create and broker.config.flag("auto.create.topics.enable"):
        return _created_first(request, message, missing)
    return _asked_for(request, message, {})


async def _created_first(request: Request, message: MetadataRequest, missing: list[str]) -> MetadataResponse:
    """Clients ask again when a topic's leader is not available yet; here it is available at once."""
    errors: dict[str, int] = {}
    for name in missing:
        try:
            await broker_of(request).topics.auto_create(name, now_ms())
        except TidelogError as error:
            errors[name] = code_of(error)
    return _asked_for(request, message, errors)


def _asked_for(request: Request, message: MetadataRequest, errors: dict[str, int]) -> MetadataResponse:
    broker = broker_of(request)
    found = []
    for wanted in message.topics or ():
        if wanted.topic_id != NO_UUID:
            topic = broker.topics.find_id(wanted.topic_id)
            missing = MetadataResponseTopic(
                ErrorCode.UNKNOWN_TOPIC_ID, None if request.version >= 12 else "", wanted.topic_id
            )
        else:
            name = wanted.name or ""
            topic = broker.topics.find(name)
            code = errors.get(name, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            missing = MetadataResponseTopic(code, name)
        found.append(missing if topic is None else described(request, topic))
    return _response(request, found)


def _response(request: Request, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    context = context_of(request)
    broker = context.broker
    return MetadataResponse(
        brokers=[MetadataResponseBroker(broker.node_id, context.advertised_host, context.advertised_port)],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
    )


def described(request: Request, topic: Topic) -> MetadataResponseTopic:
    """Every client asks for this when it starts and every few minutes: what is said of the partitions is kept."""
    broker, known = broker_of(request), context_of(request).described_partitions
    key = (topic.topic_id, topic.partitions)
    partitions = known.get(key)
    if partitions is None:
        if len(known) > 2 * len(broker.topics):  # most of them are of topics that are gone, or were smaller
            known.clear()
        partitions = known[key] = Unchanging(_partitions(broker, topic))
    return MetadataResponseTopic(0, topic.name, topic.topic_id, False, partitions)


def _partitions(broker: Broker, topic: Topic) -> list[MetadataResponsePartition]:
    """Whether a partition could be opened does not change while the broker runs."""
    node = [broker.node_id]
    return [
        MetadataResponsePartition(0, index, broker.node_id, LEADER_EPOCH, node, node, [])
        if broker.find(topic.name, index) is not None
        else MetadataResponsePartition(ErrorCode.LEADER_NOT_AVAILABLE, index, -1, LEADER_EPOCH, node, [], node)
        for index in range(topic.partitions)
    ]
