"""OffsetForLeaderEpoch (23), v2 to v4: where a leader epoch ends, for consumers whose partition has a new leader.

The current epoch ends at the log's end. An earlier one, or one in which nothing was written, is answered with the
largest epoch of the log that is not later, which ends where the next one begins. A broker that is alone has one
epoch.
"""

from tidelog.broker.ownership import check_epoch
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.generated.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)


def handle(request: Request, message: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    broker = broker_of(request)
    topics = []
    for topic in message.topics:
        results = []
        for wanted in topic.partitions:
            try:
                partition = broker.partition(topic.topic, wanted.partition)
                check_epoch(wanted.current_leader_epoch, partition.leader_epoch)
            except TidelogError as error:
                results.append(EpochEndOffset(code_of(error), wanted.partition))
                continue
            results.append(EpochEndOffset(0, wanted.partition, *partition.end_of_epoch(wanted.leader_epoch)))
        topics.append(OffsetForLeaderTopicResult(topic.topic, results))
    return OffsetForLeaderEpochResponse(topics=topics)
