"""StreamsGroupDescribe (89), v0: streams groups are not supported, so none is found."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


def handle(_request: Request, message: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(
        groups=[
            DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, "streams groups are not supported", group, "Dead")
            for group in message.group_ids
        ]
    )
