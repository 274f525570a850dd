"""What the coordinators of groups and of transactions tell each other about offsets, if they are on different brokers
(`offsets_in_transactions` describes why). A broker that is both asks itself."""

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING
from zlib import crc32

from tidelog.broker.coordination.transactions import Ending
from tidelog.broker.coordination.transactions import errors as refused
from tidelog.broker.coordination.transactions.messages import CommitOffsets, CommitOffsetsReply
from tidelog.broker.coordination.transactions.transaction import EndedGroup
from tidelog.broker.ownership import Coordinated, Ownership
from tidelog.broker.peers import Peers
from tidelog.errors import TidelogError
from tidelog.promise import Promise, result_of
from tidelog.wire.error_codes import ErrorCode, name_of
from tidelog.wire.generated.store_transaction_offsets import (
    StoredOffsetsPartition,
    StoredOffsetsTopic,
    StoreTransactionOffsetsRequest,
)
from tidelog.wire.generated.transaction_ended import TransactionEndedRequest

if TYPE_CHECKING:
    from tidelog.broker.transaction_shards import TransactionShards

TransactionEnded = Callable[[str, str, Collection[str] | None], Promise[int]]

_LANES = 8  # an answer that waits for the end of a transaction holds up those behind it on its connection
_ELSEWHERE = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class GroupNotTold(TidelogError):
    """The coordinator of a group has not heard of the end of a transaction: tell the one that there is then."""

    retriable = True


class OffsetRequests:
    """Asks coordinators of transactions to take offsets of groups."""

    def __init__(self, peers: Peers, ownership: Ownership, transactions: "TransactionShards") -> None:
        """`transactions` are those that this broker coordinates."""
        self._peers = peers
        self._ownership = ownership
        self._transactions = transactions

    async def ask(self, question: CommitOffsets) -> CommitOffsetsReply:
        """Raises PeerUnavailable."""
        coordinator = self._ownership.coordinator(Coordinated.TRANSACTIONAL_ID, question.transactional_id).broker_id
        if coordinator == self._ownership.node_id:
            reply: CommitOffsetsReply = await result_of(self._transactions.ask(question))
            code = reply.error_code
        else:
            answer = await self._peers.ask(
                coordinator,
                "StoreTransactionOffsets",
                _request(question),
                lane=("offsets", crc32(question.transactional_id.encode()) % _LANES),
            )
            code = answer.error_code
        if code in _ELSEWHERE:  # the client has asked the coordinator of the group, which is the right one
            code = refused.CoordinatorNotAvailable.kafka_code
        return CommitOffsetsReply(code)


def _request(question: CommitOffsets) -> StoreTransactionOffsetsRequest:
    topics: dict[str, StoredOffsetsTopic] = {}
    for row in question.offsets:
        topic = topics.setdefault(row.topic, StoredOffsetsTopic(row.topic, []))
        topic.partitions.append(StoredOffsetsPartition(row.partition, row.offset, row.leader_epoch, row.metadata))
    return StoreTransactionOffsetsRequest(
        question.transactional_id,
        question.producer_id,
        question.epoch,
        question.group_id,
        question.adds_group,
        question.offsets[0].committed_ms if question.offsets else 0,
        list(topics.values()),
    )


class EndNotices:
    """Tells coordinators of groups that a transaction which had offsets of theirs has ended."""

    def __init__(self, peers: Peers, ownership: Ownership, ended_here: TransactionEnded) -> None:
        """`ended_here` is called for groups that this broker coordinates."""
        self._peers = peers
        self._ownership = ownership
        self._ended_here = ended_here
        self._telling: set[asyncio.Task[None]] = set()

    def tell(self, ending: Ending, ended: EndedGroup) -> Promise[None]:
        """A promise that the coordinator of the group knows what the transaction has committed. It fails if that is
        unknown: tell it again."""
        told: Promise[None] = Promise()
        task = asyncio.get_running_loop().create_task(self._tell(ending.transactional_id, ended, told))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
        return told

    async def _tell(self, transactional_id: str, ended: EndedGroup, told: Promise[None]) -> None:
        group, topics = ended
        try:
            coordinator = self._ownership.coordinator(Coordinated.GROUP, group).broker_id
            if coordinator == self._ownership.node_id:
                code = await self._ended_here(transactional_id, group, topics)
            else:
                request = TransactionEndedRequest(group, transactional_id, None if topics is None else list(topics))
                answer = await self._peers.ask(coordinator, "TransactionEnded", request, lane="notices")
                code = answer.error_code
            if code:
                raise GroupNotTold(f"the coordinator of group {group!r}, broker {coordinator}: {name_of(code)}")
        except Exception as error:
            told.fail(error)
        else:
            told.settle(None)

    async def close(self) -> None:
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)
