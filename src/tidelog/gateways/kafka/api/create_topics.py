"""CreateTopics (19), v2 to v7: each topic has its own result. A name that occurs twice in the request is refused."""

from collections import Counter
from collections.abc import AsyncIterator

from tidelog.broker.shell import now_ms
from tidelog.broker.topics import NewTopic
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.gateways.kafka.long_requests import Parts, in_batches
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def handle(request: Request, message: CreateTopicsRequest) -> Parts:
    return Parts("topics", _answered(request, message))


async def _answered(request: Request, message: CreateTopicsRequest) -> AsyncIterator[CreateTopicsResponse]:
    counts = Counter(topic.name for topic in message.topics)
    by_name = {topic.name: topic for topic in message.topics}

    async def created(topic: CreatableTopic) -> CreatableTopicResult:
        named_twice = counts[topic.name] > 1
        return await _created(request, topic, named_twice=named_twice, validate_only=message.validate_only)

    async for results in in_batches(list(by_name.values()), created):
        yield CreateTopicsResponse(topics=results)


async def _created(
    request: Request, wanted: CreatableTopic, *, named_twice: bool, validate_only: bool
) -> CreatableTopicResult:
    if named_twice:
        return CreatableTopicResult(
            wanted.name, error_code=ErrorCode.INVALID_REQUEST, error_message="the request names this topic twice"
        )
    topics = broker_of(request).topics
    new = NewTopic(
        wanted.name,
        wanted.num_partitions,
        wanted.replication_factor,
        [(each.partition_index, each.broker_ids) for each in wanted.assignments],
        [(each.name, each.value) for each in wanted.configs],
    )
    try:
        topic = await topics.create(new, now_ms(), validate_only=validate_only)
    except TidelogError as error:
        return CreatableTopicResult(wanted.name, error_code=code_of(error), error_message=str(error))
    entries = topics.broker_config.describe_topic(topic.configs)
    return CreatableTopicResult(
        topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=topic.partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(entry.name, entry.value, entry.read_only, entry.source, entry.is_sensitive)
            for entry in entries
        ],
    )
