"""ListOffsets (2), v1 to v11: offsets by time.

timestamp   offset
>= 0        the first record at or after that time; -1 if there is none
-1          the end of the log (the last stable offset for read_committed)
-2          the start of the log
-3          the first record with the largest timestamp
-4          the earliest offset in local storage: the start of the log
-5          the latest offset in tiered storage: there is none (-1)
-6          the earliest offset that waits to be moved to tiered storage: there is none (-1)

For read_committed, records at or after the last stable offset do not exist.
"""

from tidelog.broker.ownership import check_epoch
from tidelog.broker.partition import Partition
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.promise import Promise, after_all
from tidelog.storage.log import TimestampOffset
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
READ_COMMITTED = 1
Coming = list[tuple[Promise[TimestampOffset | None], "_Answer"]]


def handle(request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse | Promise[ListOffsetsResponse]:
    broker = broker_of(request)
    committed = message.isolation_level == READ_COMMITTED
    coming: Coming = []
    topics = []
    for topic in message.topics:
        results = []
        for wanted in topic.partitions:
            result = ListOffsetsPartitionResponse(wanted.partition_index, 0, -1, -1, -1)
            results.append(result)
            try:
                partition = broker.partition(topic.name, wanted.partition_index)
                answer = _Answer(partition, result, committed, tells_epoch=request.version >= 4)
                found = answer.look_up(wanted)
            except TidelogError as error:
                result.error_code = code_of(error)
            else:
                if found is not None:
                    coming.append((found, answer))
        topics.append(ListOffsetsTopicResponse(topic.name, results))
    response = ListOffsetsResponse(topics=topics)
    if not coming:
        return response
    return after_all([(found, answer.came) for found, answer in coming], lambda: response)


class _Answer:
    """Looks up the offset of one partition and puts it into `result`."""

    __slots__ = ("_committed", "_partition", "_result", "_tells_epoch")

    def __init__(
        self, partition: Partition, result: ListOffsetsPartitionResponse, committed: bool, *, tells_epoch: bool
    ) -> None:
        self._partition = partition
        self._result = result
        self._committed = committed
        self._tells_epoch = tells_epoch

    def look_up(self, wanted: ListOffsetsPartition) -> Promise[TimestampOffset | None] | None:
        """A promise to wait for; None if `result` is complete."""
        partition, at = self._partition, wanted.timestamp
        check_epoch(wanted.current_leader_epoch, partition.leader_epoch)
        if at == LATEST:
            end = partition.last_stable_offset if self._committed else partition.high_watermark
            self._tell(-1, end, partition.leader_epoch)
        elif at in (EARLIEST, EARLIEST_LOCAL):
            self._tell(-1, partition.log.start_offset, partition.leader_epoch)
        elif at == MAX_TIMESTAMP or at >= 0:
            log = partition.log
            found = log.max_timestamp() if at == MAX_TIMESTAMP else log.offset_for_time(at)
            if isinstance(found, Promise):
                return found
            self.came(found, None)
        elif at not in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            self._result.error_code = ErrorCode.UNSUPPORTED_VERSION
        return None

    def came(self, found: TimestampOffset | None, error: Exception | None) -> None:
        if error is not None:
            self._result.error_code = code_of(error)
        elif found is not None and not (self._committed and found.offset >= self._partition.last_stable_offset):
            self._tell(*found)

    def _tell(self, timestamp: int, offset: int, epoch: int) -> None:
        self._result.timestamp, self._result.offset = timestamp, offset
        if self._tells_epoch:
            self._result.leader_epoch = epoch
