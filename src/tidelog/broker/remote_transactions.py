"""Transactions whose partitions and coordinator are on different brokers.

The coordinator writes its markers to the leaders of the partitions (`Markers`). A leader asks the coordinator before
the first batch of a transaction is appended (`Verification`): is this transaction open, and is the partition in it?
It does not ask again while the log itself shows that the transaction is open. A broker that leads the partition and
believes to be the coordinator asks itself in the same way: by the time of the append it may have been replaced.

Between the coordinator's answer and the append, a marker may arrive that ends the transaction. The batch would then
begin a transaction that nobody ends. So each marker cancels the verifications of its producer that are under way
(`Partition.begin_verification`), and their batches are refused, as in Kafka (KIP-890).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from tidelog.broker.coordination.transactions import Ending
from tidelog.broker.coordination.transactions import errors as refused
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.ownership import NOBODY, Coordinated, NotLeader, Ownership
from tidelog.broker.peers import Peers
from tidelog.broker.topics import Topics
from tidelog.broker.transactional_produce import NotInTransaction, Part, Refusals
from tidelog.errors import TidelogError
from tidelog.model import ProducerEpoch, ProducerId, TopicPartition
from tidelog.promise import Promise
from tidelog.wire.error_codes import ErrorCode, name_of
from tidelog.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidelog.wire.generated.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

if TYPE_CHECKING:
    from tidelog.broker.partition import Partition
    from tidelog.broker.transaction_shards import TransactionShards
    from tidelog.broker.transactions import Transactions

_ENDED = frozenset({0, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})  # a newer producer has ended it
_REFUSALS: dict[int, type[refused.TransactionError]] = {
    each.kafka_code: each
    for each in (
        refused.ProducerFenced,
        refused.InvalidProducerEpoch,
        refused.InvalidProducerIdMapping,
        refused.ConcurrentTransactions,
        refused.PolicyViolation,
    )
}
_NOT_IN_TRANSACTION = frozenset({ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE})


_LANES = 8  # an answer that waits for the end of a transaction holds up those behind it on its connection


class MarkersRefused(TidelogError):
    """Some markers of a request were not written: write them again, after looking up the leaders."""

    retriable = True


def _by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


class Markers:
    """Writes markers to partitions that other brokers lead."""

    def __init__(self, peers: Peers, topics: Topics, ownership: Ownership) -> None:
        self._peers = peers
        self._topics = topics
        self._ownership = ownership
        self._writing: set[asyncio.Task[None]] = set()

    def leader_of(self, name: str, index: int) -> int:
        topic = self._topics.find(name)
        return NOBODY if topic is None else self._ownership.leader(topic.topic_id, index).broker_id

    def write(
        self, broker_id: int, ending: Ending, partitions: Sequence[TopicPartition], coordinator_epoch: int
    ) -> Promise[None]:
        """A promise that the markers are durable. It fails if some are not, or if that is unknown."""
        written: Promise[None] = Promise()
        task = asyncio.create_task(self._write(broker_id, ending, partitions, coordinator_epoch, written))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return written

    async def _write(
        self,
        broker_id: int,
        ending: Ending,
        partitions: Sequence[TopicPartition],
        coordinator_epoch: int,
        written: Promise[None],
    ) -> None:
        topics = [WritableTxnMarkerTopic(topic, indexes) for topic, indexes in _by_topic(partitions).items()]
        marker = WritableTxnMarker(ending.producer_id, ending.epoch, ending.committed, topics, coordinator_epoch)

        def is_still_coordinator() -> bool:
            """What a coordinator that was replaced still sends might end the producer's next transaction."""
            owner = self._ownership.coordinator(Coordinated.TRANSACTIONAL_ID, ending.transactional_id)
            return owner == (self._ownership.node_id, coordinator_epoch)

        try:
            reply = await self._peers.ask(
                broker_id,
                "WriteTxnMarkers",
                WriteTxnMarkersRequest([marker]),
                at_most=1,
                lane="markers",
                if_still=is_still_coordinator,
            )
            failed = [
                f"{topic.name}-{each.partition_index}: {name_of(each.error_code)}"
                for result in reply.markers
                for topic in result.topics
                for each in topic.partitions
                if each.error_code not in _ENDED and self._topics.find(topic.name) is not None
            ]
            if failed:
                raise MarkersRefused(f"broker {broker_id} refused markers: {', '.join(failed[:5])}")
        except Exception as error:
            written.fail(error)
        else:
            written.settle(None)

    async def close(self) -> None:
        for task in self._writing:
            task.cancel()
        await asyncio.gather(*self._writing, return_exceptions=True)


class Verification:
    """Asks coordinators about the transactions that write to partitions of this broker."""

    def __init__(self, peers: Peers, ownership: Ownership, find: "Callable[[str, int], Partition | None]") -> None:
        self._peers = peers
        self._ownership = ownership
        self._find = find

    def has_begun(self, parts: Sequence[Part]) -> bool:
        """True if the transaction is open in the logs of all of these partitions: then nobody need be asked."""
        first = parts[0]
        return all(
            (part.producer_id, part.epoch) == (first.producer_id, first.epoch)
            and self._is_open_in(self._find(*part.partition), part)
            for part in parts
        )

    @staticmethod
    def _is_open_in(partition: "Partition | None", part: Part) -> bool:
        return partition is not None and partition.log.is_in_transaction(
            ProducerId(part.producer_id), ProducerEpoch(part.epoch)
        )

    async def refusals(
        self,
        transactions: "Transactions | TransactionShards",
        transactional_id: str,
        parts: Sequence[Part],
        *,
        adds: bool,
    ) -> Refusals:
        """The partitions whose batches must not be appended, with the reasons. No await may come between this and the
        appends. `transactions` is asked if this broker is the coordinator."""
        refusals: Refusals = {}
        guards: list[tuple[Partition, Part, object]] = []
        first = parts[0]
        for part in parts:
            partition = self._find(*part.partition)
            if partition is None:
                refusals[part.partition] = NotLeader(f"this broker does not serve {part.partition}")
            elif (part.producer_id, part.epoch) != (first.producer_id, first.epoch):
                refusals[part.partition] = refused.InvalidRequest("the batches of a request have different producers")
            elif not self._is_open_in(partition, part):
                guards.append((partition, part, partition.begin_verification(part.producer_id)))
        if not guards:
            return refusals
        why: TidelogError = refused.CoordinatorNotAvailable("the transaction could not be verified")
        codes: dict[TopicPartition, int] | None = None
        try:
            codes = await self._ask(transactions, transactional_id, [part for _, part, _ in guards], adds=adds)
        except TidelogError as error:
            why = refused.CoordinatorNotAvailable(f"the transaction could not be verified: {error}")
        finally:
            kept = [partition.end_verification(part.producer_id, guard) for partition, part, guard in guards]
        for (partition, part, _), is_guarded in zip(guards, kept, strict=True):
            if codes is None:
                refusals[part.partition] = why
            elif self._find(*part.partition) is not partition:  # markers may have come to another leader
                refusals[part.partition] = NotLeader(f"the leader of {part.partition} has just changed")
            elif code := codes.get(part.partition, int(ErrorCode.UNKNOWN_SERVER_ERROR)):
                kind = _REFUSALS.get(code, refused.CoordinatorNotAvailable)
                if code in _NOT_IN_TRANSACTION:
                    kind = NotInTransaction
                refusals[part.partition] = kind(f"the coordinator refused {part.partition}: {name_of(code)}")
            elif not is_guarded:
                refusals[part.partition] = refused.ConcurrentTransactions(
                    f"a transaction of producer {part.producer_id} has just ended in {part.partition}"
                )
        return refusals

    async def _ask(
        self,
        transactions: "Transactions | TransactionShards",
        transactional_id: str,
        parts: Sequence[Part],
        *,
        adds: bool,
    ) -> dict[TopicPartition, int]:
        """The error code of each partition; 0 if it is in the transaction."""
        first = parts[0]
        partitions = tuple(part.partition for part in parts)
        coordinator = self._ownership.coordinator(Coordinated.TRANSACTIONAL_ID, transactional_id)
        if coordinator.broker_id == self._ownership.node_id:
            question = m.AddPartitions(transactional_id, first.producer_id, first.epoch, partitions, not adds)
            answer = transactions.ask(question)
            if isinstance(answer, Promise):
                answer = await answer
            codes: dict[TopicPartition, int] = dict.fromkeys(partitions, answer.error_code)
            codes.update(dict.fromkeys(answer.missing, int(ErrorCode.TRANSACTION_ABORTABLE)))
            return codes
        transaction = AddPartitionsToTxnTransaction(
            transactional_id,
            first.producer_id,
            first.epoch,
            not adds,
            [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in _by_topic(partitions).items()],
        )
        reply = await self._peers.ask(
            coordinator.broker_id,
            "AddPartitionsToTxn",
            AddPartitionsToTxnRequest([transaction]),
            lane=crc32(transactional_id.encode()) % _LANES,
        )
        return {
            TopicPartition(topic.name, each.partition_index): reply.error_code or each.partition_error_code
            for result in reply.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
        } or dict.fromkeys(partitions, reply.error_code)
