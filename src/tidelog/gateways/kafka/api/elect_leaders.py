"""ElectLeaders (43), v0 to v2: every partition is led by its only replica. No election is needed, and an election
does not help a partition without a leader."""

from tidelog.broker.broker import Broker
from tidelog.broker.ownership import NOBODY
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
    if message.topic_partitions is None:  # all partitions: the reply leaves out those that need no election
        return ElectLeadersResponse()
    broker = broker_of(request)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic.topic, [_result(broker, topic.topic, index) for index in topic.partitions])
            for topic in message.topic_partitions
        ]
    )


def _result(broker: Broker, name: str, index: int) -> PartitionResult:
    topic = broker.topics.find(name)
    if topic is None or not 0 <= index < topic.partitions:
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "this partition does not exist")
    if broker.ownership.leader(topic.topic_id, index).broker_id == NOBODY:
        return PartitionResult(
            index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no broker is available to lead this partition"
        )
    return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "the only replica is the leader already")
