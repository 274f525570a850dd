"""DeleteRecords (21), v0 to v2: delete records below an offset. Offset -1 means the high watermark. Refused for
topics that are only compacted: their records stay until newer records with the same keys replace them.

Answered when the new start offsets are durable; all partitions share a few syncs."""

from functools import partial

from tidelog.broker.topics import PolicyViolation
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.model import Offset
from tidelog.promise import Promise, after_all
from tidelog.wire.generated.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1


def handle(request: Request, message: DeleteRecordsRequest) -> DeleteRecordsResponse | Promise[DeleteRecordsResponse]:
    broker = broker_of(request)
    response = DeleteRecordsResponse(topics=[])
    deletions: list[tuple[DeleteRecordsPartitionResult, Promise[Offset]]] = []
    for topic in message.topics:
        results = []
        for wanted in topic.partitions:
            result = DeleteRecordsPartitionResult(wanted.partition_index, -1, 0)
            results.append(result)
            try:
                partition = broker.partition(topic.name, wanted.partition_index)
                if partition.config.compacted and not partition.config.expiring:
                    raise PolicyViolation(f"{partition.name} is only compacted: its cleanup.policy has no delete")
                offset = partition.high_watermark if wanted.offset == HIGH_WATERMARK else wanted.offset
                deletions.append((result, partition.log.delete_before(offset)))
            except TidelogError as error:
                result.error_code = code_of(error)
        response.topics.append(DeleteRecordsTopicResult(topic.name, results))
    kept = [(moved, partial(_told, result)) for result, moved in deletions]
    return after_all(kept, lambda: response) if kept else response


def _told(result: DeleteRecordsPartitionResult, start: Offset | None, error: Exception | None) -> None:
    if start is not None:
        result.low_watermark = start
    else:
        result.error_code = code_of(error)
