"""Metadata (3), v0 to v13: brokers, topics, partitions and their leaders. May create the topics that are named.

Topics: null (an empty list in v0) means all that the client may describe, an empty list none. From v10 on a topic may
be named by its id alone. From v8 on the reply has the operations that the client is authorized for, if it asks for
them; those on the cluster up to v10.

A broker of the cluster that asks for no topics tells this one that something has changed: it looks before it answers.
"""

from collections.abc import Awaitable, Iterable, Iterator

from tidelog.broker.admission import Operation, ResourceKind
from tidelog.broker.ownership import PeerUnavailable
from tidelog.broker.topics import Topic
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of, context_of
from tidelog.gateways.kafka.described_topics import described
from tidelog.gateways.kafka.long_requests import Parts
from tidelog.gateways.kafka.permissions import NOT_ASKED, authorized_operations, may, visible
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from tidelog.wire.primitives import NO_UUID

_AT_ONCE = 500  # topics


def handle(request: Request, message: MetadataRequest) -> MetadataResponse | Parts | Awaitable[MetadataResponse]:
    broker = broker_of(request)
    topics = message.topics
    if topics is None or (request.version == 0 and not topics):
        if len(broker.topics) > _AT_ONCE:
            return Parts("topics", _all_in_parts(request, message))
        return _response(request, message, [_shown(request, message, topic) for topic in _all(request)])
    auto_create = message.allow_auto_topic_creation or request.version < 4
    missing = [
        topic.name
        for topic in topics
        if topic.name
        and broker.topics.find(topic.name) is None
        and may(request, Operation.DESCRIBE, ResourceKind.TOPIC, topic.name)
    ]
    is_created = auto_create and broker.config.flag("auto.create.topics.enable")
    is_told = not topics and request.session.is_peer and broker.others is not None
    if is_told or (missing and (is_created or broker.others is not None)):
        return _looked_for_first(request, message, missing, is_created=is_created)
    return _asked_for(request, message, {})


def _all(request: Request) -> Iterable[Topic]:
    return visible(request, ResourceKind.TOPIC, broker_of(request).topics, lambda topic: topic.name)


def _all_in_parts(request: Request, message: MetadataRequest) -> Iterator[MetadataResponse]:
    topics = list(_all(request))
    for first in range(0, max(1, len(topics)), _AT_ONCE):
        some = topics[first : first + _AT_ONCE]
        yield _response(request, message, [_shown(request, message, topic) for topic in some])


async def _looked_for_first(
    request: Request, message: MetadataRequest, missing: list[str], *, is_created: bool
) -> MetadataResponse:
    """Learn what other brokers have created, create what is still missing, then answer: their leaders are available
    at once, so clients need not ask again."""
    errors: dict[str, int] = {}
    broker, session = broker_of(request), request.session
    if broker.others is not None:
        await broker.others.refresh()
    for name in missing if is_created else ():
        if broker.topics.find(name) is not None:
            continue
        try:
            if not may(request, Operation.CREATE, ResourceKind.CLUSTER):
                broker.admission.check(session, Operation.CREATE, ResourceKind.TOPIC, name)
            await broker.auto_create(name)
        except PeerUnavailable:  # there is no controller at the moment
            errors[name] = int(ErrorCode.LEADER_NOT_AVAILABLE)
        except TidelogError as error:
            errors[name] = code_of(error)
    return _asked_for(request, message, errors)


def _asked_for(request: Request, message: MetadataRequest, errors: dict[str, int]) -> MetadataResponse:
    broker = broker_of(request)
    is_guarded = broker.admission.authorizer is not None
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
        if is_guarded:
            named = wanted.name if topic is None else topic.name
            if named and not may(request, Operation.DESCRIBE, ResourceKind.TOPIC, named):
                missing.error_code, topic = ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
        found.append(missing if topic is None else _shown(request, message, topic))
    return _response(request, message, found)


def _response(request: Request, message: MetadataRequest, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    context = context_of(request)
    broker = context.broker
    brokers = broker.ownership.brokers(context.listener.name)
    is_asked = message.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[MetadataResponseBroker(*each) for each in brokers],
        cluster_id=broker.cluster_id,
        controller_id=broker.ownership.controller_for_clients(),
        topics=topics,
        cluster_authorized_operations=authorized_operations(request, ResourceKind.CLUSTER) if is_asked else NOT_ASKED,
    )


def _shown(request: Request, message: MetadataRequest, topic: Topic) -> MetadataResponseTopic:
    shown = described(request, topic)
    if message.include_topic_authorized_operations:
        shown.topic_authorized_operations = authorized_operations(request, ResourceKind.TOPIC, topic.name)
    return shown
