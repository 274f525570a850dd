"""DescribeCluster (60), v0 to v2: the one broker there is."""

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import context_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1


def handle(request: Request, message: DescribeClusterRequest) -> DescribeClusterResponse:
    context = context_of(request)
    broker = context.broker
    if message.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="this is a broker, not a controller",
            endpoint_type=message.endpoint_type,
        )
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[DescribeClusterBroker(broker.node_id, context.advertised_host, context.advertised_port)],
    )
