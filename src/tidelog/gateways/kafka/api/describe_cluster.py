"""DescribeCluster (60), v0 to v2: the brokers of the cluster, and which of them is the controller."""

from tidelog.broker.admission import ResourceKind
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.gateways.kafka.permissions import authorized_operations
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1


def handle(request: Request, message: DescribeClusterRequest) -> DescribeClusterResponse:
    broker = broker_of(request)
    if message.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="this is a broker, not a controller",
            endpoint_type=message.endpoint_type,
        )
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.ownership.controller_for_clients(),
        brokers=[DescribeClusterBroker(*each) for each in broker.ownership.brokers(request.session.listener.name)],
        cluster_authorized_operations=authorized_operations(
            request, ResourceKind.CLUSTER, is_asked=message.include_cluster_authorized_operations
        ),
    )
