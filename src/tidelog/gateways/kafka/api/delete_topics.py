"""DeleteTopics (20), v1 to v6: delete topics and their data, by name, or from v6 on also by id."""

from collections.abc import AsyncIterator

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.gateways.kafka.long_requests import Parts, in_batches
from tidelog.wire.generated.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def handle(request: Request, message: DeleteTopicsRequest) -> Parts:
    return Parts("responses", _answered(request, message))


async def _answered(request: Request, message: DeleteTopicsRequest) -> AsyncIterator[DeleteTopicsResponse]:
    wanted = message.topics if request.version >= 6 else [DeleteTopicState(name) for name in message.topic_names]
    async for results in in_batches(wanted, lambda topic: _deleted(request, topic)):
        yield DeleteTopicsResponse(responses=results)


async def _deleted(request: Request, wanted: DeleteTopicState) -> DeletableTopicResult:
    topics = broker_of(request).topics
    try:
        topic = await (topics.delete(wanted.name) if wanted.name is not None else topics.delete_id(wanted.topic_id))
    except TidelogError as error:
        message = str(error) if request.version >= 5 else None
        return DeletableTopicResult(wanted.name, wanted.topic_id, code_of(error), message)
    return DeletableTopicResult(topic.name, topic.topic_id if request.version >= 6 else wanted.topic_id)
