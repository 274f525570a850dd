"""ListPartitionReassignments (46), v0: the list is always empty, because partitions cannot be moved."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(_request: Request, _message: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
