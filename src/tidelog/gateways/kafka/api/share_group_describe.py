"""ShareGroupDescribe (77), v1: share groups are not supported, so none is found."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def handle(_request: Request, message: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        groups=[
            DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, "share groups are not supported", group, "Dead")
            for group in message.group_ids
        ]
    )
