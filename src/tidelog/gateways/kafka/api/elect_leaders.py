"""ElectLeaders (43), v0 to v2: every partition is led by its only replica, so no election is ever needed."""

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def handle(request: Request, message: ElectLeadersRequest) -> ElectLeadersResponse:
    if message.topic_partitions is None:  # all: those that need none are left out
        return ElectLeadersResponse()
    broker = broker_of(request)
    results = []
    for topic in message.topic_partitions:
        known = broker.topics.find(topic.topic)
        count = 0 if known is None else known.partitions
        results.append(
            ReplicaElectionResult(
                topic.topic,
                [
                    PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "its only replica leads it")
                    if 0 <= index < count
                    else PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
                    for index in topic.partitions
                ],
            )
        )
    return ElectLeadersResponse(replica_election_results=results)
