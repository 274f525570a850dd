"""DeleteTopics (20), v1 to v6: topics and their data, by name, or from v6 on by id."""

import asyncio

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.generated.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


async def handle(request: Request, message: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted = message.topics if request.version >= 6 else [DeleteTopicState(name) for name in message.topic_names]
    # At once, so that they share commits.
    return DeleteTopicsResponse(responses=await asyncio.gather(*(_deleted(request, topic) for topic in wanted)))


async def _deleted(request: Request, wanted: DeleteTopicState) -> DeletableTopicResult:
    topics = broker_of(request).topics
    try:
        topic = await (topics.delete(wanted.name) if wanted.name is not None else topics.delete_id(wanted.topic_id))
    except TidelogError as error:
        message = str(error) if request.version >= 5 else None
        return DeletableTopicResult(wanted.name, wanted.topic_id, code_of(error), message)
    return DeletableTopicResult(topic.name, topic.topic_id if request.version >= 6 else wanted.topic_id)
