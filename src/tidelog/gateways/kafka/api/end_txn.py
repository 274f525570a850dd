"""EndTxn (26), v0 to v5: commit or abort. Answered when the outcome is durable and its markers are in the logs.

Whoever knows transactional id, producer id and epoch may end a transaction, over any connection. From v5 on
(transactions of version 2) the epoch is bumped with every end, and the reply tells what to go on with; ending the
same transaction the same way again, with its old epoch, is answered with that once more.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.transaction_requests import ask, for_version
from tidelog.wire.generated.end_txn import EndTxnRequest, EndTxnResponse

_FENCED_FROM, _BUMPS_FROM = 2, 5


def handle(request: Request, message: EndTxnRequest) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    bumps = request.version >= _BUMPS_FROM
    question = m.EndTransaction(
        message.transactional_id, message.producer_id, message.producer_epoch, message.committed, bumps
    )

    def translate(reply: m.EndTransactionReply) -> EndTxnResponse:
        code = for_version(reply.error_code, request, _FENCED_FROM)
        if not bumps:
            return EndTxnResponse(error_code=code)
        return EndTxnResponse(error_code=code, producer_id=reply.producer_id, producer_epoch=reply.epoch)

    return ask(request, question, translate)
