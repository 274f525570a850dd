"""InitProducerId (22), v0 to v6: an id for an idempotent producer, or the next epoch of a transactional one.

Ids are reserved in blocks by a durable write, so that no id is given out twice, also after a crash. A producer that
names an id of its own (v3+) has met an unknown or expired producer somewhere and gets the next epoch of that id, or a
new id when epochs run out.

With a transactional id the epoch is the coordinator's: whoever asks fences all who asked before. If those have left a
transaction open it is aborted first, and the answer waits for that. Two-phase commit (v6) is not enabled: asking for
it is TRANSACTIONAL_ID_AUTHORIZATION_FAILED, keeping a prepared transaction UNSUPPORTED_VERSION.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.gateways.kafka.transaction_requests import ask, for_version
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
        code = for_version(reply.error_code, request, _FENCED_FROM)
        return InitProducerIdResponse(error_code=code, producer_id=reply.producer_id, producer_epoch=reply.epoch)

    return ask(request, question, translate)


async def _new(request: Request) -> InitProducerIdResponse:
    try:
        producer_id = await broker_of(request).producer_ids.next()
    except TidelogError as error:
        return InitProducerIdResponse(error_code=code_of(error))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
