"""DecideTransactions (10002, Tidelog's own), v0: commit many transactions with one decision.

A client that writes a numbered batch of work with many producers, each in a transaction of its own, ends the
transactions with this request: all are committed or none, and the number of the batch is stored in the same write. A
request with the same number, or a lower one of the same scope, is answered as decided before and changes nothing.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_transactions
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

    return ask_transactions(request, m.DecideTransactions(message.scope, message.number, transactions), translate)
