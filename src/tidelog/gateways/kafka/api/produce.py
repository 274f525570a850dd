"""Produce (0), v3 to v13: append batches. Topic ids replace names from v13.

acks 0: no reply; an error closes the connection, since there is no other way to report it. acks 1: the batch is in
the log. acks -1 (all): the batch is durable according to the topic's flush policy; `min.insync.replicas` has no
effect, since there is one replica. Each partition has its own result: its one batch is appended, or refused as a
whole. From v8 on the result names the bad records (at most `validation.MOST_NAMED`).

With a transactional id, a batch is accepted for a partition that is in the open transaction
(`transactional_produce`):

version  partition not in the transaction                   transaction being completed
v3-v10   INVALID_TXN_STATE                                  NOT_ENOUGH_REPLICAS, which these clients retry
v11      TRANSACTION_ABORTABLE                              the same
v12+     it is added, durably, before the batch is appended  waits; CONCURRENT_TRANSACTIONS if that takes long
"""

from collections.abc import Awaitable
from functools import partial

from tidelog.broker.broker import Broker
from tidelog.broker.coordination.transactions import errors as refused
from tidelog.broker.partition import Partition
from tidelog.broker.transactional_produce import NotInTransaction, Part, Refusals, in_transaction, part_of
from tidelog.errors import RefusedRecords, TidelogError, fresh
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.gateways.kafka.produce_repeats import ProduceRepeats
from tidelog.model import TimestampType, TopicPartition
from tidelog.promise import Promise, after_all
from tidelog.records.batch import ReadBuffer
from tidelog.records.validation import MOST_NAMED
from tidelog.storage.log import Appended
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

ALL = -1
_BY_ID_FROM, _ABORTABLE_FROM, _ADDS_FROM = 13, 11, 12
Waiting = list[tuple[Promise[Appended], Partition, PartitionProduceResponse, ReadBuffer | None]]


def handle(request: Request, message: ProduceRequest) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    transactional_id = message.transactional_id
    if transactional_id is None:
        return _produce(request, message, None)
    broker = broker_of(request)
    return in_transaction(
        broker.transactions,
        transactional_id,
        _parts(request, message),
        lambda refusals: _produce(request, message, refusals),
        adds=request.version >= _ADDS_FROM,
        verification=None if broker.others is None else broker.others.verification,
    )


def _produce(
    request: Request, message: ProduceRequest, refusals: Refusals | None
) -> ProduceResponse | Promise[ProduceResponse] | None:
    """`refusals`: the errors of partitions that are not in the transaction; None without a transaction."""
    broker = broker_of(request)
    waiting: Waiting = []
    acks = message.acks
    if acks not in (0, 1, ALL):
        return _refused(message, ErrorCode.INVALID_REQUIRED_ACKS)
    by_id = request.version >= _BY_ID_FROM
    if refusals:
        refusals = {partition: _for_producer(error, request) for partition, error in refusals.items()}
    responses = []
    named = 0
    for topic in message.topic_data:
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        results = [
            _append(broker, name, data, acks, waiting, refusals)
            if name is not None
            else PartitionProduceResponse(data.index, ErrorCode.UNKNOWN_TOPIC_ID, -1)
            for data in topic.partition_data
        ]
        responses.append(TopicProduceResponse(topic.name, topic.topic_id, results))
        for result in results:
            if result.record_errors:  # the reply to many small batches must not be larger than the batches
                result.record_errors = result.record_errors[: max(0, MOST_NAMED - named)]
                named += len(result.record_errors)
    response = ProduceResponse(responses)
    if acks != 0 and len(responses) == 1 == len(responses[0].partition_responses):
        _learn(request, message, response)
    if acks == 0:
        _refuse_silently(response)
        return None
    if not waiting:
        return response
    kept = [
        (appended, partial(_told, broker, partition, result, batch)) for appended, partition, result, batch in waiting
    ]
    return after_all(kept, lambda: response)


def _learn(request: Request, message: ProduceRequest, response: ProduceResponse) -> None:
    """Remember a request that succeeded for its one partition: the client is likely to repeat it."""
    topic, result = message.topic_data[0], response.responses[0].partition_responses[0]
    if result.error_code == 0 and message.transactional_id is None:
        repeats = request.connection.repeats
        if not isinstance(repeats, ProduceRepeats):
            repeats = request.connection.repeats = ProduceRepeats(broker_of(request), request.session)
        repeats.learn(request.frame, request.version, topic, durable=message.acks == ALL)


def _append(
    broker: Broker,
    topic: str,
    data: PartitionProduceData,
    acks: int,
    waiting: Waiting,
    refusals: Refusals | None,
) -> PartitionProduceResponse:
    try:
        partition = broker.partition(topic, data.index)
        if refusals and partition.name in refusals:
            raise fresh(refusals[partition.name])
        appended = partition.append(
            data.records or b"",  # type: ignore[arg-type]
            durable=acks == ALL,
            transactional=refusals is not None,
        )
    except TidelogError as error:
        broker.batch_refused(TopicPartition(topic, data.index), data.records, error)
        records = error.records if isinstance(error, RefusedRecords) else ()
        return PartitionProduceResponse(
            data.index,
            code_of(error),
            -1,
            record_errors=[BatchIndexAndErrorMessage(index, reason) for index, reason in records],
            error_message=str(error),
        )
    result = PartitionProduceResponse(data.index, 0, -1)
    if not isinstance(appended, Promise):
        _tell(partition, result, appended)
    elif acks != 0:  # acks 1 too, with the flush policy `always`
        # Only in a cluster can a log forget a batch whose append has failed.
        waiting.append((appended, partition, result, None if broker.ownership.is_sole else data.records))
    return result


def _tell(partition: Partition, result: PartitionProduceResponse, appended: Appended) -> None:
    result.base_offset = appended.base_offset
    if partition.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
        result.log_append_time_ms = appended.append_time_ms
    result.log_start_offset = partition.log.start_offset


def _told(
    broker: Broker,
    partition: Partition,
    result: PartitionProduceResponse,
    batch: ReadBuffer | None,
    appended: Appended | None,
    error: Exception | None,
) -> None:
    if appended is not None:
        _tell(partition, result, appended)
    else:
        broker.batch_refused(partition.name, batch, error)
        result.error_code = code_of(error)
        result.error_message = str(error)


# Transactions


class NotEnoughReplicas(TidelogError):
    """The error with which clients below v12 retry."""

    kafka_code = 19
    retriable = True


def _parts(request: Request, message: ProduceRequest) -> list[Part]:
    broker, by_id = broker_of(request), request.version >= _BY_ID_FROM
    parts = []
    for topic in message.topic_data:
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        for data in topic.partition_data:
            if name is None or not isinstance(data.records, bytes | bytearray | memoryview):
                continue
            part = part_of(TopicPartition(name, data.index), data.records)
            if part is not None and broker.takes_transactions(name, data.index):
                parts.append(part)
    return parts


def _for_producer(error: TidelogError, request: Request) -> TidelogError:
    if isinstance(error, refused.ProducerFenced):
        return refused.InvalidProducerEpoch(str(error))
    if isinstance(error, NotInTransaction) and request.version >= _ABORTABLE_FROM:
        return refused.TransactionAbortable(str(error))
    if error.retriable and request.version < _ADDS_FROM:
        return NotEnoughReplicas(str(error))
    return error


# Refusals


def _refuse_silently(response: ProduceResponse) -> None:
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code:
                raise _UnansweredError(
                    f"{topic.name}-{result.index}, acks=0: {result.error_message or f'error {result.error_code}'}"
                )


class _UnansweredError(TidelogError):
    """The error of a produce request with acks=0, which has no reply."""


def _refused(message: ProduceRequest, code: int) -> ProduceResponse:
    def refuse(topic: TopicProduceData) -> TopicProduceResponse:
        return TopicProduceResponse(
            topic.name,
            topic.topic_id,
            [PartitionProduceResponse(data.index, code, -1) for data in topic.partition_data],
        )

    return ProduceResponse([refuse(topic) for topic in message.topic_data])
