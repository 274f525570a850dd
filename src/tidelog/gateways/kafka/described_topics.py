"""A topic with its partitions and their leaders, as Metadata and DescribeTopicPartitions describe it."""

from tidelog.broker.broker import Broker
from tidelog.broker.topics import Topic
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import context_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.metadata import MetadataResponsePartition, MetadataResponseTopic
from tidelog.wire.writing import Unchanging


def described(request: Request, topic: Topic) -> MetadataResponseTopic:
    """The topic as it is now. The partitions are cached: every client asks when it starts and every few minutes."""
    context = context_of(request)
    broker, known = context.broker, context.described_partitions
    key = (topic.topic_id, topic.partitions, broker.ownership.version)
    partitions = known.get(key)
    if partitions is None:
        if len(known) > 2 * len(broker.topics):  # most are of topics that were deleted or have grown
            known.clear()
        described_now = [_partition(broker, topic, index) for index in range(topic.partitions)]
        if any(partition.error_code for partition in described_now):  # not cached: they may be opened later
            return MetadataResponseTopic(0, topic.name, topic.topic_id, False, described_now)
        partitions = known[key] = Unchanging(described_now)
    return MetadataResponseTopic(0, topic.name, topic.topic_id, False, partitions)


def _partition(broker: Broker, topic: Topic, index: int) -> MetadataResponsePartition:
    """The leader is the only replica. A partition is not available if it could not be opened or has no leader."""
    ownership = broker.ownership
    leader, epoch = ownership.leader(topic.topic_id, index)
    nodes = [leader] if leader >= 0 else []
    is_here = leader == ownership.node_id
    if leader < 0 or (is_here and broker.find(topic.name, index) is None):
        return MetadataResponsePartition(ErrorCode.LEADER_NOT_AVAILABLE, index, -1, epoch, nodes, [], nodes)
    return MetadataResponsePartition(0, index, leader, epoch, nodes, nodes, [])
