"""Administration of transactions: listing them, describing them, ending them."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.coordinator import TRANSACTION, Coordinator
from tidelog.client.errors import BrokerError, check
from tidelog.client.producing.identity import take_over
from tidelog.client.producing.transactions import OpenTransaction
from tidelog.model import Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.decide_transactions import (
    DecidedTransaction,
    DecideTransactionsRequest,
    DecideTransactionsResponse,
)
from tidelog.wire.generated.describe_decision import DescribeDecisionRequest, DescribeDecisionResponse
from tidelog.wire.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from tidelog.wire.generated.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from tidelog.wire.generated.end_txn import EndTxnRequest, EndTxnResponse
from tidelog.wire.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tidelog.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")


class TransactionListing(NamedTuple):
    transactional_id: str
    producer_id: ProducerId
    state: str
    node: int


class TransactionDescription(NamedTuple):
    transactional_id: str
    state: str
    """Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit or CompleteAbort."""
    producer_id: ProducerId
    epoch: ProducerEpoch
    timeout_ms: int
    started: TimestampMs
    """-1 if no transaction is open."""
    partitions: Sequence[TopicPartition]


class ProducerInPartition(NamedTuple):
    """An idempotent producer, as a partition remembers it."""

    partition: TopicPartition
    producer_id: ProducerId
    epoch: ProducerEpoch
    last_sequence: int
    last_timestamp: TimestampMs
    coordinator_epoch: int
    transaction_start: Offset
    """Where its open transaction began, or -1."""


class TransactionAdmin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids of all brokers; each broker is asked for those that it coordinates. With filters:
        those in one of the `states`, of one of the producers, open for longer than this, matching the pattern."""
        request = ListTransactionsRequest(list(states), list(producer_ids), longer_than_ms, pattern)

        async def attempt() -> list[TransactionListing]:
            found = []
            if not self._cluster.nodes:
                await self._cluster.start()
            for node in list(self._cluster.nodes):
                response: ListTransactionsResponse = await self._cluster.request(
                    "ListTransactions", request, node=node
                )
                unknown = ", ".join(response.unknown_state_filters)
                check(response.error_code, "listing transactions")
                check(
                    ErrorCode.INVALID_REQUEST if unknown else 0, "listing transactions", f"no such state: {unknown}"
                )
                found += [
                    TransactionListing(row.transactional_id, ProducerId(row.producer_id), row.transaction_state, node)
                    for row in response.transaction_states
                ]
            return sorted(found)

        return await self._cluster.retrying(attempt)

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """The state of a transactional id, and the partitions in its open transaction."""
        coordinator = Coordinator(self._cluster, transactional_id, kind=TRANSACTION)

        async def attempt() -> TransactionDescription:
            request = DescribeTransactionsRequest([transactional_id])
            response: DescribeTransactionsResponse = await coordinator.request("DescribeTransactions", request)
            row = response.transaction_states[0]
            coordinator.check(row.error_code, f"describing the transaction of {transactional_id!r}")
            return TransactionDescription(
                transactional_id,
                row.transaction_state,
                ProducerId(row.producer_id),
                ProducerEpoch(row.producer_epoch),
                row.transaction_timeout_ms,
                row.transaction_start_time_ms,
                [TopicPartition(topic.topic, number) for topic in row.topics for number in topic.partitions],
            )

        return await self._cluster.retrying(attempt)

    async def end(self, transaction: OpenTransaction, *, commit: bool) -> None:
        """End a transaction that another producer has opened. Repeating the call is harmless. The opposite outcome is
        refused afterwards, and both are after the producer was fenced."""
        id_, producer_id, epoch = transaction
        coordinator = Coordinator(self._cluster, id_, kind=TRANSACTION)

        async def attempt() -> None:
            request = EndTxnRequest(id_, producer_id, epoch, commit)
            response: EndTxnResponse = await coordinator.request("EndTxn", request)
            coordinator.check(
                response.error_code, f"{'committing' if commit else 'aborting'} the transaction of {id_!r}"
            )

        await self._cluster.retrying(attempt)

    async def decide(self, scope: str, number: int, transactions: Iterable[OpenTransaction]) -> bool:
        """Commit all of these transactions or none, once for each number of the scope. Returns False if this number,
        or a higher one, was decided before; these transactions are left as they were. Repeating the call is
        harmless. Choose the transactional ids with `id_of_task`: a cluster refuses others (INVALID_REQUEST)."""
        coordinator = Coordinator(self._cluster, scope, kind=TRANSACTION)
        decided = [DecidedTransaction(*each) for each in transactions]

        async def attempt() -> bool:
            request = DecideTransactionsRequest(scope, number, decided)
            response: DecideTransactionsResponse = await coordinator.request("DecideTransactions", request)
            coordinator.check(response.error_code, f"committing number {number} of {scope!r}")
            return response.is_new

        return await self._cluster.retrying(attempt)

    async def decision(self, scope: str) -> int:
        """The highest number of the scope that was decided, or -1."""
        coordinator = Coordinator(self._cluster, scope, kind=TRANSACTION)

        async def attempt() -> int:
            response: DescribeDecisionResponse = await coordinator.request(
                "DescribeDecision", DescribeDecisionRequest(scope)
            )
            coordinator.check(response.error_code, f"asking for the last decision of {scope!r}")
            return response.number

        return await self._cluster.retrying(attempt)

    async def fence(self, transactional_id: str) -> None:
        """Abort the open transaction of the id, and refuse whatever its producer still sends."""
        coordinator = Coordinator(self._cluster, transactional_id, kind=TRANSACTION)
        tried = f"fencing the producer of {transactional_id!r}"
        await take_over(self._cluster, coordinator, transactional_id, tried=tried)

    async def producers(self, partitions: Iterable[TopicPartition]) -> list[ProducerInPartition]:
        """The idempotent producers that these partitions remember, and where their open transactions began."""
        partitions = list(partitions)

        async def attempt() -> list[ProducerInPartition]:
            groups = await self._cluster.by_leader(partitions)
            answers = await asyncio.gather(*(self._producers_of(node, part) for node, part in groups.items()))
            return sorted(producer for answer in answers for producer in answer)

        return await self._cluster.retrying(attempt) if partitions else []

    async def _producers_of(self, node: int, partitions: list[TopicPartition]) -> list[ProducerInPartition]:
        topics: dict[str, TopicRequest] = {}
        for topic, number in partitions:
            topics.setdefault(topic, TopicRequest(topic, [])).partition_indexes.append(number)
        response: DescribeProducersResponse = await self._cluster.request(
            "DescribeProducers", DescribeProducersRequest(list(topics.values())), node=node
        )
        found = []
        for answer in response.topics:
            for row in answer.partitions:
                partition = TopicPartition(answer.name, row.partition_index)
                check(row.error_code, f"asking for the producers of {partition}", row.error_message)
                found += [
                    ProducerInPartition(
                        partition,
                        ProducerId(each.producer_id),
                        ProducerEpoch(each.producer_epoch),
                        each.last_sequence,
                        each.last_timestamp,
                        each.coordinator_epoch,
                        each.current_txn_start_offset,
                    )
                    for each in row.active_producers
                ]
        return found

    async def hanging(self, partitions: Iterable[TopicPartition] | None = None) -> list[ProducerInPartition]:
        """Transactions that are open in a partition but unknown to their coordinator, so nobody will end them."""
        if partitions is None:
            topics = await self._cluster.all_topics()
            partitions = [TopicPartition(topic.name, number) for topic in topics for number in topic.partitions]
        still_open = [each for each in await self.producers(partitions) if each.transaction_start >= 0]
        if not still_open:
            return []
        producer_ids = {each.producer_id for each in still_open}
        known: set[tuple[ProducerId, TopicPartition]] = set()
        for listed in await self.transactions(states=_OPEN_STATES, producer_ids=producer_ids):
            try:
                described = await self.describe(listed.transactional_id)
            except BrokerError as error:
                if error.kafka_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                continue
            known.update((described.producer_id, partition) for partition in described.partitions)
        suspects = [each for each in still_open if (each.producer_id, each.partition) not in known]
        # A transaction may have ended between the two requests. What is open now as well was open all the time.
        now = set(await self.producers({each.partition for each in suspects}))
        return [each for each in suspects if each in now]

    async def abort_in(self, producer: ProducerInPartition) -> None:
        """Write an abort marker into one partition without asking the coordinator: for hanging transactions."""

        async def attempt() -> None:
            topic = WritableTxnMarkerTopic(producer.partition.topic, [producer.partition.partition])
            marker = WritableTxnMarker(
                producer.producer_id, producer.epoch, False, [topic], max(0, producer.coordinator_epoch)
            )
            response: WriteTxnMarkersResponse = await self._cluster.request(
                "WriteTxnMarkers",
                WriteTxnMarkersRequest([marker]),
                node=await self._cluster.leader(producer.partition),
            )
            result = response.markers[0].topics[0].partitions[0]
            check(
                result.error_code, f"aborting what producer {producer.producer_id} has open in {producer.partition}"
            )

        await self._cluster.retrying(attempt)
