"""AddOffsetsToTxn (25), v0 to v4: add a group to a transaction that is about to commit offsets of it."""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_transactions, fencing_known
from tidelog.wire.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FENCED_FROM = 2


def handle(
    request: Request, message: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    question = m.AddOffsets(message.transactional_id, message.producer_id, message.producer_epoch, message.group_id)

    def translate(reply: m.AddOffsetsReply) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=fencing_known(reply.error_code, request, since=_FENCED_FROM))

    return ask_transactions(request, question, translate)
