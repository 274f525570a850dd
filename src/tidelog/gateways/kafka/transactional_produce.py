"""Produce with a transactional id: a batch of a transaction is only taken for a partition that is in it.

Produce  partition not in the transaction                   transaction being completed
v3-v10   INVALID_TXN_STATE                                  NOT_ENOUGH_REPLICAS, which these clients retry
v11      TRANSACTION_ABORTABLE                              the same
v12+     it is added, durably, before the batch is appended  waits; CONCURRENT_TRANSACTIONS if that takes long

A producer's requests are appended in the order in which they came: those behind one that waits for its partitions to
be added wait too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from struct import Struct
from typing import TypeAlias

from tidelog.broker.coordination.transactions import errors as refused
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.coordination.transactions.errors import TransactionError
from tidelog.broker.transactions import PlaceInLine, Transactions
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.model import TopicPartition
from tidelog.promise import Promise
from tidelog.records.batch import HEADER_SIZE, TRANSACTIONAL_BIT
from tidelog.wire.generated.produce import ProduceRequest, ProduceResponse

Refusals: TypeAlias = Mapping[TopicPartition, TidelogError]
Reply: TypeAlias = ProduceResponse | Awaitable[ProduceResponse] | None
Produce: TypeAlias = Callable[[Request, ProduceRequest, Refusals | None], Reply]

_PEEK = Struct(">21xh20xqh")  # attributes, producer id and epoch
_ABORTABLE_FROM, _ADDS_FROM = 11, 12


class NotEnoughReplicas(TidelogError):
    """How clients before version 12 are told to try again."""

    kafka_code = 19
    retriable = True


class _Part:
    """What a request has for one partition of the transaction."""

    __slots__ = ("epoch", "partition", "producer_id")

    def __init__(self, partition: TopicPartition, producer_id: int, epoch: int) -> None:
        self.partition = partition
        self.producer_id = producer_id
        self.epoch = epoch


def in_transaction(request: Request, message: ProduceRequest, produce: Produce) -> Reply:
    parts = _parts(request, message)
    if not parts:
        return produce(request, message, {})
    transactions = broker_of(request).transactions
    refusals, missing = _checked(transactions, request, message, parts)
    producer_id = parts[0].producer_id
    line = transactions.wait_in_line(producer_id)
    if line is None:
        if not missing:
            return produce(request, message, refusals)
        line = transactions.start_line(producer_id)
    # A task of its own: if the client hangs up, those behind it in the line must not wait for ever.
    task = asyncio.get_running_loop().create_task(_in_line(line, request, message, parts, produce))
    return asyncio.shield(task)


async def _in_line(
    line: PlaceInLine, request: Request, message: ProduceRequest, parts: list[_Part], produce: Produce
) -> ProduceResponse:
    transactions = broker_of(request).transactions
    try:
        await line.turn()
        code = 0
        _, missing = _checked(transactions, request, message, parts)
        if missing:
            first = missing[0]
            partitions = tuple(part.partition for part in missing)
            reply = transactions.ask(
                m.AddPartitions(message.transactional_id or "", first.producer_id, first.epoch, partitions)
            )
            if isinstance(reply, Promise):
                reply = await reply
            code = reply.error_code
        refusals, missing = _checked(transactions, request, message, parts)
        for part in missing:
            refusals[part.partition] = _code_to_error(code, request)
        produced = produce(request, message, refusals)
    finally:
        line.leave()
    if isinstance(produced, Awaitable):
        return await produced
    return produced  # type: ignore[return-value]  # None with acks=0, which is not answered


def _parts(request: Request, message: ProduceRequest) -> list[_Part]:
    broker, by_id = broker_of(request), request.version >= 13
    parts = []
    for topic in message.topic_data:
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        for data in topic.partition_data:
            records = data.records
            if name is None or not isinstance(records, bytes | bytearray | memoryview) or len(records) < HEADER_SIZE:
                continue
            attributes, producer_id, epoch = _PEEK.unpack_from(records)
            if attributes & TRANSACTIONAL_BIT and broker.find(name, data.index) is not None:
                parts.append(_Part(TopicPartition(name, data.index), producer_id, epoch))
    return parts


def _checked(
    transactions: Transactions, request: Request, message: ProduceRequest, parts: list[_Part]
) -> tuple[dict[TopicPartition, TidelogError], list[_Part]]:
    """What is refused, and what has to be added to the transaction first."""
    refusals: dict[TopicPartition, TidelogError] = {}
    missing = []
    for part in parts:
        partition = part.partition
        try:
            is_open = transactions.coordinator.is_open_for(
                message.transactional_id or "", part.producer_id, part.epoch, partition
            )
        except TransactionError as error:
            if isinstance(error, refused.ConcurrentTransactions) and request.version >= _ADDS_FROM:
                missing.append(part)  # adding it waits until the last transaction is completed
            else:
                refusals[partition] = _for_producer(error, request)
            continue
        if not is_open:
            if request.version >= _ADDS_FROM:
                missing.append(part)
            else:
                kind = (
                    refused.TransactionAbortable
                    if request.version >= _ABORTABLE_FROM
                    else refused.InvalidTransactionState
                )
                refusals[partition] = kind(f"{partition} is not in the transaction")
    return refusals, missing


def _for_producer(error: TransactionError, request: Request) -> TidelogError:
    if isinstance(error, refused.ProducerFenced):
        return refused.InvalidProducerEpoch(str(error))
    if error.retriable and request.version < _ADDS_FROM:
        return NotEnoughReplicas(str(error))
    return error


def _code_to_error(code: int, request: Request) -> TidelogError:
    kinds: tuple[type[TransactionError], ...] = (
        refused.ProducerFenced,
        refused.InvalidProducerIdMapping,
        refused.ConcurrentTransactions,
        refused.CoordinatorNotAvailable,
    )
    kind = next((kind for kind in kinds if kind.kafka_code == code), refused.CoordinatorNotAvailable)
    return _for_producer(kind("the partition could not be added to the transaction"), request)
