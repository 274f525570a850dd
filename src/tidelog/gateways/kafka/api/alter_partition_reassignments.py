"""AlterPartitionReassignments (45), v0 to v1: partitions stay where they are, on the one broker there is.

To ask for just that is fine; to cancel a move finds none under way; anything else names brokers that do not exist.
"""

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(request: Request, message: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    broker = broker_of(request)

    def result(topic: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
        known = broker.topics.find(topic)
        index = wanted.partition_index
        if known is None or not 0 <= index < known.partitions:
            return ReassignablePartitionResponse(
                index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
            )
        if wanted.replicas is None:
            return ReassignablePartitionResponse(
                index, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "it is not being moved"
            )
        if list(wanted.replicas) != [broker.node_id]:
            return ReassignablePartitionResponse(
                index, ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"there is one broker here, {broker.node_id}"
            )
        return ReassignablePartitionResponse(index, 0, None)

    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(topic.name, [result(topic.name, each) for each in topic.partitions])
            for topic in message.topics
        ],
    )
