"""DescribeTransactions (65), v0: the producer, the state and the partitions of transactional ids. Partitions of
topics that the client may not describe are left out."""

from collections.abc import Awaitable, Iterable

from tidelog.broker.admission import ResourceKind
from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_transactions
from tidelog.gateways.kafka.permissions import visible
from tidelog.model import TopicPartition
from tidelog.wire.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(
    request: Request, message: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | Awaitable[DescribeTransactionsResponse]:
    def translate(reply: m.DescribeTransactionsReply) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(
            transaction_states=[
                TransactionState(
                    error_code=each.error_code,
                    transactional_id=each.transactional_id,
                    transaction_state=each.state,
                    transaction_timeout_ms=each.timeout_ms,
                    transaction_start_time_ms=each.started_ms,
                    producer_id=each.producer_id,
                    producer_epoch=each.epoch,
                    topics=_topics(visible(request, ResourceKind.TOPIC, each.partitions, _topic_of)),
                )
                for each in reply.transactions
            ]
        )

    return ask_transactions(request, m.DescribeTransactions(tuple(message.transactional_ids)), translate)


def _topic_of(partition: TopicPartition) -> str:
    return partition.topic


def _topics(partitions: Iterable[TopicPartition]) -> list[TopicData]:
    topics: dict[str, TopicData] = {}
    for topic, index in partitions:
        topics.setdefault(topic, TopicData(topic, [])).partitions.append(index)
    return list(topics.values())
