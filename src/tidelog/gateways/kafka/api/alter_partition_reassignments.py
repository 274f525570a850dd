"""AlterPartitionReassignments (45), v0 to v1: move the leadership of partitions to other brokers of the cluster.

A partition has one replica, its leader, because the data is in the object store. Of a list of replicas the first one
becomes the leader, within a second or two. A cancellation finds no reassignment in progress. A broker that is alone
keeps all partitions: a request for exactly that placement succeeds, anything else is refused.
"""

from tidelog.errors import InvalidInput
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
        if broker.others is not None and wanted.replicas:
            try:
                broker.others.move_leaders({(known.topic_id, index): wanted.replicas[0]})
            except InvalidInput as error:
                return ReassignablePartitionResponse(index, ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(error))
        elif list(wanted.replicas) != [leader]:
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
