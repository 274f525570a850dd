"""AddPartitionsToTxn (24), v0 to v5: add partitions to a transaction before it writes to them. Durable when answered.

From v4 on a request has many transactions, and may only verify that a transaction has the partitions (verify_only).
If any partition of a transaction does not exist, none is added: the others are OPERATION_NOT_ATTEMPTED.
"""

import asyncio
from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.gateways.kafka.coordinator_requests import ask_transactions, fencing_known
from tidelog.model import TopicPartition
from tidelog.promise import Promise
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)

_MANY_FROM, _FENCED_FROM, _ABORTABLE_FROM = 4, 2, 5
Results = list[AddPartitionsToTxnTopicResult]


def handle(
    request: Request, message: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    if request.version >= _MANY_FROM:
        return _many(request, message)
    answer = _add(
        request,
        m.AddPartitions(
            message.v3_and_below_transactional_id,
            message.v3_and_below_producer_id,
            message.v3_and_below_producer_epoch,
            _partitions(message.v3_and_below_topics),
        ),
    )
    return answer.then(_one) if isinstance(answer, Promise) else _one(answer)


def _one(results: Results) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


async def _many(request: Request, message: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    async def one(answer: Results | Promise[Results]) -> Results:
        return answer if isinstance(answer, list) else await answer

    answers = [
        _add(
            request,
            m.AddPartitions(
                each.transactional_id,
                each.producer_id,
                each.producer_epoch,
                _partitions(each.topics),
                each.verify_only,
            ),
        )
        for each in message.transactions
    ]
    results = await asyncio.gather(*map(one, answers))
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(each.transactional_id, result)
            for each, result in zip(message.transactions, results, strict=True)
        ]
    )


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)


def _add(request: Request, question: m.AddPartitions) -> Results | Promise[Results]:
    broker = broker_of(request)
    unknown = {each for each in question.partitions if not broker.takes_transactions(*each)}
    if unknown:
        return _results(
            {
                each: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if each in unknown else ErrorCode.OPERATION_NOT_ATTEMPTED
                for each in question.partitions
            }
        )

    def translate(reply: m.AddPartitionsReply) -> Results:
        code = fencing_known(reply.error_code, request, since=_FENCED_FROM)
        codes = dict.fromkeys(question.partitions, code)
        missing = (
            ErrorCode.TRANSACTION_ABORTABLE if request.version >= _ABORTABLE_FROM else ErrorCode.INVALID_TXN_STATE
        )
        codes.update(dict.fromkeys(reply.missing, missing))
        return _results(codes)

    return ask_transactions(request, question, translate)


def _results(codes: dict[TopicPartition, int]) -> Results:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, index), code in codes.items():
        result = topics.setdefault(topic, AddPartitionsToTxnTopicResult(topic, []))
        result.results_by_partition.append(AddPartitionsToTxnPartitionResult(index, code))
    return list(topics.values())
