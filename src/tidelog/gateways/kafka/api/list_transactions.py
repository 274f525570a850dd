"""ListTransactions (66), v0 to v2: the transactional ids that the client may describe, filtered by state, producer
id, duration (v1+) and pattern (RE2, v2+)."""

from collections.abc import Awaitable

from tidelog.broker.admission import ResourceKind
from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_transactions
from tidelog.gateways.kafka.permissions import visible
from tidelog.wire.generated.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


def handle(
    request: Request, message: ListTransactionsRequest
) -> ListTransactionsResponse | Awaitable[ListTransactionsResponse]:
    question = m.ListTransactions(
        tuple(message.state_filters),
        tuple(message.producer_id_filters),
        message.duration_filter,
        message.transactional_id_pattern,
    )

    def translate(reply: m.ListTransactionsReply) -> ListTransactionsResponse:
        shown = visible(
            request, ResourceKind.TRANSACTIONAL_ID, reply.transactions, lambda each: each.transactional_id
        )
        return ListTransactionsResponse(
            error_code=reply.error_code,
            unknown_state_filters=list(reply.unknown_states),
            transaction_states=[TransactionState(*each) for each in shown],
        )

    return ask_transactions(request, question, translate)
