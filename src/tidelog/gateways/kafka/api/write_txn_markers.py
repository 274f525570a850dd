"""WriteTxnMarkers (27), v1 to v2: end hanging transactions, partition by partition. Meant for operators.

This broker's coordinator writes its markers itself; this request is for transactions that it does not know. For a
partition in which the producer has no open transaction it succeeds and writes nothing.
"""

from functools import partial

from tidelog.broker.shell import now_ms
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.promise import Promise, after_all
from tidelog.storage.log import Appended
from tidelog.wire.generated.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Waiting = list[tuple[Promise[Appended], WritableTxnMarkerPartitionResult]]


def handle(
    request: Request, message: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Promise[WriteTxnMarkersResponse]:
    broker, now = broker_of(request), now_ms()
    waiting: Waiting = []
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
                    if isinstance(appended, Promise):
                        waiting.append((appended, result))
            topics.append(WritableTxnMarkerTopicResult(topic.name, partitions))
        results.append(WritableTxnMarkerResult(marker.producer_id, topics))
    response = WriteTxnMarkersResponse(results)
    kept = [(appended, partial(_told, result)) for appended, result in waiting]
    return after_all(kept, lambda: response) if kept else response


def _told(result: WritableTxnMarkerPartitionResult, _: Appended | None, error: Exception | None) -> None:
    if error is not None:
        result.error_code = code_of(error)
