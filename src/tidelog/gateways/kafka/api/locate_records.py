"""LocateRecords (10006, Tidelog's own), v0: which pieces of which objects hold a range of a partition, in a cluster.

For programs that read many records and can reach the object store themselves, such as Spark's tasks. The URL of the
store is what DescribeLogDirs has as the directory. Keys of bundles begin with `b/`, those of segments with `s/`. The
leader answers, with at most some hundred pieces; the reply's `end_offset` says how far they reach. Everything from
`tail_offset` on is in the leader's memory, and better fetched from there. With read_committed (isolation level 1) the
range ends at the last stable offset, and the reply has the aborted transactions, with the offsets of their markers.

Refused with OFFSET_OUT_OF_RANGE if the range begins outside the log, and with INVALID_REQUEST by a broker that is not
part of a cluster.
"""

from tidelog.broker.topics import UnknownTopicId
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.locate_records import (
    LocatedAbortedTransaction,
    LocatedPiece,
    LocateRecordsRequest,
    LocateRecordsResponse,
)

_READ_COMMITTED = 1


def handle(request: Request, message: LocateRecordsRequest) -> LocateRecordsResponse:
    broker = broker_of(request)
    try:
        partition = broker.partition(message.topic, message.partition_index)
        if broker.topics.get(message.topic).topic_id != message.topic_id:
            raise UnknownTopicId(f"the topic {message.topic} has another id")
        committed = message.isolation_level == _READ_COMMITTED
        found = partition.log.locate(message.start_offset, message.end_offset, committed=committed)
    except TidelogError as error:
        return LocateRecordsResponse(error_code=code_of(error), error_message=str(error))
    if found is None:
        return LocateRecordsResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="this broker is not part of a cluster: its records are in files of its machine",
        )
    return LocateRecordsResponse(
        end_offset=found.end_offset,
        tail_offset=found.tail_offset,
        pieces=[LocatedPiece(*piece) for piece in found.pieces],
        aborted_transactions=[LocatedAbortedTransaction(*one[:3]) for one in found.aborted],
    )
