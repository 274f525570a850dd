"""Produce requests with a transactional id: batches are accepted for partitions of the producer's open transaction.

A partition that is not in the transaction yet is refused or, if the client leaves adding it to the broker (KIP-890,
`adds`), added first. A producer's batches are appended in the order in which they arrived, even if the first of them
has to wait until its partition is added.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from tidelog.broker.coordination.transactions import errors as refused
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.coordination.transactions.errors import TransactionError
from tidelog.broker.shell import to_the_end
from tidelog.broker.transactions import PlaceInLine, Transactions
from tidelog.errors import TidelogError
from tidelog.model import TopicPartition
from tidelog.promise import Promise
from tidelog.records.batch import HEADER_SIZE, LENGTH_END, TRANSACTIONAL_BIT, ReadBuffer, header_struct

if TYPE_CHECKING:
    from tidelog.broker.remote_transactions import Verification
    from tidelog.broker.transaction_shards import TransactionShards

R = TypeVar("R")

Refusals: TypeAlias = dict[TopicPartition, TidelogError]
_PRODUCER_FIELDS = header_struct("length", "attributes", "producer_id", "producer_epoch")


class NotInTransaction(refused.InvalidTransactionState):
    """The client has to add the partition to the transaction first."""


class Part(NamedTuple):
    """A partition that a transactional request writes to, with the producer's id and epoch."""

    partition: TopicPartition
    producer_id: int
    epoch: int


def part_of(partition: TopicPartition, batch: ReadBuffer) -> Part | None:
    """None if this is not exactly one transactional batch: `Partition.append` accepts it or says what is wrong."""
    if len(batch) < HEADER_SIZE:
        return None
    length, attributes, producer_id, epoch = _PRODUCER_FIELDS.unpack_from(batch)
    if length + LENGTH_END != len(batch) or not attributes & TRANSACTIONAL_BIT:
        return None
    return Part(partition, producer_id, epoch)


def in_transaction(
    transactions: "Transactions | TransactionShards",
    transactional_id: str,
    parts: Sequence[Part],
    produce: Callable[[Refusals], R | Awaitable[R]],
    *,
    adds: bool,
    verification: "Verification | None" = None,
) -> R | Awaitable[R]:
    """The result of `produce`, which is called with the refused partitions, after the producer's earlier requests.
    With `verification`, the coordinator may be another broker."""
    if not parts:
        return produce({})
    producer_id = parts[0].producer_id
    line = transactions.wait_in_line(producer_id)
    work: Coroutine[Any, Any, R]
    if verification is not None:
        if line is None:
            if verification.has_begun(parts):
                return produce({})
            line = transactions.start_line(producer_id)
        work = _verified_in_line(line, verification, transactions, transactional_id, parts, produce, adds)
    else:
        if line is None:
            refusals, missing = _checked(transactions, transactional_id, parts, adds)
            if not missing:
                return produce(refusals)
            line = transactions.start_line(producer_id)
        work = _in_line(line, transactions, transactional_id, parts, produce, adds)
    # A task of its own: if the client disconnects, later requests in the line must not wait forever.
    return to_the_end(work)


async def _verified_in_line(
    line: PlaceInLine,
    verification: "Verification",
    transactions: "Transactions | TransactionShards",
    transactional_id: str,
    parts: Sequence[Part],
    produce: Callable[[Refusals], R | Awaitable[R]],
    adds: bool,
) -> R:
    try:
        await line.turn()
        produced = produce(await verification.refusals(transactions, transactional_id, parts, adds=adds))
    finally:
        line.leave()
    return await produced if isinstance(produced, Awaitable) else produced


async def _in_line(
    line: PlaceInLine,
    transactions: "Transactions | TransactionShards",
    transactional_id: str,
    parts: Sequence[Part],
    produce: Callable[[Refusals], R | Awaitable[R]],
    adds: bool,
) -> R:
    try:
        await line.turn()
        code = 0
        _, missing = _checked(transactions, transactional_id, parts, adds)
        if missing:
            first = missing[0]
            partitions = tuple(part.partition for part in missing)
            reply = transactions.ask(m.AddPartitions(transactional_id, first.producer_id, first.epoch, partitions))
            if isinstance(reply, Promise):
                reply = await reply
            code = reply.error_code
        refusals, missing = _checked(transactions, transactional_id, parts, adds)
        for part in missing:
            refusals[part.partition] = _not_added(code)
        produced = produce(refusals)
    finally:
        line.leave()
    return await produced if isinstance(produced, Awaitable) else produced


def _checked(
    transactions: "Transactions | TransactionShards", transactional_id: str, parts: Sequence[Part], adds: bool
) -> tuple[Refusals, list[Part]]:
    """The partitions that are refused, and those that have to be added to the transaction first."""
    refusals: Refusals = {}
    missing = []
    for part in parts:
        partition = part.partition
        try:
            is_open = transactions.is_open_for(transactional_id, part.producer_id, part.epoch, partition)
        except TransactionError as error:
            if isinstance(error, refused.ConcurrentTransactions) and adds:
                missing.append(part)  # adding the partition waits until the last transaction is completed
            else:
                refusals[partition] = error
            continue
        if not is_open:
            if adds:
                missing.append(part)
            else:
                refusals[partition] = NotInTransaction(f"{partition} is not in the transaction")
    return refusals, missing


def _not_added(code: int) -> TidelogError:
    kinds: tuple[type[TransactionError], ...] = (
        refused.ProducerFenced,
        refused.InvalidProducerIdMapping,
        refused.ConcurrentTransactions,
        refused.PolicyViolation,
        refused.CoordinatorNotAvailable,
    )
    kind = next((kind for kind in kinds if kind.kafka_code == code), refused.CoordinatorNotAvailable)
    return kind("the partition could not be added to the transaction")
