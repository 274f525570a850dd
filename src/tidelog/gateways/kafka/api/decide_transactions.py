"""DecideTransactions (10002, Tidelog's own), v0: commit many transactions with one decision.

Whoever writes a numbered batch of work with many producers, each in a transaction of its own, ends them here: all are
committed or none, and the number of the batch is kept with that, in one write. Asked again with the same number, or a
lower one of the same scope, it says that this was decided before and touches nothing.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.transaction_requests import ask
from tidelog.wire.generated.decide_transactions import DecideTransactionsRequest, DecideTransactionsResponse


def handle(
    request: Request, message: DecideTransactionsRequest
) -> DecideTransactionsResponse | Awaitable[DecideTransactionsResponse]:
    transactions = tuple(
        m.EndedTransaction(each.transactional_id, each.producer_id, each.producer_epoch)
        for each in message.transactions
    )

    def translate(reply: m.DecideTransactionsReply) -> DecideTransactionsResponse:
        return DecideTransactionsResponse(error_code=reply.error_code, is_new=reply.is_new)

    return ask(request, m.DecideTransactions(message.scope, message.number, transactions), translate)
