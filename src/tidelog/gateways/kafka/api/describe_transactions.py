"""DescribeTransactions (65), v0: the producer, the state and the partitions of transactional ids."""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.transaction_requests import ask
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
                    topics=_topics(each.partitions),
                )
                for each in reply.transactions
            ]
        )

    return ask(request, m.DescribeTransactions(tuple(message.transactional_ids)), translate)


def _topics(partitions: tuple[TopicPartition, ...]) -> list[TopicData]:
    topics: dict[str, TopicData] = {}
    for topic, index in partitions:
        topics.setdefault(topic, TopicData(topic, [])).partitions.append(index)
    return list(topics.values())
