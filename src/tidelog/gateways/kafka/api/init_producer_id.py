"""InitProducerId (22), v0 to v6: an id for an idempotent producer, or the next epoch of a transactional one.

Ids are reserved in blocks by a durable write, so that no id is given out twice, even after a crash. A producer that
sends the id it has (v3+) was told somewhere that it is unknown or expired; it gets the next epoch of that id, or a
new id when the epochs are used up.

With a transactional id, the coordinator assigns the epoch: each request fences all earlier producers with that id. If
one of them left a transaction open, the transaction is aborted first, and the reply waits for that. Two-phase commit
(v6) is not enabled: a request for it is answered with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, and one to keep a
prepared transaction with UNSUPPORTED_VERSION.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.gateways.kafka.coordinator_requests import ask_transactions, fencing_known
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

LAST_EPOCH = 0x7FFF - 1
_FENCED_FROM = 4


def handle(
    request: Request, message: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if message.transactional_id is not None:
        return _transactional(request, message, message.transactional_id)
    if message.producer_id >= 0 and 0 <= message.producer_epoch < LAST_EPOCH:
        return InitProducerIdResponse(producer_id=message.producer_id, producer_epoch=message.producer_epoch + 1)
    return _new(request)


def _transactional(
    request: Request, message: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    question = m.InitProducerId(
        transactional_id,
        message.transaction_timeout_ms,
        message.producer_id,
        message.producer_epoch,
        message.enable2_pc,
        message.keep_prepared_txn,
    )

    def translate(reply: m.InitProducerIdReply) -> InitProducerIdResponse:
        code = fencing_known(reply.error_code, request, since=_FENCED_FROM)
        return InitProducerIdResponse(error_code=code, producer_id=reply.producer_id, producer_epoch=reply.epoch)

    return ask_transactions(request, question, translate)


async def _new(request: Request) -> InitProducerIdResponse:
    try:
        producer_id = await broker_of(request).producer_ids.next()
    except TidelogError as error:
        return InitProducerIdResponse(error_code=code_of(error))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
