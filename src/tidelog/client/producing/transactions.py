"""A producer whose records and committed offsets become visible together or not at all.

    producer = client.transactional_producer("payments-1")
    await producer.init()                       # fences whoever used this id before
    async with producer.transaction():          # commits at its end, aborts on an exception
        await producer.send("payments", b"...")
        await producer.send_offsets({partition: 42}, stream.member)

    new ──init──► ready ──begin──► open ──commit, abort──► ready

With version 2 of transactions (the cluster's feature `transaction.version`) a partition is added to the transaction
by producing to it, and every end brings a new epoch; older clusters need a request for each. If the reply to a commit
is lost, the request is sent again, which is harmless. A commit that is not answered in time may have happened: call
`commit` again, or ask `TransactionAdmin.describe`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import Enum
from itertools import count
from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.consuming.committed import Member
from tidelog.client.coordinator import TRANSACTION, Coordinator
from tidelog.client.errors import BrokerError, DeliveryFailed, TransactionFailed
from tidelog.client.options import ProducerOptions
from tidelog.client.producing.accumulator import Batch, Receipt
from tidelog.client.producing.identity import Identity, take_over
from tidelog.client.producing.producer import Prepared, Producer, is_identity_lost
from tidelog.errors import InvalidInput, TidelogError
from tidelog.model import Offset, ProducerEpoch, ProducerId, TopicPartition, shard_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from tidelog.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from tidelog.wire.generated.end_txn import EndTxnRequest, EndTxnResponse
from tidelog.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

FEATURE, VERSION_2 = "transaction.version", 2
_FATAL = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
# The last versions of transactions 1.
_PRODUCE_1, _ADD_PARTITIONS_1, _ADD_OFFSETS_1, _COMMIT_OFFSETS_1, _END_1 = 11, 3, 3, 4, 4


def id_of_task(scope: str, task: int) -> str:
    """A transactional id whose transactions can be committed by one decision with others of the scope
    (`TransactionAdmin.decide`): in a cluster all of them must have the same coordinator. It is `{scope}-{task}`, with
    a dot and a number behind it if that would have another one."""
    plain = f"{scope}-{task}"
    wanted = shard_of(scope)
    if shard_of(plain) == wanted:
        return plain
    return next(id_ for id_ in (f"{plain}.{number}" for number in count()) if shard_of(id_) == wanted)


class OpenTransaction(NamedTuple):
    """What any client needs to end the transaction: `TransactionAdmin.end`."""

    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch


async def has_version_2(cluster: Cluster) -> bool:
    """Whether the cluster adds a partition to a transaction when a batch is produced to it."""
    return (await cluster.connection()).features.get(FEATURE, 0) >= VERSION_2


class _State(Enum):
    NEW = "not initialized: call init() first"
    READY = "not in a transaction: call begin() first"
    OPEN = "in a transaction"
    ENDING = "ending its transaction: call commit() or abort() again, whichever was called first"
    FENCED = "fenced: another producer has taken over its transactional id"


class TransactionalProducer(Producer):
    """Made by `AsyncClient.transactional_producer`. One transaction at a time."""

    def __init__(
        self, cluster: Cluster, transactional_id: str, options: ProducerOptions, transaction_timeout_ms: int
    ) -> None:
        if not transactional_id:
            raise InvalidInput("a transactional id may not be empty")
        if not options.is_idempotent:
            raise InvalidInput("a transactional producer needs acks='all' and idempotence")
        super().__init__(cluster, options, transactional_id)
        self._timeout_ms = transaction_timeout_ms
        self._coordinator = Coordinator(cluster, transactional_id, kind=TRANSACTION)
        self._state = _State.NEW
        self._ending: bool | None = None
        self._has_version_2 = False
        self._added: set[TopicPartition] = set()
        self._adding = asyncio.Lock()
        self._groups: set[str] = set()
        self._is_used = False  # in this transaction
        self._failure: BaseException | None = None

    # --- the life of a transaction --------------------------------------------------------------------------------

    async def init(self) -> None:
        """Take over the transactional id: its last producer is fenced, and the transaction that it left open is
        aborted."""
        await self._take_over()
        self._has_version_2 = await has_version_2(self._cluster)
        self._requests.at_most = None if self._has_version_2 else _PRODUCE_1
        self._state = _State.READY

    def begin(self) -> None:
        """Begin a transaction. No request is sent before the first record."""
        self._must_be(_State.READY)
        self._state = _State.OPEN
        self._added.clear()
        self._groups.clear()
        self._is_used, self._failure = False, None

    async def commit(self) -> None:
        """Wait until everything is delivered, and commit. Raises `TransactionFailed` if a record was not delivered;
        call `abort` then."""
        if self._state is not _State.ENDING:
            self._must_be(_State.OPEN)
            try:
                await self.flush()
            except DeliveryFailed as error:
                self._failure = self._failure or error
            if self._failure is not None:
                raise TransactionFailed(
                    f"the transaction of {self._transactional_id!r} cannot be committed: {self._failure}; abort it"
                ) from self._failure
        await self._end(committed=True)

    async def abort(self) -> None:
        """Abort the transaction: readers of committed records will not see its records."""
        if self._state is not _State.ENDING:
            self._must_be(_State.OPEN)
            try:
                await self.flush()
            except DeliveryFailed:
                pass
        await self._end(committed=False)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["TransactionalProducer"]:
        """`begin` and `commit` around a block; an exception in it, or a failed delivery, aborts."""
        self.begin()
        try:
            yield self
            await self.commit()
        except BaseException:
            if self.is_open:
                await self.abort()
            raise

    @property
    def is_open(self) -> bool:
        """True in a transaction that neither `commit` nor `abort` was called for."""
        return self._state is _State.OPEN

    async def hand_over(self) -> OpenTransaction:
        """Wait until everything is delivered, and return what another client needs to end the transaction. Close this
        producer afterwards."""
        self._must_be(_State.OPEN)
        try:
            await self.flush()
        except DeliveryFailed as error:
            self._failure = self._failure or error
        if self._failure is not None:
            raise TransactionFailed(
                f"the transaction of {self._transactional_id!r} cannot be handed over: {self._failure}"
            ) from self._failure
        assert self._identity is not None
        assert self._transactional_id is not None
        return OpenTransaction(self._transactional_id, self._identity.producer_id, self._identity.epoch)

    async def send_offsets(self, offsets: Mapping[TopicPartition, Offset], group: str | Member) -> None:
        """Commit the group's next offsets to read with the transaction. With a `Member` (a stream's `member`) the
        group checks that it still is one; with only a name, two readers of the same records may both commit."""
        self._must_be(_State.OPEN)
        member = Member.outsider(group) if isinstance(group, str) else group
        if not offsets:
            return
        self._is_used = True
        if not self._has_version_2 and member.group not in self._groups:
            await self._add_group(member.group)
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (topic, number), offset in offsets.items():
            row = topics.setdefault(topic, TxnOffsetCommitRequestTopic(topic, []))
            row.partitions.append(TxnOffsetCommitRequestPartition(number, offset, -1, ""))
        identity = self._known_identity()
        request = TxnOffsetCommitRequest(
            self._transactional_id or "",
            member.group,
            identity.producer_id,
            identity.epoch,
            member.generation,
            member.member_id,
            member.instance_id,
            list(topics.values()),
        )
        of_group = Coordinator(self._cluster, member.group)

        async def attempt() -> None:
            at_most = None if self._has_version_2 else _COMMIT_OFFSETS_1
            response: TxnOffsetCommitResponse = await of_group.request("TxnOffsetCommit", request, at_most=at_most)
            for topic in response.topics:
                for result in topic.partitions:
                    tried = (
                        f"committing the offset of group {member.group!r} on {topic.name}-{result.partition_index}"
                    )
                    of_group.check(result.error_code, tried)

        try:
            await self._cluster.retrying(attempt)
        except TidelogError as error:
            self._failure = self._failure or error
            self._note_fenced(error)
            raise

    # --- records --------------------------------------------------------------------------------------------------

    def try_send(self, record: Prepared) -> tuple[Receipt, bool] | None:
        self._must_be(_State.OPEN)
        taken = super().try_send(record)
        if taken is not None:
            self._is_used = True
        return taken

    async def _send(self, node: int, batches: list[Batch]) -> None:
        if not self._has_version_2:
            try:
                await self._add_partitions([batch.partition for batch in batches])
            except TidelogError as error:
                for batch in batches:
                    self._failed(batch, error)
                return
        await super()._send(node, batches)

    def _is_worth_another_try(self, batch: Batch, error: TidelogError, age_s: float) -> bool:
        return not is_identity_lost(error) and super()._is_worth_another_try(batch, error, age_s)

    def _doubt_identity(self) -> None:
        """The coordinator gives out identities; the abort that must follow brings a new epoch."""

    def _give_up(self, batch: Batch, error: Exception) -> None:
        self._failure = self._failure or error
        super()._give_up(batch, error)

    async def _own_identity(self) -> Identity:
        return self._known_identity()

    async def close(self, *, flush: bool = True) -> None:
        """An open transaction is left open, for another client to end, or until its timeout."""
        await super().close(flush=flush)

    async def __aexit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        try:
            if error_type is not None and self._state is _State.OPEN:
                await self.abort()
        finally:
            await self.close(flush=error_type is None)

    # --- asking the coordinator -----------------------------------------------------------------------------------

    def _must_be(self, state: _State) -> None:
        if self._state is not state:
            raise InvalidInput(f"the producer of {self._transactional_id!r} is {self._state.value}")

    def _known_identity(self) -> Identity:
        if self._identity is None:
            raise InvalidInput(f"the producer of {self._transactional_id!r} is {_State.NEW.value}")
        return self._identity

    async def _take_over(self, current: Identity | None = None) -> None:
        id_, timeout_ms = self._transactional_id or "", self._timeout_ms
        self._identity = await take_over(
            self._cluster, self._coordinator, id_, timeout_ms=timeout_ms, current=current
        )

    async def _add_partitions(self, partitions: list[TopicPartition]) -> None:
        async with self._adding:
            topics: dict[str, AddPartitionsToTxnTopic] = {}
            for partition in partitions:
                if partition not in self._added:
                    topic = topics.setdefault(partition.topic, AddPartitionsToTxnTopic(partition.topic, []))
                    topic.partitions.append(partition.partition)
            if not topics:
                return
            identity = self._known_identity()
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._transactional_id or "",
                v3_and_below_producer_id=identity.producer_id,
                v3_and_below_producer_epoch=identity.epoch,
                v3_and_below_topics=list(topics.values()),
            )

            async def attempt() -> None:
                response: AddPartitionsToTxnResponse = await self._coordinator.request(
                    "AddPartitionsToTxn", request, at_most=_ADD_PARTITIONS_1
                )
                for topic in response.results_by_topic_v3_and_below:
                    for result in topic.results_by_partition:
                        tried = f"adding {topic.name}-{result.partition_index} to the transaction"
                        self._coordinator.check(result.partition_error_code, tried)

            await self._cluster.retrying(attempt)
            self._added.update(partitions)

    async def _add_group(self, group: str) -> None:
        identity = self._known_identity()
        request = AddOffsetsToTxnRequest(self._transactional_id or "", identity.producer_id, identity.epoch, group)

        async def attempt() -> None:
            response: AddOffsetsToTxnResponse = await self._coordinator.request(
                "AddOffsetsToTxn", request, at_most=_ADD_OFFSETS_1
            )
            self._coordinator.check(response.error_code, f"adding group {group!r} to the transaction")

        await self._cluster.retrying(attempt)
        self._groups.add(group)

    async def _end(self, *, committed: bool) -> None:
        if self._ending is not None and self._ending != committed:
            raise InvalidInput(f"the producer of {self._transactional_id!r} is {_State.ENDING.value}")
        if self._is_used:
            self._state, self._ending = _State.ENDING, committed
            try:
                await self._ask_to_end(committed)
            except BrokerError as error:
                if self._note_fenced(error) or not error.retriable:
                    self._ending = None
                raise
            if self._failure is not None and not self._has_version_2:
                # It is not known which sequence numbers were used. With a new epoch they start at 0 again.
                await self._take_over(self._known_identity())
        self._state, self._ending = _State.READY, None

    async def _ask_to_end(self, committed: bool) -> None:
        identity = self._known_identity()
        request = EndTxnRequest(self._transactional_id or "", identity.producer_id, identity.epoch, committed)
        tried = f"{'committing' if committed else 'aborting'} the transaction of {self._transactional_id!r}"

        async def attempt() -> EndTxnResponse:
            at_most = None if self._has_version_2 else _END_1
            response: EndTxnResponse = await self._coordinator.request("EndTxn", request, at_most=at_most)
            self._coordinator.check(response.error_code, tried)
            return response

        response = await self._cluster.retrying(attempt)
        if self._has_version_2 and response.producer_id >= 0:
            self._identity = Identity(ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch))

    def _note_fenced(self, error: TidelogError) -> bool:
        if isinstance(error, BrokerError) and error.kafka_code in _FATAL:
            self._state = _State.FENCED
            return True
        return False
