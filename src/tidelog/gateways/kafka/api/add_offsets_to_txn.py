"""AddOffsetsToTxn (25), v0 to v4: a transaction is about to commit offsets of a group."""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.transaction_requests import ask, for_version
from tidelog.wire.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FENCED_FROM = 2


def handle(
    request: Request, message: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    question = m.AddOffsets(message.transactional_id, message.producer_id, message.producer_epoch, message.group_id)

    def translate(reply: m.AddOffsetsReply) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=for_version(reply.error_code, request, _FENCED_FROM))

    return ask(request, question, translate)
