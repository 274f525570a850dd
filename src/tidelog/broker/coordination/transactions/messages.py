"""Requests and replies of the transaction coordinator: one frozen dataclass each per Kafka API, with the fields of
its newest version. A gateway translates them field by field. Flags stand for differences of older versions.

`error_code` 0 means no error. A fenced producer gets PRODUCER_FENCED; for versions that do not have it the gateway
sends INVALID_PRODUCER_EPOCH.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from tidelog.broker.coordination.transactions.errors import NO_ERROR, CoordinatorNotAvailable
from tidelog.metadata.rows import OffsetRow
from tidelog.model import TopicPartition

NO_ID = -1
NO_EPOCH = -1
NOT_AVAILABLE = CoordinatorNotAvailable.kafka_code


# InitProducerId (22), with a transactional id


@dataclass(frozen=True, slots=True)
class InitProducerId:
    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_ID  # of a producer that continues after an error
    epoch: int = NO_EPOCH
    enable_two_phase_commit: bool = False
    keep_prepared: bool = False


@dataclass(frozen=True, slots=True)
class InitProducerIdReply:
    error_code: int = NO_ERROR
    producer_id: int = NO_ID
    epoch: int = NO_EPOCH

    def failed(self, error_code: int) -> "InitProducerIdReply":
        return InitProducerIdReply(error_code)


# AddPartitionsToTxn (24), one of its transactions


@dataclass(frozen=True, slots=True)
class AddPartitions:
    transactional_id: str
    producer_id: int
    epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False  # only check whether they are in the transaction


@dataclass(frozen=True, slots=True)
class AddPartitionsReply:
    """`missing`, with `verify_only`: the partitions that are not in the transaction."""

    error_code: int = NO_ERROR
    missing: tuple[TopicPartition, ...] = ()

    def failed(self, error_code: int) -> "AddPartitionsReply":
        return AddPartitionsReply(error_code)


# AddOffsetsToTxn (25)


@dataclass(frozen=True, slots=True)
class AddOffsets:
    transactional_id: str
    producer_id: int
    epoch: int
    group_id: str


@dataclass(frozen=True, slots=True)
class AddOffsetsReply:
    error_code: int = NO_ERROR

    def failed(self, error_code: int) -> "AddOffsetsReply":
        return AddOffsetsReply(error_code)


# TxnOffsetCommit (28), after the group coordinator has accepted it


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    transactional_id: str
    producer_id: int
    epoch: int
    group_id: str
    offsets: tuple[OffsetRow, ...]
    adds_group: bool = True  # versions 5+; in earlier versions AddOffsets must have come first


@dataclass(frozen=True, slots=True)
class CommitOffsetsReply:
    error_code: int = NO_ERROR

    def failed(self, error_code: int) -> "CommitOffsetsReply":
        return CommitOffsetsReply(error_code)


# EndTxn (26)


@dataclass(frozen=True, slots=True)
class EndTransaction:
    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    bumps_epoch: bool = True  # versions 5+: the next transaction has a new epoch, which is in the reply


@dataclass(frozen=True, slots=True)
class EndTransactionReply:
    error_code: int = NO_ERROR
    producer_id: int = NO_ID
    epoch: int = NO_EPOCH

    def failed(self, error_code: int) -> "EndTransactionReply":
        return EndTransactionReply(error_code)


# DescribeTransactions (65)


@dataclass(frozen=True, slots=True)
class DescribeTransactions:
    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    transactional_id: str
    error_code: int = NO_ERROR
    state: str = ""
    timeout_ms: int = 0
    started_ms: int = -1
    producer_id: int = NO_ID
    epoch: int = NO_EPOCH
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeTransactionsReply:
    transactions: tuple[DescribedTransaction, ...]

    def failed(self, error_code: int) -> "DescribeTransactionsReply":
        return DescribeTransactionsReply(tuple(replace(each, error_code=error_code) for each in self.transactions))


# ListTransactions (66)


@dataclass(frozen=True, slots=True)
class ListTransactions:
    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    longer_than_ms: int = -1
    pattern: str | None = None


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class ListTransactionsReply:
    error_code: int = NO_ERROR
    unknown_states: tuple[str, ...] = ()
    transactions: tuple[ListedTransaction, ...] = ()

    def failed(self, error_code: int) -> "ListTransactionsReply":
        return ListTransactionsReply(error_code)


# DecideTransactions (10002)


class EndedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class DecideTransactions:
    """Commit all of these transactions or none, once for each `number` of a `scope`: repeating it changes nothing."""

    scope: str
    number: int
    transactions: tuple[EndedTransaction, ...]


@dataclass(frozen=True, slots=True)
class DecideTransactionsReply:
    """`is_new`: these transactions are committed. Else the number was decided before, and they are unchanged."""

    error_code: int = NO_ERROR
    is_new: bool = False

    def failed(self, error_code: int) -> "DecideTransactionsReply":
        return DecideTransactionsReply(error_code)


# DescribeDecision (10003)


@dataclass(frozen=True, slots=True)
class DescribeDecision:
    scope: str


@dataclass(frozen=True, slots=True)
class DescribeDecisionReply:
    """The highest number that was decided, or -1."""

    error_code: int = NO_ERROR
    number: int = -1

    def failed(self, error_code: int) -> "DescribeDecisionReply":
        return DescribeDecisionReply(error_code)


Request: TypeAlias = (
    InitProducerId
    | AddPartitions
    | AddOffsets
    | CommitOffsets
    | EndTransaction
    | DescribeTransactions
    | ListTransactions
    | DecideTransactions
    | DescribeDecision
)
Reply: TypeAlias = (
    InitProducerIdReply
    | AddPartitionsReply
    | AddOffsetsReply
    | CommitOffsetsReply
    | EndTransactionReply
    | DescribeTransactionsReply
    | ListTransactionsReply
    | DecideTransactionsReply
    | DescribeDecisionReply
)

_REPLIES: dict[type[Request], Reply] = {
    InitProducerId: InitProducerIdReply(),
    AddPartitions: AddPartitionsReply(),
    AddOffsets: AddOffsetsReply(),
    CommitOffsets: CommitOffsetsReply(),
    EndTransaction: EndTransactionReply(),
    ListTransactions: ListTransactionsReply(),
    DecideTransactions: DecideTransactionsReply(),
    DescribeDecision: DescribeDecisionReply(),
}


def refusal(request: Request, error_code: int) -> Reply:
    """The reply to a request that is refused."""
    if isinstance(request, DescribeTransactions):
        described = tuple(DescribedTransaction(id_, error_code) for id_ in request.transactional_ids)
        return DescribeTransactionsReply(described)
    return _REPLIES[type(request)].failed(error_code)
