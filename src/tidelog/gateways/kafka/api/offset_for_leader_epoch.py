"""OffsetForLeaderEpoch (23), v2 to v4: the end offset of a leader epoch. Only the current epoch is known; it ends at
the log's end."""

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
            known = wanted.leader_epoch == partition.leader_epoch
            end = partition.high_watermark if known else -1
            results.append(EpochEndOffset(0, wanted.partition, wanted.leader_epoch if known else -1, end))
        topics.append(OffsetForLeaderTopicResult(topic.topic, results))
    return OffsetForLeaderEpochResponse(topics=topics)
