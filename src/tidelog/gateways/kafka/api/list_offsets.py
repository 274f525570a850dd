"""ListOffsets (2), v1 to v11: offsets by time.

timestamp   offset
>= 0        the first record at or after that time; -1 if there is none
-1          the end of the log (the last stable offset for read_committed)
-2          the start of the log
-3          the first record with the largest timestamp
-4          the earliest on local storage: the start of the log
-5          the latest in tiered storage: there is none (-1)
-6          the earliest that is not yet in tiered storage: the start of the log

For read_committed a record at or behind the last stable offset does not exist.
"""

from tidelog.broker.partition import LEADER_EPOCH, Partition
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.api.fetch import READ_COMMITTED, check_epoch
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
NONE = (-1, -1, -1)  # timestamp, offset, leader epoch


def handle(request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse:
    broker = broker_of(request)
    committed = message.isolation_level == READ_COMMITTED
    topics = []
    for topic in message.topics:
        results = []
        for wanted in topic.partitions:
            try:
                result = _look_up(broker.partition(topic.name, wanted.partition_index), wanted, committed)
                if request.version < 4:
                    result.leader_epoch = -1
                results.append(result)
            except TidelogError as error:
                results.append(ListOffsetsPartitionResponse(wanted.partition_index, code_of(error)))
        topics.append(ListOffsetsTopicResponse(topic.name, results))
    return ListOffsetsResponse(topics=topics)


def _look_up(partition: Partition, wanted: ListOffsetsPartition, committed: bool) -> ListOffsetsPartitionResponse:
    check_epoch(wanted.current_leader_epoch)
    log, at = partition.log, wanted.timestamp
    timestamp, offset, epoch = NONE
    if at == LATEST:
        end = partition.last_stable_offset if committed else partition.high_watermark
        offset, epoch = end, LEADER_EPOCH
    elif at in (EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD):
        offset, epoch = log.start_offset, LEADER_EPOCH
    elif at == MAX_TIMESTAMP or at >= 0:
        found = log.max_timestamp() if at == MAX_TIMESTAMP else log.offset_for_time(at)
        if found is not None and not (committed and found.offset >= partition.last_stable_offset):
            timestamp, offset, epoch = found
    elif at != LATEST_TIERED:
        return ListOffsetsPartitionResponse(wanted.partition_index, ErrorCode.UNSUPPORTED_VERSION)
    return ListOffsetsPartitionResponse(wanted.partition_index, 0, timestamp, offset, epoch)
