"""`TransactionShards`: the transactional ids that a broker of a cluster coordinates. Has the interface of
`Transactions`.

One decision for many transactions is one write with one fence: all of them must be in the shard of the decision's
scope. Clients choose their ids so (`client.producing.transactions.id_of_task`).
"""

from typing import Any

import structlog

from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.coordination.transactions.coordinator import TransactionBounds
from tidelog.broker.coordination.transactions.errors import (
    CoordinatorLoading,
    InvalidRequest,
    NotCoordinator,
    TransactionError,
)
from tidelog.broker.shards import CoordinatorShards
from tidelog.broker.transactions import ProducerLines, Transactions
from tidelog.model import TopicPartition, shard_of

log = structlog.get_logger("tidelog.transactions")


class TransactionShards(CoordinatorShards[Transactions], ProducerLines):
    def __init__(self, bounds: TransactionBounds) -> None:
        CoordinatorShards.__init__(self, bounds)
        ProducerLines.__init__(self)

    def ask(self, request: m.Request) -> Any:  # noqa: ANN401
        """As `Transactions.ask`."""
        if isinstance(request, m.ListTransactions):
            return self._list(request)
        if isinstance(request, m.DescribeTransactions):
            ids = request.transactional_ids
            return self._each(
                ids,
                lambda id_, those: self._ask(id_, m.DescribeTransactions(tuple(ids[each] for each in those))),
                lambda reply: reply.transactions,
                m.DescribeTransactionsReply,
            )
        if isinstance(request, m.DescribeDecision):
            return self._ask(request.scope, request)
        if isinstance(request, m.DecideTransactions):
            return self._decide(request)
        return self._ask(request.transactional_id, request)

    def _ask(self, id_: str, request: m.Request) -> Any:  # noqa: ANN401
        shard = self._shard(id_)
        return m.refusal(request, self._missing(id_).kafka_code) if shard is None else shard.ask(request)

    def _missing(self, id_: str) -> TransactionError:
        if self._is_loading(id_):
            return CoordinatorLoading(f"the transaction of {id_!r} is being loaded")
        return NotCoordinator(f"another broker owns the transaction of {id_!r}")

    def _decide(self, request: m.DecideTransactions) -> Any:  # noqa: ANN401
        here = shard_of(request.scope)
        strange = [each.transactional_id for each in request.transactions if shard_of(each.transactional_id) != here]
        if strange:
            log.warning(
                "a decision was refused: its transactional ids are in other shards than its scope",
                scope=request.scope,
                transactional_ids=strange[:5],
            )
            return m.refusal(request, InvalidRequest.kafka_code)
        return self._ask(request.scope, request)

    def _list(self, request: m.ListTransactions) -> m.ListTransactionsReply:
        """Incomplete lists are not told: whoever looks for hanging transactions would find too many."""
        if self.is_loading:
            return m.ListTransactionsReply(CoordinatorLoading.kafka_code)
        replies: list[m.ListTransactionsReply] = [shard.ask(request) for shard in self]
        refused = next((reply for reply in replies if reply.error_code), None)
        if refused is not None or not replies:
            return refused or m.ListTransactionsReply()
        listed = tuple(each for reply in replies for each in reply.transactions)
        return m.ListTransactionsReply(unknown_states=replies[0].unknown_states, transactions=listed)

    def is_open_for(self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition) -> bool:
        shard = self._shard(transactional_id)
        if shard is None:
            raise self._missing(transactional_id)
        return shard.is_open_for(transactional_id, producer_id, epoch, partition)

    def is_known_open(self, producer_id: int, partition: TopicPartition) -> bool:
        return any(shard.is_known_open(producer_id, partition) for shard in self)
