"""DeleteRecords (21), v0 to v2: move the start of partitions up. Offset -1 means the high watermark."""

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.generated.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1


def handle(request: Request, message: DeleteRecordsRequest) -> DeleteRecordsResponse:
    broker = broker_of(request)
    topics = []
    for topic in message.topics:
        results = []
        for wanted in topic.partitions:
            try:
                partition = broker.partition(topic.name, wanted.partition_index)
                offset = partition.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
                start = partition.log.delete_before(offset)
            except TidelogError as error:
                results.append(DeleteRecordsPartitionResult(wanted.partition_index, -1, code_of(error)))
            else:
                results.append(DeleteRecordsPartitionResult(wanted.partition_index, start, 0))
        topics.append(DeleteRecordsTopicResult(topic.name, results))
    return DeleteRecordsResponse(topics=topics)
