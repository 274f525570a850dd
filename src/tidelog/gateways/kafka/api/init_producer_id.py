"""InitProducerId (22), v0 to v6: an id for an idempotent producer.

Ids are reserved in blocks by a durable write, so that no id is given out twice, also after a crash. A producer that
names an id of its own (v3+) has met an unknown or expired producer somewhere and gets the next epoch of that id, or a
new id when epochs run out. Transactional ids are refused.
"""

from collections.abc import Awaitable

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

LAST_EPOCH = 0x7FFF - 1


def handle(
    request: Request, message: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if message.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if message.producer_id >= 0 and 0 <= message.producer_epoch < LAST_EPOCH:
        return InitProducerIdResponse(producer_id=message.producer_id, producer_epoch=message.producer_epoch + 1)
    return _new(request)


async def _new(request: Request) -> InitProducerIdResponse:
    try:
        producer_id = await broker_of(request).producer_ids.next()
    except TidelogError as error:
        return InitProducerIdResponse(error_code=code_of(error))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
