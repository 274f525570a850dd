"""ListTransactions (66), v0 to v2: transactional ids by state, producer id, duration (v1+) and pattern (RE2, v2+)."""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.transaction_requests import ask
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
        return ListTransactionsResponse(
            error_code=reply.error_code,
            unknown_state_filters=list(reply.unknown_states),
            transaction_states=[TransactionState(*each) for each in reply.transactions],
        )

    return ask(request, question, translate)
