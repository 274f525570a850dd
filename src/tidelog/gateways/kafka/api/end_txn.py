"""EndTxn (26), v0 to v5: commit or abort. Answered when the outcome is durable and its markers are in the logs.

A client that knows the transactional id, producer id and epoch may end the transaction over any connection. From v5
on (transactions of version 2) every end bumps the epoch, and the reply has the producer id and epoch to continue
with. If a client repeats the request with the old epoch and the same outcome, it gets the same reply again.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_transactions, fencing_known
from tidelog.wire.generated.end_txn import EndTxnRequest, EndTxnResponse

_FENCED_FROM, _BUMPS_FROM = 2, 5


def handle(request: Request, message: EndTxnRequest) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    bumps = request.version >= _BUMPS_FROM
    question = m.EndTransaction(
        message.transactional_id, message.producer_id, message.producer_epoch, message.committed, bumps
    )

    def translate(reply: m.EndTransactionReply) -> EndTxnResponse:
        code = fencing_known(reply.error_code, request, since=_FENCED_FROM)
        if not bumps:
            return EndTxnResponse(error_code=code)
        return EndTxnResponse(error_code=code, producer_id=reply.producer_id, producer_epoch=reply.epoch)

    return ask_transactions(request, question, translate)
