"""Produce (0), v3 to v13: append batches. Topic ids replace names from v13.

acks 0: no reply; what goes wrong ends the connection, since there is no other way to tell. acks 1: the batch is in
the log. acks -1 (all): it is durable by the topic's flush policy; `min.insync.replicas` counts no more replicas than
there are, which is one. Each partition has its own result. With a transactional id, batches are taken for partitions
that are in its open transaction; from v12 on they are added to it: `transactional_produce`.
"""

from collections.abc import Awaitable
from functools import partial

from tidelog.broker.broker import Broker
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of, now_ms
from tidelog.gateways.kafka.produce_repeats import ProduceRepeats
from tidelog.gateways.kafka.transactional_produce import Refusals, in_transaction
from tidelog.model import TimestampType
from tidelog.promise import Promise
from tidelog.storage.log import Appended
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

ALL = -1
Waiting = list[tuple[Appended, PartitionProduceResponse]]


def handle(request: Request, message: ProduceRequest) -> ProduceResponse | Awaitable[ProduceResponse] | None:
    if message.transactional_id is not None:
        return in_transaction(request, message, _produce)
    return _produce(request, message, None)


def _produce(
    request: Request, message: ProduceRequest, refusals: Refusals | None
) -> ProduceResponse | Awaitable[ProduceResponse] | None:
    """`refusals`: of a transaction, the partitions that are not in it."""
    broker = broker_of(request)
    waiting: Waiting = []
    acks = message.acks
    if acks not in (0, 1, ALL):
        return _refused(message, ErrorCode.INVALID_REQUIRED_ACKS)
    by_id = request.version >= 13
    now = now_ms()
    responses = []
    for topic in message.topic_data:
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        results = [
            _append(broker, name, data, acks, now, waiting, refusals)
            if name is not None
            else PartitionProduceResponse(data.index, ErrorCode.UNKNOWN_TOPIC_ID, -1)
            for data in topic.partition_data
        ]
        responses.append(TopicProduceResponse(topic.name, topic.topic_id, results))
    response = ProduceResponse(responses)
    if acks != 0 and len(responses) == 1 == len(responses[0].partition_responses):
        _learn(request, message, response)
    if acks == 0:
        _refuse_silently(response)
        return None
    if not waiting:
        return response
    return _durable(response, waiting)


def _learn(request: Request, message: ProduceRequest, response: ProduceResponse) -> None:
    """One partition, and all is well: the client is likely to say the same again."""
    topic, result = message.topic_data[0], response.responses[0].partition_responses[0]
    if result.error_code == 0 and message.transactional_id is None:
        repeats = request.connection.repeats
        if not isinstance(repeats, ProduceRepeats):
            repeats = request.connection.repeats = ProduceRepeats(broker_of(request))
        repeats.learn(request.frame, request.version, topic, durable=message.acks == ALL)


def _append(
    broker: Broker,
    topic: str,
    data: PartitionProduceData,
    acks: int,
    now: int,
    waiting: Waiting,
    refusals: Refusals | None,
) -> PartitionProduceResponse:
    try:
        partition = broker.partition(topic, data.index)
        if refusals and partition.name in refusals:
            raise refusals[partition.name]
        appended = partition.append(
            data.records or b"",  # type: ignore[arg-type]
            durable=acks == ALL,
            now_ms=now,
            transactional=refusals is not None,
        )
    except TidelogError as error:
        return PartitionProduceResponse(data.index, code_of(error), -1, error_message=str(error))
    stamped = partition.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    result = PartitionProduceResponse(
        data.index,
        0,
        appended.base_offset,
        appended.append_time_ms if stamped else -1,
        partition.log.start_offset,
    )
    if acks != 0 and not appended.done:  # acks 1 too, with the flush policy `always`
        waiting.append((appended, result))
    return result


def _durable(response: ProduceResponse, waiting: Waiting) -> Promise[ProduceResponse]:
    answer: Promise[ProduceResponse] = Promise()
    missing = len(waiting)

    def done(result: PartitionProduceResponse, _: None, error: Exception | None) -> None:
        nonlocal missing
        missing -= 1
        if error is not None:
            result.error_code = code_of(error) if isinstance(error, TidelogError) else ErrorCode.UNKNOWN_SERVER_ERROR
            result.error_message = str(error)
            result.base_offset = -1
        if not missing:
            answer.settle(response)

    for appended, result in waiting:
        appended.when_done(partial(done, result))
    return answer


def _refuse_silently(response: ProduceResponse) -> None:
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code:
                raise _UnansweredError(
                    f"{topic.name}-{result.index}, acks=0: {result.error_message or f'error {result.error_code}'}"
                )


class _UnansweredError(TidelogError):
    """An error of a produce that nobody waits for."""


def _refused(message: ProduceRequest, code: int) -> ProduceResponse:
    def refuse(topic: TopicProduceData) -> TopicProduceResponse:
        return TopicProduceResponse(
            topic.name,
            topic.topic_id,
            [PartitionProduceResponse(data.index, code, -1) for data in topic.partition_data],
        )

    return ProduceResponse([refuse(topic) for topic in message.topic_data])
