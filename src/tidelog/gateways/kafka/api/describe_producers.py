"""DescribeProducers (61), v0: the idempotent producers that a partition remembers, and where their open
transactions began."""

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(request: Request, message: DescribeProducersRequest) -> DescribeProducersResponse:
    broker = broker_of(request)
    topics = []
    for topic in message.topics:
        results = []
        for index in topic.partition_indexes:
            try:
                partition = broker.partition(topic.name, index)
            except TidelogError as error:
                results.append(PartitionResponse(index, code_of(error), str(error)))
                continue
            states = [
                ProducerState(*each[:4], each.coordinator_epoch, each.transaction_start)
                for each in partition.log.active_producers()
            ]
            results.append(PartitionResponse(index, 0, None, states))
        topics.append(TopicResponse(topic.name, results))
    return DescribeProducersResponse(topics=topics)
