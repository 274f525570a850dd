"""DescribeQuorum (55), v0 to v2: the quorum that stores the cluster's metadata. Its only voter is the controller.
There is no metadata log, so all offsets are 0."""

from tidelog.broker.shell import now_ms
from tidelog.broker.topics import CLUSTER_METADATA
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import Context, context_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)


def handle(request: Request, message: DescribeQuorumRequest) -> DescribeQuorumResponse:
    context, version = context_of(request), request.version
    topics = [
        ResponseTopicData(
            topic.topic_name,
            [_partition(context, version, topic.topic_name, each.partition_index) for each in topic.partitions],
        )
        for topic in message.topics
    ]
    if version < 2:
        return DescribeQuorumResponse(topics=topics)
    name, ownership = context.listener.name, context.broker.ownership
    address = ownership.address(ownership.controller().broker_id, name)
    nodes = [Node(address.broker_id, [Listener(name, address.host, address.port)])]
    return DescribeQuorumResponse(error_message=None, topics=topics, nodes=nodes)


def _partition(context: Context, version: int, topic: str, index: int) -> ResponsePartitionData:
    told = ResponsePartitionData(index, leader_id=-1)
    if version >= 2:
        told.error_message = None
    if (topic, index) != (CLUSTER_METADATA, 0):
        told.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return told
    controller, epoch = context.broker.ownership.controller()
    voter = ReplicaState(controller)
    if version >= 1:
        voter.last_fetch_timestamp = voter.last_caught_up_timestamp = now_ms()
    told.leader_id, told.leader_epoch, told.current_voters = controller, epoch, [voter]
    return told
