"""WriteTxnMarkers (27), v1 to v2: an operator ends transactions that hang, partition by partition.

The coordinator of this broker writes its markers itself; this is for transactions that it does not know. A partition
in which the producer has nothing open is answered without an error, and nothing is written.
"""

from collections.abc import Awaitable

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of, now_ms
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.storage.log import Appended
from tidelog.wire.generated.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Waiting = list[tuple[Appended, WritableTxnMarkerPartitionResult]]


def handle(
    request: Request, message: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
    broker, now, waiting = broker_of(request), now_ms(), Waiting()
    results = []
    for marker in message.markers:
        topics = []
        for topic in marker.topics:
            partitions = []
            for index in topic.partition_indexes:
                result = WritableTxnMarkerPartitionResult(index, 0)
                partitions.append(result)
                try:
                    appended = broker.partition(topic.name, index).end_transaction(
                        ProducerId(marker.producer_id),
                        ProducerEpoch(marker.producer_epoch),
                        committed=marker.transaction_result,
                        coordinator_epoch=marker.coordinator_epoch,
                        now_ms=now,
                    )
                except TidelogError as error:
                    result.error_code = code_of(error)
                else:
                    waiting.append((appended, result))
            topics.append(WritableTxnMarkerTopicResult(topic.name, partitions))
        results.append(WritableTxnMarkerResult(marker.producer_id, topics))
    return _durable(WriteTxnMarkersResponse(results), waiting)


async def _durable(response: WriteTxnMarkersResponse, waiting: Waiting) -> WriteTxnMarkersResponse:
    for appended, result in waiting:
        try:
            await appended
        except TidelogError as error:
            result.error_code = code_of(error)
    return response
