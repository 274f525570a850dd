"""AlterPartitionReassignments (45), v0 to v1: a partition cannot be moved away from the broker that leads it.

A request for exactly that placement succeeds, a cancellation finds no reassignment in progress, and anything else is
refused.
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
                index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this partition does not exist"
            )
        if wanted.replicas is None:
            return ReassignablePartitionResponse(
                index, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no reassignment of this partition is in progress"
            )
        leader = broker.ownership.leader(known.topic_id, index).broker_id
        if list(wanted.replicas) != [leader]:
            return ReassignablePartitionResponse(
                index,
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"the partition cannot be moved: its only replica is on broker {leader}",
            )
        return ReassignablePartitionResponse(index, 0, None)

    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(topic.name, [result(topic.name, each) for each in topic.partitions])
            for topic in message.topics
        ],
    )
