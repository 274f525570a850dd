"""TransactionEnded (10008, Tidelog's own), v0: a transaction that had offsets of a group has ended. Only brokers send
it.

The coordinator of the transaction tells the coordinator of the group, which reads the group's offsets from the store.
Without topics it reads all of them. Repeating the request is harmless.
"""

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.promise import Promise
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.transaction_ended import TransactionEndedRequest, TransactionEndedResponse


def handle(
    request: Request, message: TransactionEndedRequest
) -> TransactionEndedResponse | Promise[TransactionEndedResponse]:
    broker = broker_of(request)
    if broker.others is None:  # the coordinator of all transactions is this broker
        return TransactionEndedResponse(error_code=int(ErrorCode.INVALID_REQUEST))
    ended = broker.groups.transaction_ended(message.transactional_id, message.group_id, message.topics)
    return ended.then(lambda code: TransactionEndedResponse(error_code=code))
