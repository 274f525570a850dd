"""CreatePartitions (37), v0 to v3: raise the number of partitions of topics. It cannot be lowered."""

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.gateways.kafka.long_requests import in_slices
from tidelog.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


async def handle(request: Request, message: CreatePartitionsRequest) -> CreatePartitionsResponse:
    topics = broker_of(request).topics
    results = []
    async for wanted in in_slices(message.topics):
        assignments = None if wanted.assignments is None else [each.broker_ids for each in wanted.assignments]
        try:
            await topics.add_partitions(wanted.name, wanted.count, assignments, validate_only=message.validate_only)
        except TidelogError as error:
            results.append(CreatePartitionsTopicResult(wanted.name, code_of(error), str(error)))
        else:
            results.append(CreatePartitionsTopicResult(wanted.name))
    return CreatePartitionsResponse(results=results)
