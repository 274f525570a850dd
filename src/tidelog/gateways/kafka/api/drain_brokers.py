"""DrainBrokers (10005, Tidelog's own), v0: brokers of a cluster that must own nothing, until that is taken back.

The wish is stored; it outlives the brokers. The answer does not wait until a broker has given everything away:
clients look at the leaders. It names all drained brokers, also those that are not up. A request without brokers only
asks for that. Any broker answers.
"""

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.drain_brokers import DrainBrokersRequest, DrainBrokersResponse

_MOST_AT_ONCE = 100
"""Brokers in a request: each is a statement of the database."""


async def handle(request: Request, message: DrainBrokersRequest) -> DrainBrokersResponse:
    broker = broker_of(request)
    if broker.others is None:
        if not message.brokers:
            return DrainBrokersResponse()
        return DrainBrokersResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="this broker is not part of a cluster: no other broker could take its partitions",
        )
    if len(message.brokers) > _MOST_AT_ONCE:
        return DrainBrokersResponse(
            error_code=ErrorCode.INVALID_REQUEST, error_message=f"name at most {_MOST_AT_ONCE} brokers at once"
        )
    for each in message.brokers:
        try:
            await broker.others.drain(each.broker_id, each.is_drained)
        except TidelogError as error:
            return DrainBrokersResponse(error_code=code_of(error), error_message=str(error))
    await broker.others.refresh()
    return DrainBrokersResponse(drained=sorted(broker.ownership.drained))
