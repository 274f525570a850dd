"""DescribeTopicPartitions (75), v0: topics page by page, with a limit on the partitions of a reply. An empty list of
topics means all that the client may describe."""

from tidelog.broker.admission import Operation, ResourceKind
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.gateways.kafka.described_topics import described
from tidelog.gateways.kafka.permissions import authorized_operations, may, visible
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)

MOST_PARTITIONS = 2000


def handle(request: Request, message: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    broker = broker_of(request)
    names = sorted({topic.name for topic in message.topics}) or [
        topic.name for topic in visible(request, ResourceKind.TOPIC, broker.topics, lambda each: each.name)
    ]
    room = max(1, min(message.response_partition_limit, MOST_PARTITIONS))
    first = 0
    if message.cursor is not None:
        names = [name for name in names if name >= message.cursor.topic_name]
        if names and names[0] == message.cursor.topic_name:
            first = max(0, message.cursor.partition_index)
    found: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if room <= 0:
            return DescribeTopicPartitionsResponse(topics=found, next_cursor=ResponseCursor(name, 0))
        topic = broker.topics.find(name)
        is_refused = not may(request, Operation.DESCRIBE, ResourceKind.TOPIC, name)
        if topic is None or is_refused:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_refused else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            found.append(DescribeTopicPartitionsResponseTopic(code, name))
            room -= 1
            continue
        shown = described(request, topic).partitions[first : first + room]
        found.append(
            DescribeTopicPartitionsResponseTopic(
                0,
                topic.name,
                topic.topic_id,
                False,
                [
                    DescribeTopicPartitionsResponsePartition(
                        error_code=each.error_code,
                        partition_index=each.partition_index,
                        leader_id=each.leader_id,
                        leader_epoch=each.leader_epoch,
                        replica_nodes=each.replica_nodes,
                        isr_nodes=each.isr_nodes,
                        eligible_leader_replicas=[],
                        last_known_elr=[],
                        offline_replicas=each.offline_replicas,
                    )
                    for each in shown
                ],
                authorized_operations(request, ResourceKind.TOPIC, topic.name),
            )
        )
        room -= len(shown)
        if first + len(shown) < topic.partitions:
            return DescribeTopicPartitionsResponse(topics=found, next_cursor=ResponseCursor(name, first + len(shown)))
        first = 0
    return DescribeTopicPartitionsResponse(topics=found)
